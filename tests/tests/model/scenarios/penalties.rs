//! Callers that are locked out for longer each time.

use super::holds;
use crate::properties::Event;
use crate::scenario::{Caller, Scenario, charge, charges, penalised, rule, terms};
use tollgate_core::{Charge, Mode, TokenBucket};

/// One call in two seconds; locks of 2 s, then 4 s; a level is forgotten in 3 s.
fn call(cost: u64) -> tollgate_core::Charges {
    penalised(&terms(1, "", 1, 2000, 1), cost, rule(2, 2, 4, 3))
}

fn caller(calls: usize) -> Caller {
    Caller::new(vec![call(1); calls])
}

#[test]
fn offenders_at_once() {
    let callers = vec![caller(2), caller(1), caller(1)];
    let events = [Event::Locked, Event::DeniedByLock, Event::Denied, Event::AppliedLate];
    holds(Scenario::new(callers, &[2], 1), &events, 24_800);
}

#[test]
fn an_offender_again_and_again() {
    let callers = vec![caller(4), caller(1)];
    let events = [Event::LevelRaised, Event::LevelForgotten, Event::DeniedByLock, Event::Idle];
    holds(Scenario::new(callers, &[2, 5], 2), &events, 140_000);
}

#[test]
fn offenders_whose_clocks_differ() {
    let callers = vec![caller(2).ahead(-1), caller(2).ahead(1)];
    let events = [Event::Locked, Event::DeniedByLock, Event::AppliedLate];
    holds(Scenario::new(callers, &[1, 3], 2), &events, 97_000);
}

#[test]
fn lost_locks_and_crashes() {
    let callers = vec![caller(2), caller(1)];
    let events = [Event::LostAfterApply, Event::Locked, Event::AppliedLate];
    holds(Scenario::new(callers, &[3], 1).losing(1).crashing(1), &events, 7_600);
}

#[test]
fn a_lock_outlives_the_limit() {
    let long = |cost| penalised(&terms(1, "", 1, 1000, 1), cost, rule(2, 2, 4, 400));
    let callers = vec![Caller::new(vec![long(1); 2]).ahead(-1), Caller::new(vec![long(1)]).ahead(1)];
    let events = [Event::Deleted, Event::Locked, Event::AppliedLate];
    let scenario = Scenario::new(callers, &[3, 800], 2).deleting();
    holds(scenario.arriving_within(TokenBucket::LATEST_ARRIVAL_SECS), &events, 7_600);
}

#[test]
fn locks_that_begin_anew_and_calls_within_transactions() {
    let extending = penalised(&terms(1, "", 1, 2000, 1), 1, rule(2, 2, 4, 3).extending(true));
    let callers = vec![Caller::new(vec![extending.clone(); 3]), Caller::new(vec![extending; 2]).exactly()];
    let events = [Event::LockExtended, Event::DeniedByLock, Event::Exact, Event::AppliedLate];
    holds(Scenario::new(callers, &[1, 3], 2), &events, 472_000);
}

#[test]
fn a_shadow_is_locked_alike() {
    let (enforced, shadow) = (terms(1, "", 1, 1000, 2), terms(1, "", 1, 2000, 1));
    let both = || {
        let shadow = Charge { mode: Mode::Shadow, penalty: Some(rule(2, 2, 4, 3)), ..charge("s", &shadow, 1) };
        charges(vec![charge("e", &enforced, 1), shadow])
    };
    let callers = vec![Caller::new(vec![both(), both()]), Caller::new(vec![both(), both()])];
    let events = [Event::LeftOut, Event::Locked, Event::Denied, Event::AppliedLate];
    holds(Scenario::new(callers, &[2, 3], 2), &events, 109_000);
}
