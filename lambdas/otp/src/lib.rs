//! One-time codes over HTTP: `POST /api/auth/otp/send` and `POST /api/auth/otp/verify`, for callers whom an authorizer has let in.
//!
//! | module | what it is |
//! | --- | --- |
//! | `caller` | whose code it is: what the authorizer vouches for |
//! | `send` | a code is made, charged on the route's limits and handed to the courier |
//! | `verify` | a code is counted, compared, used |
//! | `factor` | what a right code proves: its session is fresh, or one action may be done |
//! | `answer` | what is said, and with which status |
//! | [`profiles`] | a directory in a file, for development |
//!
//! Invariants: whoever has passed no first factor gets 401 before anything is looked up; where a code goes is the directory's
//! alone; an account to which nothing can be sent is answered like any other, by the same writes.

mod answer;
mod caller;
mod factor;
pub mod profiles;
mod send;
mod verify;

use lambda_http::http::Method;
use lambda_http::{Body, Error, Request, Response};
use std::sync::Arc;
use tollgate::http::{Facts, TollgateLayer};
use tollgate::mfa::Sessions;
use tollgate::{Limiter, LivePolicy, Store};
use tollgate_otp::{Courier, Directory, Otp};

const SEND: &str = "/api/auth/otp/send";
const VERIFY: &str = "/api/auth/otp/verify";

/// Whether a path is one that is answered here.
#[must_use]
pub fn serves(path: &str) -> bool {
    matches!(path, SEND | VERIFY)
}

/// The handlers, and what they work with.
#[derive(Debug)]
pub struct Service<S, D, C> {
    policy: LivePolicy,
    limiter: Arc<Limiter<S>>,
    layer: TollgateLayer<S>,
    otp: Otp,
    directory: D,
    courier: Arc<C>,
    sessions: Option<Arc<Sessions>>,
}

impl<S: Store + 'static, D: Directory, C: Courier + 'static> Service<S, D, C> {
    /// Codes of `otp` by `policy`, whose routes are charged on `limiter`; `directory` says where they go, and `courier` takes them.
    #[must_use]
    pub fn new(policy: LivePolicy, limiter: Arc<Limiter<S>>, otp: Otp, directory: D, courier: Arc<C>) -> Self {
        let layer = TollgateLayer::new(policy.clone(), Arc::clone(&limiter));
        Self { policy, limiter, layer, otp, directory, courier, sessions: None }
    }

    /// The same, where a right code freshens its session, as far as the policy says so.
    #[must_use]
    pub fn with_sessions(self, sessions: Arc<Sessions>) -> Self {
        Self { sessions: Some(sessions), ..self }
    }

    /// The codes.
    #[must_use]
    pub fn otp(&self) -> &Otp {
        &self.otp
    }

    /// Answers one request.
    ///
    /// # Errors
    ///
    /// A response that cannot be built.
    pub async fn call(&self, mut request: Request) -> Result<Response<Body>, Error> {
        // Read once, for the layer and for the handlers.
        let facts = Facts::of(request.extensions()).into_owned();
        // The path without the stage that API Gateway puts in front of it.
        let path = facts.path().unwrap_or(request.uri().path()).to_owned();
        request.extensions_mut().insert(facts);
        match (request.method(), path.as_str()) {
            (&Method::POST, SEND) => self.send(request).await,
            (&Method::POST, VERIFY) => self.verify(&request).await,
            (&Method::OPTIONS, path) if serves(path) => answer::preflight(),
            (_, path) if serves(path) => answer::other_method(),
            _ => answer::nothing_here(),
        }
    }
}
