//! Logs, and charges that are settled when it is known what the call has come to.

use super::holds;
use crate::properties::Event;
use crate::scenario::{Caller, Scenario, caller, log, single, spender, terms};
use tollgate_core::{Terms, TokenBucket};

#[test]
fn contention_over_a_log() {
    let t = log(1, 2, 2);
    let callers = vec![spender(&t, &[1, 1]), spender(&t, &[1, 1]), spender(&t, &[2])];
    let events = [Event::Busy, Event::Exact, Event::Denied, Event::AdmittedAfterRefusal];
    holds(Scenario::new(callers, &[1, 2], 1), &events, 167_000);
}

#[test]
fn clocks_apart_and_expiry_over_a_log() {
    let one = single(&log(1, 2, 3), 1);
    let callers = vec![caller(-1, 2, &one), caller(1, 2, &one)];
    let events = [Event::Deleted, Event::AppliedLate, Event::Denied];
    holds(Scenario::new(callers, &[2, 370], 2).deleting().arriving_within(360), &events, 59_000);
}

#[test]
fn calls_that_succeed_beside_a_log_of_failures() {
    let t = log(1, 2, 2);
    let callers = vec![spender(&t, &[1]).refusable(), spender(&t, &[1, 1]), spender(&t, &[1]).refused()];
    let events = [Event::Refunded, Event::RefundedLate, Event::Denied, Event::Exact];
    holds(Scenario::new(callers, &[2], 1), &events, 53_000);
}

#[test]
fn a_newer_revision_and_a_transaction_over_a_log() {
    let (old, new) = (log(1, 2, 2), log(2, 3, 2));
    let callers = vec![spender(&old, &[1, 1]), spender(&new, &[1, 2]).exactly(), spender(&new, &[1])];
    let events = [Event::Exact, Event::FollowedNewer, Event::AdmittedAfterRefusal];
    holds(Scenario::new(callers, &[2], 1), &events, 404_000);
}

#[test]
fn a_log_whose_entries_are_settled_twice_at_most() {
    let t = log(1, 2, 2);
    let callers = vec![spender(&t, &[1, 1]).settling(0), spender(&t, &[1, 1])];
    let events = [Event::Refunded, Event::FoundSettled, Event::Denied];
    holds(Scenario::new(callers, &[2], 1).losing(1), &events, 79_000);
}

/// A caller whose calls cost less than they are charged, with two others.
pub(crate) fn less() -> Vec<Caller> {
    let t = terms(1, "", 1, 1000, 3);
    vec![spender(&t, &[3]).settling(1), spender(&t, &[2, 1]).ahead(1), spender(&t, &[1])]
}

#[test]
fn calls_that_cost_less_than_they_were_charged() {
    let events = [Event::Refunded, Event::FoundSettled, Event::Denied];
    holds(Scenario::new(less(), &[1], 1).losing(1), &events, 174_000);
}

/// A caller whose calls cost more than they are charged, with another.
pub(crate) fn more(debt: u64) -> Vec<Caller> {
    let bucket = TokenBucket::new(2, 1_000_000_000, 2).unwrap().with_debt(debt).unwrap();
    let t = Terms::new(1, bucket);
    vec![spender(&t, &[1]).settling(3), spender(&t, &[2, 1]).ahead(-1)]
}

#[test]
fn calls_that_cost_more_than_they_were_charged() {
    let events = [Event::ChargedMore, Event::FoundSettled, Event::Denied, Event::Exact];
    holds(Scenario::new(more(1), &[1, 3], 2).losing(1), &events, 59_000);
}

#[test]
fn settling_beside_expiry() {
    let callers = more(1).into_iter().map(|caller| caller.ahead(1)).collect();
    let events = [Event::ChargedMore, Event::Deleted];
    holds(Scenario::new(callers, &[1, 430], 2).deleting(), &events, 30_000);
}
