//! What judges: the ladder and the cohorts are read, and the next ladder is written.
//!
//! Invariant: a ladder replaces the very one that it was made from; of two that judge at once, one writes.

use super::cohort::{CohortKey, Cohorts, Window};
use super::judge::{Step, judge, windows};
use super::ladder::{Ladder, Rung};
use super::storage::{self, Stored};
use crate::error::Result;
use tollgate_core::Timestamp;
use tollgate_dynamodb::attributes::Attributes;
use tollgate_dynamodb::{Event, Items, Store, Updated};
use tollgate_policy::OtpRules;

/// What was judged.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Watched {
    /// The ladder in force now.
    pub ladder: Ladder,
    /// What went up or down; nothing if somebody else has judged meanwhile.
    pub steps: Vec<Step>,
}

/// Judges all countries of the policy. One read of the ladder, one of each hundred items of cohorts, one write.
///
/// # Errors
///
/// See [`Error`](crate::Error): the ladder stays as it is.
pub async fn watch(items: &Items, rules: &OtpRules) -> Result<Watched> {
    let (call, pk, now) = (items.begin(), storage::ladder_key(), items.now());
    let stored = read(call.read(&pk).await?)?;
    let mut ladder = Ladder { judged: Timestamp::from_secs(now.as_secs()), ..stored.ladder };
    let mut steps = Vec::new();
    for country in rules.countries() {
        let cohorts = cohorts(&call, country, windows(now, rules.ttl)).await?;
        let (next, taken) = judge(&ladder, country, &cohorts, rules.ttl, now);
        ladder = next;
        steps.extend(taken);
    }
    let (suspected, blocked) = (ladder.standings.len() as u64 - ladder.on(Rung::Observe), ladder.on(Rung::Block));
    items.store().meter().record(Event::Judged { suspected, blocked });
    match call.update(&pk, &storage::render_ladder(&ladder, stored.writes)).await? {
        Updated::Applied(_) => Ok(Watched { ladder, steps }),
        Updated::Refused(found) => Ok(Watched { ladder: read(found)?.ladder, steps: Vec::new() }),
    }
}

fn read(found: Option<Attributes>) -> Result<Stored> {
    Ok(storage::to_ladder(found.as_ref()).map_err(tollgate_dynamodb::Error::from)?)
}

async fn cohorts(
    call: &tollgate_dynamodb::items::Call<'_>,
    country: &str,
    windows: std::ops::RangeInclusive<u64>,
) -> Result<Cohorts> {
    let keys: Vec<CohortKey> = windows.flat_map(|window| CohortKey::all(country, Window(window))).collect();
    let mut found = call.read_all(keys.iter().map(storage::partition_key)).await?;
    let mut cohorts = Cohorts::default();
    for key in keys {
        if let Some(item) = found.remove(&storage::partition_key(&key)) {
            let tallies = storage::to_tallies(&item).map_err(tollgate_dynamodb::Error::from)?;
            cohorts.entry(key.window).or_default().extend(tallies);
        }
    }
    Ok(cohorts)
}
