//! Passkeys (WebAuthn Level 3): one item each, beside the account's, which names those that count.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`challenge`] | what an authenticator is asked to sign, and whose answer counts |
//! | [`relying_party`] | what authenticators say: asked for, parsed, verified |
//! | `storage` | the writes as DynamoDB expressions, items as attributes |
//! | `driver` | drives them against the table: the methods of [`Factors`](super::Factors) on passkeys |
//!
//! Invariants: the counter of a passkey never goes back; one that the account's item does not name proves nothing.

pub mod challenge;
mod driver;
pub mod relying_party;
#[doc(hidden)]
pub mod storage;

pub use challenge::{Ceremony, Challenge, ChallengeId, Use};
pub use driver::{Asked, Asserted, Registered};
pub use relying_party::{Assertion, Registration, RelyingParty};

use super::account::NoKind;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use std::fmt;
use std::str::FromStr;
use tollgate_core::Timestamp;

/// Passkeys of an account at most.
pub const MOST_PASSKEYS: usize = 10;
/// Bytes of the id that an authenticator gives a credential (WebAuthn section 4, "credential id").
pub const LONGEST_CREDENTIAL: usize = 1023;
/// Characters of a passkey's name.
pub const LONGEST_NAME: usize = 64;

/// What a passkey is known by here: the first half of the SHA-256 of the id that its authenticator has given it, since that may have a
/// kilobyte. As text 22 characters of base64url.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PasskeyId(pub [u8; 16]);

impl PasskeyId {
    /// Of a credential with that id.
    #[must_use]
    pub fn of(credential: &[u8]) -> Self {
        let mut id = [0; 16];
        id.copy_from_slice(&Sha256::digest(credential)[..16]);
        Self(id)
    }
}

impl fmt::Display for PasskeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl FromStr for PasskeyId {
    type Err = NoKind;

    fn from_str(text: &str) -> Result<Self, NoKind> {
        // What is longer is not decoded, since a stranger has sent it.
        let decoded = (text.len() == 22).then(|| URL_SAFE_NO_PAD.decode(text).ok()).flatten();
        decoded.and_then(|bytes| bytes.try_into().ok()).map(Self).ok_or(NoKind)
    }
}

/// A passkey.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Passkey {
    /// The id that its authenticator has given it, 1 to [`LONGEST_CREDENTIAL`] bytes.
    pub credential: Vec<u8>,
    /// Its public key, as [`relying_party`] writes it.
    pub key: String,
    /// Whether its authenticator knew its owner when it was registered; it has to from then on.
    pub is_verified: bool,
    /// How it can be reached (`usb`, `internal`, ...), as it says itself: for a browser that looks for it.
    pub transports: Vec<String>,
    /// What its owner calls it.
    pub name: String,
    /// When it was registered.
    pub since: Timestamp,
    /// When it was used last.
    pub used: Option<Timestamp>,
    /// What it has said last of itself.
    pub state: Signed,
}

/// What an authenticator says of a passkey with each signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Signed {
    /// How often it has signed; zero for authenticators that do not count (those that synchronise).
    pub count: u32,
    /// Whether it can be on several devices.
    pub can_be_backed_up: bool,
    /// Whether it is.
    pub is_backed_up: bool,
}

impl Signed {
    /// Whether it can follow what was said `before`: a counter that does not go up is a sign of a copy (WebAuthn section 7.2, step 22).
    #[must_use]
    pub fn follows(&self, before: &Self) -> bool {
        self.count > before.count || (self.count == 0 && before.count == 0)
    }
}

/// A conditional write of a passkey's item.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PasskeyWrite {
    /// It is registered, unless there is one of that id.
    Add(Passkey),
    /// It has signed at that instant, and what it says [follows](Signed::follows).
    Pass(Signed, Timestamp),
}

impl PasskeyWrite {
    /// The passkey after the write, or `None` if its condition does not hold and nothing is written.
    #[must_use]
    pub fn apply(&self, passkey: Option<&Passkey>) -> Option<Passkey> {
        match (self, passkey) {
            (Self::Add(added), None) => Some(added.clone()),
            (Self::Pass(state, at), Some(passkey)) if state.follows(&passkey.state) => {
                Some(Passkey { state: *state, used: Some(*at), ..passkey.clone() })
            }
            _ => None,
        }
    }
}
