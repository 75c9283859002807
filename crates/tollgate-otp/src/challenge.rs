//! Which code is meant, whose it is, and what is stored of it.
//!
//! Invariant: what is stored is an HMAC over everything that a code is bound to: account, purpose, destination, challenge and
//! digits, each behind its length, under a secret that is named beside it. Nobody who reads the table can tell a code, and what is
//! stored of one is no code itself.

use crate::code::Code;
use crate::error::{Error, Result};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::fmt;
use std::str::FromStr;
use tollgate_core::Key;
use tollgate_policy::{KeySecrets, Purpose};

/// What is hashed beside a code; nobody else signs under that name.
const SIGNED: &[u8] = b"one-time code 1";

/// One code that was sent, by a random number of 128 bits. As text 22 characters of base64url.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChallengeId([u8; 16]);

impl ChallengeId {
    /// The challenge of these bytes, which are random.
    #[must_use]
    pub const fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// A new challenge.
    ///
    /// # Errors
    ///
    /// [`Error::NoRandomness`] if the system has none.
    pub fn random() -> Result<Self> {
        let mut bytes = [0; 16];
        crate::random(&mut bytes)?;
        Ok(Self(bytes))
    }
}

impl fmt::Display for ChallengeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(self.0))
    }
}

/// The text is none that [`ChallengeId`] writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is not the text of a challenge")]
pub struct NoChallenge;

impl FromStr for ChallengeId {
    type Err = NoChallenge;

    fn from_str(text: &str) -> std::result::Result<Self, NoChallenge> {
        // What is longer is not decoded, since a stranger has sent it.
        let decoded = (text.len() == 22).then(|| URL_SAFE_NO_PAD.decode(text).ok()).flatten();
        decoded.and_then(|bytes| bytes.try_into().ok()).map(Self).ok_or(NoChallenge)
    }
}

/// Whose code it is, what it is for, and where it goes.
#[derive(Clone, PartialEq, Eq)]
pub struct Recipient {
    account: Key,
    purpose: Purpose,
    destination: String,
}

impl Recipient {
    /// The `account` that the caller has proved to be, like `tenant:acme,user:alice`; the number or address that codes of it go to
    /// is the one of its verified profile, in one spelling. It is hashed, never stored.
    ///
    /// # Errors
    ///
    /// [`Error::NoDestination`] if the destination is empty.
    pub fn new(account: Key, purpose: Purpose, destination: impl Into<String>) -> Result<Self> {
        let destination = destination.into();
        if destination.is_empty() { Err(Error::NoDestination) } else { Ok(Self { account, purpose, destination }) }
    }

    /// Whose code it is.
    #[must_use]
    pub fn account(&self) -> &Key {
        &self.account
    }

    /// What it is for.
    #[must_use]
    pub fn purpose(&self) -> &Purpose {
        &self.purpose
    }

    /// What is stored of `code`, under the active secret; `None` without secrets.
    #[must_use]
    pub fn digest(&self, secrets: &KeySecrets, challenge: ChallengeId, code: &Code) -> Option<Digest> {
        let account = self.account.to_string();
        let (kid, mac) = secrets.sign(&self.parts(&account, &challenge, code))?;
        Some(Digest { kid: kid.to_owned(), mac })
    }

    /// Whether `stored` is of `code`; told in the same time wherever they differ.
    #[must_use]
    pub fn matches(&self, secrets: &KeySecrets, challenge: ChallengeId, code: &Code, stored: &Digest) -> bool {
        let account = self.account.to_string();
        secrets.has_signed(&stored.kid, &self.parts(&account, &challenge, code), &stored.mac)
    }

    fn parts<'a>(&'a self, account: &'a str, challenge: &'a ChallengeId, code: &'a Code) -> [&'a [u8]; 6] {
        let (purpose, destination) = (self.purpose.as_str().as_bytes(), self.destination.as_bytes());
        [SIGNED, account.as_bytes(), purpose, destination, &challenge.0, code.digits().as_bytes()]
    }
}

/// Without who and where.
impl fmt::Debug for Recipient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recipient").field("purpose", &self.purpose).finish_non_exhaustive()
    }
}

/// What is stored of a code: `KID.MAC`, the name of the secret and 256 bits in base64url.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Digest {
    kid: String,
    mac: [u8; 32],
}

impl Digest {
    /// The name of the secret.
    #[must_use]
    pub fn kid(&self) -> &str {
        &self.kid
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.kid, URL_SAFE_NO_PAD.encode(self.mac))
    }
}

impl FromStr for Digest {
    type Err = tollgate_core::Error;

