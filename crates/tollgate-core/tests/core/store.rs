//! One item and the loop that a store runs: `Take` proposes, `Write::apply` decides.
//!
//! It checks on every call that at most one write is applied, and counts requests.

use std::time::Duration;
use tollgate_core::take::{Moment, Notice};
use tollgate_core::write::Assign;
use tollgate_core::{
    Bucket, Charge, Charges, Decision, Expect, Hold, Item, ItemKey, Key, LimitName, Mode, Step, Take, Terms, Timestamp,
    TokenBucket, Write,
};

pub(crate) const MS: u64 = 1_000_000;
pub(crate) const SECOND: u64 = 1_000 * MS;
pub(crate) const HOUR: u64 = 3_600 * SECOND;
/// 2026-01-01T00:00:00Z.
pub(crate) const START: u64 = 1_767_225_600 * SECOND;

/// The instant `ns` after [`START`].
pub(crate) fn at(ns: u64) -> Timestamp {
    Timestamp::from_nanos(START + ns)
}

pub(crate) fn bucket(n: u64, period_ns: u64, burst: u64) -> TokenBucket {
    TokenBucket::new(n, period_ns, burst).unwrap()
}

pub(crate) fn plan(revision: u64, plan: &str, bucket: TokenBucket) -> Terms {
    Terms::new(revision, bucket).on_plan(plan)
}

pub(crate) fn charge(limit: &str, terms: &Terms, cost: u64) -> Charge {
    let limit = LimitName::new(limit).unwrap();
    Charge::new(limit, terms.clone(), cost)
}

pub(crate) fn on_key(list: Vec<Charge>) -> Charges {
    Charges::new(ItemKey::shared(Key::new([("user", "alice")]).unwrap()), list).unwrap()
}

/// A charge on the limit `l` alone.
pub(crate) fn single(terms: &Terms, cost: u64) -> Charges {
    on_key(vec![charge("l", terms, cost)])
}

/// What a call did.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) decision: Decision,
    pub(crate) writes: u32,
    pub(crate) reads: u32,
    pub(crate) applied: u32,
    pub(crate) notices: Vec<Notice>,
}

impl Told {
    pub(crate) fn pulled_back(&self) -> bool {
        self.notices.iter().any(|n| matches!(n, Notice::PulledBack(_)))
    }
}

/// A table of one item.
#[derive(Debug, Default, Clone)]
pub(crate) struct Store {
    pub(crate) item: Option<Item>,
    ids: u64,
}

impl Store {
    /// A call by a process that has not seen the key and whose clock agrees with the table's.
    pub(crate) fn ask(&mut self, charges: &Charges, now: Timestamp) -> Told {
        self.ask_knowing(None, charges, Moment { now, clock_agrees: true })
    }

    /// A call of the limit `l` by a process that has not seen the key; whether it was allowed.
    pub(crate) fn allows(&mut self, terms: &Terms, cost: u64, now: Timestamp) -> bool {
        self.ask(&single(terms, cost), now).decision.is_allowed()
    }

    /// A call by a process that last saw `last_seen`.
    pub(crate) fn ask_knowing(&mut self, last_seen: Option<&Item>, charges: &Charges, moment: Moment) -> Told {
        self.ids += 1;
        let (mut take, mut step) = Take::start(charges.clone(), last_seen, moment, self.ids);
        let (mut writes, mut reads, mut applied) = (0, 0, 0);
        let decision = loop {
            step = match step {
                Step::Done(decision) => break decision,
                Step::Read => {
                    reads += 1;
                    take.read(self.item.as_ref(), moment)
                }
                Step::Write(write) | Step::Lock { write, .. } => {
                    writes += 1;
                    let before = self.item.clone();
                    if let Some(next) = self.write(&write) {
                        applied += u32::from(is_charge(&write, before.as_ref(), charges));
                        take.applied(&next, moment)
                    } else {
                        take.refused(self.item.as_ref(), moment)
                    }
                }
            };
            assert!(writes + reads <= 4, "a call that nobody disturbs goes on and on");
        };
        assert!(applied <= 1, "charged {applied} times");
        let wants = |mode| charges.charges().iter().any(|c| c.cost > 0 && c.mode == mode);
        // A call passes where all that is left out only reports.
        if wants(Mode::Enforce) || !wants(Mode::Shadow) {
            assert_eq!(applied == 1, wants(Mode::Enforce) && decision.is_allowed(), "allowed and charged are one");
        }
        Told { decision, writes, reads, applied, notices: take.notices().cloned().collect() }
    }

