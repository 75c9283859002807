//! The conditional writes of the protocol, as data: what each requires of the item and what it leaves behind.
//!
//! DynamoDB conditions have no arithmetic and no `max()`, so "refill, then take" is split into forms whose condition is
//! a comparison with constants that the caller computed:
//!
//! | form | requires, of each limit | leaves |
//! | --- | --- | --- |
//! | [new or busy](LimitWrite::new_or_busy) | absent, or `tat BETWEEN now AND ceil` and `f` is mine | `tat = if_not_exists(tat, now) + inc` |
//! | [new or idle](LimitWrite::new_or_idle) | absent, or `tat < now` and `f` is mine | `tat = now + inc`, a new busy period |
//! | [exact](LimitWrite::exact) | absent, or `tat`, `f`, `b`, `g` all as seen | anything |
//! | [give back](LimitWrite::give_back) | `b` as seen, and `g` where there are slots | `tat = tat - by` |
//! | [more](LimitWrite::more) | `tat BETWEEN now AND ceil + debt` and `f` as seen | `tat = tat + inc` |
//! | [take out](LimitWrite::take_out) | `e` has the entry | `tat = tat - cost`, `e` without the entry |
//!
//! with `ceil = now + W - inc` of a token bucket, or lower for a call that a pacer would keep waiting for too long; `now`, `ceil`
//! and what is idle are other comparisons of the same kind where windows are counted, or a log is kept (see [`Figures`](crate::Figures)). The busy
//! form is a commutative add, so concurrent callers never conflict on it; nor do those
//! that give back, or add and take out entries, which come with any of these forms. The exact form moves a bucket to other terms,
//! charges within a transaction, and writes a full log anew. Of the item, every form that takes or moves requires the `hold` that was
//! seen and an `h` that it does not shorten; and every form that charges a limit with a rule for penalties, that it is not locked
//! ([`PenaltyWrite`]).
//!
//! Invariant: a write whose condition fails has changed nothing and says so with the item that it found; a write may be
//! evaluated by any store that implements [`Write::apply`]'s meaning, and [`Write::apply`] is that meaning.

use crate::charge::LimitName;
use crate::entry::{self, Entries, Entry};
use crate::hold::Hold;
use crate::item::{Bucket, BusyPeriod, Item};
use crate::pacer::Demand;
use crate::penalty::PenaltyWrite;
use crate::terms::Terms;
use crate::time::Timestamp;
use crate::token_bucket::Ticks;

/// Something that a limit's stored state must satisfy.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Check {
    /// `tat BETWEEN from AND to`, inclusive.
    TatBetween(Ticks, Ticks),
    /// `tat <= most`.
    TatAtMost(Ticks),
    /// `tat < than`.
    TatBelow(Ticks),
    /// `tat = value`.
    TatIs(Ticks),
    /// `f = terms`.
    TermsAre(Terms),
    /// `b = period`.
    BusyPeriodIs(BusyPeriod),
    /// `g = ticks`: nothing was charged since that was seen.
    GrossIs(Ticks),
    /// `contains(e, entry)`: it has not been taken out.
    Holds(Entry),
    /// `attribute_not_exists(e) OR size(e) < most`: one more has room.
    EntriesBelow(usize),
}

impl Check {
    /// Whether `bucket` satisfies the check.
    #[must_use]
    pub fn holds(&self, bucket: &Bucket) -> bool {
        match self {
            Self::TatBetween(from, to) => *from <= bucket.tat && bucket.tat <= *to,
            Self::TatAtMost(most) => bucket.tat <= *most,
            Self::TatBelow(than) => bucket.tat < *than,
            Self::TatIs(tat) => bucket.tat == *tat,
            Self::TermsAre(terms) => bucket.terms == *terms,
            Self::BusyPeriodIs(period) => bucket.busy_period == *period,
            Self::GrossIs(ticks) => bucket.gross == *ticks,
            Self::Holds(entry) => bucket.entries.contains(entry),
            Self::EntriesBelow(most) => bucket.entries.len() < *most,
        }
    }
}

/// What a write does to a limit's state.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Assign {
    /// `tat` and `g` grow by `inc`, from `start` if absent; `f` and `b` are set only if absent.
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
    /// `tat`, `f`, `b` and `g` are overwritten.
    Replace(Bucket),
    /// `tat = tat - by`; the others stay.
    GiveBack {
        /// What is given back; 0 where only an entry is taken out.
        by: Ticks,
    },
}

/// What a write does to a limit's entries.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Entering {
    /// Nothing.
    Keep,
    /// One more.
    Add(Entry),
    /// One is taken out.
    Remove(Entry),
    /// They are overwritten.
    Set(Entries),
}

