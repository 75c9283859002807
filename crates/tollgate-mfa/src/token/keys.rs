//! An issuer's keys: where they are (OpenID Connect Discovery), fetched, kept, renewed.
//!
//! Invariants: keys are fetched once at a time, and no more often than [`Ages::cooldown`] whatever is asked for, so that tokens which
//! name keys that nobody has do not become requests to the issuer; a key that the issuer has withdrawn is good for
//! [`Ages::fresh`] at most, and where it does not answer for [`Ages::kept`].

use jsonwebtoken::jwk::{AlgorithmParameters, Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde_json::Value;
use std::future::Future;
use std::str::FromStr;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::Mutex;
use tollgate_dynamodb::Since;

/// How old keys may become. Real time, whatever the caller's clock says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ages {
    /// How old keys are renewed at; 10 minutes.
    pub fresh: Duration,
    /// How long keys are good for where the issuer does not answer; a day.
    pub kept: Duration,
    /// How long after keys were fetched they are fetched again for one that is not among them, and how long after a fetch that failed
    /// the next one is tried where there are keys to go by, since somebody waits for it each time; 30 s.
    pub cooldown: Duration,
    /// The same where there are none; 2 s.
    pub retry: Duration,
}

impl Default for Ages {
    fn default() -> Self {
        let [fresh, kept, cooldown, retry] = [600, 86_400, 30, 2].map(Duration::from_secs);
        Self { fresh, kept, cooldown, retry }
    }
}

/// The issuer's keys cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the issuer's keys cannot be had from {url}: {cause}")]
pub struct FetchError {
    /// What was asked.
    pub url: String,
    /// What happened.
    pub cause: String,
}

/// Who asks the issuer.
pub trait Fetch: Send + Sync {
    /// The body of a successful `GET`; within a bound of its own, in size as in time.
    fn fetch(&self, url: &str) -> impl Future<Output = Result<Vec<u8>, FetchError>> + Send;
}

/// A key of the issuer, and what it is for.
#[derive(Debug)]
pub(super) struct Key {
    id: Option<String>,
    algorithm: Option<Algorithm>,
    decoding: DecodingKey,
}

impl Key {
    /// `None` for what is no key that signs, or one that everybody has who verifies with it.
    fn of(jwk: &Value) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(jwk.clone()).ok()?;
        let signs = jwk.common.public_key_use.as_ref().is_none_or(|used| *used == PublicKeyUse::Signature);
        if !signs || matches!(jwk.algorithm, AlgorithmParameters::OctetKey(_)) {
            return None;
        }
        let algorithm = match &jwk.common.key_algorithm {
            Some(algorithm) => Some(Algorithm::from_str(&algorithm.to_string()).ok()?),
            None => None,
        };
        Some(Self { id: jwk.common.key_id.clone(), algorithm, decoding: DecodingKey::from_jwk(&jwk).ok()? })
    }

    /// Whether it is a key for that algorithm: the one that the issuer says, or one of its family.
    pub(super) fn may_sign(&self, algorithm: Algorithm) -> bool {
        let family = self.decoding.family() == algorithm.family();
        family && self.algorithm.is_none_or(|own| own == algorithm)
    }

    pub(super) fn decoding(&self) -> &DecodingKey {
        &self.decoding
    }
}

/// What was fetched last.
#[derive(Debug, Default)]
struct Known {
    keys: Vec<Arc<Key>>,
    /// When they were fetched; `None`: never.
    fetched: Option<Since>,
    /// When that was last tried, and whether it failed.
    tried: Option<(Since, Option<FetchError>)>,
    fetches: u64,
}

/// The keys of an issuer.
#[derive(Debug)]
pub struct Keys<F> {
    issuer: String,
    fetch: F,
    ages: Ages,
    known: RwLock<Known>,
    turn: Mutex<()>,
}

impl<F: Fetch> Keys<F> {
    /// The keys of `issuer`, none of them fetched yet.
    #[must_use]
    pub fn new(issuer: String, fetch: F) -> Self {
        Self { issuer, fetch, ages: Ages::default(), known: RwLock::default(), turn: Mutex::new(()) }
    }

    /// Changes how old keys may become.
    #[must_use]
    pub fn with_ages(self, ages: Ages) -> Self {
        Self { ages, ..self }
    }

