//! What signatures are made with: one secret, or two while one takes the other's place.
//!
//! Invariant: while the place gives no answer, the secrets that were read last stay; no debug text has a part of them.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tollgate::Timestamp;
use tollgate::lambda::InitError;
use tollgate::source::{PolicySource, Reader, ReaderOptions};

use crate::settings::SECRET;

/// The age at which secrets are read again, so that a new one needs no deployment.
const FRESH: Duration = Duration::from_secs(60);
/// Bytes of a secret that nobody guesses.
const MIN_BYTES: usize = 16;
/// Secrets at once.
const MOST: usize = 2;

/// The secrets, keyed and ready.
#[derive(Clone)]
pub struct Keys(Vec<Hmac<Sha256>>);

impl Keys {
    /// Whether one of them makes one of `tags` of these parts, one after the other.
    pub(crate) fn have_signed(&self, parts: &[&[u8]], tags: &[[u8; 32]]) -> bool {
        self.0.iter().any(|key| {
            let mac = parts.iter().fold(key.clone(), |mac, part| mac.chain_update(part));
            tags.iter().any(|tag| mac.clone().verify_slice(tag).is_ok())
        })
    }
}

/// The text is no list of secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "write one secret of the sender, or two with a comma between while they change, of {MIN_BYTES} characters at least"
)]
pub struct KeysError;

impl FromStr for Keys {
    type Err = KeysError;

    fn from_str(text: &str) -> Result<Self, KeysError> {
        let secrets = || text.split(',').map(str::trim);
        if secrets().count() > MOST || secrets().any(|secret| secret.len() < MIN_BYTES) {
            return Err(KeysError);
        }
        secrets()
            .map(|secret| Hmac::new_from_slice(secret.as_bytes()).map_err(|_| KeysError))
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

/// Without them.
impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Keys").field(&self.0.len()).finish()
    }
}

/// The secrets in force, and where they are read again.
#[derive(Debug)]
pub struct Secrets(Mutex<Held>);

#[derive(Debug)]
struct Held {
    reader: Reader,
    keys: Arc<Keys>,
    read: Timestamp,
}

impl Secrets {
    /// Reads them for the first time.
    ///
    /// # Errors
    ///
    /// [`InitError::Secret`] if they cannot be read, [`InitError::Invalid`] if the text is none.
    pub async fn open(place: PolicySource, now: Timestamp) -> Result<Self, InitError> {
        let shown = place.to_string();
        let secret = |cause| InitError::Secret { name: SECRET, cause: Box::new(cause) };
        let mut reader = Reader::open(place, &ReaderOptions::default()).await.map_err(secret)?;
        let text = reader.load().await.map_err(secret)?.text.unwrap_or_default();
        let invalid = |error: KeysError| InitError::Invalid { name: SECRET, value: shown, give: error.to_string() };
        let keys = text.parse().map(Arc::new).map_err(invalid)?;
        Ok(Self(Mutex::new(Held { reader, keys, read: now })))
    }

    /// Those in force, read again if they are a minute old.
    pub async fn current(&self, now: Timestamp) -> Arc<Keys> {
        let mut held = self.0.lock().await;
        if now.as_millis().abs_diff(held.read.as_millis()) >= FRESH.as_millis().try_into().unwrap_or(u64::MAX) {
            held.read = now;
            match held.reader.load().await.map(|loaded| loaded.text.map(|text| text.parse())) {
                Ok(Some(Ok(keys))) => held.keys = Arc::new(keys),
                Ok(None) => {}
                Ok(Some(Err(error))) => tracing::error!(%error, "the secrets are the old ones"),
                Err(error) => tracing::warn!(%error, "the secrets are the old ones"),
            }
        }
        Arc::clone(&held.keys)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn there_are_one_or_two_secrets_which_nobody_guesses() {
        let (a, b) = ("a".repeat(16), "b".repeat(16));
        for (text, count) in [(a.clone(), 1), (format!("{a},\n {b}\n"), 2)] {
            assert_eq!(format!("{:?}", text.parse::<Keys>().unwrap()), format!("Keys({count})"));
        }
        for wrong in [String::new(), a[1..].to_owned(), format!("{a},"), format!("{a},{b},{a}")] {
            assert_eq!(wrong.parse::<Keys>().unwrap_err(), KeysError, "{wrong}");
        }
    }

    #[tokio::test]
    async fn a_new_secret_is_known_within_a_minute_and_what_is_no_secret_leaves_the_old_one() {
        let file = std::env::temp_dir().join(format!("webhook-secrets-{}", std::process::id()));
        let [old, new] = ["o".repeat(16), "n".repeat(16)];
        let has = async |secrets: &Secrets, secret: &str, at: u64| {
            let mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap().chain_update(b"x");
            let tag: [u8; 32] = mac.finalize().into_bytes().into();
            secrets.current(Timestamp::from_secs(at)).await.have_signed(&[b"x"], &[tag])
        };
        std::fs::write(&file, &old).unwrap();
        let secrets = Secrets::open(PolicySource::File(file.clone()), Timestamp::from_secs(1000)).await.unwrap();
        std::fs::write(&file, format!("{new},{old}")).unwrap();
        assert_eq!((has(&secrets, &old, 1059).await, has(&secrets, &new, 1059).await), (true, false));
        assert_eq!((has(&secrets, &old, 1060).await, has(&secrets, &new, 1060).await), (true, true));
        std::fs::write(&file, "short").unwrap();
        assert!(has(&secrets, &new, 1120).await);
        std::fs::remove_file(&file).unwrap();
        assert!(has(&secrets, &new, 1180).await);
    }
}
