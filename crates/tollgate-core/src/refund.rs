//! Giving a charge back: how much of it may be, and the writes that do it, without I/O.
//!
//! A decision on several items charges some of them before another denies. Subtracting such a charge again over-admits,
//! even within a busy period: with a burst of 10 at 1/s, charge 10 at 0 s, 5 more at 5 s, subtract the 10 at 5.001 s, and
//! 10 more pass. Only the part of the charge's slot that lies in the future may be given back. With `x` the slot's start
//! and `adj` the ticks refunded in the busy period so far:
//!
//! ```text
//! x' = x - (adj - adj at the charge)      d = clamp(x' + inc - max(now', x'), 0, inc)
//! tat = tat - d, adj = adj + d      if tat, b and adj are as seen; another busy period: nothing
//! ```
//!
//! Every slot behind the refunded one moves ahead by `d`, and must not start before it was used. Those that were seen
//! do not; one that was charged between the look and the write could, since a write may be held up for long (burst 1,
//! 1/s: charge 1 at 0 s, give it back by a request that is made at once and arrives at 1 s, after 1 was admitted there:
//! its slot would start at 0 s, and 1 more pass). That is why the condition names the `tat` that was seen, too. `adj`
//! tells that as much was refunded as was charged meanwhile, and `b` that plans have alternated; each of the three is
//! needed beside the others, and `f` is not, since every change of it renews `b`.
//!
//! Invariant: a [`Refund`] gives back each charge at most once, and nothing if it cannot tell how much. What it fails to
//! give back comes back by itself as the bucket refills.

use crate::charge::LimitName;
use crate::item::{Bucket, BusyPeriod, Item};
use crate::time::Timestamp;
use crate::token_bucket::Ticks;
use crate::write::{LimitWrite, Write};

/// A charge that was applied: its slot, and the busy period that the slot is in.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Charged {
    limit: LimitName,
    start: Ticks,
    inc: Ticks,
    busy_period: BusyPeriod,
    adjusted: Ticks,
}

impl Charged {
    /// A charge of `cost` tokens that left the bucket as `after`.
    #[must_use]
    pub fn new(limit: LimitName, cost: u64, after: &Bucket) -> Self {
        let inc = after.terms.bucket.inc(cost);
        let (start, busy_period, adjusted) = (after.tat - inc, after.busy_period, after.adjusted);
        Self { limit, start, inc, busy_period, adjusted }
    }

    /// What may be given back at `now` of a bucket that was found: the part of the slot in the future, in ticks.
    #[must_use]
    pub fn unused(&self, found: &Bucket, now: Timestamp) -> Ticks {
        if found.busy_period != self.busy_period {
            return Ticks(0);
        }
        let start = self.start - (found.adjusted - self.adjusted);
        let unused = start + self.inc - start.max(found.terms.bucket.at(now));
        unused.clamp(Ticks(0), self.inc)
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
            let next = Bucket { tat: found.tat - unused, adjusted: found.adjusted + unused, ..found.clone() };
            (unused > Ticks(0)).then(|| LimitWrite::exact(charged.limit.clone(), Some(found), next))
        };
        let writes: Vec<_> = self.0.iter().filter_map(give_back).collect();
        if writes.is_empty() { Step::Done } else { Step::Write(Write::giving_back(writes)) }
    }
}
