//! Fixed windows and the sliding counter, alone and beside refunds, revisions and transactions.

use super::holds;
use crate::properties::Event;
use crate::scenario::{Scenario, caller, single, spender, windows};

#[test]
fn contention_over_windows() {
    for (sliding, states) in [(false, 161_000), (true, 83_000)] {
        let t = windows(1, 2, 2, sliding);
        let callers = vec![spender(&t, &[1, 1]), spender(&t, &[1, 1]), spender(&t, &[2])];
        let events = [Event::Busy, Event::Denied, Event::AdmittedAfterRefusal];
        holds(Scenario::new(callers, &[1, 2], 1), &events, states);
    }
}

#[test]
fn clocks_apart_and_expiry_over_windows() {
    for (sliding, states) in [(false, 115_000), (true, 127_000)] {
        let one = single(&windows(1, 2, 2, sliding), 1);
        let callers = vec![caller(-1, 2, &one), caller(1, 2, &one)];
        let events = [Event::Deleted, Event::AppliedLate, Event::Denied];
        holds(Scenario::new(callers, &[2, 370], 2).deleting(), &events, states);
    }
}

#[test]
fn refunds_over_windows() {
    for (sliding, states) in [(false, 43_000), (true, 38_000)] {
        let t = windows(1, 2, 2, sliding);
        let callers = vec![spender(&t, &[1]).refusable(), spender(&t, &[1, 1]), spender(&t, &[1]).refused()];
        let events = [Event::Refunded, Event::RefundedLate, Event::NothingToRefund, Event::Denied];
        holds(Scenario::new(callers, &[2], 1), &events, states);
    }
}

#[test]
fn a_newer_revision_and_a_transaction_over_windows() {
    for (sliding, states) in [(false, 434_000), (true, 285_000)] {
        let (old, new) = (windows(1, 2, 2, sliding), windows(2, 3, 2, sliding));
        let callers = vec![spender(&old, &[1, 1]), spender(&new, &[1, 2]).exactly(), spender(&new, &[1])];
        let events = [Event::Exact, Event::FollowedNewer, Event::AdmittedAfterRefusal];
        holds(Scenario::new(callers, &[2], 1), &events, states);
    }
}
