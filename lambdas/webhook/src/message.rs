//! What is queued: the body as it was sent, and by what the queue tells that it has it already.
//!
//! Invariant: two deliveries of one event are one message, wherever the sender's JSON differs; SQS takes every message that is made here.

use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// Why a body cannot be queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// It is no JSON object.
    #[error("the body is no JSON object")]
    Json,
    /// A message of SQS cannot have it (API reference, `SendMessage`).
    #[error("the body has a character that no XML can have")]
    Character,
}

/// A body, and its identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message<'b> {
    /// The body, byte by byte.
    pub body: &'b str,
    /// A hash of the event's `id`, or of the body if it has none: 64 hexadecimal digits, since ids are the sender's and SQS takes only some
    /// characters.
    pub identity: String,
}

#[derive(Deserialize)]
struct Event {
    #[serde(default)]
    id: Option<serde_json::Value>,
}

impl<'b> Message<'b> {
    /// The message of a body whose signature is right.
    ///
    /// # Errors
    ///
    /// See [`Unfit`].
    pub fn of(body: &'b [u8]) -> Result<Self, Unfit> {
        let text = std::str::from_utf8(body).map_err(|_| Unfit::Json)?;
        if !text.trim_start().starts_with('{') {
            return Err(Unfit::Json);
        }
        let event: Event = serde_json::from_str(text).map_err(|_| Unfit::Json)?;
        if text.contains(['\u{fffe}', '\u{ffff}']) {
            return Err(Unfit::Character);
        }
        let id = event.id.as_ref().and_then(serde_json::Value::as_str).filter(|id| !id.is_empty());
        // An id is no body, even if somebody sends one that looks like it.
        let hash = match id {
            Some(id) => Sha256::new().chain_update(b"id\0").chain_update(id),
            None => Sha256::new().chain_update(b"body\0").chain_update(body),
        };
        let identity = hash.finalize().iter().fold(String::new(), |mut digits, byte| {
            let _ = write!(digits, "{byte:02x}");
            digits
        });
        Ok(Self { body: text, identity })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn deliveries_of_one_event_have_one_identity() {
        let identity = |body: &str| Message::of(body.as_bytes()).unwrap().identity;
        assert_eq!(identity(r#"{"id":"evt_1"}"#), identity(r#" {"pending":2,"id":"evt_1"} "#));
        assert_ne!(identity(r#"{"id":"evt_1"}"#), identity(r#"{"id":"evt_2"}"#));
        for without in [r#"{}"#, r#"{"id":""}"#, r#"{"id":7}"#, r#"{"id":null}"#] {
            assert_eq!(identity(without), identity(without));
            assert_ne!(identity(without), identity(&format!("{without} ")), "{without}");
        }
        assert_eq!(identity("{}").len(), 64);
    }

    #[test]
    fn what_is_no_object_or_no_message_is_refused() {
        for body in [&b""[..], b"[]", b"{", b"1", br#"["id"]"#, b"{\"a\":\"\xff\"}", b"{\"a\":\"\x01\"}"] {
            assert_eq!(Message::of(body), Err(Unfit::Json), "{body:?}");
        }
        assert_eq!(Message::of("{\"a\":\"\u{ffff}\"}".as_bytes()), Err(Unfit::Character));
    }
}
