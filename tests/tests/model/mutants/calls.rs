//! What the forms of a call need.

use super::{caught, not_needed};
use crate::mutant::Mutant;
use crate::properties::Fault;
use crate::scenario::{Caller, Scenario, charge, charges, spender, terms};
use crate::scenarios::calls::two_plans_and_clocks_apart;

#[test]
fn busy_form_needs_f() {
    let (fast, slow) = (terms(1, "fast", 2, 1000, 3), terms(1, "slow", 1, 1000, 3));
    let scenario = Scenario::new(vec![spender(&fast, &[3]), spender(&slow, &[1])], &[1], 1);
    caught(&scenario, &[(Mutant::BusyWithoutTerms, Fault::OverAdmitted, 6)]);
}

#[test]
fn busy_form_needs_its_ceiling() {
    let t = terms(1, "", 1, 1000, 1);
    let scenario = Scenario::new(vec![spender(&t, &[1]), spender(&t, &[1])], &[1], 1);
    caught(&scenario, &[(Mutant::BusyWithoutCeiling, Fault::OverAdmitted, 6)]);
}

#[test]
fn busy_form_needs_its_floor() {
    let t = terms(1, "", 1, 1000, 1);
    let scenario = Scenario::new(vec![spender(&t, &[1]), spender(&t, &[1]), spender(&t, &[1])], &[3], 1);
    caught(&scenario, &[(Mutant::BusyWithoutFloor, Fault::OverAdmitted, 9)]);
}

#[test]
fn idle_form_needs_f() {
    let (thirds, whole) = (terms(1, "thirds", 3, 1000, 9), terms(1, "whole", 1, 1000, 3));
    let scenario = Scenario::new(vec![spender(&thirds, &[1, 9]), spender(&whole, &[3])], &[2], 1);
    caught(&scenario, &[(Mutant::IdleWithoutTerms, Fault::OverAdmitted, 12)]);
}

#[test]
fn idle_form_needs_tat_below_now() {
    let t = terms(1, "", 1, 1000, 1);
    let scenario = Scenario::new(vec![spender(&t, &[1, 1]), spender(&t, &[1])], &[2], 1);
    caught(&scenario, &[(Mutant::IdleWithoutTat, Fault::OverAdmitted, 12)]);
}

#[test]
fn change_form_needs_the_tat_or_the_g_seen() {
    let (old, new) = (terms(1, "", 1, 1000, 2), terms(2, "", 1, 1000, 2));
    let scenario = Scenario::new(vec![spender(&old, &[1, 1]), spender(&new, &[1])], &[1], 0);
    caught(&scenario, &[(Mutant::ExactWithoutTatAndGross, Fault::OverAdmitted, 11)]);
}

/// Two callers move one bucket; the first leaves the very `tat` that the second has seen.
fn equal_tat_under_other_terms() -> Scenario {
    let (slow, fast) = (terms(1, "slow", 1, 2000, 2), terms(1, "fast", 1, 1000, 2));
    Scenario::new(vec![spender(&slow, &[1]), spender(&fast, &[1]), spender(&fast, &[1])], &[1], 1)
}

#[test]
fn change_form_needs_the_f_or_the_b_seen() {
    let guard = Mutant::ExactWithoutTermsAndBusyPeriod;
    caught(&equal_tat_under_other_terms(), &[(guard, Fault::OverAdmitted, 13)]);
}

/// With equal `tat`, every change of `f` shows in `b`, and a renewed `b` under the same `f` is the same debt. Only a refund
/// needs the `b`.
#[test]
fn of_the_f_and_the_b_seen_one_is_enough_for_a_change() {
    for guard in [Mutant::ExactWithoutTerms, Mutant::ExactWithoutBusyPeriod] {
        not_needed(&equal_tat_under_other_terms(), guard);
    }
}

#[test]
fn change_form_leaves_the_instant_that_it_reckoned_debt_at() {
    caught(&two_plans_and_clocks_apart(), &[(Mutant::ChangeWithoutSince, Fault::OverAdmitted, 17)]);
}

/// A limit that is forgotten after 1,363 s in one item with one that is forgotten after 364 s.
fn long_and_short() -> Scenario {
    let (short, long) = (terms(1, "", 1, 1000, 1), terms(1, "", 1, 1_000_000, 1));
    let on = |name, terms| charges(vec![charge(name, terms, 1)]);
    let ask_long = Caller::new(vec![on("long", &long); 2]);
    let ask_short = Caller::new(vec![on("short", &short)]);
    Scenario::new(vec![ask_long, ask_short], &[366], 1).deleting()
}

#[test]
fn every_form_needs_the_horizon() {
    let guard = Mutant::WithoutHorizon;
    caught(&long_and_short(), &[(guard, Fault::HorizonShrank, 4), (guard, Fault::OverAdmitted, 10)]);
}

#[test]
fn expiry_needs_the_horizon() {
    let t = terms(1, "", 1, 4000, 1);
    let scenario = Scenario::new(vec![spender(&t, &[1]), spender(&t, &[1])], &[2], 1).deleting();
    let guard = Mutant::WithoutMemory;
    caught(&scenario, &[(guard, Fault::ExpiresTooEarly, 2), (guard, Fault::OverAdmitted, 8)]);
}

#[test]
fn an_ambiguous_write_is_not_sent_again() {
    let t = terms(1, "", 1, 1000, 2);
    let scenario = Scenario::new(vec![spender(&t, &[1])], &[1], 0).losing(1);
    caught(&scenario, &[(Mutant::RetriesAmbiguous, Fault::ChargedTwice, 4)]);
}
