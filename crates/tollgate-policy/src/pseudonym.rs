//! Personal values as keyed hashes: what goes into a key in place of an email address or a phone number; and the
//! secrets, which sign the tokens of devices and hash one-time codes as well.
//!
//! Invariant: a table tells nobody who is in it. The hash is under a secret that the table does not have, so that the few
//! billion numbers there are cannot be tried, and under the dimension's name, so that a value is not the same in two of
//! them. No secret and no value is in any message or debug text.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use tollgate_core::Key;
use zeroize::Zeroizing;

/// Secrets that personal values and one-time codes are hashed under and tokens of devices are signed by: the active one, and
/// those that are being retired. They are wiped from memory when they are dropped.
///
/// As text `k2=SECRET,k1=SECRET`: a name and at least 32 random bytes in base64 each, the active one first. Every value is
/// charged under all of them, so that a new secret gives nobody a fresh bucket: put it in front, keep the old one for as
/// long as limits and overrides remember ([`Policy::personal_horizon_secs`](crate::Policy::personal_horizon_secs)) and as
/// a ban or override is in force under it alone, then remove it. A device whose token it has signed is a stranger from then on.
///
/// ```
/// use tollgate_policy::KeySecrets;
///
/// // openssl rand -base64 32
/// let secrets: KeySecrets = "k1=mZ0s0Y9rZ3h5c0x1b2Qzd2F4cDRoN3Q2ajVrNmw4bTk".parse()?;
/// assert_eq!(format!("{secrets:?}"), r#"KeySecrets(["k1"])"#);
/// # Ok::<(), tollgate_policy::KeySecretsError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Default)]
pub struct KeySecrets(Arc<[Secret]>);

#[derive(Clone, PartialEq, Eq)]
struct Secret {
    id: String,
    bytes: Zeroizing<Vec<u8>>,
}

/// Text that is no list of secrets. The message has no part of a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("key secret {position}: {problem}; write {SHAPE}")]
pub struct KeySecretsError {
    position: usize,
    problem: &'static str,
}

const SHAPE: &str = "NAME=SECRET, several with commas between them and the active one first, like \
                     k2=SECRET,k1=SECRET; `openssl rand -base64 32` makes one";

impl KeySecrets {
    /// Least length of a secret, bytes: that of the hash (RFC 2104 section 3).
    pub const MIN_BYTES: usize = 32;

    /// Most secrets at once: each beyond the first is one more write for every decision on a personal value.
    pub const MAX_SECRETS: usize = 4;

    /// Longest name of a secret, in bytes of `a-z A-Z 0-9 _ -`.
    pub const MAX_ID_BYTES: usize = 16;

    /// Bytes of the hash that a key has: 128 bits, so that no two people of one table ever share a bucket by chance.
    const HASH_BYTES: usize = 16;

