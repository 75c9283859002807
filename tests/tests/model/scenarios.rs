//! The real protocol: every property holds in every state.

pub(crate) mod calls;
mod exact;
mod holds;
pub(crate) mod leases;
pub(crate) mod logs;
mod penalties;
mod refunds;
mod shadow;
pub(crate) mod windows;

use crate::properties::Event;
use crate::scenario::Scenario;
use crate::search;
use crate::table::Table;
use std::sync::Arc;

/// Visits every state of `scenario`. All properties hold, all of `events` happen, and there are at least `states` states.
fn holds(scenario: Scenario, events: &[Event], states: usize) {
    let table = Table::new(scenario);
    let coverage = Arc::clone(&table.coverage);
    let visited = search::visit(table);
    for event in events {
        assert!(coverage.has(*event), "{event:?} never happened");
    }
    assert!(visited >= states, "only {visited} states");
}