impl Entering {
    /// What makes one of the other; of those that others may add and take out meanwhile, as little as possible is touched.
    fn between(seen: &Entries, next: &Entries) -> Self {
        let one = |more: &Entries, less: &Entries| {
            let mut extra = more.iter().filter(|entry| !less.contains(entry));
            extra.next().copied().filter(|_| more.len() == less.len() + 1 && extra.next().is_none())
        };
        match (seen == next, one(next, seen), one(seen, next)) {
            (true, ..) => Self::Keep,
            (_, Some(added), _) => Self::Add(added),
            (_, _, Some(removed)) => Self::Remove(removed),
            _ => Self::Set(next.clone()),
        }
    }

    fn entered(&self, entries: Entries) -> Entries {
        match self {
            Self::Keep => entries,
            Self::Add(entry) => entries.with(*entry),
            Self::Remove(entry) => entries.without(entry),
            Self::Set(entries) => entries.clone(),
        }
    }
}

/// What a limit's state must be like.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Expect {
    /// There is none.
    Absent,
    /// There is none, or all of this holds.
    AbsentOr(Vec<Check>),
    /// There is some, and all of this holds.
    Present(Vec<Check>),
}

impl Expect {
    /// Whether a limit's state is like that.
    #[must_use]
    pub fn holds(&self, bucket: Option<&Bucket>) -> bool {
        let all = |checks: &[Check], bucket: &Bucket| checks.iter().all(|check| check.holds(bucket));
        match (self, bucket) {
            (Self::Absent | Self::AbsentOr(_), None) => true,
            (Self::Absent, Some(_)) | (Self::Present(_), None) => false,
            (Self::AbsentOr(checks) | Self::Present(checks), Some(bucket)) => all(checks, bucket),
        }
    }
}

/// The part of a write that concerns one limit.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LimitWrite {
    /// Which limit.
    pub limit: LimitName,
    /// What its state must be like.
    pub expect: Expect,
    /// What is written.
    pub assign: Assign,
    /// What becomes of its entries.
    pub entering: Entering,
}

impl LimitWrite {
    /// Charges a limit that is new or busy, and whose state was last `seen`, if it was: a commutative add below a
    /// ceiling. `id` is random, for a new busy period. `None` if there is no state that it could be added to.
    #[must_use]
    pub fn new_or_busy(
        limit: LimitName,
        terms: Terms,
        seen: Option<Ticks>,
        demand: impl Into<Demand>,
        now: Timestamp,
        id: u64,
    ) -> Option<Self> {
        let busy_period = BusyPeriod { since: now, id };
        let demand = demand.into();
        let fits = terms.figures.busy(seen, now, demand)?;
        let expect = Expect::AbsentOr(vec![fits, Check::TermsAre(terms.clone())]);
        let (start, inc) = (terms.figures.fresh(now), terms.figures.inc(demand.cost));
        let assign = Assign::Extend { start, inc, terms, busy_period };
        Some(Self { limit, expect, assign, entering: Entering::Keep })
    }

    /// Charges `cost` tokens to a bucket that is new or idle: a new busy period starts now. `id` is random.
    #[must_use]
    pub fn new_or_idle(limit: LimitName, terms: Terms, cost: u64, now: Timestamp, id: u64) -> Self {
        let tat = terms.figures.fresh(now) + terms.figures.inc(cost);
        let below = terms.figures.idle_below(now);
        let expect = Expect::AbsentOr(vec![Check::TatBelow(below), Check::TermsAre(terms.clone())]);
        let next = Bucket::starting(terms, tat, BusyPeriod { since: now, id });
        Self { limit, expect, assign: Assign::Replace(next), entering: Entering::Keep }
    }

    /// Replaces a bucket, if it is still exactly as `seen`; `None` is no bucket. `next` has a new busy period, unless it
    /// differs by a charge or a refund alone.
    #[must_use]
    pub fn exact(limit: LimitName, seen: Option<&Bucket>, next: Bucket) -> Self {
        let checks = |seen: &Bucket| {
            vec![
                Check::TatIs(seen.tat),
                Check::TermsAre(seen.terms.clone()),
                Check::BusyPeriodIs(seen.busy_period),
                Check::GrossIs(seen.gross),
            ]
        };
        let expect = seen.map_or(Expect::Absent, |seen| Expect::Present(checks(seen)));
        let entering = Entering::between(seen.map_or(&entry::NONE, |seen| &seen.entries), &next.entries);
        Self { limit, expect, assign: Assign::Replace(next), entering }
    }

