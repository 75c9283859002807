//! What must hold, stated apart from the code under test: the checks that the model makes at every step.
//!
//! A check that fails becomes a [`Fault`] in the state; the search goes no further from there, and the property of that
//! name has its counterexample.

use crate::penalties::{deleted_at, nothing_is_lost};
use crate::scenario::Scenario;
use crate::table::EPOCH;
use crate::{leases, logs, windows};
use std::sync::atomic::{AtomicU32, Ordering};
use tollgate_core::write::Assign;
use tollgate_core::{
    Bucket, Charges, Decision, Expect, Hold, Item, LimitName, LimitWrite, Mode, Outcome, Timestamp, TokenBucket, Write,
};

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
    /// `expires_at` does not cover a `tat` or the hold: somebody could find the item deleted and the bucket full too early.
    ExpiresTooEarly,
    /// A corrected write was refused though the item had not changed since.
    RefusedUnchanged,
    /// A call took more writes than the scenario states.
    TooManyWrites,
    /// A bucket was pulled back though all clocks agree.
    PulledBack,
    /// A refund gave back more than the charge, or twice.
    OverRefunded,
    /// A charge was settled again, or beside its entry.
    SettledTwice,
    /// A refund was applied to another busy period than the charge's.
    RefundedElsewhere,
    /// A charge was applied to an item under a ban.
    BanBypassed,
    /// A bucket was charged or moved by other figures than the hold sets.
    WrongFigures,
    /// A hold was lost before its end.
    HoldLost,
    /// What was admitted by an override is over the override's own bound.
    OverrideExceeded,
    /// A charge was applied to a limit that was locked.
    LockBypassed,
    /// A lock was set at another level than the one after the last.
    WrongLevel,
    /// A lock, or a level, was lost before its time.
    LockLost,
}

/// Something interesting that has to happen, or a run would prove nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Event {
    /// The busy form was applied to an existing bucket.
    Busy,
    /// The idle form was applied to an existing bucket.
    Idle,
    /// An exact form was applied that is no refund.
    Exact,
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
    /// A charge was given back.
    Refunded,
    /// A charge was given back after its caller had given up.
    RefundedLate,
    /// A call was refused, and nothing of its charge could be given back.
    NothingToRefund,
    /// A call was denied by a ban.
    Banned,
    /// A call was admitted by an override.
    AdmittedByOverride,
    /// A call removed what had ended of a hold.
    Lapsed,
    /// A call was admitted without a limit that only reports.
    LeftOut,
    /// A call that cost more than it was charged was charged the rest.
    ChargedMore,
    /// What was settled was sent again, and found settled.
    FoundSettled,
    /// A first lock was set.
    Locked,
    /// A lock was set that is longer than the first.
    LevelRaised,
    /// A lock was set after a level had been forgotten.
    LevelForgotten,
    /// A call moved the end of a lock.
    LockExtended,
    /// A call was denied by a lock.
    DeniedByLock,
    /// A call was admitted by what had been taken ahead.
    Leased,
    /// What a call gave back was kept for the next.
    TakenBack,
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

/// A cost that a caller was told is admitted, dated in true time by the instant that its write was made with, or by the start
/// of the window that it was counted in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Admission {
    pub(crate) limit: LimitName,
    pub(crate) secs: u64,
    pub(crate) cost: u64,
    /// The operator's override that it was admitted by.
    pub(crate) under: Option<usize>,
}

/// For every pair of admissions: cost in `[t_i, t_j] <= B + rate * (t_j - t_i + spread)`, in integers.
///
/// With several terms in play, `B` and `rate` are the largest of them. `admitted` is sorted by limit and time.
pub(crate) fn over_admitted(scenario: &Scenario, admitted: &[Admission]) -> bool {
    let admitted: Vec<_> = admitted.iter().collect();
    admitted
        .chunk_by(|a, b| a.limit == b.limit)
        .any(|of| exceeds(&leases::bounds(scenario, &of[0].limit), of, scenario))
}

/// The same, of what each override admitted, by its figures alone.
pub(crate) fn override_exceeded(scenario: &Scenario, admitted: &[Admission]) -> bool {
    scenario.overrides().enumerate().any(|(nth, (_, bucket, _))| {
        let under: Vec<_> = admitted.iter().filter(|a| a.under == Some(nth)).collect();
        exceeds(&[bucket], &under, scenario)
    })
}

fn exceeds(buckets: &[TokenBucket], admitted: &[&Admission], scenario: &Scenario) -> bool {
    // What calls turn out to cost more may go into debt.
    let Some(burst) = buckets.iter().map(|b| i128::from(b.burst() + b.debt())).max() else { return false };
    admitted.iter().enumerate().any(|(i, first)| {
        let mut cost = 0;
        admitted[i..].iter().any(|last| {
            cost += i128::from(last.cost);
            let span = i128::from(last.secs - first.secs) * 1_000_000_000 + i128::from(scenario.spread());
            // cost - burst > n / P * span for every rate n / P, thus for the largest.
            buckets.iter().all(|b| (cost - burst) * i128::from(b.period()) > i128::from(b.n()) * span)
        })
    })
}

