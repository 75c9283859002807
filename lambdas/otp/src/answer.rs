//! What is said, and with which status.
//!
//! Invariant: no answer can be kept by a cache, and none has a code, a number or an account in it.

use lambda_http::http::StatusCode;
use lambda_http::{Body, Error, Response};
use serde_json::json;
use std::time::Duration;
use tollgate::http::{reply, retry_after};
use tollgate::mfa::GrantId;
use tollgate::tollgate_policy;
use tollgate_mfa::tenant::Refused;
use tollgate_otp::{Denied, Issued, Verification};

/// An answer.
pub(crate) type Answer = Result<Response<Body>, Error>;

/// 202: a message is on its way, if there is anywhere to send it.
pub(crate) fn sent(issued: &Issued) -> Answer {
    let (expires_in, resend_after) = (issued.expires_in.as_secs(), retry_after(issued.resend_after));
    let challenge = issued.challenge.to_string();
    let body = json!({ "challenge": challenge, "expires_in": expires_in, "resend_after": resend_after });
    Ok(reply::json(StatusCode::ACCEPTED, &body))
}

/// 429: no code is sent now.
pub(crate) fn denied(denied: Denied) -> Answer {
    match denied {
        Denied::Locked { retry_after } => locked(retry_after),
        Denied::TooSoon { retry_after } => {
            let message = "a code was sent a moment ago; wait for it, or ask again later";
            Ok(reply::later(StatusCode::TOO_MANY_REQUESTS, "cooldown", message, retry_after))
        }
        _ => unavailable(),
    }
}

/// What became of a code.
pub(crate) fn verified(verification: Verification) -> Answer {
    match verification {
        Verification::Verified => Ok(reply::json(StatusCode::OK, &json!({ "verified": true }))),
        Verification::WrongCode { attempts_left } => {
            let message = "this is not the code that was sent";
            let body = json!({ "error": "wrong_code", "message": message, "attempts_left": attempts_left });
            Ok(reply::json(StatusCode::UNAUTHORIZED, &body))
        }
        Verification::NoActive => no_active(),
        Verification::Locked { retry_after } => locked(retry_after),
        _ => unavailable(),
    }
}

/// 200: the code was right, and this lets the action be done once.
pub(crate) fn granted(grant: GrantId) -> Answer {
    Ok(reply::json(StatusCode::OK, &json!({ "verified": true, "grant": grant.to_string() })))
}

/// 503: nobody knows what a right code would prove, or whether that was remembered.
pub(crate) fn unknown(error: &tollgate::mfa::Error) -> Answer {
    tracing::warn!(%error, "no code is verified, or nobody remembers that one was");
    unavailable()
}

/// 403: a code that is no second factor, however right it is.
pub(crate) fn not_accepted(refused: Refused) -> Answer {
    let (error, message) = match refused {
        Refused::Stronger(kind) => {
            ("use_stronger_factor", format!("the account has a stronger factor ({kind}); use that"))
        }
        Refused::SameFactor => {
            ("not_a_second_factor", "such a code may be what was signed in by; use another factor".to_owned())
        }
        _ => ("factor_not_allowed", "such codes are not allowed; use another factor".to_owned()),
    };
    Ok(reply::error(StatusCode::FORBIDDEN, error, &message))
}

/// 403: nothing is sent to who has not shown that he is human.
pub(crate) fn captcha_required() -> Answer {
    let message = "solve a CAPTCHA, and send what it gives you as `captcha`";
    Ok(reply::error(StatusCode::FORBIDDEN, "captcha_required", message))
}

/// 429: nothing is sent to such numbers for now.
pub(crate) fn blocked(rest: Duration) -> Answer {
    let message = "no codes are sent to this number at the moment; use another factor, or ask again later";
    Ok(reply::later(StatusCode::TOO_MANY_REQUESTS, "sending_paused", message, rest))
}

/// 410: there is no such code.
pub(crate) fn no_active() -> Answer {
    let message = "there is no such code: it was used, has expired, or another one was sent";
    Ok(reply::error(StatusCode::GONE, "no_active_otp", message))
}

fn locked(rest: Duration) -> Answer {
    let message = "too many wrong codes; ask for another one later";
    Ok(reply::later(StatusCode::TOO_MANY_REQUESTS, "locked", message, rest))
}

/// What is said where there is no answer.
pub(crate) fn failed(error: &tollgate_otp::Error) -> Answer {
    if error.is_bad_input() {
        return bad_request(&error.to_string());
    }
    if matches!(error, tollgate_otp::Error::Policy(tollgate_policy::Error::NoOtp)) {
        return nothing_here();
    }
    tracing::warn!(%error, "no code is sent or verified");
    unavailable()
}

/// 503: nothing says that the code was wrong, or that anybody is limited.
pub(crate) fn unavailable() -> Answer {
    let message = "codes cannot be sent or verified at the moment; try again shortly";
    Ok(reply::later(StatusCode::SERVICE_UNAVAILABLE, "otp_unavailable", message, Duration::ZERO))
}

/// 400.
pub(crate) fn bad_request(message: &str) -> Answer {
    Ok(reply::error(StatusCode::BAD_REQUEST, "bad_request", message))
}

/// 401: who asks has not passed the first factor.
pub(crate) fn unauthenticated() -> Answer {
    Ok(reply::unauthenticated())
}

/// What a browser asks before it sends a request from another origin.
pub(crate) fn preflight() -> Answer {
    Ok(reply::preflight("POST"))
}

/// 405.
pub(crate) fn other_method() -> Answer {
    Ok(reply::other_method("POST"))
}

/// 404.
pub(crate) fn nothing_here() -> Answer {
    Ok(reply::nothing_here())
}
