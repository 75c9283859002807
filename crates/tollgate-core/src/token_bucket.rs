//! The token bucket's arithmetic: one integer (the theoretical arrival time) in exact ticks, so that nothing is ever rounded.
//!
//! This is GCRA (ITU-T I.371) in the units that make it exact. The rate is `n` tokens per `P` nanoseconds, reduced by
//! their greatest common divisor, and the burst is `B` tokens. Time is counted in **ticks** of `1/n` ns, so that one
//! token is exactly `P` ticks:
//!
//! ```text
//! now' = now * n      inc(c) = c * P      W = B * P
//! x = max(tat, now')          where this charge's slot [x, x + inc) starts
//! allowed  iff  x + inc <= now' + W      then tat = x + inc
//! wait        = ceil((x + inc - W) / n) ns - now      tokens left = floor((now' + W - x) / P)
//! ```
//!
//! Rounding the interval to whole nanoseconds instead loses a token of every burst that `n` does not divide: 7 per
//! minute with burst 7 would admit 6.
//!
//! **The slot picture.** A charge occupies the slot `[x, x + inc)` of virtual time. Slots of one busy period never
//! overlap, start no earlier than their admission and end by `now' + W`. So the cost admitted in any `[s, e]` fits in
//! `W + (e - s)`: burst plus rate times interval. Whatever moves a slot must keep its start at or after the moment of use.

use crate::error::{Error, Result};
use crate::pacer::Demand;
use crate::time::Timestamp;
use std::num::NonZeroU64;
use std::time::Duration;

/// An instant or a span in ticks of `1/n` nanoseconds, where `n` is the reduced rate of the bucket it belongs to.
///
/// Ticks of buckets with different `n` are not comparable: see [`Terms::carry`](crate::Terms::carry). A DynamoDB
/// number carries 38 digits; every instant within the bounds of [`TokenBucket`] has at most 34.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Ticks(pub i128);

impl std::ops::Add for Ticks {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        // Saturating: a stored value can be anything, and a bucket that is full to the end of time must not wrap.
        Self(self.0.saturating_add(other.0))
    }
}

impl std::ops::Sub for Ticks {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl std::fmt::Display for Ticks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// The figures of a token bucket: `n` tokens per `period`, at most `burst` at once.
///
/// ```
/// use tollgate_core::{Timestamp, TokenBucket, Verdict};
/// let bucket = TokenBucket::new(7, 60_000_000_000, 7)?; // 7 per minute
/// let now = Timestamp::from_secs(1_767_225_600);
/// let mut tat = None;
/// for _ in 0..7 {
///     let Verdict::Allowed { tat: next } = bucket.take(tat, now, 1) else { panic!("burst of 7") };
///     tat = Some(next);
/// }
/// assert!(matches!(bucket.take(tat, now, 1), Verdict::Denied { .. }));
/// # Ok::<(), tollgate_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TokenBucket {
    n: u64,
    period_ns: u64,
    burst: u64,
    /// How many calls of a pacer go before their slots.
    pub(crate) delay: Option<u64>,
    /// How many tokens beyond the burst calls may have cost that cost more than was thought.
    debt: u64,
}

/// What the arithmetic says of one charge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It fits; `tat` is the theoretical arrival time after it.
    Allowed {
        /// The new theoretical arrival time.
        tat: Ticks,
    },
    /// It does not fit now. If nobody else comes it fits `retry_after` later and not 1 ns earlier; at least 1 ns.
    Denied {
        /// How long to wait.
        retry_after: Duration,
    },
    /// The cost is above the burst: waiting does not help.
    NeverFits,
}

impl TokenBucket {
    /// Most tokens of a rate, a burst or a cost: 10^12.
    pub const MAX_TOKENS: u64 = 1_000_000_000_000;
    /// Longest period of a rate, in nanoseconds: 200 years of 365 days.
    pub const MAX_PERIOD_NS: u64 = 200 * 365 * 86_400 * 1_000_000_000;
    /// Longest time that an empty bucket may take to fill, in nanoseconds: 10,000 years of 365 days.
    pub const MAX_REFILL_NS: u128 = 10_000 * 365 * 86_400 * 1_000_000_000;

    /// How far clocks of callers that agree with the table may lie apart, in nanoseconds: 2 s, since the table tells
    /// its time in whole seconds.
    pub const CLOCK_TOLERANCE_NS: u64 = 2_000_000_000;

