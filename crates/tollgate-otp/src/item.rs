//! What is remembered of an account and a purpose: the last code that was sent, what was tried of it, and what the account may
//! still try and be sent.
//!
//! Invariant: there is one live code at most, the last one. The account's window, guesses and cooldown are beside it, so that a new
//! code leaves them as they are.

use crate::challenge::{ChallengeId, Digest};
use crate::delivery::{Delivery, Receipt};
use std::time::Duration;
use tollgate_core::{Penalty, Timestamp};

/// An item of the table, as data.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Item {
    /// The last code that was sent.
    pub challenge: ChallengeId,
    /// What is stored of it.
    pub digest: Digest,
    /// Until when it is good.
    pub valid_until: Timestamp,
    /// How far the message with it has come.
    pub delivery: Delivery,
    /// What its provider calls that message, if it wants to hear of it.
    pub receipt: Option<Receipt>,
    /// How often it was tried.
    pub attempts: u32,
    /// When it was used, if it was.
    pub used: Option<Timestamp>,
    /// How often the account was tried in its window, whatever the code; the right guess of a used code not counted.
    pub guesses: u32,
    /// Until when that window is. It is over for the account once a code is sent after that.
    pub window: Timestamp,
    /// Until when no other code is sent, and how many were sent before.
    pub cooldown: Penalty,
    /// When the table may delete the item, epoch seconds.
    pub expires_at: u64,
}

impl Item {
    /// Whether a code of `challenge` could be right at `now`.
    #[must_use]
    pub fn is_active(&self, challenge: ChallengeId, now: Timestamp) -> bool {
        self.challenge == challenge && self.used.is_none() && self.valid_until > now
    }

    /// How long the account's window still is at `now`; `None` if it is over.
    #[must_use]
    pub fn window_rest(&self, now: Timestamp) -> Option<Duration> {
        let ns = self.window.as_nanos().checked_sub(now.as_nanos()).filter(|ns| *ns > 0);
        ns.map(Duration::from_nanos)
    }

    /// How long no other code is sent.
    #[must_use]
    pub fn cooldown_rest(&self, now: Timestamp) -> Duration {
        self.cooldown.rest(now).unwrap_or_default()
    }
}
