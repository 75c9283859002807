//! The conditional writes of the protocol, as data: what each requires of the item and what it leaves behind.
//!
//! DynamoDB conditions have no arithmetic and no `max()`, so "refill, then take" is split into forms whose condition is
//! a comparison with constants that the caller computed:
//!
//! | form | requires, of each limit | leaves |
//! | --- | --- | --- |
//! | [new or busy](LimitWrite::new_or_busy) | absent, or `tat BETWEEN now AND ceil` and `f` is mine | `tat = if_not_exists(tat, now) + inc` |
//! | [new or idle](LimitWrite::new_or_idle) | absent, or `tat < now` and `f` is mine | `tat = now + inc`, a new busy period |
//! | [change](LimitWrite::change) | `tat`, `f`, `b` exactly as seen | any `tat` and terms, a new busy period |
//!
//! with `ceil = now + W - inc`. The busy form is a commutative add, so concurrent callers never conflict on it.
//! Invariant: a write whose condition fails has changed nothing and says so with the item that it found; a write may be
//! evaluated by any store that implements [`Write::apply`]'s meaning, and [`Write::apply`] is that meaning.

use crate::charge::LimitName;
use crate::item::{Bucket, BusyPeriod, Item};
use crate::terms::Terms;
use crate::time::Timestamp;
use crate::token_bucket::Ticks;

/// Something that a limit's stored state must satisfy.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Check {
    /// `tat BETWEEN from AND to`, inclusive.
    TatBetween(Ticks, Ticks),
    /// `tat < than`.
    TatBelow(Ticks),
    /// `tat = value`.
    TatIs(Ticks),
    /// `f = terms`.
    TermsAre(Terms),
    /// `b = period`.
    BusyPeriodIs(BusyPeriod),
}

impl Check {
    /// Whether `bucket` satisfies the check.
    #[must_use]
    pub fn holds(&self, bucket: &Bucket) -> bool {
        match self {
            Self::TatBetween(from, to) => *from <= bucket.tat && bucket.tat <= *to,
            Self::TatBelow(than) => bucket.tat < *than,
            Self::TatIs(tat) => bucket.tat == *tat,
            Self::TermsAre(terms) => bucket.terms == *terms,
            Self::BusyPeriodIs(period) => bucket.busy_period == *period,
        }
    }
}

/// What a write does to a limit's state.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Assign {
    /// `tat = if_not_exists(tat, start) + inc`; `f`, `b` and `adj` are set only if absent.
    Extend {
        /// Where the slot starts if the limit has no state.
        start: Ticks,
        /// Length of the slot.
        inc: Ticks,
        /// The terms of a new bucket.
        terms: Terms,
        /// The busy period of a new bucket.
        busy_period: BusyPeriod,
    },
    /// All four attributes are overwritten.
    Replace(Bucket),
}

/// The part of a write that concerns one limit: applied if (`or_absent` and the limit has no state) or all `checks` hold.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LimitWrite {
    /// Which limit.
    pub limit: LimitName,
    /// Whether a limit without state satisfies the condition.
    pub or_absent: bool,
    /// What the state must satisfy otherwise.
    pub checks: Vec<Check>,
    /// What is written.
    pub assign: Assign,
}

impl LimitWrite {
    /// Charges `cost` tokens to a bucket that is new or busy: a commutative add below a ceiling. `id` is random, for a
    /// new busy period.
    #[must_use]
    pub fn new_or_busy(limit: LimitName, terms: Terms, cost: u64, now: Timestamp, id: u64) -> Self {
        let busy_period = BusyPeriod { since: now, id };
        let (start, inc) = (terms.bucket.at(now), terms.bucket.inc(cost));
        let ceil = start + terms.bucket.window() - inc;
        Self {
            limit,
            or_absent: true,
            checks: vec![Check::TatBetween(start, ceil), Check::TermsAre(terms.clone())],
            assign: Assign::Extend { start, inc, terms, busy_period },
        }
    }

    /// Charges `cost` tokens to a bucket that is new or idle: a new busy period starts now. `id` is random.
    #[must_use]
    pub fn new_or_idle(limit: LimitName, terms: Terms, cost: u64, now: Timestamp, id: u64) -> Self {
        let start = terms.bucket.at(now);
        let tat = start + terms.bucket.inc(cost);
        let checks = vec![Check::TatBelow(start), Check::TermsAre(terms.clone())];
        let next = Bucket::starting(terms, tat, BusyPeriod { since: now, id });
        Self { limit, or_absent: true, checks, assign: Assign::Replace(next) }
    }

    /// Moves a bucket to other terms or another `tat`, if it is still exactly as `seen`. `next` has a new busy period.
    #[must_use]
    pub fn change(limit: LimitName, seen: &Bucket, next: Bucket) -> Self {
        let checks =
            vec![Check::TatIs(seen.tat), Check::TermsAre(seen.terms.clone()), Check::BusyPeriodIs(seen.busy_period)];
        Self { limit, or_absent: false, checks, assign: Assign::Replace(next) }
    }

    fn holds(&self, bucket: Option<&Bucket>) -> bool {
        bucket.map_or(self.or_absent, |bucket| self.checks.iter().all(|check| check.holds(bucket)))
    }

    fn assigned(&self, bucket: Option<&Bucket>) -> Bucket {
        match (&self.assign, bucket) {
            (Assign::Extend { inc, .. }, Some(bucket)) => Bucket { tat: bucket.tat + *inc, ..bucket.clone() },
            (Assign::Extend { start, inc, terms, busy_period }, None) => {
                Bucket { tat: *start + *inc, terms: terms.clone(), busy_period: *busy_period, adjusted: Ticks(0) }
            }
            (Assign::Replace(next), _) => next.clone(),
        }
    }
}

/// Something that the item as a whole must satisfy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ItemCheck {
    /// `attribute_not_exists(h) OR h <= secs`: a caller that knows only limits with a shorter memory must not let the
    /// others expire early.
    HorizonAtMost(u64),
}

/// One conditional write of one item: all limits or none.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Write {
    /// What the item must satisfy.
    pub checks: Vec<ItemCheck>,
    /// What becomes of each limit.
    pub limits: Vec<LimitWrite>,
    /// The new `h`, seconds.
    pub horizon: u64,
    /// The new `expires_at`, epoch seconds.
    pub expires_at: u64,
}

impl Write {
    /// A write at `now` of an item that must be remembered for `horizon` seconds.
    #[must_use]
    pub fn new(limits: Vec<LimitWrite>, now: Timestamp, horizon: u64) -> Self {
        // Seconds are rounded up: a part of a second is still to be remembered.
        let expires_at = (now.as_secs() + 1).saturating_add(horizon);
        Self { checks: vec![ItemCheck::HorizonAtMost(horizon)], limits, horizon, expires_at }
    }

    /// The item after the write, or `None` if its condition does not hold and nothing is written.
    #[must_use]
    pub fn apply(&self, item: Option<&Item>) -> Option<Item> {
        let item = item.cloned().unwrap_or_default();
        let item_holds = self.checks.iter().all(|check| match check {
            ItemCheck::HorizonAtMost(secs) => item.horizon.is_none_or(|h| h <= *secs),
        });
        let limits_hold = self.limits.iter().all(|l| l.holds(item.buckets.get(&l.limit)));
        if !(item_holds && limits_hold) {
            return None;
        }
        let mut next = item;
        for l in &self.limits {
            let bucket = l.assigned(next.buckets.get(&l.limit));
            next.buckets.insert(l.limit.clone(), bucket);
        }
        next.horizon = Some(self.horizon);
        next.expires_at = Some(self.expires_at);
        Some(next)
    }
}
