//! What a charge within a transaction needs.

use super::{caught, not_needed};
use crate::mutant::Mutant;
use crate::properties::Fault;
use crate::scenario::{Scenario, spender, terms};

/// Charges move both, so either tells that there was one.
#[test]
fn an_exact_charge_needs_the_tat_or_the_g_seen() {
    let t = terms(1, "", 1, 1000, 2);
    let scenario = Scenario::new(vec![spender(&t, &[1]).exactly(), spender(&t, &[1, 1])], &[1], 0);
    caught(&scenario, &[(Mutant::ExactWithoutTatAndGross, Fault::OverAdmitted, 11)]);
    not_needed(&scenario, Mutant::ExactWithoutTat);
    not_needed(&scenario, Mutant::ExactWithoutGross);
}

/// It overwrites `g`: a charge that it has not seen would be forgotten, and a refund that was made before it give back too much.
#[test]
fn an_exact_charge_needs_the_g_seen() {
    let t = terms(1, "", 2, 1000, 3);
    let callers = vec![spender(&t, &[2, 2]).refused(), spender(&t, &[1, 2, 2]).exactly()];
    caught(&Scenario::new(callers, &[1], 1), &[(Mutant::ExactWithoutGross, Fault::OverAdmitted, 22)]);
}
