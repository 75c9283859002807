//! Opening what a command works on: the policy file, the connection, the store.
//!
//! Invariant: the store that a command gets has been warmed up, so its clock offset is known and a missing table or
//! wrong credentials have been reported before anything is done.

use crate::args::{PolicyFile, Target};
use crate::error::{CliError, Result};
use crate::output::note;
use std::sync::Arc;
use tollgate::testing::ManualClock;
use tollgate::{Connection, Counters, DynamoStore, Policy, SystemClock};
use tollgate_dynamodb::connect::Connected;

/// Loads a policy; its warnings go to standard error.
pub(crate) fn policy(file: &PolicyFile) -> Result<Policy> {
    let path = &file.policy;
    let text = std::fs::read_to_string(path).map_err(|source| CliError::Read { path: path.clone(), source })?;
    let name = path.display().to_string();
    let parsed = Policy::parse(&text).map_err(|d| CliError::Policy(d.render(&name).trim_end().to_owned()))?;
    for warning in parsed.warnings.iter() {
        note(warning.render(&name));
    }
    Ok(parsed.policy)
}

/// The connection that the command line names.
pub(crate) async fn connection(target: &Target) -> Result<Connected> {
    let mut connection = Connection::from_environment();
    connection.endpoint_url.clone_from(&target.endpoint_url);
    connection.region.clone_from(&target.region);
    Ok(tollgate::connect(&connection).await?)
}

/// A warmed-up store, and what it counts.
pub(crate) async fn store(connected: &Connected, table: &str) -> Result<(DynamoStore, Arc<Counters>)> {
    store_at(connected, table, None).await
}

/// As [`store`], with a clock that counts as the table's if one is given.
pub(crate) async fn store_at(
    connected: &Connected,
    table: &str,
    clock: Option<&ManualClock>,
) -> Result<(DynamoStore, Arc<Counters>)> {
    let counters = Arc::new(Counters::default());
    let store = match clock {
        Some(clock) => DynamoStore::with_trusted_clock(connected, table, Arc::new(clock.clone()), counters.clone()),
        None => DynamoStore::new(connected, table, Arc::new(SystemClock), counters.clone()),
    };
    store.warm_up().await?;
    Ok((store, counters))
}

/// A warmed-up store on the table that the command line names.
pub(crate) async fn target(target: &Target) -> Result<DynamoStore> {
    Ok(store(&connection(target).await?, &target.table).await?.0)
}
