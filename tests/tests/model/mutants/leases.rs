//! What leases need.

use super::caught;
use crate::mutant::Mutant;
use crate::properties::Fault;
use crate::scenario::{Scenario, spender, terms};

#[test]
fn what_is_taken_ahead_is_spent_before_its_slot_starts() {
    let t = terms(1, "", 1, 1000, 2).leased();
    let callers = vec![spender(&t, &[1, 1]).leasing(1), spender(&t, &[2])];
    let never = (Mutant::LeaseNeverEnds, Fault::OverAdmitted, 8);
    let its_slot = (Mutant::LeaseUntilSlotEnds, Fault::OverAdmitted, 8);
    caught(&Scenario::new(callers, &[1, 2], 2), &[never, its_slot]);
}

/// What is given back moves `tat` behind the start of a slot that another caller has not spent, and was charged by that place.
#[test]
fn nothing_is_taken_ahead_of_a_bucket_that_others_give_back_to() {
    let t = terms(1, "", 1, 1000, 3);
    let callers = vec![spender(&t, &[1, 1]).leasing(1), spender(&t, &[1]).refused(), spender(&t, &[3])];
    caught(&Scenario::new(callers, &[2], 1), &[(Mutant::LeaseOfUnleased, Fault::OverAdmitted, 13)]);
}
