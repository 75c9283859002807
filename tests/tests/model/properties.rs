//! What must hold, stated apart from the code under test: the checks that the model makes at every step.
//!
//! A check that fails becomes a [`Fault`] in the state; the search goes no further from there, and the property of that
//! name has its counterexample.

use crate::scenario::Scenario;
use std::sync::atomic::{AtomicU32, Ordering};
use tollgate_core::write::Assign;
use tollgate_core::{Charges, Decision, Item, LimitName, Outcome, Timestamp, Write};

/// What went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Fault {
    /// Over some interval more was admitted than `burst + rate * (interval + spread of clocks)`.
    OverAdmitted,
    /// More than one charging write of one call was applied.
    ChargedTwice,
    /// A call was allowed without an applied write.
    AllowedUncharged,
    /// A call was denied though its cost fitted at the moment the table refused.
    DeniedThoughItFits,
    /// `h` shrank.
    HorizonShrank,
    /// `expires_at` does not cover a `tat`: somebody could find the item deleted and the bucket full too early.
    ExpiresTooEarly,
    /// A corrected write was refused though the item had not changed since.
    RefusedUnchanged,
    /// A call took more writes than the scenario states.
    TooManyWrites,
    /// A bucket was pulled back though all clocks agree.
    PulledBack,
}

/// Something interesting that has to happen, or a run would prove nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Event {
    /// The busy form was applied to an existing bucket.
    Busy,
    /// The idle form was applied to an existing bucket.
    Idle,
    /// A change form was applied.
    Change,
    /// A call was denied.
    Denied,
    /// The table deleted the item.
    Deleted,
    /// A reply was lost after its write had been applied.
    LostAfterApply,
    /// A write was applied after its caller had given up.
    AppliedLate,
    /// A refused call wrote again and was admitted.
    AdmittedAfterRefusal,
    /// A call was decided under newer terms than the caller's own.
    FollowedNewer,
}

/// Which events have happened anywhere in a run. Kept beside the states, since a flag in them would multiply them.
#[derive(Debug, Default)]
pub(crate) struct Coverage(AtomicU32);

impl Coverage {
    pub(crate) fn note(&self, event: Event) {
        self.0.fetch_or(1 << event as u8, Ordering::Relaxed);
    }

    pub(crate) fn has(&self, event: Event) -> bool {
        self.0.load(Ordering::Relaxed) & (1 << event as u8) != 0
    }
}

/// A cost that a caller was told is admitted, dated in true time by the instant that its write was made with.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Admission {
    pub(crate) limit: LimitName,
    pub(crate) secs: u64,
    pub(crate) cost: u64,
}

/// For every pair of admissions: cost in `[t_i, t_j] <= B + rate * (t_j - t_i + spread)`, in integers.
///
/// With several terms in play, `B` and `rate` are the largest of them. `admitted` is sorted by limit and time.
pub(crate) fn over_admitted(scenario: &Scenario, admitted: &[Admission]) -> bool {
    admitted.iter().enumerate().any(|(i, first)| {
        let mut cost = 0;
        admitted[i..].iter().take_while(|a| a.limit == first.limit).any(|last| {
            cost += i128::from(last.cost);
            let span = i128::from(last.secs - first.secs) * 1_000_000_000 + i128::from(scenario.spread());
            let buckets = || scenario.charges_on(&first.limit).map(|c| c.terms.bucket);
            let burst = buckets().map(|b| i128::from(b.burst())).max().unwrap();
            // cost - burst > n / P * span for every rate n / P, thus for the largest.
            buckets().all(|b| (cost - burst) * i128::from(b.period()) > i128::from(b.n()) * span)
        })
    })
}

/// Whether `write` takes tokens of a limit, told by what it does to the item `before` rather than by what its maker says.
pub(crate) fn takes_tokens(write: &Write, before: Option<&Item>, charges: &Charges) -> bool {
    write.limits.iter().any(|limit| match (&limit.assign, before.and_then(|i| i.buckets.get(&limit.limit))) {
        (Assign::Replace(next), Some(seen)) if !limit.or_absent => {
            let charge = charges.charges().iter().find(|c| c.limit == limit.limit).unwrap();
            next.tat > next.terms.carry(&seen.terms, seen.tat, next.busy_period.since, charge.on_change)
        }
        _ => true,
    })
}

/// Whether every cost fits the item at `now`, by the terms that the decision names.
pub(crate) fn fits(charges: &Charges, decision: &Decision, item: Option<&Item>, now: Timestamp) -> bool {
    charges.charges().iter().zip(&decision.limits).all(|(charge, told)| {
        let bucket = &told.terms.bucket;
        let (period, ns) = (i128::from(bucket.period()), i128::from(now.as_nanos()));
        let now_ticks = ns * i128::from(bucket.n());
        let found = item.and_then(|item| item.buckets.get(&charge.limit));
        let tat = found.map_or(now_ticks, |found| {
            if found.terms == told.terms {
                found.tat.0
            } else {
                told.terms.carry(&found.terms, found.tat, now, charge.on_change).0
            }
        });
        let used = tat.max(now_ticks) - now_ticks + i128::from(charge.cost) * period;
        told.outcome != Outcome::NeverFits && used <= i128::from(bucket.burst()) * period
    })
}

/// Whether whoever finds the item deleted, by the slowest clock, would have found every bucket full.
///
/// The table deletes when its time in whole seconds is past `expires_at`, so not before `expires_at + 1 s`.
pub(crate) fn expires_in_time(scenario: &Scenario, item: &Item) -> bool {
    let slowest = scenario.callers.iter().map(|c| c.offset).min().unwrap().min(0);
    let deleted = (i128::from(item.expires_at.unwrap()) + 1) * 1_000_000_000 + i128::from(slowest);
    item.buckets.values().all(|b| b.tat.0 <= deleted * i128::from(b.terms.bucket.n()))
}
