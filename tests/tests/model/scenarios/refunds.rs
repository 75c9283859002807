//! Calls that another key may deny after they were charged, so that the charge is given back.

use super::holds;
use crate::properties::Event;
use crate::scenario::{Scenario, spender, terms};

#[test]
fn refunds_under_contention() {
    let t = terms(1, "", 1, 1000, 2);
    let callers = vec![spender(&t, &[2, 1]).refusable(), spender(&t, &[1]).refusable(), spender(&t, &[2])];
    let events = [Event::Refunded, Event::RefundedLate, Event::NothingToRefund, Event::Denied];
    holds(Scenario::new(callers, &[1, 2], 1), &events, 139_000);
}

#[test]
fn refunds_with_clock_skew() {
    let t = terms(1, "", 1, 1000, 3);
    let callers =
        vec![spender(&t, &[3]).ahead(-1).refusable(), spender(&t, &[1, 2]).ahead(1).refusable(), spender(&t, &[3])];
    let events = [Event::Refunded, Event::NothingToRefund, Event::Idle, Event::Denied];
    holds(Scenario::new(callers, &[1], 2), &events, 268_000);
}

#[test]
fn refunds_that_are_lost_or_late_and_callers_that_crash_before() {
    let t = terms(1, "", 1, 1000, 2);
    let callers = vec![spender(&t, &[2]).refused(), spender(&t, &[1, 2])];
    let events = [Event::Refunded, Event::RefundedLate, Event::LostAfterApply];
    holds(Scenario::new(callers, &[1, 2], 2).losing(1).crashing(1), &events, 69_000);
}

#[test]
fn refunds_while_plans_alternate() {
    let (slow, fast) = (terms(1, "slow", 1, 1000, 2), terms(1, "fast", 2, 1000, 3));
    let callers = vec![spender(&slow, &[2, 1]).refusable(), spender(&fast, &[2, 1]).refusable()];
    let events = [Event::Refunded, Event::RefundedLate, Event::NothingToRefund, Event::Exact];
    holds(Scenario::new(callers, &[1], 2), &events, 214_000);
}

#[test]
fn refunds_beside_a_newer_revision() {
    let (old, new) = (terms(1, "", 1, 2000, 2), terms(2, "", 1, 1000, 3));
    let callers = vec![spender(&old, &[2, 1]).refusable(), spender(&new, &[1, 2]).refusable()];
    let events = [Event::Refunded, Event::RefundedLate, Event::FollowedNewer, Event::Exact];
    holds(Scenario::new(callers, &[1, 2], 1), &events, 73_000);
}

#[test]
fn refunds_and_expiry() {
    let t = terms(1, "", 1, 1000, 2);
    let callers = vec![spender(&t, &[2, 1]).ahead(-1).refusable(), spender(&t, &[1, 2]).ahead(1)];
    let events = [Event::Refunded, Event::RefundedLate, Event::Deleted];
    holds(Scenario::new(callers, &[1, 366], 2).deleting(), &events, 163_000);
}
