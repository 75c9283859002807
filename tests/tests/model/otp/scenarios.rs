//! The real protocol: every property holds in every state.

use super::referee::Event;
use super::scenario::Typed::{First, Right, Wrong};
use super::scenario::{Keyring, SHORT_WINDOW, Scenario, sends, types};
use super::table::Table;
use crate::search;
use std::sync::Arc;

/// Visits every state of `scenario`. All properties hold, all of `events` happen, and there are at least `states` states.
fn holds(scenario: Scenario, events: &[Event], states: usize) {
    let table = Table::new(scenario);
    let happened = Arc::clone(&table.happened);
    let visited = search::visit(table);
    let happened = happened.lock().unwrap();
    for event in events {
        assert!(happened.contains(event), "{event:?} never happened");
    }
    assert!(visited >= states, "only {visited} states");
}

pub(crate) fn right_at_once() -> Scenario {
    Scenario::new(vec![sends(1), types(&[Right]), types(&[Right]), types(&[Right])], &[], 0)
}

pub(crate) fn wrong_at_once() -> Scenario {
    Scenario::new(vec![sends(1), types(&[Wrong]), types(&[Wrong]), types(&[Wrong]), types(&[Right])], &[], 0)
}

pub(crate) fn resent() -> Scenario {
    Scenario::new(vec![sends(2), types(&[Right, First]), types(&[Right])], &[31], 1)
}

pub(crate) fn senders_at_once() -> Scenario {
    Scenario::new(vec![sends(2), sends(2), types(&[Right])], &[31], 2)
}

pub(crate) fn budget() -> Scenario {
    Scenario::new(vec![sends(3), types(&[Wrong, Wrong, Wrong, Wrong])], &[61], 2)
}

pub(crate) fn windows() -> Scenario {
    let (sender, typist) = (sends(2).ahead(1), types(&[Wrong, Wrong, Wrong, Wrong]).ahead(-1));
    Scenario::new(vec![sender, typist], &[240, 61], 2)
}

pub(crate) fn short_windows() -> Scenario {
    Scenario::new(vec![sends(2), types(&[Right])], &[61, 30], 2).by(SHORT_WINDOW)
}

pub(crate) fn expiry() -> Scenario {
    Scenario::new(vec![sends(1).ahead(1), types(&[Right, Right]).ahead(-1), types(&[Wrong])], &[1, 61], 3)
}

pub(crate) fn losses() -> Scenario {
    Scenario::new(vec![sends(2), types(&[Right, Wrong]), types(&[Right])], &[31], 2).losing(1)
}

pub(crate) fn deletion() -> Scenario {
    Scenario::new(vec![sends(2).ahead(1), sends(1).ahead(-1), types(&[Wrong, Right])], &[340], 2).deleting()
}

pub(crate) fn rotation() -> Scenario {
    let people = vec![
        sends(1),
        sends(1).with(Keyring::Both),
        types(&[Right, Right]).with(Keyring::Both),
        types(&[Right]).with(Keyring::New),
    ];
    Scenario::new(people, &[31], 1)
}

#[test]
fn of_any_number_of_right_codes_at_once_one_is_verified() {
    holds(right_at_once(), &[Event::Verified, Event::NoActive, Event::CodeLocked, Event::UseRefused], 470);
}

#[test]
fn wrong_codes_at_once_are_as_few_as_in_turn() {
    holds(wrong_at_once(), &[Event::Verified, Event::WrongCode, Event::CodeLocked], 1_200);
}

#[test]
fn a_new_code_takes_the_place_of_the_old_one() {
    holds(resent(), &[Event::Resent, Event::Verified, Event::NoActive, Event::UseRefused, Event::TooSoon], 6_300);
}

#[test]
fn of_any_number_of_codes_wished_for_at_once_one_is_sent() {
    holds(senders_at_once(), &[Event::Resent, Event::TooSoon, Event::Verified], 64_000);
}

#[test]
fn a_new_code_brings_no_new_budget() {
    holds(budget(), &[Event::AccountLocked, Event::CodeLocked, Event::SendLocked, Event::Resent], 16_000);
}

#[test]
fn the_budget_comes_back_with_the_first_code_after_its_window() {
    holds(windows(), &[Event::NewWindow, Event::Resent, Event::WrongCode, Event::CodeLocked], 8_400);
}

#[test]
fn a_cooldown_outlasts_the_window_if_it_is_longer() {
    holds(short_windows(), &[Event::NewWindow, Event::TooSoon, Event::Verified], 1_000);
}

#[test]
fn a_code_is_good_until_its_time_is_over() {
    holds(expiry(), &[Event::Verified, Event::NoActive, Event::UseRefused], 15_000);
}

#[test]
fn a_code_is_good_for_as_long_as_its_secret_is_known() {
    holds(rotation(), &[Event::Verified, Event::SecretGone, Event::Resent], 13_000);
}

#[test]
fn lost_answers_and_people_who_die_half_way_verify_nobody_twice() {
    holds(losses(), &[Event::LostAfterApply, Event::AppliedLate, Event::Verified, Event::Resent], 63_000);
}

#[test]
fn what_the_table_deletes_is_over_for_everybody() {
    holds(deletion(), &[Event::Deleted, Event::NewWindow, Event::TooSoon, Event::Verified], 15_000);
}

/// Whoever is alone is verified by the right code, after wrong ones, too.
#[test]
fn nobody_else_is_in_the_way_of_whoever_is_alone() {
    for typed in [&[Right][..], &[Wrong, Right], &[First]] {
        let table = Table::new(Scenario::new(vec![sends(1), types(typed)], &[1], 1));
        let happened = Arc::clone(&table.happened);
        search::visit(table);
        let happened = happened.lock().unwrap();
        let refusals = [Event::NoActive, Event::CodeLocked, Event::AccountLocked, Event::UseRefused, Event::TooSoon];
        assert!(
            happened.contains(&Event::Verified) && refusals.iter().all(|event| !happened.contains(event)),
            "{happened:?}"
        );
    }
}
