//! Round trips and write units a decision, by situation.

use super::{charges, charging, leased};
use crate::args::Target;
use crate::error::{CliError, Result};
use crate::open;
use crate::race::Race;
use futures_util::future::join_all;
use serde::Serialize;
use std::num::NonZeroU16;
use std::time::Duration;
use tokio::sync::mpsc;
use tollgate::Limiter;
use tollgate_core::{Actual, Charge, Charges, ItemKey, LimitName, PenaltyRule, Zone};
use tollgate_dynamodb::connect::Connected;
use tollgate_policy::Algorithm;

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

/// How the decisions of one situation are made.
#[derive(Debug, Clone, Copy, Default)]
struct Setting {
    /// What passes between two decisions.
    pause: Duration,
    /// Decisions before those that count.
    before: usize,
    /// Whether the process asks the store even where it knows of a denial.
    forgets: bool,
    /// Whether each call is settled afterwards.
    settles: bool,
}

pub(super) async fn measure(connected: &Connected, target: &Target) -> Result<Vec<Line>> {
    let sequence =
        |name, setting, decisions| async move { sequence(connected, &target.table, name, setting, decisions).await };
    let all = |charges: Vec<Charges>| vec![charges; DECISIONS as usize];
    let (first, after) = (Setting::default(), |before| Setting { before, ..Setting::default() });
    let forgetting = |before| Setting { before, forgets: true, ..Setting::default() };

    let new_keys = (0..DECISIONS).map(|_| charges(&[("orders", 50, 3600)])).collect::<Result<_>>()?;
    let busy = all(charges(&[("orders", 1000, 3600)])?);
    // Full again after 2 ms, so that each decision finds an idle bucket.
    let idle = all(charges(&[("orders", 1000, 1)])?);
    let pausing = Setting { pause: Duration::from_millis(4), ..after(1) };
    let spent = || Ok::<_, crate::error::CliError>(all(charges(&[("orders", 3, 86_400)])?));
    let rule = PenaltyRule::new(Duration::from_secs(60), 2, Duration::from_secs(3600), Duration::from_secs(86_400));
    let rule = rule.map_err(|error| CliError::Input(error.to_string()))?;
    // Of each new key one call passes, and the next is the first that is denied.
    let offences =
        || (0..DECISIONS).map(|_| locking(charges(&[("orders", 1, 86_400)])?, rule)).collect::<Result<Vec<_>>>();
    let locked = locking(charges(&[("orders", 1, 86_400)])?, rule)?;
    let three = all(charges(&[("second", 10_000, 1), ("hour", 100_000, 3600), ("day", 1_000_000, 86_400)])?);
    let three_keys = |last: u64| -> Result<Vec<Charges>> {
        let keys =
            [("user", 10_000), ("tenant", 100_000), ("global", last)].map(|(name, n)| charges(&[(name, n, 86_400)]));
        Ok(keys.into_iter().collect::<Result<Vec<_>>>()?.concat())
    };
    let atomic =
        || Ok::<_, crate::error::CliError>(three_keys(1_000_000)?.into_iter().map(|c| c.atomically(true)).collect());

    let counting = |algorithm: Algorithm, rate: &str| {
        let figures = algorithm.figures(rate, None).map_err(|error| CliError::Input(error.to_string()))?;
        charging(vec![(LimitName::new("orders")?, figures.core())]).map(all)
    };
    let by_month = counting(Algorithm::Quota(Zone::UTC), "100000/month")?;
    // Each decision finds the window before the one that it is in.
    let next_window = Setting { pause: Duration::from_secs(1), ..after(1) };
    let at_most = |mut decisions: Vec<Vec<Charges>>, most| {
        decisions.truncate(most);
        decisions
    };
    let few = |decisions| at_most(decisions, 3);
    let settling = |before| Setting { before, settles: true, ..Setting::default() };
    let reserve = |charge: &Charge| Charge { settled_within: Some(Duration::from_secs(60)), ..charge.clone() };
    let reserved = all(each(charges(&[("orders", 1000, 3600)])?, reserve)?);

    Ok(vec![
        sequence("new key", first, new_keys).await?,
        sequence("steady allow", after(1), busy).await?,
        sequence("idle key", pausing, idle).await?,
        sequence("denial, known", after(4), spent()?).await?,
        sequence("denial, unknown", forgetting(3), spent()?).await?,
        sequence("denial that locks", after(DECISIONS as usize), offences()?).await?,
        sequence("denial by a lock, unknown", forgetting(2), all(locked)).await?,
        sequence("fixed window", after(1), counting(Algorithm::FixedWindow, "1000/h")?).await?,
        sequence("fixed window, a new one", next_window, few(counting(Algorithm::FixedWindow, "1000/s")?)).await?,
        sequence("quota of a month", after(1), by_month).await?,
        sequence("sliding window", after(1), counting(Algorithm::SlidingWindow, "1000/h")?).await?,
        sequence("sliding window, a new one", next_window, few(counting(Algorithm::SlidingWindow, "1000/s")?)).await?,
        sequence("sliding log", after(1), at_most(counting(Algorithm::SlidingLog, "32/h")?, 30)).await?,
        sequence("sliding log, written anew", next_window, few(counting(Algorithm::SlidingLog, "1/s")?)).await?,
        sequence("sliding log, success taken out", settling(1), counting(Algorithm::SlidingLog, "32/h")?).await?,
        sequence("charge and settlement", settling(1), reserved).await?,
        sequence("leased", after(2 * DECISIONS as usize), all(leased(("orders", 1_000_000, 86_400), 10_000)?)).await?,
        sequence("3 limits on one key", after(1), three).await?,
        sequence("3 keys", after(1), all(three_keys(1_000_000)?)).await?,
        sequence("3 keys, known denial", after(4), all(three_keys(3)?)).await?,
        sequence("3 keys, unknown denial", forgetting(3), all(three_keys(3)?)).await?,
        sequence("3 keys, one transaction", after(1), all(atomic()?)).await?,
        sequence("8 shards", after(1), all(divided(1000)?)).await?,
        // Each has one token.
        sequence("8 shards, known denial", after(40), all(divided(8)?)).await?,
        sequence("8 shards, unknown denial", forgetting(200), all(divided(8)?)).await?,
        concurrent(target, "40 concurrent on a new key").await?,
        together(connected, &target.table, "40 concurrent in one process").await?,
    ])
}