    /// How long after the instant that it is dated by a write may still arrive, in seconds: 360. AWS refuses a request
    /// whose signature is older than five minutes (IAM User Guide, "Elements of an AWS API request signature"), and a
    /// decision lasts a minute at most.
    ///
    /// Every write sets `expires_at` anew, and its condition looks only at the limits that it charges: one that was held
    /// up, by a frozen process say, brings `expires_at` back by as long as it was late.
    pub const LATEST_ARRIVAL_SECS: u64 = 360;

    /// A bucket of `burst` tokens that gains `n` tokens every `period_ns` nanoseconds.
    ///
    /// # Errors
    ///
    /// [`Error::Figure`] if a figure is 0 or above its maximum, [`Error::RefillTooLong`] if `burst` tokens would take
    /// more than 10,000 years.
    pub fn new(n: u64, period_ns: u64, burst: u64) -> Result<Self> {
        let tokens = "a whole number from 1 to 1,000,000,000,000";
        let check = |figure, value, max, range| match value {
            1.. if value <= max => Ok(()),
            _ => Err(Error::Figure { figure, range, found: value.to_string() }),
        };
        check("rate", n, Self::MAX_TOKENS, tokens)?;
        check("period", period_ns, Self::MAX_PERIOD_NS, "from 1 ns to 200 years")?;
        check("burst", burst, Self::MAX_TOKENS, tokens)?;
        let g = gcd(n, period_ns);
        let bucket = Self { n: n / g, period_ns: period_ns / g, burst, delay: None, debt: 0 };
        if bucket.refill_ns() > Self::MAX_REFILL_NS {
            return Err(Error::RefillTooLong);
        }
        Ok(bucket)
    }

    /// The same, and calls that turn out to cost more may leave it up to `debt` tokens short of empty.
    ///
    /// # Errors
    ///
    /// As [`Self::new`], of burst and debt together.
    pub fn with_debt(self, debt: u64) -> Result<Self> {
        Self::new(self.n, self.period_ns, self.burst.saturating_add(debt))?;
        Ok(Self { debt, ..self })
    }

    /// What one of `instances` has of it, with `burst` at once and so much `debt`. A period beyond [`Self::MAX_PERIOD_NS`] is rounded to that: no
    /// process lives for 200 years.
    pub(crate) fn share(&self, burst: u64, debt: u64, instances: NonZeroU64) -> Self {
        let longer = self.period_ns.checked_mul(instances.get()).filter(|ns| *ns <= Self::MAX_PERIOD_NS);
        let (n, period_ns) = match (longer, self.n / instances) {
            (Some(period_ns), _) => (self.n, period_ns),
            (None, 0) => (1, Self::MAX_PERIOD_NS),
            (None, n) => (n, self.period_ns),
        };
        let g = gcd(n, period_ns);
        let delay = self.delay.map(|delay| (delay / instances).min(burst - 1));
        Self { n: n / g, period_ns: period_ns / g, burst, delay, debt }
    }

    /// Most tokens that it may be short of empty.
    #[must_use]
    pub const fn debt(&self) -> u64 {
        self.debt
    }

    /// What a call may take of a full bucket, in ticks.
    pub(crate) fn room_at_most(&self, demand: Demand) -> Ticks {
        if demand.into_debt { self.furthest() } else { self.window() }
    }

    /// How far ahead of now calls can leave the theoretical arrival time.
    pub(crate) fn furthest(&self) -> Ticks {
        self.window() + self.inc(self.debt)
    }

    /// Whole tokens left at `now` with the debt, 0 to burst and debt.
    pub(crate) fn room(&self, tat: Ticks, now: Timestamp) -> u64 {
        let now_ticks = self.at(now);
        let left = (now_ticks + self.furthest() - tat.max(now_ticks)).0.div_euclid(i128::from(self.period_ns));
        u64::try_from(left.max(0)).unwrap_or(u64::MAX)
    }

    /// Ticks per nanosecond: the reduced rate.
    #[must_use]
    pub const fn n(&self) -> u64 {
        self.n
    }

    /// Ticks per token: the reduced period in nanoseconds.
    #[must_use]
    pub const fn period(&self) -> u64 {
        self.period_ns
    }

    /// Most tokens at once.
    #[must_use]
    pub const fn burst(&self) -> u64 {
        self.burst
    }

    /// `now'`: an instant in ticks.
    #[must_use]
    pub fn at(&self, now: Timestamp) -> Ticks {
        Ticks(i128::from(now.as_nanos()) * i128::from(self.n))
    }

    /// `inc(cost)`: what a charge adds to the theoretical arrival time.
    #[must_use]
    pub fn inc(&self, cost: u64) -> Ticks {
        Ticks(i128::from(cost) * i128::from(self.period_ns))
    }