/// Whether `write` takes tokens of a limit, told by what it does to the item `before` rather than by what its maker says.
pub(crate) fn takes_tokens(write: &Write, before: Option<&Item>, charges: &Charges) -> bool {
    write.limits.iter().any(|limit| takes_tokens_of(limit, before, charges))
}

/// The same, of one limit.
pub(crate) fn takes_tokens_of(limit: &LimitWrite, before: Option<&Item>, charges: &Charges) -> bool {
    match (&limit.assign, before.and_then(|i| i.buckets.get(&limit.limit))) {
        (Assign::Replace(next), Some(seen)) if !matches!(limit.expect, Expect::AbsentOr(_)) => {
            let charge = charges.charges().iter().find(|c| c.limit == limit.limit).unwrap();
            next.tat > next.terms.carry(&seen.terms, seen.state(), next.busy_period.since, charge.on_change).tat
        }
        _ => true,
    }
}

/// Whether every cost fits the item at `now`, by the terms that the decision names. Limits that only report do not matter.
pub(crate) fn fits(charges: &Charges, decision: &Decision, item: Option<&Item>, now: Timestamp) -> bool {
    let told = charges.charges().iter().zip(&decision.limits);
    told.filter(|(charge, _)| charge.mode == Mode::Enforce).all(|(charge, told)| {
        let found = item.and_then(|item| item.buckets.get(&charge.limit));
        let Some(bucket) = told.terms.figures.token_bucket() else {
            let fits = || windows::fits(&told.terms, found, now, charge.cost).unwrap();
            return logs::fits(&told.terms, found, now, charge.cost).unwrap_or_else(fits);
        };
        let (period, ns) = (i128::from(bucket.period()), i128::from(now.as_nanos()));
        let now_ticks = ns * i128::from(bucket.n());
        let tat = found.map_or(now_ticks, |found| {
            if found.terms == told.terms {
                found.tat.0
            } else {
                told.terms.carry(&found.terms, found.state(), now, charge.on_change).tat.0
            }
        });
        let used = tat.max(now_ticks) - now_ticks + i128::from(charge.cost) * period;
        told.outcome != Outcome::NeverFits && used <= i128::from(bucket.burst()) * period
    })
}

/// Whether whoever finds the item deleted, by the slowest clock, would have found every bucket full, and no hold.
///
/// The table deletes when its time in whole seconds is past `expires_at`, so not before `expires_at + 1 s`.
pub(crate) fn expires_in_time(scenario: &Scenario, item: &Item) -> bool {
    let deleted = item.expires_at.unwrap() + 1;
    let by_slowest = scenario.slowest(deleted - EPOCH);
    let by_slowest = |b: &Bucket| {
        let is_full = |bucket: TokenBucket| b.tat.0 <= i128::from(by_slowest.as_nanos()) * i128::from(bucket.n());
        b.terms.figures.token_bucket().map_or_else(|| logs::is_over(b, by_slowest).unwrap(), is_full)
    };
    item.buckets.values().all(by_slowest)
        && nothing_is_lost(scenario, item, deleted_at(item))
        && item.hold.as_ref().is_none_or(|hold| hold.until() <= Timestamp::from_secs(deleted))
}

/// What `hold` sets for longer than until `now`, whatever its id.
fn in_force(hold: Option<&Hold>, now: Timestamp) -> Option<Hold> {
    hold.and_then(|hold| hold.in_force(now)).map(|hold| Hold { id: 0, ..hold })
}

/// Whether everything that is still in force by the fastest clock was left in force.
pub(crate) fn keeps_hold(scenario: &Scenario, before: Option<&Item>, next: &Item, secs: u64) -> bool {
    let now = scenario.fastest(secs);
    in_force(before.and_then(|item| item.hold.as_ref()), now) == in_force(next.hold.as_ref(), now)
}

/// Whether the item is under a ban that is in force by the fastest clock.
pub(crate) fn bypasses_ban(scenario: &Scenario, before: Option<&Item>, secs: u64) -> bool {
    let until = before.and_then(|item| item.hold.as_ref()?.banned_until);
    until.is_some_and(|until| until > scenario.fastest(secs))
}

/// Whether the limits that `write` charged or moved go by the operator's figures just where the item has some.
pub(crate) fn goes_by_hold(write: &Write, next: &Item) -> bool {
    write.limits.iter().all(|limit| {
        let terms = &next.buckets[&limit.limit].terms;
        let set = next.hold.as_ref().and_then(|hold| hold.overrides.get(&limit.limit));
        set.map_or(!terms.is_override(), |set| terms.is_override() && terms.figures == set.figures)
    })
}