    /// An operator sets the hold to `next`.
    pub(crate) fn set_hold(&mut self, next: Option<Hold>, now: Timestamp) {
        let seen = self.item.as_ref();
        let horizon = seen.and_then(|item| item.horizon).unwrap_or(0);
        let write = Write::set_hold(now, horizon, seen.and_then(|item| item.hold.as_ref()), next);
        self.write(&write).unwrap();
    }

    fn write(&mut self, write: &Write) -> Option<Item> {
        let next = write.apply(self.item.as_ref())?;
        let h = self.item.as_ref().and_then(|i| i.horizon);
        assert!(next.horizon >= h, "h shrank from {h:?} to {:?}", next.horizon);
        self.item = Some(next.clone());
        Some(next)
    }

    pub(crate) fn bucket(&self, limit: &str) -> &Bucket {
        &self.item.as_ref().unwrap().buckets[limit]
    }
}

/// Whether `write` takes tokens of a limit, told by what it does to the item rather than by what its maker says.
fn is_charge(write: &Write, before: Option<&Item>, charges: &Charges) -> bool {
    write.limits.iter().any(|limit| match (&limit.assign, before.and_then(|i| i.buckets.get(&limit.limit))) {
        (Assign::Replace(next), Some(seen)) if !matches!(limit.expect, Expect::AbsentOr(_)) => {
            let rule = charges.charges().iter().find(|c| c.limit == limit.limit).unwrap().on_change;
            next.tat > next.terms.carry(&seen.terms, seen.state(), next.busy_period.since, rule).tat
        }
        _ => true,
    })
}

/// Cost admitted over every interval against `burst + rate * interval` of the largest burst and rate, exactly.
///
/// Returns by how many tokens, rounded up, the worst interval is over; 0 if none is. `admitted` is in order of time.
pub(crate) fn over_bound(buckets: &[TokenBucket], admitted: &[(Timestamp, u64)]) -> i128 {
    over_bound_by_clocks(buckets, admitted, Duration::ZERO)
}

/// The same by clocks that lie that far `apart`: they may admit that much of the rate more, once.
pub(crate) fn over_bound_by_clocks(buckets: &[TokenBucket], admitted: &[(Timestamp, u64)], apart: Duration) -> i128 {
    let apart = i128::try_from(apart.as_nanos()).unwrap();
    let burst = buckets.iter().map(|b| i128::from(b.burst())).max().unwrap();
    let mut worst = 0;
    for (i, (from, _)) in admitted.iter().enumerate() {
        let mut cost = 0;
        for (to, c) in &admitted[i..] {
            cost += i128::from(*c);
            let span = i128::from(to.as_nanos() - from.as_nanos()) + apart;
            // The largest rate is the one that leaves the least over.
            let over = buckets.iter().map(|b| {
                let ticks = (cost - burst) * i128::from(b.period()) - i128::from(b.n()) * span;
                if ticks > 0 { (ticks - 1) / i128::from(b.period()) + 1 } else { 0 }
            });
            worst = worst.max(over.min().unwrap());
        }
    }
    worst
}

/// A small generator for histories that must be the same on every run.
#[derive(Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn pick(&mut self, low: u64, high: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        low + (self.0 >> 11) % (high - low + 1)
    }
}