    fn from_str(text: &str) -> std::result::Result<Self, Self::Err> {
        let parse = || {
            let (kid, mac) = text.split_once('.')?;
            Some(Self { kid: kid.to_owned(), mac: URL_SAFE_NO_PAD.decode(mac).ok()?.try_into().ok()? })
        };
        parse().ok_or_else(|| tollgate_core::Error::Stored {
            attribute: "digest".to_owned(),
            found: "no name and MAC".to_owned(),
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use tollgate_policy::Policy;

    const OLD: &str = "k1=AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";
    const NEW: &str = "k2=__79_Pv6-fj39vX08_Lx8O_u7ezr6uno5-bl5OPi4eA";

    fn recipient(account: &str, purpose: &str, destination: &str) -> Recipient {
        let text = "version = 1\nlimits = {}\n[otp]\npurposes = ['login', 'change-phone']\n";
        let policy = Policy::parse(text).unwrap().policy;
        Recipient::new(account.parse().unwrap(), policy.otp_for(purpose).unwrap().1.clone(), destination).unwrap()
    }

    fn code(digits: &str) -> Code {
        Code::parse(digits, u8::try_from(digits.len()).unwrap()).unwrap()
    }

    #[test]
    fn what_is_stored_is_the_mac_of_all_parts_behind_their_lengths() {
        // Python: hmac.new(bytes(range(32)), b"".join(len(p).to_bytes(8, "big") + p for p in [b"one-time code 1",
        //   b"tenant:acme,user:alice", b"login", b"+40721234567", bytes(16), b"012345"]), "sha256").digest()
        let alice = recipient("tenant:acme,user:alice", "login", "+40721234567");
        let stored = alice.digest(&OLD.parse().unwrap(), ChallengeId::new([0; 16]), &code("012345")).unwrap();
        assert_eq!(stored.to_string(), "k1.lPOeIGhhllVXRgazVf_rQeKltStr6r6aaj4nHcMz9iM");
    }

    #[test]
    fn a_code_is_bound_to_account_purpose_destination_challenge_and_digits() {
        let (secrets, challenge) = (OLD.parse::<KeySecrets>().unwrap(), ChallengeId::new([1; 16]));
        let alice = recipient("tenant:acme,user:alice", "login", "+40721234567");
        let stored = alice.digest(&secrets, challenge, &code("012345")).unwrap();
        assert!(alice.matches(&secrets, challenge, &code("012345"), &stored));
        let others = [
            recipient("tenant:acme,user:bob", "login", "+40721234567"),
            recipient("tenant:other,user:alice", "login", "+40721234567"),
            recipient("tenant:acme,user:alice", "change-phone", "+40721234567"),
            recipient("tenant:acme,user:alice", "login", "+40721234568"),
        ];
        for other in others {
            assert!(!other.matches(&secrets, challenge, &code("012345"), &stored), "{}", other.account());
        }
        assert!(!alice.matches(&secrets, ChallengeId::new([2; 16]), &code("012345"), &stored));
        assert!(!alice.matches(&secrets, challenge, &code("012346"), &stored));
    }

    #[test]
    fn codes_of_a_secret_that_is_being_retired_match_and_of_one_that_is_gone_do_not() {
        let challenge = ChallengeId::new([1; 16]);
        let alice = recipient("user:alice", "login", "a@x.org");
        let stored = alice.digest(&OLD.parse().unwrap(), challenge, &code("012345")).unwrap();
        let (both, new) = (format!("{NEW},{OLD}").parse::<KeySecrets>().unwrap(), NEW.parse::<KeySecrets>().unwrap());
        assert!(alice.matches(&both, challenge, &code("012345"), &stored));
        assert!(!alice.matches(&new, challenge, &code("012345"), &stored));
        assert_eq!(alice.digest(&both, challenge, &code("012345")).unwrap().kid(), "k2");
        assert_eq!(alice.digest(&KeySecrets::default(), challenge, &code("012345")), None);
    }

    #[test]
    fn the_hash_of_a_stored_hash_is_another() {
        // [simple-login#2132]: who reads the table cannot verify by what is in it.
        let (secrets, challenge) = (OLD.parse::<KeySecrets>().unwrap(), ChallengeId::new([1; 16]));
        let alice = recipient("user:alice", "login", "a@x.org");
        let stored = alice.digest(&secrets, challenge, &code("012345")).unwrap();
        let text = stored.to_string();
        for pasted in [text.as_str(), text.split_once('.').unwrap().1] {
            let pasted = Code::of_any(pasted);
            assert!(!alice.matches(&secrets, challenge, &pasted, &stored));
        }
    }

    #[test]
    fn what_is_written_is_read_back_and_nothing_else() {
        let challenge = ChallengeId::random().unwrap();
        assert_eq!(challenge.to_string().parse(), Ok(challenge));
        let text = challenge.to_string();
        for wrong in
            [&text[1..], &format!("{text}A"), &format!(" {}", &text[1..]), "", &"/".repeat(22), &"é".repeat(11)]
        {
            assert_eq!(wrong.parse::<ChallengeId>(), Err(NoChallenge), "{wrong}");
        }
        let alice = recipient("user:alice", "login", "a@x.org");
        let stored = alice.digest(&OLD.parse().unwrap(), challenge, &code("012345")).unwrap();
        assert_eq!(stored.to_string().parse(), Ok(stored.clone()));
        for wrong in ["", "k1", "k1.", "k1.AAAA", &format!("{stored}A")] {
            assert!(wrong.parse::<Digest>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn neither_who_nor_where_is_in_the_debug_text() {
        assert_eq!(
            format!("{:?}", recipient("user:alice", "login", "+40721234567")),
            "Recipient { purpose: Purpose(\"login\"), .. }"
        );
    }

    #[test]
    fn a_code_goes_somewhere() {
        let purpose = recipient("user:alice", "login", "x").purpose().clone();
        assert!(matches!(Recipient::new("user:alice".parse().unwrap(), purpose, ""), Err(Error::NoDestination)));
    }
}
