//! Settling a charge when it is known what the call has come to: giving back what it did not need, charging what it needed
//! beside, or as if it had never been, without I/O.
//!
//! **Less, or nothing.** A decision on several items charges some of them before another denies; a call turns out to be cheaper
//! than was estimated. Subtracting the difference over-admits,
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
//! - Of a charge that keeps a part, the slot is what lies behind that part.
//! - Of a limit that processes lease nothing is given back to the store: see [`lease`](crate::lease).
//! - A log takes the charge's entry out.
//!
//! **More** is a charge of the difference as of now, whose ceiling is higher by the limit's debt; what is beyond that too is told
//! and not written.
//!
//! **Once.** A charge that has an entry (a log's, or one that was made to be settled) is settled by a write that requires the entry
//! and takes it out: sent again, it does nothing. Without one the write is not idempotent, so one whose fate is unknown is never
//! sent again, and what is not given back comes back by itself as the bucket refills.
//!
//! Invariant: a [`Settlement`] changes each charge at most once, and gives nothing back if it cannot tell how much.

use crate::charge::LimitName;
use crate::entry::{Entries, Entry};
use crate::figures::{Form, State};
use crate::item::{Bucket, BusyPeriod, Item};
use crate::pacer::Demand;
use crate::time::Timestamp;
use crate::token_bucket::{Ticks, Verdict};
use crate::write::{LimitWrite, Write};

/// What a call has come to, for one limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Actual {
    /// It cost so many tokens; 0 is a call that does not count.
    Cost(u64),
    /// It does not count, nor does what a log has from before it.
    Clear,
}

/// A charge that was applied: its slot, and the busy period that the slot is in.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Charged {
    limit: LimitName,
    cost: u64,
    /// The instant of the charge.
    used: Ticks,
    start: Ticks,
    inc: Ticks,
    busy_period: BusyPeriod,
    /// Ticks refunded in the busy period until then.
    refunded: Ticks,
    /// What it is remembered by.
    entry: Option<Entry>,
    /// When it was taken from the store, be it for a call that came later.
    pub(crate) leased_at: Timestamp,
}

impl Charged {
    /// A charge of `cost` tokens, made with the instant `now`, that left the bucket as `after`.
    #[must_use]
    pub fn new(limit: LimitName, cost: u64, after: &Bucket, now: Timestamp) -> Self {
        let (figures, busy_period, refunded) = (&after.terms.figures, after.busy_period, after.refunded());
        let inc = figures.inc(cost);
        let (used, start) = (figures.fresh(now), after.tat - inc);
        Self { limit, cost, used, start, inc, busy_period, refunded, entry: None, leased_at: now }
    }

    /// The part of its slot behind `kept` ticks.
    pub(crate) fn behind(&self, kept: Ticks) -> (Ticks, Ticks) {
        (self.start + kept.min(self.inc), self.start + self.inc)
    }

    /// The part of what was charged that a call of `cost` has spent.
    pub(crate) fn spent(&self, cost: u64, (start, inc): (Ticks, Ticks), leased_at: Timestamp) -> Self {
        Self { cost, start, inc, leased_at, ..self.clone() }
    }

    /// The busy period that it was charged in.
    pub(crate) fn busy_period(&self) -> BusyPeriod {
        self.busy_period
    }

    /// The same, remembered by an entry.
    #[must_use]
    pub fn entered(self, entry: Option<Entry>) -> Self {
        Self { entry, ..self }
    }

    /// How many tokens were charged.
    #[must_use]
    pub fn cost(&self) -> u64 {
        self.cost
    }

    /// Whether there is nothing to settle.
    #[must_use]
    pub fn is_settled_by(&self, actual: Actual) -> bool {
        self.entry.is_none() && actual == Actual::Cost(self.cost)
    }

    /// The limit that was charged.
    #[must_use]
    pub fn limit(&self) -> &LimitName {
        &self.limit
    }

    /// What may be given back at `now` of a bucket that was found, in ticks, of a charge that keeps `kept` of its tokens: the part of
    /// the slot behind those that lies in the future.
    #[must_use]
    pub fn unused(&self, found: &Bucket, kept: u64, now: Timestamp) -> Ticks {
        // Where processes lease, one may still go by where the slots behind were: this process alone may spend it again.
        if found.busy_period != self.busy_period || found.terms.leased {
            return Ticks(0);
        }
        let figures = &found.terms.figures;
        let kept = figures.inc(kept).min(self.inc);
        let is_last = found.tat == self.start + self.inc;
        let start = match figures.is_paced() {
            // Whoever is behind was told when to go.
            true if !is_last => return Ticks(0),
            true => self.start,
            false => (self.start - (found.refunded() - self.refunded)).max(self.used),
        };
        figures.unused(found.tat, start + kept, self.inc - kept, now)
    }

    /// The write that settles it for `actual` on the bucket that was found, and the tokens that there is no room for.
    fn settle(&self, actual: Actual, found: &Bucket, now: Timestamp, id: u64) -> (Option<LimitWrite>, u64) {
        if self.entry.is_some_and(|entry| !found.entries.contains(&entry)) {
            return (None, 0);
        }
        let cost = match actual {
            Actual::Cost(cost) => cost,
            Actual::Clear => 0,
        };
        let more = cost.saturating_sub(self.cost);
        let extra = more.min(found.terms.figures.room(found, now));
        let write = match self.entry.filter(|entry| !entry.is_reservation()) {
            Some(entry) => self.enter(entry, actual, extra, found),
            None if extra > 0 => self.charge(extra, found, now, id),
            None => self.give_back(cost, found, now),
        };
        (write, more - extra)
    }

