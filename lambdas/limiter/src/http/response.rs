//! The response to an HTTP event.
//!
//! Invariant: it has every field that any of the senders needs: `isBase64Encoded` and headers as text for format 1.0,
//! lists of headers for a load balancer that asks for them; all take `statusCode`, `headers` and `body`.

use super::event::Event;
use serde_json::{Map, Value, json};

/// A status, headers and a JSON body.
#[derive(Debug, Clone, PartialEq)]
pub struct Response {
    status: u16,
    headers: Vec<(&'static str, &'static str)>,
    body: Value,
}

impl Response {
    /// A response with a JSON body. Decisions are of their moment, so nobody may keep it.
    #[must_use]
    pub fn new(status: u16, body: Value) -> Self {
        Self { status, headers: vec![("content-type", "application/json"), ("cache-control", "no-store")], body }
    }

    /// An error, as [`tollgate::decisions`] words them.
    #[must_use]
    pub fn error(status: u16, error: &str, message: &str) -> Self {
        Self::new(status, json!({ "error": error, "message": message }))
    }

    /// Adds a header.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.push((name, value));
        self
    }

    /// As the sender of `event` takes it.
    #[must_use]
    pub fn for_event(self, event: &Event<'_>) -> Value {
        let multiple = event.wants_multi_value_headers();
        let value = |value: &str| if multiple { json!([value]) } else { json!(value) };
        let headers: Map<String, Value> = self.headers.iter().map(|(n, v)| ((*n).to_owned(), value(v))).collect();
        json!({
            "statusCode": self.status,
            (if multiple { "multiValueHeaders" } else { "headers" }): headers,
            "body": self.body.to_string(),
            "isBase64Encoded": false,
        })
    }
}
