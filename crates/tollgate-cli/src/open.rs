//! Opening what a command works on: the policy file, the connection, the store.
//!
//! Invariant: the store that a command gets has been warmed up, so its clock offset is known and a missing table or
//! wrong credentials have been reported before anything is done.

use crate::args::Target;
use crate::embedded::{Embedded, Faults};
use crate::error::Result;
use crate::output::note;
use std::path::Path;
use std::sync::Arc;
use tollgate::testing::ManualClock;
use tollgate::{Connection, Counters, DynamoStore, Meter, Policy, SystemClock};
use tollgate_dynamodb::connect::Connected;
use tollgate_dynamodb::table::{CreateOptions, create, exists};

/// Loads a policy; its warnings go to standard error.
pub(crate) fn policy(path: &Path) -> Result<Policy> {
    let parsed = Policy::load(path)?;
    for warning in parsed.warnings.iter() {
        note(warning.render(&path.display().to_string()));
    }
    Ok(parsed.policy)
}

/// A table to work on: the one that is named, or one in an emulator of our own.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) target: Target,
    pub(crate) connected: Connected,
    pub(crate) embedded: Option<Embedded>,
}

impl Place {
    /// Reaches the endpoint of `target`, or starts an emulator if it names none. On this machine the table is created if
    /// it is missing, and an emulator of our own is behind `faults`; anywhere else a missing table is reported by its first use, since creating one costs money.
    pub(crate) async fn of(target: &Target, clock: Option<&ManualClock>, faults: Option<&Faults>) -> Result<Self> {
        let mut target = target.clone();
        let embedded = match target.endpoint_url {
            Some(_) => None,
            None => Some(Embedded::start_with(clock.cloned(), faults.cloned()).await?),
        };
        if let Some(embedded) = &embedded {
            target.endpoint_url = Some(embedded.endpoint().to_owned());
        }
        let connected = connection(&target).await?;
        if is_new(&target).await? {
            create(&connected, &target.table, CreateOptions::default()).await?;
        }
        Ok(Self { target, connected, embedded })
    }
}

/// The connection that the command line names.
pub(crate) async fn connection(target: &Target) -> Result<Connected> {
    Ok(tollgate::connect(&named(target)).await?)
}

/// Whether the table that the command line names is on this machine and not there yet, so that [`Place::of`] creates it.
pub(crate) async fn is_new(target: &Target) -> Result<bool> {
    Ok(is_here(target) && !exists(&connection(target).await?, &target.table).await?)
}

/// Whether the table that the command line names is on this machine.
pub(crate) fn is_here(target: &Target) -> bool {
    named(target).is_loopback()
}

fn named(target: &Target) -> Connection {
    let mut connection = Connection::from_environment();
    connection.endpoint_url.clone_from(&target.endpoint_url);
    connection.region.clone_from(&target.region);
    connection
}

/// A warmed-up store, and what it counts.
pub(crate) async fn store(connected: &Connected, table: &str) -> Result<(DynamoStore, Arc<Counters>)> {
    let counters = Arc::new(Counters::default());
    Ok((store_at(connected, table, None, counters.clone()).await?, counters))
}

/// A warmed-up store that tells `meter`, with a clock that counts as the table's if one is given.
pub(crate) async fn store_at(
    connected: &Connected,
    table: &str,
    clock: Option<&ManualClock>,
    meter: Arc<dyn Meter>,
) -> Result<DynamoStore> {
    let store = match clock {
        Some(clock) => DynamoStore::with_trusted_clock(connected, table, Arc::new(clock.clone()), meter),
        None => DynamoStore::new(connected, table, Arc::new(SystemClock), meter),
    };
    store.warm_up().await?;
    Ok(store)
}

/// A warmed-up store on the table that the command line names.
pub(crate) async fn target(target: &Target) -> Result<DynamoStore> {
    Ok(store(&connection(target).await?, &target.table).await?.0)
}