    /// Gives `by` ticks back of a bucket, if nothing was charged to it since it was `seen` and it is in the same busy
    /// period. Other refunds do not matter: this is a commutative subtraction. Of a window, which has no slots that could come to
    /// start before their use, charges do not matter either.
    #[must_use]
    pub fn give_back(limit: LimitName, seen: &Bucket, by: Ticks) -> Self {
        let mut checks = vec![Check::BusyPeriodIs(seen.busy_period)];
        if seen.terms.figures.has_slots() {
            checks.push(Check::GrossIs(seen.gross));
        }
        let expect = Expect::Present(checks);
        Self { limit, expect, assign: Assign::GiveBack { by }, entering: Entering::Keep }
    }

    /// Charges a limit that was `seen` busy what a call has come to cost more, into debt as far as that goes. `None` if there is no
    /// state that it could be added to.
    #[must_use]
    pub fn more(limit: LimitName, seen: &Bucket, demand: Demand, now: Timestamp) -> Option<Self> {
        let (terms, busy_period) = (seen.terms.clone(), seen.busy_period);
        let fits = terms.figures.busy(Some(seen.tat), now, demand)?;
        let (start, inc) = (terms.figures.fresh(now), terms.figures.inc(demand.cost));
        let expect = Expect::Present(vec![fits, Check::TermsAre(terms.clone())]);
        let assign = Assign::Extend { start, inc, terms, busy_period };
        Some(Self { limit, expect, assign, entering: Entering::Keep })
    }

    /// The same, if a reservation is there, which it takes out.
    #[must_use]
    pub fn settling(mut self, entry: Option<Entry>) -> Self {
        let Some(entry) = entry else { return self };
        if let Expect::Present(checks) = &mut self.expect {
            checks.push(Check::Holds(entry));
        }
        self.entering = Entering::Remove(entry);
        self
    }

    /// Takes an entry out, if it is there: whoever takes it out again does nothing. A reservation's costs nothing.
    #[must_use]
    pub fn take_out(limit: LimitName, entry: Entry) -> Self {
        let (expect, by) = (Expect::Present(vec![Check::Holds(entry)]), Ticks(i128::from(entry.cost)));
        Self { limit, expect, assign: Assign::GiveBack { by }, entering: Entering::Remove(entry) }
    }

    /// The same, and it adds an entry, if there is room for one more. In a log there is, as costs are at least 1.
    #[must_use]
    pub fn entering(mut self, entry: Option<Entry>) -> Self {
        let Some(entry) = entry else { return self };
        self.entering = Entering::Add(entry);
        if let (Expect::AbsentOr(checks), true) = (&mut self.expect, entry.is_reservation()) {
            checks.push(Check::EntriesBelow(Entries::MOST));
        }
        self
    }

    fn assigned(&self, bucket: Option<&Bucket>) -> Option<Bucket> {
        let entries = self.entering.entered(bucket.map(|bucket| bucket.entries.clone()).unwrap_or_default());
        let next = self.moved(bucket)?;
        Some(Bucket { entries, ..next })
    }

    fn moved(&self, bucket: Option<&Bucket>) -> Option<Bucket> {
        Some(match (&self.assign, bucket) {
            (Assign::Extend { inc, .. }, Some(bucket)) => {
                Bucket { tat: bucket.tat + *inc, gross: bucket.gross + *inc, ..bucket.clone() }
            }
            (Assign::Extend { start, inc, terms, busy_period }, None) => {
                let tat = *start + *inc;
                let (terms, entries) = (terms.clone(), Entries::default());
                Bucket { tat, terms, busy_period: *busy_period, gross: tat, entries }
            }
            (Assign::Replace(next), _) => next.clone(),
            (Assign::GiveBack { by }, bucket) => Bucket { tat: bucket?.tat - *by, ..bucket?.clone() },
        })
    }
}

/// Something that the item as a whole must satisfy.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ItemCheck {
    /// `attribute_not_exists(h) OR h <= secs`: a caller that knows only limits with a shorter memory must not let the
    /// others expire early.
    HorizonAtMost(u64),
    /// `attribute_not_exists(hold)`, or `hold = value`: what an operator sets is in force with the next decision.
    HoldIs(Option<Hold>),
}

impl ItemCheck {
    /// Whether `item` satisfies the check.
    #[must_use]
    pub fn holds(&self, item: &Item) -> bool {
        match self {
            Self::HorizonAtMost(secs) => item.horizon.is_none_or(|h| h <= *secs),
            Self::HoldIs(hold) => item.hold == *hold,
        }
    }
}