    /// Settles an entry of a log.
    fn enter(&self, entry: Entry, actual: Actual, extra: u64, found: &Bucket) -> Option<LimitWrite> {
        let limit = self.limit.clone();
        let entries = match actual {
            Actual::Cost(0) => return Some(LimitWrite::take_out(limit, entry)),
            // What was entered later is of calls that are not decided yet.
            Actual::Clear => found.entries.only(|other| other.at > entry.at),
            Actual::Cost(cost) => {
                let settled = Entry { cost: cost.min(self.cost + extra), ..entry };
                found.entries.clone().without(&entry).with(settled)
            }
        };
        let tat = Ticks(i128::from(entries.cost()));
        let gross = found.gross + Ticks(i128::from(extra));
        (entries != found.entries)
            .then(|| LimitWrite::exact(limit, Some(found), Bucket { tat, gross, entries, ..found.clone() }))
    }

    /// Gives back what lies behind `kept` tokens.
    fn give_back(&self, kept: u64, found: &Bucket, now: Timestamp) -> Option<LimitWrite> {
        let (limit, unused) = (self.limit.clone(), self.unused(found, kept, now));
        match (unused > Ticks(0), self.entry) {
            (true, entry) => Some(LimitWrite::give_back(limit, found, unused).settling(entry)),
            (false, Some(entry)) => Some(LimitWrite::take_out(limit, entry)),
            (false, None) => None,
        }
    }

    /// Charges `extra` tokens that there is room for.
    fn charge(&self, extra: u64, found: &Bucket, now: Timestamp, id: u64) -> Option<LimitWrite> {
        let (limit, terms, demand) = (self.limit.clone(), found.terms.clone(), Demand::into_debt(extra));
        let figures = terms.figures;
        if figures.form(found, now, extra) == Form::Add {
            return LimitWrite::more(limit, found, demand, now).map(|write| write.settling(self.entry));
        }
        let Verdict::Allowed { tat } = figures.take(found, now, demand) else { return None };
        let entries = self.entry.iter().fold(found.entries.clone(), Entries::without);
        let since = now.max(found.busy_period.since);
        let next = Bucket::starting(terms, State { tat, entries }, BusyPeriod { since, id });
        Some(LimitWrite::exact(limit, Some(found), next))
    }
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Write the item; then call [`Settlement::refused`] with the item found, or be done.
    Write(Write),
    /// Nothing is left to settle.
    Done,
}

/// Charges on one item that are being settled.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Settlement {
    charges: Vec<(Charged, Actual)>,
    id: u64,
}

impl Settlement {
    /// Starts settling `charges`, all of one item that was last seen as `item`. `id` is random, for a busy period that this may
    /// start.
    #[must_use]
    pub fn start(charges: Vec<(Charged, Actual)>, item: &Item, now: Timestamp, id: u64) -> (Self, Step) {
        let settlement = Self { charges, id };
        let step = settlement.step(Some(item), now);
        (settlement, step)
    }

    /// Starts giving back `charges` as a whole.
    #[must_use]
    pub fn giving_back(charges: Vec<Charged>, item: &Item, now: Timestamp) -> (Self, Step) {
        let all = charges.into_iter().map(|charged| (charged, Actual::Cost(0))).collect();
        // Nothing is charged, so no busy period starts.
        Self::start(all, item, now, 0)
    }

    /// The store refused the write and returned the item that it found.
    #[must_use]
    pub fn refused(&self, item: Option<&Item>, now: Timestamp) -> Step {
        self.step(item, now)
    }

    /// Whether a write whose fate is unknown may be sent again.
    #[must_use]
    pub fn is_idempotent(&self) -> bool {
        self.charges.iter().all(|(charged, _)| charged.entry.is_some())
    }

    /// The limits that have no entry of the call any more: it was settled before, or nobody waited for it any longer. What it cost
    /// more is not charged.
    #[must_use]
    pub fn late(&self, item: Option<&Item>) -> Vec<LimitName> {
        let is_late = |(charged, _): &&(Charged, Actual)| {
            let found = item.and_then(|item| item.buckets.get(&charged.limit));
            charged.entry.is_some_and(|entry| found.is_none_or(|found| !found.entries.contains(&entry)))
        };
        self.charges.iter().filter(is_late).map(|(charged, _)| charged.limit.clone()).collect()
    }

    /// The limits of `item` that the call cost more than their room and debt, and by how many tokens: those are not charged.
    #[must_use]
    pub fn beyond(&self, item: &Item, now: Timestamp) -> Vec<(LimitName, u64)> {
        let beyond = |(charged, actual): &(Charged, Actual)| {
            let tokens = charged.settle(*actual, item.buckets.get(&charged.limit)?, now, self.id).1;
            (tokens > 0).then(|| (charged.limit.clone(), tokens))
        };
        self.charges.iter().filter_map(beyond).collect()
    }

    fn step(&self, item: Option<&Item>, now: Timestamp) -> Step {
        let Some(item) = item else { return Step::Done };
        let mut writes = Vec::with_capacity(self.charges.len());
        let mut horizon = None;
        for (charged, actual) in &self.charges {
            let Some(found) = item.buckets.get(&charged.limit) else { continue };
            let (write, _) = charged.settle(*actual, found, now, self.id);
            if matches!(actual, Actual::Cost(cost) if *cost > charged.cost) && write.is_some() {
                horizon = horizon.max(Some(found.terms.figures.horizon_secs()));
            }
            writes.extend(write);
        }
        match (writes.is_empty(), horizon) {
            (true, _) => Step::Done,
            (false, None) => Step::Write(Write::giving_back(writes)),
            // Whatever charges has the item remembered for as long as that matters.
            (false, Some(needed)) => {
                let horizon = needed.max(item.horizon.unwrap_or(0));
                Step::Write(Write::under(writes, now, horizon, item.hold.as_ref()))
            }
        }
    }
}
