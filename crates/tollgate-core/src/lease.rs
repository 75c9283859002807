//! Leases: what a process was charged for ahead of the calls that it expects, and spends by itself.
//!
//! A write that charges more than its calls need leaves the rest of its slot to the process. Having paid for tokens is not
//! enough to spend them at any time: spent late they come on top of what the bucket has refilled meanwhile, and double the
//! burst. So **a token may be spent only until its slot starts**. A call of cost `c` at `now` has the slot
//!
//! ```text
//! [y, y + inc(c))      y = max(from, now')      if y + inc(c) <= to
//! ```
//!
//! of a stretch `[from, to)` that was paid for. Such slots do not overlap, start no earlier than their use and end where the charge
//! did, so the bound of the [token bucket](crate::token_bucket) holds as it is. What was counted in a window may be spent while the
//! window lasts.
//!
//! - **What must not move.** A process dates its tokens by where their slots were, so the store's `tat` is only ever added to: a charge
//!   that is given back goes to the pool of its process, with its slot, and under other figures of one revision slots go on where the
//!   last one ends ([`Terms::carry`]), as those of pacers do: in tokens, whoever alternates between plans would have the bucket forget
//!   what is still unspent, again and again. So the bursts of a leased limit's plans add up. A newer revision that forgives debt,
//!   an operator's figures and a reset let what is unspent come on top, once.
//! - **A lease rests after [`Pool::LIVES_FOR`]**, which is how long a ban or other figures may go unseen by a process that has one, until
//!   the next charge has found the item as it was; a process that sees them drops it. (A reply that is older than what another call
//!   of the process has seen may bring it back, for as long at most.)
//! - **Only buckets that are leased are leased of**: the bucket's terms count, not the caller's. So nobody leases under an operator's figures,
//!   or of a bucket that a revision without leases has charged, whose callers give back to the table.
//! - **How much**: what was asked for in the last [`Pool::LASTS_FOR`], so that a lease doubles with each charge until it lasts that long;
//!   of a bucket that refills more than that, what it refills, since slots start at its rate: what is not spent then was of use only
//!   for its time. At most what the policy says, and at most half of the room that is left, so that several processes do not keep each other
//!   from it; nothing if no other call is expected while it lasts.
//!
//! Invariant: no part of a charge is spent twice, and none after its slot has started or its lease has ended.

use crate::charge::{Charge, Charges};
use crate::decision::{Decision, LimitDecision, Outcome, Source};
use crate::hold::Hold;
use crate::item::{Bucket, BusyPeriod, Item};
use crate::settle::Charged;
use crate::terms::Terms;
use crate::time::Timestamp;
use crate::token_bucket::Ticks;
use std::time::Duration;

/// A part of a charge that is not spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Stretch {
    from: Ticks,
    to: Ticks,
    leased_at: Timestamp,
}

/// What a process has of one limit of one key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pool {
    /// The terms of the calls that it may be spent by.
    asked: Terms,
    /// The last charge, and what was told with it.
    charged: Charged,
    told: LimitDecision,
    /// The integer that it left, and what an operator had set.
    tat: Ticks,
    hold: Option<Hold>,
    /// In the order of time.
    stretches: Vec<Stretch>,
    lately: Lately,
    /// Whether its item was found to be another.
    is_over: bool,
}

/// `n * by / of`, rounded down.
fn scaled(n: u64, by: u64, of: u64) -> u64 {
    // Mostly that fits 64 bits, which divide several times as fast.
    if let Some(product) = n.checked_mul(by) {
        return product.checked_div(of).unwrap_or(0);
    }
    let scaled = (u128::from(n) * u128::from(by)).checked_div(u128::from(of)).unwrap_or(0);
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// What was asked for within the last [`Pool::LASTS_FOR`], about: of what came before, the older the less counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Lately {
    /// In thousandths of a token.
    millis: u64,
    at: Timestamp,
}

impl Lately {
    fn at(self, now: Timestamp) -> u64 {
        let lasts = Pool::LASTS_FOR_NS;
        let rest = lasts.saturating_sub(now.as_nanos().saturating_sub(self.at.as_nanos()));
        scaled(self.millis, rest, lasts)
    }

    fn and(self, tokens: u64, now: Timestamp) -> Self {
        Self { millis: self.at(now).saturating_add(tokens.saturating_mul(1_000)), at: now }
    }
}

