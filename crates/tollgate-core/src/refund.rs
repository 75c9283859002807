//! Giving a charge back: how much of it may be, and the write that does it, without I/O.
//!
//! A decision on several items charges some of them before another denies. Subtracting such a charge again over-admits,
//! even within a busy period: with a burst of 10 at 1/s, charge 10 at 0 s, 5 more at 5 s, subtract the 10 at 5.001 s, and
//! 10 more pass. Only the part of the charge's slot that lies in the future may be given back: every slot behind it moves
//! ahead by that much, and none may come to start before it was used. With `u` the instant of the charge, `x` the start of
//! its slot then, and `R` the ticks that others were given back in the busy period since:
//!
//! ```text
//! x' = max(x - R, u)      d = clamp(x' + inc - max(now', x'), 0, inc)
//! tat = tat - d      if b and g are as seen; another busy period: nothing
//! ```
//!
//! - `x'` is where the slot starts at the earliest: refunds of slots ahead of it moved it by `R` at most (those behind it
//!   did not), and never before its own use. Without `u`, of 30 that charged and give back together the first would get
//!   nothing once the others have had theirs.
//! - `g` stands for "nothing was charged since". A write may be held up for long, and a slot that was charged in the
//!   meantime could come to start before its use (burst 1, 1/s: charge 1 at 0 s, give it back by a request that is made at
//!   once and arrives at 1 s, after 1 was admitted there: its slot would start at 0 s, and 1 more pass).
//! - Other refunds in the meantime do not matter, though `R` has grown. They were made when nothing was charged that this
//!   one has not seen, and each leaves the slots behind it where they start no earlier than its own instant: after every use
//!   that there is. So refunds do not conflict with each other.
//! - `b` tells that the bucket was moved to other terms; `f` is not needed, since every change of it renews `b`.
//! - A pacer's slots are used where they start, not when they were charged, and those behind were told their instants: one is
//!   given back only while it is the last, `tat = x + inc`, so that none moves. Whatever was behind it and is no more was given
//!   back itself, and `g` tells that nothing came after.
//!
//! Invariant: a [`Refund`] gives back each charge at most once, and nothing if it cannot tell how much: the write is not
//! idempotent, so one whose fate is unknown is never sent again. What is not given back comes back by itself as the bucket
//! refills.

use crate::charge::LimitName;
use crate::item::{Bucket, BusyPeriod, Item};
use crate::time::Timestamp;
use crate::token_bucket::Ticks;
use crate::write::{LimitWrite, Write};

/// A charge that was applied: its slot, and the busy period that the slot is in.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Charged {
    limit: LimitName,
    /// The instant of the charge.
    used: Ticks,
    start: Ticks,
    inc: Ticks,
    busy_period: BusyPeriod,
    /// Ticks refunded in the busy period until then.
    refunded: Ticks,
}

impl Charged {
    /// A charge of `cost` tokens, made with the instant `now`, that left the bucket as `after`.
    #[must_use]
    pub fn new(limit: LimitName, cost: u64, after: &Bucket, now: Timestamp) -> Self {
        let inc = after.terms.figures.inc(cost);
        let (used, start) = (after.terms.figures.fresh(now), after.tat - inc);
        Self { limit, used, start, inc, busy_period: after.busy_period, refunded: after.refunded() }
    }

    /// What may be given back at `now` of a bucket that was found: the part of the slot in the future, in ticks.
    #[must_use]
    pub fn unused(&self, found: &Bucket, now: Timestamp) -> Ticks {
        if found.busy_period != self.busy_period {
            return Ticks(0);
        }
        let figures = &found.terms.figures;
        let is_last = found.tat == self.start + self.inc;
        match figures.is_paced() {
            // Whoever is behind was told when to go.
            true if !is_last => Ticks(0),
            true => figures.unused(found.tat, self.start, self.inc, now),
            false => {
                let start = (self.start - (found.refunded() - self.refunded)).max(self.used);
                figures.unused(found.tat, start, self.inc, now)
            }
        }
    }
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Write the item; then call [`Refund::refused`] with the item found, or be done.
    Write(Write),
    /// Nothing is left to give back.
    Done,
}

/// Charges on one item that are being given back.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Refund(Vec<Charged>);

impl Refund {
    /// Starts giving back `charges`, all of one item that was last seen as `item`.
    #[must_use]
    pub fn start(charges: Vec<Charged>, item: &Item, now: Timestamp) -> (Self, Step) {
        let refund = Self(charges);
        let step = refund.step(Some(item), now);
        (refund, step)
    }

    /// The store refused the write and returned the item that it found.
    #[must_use]
    pub fn refused(&self, item: Option<&Item>, now: Timestamp) -> Step {
        self.step(item, now)
    }

    fn step(&self, item: Option<&Item>, now: Timestamp) -> Step {
        let give_back = |charged: &Charged| {
            let found = item?.buckets.get(&charged.limit)?;
            let unused = charged.unused(found, now);
            (unused > Ticks(0)).then(|| LimitWrite::give_back(charged.limit.clone(), found, unused))
        };
        let writes: Vec<_> = self.0.iter().filter_map(give_back).collect();
        if writes.is_empty() { Step::Done } else { Step::Write(Write::giving_back(writes)) }
    }
}
