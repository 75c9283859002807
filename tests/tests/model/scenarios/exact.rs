//! Charges within a transaction, whose condition is the very state that was seen, beside calls that add blindly.

use super::holds;
use crate::properties::Event;
use crate::scenario::{Change, Scenario, spender, terms};

#[test]
fn exact_charges_beside_blind_ones() {
    let t = terms(1, "", 1, 1000, 2);
    let callers = vec![spender(&t, &[1, 1]).exactly(), spender(&t, &[1, 1]), spender(&t, &[2]).exactly()];
    let events = [Event::Exact, Event::Busy, Event::Denied, Event::AdmittedAfterRefusal];
    holds(Scenario::new(callers, &[1, 3], 1), &events, 256_000);
}

#[test]
fn exact_charges_with_clock_skew_losses_and_refunds() {
    let t = terms(1, "", 1, 1000, 2);
    let callers = vec![spender(&t, &[1, 1]).ahead(1).exactly().refusable(), spender(&t, &[2, 1]).ahead(-1).refusable()];
    let events = [Event::Exact, Event::Refunded, Event::LostAfterApply, Event::AppliedLate];
    holds(Scenario::new(callers, &[1, 2], 1).losing(1), &events, 253_000);
}

#[test]
fn exact_charges_while_plans_alternate_under_a_ban() {
    let (slow, fast) = (terms(1, "slow", 1, 1000, 2), terms(1, "fast", 2, 1000, 3));
    let callers = vec![spender(&slow, &[1, 2]).exactly(), spender(&fast, &[1])];
    let events = [Event::Exact, Event::Banned, Event::Lapsed, Event::Denied];
    holds(Scenario::new(callers, &[1], 2).operated(vec![Change::Ban(1)]), &events, 34_000);
}