impl Charges {
    /// Whether a process may take tokens of these charges ahead. Only of a limit with an item of its own, that neither paces, remembers single
    /// charges nor locks; one that only reports has no room to keep, and one that is divided is for keys that no process has to
    /// itself for long: a lease would be of one shard, and each call is on another.
    #[must_use]
    pub fn can_be_leased(&self) -> bool {
        let is_alone = |charge: &Charge| self.item().own.as_ref() == Some(&charge.limit);
        matches!(self.charges(), [charge] if charge.lease > 0 && charge.terms.leased && is_alone(charge))
            && self.shards().is_none()
            && self.can_be_grouped()
    }

    /// The same charges, costing so many tokens more.
    #[must_use]
    pub fn ahead(&self, extra: u64) -> Option<Self> {
        self.costing(|charge| charge.cost.checked_add(extra))
    }
}

impl Pool {
    /// Longest that a token may be spent after it was charged.
    pub const LIVES_FOR: Duration = Duration::from_nanos(Self::LIVES_FOR_NS);
    const LIVES_FOR_NS: u64 = 10_000_000_000;
    /// How long a lease is meant to last.
    pub const LASTS_FOR: Duration = Duration::from_nanos(Self::LASTS_FOR_NS);
    const LASTS_FOR_NS: u64 = 1_000_000_000;
    /// How far a clock that was corrected may have been set back, in nanoseconds, before a lease counts as over.
    const SET_BACK_NS: u64 = 1_000_000_000;
    /// Stretches that are kept. Slots that are given back fill gaps, and these close at their start.
    const MOST: usize = 32;

    /// A pool of what a charge for `charges` leaves behind `spent` tokens. `told` is its decision, and `item` what it left.
    /// `None` if there is nothing of the kind, or the bucket is not leased: under the figures of another revision, or of an operator,
    /// others may give back to the table.
    #[must_use]
    pub fn of(charges: &Charges, charged: &Charged, spent: u64, told: &Decision, item: &Item) -> Option<Self> {
        let ([charge], [told]) = (charges.charges(), &told.limits[..]) else { return None };
        let bucket = item.buckets.get(&charge.limit).filter(|bucket| bucket.terms.leased)?;
        let mut pool = Self {
            asked: charge.terms.clone(),
            charged: charged.clone(),
            told: told.clone(),
            tat: bucket.tat,
            hold: item.hold.clone(),
            stretches: Vec::new(),
            lately: Lately { millis: spent.saturating_mul(1_000), at: charged.leased_at },
            is_over: false,
        };
        pool.keep(charged.behind(bucket.terms.figures.inc(spent)), charged.leased_at);
        Some(pool)
    }

    /// The same, with what is left of an `earlier` one, if that is of the same busy period.
    #[must_use]
    pub fn after(mut self, earlier: Self) -> Self {
        self.lately.millis = self.lately.millis.saturating_add(earlier.lately.at(self.lately.at));
        if !earlier.is_over && !self.is_other(earlier.hold.as_ref(), earlier.charged.busy_period()) {
            for stretch in earlier.stretches {
                // The item was seen as it was: nobody has moved them, and no operator has said anything.
                self.keep((stretch.from, stretch.to), self.charged.leased_at.max(stretch.leased_at));
            }
        }
        self
    }

    /// Takes the `cost` of a call at `now` out of what was charged before; `None` if that does not have it.
    pub fn spend(&mut self, terms: &Terms, cost: u64, now: Timestamp) -> Option<(LimitDecision, Charged)> {
        let figures = self.told.terms.figures;
        let is_left = |stretch: &Stretch| figures.spendable(stretch.from, now).is_some_and(|from| from < stretch.to);
        self.stretches.retain(is_left);
        let (at, from) = self.slot(terms, cost, now)?;
        let (stretch, inc) = (self.stretches.get_mut(at)?, figures.inc(cost));
        stretch.from = from + inc;
        let charged = self.charged.spent(cost, (from, inc), stretch.leased_at);
        self.lately = self.lately.and(cost, now);
        Some((self.tell(cost, now), charged))
    }

    /// Whether a call of `cost` at `now` could be spent.
    #[must_use]
    pub fn has(&self, terms: &Terms, cost: u64, now: Timestamp) -> bool {
        self.slot(terms, cost, now).is_some()
    }

    /// The first stretch that has the slot of a call, and where that starts.
    fn slot(&self, terms: &Terms, cost: u64, now: Timestamp) -> Option<(usize, Ticks)> {
        if self.asked != *terms || cost == 0 {
            return None;
        }
        let (figures, inc) = (&self.told.terms.figures, self.told.terms.figures.inc(cost));
        self.stretches.iter().enumerate().filter(|(_, stretch)| stretch.is_live(now)).find_map(|(at, stretch)| {
            let from = figures.spendable(stretch.from, now)?;
            (from + inc <= stretch.to).then_some((at, from))
        })
    }