    /// Fetches them before the first token comes.
    ///
    /// # Errors
    ///
    /// The issuer does not answer, or with something else.
    pub async fn warm_up(&self) -> Result<(), FetchError> {
        self.find(None).await.map(|_| ())
    }

    /// How often they were asked for at the issuer.
    #[must_use]
    pub fn fetches(&self) -> u64 {
        self.read(|known| known.fetches)
    }

    /// The key of that id; of a token without one the only key, if there is one only.
    pub(super) async fn find(&self, id: Option<&str>) -> Result<Option<Arc<Key>>, FetchError> {
        let fresh = || self.read(|known| known.is_fresh(&self.ages).then(|| known.key(id)).flatten());
        if let Some(key) = fresh() {
            return Ok(Some(key));
        }
        // Whoever comes meanwhile waits for the answer to the first.
        let _turn = self.turn.lock().await;
        if let Some(key) = fresh() {
            return Ok(Some(key));
        }
        if self.read(|known| known.may_ask(&self.ages)) {
            let fetched = self.renewed().await;
            self.write(|known| known.take(fetched));
        }
        self.read(|known| known.told(id, &self.ages))
    }

    async fn renewed(&self) -> Result<Vec<Arc<Key>>, FetchError> {
        let discovery = format!("{}/.well-known/openid-configuration", self.issuer.trim_end_matches('/'));
        let wrong = |url: &str, cause: &str| FetchError { url: url.to_owned(), cause: cause.to_owned() };
        let json = |url: &str, body: &[u8]| {
            serde_json::from_slice::<Value>(body).map_err(|_| wrong(url, "the answer is not JSON"))
        };
        let found = json(&discovery, &self.fetch.fetch(&discovery).await?)?;
        if found["issuer"].as_str() != Some(&self.issuer) {
            return Err(wrong(&discovery, "it is about another issuer"));
        }
        let url = found["jwks_uri"].as_str().ok_or_else(|| wrong(&discovery, "it names no jwks_uri"))?;
        // Nobody on the way may choose the keys.
        if self.issuer.starts_with("https:") && !url.starts_with("https:") {
            return Err(wrong(url, "it is not https"));
        }
        let set = json(url, &self.fetch.fetch(url).await?)?;
        let keys: Vec<_> = set["keys"].as_array().into_iter().flatten().filter_map(Key::of).map(Arc::new).collect();
        if keys.is_empty() { Err(wrong(url, "it has no key that signs")) } else { Ok(keys) }
    }

    fn read<T>(&self, of: impl FnOnce(&Known) -> T) -> T {
        of(&self.known.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write(&self, change: impl FnOnce(&mut Known)) {
        change(&mut self.known.write().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Known {
    fn is_fresh(&self, ages: &Ages) -> bool {
        self.fetched.is_some_and(|since| since.is_within(ages.fresh))
    }

    fn are_kept(&self, ages: &Ages) -> bool {
        self.fetched.is_some_and(|since| since.is_within(ages.kept))
    }

    fn key(&self, id: Option<&str>) -> Option<Arc<Key>> {
        match id {
            Some(_) => self.keys.iter().find(|key| key.id.as_deref() == id).cloned(),
            None => self.keys.first().filter(|_| self.keys.len() == 1).cloned(),
        }
    }

    fn may_ask(&self, ages: &Ages) -> bool {
        let wait = if self.are_kept(ages) { ages.cooldown } else { ages.retry };
        self.tried.as_ref().is_none_or(|(since, _)| !since.is_within(wait))
    }

    fn take(&mut self, fetched: Result<Vec<Arc<Key>>, FetchError>) {
        let now = Since::now();
        self.fetches += 1;
        let failed = match fetched {
            Ok(keys) => {
                (self.keys, self.fetched) = (keys, Some(now));
                None
            }
            Err(error) => {
                tracing::warn!(%error, "keys are not renewed");
                Some(error)
            }
        };
        self.tried = Some((now, failed));
    }

    /// The key, where these are the issuer's, as far as anybody knows.
    fn told(&self, id: Option<&str>, ages: &Ages) -> Result<Option<Arc<Key>>, FetchError> {
        match &self.tried {
            _ if self.are_kept(ages) => Ok(self.key(id)),
            Some((_, Some(error))) => Err(error.clone()),
            _ => Ok(None),
        }
    }
}
