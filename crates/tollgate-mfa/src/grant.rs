//! A grant: an authentication that is good for one action, once.
//!
//! Invariant: what an action is, is told by a hash over everything that makes it up, each behind its length, so that no two actions
//! have one; of a grant's id the table has only a hash, so that nobody who reads it can use one.

use crate::error::{Error, Result};
use crate::record::Verified;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use std::fmt;
use std::str::FromStr;

/// What is hashed beside an action; nothing else is under that name.
const ACTION: &[u8] = b"action 1";

/// One action: the hash of method, path, query and some fields of the body. As text 43 characters of base64url.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Action([u8; 32]);

impl Action {
    /// The action of a request. `query` are its decoded names and values, in any order; `fields` those of the body that count, with
    /// their values, in the order of the policy.
    #[must_use]
    pub fn new(method: &str, path: &str, mut query: Vec<(String, String)>, fields: &[(&str, String)]) -> Self {
        // Gateways hand parameters on in an order of their own.
        query.sort();
        let mut hash = Sha256::new();
        let mut part = |part: &[u8]| {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        };
        part(ACTION);
        part(method.as_bytes());
        part(path.as_bytes());
        part(&(query.len() as u64).to_be_bytes());
        for (name, value) in &query {
            part(name.as_bytes());
            part(value.as_bytes());
        }
        for (name, value) in fields {
            part(name.as_bytes());
            part(value.as_bytes());
        }
        Self(hash.finalize().into())
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl FromStr for Action {
    type Err = NotOne;

    fn from_str(text: &str) -> std::result::Result<Self, NotOne> {
        decode(text).map(Self)
    }
}

/// The text is not what it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is not the text of an action or a grant")]
pub struct NotOne;

/// What a client sends to use a grant: 256 random bits, as text 43 characters of base64url. It is a secret.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct GrantId([u8; 32]);

impl GrantId {
    /// A new one.
    ///
    /// # Errors
    ///
    /// [`Error::NoRandomness`] if the system has none.
    pub fn random() -> Result<Self> {
        let mut bytes = [0; 32];
        getrandom::getrandom(&mut bytes).map_err(|error| Error::NoRandomness(error.to_string()))?;
        Ok(Self(bytes))
    }

    /// What the table knows it by.
    #[must_use]
    pub fn stored(&self) -> String {
        hashed(&self.0)
    }
}

impl fmt::Display for GrantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(self.0))
    }
}

/// Without the secret.
impl fmt::Debug for GrantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GrantId(..)")
    }
}

impl FromStr for GrantId {
    type Err = NotOne;

    fn from_str(text: &str) -> std::result::Result<Self, NotOne> {
        decode(text).map(Self)
    }
}

/// What a grant is for, and what it rests on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Grant {
    /// The action.
    pub action: Action,
    /// The session that it was given to.
    pub session: Option<String>,
    /// The authentication.
    pub verified: Verified,
}

/// SHA-256 in base64url.
pub(crate) fn hashed(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(bytes))
}

fn decode(text: &str) -> std::result::Result<[u8; 32], NotOne> {
    // What is longer is not decoded, since a stranger has sent it.
    let decoded = (text.len() == 43).then(|| URL_SAFE_NO_PAD.decode(text).ok()).flatten();
    decoded.and_then(|bytes| bytes.try_into().ok()).ok_or(NotOne)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn an_action_is_all_of_its_parts() {
        let action = |method, path, query: &[(&str, &str)], fields: &[(&str, &str)]| {
            let fields: Vec<_> = fields.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
            Action::new(method, path, pairs(query), &fields)
        };
        let all = [
            action("PUT", "/a", &[], &[("iban", "RO1")]),
            action("POST", "/a", &[], &[("iban", "RO1")]),
            action("PUT", "/ai", &[], &[("ban", "RO1")]),
            action("PUT", "/a", &[("iban", "RO1")], &[]),
            action("PUT", "/a", &[], &[("iban", "RO2")]),
            action("PUT", "/a", &[], &[("iban", "RO1"), ("x", "")]),
            action("PUT", "/a", &[("x", "")], &[("iban", "RO1")]),
            action("PUT", "/a", &[], &[]),
            action("PUT", "/a", &[], &[("iba", "nRO1")]),
        ];
        for (i, one) in all.iter().enumerate() {
            assert!(all.iter().skip(i + 1).all(|other| other != one), "{i}");
        }
        assert_eq!(
            action("GET", "/a", &[("a", "1"), ("b", "2")], &[]),
            action("GET", "/a", &[("b", "2"), ("a", "1")], &[])
        );
    }

    #[test]
    fn what_is_written_is_read_back_and_nothing_else() {
        let (id, action) = (GrantId::random().unwrap(), Action::new("GET", "/", Vec::new(), &[]));
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!(action.to_string().parse(), Ok(action));
        for wrong in ["", "AAAA", &id.to_string()[1..], &format!("{id}A"), &"é".repeat(43), &"/".repeat(43)] {
            assert_eq!(wrong.parse::<GrantId>(), Err(NotOne), "{wrong}");
        }
        assert!(format!("{id:?}") == "GrantId(..)" && id.stored() != id.to_string());
    }
}
