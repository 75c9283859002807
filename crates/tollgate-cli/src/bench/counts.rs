//! Round trips and write units a decision, by situation.

use super::charges;
use crate::args::Target;
use crate::error::Result;
use crate::open;
use crate::race::Race;
use serde::Serialize;
use std::time::Duration;
use tokio::sync::mpsc;
use tollgate::Limiter;
use tollgate_core::Charges;
use tollgate_dynamodb::connect::Connected;

const DEADLINE: Duration = Duration::from_secs(30);
const DECISIONS: u32 = 50;

/// One situation.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Line {
    /// The situation.
    pub name: &'static str,
    /// Decisions that were measured.
    pub decisions: u64,
    /// Decisions among them that were allowed.
    pub allowed: u64,
    /// Requests to the table, per decision.
    pub round_trips: f64,
    /// Write units, per decision.
    pub write_units: f64,
}

pub(super) async fn measure(connected: &Connected, target: &Target) -> Result<Vec<Line>> {
    let table = &target.table;
    let mut lines = Vec::new();
    let mut new_keys = Vec::new();
    for _ in 0..DECISIONS {
        new_keys.push(charges(&[("orders", 50, 3600)])?);
    }
    lines.push(sequence(connected, table, "new key", &new_keys, Duration::ZERO, 0).await?);

    let steady = vec![charges(&[("orders", 1000, 3600)])?; DECISIONS as usize];
    lines.push(sequence(connected, table, "steady allow", &steady, Duration::ZERO, 1).await?);

    // Full again after 2 ms, so that each decision finds an idle bucket.
    let idle = vec![charges(&[("orders", 1000, 1)])?; DECISIONS as usize];
    lines.push(sequence(connected, table, "idle key", &idle, Duration::from_millis(4), 1).await?);

    let spent = vec![charges(&[("orders", 3, 86_400)])?; DECISIONS as usize];
    lines.push(sequence(connected, table, "denial", &spent, Duration::ZERO, 3).await?);

    let three = [("second", 10_000, 1), ("hour", 100_000, 3600), ("day", 1_000_000, 86_400)];
    let three = vec![charges(&three)?; DECISIONS as usize];
    lines.push(sequence(connected, table, "3 limits on one key", &three, Duration::ZERO, 1).await?);

    lines.push(concurrent(target, "40 concurrent on a new key").await?);
    Ok(lines)
}

/// Decides one after the other in one process, after `before` decisions that are not counted.
async fn sequence(
    connected: &Connected,
    table: &str,
    name: &'static str,
    charges: &[Charges],
    pause: Duration,
    before: usize,
) -> Result<Line> {
    let (store, counters) = open::store(connected, table).await?;
    let limiter = Limiter::new(store).with_deadline(DEADLINE);
    for charges in charges.iter().take(before) {
        limiter.take(charges).await?;
    }
    let start = counters.counts();
    let mut allowed = 0;
    for charges in charges {
        tokio::time::sleep(pause).await;
        allowed += u64::from(limiter.take(charges).await?.is_allowed());
    }
    let end = counters.counts();
    Ok(line(
        name,
        charges.len() as u64,
        allowed,
        end.round_trips - start.round_trips,
        end.write_units - start.write_units,
    ))
}

/// Forty clients that share nothing ask for ten tokens at one instant, as in `tollgate race`.
async fn concurrent(target: &Target, name: &'static str) -> Result<Line> {
    let (answers, mut received) = mpsc::unbounded_channel();
    Race::new(target, 10, true)?.clients(40, answers, std::future::ready(())).await?;
    let (mut clients, mut allowed, mut round_trips, mut write_units) = (0, 0, 0, 0);
    while let Some(answer) = received.recv().await {
        clients += 1;
        allowed += u64::from(answer.allowed == Some(true));
        round_trips += answer.round_trips;
        write_units += answer.write_units;
    }
    Ok(line(name, clients, allowed, round_trips, write_units))
}

#[allow(clippy::cast_precision_loss, reason = "counts of a few thousand")]
fn line(name: &'static str, decisions: u64, allowed: u64, round_trips: u64, write_units: u64) -> Line {
    let per = |n: u64| n as f64 / decisions.max(1) as f64;
    Line { name, decisions, allowed, round_trips: per(round_trips), write_units: per(write_units) }
}
