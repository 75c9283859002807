//! What an operator's hold needs of every form.

use super::caught;
use crate::mutant::Mutant;
use crate::properties::Fault;
use crate::scenario::{Change, Scenario, figures, limit, spender, terms};
use tollgate_core::Terms;

fn one_a_second() -> Terms {
    terms(1, "", 1, 1000, 1)
}

#[test]
fn busy_form_needs_the_hold() {
    let scenario = Scenario::new(vec![spender(&one_a_second(), &[1])], &[1], 0).operated(vec![Change::Ban(100)]);
    caught(&scenario, &[(Mutant::BusyWithoutHold, Fault::BanBypassed, 4)]);
}

#[test]
fn idle_form_needs_the_hold() {
    let scenario = Scenario::new(vec![spender(&one_a_second(), &[1, 1])], &[2], 1).operated(vec![Change::Ban(100)]);
    caught(&scenario, &[(Mutant::IdleWithoutHold, Fault::BanBypassed, 8)]);
}

#[test]
fn exact_form_needs_the_hold() {
    let scenario = Scenario::new(vec![spender(&one_a_second(), &[1]).exactly()], &[1], 0);
    let scenario = scenario.operated(vec![Change::Ban(100)]);
    caught(&scenario, &[(Mutant::ExactWithoutHold, Fault::BanBypassed, 4)]);
}

#[test]
fn an_override_is_in_force_at_once() {
    let t = terms(1, "", 1, 1000, 3);
    let tight = Change::Override(limit("l"), figures(1, 1000, 1), 100);
    let callers = vec![spender(&t, &[1]), spender(&t, &[1])];
    let scenario = Scenario::new(callers, &[1], 0).operated(vec![tight]);
    let guard = Mutant::BusyWithoutHold;
    caught(&scenario, &[(guard, Fault::WrongFigures, 4), (guard, Fault::OverrideExceeded, 8)]);
}

#[test]
fn a_lifted_override_is_not_gone_by_any_more() {
    let t = terms(1, "", 1, 1000, 1);
    let loose = Change::Override(limit("l"), figures(1, 1000, 3), 100);
    let scenario = Scenario::new(vec![spender(&t, &[1, 1])], &[1], 0).operated(vec![loose, Change::Lift]);
    caught(&scenario, &[(Mutant::HoldMayBeAbsent, Fault::WrongFigures, 8)]);
}

/// A ban that has ended is followed by another.
fn two_bans() -> Scenario {
    let scenario = Scenario::new(vec![spender(&one_a_second(), &[1, 1])], &[1], 1);
    scenario.operated(vec![Change::Ban(1), Change::Ban(100)])
}

#[test]
fn a_hold_is_known_by_its_value() {
    let guard = Mutant::AnyHold;
    caught(&two_bans(), &[(guard, Fault::BanBypassed, 9), (guard, Fault::HoldLost, 9)]);
}

#[test]
fn what_has_ended_is_removed_only_as_it_was_seen() {
    caught(&two_bans(), &[(Mutant::LapseWithoutHold, Fault::HoldLost, 9)]);
}

#[test]
fn expiry_needs_the_end_of_the_hold() {
    let scenario = Scenario::new(vec![spender(&one_a_second(), &[1])], &[370], 1).deleting();
    let scenario = scenario.operated(vec![Change::Ban(400)]);
    let guard = Mutant::ExpiresBeforeHold;
    caught(&scenario, &[(guard, Fault::ExpiresTooEarly, 2), (guard, Fault::HoldLost, 4)]);
}

#[test]
fn a_guessed_denial_by_a_ban_asks_for_no_ban() {
    let scenario = Scenario::new(vec![spender(&one_a_second(), &[1, 1])], &[1], 0).operated(vec![Change::Ban(100)]);
    caught(&scenario, &[(Mutant::ProbesUnderBan, Fault::BanBypassed, 7)]);
}
