//! What a charge within a transaction needs.

use super::caught;
use crate::mutant::Mutant;
use crate::properties::Fault;
use crate::scenario::{Scenario, spender, terms};

#[test]
fn an_exact_charge_needs_the_tat_seen() {
    let t = terms(1, "", 1, 1000, 2);
    let scenario = Scenario::new(vec![spender(&t, &[1]).exactly(), spender(&t, &[1, 1])], &[1], 0);
    caught(&scenario, &[(Mutant::ExactWithoutTat, Fault::OverAdmitted, 11)]);
}

/// It overwrites `adj`: a refund that it has not seen would be forgotten, and one that reckons with it give back too much.
#[test]
fn an_exact_charge_needs_the_adj_seen() {
    let t = terms(1, "", 2, 1000, 3);
    let callers = vec![spender(&t, &[2, 2]).refused(), spender(&t, &[1, 2, 2]).exactly()];
    caught(&Scenario::new(callers, &[1], 1), &[(Mutant::ExactWithoutAdjusted, Fault::OverAdmitted, 23)]);
}
