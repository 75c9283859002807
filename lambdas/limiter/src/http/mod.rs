//! HTTP events: which kind, who signed it, what it asks for, and the response.
//!
//! Invariant: an event reaches a decision only if AWS says in it that the request was signed by an IAM identity
//! ([`authorisation`]). That is checked before anything else of the request is looked at, so that a stranger learns
//! nothing but that.

pub mod authorisation;
pub mod event;
pub mod response;

pub use event::Event;
pub use response::Response;

use crate::handler::LARGEST_BODY;
use base64::prelude::{BASE64_STANDARD, Engine};
use std::sync::Once;

const METHOD: &str = "POST";
const PATH: &str = "/v1/decisions";

/// The body of a request that may be decided.
///
/// # Errors
///
/// The response that says why it may not: 403, 404, 405, 413, or 400 for a body that is not what it says it is.
pub fn admit(event: &Event<'_>) -> Result<Vec<u8>, Response> {
    if let Err(why) = authorisation::check(event) {
        // Once a process: strangers must not be able to fill the log.
        static TOLD: Once = Once::new();
        TOLD.call_once(|| tracing::warn!(%why, kind = ?event.kind(), "refusing HTTP events without IAM authorisation"));
        return Err(Response::error(403, "forbidden", &why.to_string()));
    }
    if event.path() != PATH {
        return Err(Response::error(404, "not_found", "this function serves POST /v1/decisions"));
    }
    if event.method() != METHOD {
        let refusal = Response::error(405, "method_not_allowed", "write POST /v1/decisions");
        return Err(refusal.with_header("allow", METHOD));
    }
    body(event)
}

fn body(event: &Event<'_>) -> Result<Vec<u8>, Response> {
    let text = event.body().map_err(|what| Response::error(400, "bad_request", what))?;
    if !event.is_base64() {
        return if text.len() > LARGEST_BODY { Err(too_large()) } else { Ok(text.as_bytes().to_vec()) };
    }
    // Judged before decoding: four characters are at least two bytes and at most three.
    if text.len() > LARGEST_BODY.div_ceil(3) * 4 {
        return Err(too_large());
    }
    let bytes = BASE64_STANDARD.decode(text);
    let bytes = bytes.map_err(|e| Response::error(400, "bad_request", &format!("the body is not base64: {e}")))?;
    if bytes.len() > LARGEST_BODY { Err(too_large()) } else { Ok(bytes) }
}

fn too_large() -> Response {
    Response::error(413, "payload_too_large", &format!("the body may have at most {LARGEST_BODY} bytes"))
}
