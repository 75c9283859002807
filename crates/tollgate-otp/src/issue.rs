//! Sending a code: which write makes it the account's only one, or why none may be sent now.
//!
//! ```text
//! first   absent OR (window <= now AND cooldown < all forgotten)   everything anew
//! again   challenge = seen [AND guesses < budget]                  a new code; window and guesses go on, or start anew
//! ```
//!
//! `first` is tried blind. Its refusal carries the item, and with it the denial or what `again` needs. Every code has another
//! challenge, so `challenge = seen` says that no code was sent since, thus that the cooldown is over as it was seen to be; of
//! any number of callers at once one sends.
//!
//! Invariant: a message goes out only for a write that is known to have been applied. One whose answer is lost may have been, and may
//! even arrive later: then the code that it names is in no message, and its cooldown holds. It never takes the place of a
//! code that was sent after it was made, since that one has another challenge and a cooldown that is not over.

use crate::challenge::{ChallengeId, Digest};
use crate::item::Item;
use crate::write::{Change, Check, Expect, Sending, Write};
use std::time::Duration;
use tollgate_core::{Penalty, Timestamp, TokenBucket};
use tollgate_policy::OtpRules;

/// Why no code is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Denied {
    /// The last one was sent a moment ago.
    TooSoon {
        /// How long until the next one may be.
        retry_after: Duration,
    },
    /// The account has been tried as often as it may be for now: whatever were sent could not be verified.
    Locked {
        /// How long until the next code may be sent.
        retry_after: Duration,
    },
}

/// What comes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// This write.
    Write(Write),
    /// Nothing: no code is sent.
    Denied(Denied),
}

/// A code that is to be sent.
#[derive(Debug, Clone)]
pub struct Issue<'a> {
    rules: &'a OtpRules,
    challenge: ChallengeId,
    digest: Digest,
}

impl<'a> Issue<'a> {
    /// A code of this challenge, of which `digest` is stored.
    #[must_use]
    pub fn new(rules: &'a OtpRules, challenge: ChallengeId, digest: Digest) -> Self {
        Self { rules, challenge, digest }
    }

    /// The first write: by somebody who knows nothing of the account.
    #[must_use]
    pub fn first(&self, now: Timestamp) -> Write {
        let forgotten = i64::try_from(self.rules.cooldown.forgotten_after().as_nanos()).unwrap_or(i64::MAX);
        let checks = vec![Check::WindowOver(now), Check::CooldownOver(now.offset_by(-forgotten))];
        let (cooldown, window) = (self.rules.cooldown.next(None, now), now + self.rules.window);
        Write { expect: Expect::AbsentOr(checks), change: self.sending(cooldown, window, true, now) }
    }

    /// What follows from the item that a write at `now` was refused for.
    #[must_use]
    pub fn refused(&self, found: Option<&Item>, now: Timestamp) -> Next {
        // It was deleted between two writes.
        let Some(found) = found else { return Next::Write(self.first(now)) };
        let (cooldown, window) = (found.cooldown_rest(now), found.window_rest(now));
        match window {
            Some(rest) if found.guesses >= self.rules.budget => {
                return Next::Denied(Denied::Locked { retry_after: rest.max(cooldown) });
            }
            _ if !cooldown.is_zero() => return Next::Denied(Denied::TooSoon { retry_after: cooldown }),
            _ => {}
        }
        let mut checks = vec![Check::ChallengeIs(found.challenge)];
        if window.is_some() {
            checks.push(Check::GuessesBelow(self.rules.budget));
        }
        let next = self.rules.cooldown.next(Some(&found.cooldown), now);
        let end = if window.is_some() { found.window } else { now + self.rules.window };
        Next::Write(Write { expect: Expect::Present(checks), change: self.sending(next, end, window.is_none(), now) })
    }

    fn sending(&self, cooldown: Penalty, window: Timestamp, is_new: bool, now: Timestamp) -> Change {
        let valid_until = now + self.rules.ttl;
        // Seconds are rounded up, and writes of others may be made by another clock and arrive late: nobody may find the item
        // deleted for whom something of it is not over.
        let last = valid_until.max(window) + Duration::from_nanos(TokenBucket::CLOCK_TOLERANCE_NS);
        let forgotten = now.as_secs() + self.rules.cooldown.horizon_secs(&cooldown, now);
        let expires_at = forgotten.max(last.as_secs() + TokenBucket::LATEST_ARRIVAL_SECS) + 1;
        let (challenge, digest) = (self.challenge, self.digest.clone());
        Change::Send(Sending { challenge, digest, valid_until, cooldown, window: is_new.then_some(window), expires_at })
    }
}