/// A limit of so many a day, divided among eight shards.
fn divided(tokens: u64) -> Result<Vec<Charges>> {
    let shards = NonZeroU16::new(8);
    let apart = |charges: Charges| {
        let own = ItemKey::own(charges.key().clone(), LimitName::new("orders")?);
        Ok(Charges::new(own, charges.charges().to_vec())?.sharded(shards))
    };
    charges(&[("orders", tokens, 86_400)])?.into_iter().map(apart).collect()
}

/// The same charges on limits that lock.
fn locking(all: Vec<Charges>, rule: PenaltyRule) -> Result<Vec<Charges>> {
    each(all, |charge| Charge { penalty: Some(rule), ..charge.clone() })
}

/// The same decision, each charge with changes.
fn each(all: Vec<Charges>, change: impl Fn(&Charge) -> Charge) -> Result<Vec<Charges>> {
    let changed = |charges: Charges| {
        let list = charges.charges().iter().map(&change).collect();
        Charges::new(charges.item().clone(), list).map_err(|error| CliError::Input(error.to_string()))
    };
    all.into_iter().map(changed).collect()
}

/// Decides one after the other in one process.
async fn sequence(
    connected: &Connected,
    table: &str,
    name: &'static str,
    setting: Setting,
    decisions: Vec<Vec<Charges>>,
) -> Result<Line> {
    let (store, counters) = open::store(connected, table).await?;
    let mut limiter = Limiter::new(store).with_deadline(DEADLINE);
    if setting.forgets {
        limiter = limiter.denying_from_memory_for(Duration::ZERO);
    }
    for charges in decisions.iter().cycle().take(setting.before) {
        limiter.take(charges).await?;
    }
    let start = counters.counts();
    let mut allowed = 0;
    for charges in &decisions {
        tokio::time::sleep(setting.pause).await;
        let (decision, taken) = limiter.take_unsettled(charges).await?;
        allowed += u64::from(decision.is_allowed());
        if setting.settles {
            limiter.settle(charges, taken, |_| Some(Actual::Cost(0))).await;
        }
    }
    let end = counters.counts();
    let (round_trips, write_units) = (end.round_trips - start.round_trips, end.write_units - start.write_units);
    Ok(line(name, decisions.len() as u64, allowed, round_trips, write_units))
}

/// Forty clients that share nothing ask for ten tokens at one instant, as in `tollgate race`.
async fn concurrent(target: &Target, name: &'static str) -> Result<Line> {
    let (answers, mut received) = mpsc::unbounded_channel();
    Race::new(target, 1, 10, 40, true)?.clients(40, answers, std::future::ready(())).await?;
    let (mut clients, mut allowed, mut round_trips, mut write_units) = (0, 0, 0, 0);
    while let Some(answer) = received.recv().await {
        clients += 1;
        allowed += u64::from(answer.allowed == Some(true));
        round_trips += answer.round_trips;
        write_units += answer.write_units;
    }
    Ok(line(name, clients, allowed, round_trips, write_units))
}

/// Forty calls of one process for ten tokens of a new key.
async fn together(connected: &Connected, table: &str, name: &'static str) -> Result<Line> {
    let (store, counters) = open::store(connected, table).await?;
    let limiter = Limiter::new(store).with_deadline(DEADLINE);
    let ten = charges(&[("orders", 10, 86_400)])?;
    let start = counters.counts();
    let decisions = join_all((0..40).map(|_| limiter.take(&ten))).await;
    let end = counters.counts();
    let mut allowed = 0;
    for decision in decisions {
        allowed += u64::from(decision?.is_allowed());
    }
    Ok(line(name, 40, allowed, end.round_trips - start.round_trips, end.write_units - start.write_units))
}

#[allow(clippy::cast_precision_loss, reason = "counts of a few thousand")]
fn line(name: &'static str, decisions: u64, allowed: u64, round_trips: u64, write_units: u64) -> Line {
    let per = |n: u64| n as f64 / decisions.max(1) as f64;
    Line { name, decisions, allowed, round_trips: per(round_trips), write_units: per(write_units) }
}
