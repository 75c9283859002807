//! The protocol with one guard missing: each is caught, so each guard is needed and the model can see it.

mod calls;
mod exact;
mod holds;
mod leases;
mod logs;
mod penalties;
mod refunds;
mod windows;

use crate::mutant::Mutant;
use crate::properties::Fault;
use crate::scenario::Scenario;
use crate::search;
use crate::table::Table;

/// Whether `scenario` has a fault within that many actions.
fn is_faulty(scenario: &Scenario, within: Option<usize>) -> bool {
    search::is_faulty(Table::new(scenario.clone()), within)
}

/// Without each `guard` the shortest way to the `fault` takes so many actions; with all of them there is none.
fn caught(scenario: &Scenario, guards: &[(Mutant, Fault, usize)]) {
    assert!(!is_faulty(scenario, None), "the real protocol");
    for (guard, fault, actions) in guards {
        let mutant = scenario.clone().without(*guard).looking_for(*fault);
        assert!(!is_faulty(&mutant, Some(actions - 1)), "{guard:?}: {fault:?} is found in less than {actions}");
        assert!(is_faulty(&mutant, Some(*actions)), "{guard:?}: {fault:?} takes more than {actions}");
    }
}

/// Without `guard` there is no fault either: others do its work.
fn not_needed(scenario: &Scenario, guard: Mutant) {
    assert!(!is_faulty(&scenario.clone().without(guard), None), "{guard:?}");
}
