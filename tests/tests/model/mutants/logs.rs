//! Guards of logs and of what settles charges.

use super::caught;
use crate::mutant::Mutant;
use crate::properties::Fault;
use crate::scenario::{Scenario, log, spender};
use crate::scenarios::logs::{less, more};

#[test]
fn a_log_needs_its_ceiling_and_what_was_seen() {
    let t = log(1, 2, 2);
    let scenario = Scenario::new(vec![spender(&t, &[1, 1]), spender(&t, &[2])], &[2], 1);
    let fault = Fault::OverAdmitted;
    caught(&scenario, &[(Mutant::BusyWithoutCeiling, fault, 6), (Mutant::ExactWithoutTatAndGross, fault, 11)]);
}

#[test]
fn a_charge_is_settled_once_by_its_entry() {
    for callers in [less(), more(4)] {
        let scenario = Scenario::new(callers, &[1], 1).losing(1);
        caught(&scenario, &[(Mutant::SettlesWithoutEntry, Fault::SettledTwice, 6)]);
    }
}
