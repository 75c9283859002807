//! `POST /api/auth/login`: a username and a password, and the cookie of a known device for whoever has both right.
//!
//! Invariant: the account that is tried is the one that was counted: both are read from the body by the same code. A wrong
//! password and an unknown account get the same answer.

use crate::passwords::Passwords;
use crate::respond;
use lambda_http::http::{HeaderValue, StatusCode, header};
use lambda_http::{Body, Error, Request, Response};
use serde_json::json;
use std::sync::atomic::{AtomicU64, Ordering};
use tollgate::http::body_field;
use tollgate::tollgate_policy::Source;
use tollgate::{Decision, Policy, Timestamp};

/// The dimension that is signed in to, and the one by which a device is known.
const ACCOUNT: &str = "account";
const DEVICE: &str = "device";

/// The passwords, and how many were tried.
#[derive(Debug)]
pub(crate) struct Login {
    passwords: Box<dyn Passwords>,
    tried: AtomicU64,
}

impl Login {
    pub(crate) fn new(passwords: Box<dyn Passwords>) -> Self {
        Self { passwords, tried: AtomicU64::new(0) }
    }

    /// Passwords that were compared, right or wrong.
    pub(crate) fn tried(&self) -> u64 {
        self.tried.load(Ordering::Relaxed)
    }

    pub(crate) fn answer(&self, request: &Request, policy: &Policy, now: Timestamp) -> Result<Response<Body>, Error> {
        let field = |name| body_field(request.body(), request.headers(), name);
        // A name of which nothing counts was counted as none.
        let account =
            field("username").filter(|name| matches!(policy.value(ACCOUNT, |_| Some(name.clone())), Ok(Some(_))));
        let (Some(account), Some(password)) = (account, field("password")) else {
            let shape = r#"write {"username":"a@x.org","password":"..."}"#;
            return respond(StatusCode::BAD_REQUEST, &json!({ "error": "bad_request", "message": shape }));
        };
        self.tried.fetch_add(1, Ordering::Relaxed);
        if !self.passwords.is_right(&account, &password) {
            let message = "this is not the password of such an account";
            return respond(StatusCode::UNAUTHORIZED, &json!({ "error": "wrong_credentials", "message": message }));
        }
        let mut response = respond(StatusCode::OK, &json!({ "authenticated": true }))?;
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        // Whoever has come by a known device keeps its token: each has its own tries, and a new one for each login would give as many
        // as one likes.
        let is_known = request.extensions().get::<Decision>().is_some_and(by_device);
        if !is_known && matches!(policy.identity().source(DEVICE), Some(Source::Device(_))) {
            match policy.device_cookie(DEVICE, &account, now) {
                Ok(cookie) => drop(headers.append(header::SET_COOKIE, cookie.set_cookie().parse()?)),
                // Whoever has the right password is in; the device stays a stranger.
                Err(error) => tracing::warn!(%error, "no cookie for a known device"),
            }
        }
        Ok(response)
    }
}

/// Whether the call was counted by a known device.
fn by_device(decision: &Decision) -> bool {
    decision.limits.iter().any(|limit| limit.key.dimensions().any(|(name, _)| name == DEVICE))
}