    /// Takes back a charge of its process at `now`, but for `kept` of its tokens; tells what is left then.
    pub fn give_back(&mut self, charged: &Charged, kept: u64, now: Timestamp) -> LimitDecision {
        if !self.is_over && charged.busy_period() == self.charged.busy_period() {
            self.keep(charged.behind(self.told.terms.figures.inc(kept)), charged.leased_at);
        }
        self.tell(charged.cost(), now)
    }

    /// The busy period that it was charged in.
    #[must_use]
    pub fn busy_period(&self) -> BusyPeriod {
        self.charged.busy_period()
    }

    /// Whether an item that was found is another than this was charged in: an operator or another revision has changed it, or the bucket
    /// had filled up.
    fn is_stale(&self, item: Option<&Item>) -> bool {
        let bucket = item.and_then(|item| item.buckets.get(self.charged.limit()));
        let hold = item.and_then(|item| item.hold.as_ref());
        bucket.is_none_or(|bucket: &Bucket| self.is_other(hold, bucket.busy_period))
    }

    /// Looks at an item that was found: if it is another, what was taken ahead is not spent any more.
    pub fn see(&mut self, item: Option<&Item>) {
        if self.is_stale(item) {
            self.is_over = true;
            self.stretches.clear();
        }
    }

    /// How many tokens beside the `cost` of calls at `now`, of `each`, should be charged, at most `most` and of the `room` that there
    /// is.
    #[must_use]
    pub fn extra(&self, most: u64, (cost, each): (u64, u64), room: u64, now: Timestamp) -> u64 {
        let figures = &self.told.terms.figures;
        let asked = self.lately.and(cost, now).millis.saturating_add(500) / 1_000;
        let expected = asked.saturating_sub(cost);
        // A bucket's slots start one behind the other at its own rate, however seldom it is asked for.
        let lasting =
            figures.token_bucket().map_or(0, |bucket| scaled(Self::LASTS_FOR_NS, bucket.n(), bucket.period()));
        let held = u64::try_from(self.left(now).0 / figures.inc(1).0).unwrap_or(u64::MAX);
        let most = most.saturating_sub(held);
        let extra = expected.max(lasting).min(most).min(room.saturating_sub(cost) / 2);
        let spent = if lasting > expected { scaled(extra, expected, lasting) } else { extra };
        if spent < each {
            return 0;
        }
        // The calls to come are taken to be like this one, so that nothing is left between them.
        extra - extra % each.max(1)
    }

    fn is_other(&self, hold: Option<&Hold>, busy_period: BusyPeriod) -> bool {
        self.hold.as_ref() != hold || self.charged.busy_period() != busy_period
    }

    /// Adds a stretch, joined with those that it touches and that end with it.
    fn keep(&mut self, (from, to): (Ticks, Ticks), leased_at: Timestamp) {
        if from >= to {
            return;
        }
        let at = self.stretches.partition_point(|stretch| stretch.from < from);
        if let Some(next) = self.stretches.get_mut(at).filter(|next| next.from == to && next.leased_at == leased_at) {
            next.from = from;
        } else if let Some(last) = at
            .checked_sub(1)
            .and_then(|at| self.stretches.get_mut(at))
            .filter(|last| last.to == from && last.leased_at == leased_at)
        {
            last.to = to;
        } else if self.stretches.len() < Self::MOST {
            self.stretches.insert(at, Stretch { from, to, leased_at });
        }
    }

    /// What is not spent, and could be at `now` or after the next charge.
    fn left(&self, now: Timestamp) -> Ticks {
        let figures = &self.told.terms.figures;
        let left = |stretch: &Stretch| Some(stretch.to - figures.spendable(stretch.from, now)?.min(stretch.to));
        self.stretches.iter().filter_map(left).fold(Ticks(0), |all, left| all + left)
    }

    /// What a call at `now` is told that was just taken out: by what the store had, and what is left here.
    fn tell(&self, cost: u64, now: Timestamp) -> LimitDecision {
        let figures = &self.told.terms.figures;
        let state = Some(self.tat - self.left(now));
        LimitDecision {
            cost,
            outcome: Outcome::Allowed,
            remaining: figures.remaining(state, now),
            decided_at: now,
            next_token_after: figures.next_after(state, now),
            reset_after: figures.reset_after(state, now),
            source: Source::Lease,
            ..self.told.clone()
        }
    }
}

impl Stretch {
    fn is_live(&self, now: Timestamp) -> bool {
        let (now, at) = (now.as_nanos(), self.leased_at.as_nanos());
        now.saturating_add(Pool::SET_BACK_NS) >= at && now < at.saturating_add(Pool::LIVES_FOR_NS)
    }
}
