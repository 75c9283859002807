//! What handlers of our own answer: JSON that no cache keeps.
//!
//! Invariant: a time to come back after is told alike in the header field and in the body, in whole seconds that are not too early.

use crate::wait;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::{Value, json};
use std::time::Duration;

/// A body as JSON.
#[must_use]
pub fn json<B: From<String>>(status: StatusCode, body: &Value) -> Response<B> {
    let mut response = Response::new(B::from(body.to_string()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// What is wrong, as a word and as a sentence.
#[must_use]
pub fn error<B: From<String>>(status: StatusCode, error: &str, message: &str) -> Response<B> {
    json(status, &json!({ "error": error, "message": message }))
}

/// The same, with the time to come back after (RFC 9110 section 10.2.3: at least a second).
#[must_use]
pub fn later<B: From<String>>(status: StatusCode, error: &str, message: &str, after: Duration) -> Response<B> {
    let seconds = wait::retry_after(after);
    let mut response = json(status, &json!({ "error": error, "message": message, "retryAfter": seconds }));
    response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    response
}

/// 401: nobody vouches for who asks (RFC 6750 section 3: no error code where no token was given).
#[must_use]
pub fn unauthenticated<B: From<String>>() -> Response<B> {
    let mut response = error(StatusCode::UNAUTHORIZED, "unauthenticated", "sign in first");
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

/// 204: what a browser asks before it sends a request from another origin.
#[must_use]
pub fn preflight<B: From<String>>(allow: &'static str) -> Response<B> {
    let mut response = Response::new(B::from(String::new()));
    *response.status_mut() = StatusCode::NO_CONTENT;
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allow));
    response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(allow));
    response
}

/// 405.
#[must_use]
pub fn other_method<B: From<String>>(allow: &'static str) -> Response<B> {
    let message = format!("this path takes {allow}");
    let mut response = error(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", &message);
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allow));
    response
}

/// 404.
#[must_use]
pub fn nothing_here<B: From<String>>() -> Response<B> {
    error(StatusCode::NOT_FOUND, "not_found", "there is nothing here")
}
