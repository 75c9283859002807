//! Limits that only report, beside limits that deny.

use super::holds;
use crate::properties::Event;
use crate::scenario::{Caller, Change, Scenario, charge, charges, terms};
use tollgate_core::{Charge, Charges, Mode, Terms};

fn beside(enforced: &Terms, shadow: &Terms, cost: u64) -> Charges {
    let shadow = Charge { mode: Mode::Shadow, ..charge("s", shadow, cost) };
    charges(vec![charge("e", enforced, cost), shadow])
}

#[test]
fn a_shadow_beside_a_limit_that_denies() {
    let (enforced, shadow) = (terms(1, "", 1, 1000, 2), terms(1, "", 1, 2000, 1));
    let call = |cost| beside(&enforced, &shadow, cost);
    let callers = vec![Caller::new(vec![call(1), call(1)]), Caller::new(vec![call(1), call(2)])];
    let events = [Event::LeftOut, Event::Busy, Event::Denied, Event::AdmittedAfterRefusal];
    holds(Scenario::new(callers, &[1, 3], 2), &events, 54_000);
}

#[test]
fn a_shadow_whose_terms_change() {
    let (enforced, old, new) = (terms(1, "", 1, 1000, 2), terms(1, "", 1, 2000, 1), terms(2, "", 1, 1000, 2));
    let callers = vec![
        Caller::new(vec![beside(&enforced, &old, 1), beside(&enforced, &old, 1)]).refusable(),
        Caller::new(vec![beside(&enforced, &new, 1)]),
    ];
    let events = [Event::LeftOut, Event::Exact, Event::FollowedNewer, Event::Refunded];
    holds(Scenario::new(callers, &[1, 2], 1), &events, 6_900);
}

#[test]
fn shadows_alone_under_a_ban() {
    let (a, b) = (terms(1, "", 1, 1000, 1), terms(1, "", 1, 1000, 2));
    let both = || {
        let shadow = |name, terms| Charge { mode: Mode::Shadow, ..charge(name, terms, 1) };
        charges(vec![shadow("a", &a), shadow("b", &b)])
    };
    let callers = vec![Caller::new(vec![both(), both()]).refusable(), Caller::new(vec![both()])];
    let events = [Event::LeftOut, Event::Banned, Event::Lapsed, Event::Refunded];
    holds(Scenario::new(callers, &[1], 2).operated(vec![Change::Ban(1)]), &events, 95_000);
}
