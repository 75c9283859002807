//! What is said, and with which status.
//!
//! Invariant: no answer can be kept by a cache; none has a secret in it but the two that show one to its owner, once.

use crate::tenant::{names, seconds};
use crate::verify::Proof;
use lambda_http::http::StatusCode;
use lambda_http::{Body, Response};
use serde_json::json;
use std::time::Duration;
use tollgate::Timestamp;
use tollgate::http::reply;
use tollgate::mfa::GrantId;
use tollgate_mfa::factors::totp::Setup;
use tollgate_mfa::factors::{RecoveryCode, Standing, Verification};
use tollgate_mfa::tenant::{Proves, Refused};

/// 200: what an app is set up by.
pub(crate) fn setup(setup: &Setup) -> Response<Body> {
    reply::json(StatusCode::OK, &json!({ "otpauth_uri": setup.uri.as_str(), "qr_svg": setup.qr_svg.as_str() }))
}

/// 200: recovery codes, which nobody can be shown again.
pub(crate) fn codes(codes: &[RecoveryCode]) -> Response<Body> {
    let codes: Vec<_> = codes.iter().map(|code| code.shown().to_string()).collect();
    reply::json(StatusCode::OK, &json!({ "codes": codes }))
}

/// 200: a code was right; with a grant, it lets one action be done once. Where it proves no more than that factors can be enrolled, what
/// the account lacks is told.
pub(crate) fn verified(grant: Option<GrantId>, proof: &Proof) -> Response<Body> {
    let mut body = json!({ "verified": true });
    if let Some(grant) = grant {
        body["grant"] = grant.to_string().into();
    }
    if proof.proves == Proves::Enrolment {
        body["enrol_only"] = true.into();
        body["missing"] = names(&proof.missing);
    }
    if let Standing::Enrols(until) | Standing::Cooling(until) = proof.standing {
        body["cooldown_until"] = seconds(until).into();
    }
    reply::json(StatusCode::OK, &body)
}

/// 403: a factor that proves nothing, however right its code is.
pub(crate) fn not_accepted(refused: Refused) -> Response<Body> {
    let (error, message) = match refused {
        Refused::SameFactor => ("not_a_second_factor", "this may be what was signed in by; use another factor"),
        _ => ("factor_not_allowed", "this kind of factor is not allowed; use another one"),
    };
    reply::error(StatusCode::FORBIDDEN, error, message)
}

/// 403: a factor that was added of late. When it proves something is told, and nothing of its code.
pub(crate) fn cooling(until: Timestamp) -> Response<Body> {
    let message = "this factor was added of late; until its cooldown is over use one that was there before";
    let body = json!({ "error": "cooldown", "message": message, "until": seconds(until) });
    reply::json(StatusCode::FORBIDDEN, &body)
}

/// 429: each change is told by messages.
pub(crate) fn too_many_changes(wait: Duration) -> Response<Body> {
    let message = "too many changes of factors can still be cancelled; wait until some of them are over";
    reply::later(StatusCode::TOO_MANY_REQUESTS, "too_many_changes", message, wait)
}

/// 404.
pub(crate) fn no_tenant() -> Response<Body> {
    reply::error(StatusCode::NOT_FOUND, "no_tenant", "whoever asks is in no tenant")
}

/// 412: what was to be changed is not what was seen.
pub(crate) fn changed_meanwhile() -> Response<Body> {
    let message = "the rules were changed meanwhile; look at them and put yours again";
    reply::error(StatusCode::PRECONDITION_FAILED, "version_changed", message)
}

/// 400, with the field.
pub(crate) fn bad_field(field: &str, why: &str) -> Response<Body> {
    let body = json!({ "error": "bad_request", "field": field, "message": format!("`{field}` {why}") });
    reply::json(StatusCode::BAD_REQUEST, &body)
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
        Verification::TooManyChanges { retry_after } => too_many_changes(retry_after),
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