    /// The secret of development servers. Everybody knows it: never for a table that matters.
    #[must_use]
    pub fn development() -> Self {
        let secret =
            Secret { id: "dev".to_owned(), bytes: Zeroizing::new(b"tollgate development secret, not one".to_vec()) };
        Self(Arc::new([secret]))
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names of the secrets, the active one first.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|secret| secret.id.as_str())
    }

    /// What stands for `key` where neither its values nor their spelling may be read, as in logs: `ID.HASH` under the active
    /// secret, the same wherever that is the active one; `None` without secrets. Whoever has no secret can only tell that two
    /// are of one key.
    #[must_use]
    pub fn reference(&self, key: &Key) -> Option<String> {
        // A dimension's name has no blanks, so this is never a pseudonym.
        self.0.first()?.pseudonym("key reference", &key.to_string())
    }

    /// The active secret's name, and its signature of `parts` (HMAC-SHA-256, each behind its length); `None` without secrets.
    /// The first part says what for: it has a blank, so that it is no dimension's name, and nobody else has it.
    #[must_use]
    pub fn sign(&self, parts: &[&[u8]]) -> Option<(&str, [u8; 32])> {
        let secret = self.0.first()?;
        Some((secret.id.as_str(), secret.mac(parts)?.finalize().into_bytes().into()))
    }

    /// The same by the secret named `id`; `None` if there is none of that name.
    #[must_use]
    pub fn sign_under(&self, id: &str, parts: &[&[u8]]) -> Option<[u8; 32]> {
        let secret = self.0.iter().find(|secret| secret.id == id)?;
        Some(secret.mac(parts)?.finalize().into_bytes().into())
    }

    /// Whether `mac` is the signature of `parts` by the secret named `id`; told in the same time wherever they differ.
    #[must_use]
    pub fn has_signed(&self, id: &str, parts: &[&[u8]], mac: &[u8]) -> bool {
        let secret = self.0.iter().find(|secret| secret.id == id);
        secret.and_then(|secret| secret.mac(parts)).is_some_and(|computed| computed.verify_slice(mac).is_ok())
    }

    /// What stands for `value` in the keys of `dimension`: `ID.HASH`, one under each secret, the active one's first.
    pub(crate) fn pseudonyms<'a>(&'a self, dimension: &'a str, value: &'a str) -> impl Iterator<Item = String> + 'a {
        self.0.iter().filter_map(move |secret| secret.pseudonym(dimension, value))
    }

    /// Whether `value` is what stands for another one in keys: `ID.HASH` under one of these secrets.
    pub(crate) fn is_pseudonym(&self, value: &str) -> bool {
        Self::id_of(value).is_some_and(|id| self.ids().any(|known| known == id))
    }

    /// The name of the secret that `value` was hashed under, known here or not; `None` if it has not the form `ID.HASH`.
    pub(crate) fn id_of(value: &str) -> Option<&str> {
        let (id, hash) = value.split_once('.')?;
        let decoded = URL_SAFE_NO_PAD.decode(hash).ok()?;
        (is_id(id) && decoded.len() == Self::HASH_BYTES).then_some(id)
    }
}

fn is_id(id: &str) -> bool {
    let ok = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    (1..=KeySecrets::MAX_ID_BYTES).contains(&id.len()) && id.bytes().all(ok)
}

impl Secret {
    /// HMAC-SHA-256 of parts, each behind its length, so that no two lists of them are one text. The first says what it is for.
    fn mac(&self, parts: &[&[u8]]) -> Option<Hmac<Sha256>> {
        // HMAC takes a key of any length.
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.bytes).ok()?;
        for part in parts {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        Some(mac)
    }

    fn pseudonym(&self, dimension: &str, value: &str) -> Option<String> {
        let hash = self.mac(&[dimension.as_bytes(), value.as_bytes()])?.finalize().into_bytes();
        let hash = hash.get(..KeySecrets::HASH_BYTES)?;
        Some(format!("{}.{}", self.id, URL_SAFE_NO_PAD.encode(hash)))
    }
}

impl fmt::Debug for KeySecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KeySecrets").field(&self.ids().collect::<Vec<_>>()).finish()
    }
}

impl FromStr for KeySecrets {
    type Err = KeySecretsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut secrets: Vec<Secret> = Vec::new();
        for (i, entry) in text.split(',').enumerate() {
            let wrong = |problem| KeySecretsError { position: i + 1, problem };
            let (id, encoded) = entry.split_once('=').ok_or(wrong("it is not NAME=SECRET"))?;
            let id = id.trim();
            if !is_id(id) {
                return Err(wrong("its name is not 1 to 16 of a-z A-Z 0-9 _ -"));
            }
            // What `openssl rand -base64` prints is the other alphabet, with padding.
            let encoded = encoded.trim().trim_end_matches('=').replace('+', "-").replace('/', "_");
            let encoded = Zeroizing::new(encoded);
            let bytes = URL_SAFE_NO_PAD.decode(encoded.as_bytes()).map_err(|_| wrong("it is not base64"))?;
            let bytes = Zeroizing::new(bytes);
            if bytes.len() < Self::MIN_BYTES {
                return Err(wrong("it is shorter than 32 bytes"));
            }
            if secrets.iter().any(|earlier| earlier.id == id) {
                return Err(wrong("its name is another one's"));
            }
            if secrets.iter().any(|earlier| earlier.bytes == bytes) {
                return Err(wrong("it is the same as another one"));
            }
            if secrets.len() == Self::MAX_SECRETS {
                return Err(wrong("it is more than the four there may be"));
            }
            secrets.push(Secret { id: id.to_owned(), bytes });
        }
        Ok(Self(secrets.into()))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const OLD: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";
    const NEW: &str = "__79_Pv6-fj39vX08_Lx8O_u7ezr6uno5-bl5OPi4eA";