/// How long the item is to be remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Memory {
    /// The new `h`, seconds.
    pub horizon: u64,
    /// The new `expires_at`, epoch seconds.
    pub expires_at: u64,
}

/// One conditional write of one item: all limits or none.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Write {
    /// What the item must satisfy.
    pub checks: Vec<ItemCheck>,
    /// What becomes of each limit.
    pub limits: Vec<LimitWrite>,
    /// What is required, and becomes, of limits' penalties.
    pub penalties: Vec<PenaltyWrite>,
    /// The new `hold`, if it changes.
    pub hold: Option<Option<Hold>>,
    /// How long the item is to be remembered from now on; `None` leaves that as it is.
    pub memory: Option<Memory>,
}

impl Write {
    /// A write at `now` of an item that must be remembered for `horizon` seconds, and whose hold is as `seen`. What has
    /// ended of the hold is removed.
    #[must_use]
    pub fn new(limits: Vec<LimitWrite>, now: Timestamp, horizon: u64, seen: Option<&Hold>) -> Self {
        let in_force = seen.and_then(|hold| hold.in_force(now));
        let write = Self::holding(limits, now, horizon, seen, in_force.as_ref());
        let hold = (in_force.as_ref() != seen).then_some(in_force);
        Self { hold, ..write }
    }

    /// As [`Self::new`], by a caller whose clock cannot tell what has ended: the hold stays as it is.
    #[must_use]
    pub fn under(limits: Vec<LimitWrite>, now: Timestamp, horizon: u64, seen: Option<&Hold>) -> Self {
        Self::holding(limits, now, horizon, seen, seen)
    }

    /// A write that sets the hold to `next`, if it is as `seen`.
    #[must_use]
    pub fn set_hold(now: Timestamp, horizon: u64, seen: Option<&Hold>, next: Option<Hold>) -> Self {
        let write = Self::holding(Vec::new(), now, horizon, seen, next.as_ref());
        Self { hold: Some(next), ..write }
    }

    /// A write that gives charges back: it needs the buckets alone. It creates no item, and takes nothing that the item's
    /// memory or a hold would have to know of.
    #[must_use]
    pub fn giving_back(limits: Vec<LimitWrite>) -> Self {
        Self { checks: Vec::new(), limits, penalties: Vec::new(), hold: None, memory: None }
    }

    /// The same write, which also requires these limits' penalties to be as they say, and changes them.
    #[must_use]
    pub fn with_penalties(self, penalties: Vec<PenaltyWrite>) -> Self {
        Self { penalties, ..self }
    }

    /// The limits that it requires something of.
    pub fn names(&self) -> impl Iterator<Item = &LimitName> {
        self.limits.iter().map(|l| &l.limit).chain(self.penalties.iter().map(|p| &p.limit))
    }

    fn holding(
        limits: Vec<LimitWrite>,
        now: Timestamp,
        horizon: u64,
        seen: Option<&Hold>,
        next: Option<&Hold>,
    ) -> Self {
        // Seconds are rounded up: a part of a second is still to be remembered.
        let forgotten = (now.as_secs() + 1).saturating_add(horizon);
        let expires_at = next.map_or(forgotten, |hold| forgotten.max(hold.until().as_secs() + 1));
        let checks = vec![ItemCheck::HorizonAtMost(horizon), ItemCheck::HoldIs(seen.cloned())];
        Self { checks, limits, penalties: Vec::new(), hold: None, memory: Some(Memory { horizon, expires_at }) }
    }

    /// The item after the write, or `None` if its condition does not hold and nothing is written.
    #[must_use]
    pub fn apply(&self, item: Option<&Item>) -> Option<Item> {
        let item = item.cloned().unwrap_or_default();
        let item_holds = self.checks.iter().all(|check| check.holds(&item));
        let limits_hold = self.limits.iter().all(|l| l.expect.holds(item.buckets.get(&l.limit)));
        let penalties_hold = self.penalties.iter().all(|p| p.holds(&item));
        if !(item_holds && limits_hold && penalties_hold) {
            return None;
        }
        let mut next = item;
        for l in &self.limits {
            let bucket = l.assigned(next.buckets.get(&l.limit))?;
            next.buckets.insert(l.limit.clone(), bucket);
        }
        self.penalties.iter().for_each(|p| p.apply(&mut next));
        if let Some(hold) = &self.hold {
            next.hold.clone_from(hold);
        }
        if let Some(Memory { horizon, expires_at }) = self.memory {
            next.horizon = Some(horizon);
            next.expires_at = Some(expires_at);
        }
        Some(next)
    }
}
