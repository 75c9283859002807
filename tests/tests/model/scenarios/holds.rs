//! Operators who ban the key or give it other figures, while callers go on.

use super::holds;
use crate::properties::Event;
use crate::scenario::{Caller, Change, Scenario, charge, charges, figures, limit, spender, terms};
use tollgate_core::TokenBucket;

/// The only limit gets other figures until then.
fn set(figures: TokenBucket, until: u64) -> Change {
    Change::Override(limit("l"), figures, until)
}

#[test]
fn a_ban_that_is_lifted() {
    let t = terms(1, "", 1, 1000, 2);
    let callers = vec![spender(&t, &[1, 1]), spender(&t, &[2])];
    let events = [Event::Banned, Event::AppliedLate, Event::Denied, Event::AdmittedAfterRefusal];
    holds(Scenario::new(callers, &[1, 2], 2).operated(vec![Change::Ban(100), Change::Lift]), &events, 196_000);
}

#[test]
fn a_ban_that_ends_by_clocks_that_differ() {
    let t = terms(1, "", 1, 1000, 1);
    let callers = vec![spender(&t, &[1, 1]).ahead(-1), spender(&t, &[1]).ahead(1)];
    let events = [Event::Banned, Event::Lapsed, Event::Idle, Event::AppliedLate];
    holds(Scenario::new(callers, &[1, 2], 2).operated(vec![Change::Ban(2)]), &events, 79_000);
}

#[test]
fn a_ban_outlives_the_limits() {
    let t = terms(1, "", 1, 1000, 1);
    let callers = vec![spender(&t, &[1, 1]), spender(&t, &[1])];
    let events = [Event::Banned, Event::Lapsed, Event::Deleted, Event::AppliedLate];
    holds(
        Scenario::new(callers, &[1, 400], 3)
            .deleting()
            .arriving_within(TokenBucket::LATEST_ARRIVAL_SECS)
            .operated(vec![Change::Ban(402)]),
        &events,
        200_000,
    );
}

#[test]
fn a_tight_override_that_is_lifted() {
    let t = terms(1, "", 2, 1000, 3);
    let callers = vec![spender(&t, &[2, 1]), spender(&t, &[1])];
    let events = [Event::AdmittedByOverride, Event::Exact, Event::Denied, Event::AppliedLate];
    holds(
        Scenario::new(callers, &[1], 2).operated(vec![set(figures(1, 1000, 1), 100), Change::Lift]),
        &events,
        106_000,
    );
}

#[test]
fn a_loose_override_in_other_ticks_that_ends_by_clocks_that_differ() {
    let t = terms(1, "", 1, 1000, 2);
    let callers = vec![spender(&t, &[1]).ahead(-1), spender(&t, &[3, 1]).ahead(1)];
    let events = [Event::AdmittedByOverride, Event::Lapsed, Event::Exact, Event::Denied];
    holds(Scenario::new(callers, &[1, 2], 2).operated(vec![set(figures(3, 1000, 4), 2)]), &events, 38_000);
}

/// The newer revision forgives half of the debt; the override must not have it spent by the older one.
#[test]
fn an_override_among_revisions() {
    let (old, new) = (terms(1, "", 1, 1000, 4), terms(2, "", 1, 1000, 2));
    let callers = vec![spender(&new, &[1, 1]), spender(&old, &[4, 2])];
    let events = [Event::AdmittedByOverride, Event::Exact, Event::Denied];
    holds(
        Scenario::new(callers, &[1], 1).operated(vec![set(figures(2, 1000, 2), 100), Change::Lift]),
        &events,
        143_000,
    );
}

#[test]
fn an_override_then_a_ban_of_two_limits() {
    let (a, b) = (terms(1, "", 1, 1000, 1), terms(1, "", 1, 2000, 2));
    let both = || charges(vec![charge("a", &a, 1), charge("b", &b, 1)]);
    let callers = vec![Caller::new(vec![both(), both()]), Caller::new(vec![charges(vec![charge("b", &b, 2)])])];
    let set = Change::Override(limit("a"), figures(3, 1000, 2), 1);
    let events = [Event::AdmittedByOverride, Event::Lapsed, Event::Banned, Event::Denied];
    holds(Scenario::new(callers, &[1], 2).operated(vec![set, Change::Ban(2)]), &events, 87_000);
}

#[test]
fn refunds_under_holds() {
    let t = terms(1, "", 1, 1000, 2);
    let callers = vec![spender(&t, &[2]).refused(), spender(&t, &[1, 1])];
    let events = [Event::Refunded, Event::Banned, Event::RefundedLate, Event::AdmittedByOverride];
    let changes = vec![set(figures(2, 1000, 3), 1), Change::Ban(2)];
    holds(Scenario::new(callers, &[1], 2).operated(changes), &events, 221_000);
}
