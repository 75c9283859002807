//! What locks need of every form.

use super::caught;
use crate::mutant::Mutant;
use crate::properties::Fault;
use crate::scenario::{Caller, Scenario, penalised, rule, terms};

/// A call in ten seconds, two at once; a first lock of 15 s, and nothing is remembered for longer than by the limit, whose horizon
/// would else refuse whoever has not seen the lock.
fn calls(costs: &[u64]) -> Caller {
    let call = |cost| penalised(&terms(1, "", 1, 10_000, 2), cost, rule(15, 2, 30, 1));
    Caller::new(costs.iter().map(|cost| call(*cost)).collect())
}

#[test]
fn busy_form_needs_the_lock() {
    let scenario = Scenario::new(vec![calls(&[2, 1]), calls(&[1])], &[12], 1);
    caught(&scenario, &[(Mutant::ChargesWhileLocked, Fault::LockBypassed, 9)]);
}

#[test]
fn idle_form_needs_the_lock() {
    let scenario = Scenario::new(vec![calls(&[1, 1]), calls(&[2])], &[12], 1);
    caught(&scenario, &[(Mutant::ChargesWhileLocked, Fault::LockBypassed, 9)]);
}

#[test]
fn exact_form_needs_the_lock() {
    let scenario = Scenario::new(vec![calls(&[1, 2]), calls(&[1]).exactly()], &[1], 0);
    caught(&scenario, &[(Mutant::ChargesWhileLocked, Fault::LockBypassed, 11)]);
}

#[test]
fn a_lock_is_set_on_what_was_seen() {
    let scenario = Scenario::new(vec![calls(&[2, 2]), calls(&[2])], &[1], 1);
    caught(&scenario, &[(Mutant::LocksUnseen, Fault::WrongLevel, 12)]);
}

#[test]
fn levels_need_to_be_remembered() {
    let call = |cost| penalised(&terms(1, "", 1, 1000, 2), cost, rule(6, 2, 12, 400));
    let scenario = Scenario::new(vec![Caller::new(vec![call(2), call(2)])], &[370], 1).deleting();
    let guard = Mutant::ForgetsLevels;
    caught(&scenario, &[(guard, Fault::ExpiresTooEarly, 7), (guard, Fault::LockLost, 9)]);
}