    fn secrets(text: &str) -> KeySecrets {
        text.parse().unwrap()
    }

    #[test]
    fn a_pseudonym_is_the_truncated_mac_of_name_and_value_behind_their_lengths() {
        // Computed with Python's hmac: HMAC-SHA256(bytes(range(32)), u64be(7) + "account" + u64be(11) + "admin@x.org").
        let found: Vec<_> = secrets(&format!("k1={OLD}")).pseudonyms("account", "admin@x.org").collect();
        assert_eq!(found, ["k1.vehUMg-YKO9Mw670_Eas9Q"]);
    }

    #[test]
    fn every_secret_gives_one_and_dimensions_differ() {
        let both = secrets(&format!("k2={NEW}, k1={OLD}\n"));
        assert_eq!(both.ids().collect::<Vec<_>>(), ["k2", "k1"]);
        let of = |secrets: &KeySecrets, dimension: &str, value: &str| {
            secrets.pseudonyms(dimension, value).collect::<Vec<_>>()
        };
        let found = of(&both, "account", "a");
        assert!(found[0].starts_with("k2.") && found[1..] == of(&secrets(&format!("k1={OLD}")), "account", "a"));
        assert_ne!(of(&both, "account", "a"), of(&both, "phone", "a"));
        assert_ne!(of(&both, "accounta", ""), of(&both, "account", "a"));
        assert!(found.iter().all(|value| both.is_pseudonym(value)));
        for other in ["k3.AAAAAAAAAAAAAAAAAAAAAA", "k1.AAAA", "k1", "k1.", "admin@x.org"] {
            assert!(!both.is_pseudonym(other), "{other}");
        }
    }

    #[test]
    fn a_reference_is_of_the_whole_key_under_the_active_secret_and_no_pseudonym() {
        let both = secrets(&format!("k2={NEW},k1={OLD}"));
        let of = |key: &str| both.reference(&key.parse().unwrap()).unwrap();
        let alice = of("tenant:acme,user:alice");
        assert!(alice.starts_with("k2.") && !alice.contains("alice"));
        assert_eq!(
            Some(&alice),
            secrets(&format!("k2={NEW}")).reference(&"tenant:acme,user:alice".parse().unwrap()).as_ref()
        );
        assert!(["user:alice", "tenant:acm,user:ealice", "tenant:acme,user:bob"].iter().all(|key| of(key) != alice));
        let pseudonyms: Vec<_> = both.pseudonyms("user", "alice").collect();
        assert!(!pseudonyms.contains(&of("user:alice")));
        assert_eq!(KeySecrets::default().reference(&"user:alice".parse().unwrap()), None);
    }

    #[test]
    fn either_alphabet_of_base64_is_read() {
        let standard = NEW.replace('-', "+").replace('_', "/");
        assert_eq!(secrets(&format!("k={standard}=")), secrets(&format!("k={NEW}")));
    }

    #[test]
    fn mistakes_are_told_without_telling_a_secret() {
        let cases = [
            ("", "1: it is not NAME=SECRET"),
            ("sekret", "1: it is not NAME=SECRET"),
            ("=x", "1: its name"),
            ("a.b=x", "1: its name"),
            ("k1=se_kret!", "1: it is not base64"),
            ("k1=c2VrcmV0", "1: it is shorter than 32 bytes"),
        ];
        for (text, says) in cases {
            let error = text.parse::<KeySecrets>().unwrap_err().to_string();
            assert!(error.contains(says) && !error.contains("sekret"), "{text}: {error}");
        }
        for (text, says) in [
            (format!("k1={OLD},k1={NEW}"), "2: its name is another one's"),
            (format!("k1={OLD},k2={OLD}"), "2: it is the same"),
            (format!("k1={OLD},"), "2: it is not NAME=SECRET"),
        ] {
            assert!(text.parse::<KeySecrets>().unwrap_err().to_string().contains(says), "{text}");
        }
        let shown = format!("{:?}", secrets(&format!("k2={NEW},k1={OLD}")));
        assert_eq!(shown, r#"KeySecrets(["k2", "k1"])"#);
        assert!(KeySecrets::default().is_empty() && !KeySecrets::development().is_empty());
    }
}
