//! One-time codes over HTTP: `POST /api/auth/otp/send` and `POST /api/auth/otp/verify`, for callers whom an authorizer has let in.
//!
//! | module | what it is |
//! | --- | --- |
//! | `caller` | whose code it is: what the authorizer vouches for |
//! | `captcha` | whether a CAPTCHA is needed, and solved |
//! | [`device`] | the device on which somebody has verified a code before |
//! | `send` | a code is made, charged on the route's limits and handed to the courier |
//! | `verify` | a code is counted, compared, used |
//! | `factor` | what a right code proves: a sign-in, or a second factor, by which a session is fresh or one action may be done |
//! | [`suspicion`] | who is asked for a CAPTCHA, or refused, since others have messages sent to numbers like his for money |
//! | `answer` | what is said, and with which status |
//! | [`profiles`] | a directory in a file, for development |
//! | `deployed` | the function with a user pool and a queue, and the one that empties the queue (feature `aws`) |
//!
//! Invariants: whoever has passed no first factor gets 401 before anything is looked up; where a code goes is the directory's
//! alone; an account to which nothing can be sent is answered like any other, by the same writes.

mod answer;
mod caller;
mod captcha;
#[cfg(feature = "aws")]
mod deployed;
pub mod device;
mod factor;
pub mod profiles;
mod send;
pub mod suspicion;
mod verify;

#[cfg(feature = "aws")]
pub use deployed::{courier, main};

use lambda_http::http::Method;
use lambda_http::{Body, Error, Request, Response};
use std::sync::Arc;
use tollgate::http::{Facts, TollgateLayer};
use tollgate::mfa::Sessions;
use tollgate::{Limiter, LivePolicy, Store};
use tollgate_otp::pumping::Guard;
use tollgate_otp::{Captcha, Courier, Directory, Otp};

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
    otp: Arc<Otp>,
    guard: Arc<Guard>,
    directory: D,
    courier: Arc<C>,
    sessions: Option<Arc<Sessions>>,
    captcha: Option<Box<dyn Captcha>>,
}

impl<S: Store + 'static, D: Directory, C: Courier + 'static> Service<S, D, C> {
    /// Codes of `otp` by `policy`, whose routes are charged on `limiter`; `directory` says where they go, and `courier` takes them.
    #[must_use]
    pub fn new(policy: LivePolicy, limiter: Arc<Limiter<S>>, otp: Otp, directory: D, courier: Arc<C>) -> Self {
        let layer = TollgateLayer::new(policy.clone(), Arc::clone(&limiter));
        let (otp, guard) = (Arc::new(otp), Arc::default());
        Self { policy, limiter, layer, otp, guard, directory, courier, sessions: None, captcha: None }
    }

    /// The same, where a right code freshens its session, as far as the policy says so.
    #[must_use]
    pub fn with_sessions(self, sessions: Arc<Sessions>) -> Self {
        Self { sessions: Some(sessions), ..self }
    }

    /// CAPTCHAs are judged by `captcha`. Without a judge nothing is sent where one is needed.
    #[must_use]
    pub fn with_captcha(self, captcha: Box<dyn Captcha>) -> Self {
        Self { captcha: Some(captcha), ..self }
    }

    /// The codes.
    #[must_use]
    pub fn otp(&self) -> &Otp {
        &self.otp
    }

    /// What it knows of who is suspected.
    #[must_use]
    pub fn guard(&self) -> &Guard {
        &self.guard
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
            // Boxed, since the SDK's futures are large.
            (&Method::POST, SEND) => Box::pin(self.send(request)).await,
            (&Method::POST, VERIFY) => Box::pin(self.verify(&request)).await,
            (&Method::OPTIONS, path) if serves(path) => answer::preflight(),
            (_, path) if serves(path) => answer::other_method(),
            _ => answer::nothing_here(),
        }
    }
}
