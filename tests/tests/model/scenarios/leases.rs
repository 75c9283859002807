//! Callers that take tokens ahead.

use super::holds;
use crate::properties::Event;
use crate::scenario::{Change, Scenario, spender, terms};

#[test]
fn leases_beside_calls_that_ask() {
    let t = terms(1, "", 1, 1000, 3).leased();
    let callers = vec![spender(&t, &[1, 1]).leasing(2), spender(&t, &[1]).leasing(1), spender(&t, &[2])];
    holds(Scenario::new(callers, &[1, 2], 1), &[Event::Leased, Event::Denied, Event::Busy], 21_895);
}

#[test]
fn leases_with_clock_skew() {
    let t = terms(1, "", 1, 1000, 3).leased();
    let callers = vec![spender(&t, &[1, 1]).ahead(-1).leasing(2), spender(&t, &[1, 1]).ahead(1).leasing(2)];
    holds(Scenario::new(callers, &[1, 2], 2), &[Event::Leased, Event::Denied, Event::Idle], 34_184);
}

#[test]
fn leases_that_are_lost_or_late_and_callers_that_crash() {
    let t = terms(1, "", 1, 1000, 3).leased();
    let callers = vec![spender(&t, &[1, 1]).leasing(2), spender(&t, &[2]).leasing(1)];
    let events = [Event::Leased, Event::LostAfterApply, Event::AppliedLate];
    holds(Scenario::new(callers, &[1, 2], 1).losing(1).crashing(1), &events, 8_805);
}

#[test]
fn leases_and_calls_that_are_refused_elsewhere() {
    let t = terms(1, "", 1, 1000, 3).leased();
    let callers = vec![spender(&t, &[2, 1]).leasing(1).refusable(), spender(&t, &[1, 2]).leasing(1).refusable()];
    holds(Scenario::new(callers, &[1, 2], 2), &[Event::Leased, Event::TakenBack, Event::Denied], 86_263);
}

#[test]
fn leases_while_plans_alternate() {
    let (slow, fast) = (terms(1, "slow", 1, 1000, 2).leased(), terms(1, "fast", 2, 1000, 3).leased());
    let callers = vec![spender(&slow, &[1, 1, 1]).leasing(1), spender(&fast, &[1, 1]).leasing(2)];
    holds(Scenario::new(callers, &[1], 2), &[Event::Leased, Event::Exact, Event::Denied], 63_737);
}

#[test]
fn leases_beside_a_newer_revision() {
    let (old, new) = (terms(1, "", 1, 2000, 3).leased(), terms(2, "", 1, 1000, 2).leased());
    let callers = vec![spender(&old, &[1, 1]).leasing(2), spender(&new, &[1, 1]).leasing(1)];
    holds(Scenario::new(callers, &[1, 2], 2), &[Event::Leased, Event::FollowedNewer, Event::Exact], 49_535);
}

#[test]
fn leases_and_expiry() {
    let t = terms(1, "", 1, 1000, 3).leased();
    let callers = vec![spender(&t, &[1, 1]).ahead(-1).leasing(2), spender(&t, &[1, 1]).ahead(1).leasing(2)];
    holds(Scenario::new(callers, &[1, 366], 2).deleting(), &[Event::Leased, Event::Deleted], 47_576);
}

#[test]
fn leases_and_a_ban() {
    let t = terms(1, "", 1, 1000, 3).leased();
    let callers = vec![spender(&t, &[1, 1]).leasing(2), spender(&t, &[2])];
    let scenario = Scenario::new(callers, &[1, 2], 2).operated(vec![Change::Ban(2)]);
    holds(scenario, &[Event::Leased, Event::Banned, Event::Denied], 52_305);
}
