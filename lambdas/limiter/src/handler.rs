//! From an event to its answer.
//!
//! Invariant: every event is answered in its own shape: an HTTP event with a response, a direct one with the decision
//! or a function error.

use crate::failure::Failure;
use crate::http::{self, Event, Response};
use serde_json::Value;
use tollgate::decisions::{self, Reply};
use tollgate::{Limiter, Policy, Store};
use tracing::Instrument;

/// The largest body that is read, in bytes after decoding. A decision's JSON has a few hundred.
pub const LARGEST_BODY: usize = 64 * 1024;

/// Answers `event`, the JSON text of an invocation.
///
/// # Errors
///
/// [`Failure`], to direct callers only: what they asked for is no decision, or it cannot be made.
pub async fn answer<S: Store>(policy: &Policy, limiter: &Limiter<S>, event: &str) -> Result<Value, Failure> {
    // Text that does not parse here (nested too deeply) cannot be an HTTP event: those are written by AWS, and a
    // client's part in them is strings.
    match serde_json::from_str::<Value>(event).ok().as_ref().and_then(Event::recognise) {
        Some(event) => Ok(respond(policy, limiter, &event).await.for_event(&event)),
        None => decide(policy, limiter, event).await,
    }
}

async fn decide<S: Store>(policy: &Policy, limiter: &Limiter<S>, event: &str) -> Result<Value, Failure> {
    if event.len() > LARGEST_BODY {
        return Err(Failure::BadRequest(format!(
            "the event has {} bytes; at most {LARGEST_BODY} are read",
            event.len()
        )));
    }
    let reply = decisions::decide(policy, limiter, event.as_bytes()).await;
    if reply.status == 200 { Ok(reply.body) } else { Err(reply.into()) }
}

async fn respond<S: Store>(policy: &Policy, limiter: &Limiter<S>, event: &Event<'_>) -> Response {
    let body = match http::admit(event) {
        Ok(body) => body,
        Err(refusal) => return refusal,
    };
    let id = event.context("requestId").and_then(Value::as_str);
    let span = tracing::info_span!(target: "tollgate::limiter", "request", apiRequestId = id);
    let Reply { status, body } = decisions::decide(policy, limiter, &body).instrument(span).await;
    let response = Response::new(status, body);
    // When the table will answer again is not known; a whole second is the least that the header can say.
    if status == 503 { response.with_header("retry-after", "1") } else { response }
}
