//! Verifying the tokens of an issuer: Cognito, or any other one of OpenID Connect (feature `jwt`).
//!
//! | module | what it is |
//! | --- | --- |
//! | [`keys`] | the issuer's keys: fetched, kept, renewed |
//! | `signature` | signatures, by the cryptography that TLS brings |
//! | [`Verifier`] | whether a token is the issuer's, for this audience, at this time |
//!
//! Invariants: nothing of a token is believed before its signature was verified, by a key of the issuer and one of the algorithms
//! that were pinned; time is the caller's, so that whoever judges the claims goes by the same clock.

pub mod keys;
mod signature;

pub use jsonwebtoken::{Algorithm, AlgorithmFamily};
pub use keys::{Ages, Fetch, FetchError, Keys};

use crate::authentication::LEEWAY;
use jsonwebtoken::{Validation, decode, decode_header};
use serde_json::{Map, Value};
use tollgate_core::Timestamp;

/// The longest token that is looked at, bytes. Gateways take headers up to about that.
const LONGEST: usize = 16 * 1024;

/// What an access token may say that it is (RFC 9068 section 4), if it says so: an issuer signs logouts and events with the same keys.
const ACCESS_TOKEN: [&str; 3] = ["JWT", "at+jwt", "application/at+jwt"];

/// Whose tokens are good, and for whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issuer {
    /// `iss`, as the issuer writes it: of a user pool `https://cognito-idp.REGION.amazonaws.com/POOL`.
    pub url: String,
    /// Who a token has to be for: one of `aud`, or, where it has none, `client_id`, which is how Cognito's access tokens say it.
    pub audiences: Vec<String>,
    /// The algorithms that are pinned; none with shared secrets is ever taken.
    pub algorithms: Vec<Algorithm>,
}

impl Issuer {
    /// The issuer at `url`, whose tokens are signed with RS256, as Cognito's are and all of OpenID Connect can be.
    #[must_use]
    pub fn new(url: impl Into<String>, audiences: impl IntoIterator<Item = String>) -> Self {
        Self { url: url.into(), audiences: audiences.into_iter().collect(), algorithms: vec![Algorithm::RS256] }
    }
}

/// Why a token is not believed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Rejected {
    /// It is no signed token, or too long for one.
    #[error("this is no signed token")]
    Malformed,
    /// It is signed with an algorithm that is not pinned, or not one of its key.
    #[error("the algorithm is not one that is pinned")]
    Algorithm,
    /// The issuer has no such key.
    #[error("the issuer has no such key")]
    UnknownKey,
    /// Its signature is not by that key.
    #[error("the signature is not by the issuer's key")]
    Signature,
    /// It is another issuer's.
    #[error("it is another issuer's")]
    Issuer,
    /// It is for somebody else, or no access token.
    #[error("it is no access token for this audience")]
    Audience,
    /// It has expired, or does not say when it does.
    #[error("it has expired")]
    Expired,
    /// It is not good yet.
    #[error("it is not good yet")]
    NotYet,
    /// Nobody knows: the issuer's keys cannot be had.
    #[error(transparent)]
    Unavailable(#[from] FetchError),
}

/// Verifies the tokens of one issuer. One a process, so that its keys are kept.
#[derive(Debug)]
pub struct Verifier<F> {
    issuer: Issuer,
    keys: Keys<F>,
}

impl<F: Fetch> Verifier<F> {
    /// A verifier that has its keys from `fetch`.
    #[must_use]
    pub fn new(issuer: Issuer, fetch: F) -> Self {
        signature::install();
        let keys = Keys::new(issuer.url.clone(), fetch);
        Self { issuer, keys }
    }

    /// Changes how old its keys may become.
    #[must_use]
    pub fn with_ages(self, ages: Ages) -> Self {
        Self { keys: self.keys.with_ages(ages), ..self }
    }

    /// The issuer's keys.
    #[must_use]
    pub fn keys(&self) -> &Keys<F> {
        &self.keys
    }

    /// The claims of a token that is the issuer's and good at `now`, with the leeway that `auth_time` has.
    ///
    /// # Errors
    ///
    /// Why it is not believed.
    pub async fn verify(&self, token: &str, now: Timestamp) -> Result<Map<String, Value>, Rejected> {
        if token.len() > LONGEST {
            return Err(Rejected::Malformed);
        }
        let header = decode_header(token).map_err(|_| Rejected::Malformed)?;
        if header.typ.is_some_and(|typ| !ACCESS_TOKEN.iter().any(|known| typ.eq_ignore_ascii_case(known))) {
            return Err(Rejected::Audience);
        }
        if !self.issuer.algorithms.contains(&header.alg) {
            return Err(Rejected::Algorithm);
        }
        let key = self.keys.find(header.kid.as_deref()).await?.ok_or(Rejected::UnknownKey)?;
        if !key.may_sign(header.alg) {
            return Err(Rejected::Algorithm);
        }
        let mut signature_alone = Validation::new(header.alg);
        (signature_alone.validate_exp, signature_alone.validate_aud) = (false, false);
        signature_alone.required_spec_claims.clear();
        let claims = decode::<Map<String, Value>>(token, key.decoding(), &signature_alone);
        let claims = claims.map_err(|_| Rejected::Signature)?.claims;
        self.issuer.accepts(&claims, now)?;
        Ok(claims)
    }
}

impl Issuer {
    fn accepts(&self, claims: &Map<String, Value>, now: Timestamp) -> Result<(), Rejected> {
        let text = |name: &str| claims.get(name).and_then(Value::as_str);
        if text("iss") != Some(&self.url) {
            return Err(Rejected::Issuer);
        }
        let is_ours = |audience: &str| self.audiences.iter().any(|ours| ours == audience);
        let for_us = match claims.get("aud") {
            Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).any(is_ours),
            Some(one) => one.as_str().is_some_and(is_ours),
            None => text("client_id").is_some_and(is_ours),
        };
        // Cognito signs identity tokens with the same keys; they are for the client, and no API's.
        if !for_us || claims.get("token_use").is_some_and(|token_use| token_use != "access") {
            return Err(Rejected::Audience);
        }
        let instant = |name: &str| claims.get(name).map(crate::auth_time::read);
        if instant("exp").flatten().is_none_or(|expires| expires + LEEWAY <= now) {
            return Err(Rejected::Expired);
        }
        match instant("nbf") {
            Some(not_before) if not_before.is_none_or(|not_before| not_before > now + LEEWAY) => Err(Rejected::NotYet),
            _ => Ok(()),
        }
    }
}
