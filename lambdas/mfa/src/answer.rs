//! What is said, and with which status.
//!
//! Invariant: no answer can be kept by a cache; none has a secret in it but the two that show one to its owner, once.

use lambda_http::http::StatusCode;
use lambda_http::{Body, Response};
use serde_json::json;
use std::time::Duration;
use tollgate::http::reply;
use tollgate::mfa::GrantId;
use tollgate_mfa::factors::totp::Setup;
use tollgate_mfa::factors::{RecoveryCode, Verification};

/// 200: what an app is set up by.
pub(crate) fn setup(setup: &Setup) -> Response<Body> {
    reply::json(StatusCode::OK, &json!({ "otpauth_uri": setup.uri.as_str(), "qr_svg": setup.qr_svg.as_str() }))
}

/// 200: recovery codes, which nobody can be shown again.
pub(crate) fn codes(codes: &[RecoveryCode]) -> Response<Body> {
    let codes: Vec<_> = codes.iter().map(|code| code.shown().to_string()).collect();
    reply::json(StatusCode::OK, &json!({ "codes": codes }))
}

/// 200: a code was right; with a grant, it lets one action be done once.
pub(crate) fn verified(grant: Option<GrantId>) -> Response<Body> {
    match grant {
        None => reply::json(StatusCode::OK, &json!({ "verified": true })),
        Some(grant) => reply::json(StatusCode::OK, &json!({ "verified": true, "grant": grant.to_string() })),
    }
}

/// What became of a code that was not right.
pub(crate) fn refused(verification: Verification) -> Response<Body> {
    match verification {
        Verification::WrongCode { left, retry_after } => {
            let message = "this is not a code that is good now";
            let mut body = json!({ "error": "wrong_code", "message": message, "attempts_left": left });
            if let Some(wait) = retry_after {
                body["retryAfter"] = tollgate::http::retry_after(wait).into();
            }
            reply::json(StatusCode::UNAUTHORIZED, &body)
        }
        Verification::Locked { retry_after: Some(wait) } => {
            let message = "too many wrong codes in a row; try again later";
            reply::later(StatusCode::TOO_MANY_REQUESTS, "locked", message, wait)
        }
        // 429 would ask to come back, and waiting does not help.
        Verification::Locked { retry_after: None } => {
            let message = "too many wrong codes in a row; use another factor and set this one up anew";
            reply::error(StatusCode::FORBIDDEN, "locked", message)
        }
        Verification::NotEnrolled => reply::error(
            StatusCode::CONFLICT,
            "not_enrolled",
            "there is no such factor, or none that waits to be confirmed",
        ),
        _ => unavailable(),
    }
}

/// 409.
pub(crate) fn conflict(error: &str, message: &str) -> Response<Body> {
    reply::error(StatusCode::CONFLICT, error, message)
}

/// 400.
pub(crate) fn bad_request(message: &str) -> Response<Body> {
    reply::error(StatusCode::BAD_REQUEST, "bad_request", message)
}

/// What is said where there is no answer.
pub(crate) fn failed(error: &tollgate_mfa::Error) -> Response<Body> {
    if let tollgate_mfa::Error::Unspeakable(_) = error {
        return bad_request("the account's name is too long for an authenticator app");
    }
    tracing::warn!(%error, "nothing is proved or changed, or nobody knows");
    unavailable()
}

/// 503: nothing says that a code was wrong, or that anybody is limited.
pub(crate) fn unavailable() -> Response<Body> {
    let message = "factors cannot be verified or changed at the moment; try again shortly";
    reply::later(StatusCode::SERVICE_UNAVAILABLE, "mfa_unavailable", message, Duration::ZERO)
}
