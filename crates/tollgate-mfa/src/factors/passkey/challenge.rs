//! What an authenticator is asked to sign, and whose answer counts.
//!
//! ```text
//! put      attribute_not_exists                                                           the challenge, for its whole life
//! use      this ceremony, session, epoch and action AND until > now                       deleted
//! compare                                                                                 only by whom the table said so
//! ```
//!
//! Invariants: a challenge is looked at by one of any number of callers who answer it, once the table has said that it is gone; it is good
//! for the account, session, epoch, ceremony and action that it was made for. That of another is not used up by whoever tries.

use crate::grant::{Action, NotOne, hashed};
use std::fmt;
use std::str::FromStr;
use tollgate_core::Timestamp;

/// What a challenge is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ceremony {
    /// A passkey is registered.
    Register {
        /// There was no factor when it began, so that less had to be proved: then there must be none still.
        is_first: bool,
    },
    /// A passkey proves who its owner is.
    Assert,
}

impl Ceremony {
    /// As a word, in the table.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Register { .. } => "register",
            Self::Assert => "assert",
        }
    }
}

/// A challenge, 32 random bytes: what a client sends to say which one it answers, as the options tell it. As text 43 characters of base64url.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ChallengeId(String);

impl ChallengeId {
    /// What the table knows it by.
    #[must_use]
    pub fn stored(&self) -> String {
        hashed(self.0.as_bytes())
    }
}

impl fmt::Display for ChallengeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for ChallengeId {
    type Err = NotOne;

    fn from_str(text: &str) -> Result<Self, NotOne> {
        let is_one = text.len() == 43 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        is_one.then(|| Self(text.to_owned())).ok_or(NotOne)
    }
}

/// What is remembered of a challenge.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Challenge {
    /// What it is for.
    pub ceremony: Ceremony,
    /// The session that it was made in.
    pub session: Option<String>,
    /// The subject's epoch when it was made: a revocation ends it.
    pub epoch: u64,
    /// The one action that it is for.
    pub action: Option<Action>,
    /// When it was made: what is proved by it is at least as old.
    pub at: Timestamp,
    /// Until when it can be answered.
    pub until: Timestamp,
    /// What [`RelyingParty`](super::RelyingParty) needs to verify the answer.
    pub state: String,
}

/// Who answers, and for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Use<'a> {
    /// For what; of a registration it does not matter here whether it was the first.
    pub ceremony: Ceremony,
    /// In which session.
    pub session: Option<&'a str>,
    /// In which epoch.
    pub epoch: u64,
    /// For which action.
    pub action: Option<Action>,
    /// When.
    pub now: Timestamp,
}

impl Use<'_> {
    /// Whether the challenge was made for that.
    #[must_use]
    pub fn fits(&self, challenge: &Challenge) -> bool {
        self.ceremony.as_str() == challenge.ceremony.as_str()
            && self.session == challenge.session.as_deref()
            && self.epoch == challenge.epoch
            && self.action == challenge.action
            && self.now < challenge.until
    }
}
