//! `tollgate attack sms-pumping`: a day with people and somebody who shares in what messages cost, for several seeds.
//!
//! | module | what it is |
//! | --- | --- |
//! | `traffic` | who asks for messages, by seed |
//! | `world` | the service, in this process |
//! | `play` | one day of a seed |
//! | `page` | the charts |
//!
//! Invariant: what is quoted of several seeds is the worst of each figure.

mod page;
mod play;
mod traffic;
mod world;

pub use play::{Climb, Day};

use crate::args::PumpingArgs;
use crate::error::{CliError, Result};
use crate::secrets::Keys;
use crate::{open, output, secrets};
use serde::Serialize;
use std::sync::Arc;
use tokio::task::JoinSet;
use tollgate::Policy;
use traffic::KNOWN;
use world::Defence;

/// A seed's day four times: with nothing, the limits, the ladder, and all of it in the way.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Played {
    /// With limits and ladder, and whose device is known is told from strangers.
    pub defended: Day,
    /// With limits and ladder, and everybody a stranger.
    pub strangers: Day,
    /// With limits alone.
    pub limits_only: Day,
    /// With neither.
    pub undefended: Day,
}

/// The worst of all seeds.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct Worst {
    /// Minutes until the attack was found; none if one never was.
    pub detected_after_min: Option<f64>,
    /// Percent of the bill without defence.
    pub loss_percent: f64,
    /// The same where everybody is a stranger.
    pub loss_percent_strangers: f64,
    /// The same with limits alone.
    pub loss_percent_limits_only: f64,
    /// Percent of people who were sent nothing.
    pub blocked_percent: f64,
    /// The same where everybody is a stranger.
    pub blocked_percent_strangers: f64,
    /// The same with limits alone.
    pub blocked_percent_limits_only: f64,
    /// Suspects before there was an attack.
    pub false_alarms: u64,
    /// How many times the usual bill was paid without defence; the least.
    pub times: f64,
}

/// What was played.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The first seed.
    pub seed: u64,
    /// The worst of each figure.
    pub worst: Worst,
    /// Each seed.
    pub days: Vec<Played>,
}

pub(crate) async fn run(args: &PumpingArgs) -> Result<()> {
    let policy = secrets::attach(open::policy(&args.policy.policy)?, Keys::OfOnesOwn).await?;
    // What is not told is new, so that nobody can have fitted anything to it.
    let seed = args.seed.unwrap_or_else(|| u64::from(fastrand::u32(..)));
    let report = report(policy, seed, args.seeds).await?;
    if let Some(path) = &args.html {
        crate::page::write(path, &page::render(&report)?)?;
    }
    output::result(args.json, &report, || text(&report))
}

/// Plays the days of `seeds` seeds from `seed` on.
///
/// # Errors
///
/// The policy has no `[otp.pumping]`, or sends no codes to Romania and Vietnam.
pub async fn report(policy: Policy, seed: u64, seeds: u32) -> Result<Report> {
    let (policy, mut playing) = (Arc::new(policy), JoinSet::new());
    for seed in (seed..).take(seeds as usize) {
        let policy = Arc::clone(&policy);
        playing.spawn(async move {
            let traffic = play::traffic(&policy, seed)?;
            Ok::<_, CliError>(Played {
                defended: play::play(&policy, &traffic, Defence::Devices).await?,
                strangers: play::play(&policy, &traffic, Defence::Ladder).await?,
                limits_only: play::play(&policy, &traffic, Defence::Limits).await?,
                undefended: play::play(&policy, &traffic, Defence::None).await?,
            })
        });
    }
    let mut days = Vec::new();
    while let Some(played) = playing.join_next().await {
        days.push(played.map_err(|e| CliError::System(format!("a day ended early: {e}")))??);
    }
    days.sort_by_key(|played| played.defended.seed);
    Ok(Report { seed, worst: worst(&days), days })
}

fn worst(days: &[Played]) -> Worst {
    let most = |figure: &dyn Fn(&Played) -> f64| days.iter().map(figure).fold(0.0, f64::max);
    let detected: Option<Vec<f64>> = days.iter().map(|played| played.defended.detected_after_min).collect();
    let times = |played: &Played| {
        let Day { lost, usual, .. } = &played.undefended;
        (play::percent(lost + usual, *usual)) / 100.0
    };
    Worst {
        detected_after_min: detected.map(|all| all.into_iter().fold(0.0, f64::max)),
        loss_percent: most(&|played| played.defended.loss_percent),
        loss_percent_strangers: most(&|played| played.strangers.loss_percent),
        loss_percent_limits_only: most(&|played| played.limits_only.loss_percent),
        blocked_percent: most(&|played| played.defended.blocked_percent),
        blocked_percent_strangers: most(&|played| played.strangers.blocked_percent),
        blocked_percent_limits_only: most(&|played| played.limits_only.blocked_percent),
        false_alarms: days.iter().map(|played| played.defended.false_alarms).max().unwrap_or(0),
        times: days.iter().map(times).fold(f64::INFINITY, f64::min),
    }
}

fn text(report: &Report) -> String {
    let minutes = |found: Option<f64>| found.map_or("never".to_owned(), |minutes| format!("{minutes:.1} min"));
    let mut text = String::from(
        "                       lost of undefended               CAPTCHAs   known   people blocked\n    seed     found   \
         all   strangers   limits                           all   strangers   limits\n",
    );
    for Played { defended, strangers, limits_only, .. } in &report.days {
        text += &format!(
            "{:>8}  {:>8}  {:>5.2}% {:>9.2}% {:>7.2}%  {:>5} of {:<5}  {:>3}%  {:>5.2}% {:>9.2}% {:>7.2}%\n",
            defended.seed,
            minutes(defended.detected_after_min),
            defended.loss_percent,
            strangers.loss_percent,
            limits_only.loss_percent,
            defended.challenged,
            defended.people,
            defended.known_percent,
            defended.blocked_percent,
            strangers.blocked_percent,
            limits_only.blocked_percent,
        );
    }
    let Worst { detected_after_min, loss_percent, loss_percent_limits_only, times, .. } = &report.worst;
    let Worst { blocked_percent, blocked_percent_strangers, .. } = &report.worst;
    text += &format!(
        "worst of {}: found after {}, {loss_percent:.2}% lost of a bill that is x{times:.1} without defence and \
         {loss_percent_limits_only:.1}% with limits alone, {blocked_percent:.2}% of people blocked \
         ({blocked_percent_strangers:.2}% were all of them strangers; {} to {}% are assumed to be known), {} false alarms",
        report.days.len(),
        minutes(*detected_after_min),
        KNOWN.start(),
        KNOWN.end(),
        report.worst.false_alarms,
    );
    text
}
