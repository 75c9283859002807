//! What a refund needs.

use super::caught;
use crate::mutant::Mutant;
use crate::properties::Fault;
use crate::scenario::{Caller, Scenario, single, spender, terms};

/// A token that is refunded, and two more calls; it is used up after a second.
fn one_token() -> Scenario {
    let t = terms(1, "", 1, 1000, 1);
    Scenario::new(vec![spender(&t, &[1]).refused(), spender(&t, &[1, 1])], &[1], 1)
}

#[test]
fn a_refund_gives_back_only_what_is_unused_and_needs_the_g_seen() {
    let all = (Mutant::RefundsAll, Fault::OverAdmitted, 12);
    let of_its_period = (Mutant::RefundsAllOfItsBusyPeriod, Fault::OverAdmitted, 12);
    // Made at once and applied a second later: a call that came between is moved ahead of its own time.
    let late = (Mutant::RefundWithoutGross, Fault::OverAdmitted, 11);
    caught(&one_token(), &[all, of_its_period, late]);
}

/// Two tokens that are refunded, one behind the other.
fn two_tokens(costs: &[u64]) -> Scenario {
    let t = terms(1, "", 1, 1000, 2);
    Scenario::new(vec![spender(&t, &[1]).refused(), spender(&t, &[1]).refused(), spender(&t, costs)], &[1], 1)
}

#[test]
fn a_refund_reckons_with_the_refunds_of_others() {
    caught(&two_tokens(&[2, 1]), &[(Mutant::RefundsIgnoringOthers, Fault::OverAdmitted, 17)]);
}

/// A charge that is refunded, and calls of two plans that bring the bucket back to its very `tat` and `f`.
fn two_plans() -> Scenario {
    let (slow, fast) = (terms(1, "slow", 1, 1000, 4), terms(1, "fast", 2, 1000, 4));
    let others = Caller::new(vec![single(&fast, 1), single(&slow, 1), single(&slow, 4)]);
    Scenario::new(vec![spender(&slow, &[4]).refused(), others], &[1, 2], 2)
}

#[test]
fn a_refund_is_of_its_busy_period_alone_and_needs_the_b_seen() {
    let reckoned = Mutant::RefundsInAnyBusyPeriod;
    caught(
        &two_plans(),
        &[(reckoned, Fault::RefundedElsewhere, 9), (Mutant::RefundWithoutBusyPeriod, Fault::OverAdmitted, 16)],
    );
}
