//! How many lines of a log `tollgate replay` decides a second, on one core, and what it remembers of a caller.
//!
//! Invariant: lines are made before the clock starts, and are read, matched and decided as those of a file are, by one thread.

use super::memory::resident;
use crate::error::{CliError, Result};
use serde::Serialize;
use std::time::Instant;
use tollgate_policy::Policy;
use tollgate_replay::{Applied, Options, Replay};

/// What deciding a log took.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Line {
    /// Lines in the combined format.
    pub lines: u64,
    /// Addresses that they are of.
    pub keys: u64,
    /// Lines decided a second, the best of three runs.
    pub lines_per_second: u64,
    /// Bytes that the process has more in memory for each address (resident set); `None` where the system does not tell.
    pub bytes_per_key: Option<u64>,
}

const POLICY: &str = "version = 1\n[limits.per-ip]\nkey = [\"client_ip\"]\nrate = \"10/min\"\nburst = 5\n";

/// Replays so many lines of a few addresses three times, and then as many addresses as lines allow.
pub(super) fn measure(lines: u64, keys: u64) -> Result<Line> {
    let policy = Policy::parse(POLICY).map_err(|e| CliError::System(format!("the bench's policy: {e:?}")))?.policy;
    let log = log(lines, 10_000);
    let mut per_second = 0;
    for _ in 0..3 {
        let start = Instant::now();
        let decided = decide(&policy, &log)?;
        let micros = u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX).max(1);
        per_second = per_second.max(decided.saturating_mul(1_000_000) / micros);
    }
    drop(log);
    let bytes_per_key = remembered(&policy, keys)?;
    Ok(Line { lines, keys, lines_per_second: per_second, bytes_per_key })
}

fn decide(policy: &Policy, log: &[u8]) -> Result<u64> {
    let rules = Applied::new(policy);
    let mut replay = Replay::new(&rules, Options::default());
    replay.read(None, log, |_| ()).map_err(failed)?;
    Ok(replay.report().map_err(failed)?.requests)
}

/// What a replay has in memory of each of so many callers, who ask once each, beside what it holds of requests.
fn remembered(policy: &Policy, keys: u64) -> Result<Option<u64>> {
    let rules = Applied::new(policy);
    let mut options = Options::default();
    options.held = 1024;
    let mut replay = Replay::new(&rules, options);
    let before = resident();
    for first in (0..keys).step_by(10_000) {
        let log: String = (first..keys.min(first + 10_000)).map(|number| line(number, number)).collect();
        replay.read(None, log.as_bytes(), |_| ()).map_err(failed)?;
    }
    let after = resident();
    let report = replay.report().map_err(failed)?;
    if report.requests != keys {
        return Err(CliError::System("the bench's log was not read as it was made".to_owned()));
    }
    Ok(before.zip(after).map(|(before, after)| after.saturating_sub(before) / keys.max(1)))
}

fn log(lines: u64, keys: u64) -> Vec<u8> {
    // Addresses in no order, and the same in every run.
    (0..lines).flat_map(|number| line(number, number.wrapping_mul(2_654_435_761) % keys).into_bytes()).collect()
}

/// Line `number`, ten a second, of a caller.
fn line(number: u64, caller: u64) -> String {
    let secs = number / 10;
    let (day, hour, minute, second) = (1 + secs / 86_400 % 28, secs / 3600 % 24, secs / 60 % 60, secs % 60);
    let [_, _, _, _, _, a, b, c] = caller.to_be_bytes();
    format!(
        "10.{a}.{b}.{c} - - [{day:02}/May/2015:{hour:02}:{minute:02}:{second:02} +0000] \"GET /images/{caller}.png?size=2 HTTP/1.1\" \
         200 5108 \"https://example.com/\" \"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36\"\n"
    )
}

fn failed(error: tollgate_replay::Error) -> CliError {
    CliError::System(error.to_string())
}
