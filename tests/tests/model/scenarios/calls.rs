//! Calls alone, under contention, clock skew, loss, expiry and changes of terms.

use super::holds;
use crate::properties::Event;
use crate::scenario::{Caller, Scenario, caller, charge, charges, single, spender, terms};
use tollgate_core::{Charge, OnChange, Terms, TokenBucket};

#[test]
fn contention() {
    let t = terms(1, "", 1, 1000, 2);
    let callers = vec![spender(&t, &[1, 1]), spender(&t, &[1, 1]), spender(&t, &[2])];
    let events = [Event::Busy, Event::Idle, Event::Denied, Event::AdmittedAfterRefusal];
    holds(Scenario::new(callers, &[1, 3], 1), &events, 192_000);
}

#[test]
fn clock_skew() {
    let t = terms(1, "", 1, 1000, 2);
    let (one, two) = (single(&t, 1), single(&t, 2));
    let callers = vec![caller(-1, 2, &one), caller(0, 1, &two), caller(1, 2, &one)];
    let events = [Event::Busy, Event::Idle, Event::Denied, Event::AdmittedAfterRefusal];
    holds(Scenario::new(callers, &[1, 3], 1), &events, 226_000);
}

#[test]
fn lost_replies_late_requests_and_crashes() {
    let t = terms(1, "", 1, 1000, 2);
    let callers = vec![spender(&t, &[1, 1]), spender(&t, &[1]), spender(&t, &[1])];
    let events = [Event::LostAfterApply, Event::AppliedLate, Event::Denied];
    holds(Scenario::new(callers, &[1], 1).losing(1).crashing(1), &events, 172_000);
}

#[test]
fn expiry() {
    let one = single(&terms(1, "", 1, 1000, 1), 1);
    let callers = vec![caller(-1, 2, &one), caller(1, 2, &one)];
    let events = [Event::Deleted, Event::Idle, Event::AppliedLate, Event::Denied];
    holds(Scenario::new(callers, &[1, 366], 3).deleting(), &events, 352_000);
}

#[test]
fn a_newer_revision_beside_an_older_one() {
    let (old, new) = (terms(1, "", 1, 2000, 2), terms(2, "", 1, 1000, 3));
    let callers = vec![spender(&old, &[1, 1]), spender(&new, &[1]), spender(&new, &[2])];
    let events = [Event::Exact, Event::FollowedNewer, Event::Denied, Event::AdmittedAfterRefusal];
    holds(Scenario::new(callers, &[1, 2], 1), &events, 100_000);
}

#[test]
fn a_newer_revision_with_clock_skew() {
    let (old, new) = (single(&terms(1, "", 1, 2000, 2), 1), single(&terms(2, "", 1, 1000, 3), 1));
    let callers = vec![caller(-1, 2, &old), caller(1, 3, &new)];
    let events = [Event::Exact, Event::FollowedNewer, Event::Idle, Event::AppliedLate];
    holds(Scenario::new(callers, &[1, 2], 2), &events, 253_000);
}

#[test]
fn two_plans_alternate() {
    let (slow, fast) = (terms(1, "slow", 1, 1000, 2), terms(1, "fast", 2, 1000, 3));
    let callers = vec![spender(&slow, &[1, 2]), spender(&fast, &[1, 3, 1])];
    let events = [Event::Exact, Event::Idle, Event::Denied, Event::AdmittedAfterRefusal];
    holds(Scenario::new(callers, &[1, 2], 2), &events, 465_000);
}

#[test]
fn two_plans_in_different_ticks_alternate() {
    let (slow, fast) = (terms(1, "slow", 1, 1000, 2), terms(1, "fast", 3, 1000, 3));
    let callers = vec![spender(&slow, &[1]), spender(&fast, &[3, 1]), spender(&slow, &[2])];
    let events = [Event::Exact, Event::Busy, Event::Denied, Event::AdmittedAfterRefusal];
    holds(Scenario::new(callers, &[1], 1), &events, 69_000);
}

/// A call moves the limit `a` to its plan while `b` denies it, and a newer revision gives `b` room before it hears.
fn room_while_a_denial_settles() -> Scenario {
    let (free, pro) = (terms(1, "free", 1, 1000, 2), terms(1, "pro", 2, 1000, 3));
    // Equal memories: a longer one would have the settling write refused for its horizon.
    let (old, new) = (terms(1, "", 1, 4000, 1), terms(2, "", 3, 4000, 3));
    let both = |a: &Terms| Caller::new(vec![charges(vec![charge("a", a, 1), charge("b", &old, 1)])]);
    let keep = charge("b", &new, 1);
    let raise = Caller::new(vec![charges(vec![Charge { on_change: OnChange::Keep, ..keep }])]);
    Scenario::new(vec![both(&free), both(&pro), raise], &[1], 1)
}

#[test]
fn a_limit_gets_room_while_a_denial_settles() {
    let events = [Event::Exact, Event::Denied, Event::FollowedNewer, Event::AdmittedAfterRefusal];
    holds(room_while_a_denial_settles(), &events, 10_000);
}

/// Two limits of one item, one forgotten after 364 s and one after 373 s; requests arrive within 360 s or never.
fn two_limits() -> Scenario {
    let (short, long) = (terms(1, "", 1, 1000, 1), terms(1, "", 1, 10_000, 1));
    let only_short = Caller::new(vec![charges(vec![charge("short", &short, 1)])]);
    let both = Caller::new(vec![charges(vec![charge("short", &short, 1), charge("long", &long, 1)]); 2]);
    let only_long = Caller::new(vec![charges(vec![charge("long", &long, 1)])]);
    Scenario::new(vec![only_short, both, only_long], &[1, 376], 2).deleting()
}

#[test]
fn two_limits_with_different_memories() {
    let events = [Event::Deleted, Event::Busy, Event::Denied, Event::AdmittedAfterRefusal];
    holds(two_limits().arriving_within(TokenBucket::LATEST_ARRIVAL_SECS), &events, 166_000);
}

/// A fast plan by a clock that is behind and a slow one by a clock that is ahead, at one instant.
pub(crate) fn two_plans_and_clocks_apart() -> Scenario {
    let (slow, fast) = (terms(1, "slow", 1, 1000, 12), terms(1, "fast", 2, 1000, 12));
    let behind = spender(&fast, &[12, 4]).ahead(-1);
    let ahead = spender(&slow, &[4, 2]).ahead(1);
    Scenario::new(vec![behind, ahead], &[1], 0)
}

#[test]
fn two_plans_alternate_with_clock_skew() {
    holds(two_plans_and_clocks_apart(), &[Event::Exact], 600);
}
