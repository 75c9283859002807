//! What limits that count by windows need.

use super::{caught, not_needed};
use crate::mutant::Mutant;
use crate::properties::Fault;
use crate::scenario::{Scenario, spender, windows};

#[test]
fn a_window_needs_its_ceiling() {
    let t = windows(1, 1, 2, false);
    let scenario = Scenario::new(vec![spender(&t, &[1]), spender(&t, &[1])], &[1], 1);
    caught(&scenario, &[(Mutant::BusyWithoutCeiling, Fault::OverAdmitted, 6)]);
}

#[test]
fn a_new_sliding_window_needs_the_count_of_the_last_as_it_was_seen() {
    let t = windows(1, 3, 2, true);
    let scenario = Scenario::new(vec![spender(&t, &[1, 1]), spender(&t, &[1])], &[2], 1);
    caught(&scenario, &[(Mutant::ExactWithoutTatAndGross, Fault::OverAdmitted, 10)]);
}

/// A refund asks nothing but whether the window is still counted in: one that arrives late would take from the next.
#[test]
fn a_refund_is_of_its_own_window() {
    let t = windows(1, 1, 2, false);
    let callers = vec![spender(&t, &[1]).refused(), spender(&t, &[1]), spender(&t, &[1])];
    let scenario = Scenario::new(callers, &[2], 1);
    not_needed(&scenario, Mutant::RefundsInAnyBusyPeriod);
    let without = Mutant::RefundWithoutBusyPeriod;
    caught(&scenario, &[(without, Fault::RefundedElsewhere, 9), (without, Fault::OverAdmitted, 10)]);
}
