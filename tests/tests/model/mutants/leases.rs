//! What leases need.

use super::{caught, is_faulty};
use crate::mutant::Mutant;
use crate::properties::Fault;
use crate::scenario::{Scenario, spender, terms};
use tollgate_core::Terms;

#[test]
fn what_is_taken_ahead_is_spent_before_its_slot_starts() {
    let t = terms(1, "", 1, 1000, 2).leased();
    let callers = vec![spender(&t, &[1, 1]).leasing(1), spender(&t, &[2])];
    let never = (Mutant::LeaseNeverEnds, Fault::OverAdmitted, 8);
    let its_slot = (Mutant::LeaseUntilSlotEnds, Fault::OverAdmitted, 8);
    caught(&Scenario::new(callers, &[1, 2], 2), &[never, its_slot]);
}

#[test]
fn a_leased_limit_gives_nothing_back_to_the_table() {
    // What is given back moves `tat` behind the start of a slot that another caller has not spent, and charged it by that place.
    let scenario = |t: &Terms| {
        let callers = vec![spender(t, &[1, 1]).leasing(1), spender(t, &[1]).refused(), spender(t, &[3])];
        Scenario::new(callers, &[2], 1)
    };
    let t = terms(1, "", 1, 1000, 3);
    assert!(!is_faulty(&scenario(&t.clone().leased()), None));
    assert!(is_faulty(&scenario(&t), None));
}
