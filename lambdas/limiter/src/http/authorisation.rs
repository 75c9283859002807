//! Who signed a request: the function decides for IAM identities only.
//!
//! A decision charges whichever key it is asked about, so an open limiter is a way to lock others out. Invariant: only
//! what AWS itself wrote into `requestContext` counts, in the field of that kind of event; what a client or a custom
//! authorizer can choose is not looked at.

use super::event::{Event, Kind};
use serde_json::Value;

/// Why a request is not authorised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// Nobody checked a signature.
    #[error(
        "this function answers requests signed by an IAM identity only; set AWS_IAM authorisation on the route or \
         function URL and sign the request (SigV4)"
    )]
    NotSigned,
    /// The sender cannot check one.
    #[error(
        "a load balancer cannot authorise by IAM; put an API with AWS_IAM authorisation or a function URL before this \
         function, or invoke it directly"
    )]
    LoadBalancer,
}

/// Checks that AWS has verified an IAM signature.
///
/// # Errors
///
/// Why it is not so.
pub fn check(event: &Event<'_>) -> Result<(), Refusal> {
    let identity = match event.kind() {
        Kind::Version1 => event.context("identity"),
        Kind::Version2 => event.context("authorizer").and_then(|authorizer| authorizer.get("iam")),
        Kind::LoadBalancer => return Err(Refusal::LoadBalancer),
        Kind::Unknown => None,
    };
    // Null, or absent, where the route has no or another authorisation.
    let has = |name: &str| identity.and_then(|i| i.get(name)).and_then(Value::as_str).is_some_and(|s| !s.is_empty());
    if has("userArn") || has("accessKey") { Ok(()) } else { Err(Refusal::NotSigned) }
}