    /// `W`: the whole bucket in ticks.
    #[must_use]
    pub fn window(&self) -> Ticks {
        self.inc(self.burst)
    }

    /// A span of nanoseconds in ticks.
    #[must_use]
    pub fn span(&self, ns: u64) -> Ticks {
        Ticks(i128::from(ns) * i128::from(self.n))
    }

    /// Nanoseconds that an empty bucket takes to fill, rounded up.
    #[must_use]
    pub fn refill_ns(&self) -> u128 {
        (u128::from(self.burst) * u128::from(self.period_ns)).div_ceil(u128::from(self.n))
    }

    /// How long an item with this bucket must be remembered, in seconds, so that deleting it changes no decision: the
    /// refill time rounded up, [`Self::CLOCK_TOLERANCE_NS`] for writers whose clocks differ, and
    /// [`Self::LATEST_ARRIVAL_SECS`] for writes of another limit of the item that arrive late.
    #[must_use]
    pub fn horizon_secs(&self) -> u64 {
        self.horizon_of(self.furthest())
    }

    /// As [`Self::horizon_secs`], for a debt in ticks.
    #[must_use]
    pub fn horizon_of(&self, debt: Ticks) -> u64 {
        let ns = debt.0.max(0).div_euclid(i128::from(self.n)) + i128::from(Self::CLOCK_TOLERANCE_NS);
        let secs = u64::try_from(ns / 1_000_000_000 + 1).unwrap_or(u64::MAX);
        secs.saturating_add(Self::LATEST_ARRIVAL_SECS)
    }

    /// Decides a charge at `now` on a bucket whose theoretical arrival time is `tat` (`None`: untouched).
    #[must_use]
    pub fn take(&self, tat: Option<Ticks>, now: Timestamp, demand: impl Into<Demand>) -> Verdict {
        let demand = demand.into();
        if self.inc(demand.cost) > self.room_at_most(demand) {
            return Verdict::NeverFits;
        }
        let (now_ticks, reach) = (self.at(now), self.reach(demand));
        let x = tat.map_or(now_ticks, |t| t.max(now_ticks));
        if x <= now_ticks + reach {
            Verdict::Allowed { tat: x + self.inc(demand.cost) }
        } else {
            Verdict::Denied { retry_after: self.until(x - reach, now) }
        }
    }

    /// Whole tokens left at `now`, 0 to burst.
    #[must_use]
    pub fn remaining(&self, tat: Option<Ticks>, now: Timestamp) -> u64 {
        let now_ticks = self.at(now);
        let x = tat.map_or(now_ticks, |t| t.max(now_ticks));
        let left = u128::try_from((now_ticks + self.window() - x).0).unwrap_or(0);
        let tokens = match u64::try_from(left) {
            Ok(left) => left / self.period_ns,
            Err(_) => u64::try_from(left / u128::from(self.period_ns)).unwrap_or(self.burst),
        };
        tokens.min(self.burst)
    }

    /// Time until the bucket is full again, rounded up to a nanosecond; zero if it is.
    #[must_use]
    pub fn reset_after(&self, tat: Option<Ticks>, now: Timestamp) -> Duration {
        tat.map_or(Duration::ZERO, |t| self.until(t, now))
    }

    /// Time until the next whole token arrives, rounded up to a nanosecond; zero if the bucket is full.
    #[must_use]
    pub fn next_token_after(&self, tat: Option<Ticks>, now: Timestamp) -> Duration {
        let Some(tat) = tat.filter(|t| *t > self.at(now)) else { return Duration::ZERO };
        let held = self.remaining(Some(tat), now);
        // The instant at which `held + 1` tokens are there: now' + W - tat = (held + 1) * P.
        self.until(tat + self.inc(held + 1) - self.window(), now)
    }

    /// Time from `now` until the instant `at`, rounded up to a nanosecond; zero if it has passed.
    #[must_use]
    pub fn until(&self, at: Ticks, now: Timestamp) -> Duration {
        // Instants are multiples of n. What is missing mostly fits 64 bits, where an instant does not: those divide several times as fast.
        let missing = u128::try_from((at - self.at(now)).0).unwrap_or(0);
        if let Ok(missing) = u64::try_from(missing) {
            return Duration::from_nanos(missing.div_ceil(self.n));
        }
        let ns = missing.div_ceil(u128::from(self.n));
        let secs = u64::try_from(ns / 1_000_000_000).unwrap_or(u64::MAX);
        // The remainder is below 10^9 and fits.
        Duration::new(secs, u32::try_from(ns % 1_000_000_000).unwrap_or(0))
    }
}

const fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
