//! The conditional writes, as data: what they require of the item and what they leave behind.
//!
//! The store renders exactly these conditions and assignments; [`Write::apply`] is their meaning, used by the protocol
//! model. Invariant: a write changes an item only if all of its checks hold, and then all of it.

use crate::challenge::{ChallengeId, Digest};
use crate::delivery::{Delivery, Receipt};
use crate::item::Item;
use tollgate_core::{Penalty, Timestamp};

/// A comparison of the item with a constant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Check {
    /// `challenge = value`: no other code was sent since.
    ChallengeIs(ChallengeId),
    /// `valid_until > now`. The table's own deletion is late by days.
    ValidAt(Timestamp),
    /// `attribute_not_exists(used)`.
    Unused,
    /// `delivery = value`.
    DeliveryIs(Delivery),
    /// `attempts < most`.
    AttemptsBelow(u32),
    /// `guesses < most`.
    GuessesBelow(u32),
    /// `window <= now`: the account's budget starts anew.
    WindowOver(Timestamp),
    /// `cooldown < Penalty::in_force_from(instant)`: it had ended by then.
    CooldownOver(Timestamp),
}

impl Check {
    /// Whether `item` satisfies the check.
    #[must_use]
    pub fn holds(&self, item: &Item) -> bool {
        match self {
            Self::ChallengeIs(challenge) => item.challenge == *challenge,
            Self::ValidAt(now) => item.valid_until > *now,
            Self::Unused => item.used.is_none(),
            Self::DeliveryIs(delivery) => item.delivery == *delivery,
            Self::AttemptsBelow(most) => item.attempts < *most,
            Self::GuessesBelow(most) => item.guesses < *most,
            Self::WindowOver(now) => item.window <= *now,
            Self::CooldownOver(by) => item.cooldown.until <= *by,
        }
    }
}

/// What the item must be like.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Expect {
    /// There is none, or all of these hold.
    AbsentOr(Vec<Check>),
    /// There is one, and all of these hold. One of them compares an attribute, or the table would take none for one.
    Present(Vec<Check>),
}

impl Expect {
    /// Whether `item` is like that.
    #[must_use]
    pub fn holds(&self, item: Option<&Item>) -> bool {
        let (checks, absent) = match self {
            Self::AbsentOr(checks) => (checks, true),
            Self::Present(checks) => (checks, false),
        };
        item.map_or(absent, |item| checks.iter().all(|check| check.holds(item)))
    }
}

/// A new code.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Sending {
    /// Its challenge.
    pub challenge: ChallengeId,
    /// What is stored of it.
    pub digest: Digest,
    /// Until when it is good.
    pub valid_until: Timestamp,
    /// Until when no other code is sent.
    pub cooldown: Penalty,
    /// The end of the account's window, if a new one begins; else it goes on, with what was guessed in it.
    pub window: Option<Timestamp>,
    /// When the table may delete the item, epoch seconds.
    pub expires_at: u64,
}

/// What is written.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Change {
    /// A code takes the place of whatever there was.
    Send(Sending),
    /// One more attempt, before it is known whether it is right.
    Count,
    /// The message with the code has come so far; and its receipt, if it has one.
    Deliver(Delivery, Option<Receipt>),
    /// The code is used; that the attempt was right takes it out of the account's guesses.
    Use(Timestamp),
}

/// One conditional write of one item.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Write {
    /// What the item must be like.
    pub expect: Expect,
    /// What becomes of it.
    pub change: Change,
}

impl Write {
    /// The item after the write, or `None` if its condition does not hold and nothing is written.
    #[must_use]
    pub fn apply(&self, item: Option<&Item>) -> Option<Item> {
        if !self.expect.holds(item) {
            return None;
        }
        match &self.change {
            Change::Send(sending) => sending.after(item),
            Change::Count => {
                item.map(|item| Item { attempts: item.attempts + 1, guesses: item.guesses + 1, ..item.clone() })
            }
            Change::Deliver(delivery, receipt) => {
                let receipt = receipt.as_ref().or(item.and_then(|item| item.receipt.as_ref())).cloned();
                item.map(|item| Item { delivery: *delivery, receipt, ..item.clone() })
            }
            Change::Use(now) => {
                item.map(|item| Item { used: Some(*now), guesses: item.guesses.saturating_sub(1), ..item.clone() })
            }
        }
    }
}

impl Sending {
    fn after(&self, item: Option<&Item>) -> Option<Item> {
        // A window goes on only where there is one.
        let (window, guesses) = match self.window {
            Some(window) => (window, 0),
            None => item.map(|item| (item.window, item.guesses))?,
        };
        let Self { challenge, digest, valid_until, cooldown, expires_at, .. } = self.clone();
        Some(Item {
            challenge,
            digest,
            valid_until,
            delivery: Delivery::Pending,
            receipt: None,
            attempts: 0,
            used: None,
            guesses,
            window,
            cooldown,
            expires_at,
        })
    }
}
