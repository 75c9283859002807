//! Pacing: the leaky bucket for calls that go out, each told when it may go.
//!
//! A pacer is a [`TokenBucket`] whose callers are told where their slot `[x, x + inc)` starts, and go then instead of at once.
//! State, writes and bound are the bucket's. A rate of `n` per period with a queue of `burst` is a bucket of `burst + 1`: one
//! call goes at once, `burst` more wait for their slots. Of these, the first `delay` may go before their slots:
//!
//! ```text
//! start    = max(x - delay * P, now')
//! allowed  iff  x <= now' + min(W - inc, delay * P + n * max_wait)
//! ```
//!
//! nginx's `limit_req` is this with cost 1: `burst`, `delay`, and `nodelay` for `delay = burst`.
//!
//! **What is sent.** Slots never overlap, and a call goes no more than `delay * P` before its own. So the calls that go in any
//! `[s, e]` cost at most the largest of them, `delay`, and rate times interval.
//!
//! Invariant: an instant that was told stays. Nothing moves a slot while a call waits for it: a charge is given back only if
//! nothing is behind it, and under other figures slots go on where the last one ends. Only a newer revision of the policy,
//! which says what becomes of debt, and an operator's reset let calls go beside those that were told before.

use crate::time::Timestamp;
use crate::token_bucket::{Ticks, TokenBucket};
use std::time::Duration;

/// What a call wants of one limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Demand {
    /// Tokens to take.
    pub cost: u64,
    /// The longest that the call would wait for its start, if it is paced; `None` is as long as the queue.
    pub max_wait: Option<Duration>,
    /// Whether the limit's debt counts as room: for a call that has been made, and cost more than was thought.
    pub into_debt: bool,
}

impl From<u64> for Demand {
    fn from(cost: u64) -> Self {
        Self { cost, max_wait: None, into_debt: false }
    }
}

impl Demand {
    /// `cost` tokens of a call that has been made.
    #[must_use]
    pub fn into_debt(cost: u64) -> Self {
        Self { into_debt: true, ..cost.into() }
    }
}

impl TokenBucket {
    /// The same figures as a pacer, of which the first `delay` calls beyond the one that is due go at once; at most all of
    /// them, `burst - 1`.
    #[must_use]
    pub fn paced(mut self, delay: u64) -> Self {
        self.delay = Some(delay.min(self.burst() - 1));
        self
    }

    /// How many calls of a pacer go before their slots; `None` if it is no pacer.
    #[must_use]
    pub const fn delay(&self) -> Option<u64> {
        self.delay
    }

    /// When a call whose slot starts at `x` may go, told at `now`; zero if at once, as ever where nothing is paced.
    #[must_use]
    pub fn starts_after(&self, x: Ticks, now: Timestamp) -> Duration {
        self.delay.map_or(Duration::ZERO, |delay| self.until(x - self.inc(delay), now))
    }

    /// How far ahead of now the slot of a call may start. Negative for a cost above the burst.
    pub(crate) fn reach(&self, demand: Demand) -> Ticks {
        let room = self.room_at_most(demand) - self.inc(demand.cost);
        match (self.delay, demand.max_wait) {
            (Some(delay), Some(longest)) => {
                let ns = i128::try_from(longest.as_nanos()).unwrap_or(i128::MAX);
                room.min(self.inc(delay) + Ticks(ns.saturating_mul(i128::from(self.n()))))
            }
            _ => room,
        }
    }
}
