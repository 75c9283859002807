//! The protocol with one guard missing: each is caught, so each guard is needed and the model can see it.

use super::mutant::Mutant;
use super::referee::Fault;
use super::scenario::Scenario;
use super::scenarios;
use super::table::Table;
use crate::search;

/// Without each `guard` the shortest way to the `fault` takes so many actions; with all of them there is none, as the
/// scenario's own test tells.
fn caught(scenario: &Scenario, guards: &[(Mutant, Fault, usize)]) {
    for (guard, fault, actions) in guards {
        let found = |within| search::is_faulty(Table::new(scenario.without(*guard, *fault)), Some(within));
        assert!(!found(actions - 1), "{guard:?}: {fault:?} is found in less than {actions}");
        assert!(found(*actions), "{guard:?}: {fault:?} takes more than {actions}");
    }
}

#[test]
fn what_is_compared_is_counted_before() {
    let guards = [
        (Mutant::ComparesInCondition, Fault::CodeGuessed, 9),
        (Mutant::CountsAfterComparing, Fault::CodeGuessed, 9),
        (Mutant::CountsWithoutAttempts, Fault::CodeGuessed, 9),
    ];
    caught(&scenarios::wrong_at_once(), &guards);
    caught(&scenarios::budget(), &[(Mutant::CountsWithoutBudget, Fault::AccountGuessed, 19)]);
}

#[test]
fn what_is_not_active_is_not_counted() {
    caught(&scenarios::resent(), &[(Mutant::CountsWithoutChallenge, Fault::CountedInactive, 10)]);
    caught(&scenarios::expiry(), &[(Mutant::CountsWithoutTime, Fault::CountedInactive, 7)]);
    caught(&scenarios::right_at_once(), &[(Mutant::CountsUsed, Fault::CountedInactive, 9)]);
}

#[test]
fn a_code_is_used_as_it_was_compared() {
    let guards = [(Mutant::UsesUsed, Fault::VerifiedTwice, 13), (Mutant::UsesBlindly, Fault::VerifiedTwice, 13)];
    caught(&scenarios::right_at_once(), &guards);
    caught(&scenarios::resent(), &[(Mutant::UsesWithoutChallenge, Fault::SupersededVerified, 13)]);
    caught(&scenarios::expiry(), &[(Mutant::UsesWithoutTime, Fault::ExpiredVerified, 11)]);
}

#[test]
fn a_code_is_sent_by_what_was_seen() {
    caught(&scenarios::short_windows(), &[(Mutant::SendsWithoutCooldown, Fault::SentTooSoon, 7)]);
    caught(&scenarios::senders_at_once(), &[(Mutant::SendsWithoutChallenge, Fault::SentTooSoon, 13)]);
    caught(&scenarios::budget(), &[(Mutant::SendsWithoutBudget, Fault::SentWhileLocked, 21)]);
    caught(&scenarios::losses(), &[(Mutant::SendsUnconfirmed, Fault::SentUnstored, 2)]);
}

#[test]
fn the_budget_outlives_codes() {
    caught(&scenarios::windows(), &[(Mutant::SendsWithoutWindow, Fault::AccountGuessed, 17)]);
    caught(&scenarios::budget(), &[(Mutant::SendsNewBudget, Fault::AccountGuessed, 19)]);
    caught(&scenarios::budget().deleting(), &[(Mutant::ForgetsAccount, Fault::AccountGuessed, 18)]);
}

#[test]
fn retired_secrets_verify() {
    caught(&scenarios::rotation(), &[(Mutant::VerifiesByActive, Fault::RightRefused, 6)]);
}
