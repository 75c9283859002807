//! Searching a model, whatever it is of.

use stateright::{Checker, HasDiscoveries, Model};
use std::fmt::Debug;
use std::hash::Hash;

/// Visits every state: all properties hold in each. How many there are.
pub(crate) fn visit<M>(model: M) -> usize
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync,
    M::Action: Clone + Debug + PartialEq,
{
    let checker = model.checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    checker.assert_properties();
    checker.unique_state_count()
}

/// Whether a property fails within that many actions.
pub(crate) fn is_faulty<M>(model: M, within: Option<usize>) -> bool
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync,
    M::Action: Clone + Debug + PartialEq,
{
    let mut search = model.checker().finish_when(HasDiscoveries::AnyFailures);
    if let Some(actions) = within {
        // The depth counts states, the first included, and those of the depth given are not looked at.
        search = search.target_max_depth(actions + 2);
    }
    !search.spawn_bfs().join().discoveries().is_empty()
}
