//! Limits out of the traffic: rates and bursts that a share of the clients never reaches, and what each would have denied.
//!
//! For each limit by itself, in three readings of the records: (1) of each key the most that it was charged in a second and in
//! a minute of the clock; (2) at the rates that percentiles of those minutes give, of each key the smallest burst that would have let all of it
//! pass; (3) the token bucket of each rate and of the same percentile of its bursts, run over the traffic. All of it is exact: no
//! key is left out and nothing is estimated.
//!
//! Invariant: memory is for the keys, some 300 bytes each, and the last row, of the highest rate and the largest burst, denies nothing.

use crate::error::{Error, Result};
use crate::intake::{Record, Replay};
use serde::Serialize;
use std::collections::BTreeMap;
use tollgate_core::{Actual, Ticks, Timestamp, TokenBucket, Verdict};

/// Percentiles in tenths of a percent, with their names.
const PERCENTILES: [(&str, u64); ROWS] = [("p50", 500), ("p90", 900), ("p99", 990), ("p99.9", 999), ("max", 1000)];
const ROWS: usize = 5;
/// The period of the rates.
const MINUTE_NS: u64 = 60_000_000_000;
const SECOND_NS: u64 = 1_000_000_000;

/// Limits that the traffic suggests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Suggestion {
    /// Keys that were charged: clients, as this limit sees them.
    pub keys: u64,
    /// Requests that were charged.
    pub requests: u64,
    /// By percentile of the keys, rising.
    pub rows: Vec<Row>,
}

/// A token bucket, and what it would have done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Row {
    /// `p50`, `p90`, `p99`, `p99.9` or `max`: so many of the keys have no higher peaks than these.
    pub percentile: &'static str,
    /// Tokens charged in the busiest second of the clock.
    pub peak_per_second: u64,
    /// Tokens charged in the busiest minute of the clock.
    pub peak_per_minute: u64,
    /// The rate: tokens a minute.
    pub per_minute: u64,
    /// The burst: what so many of the keys need at this rate so that they are never denied.
    pub burst: u64,
    /// Keys of which this bucket would have denied a request.
    pub keys_denied: u64,
    /// Requests that this bucket would have denied.
    pub requests_denied: u64,
}

/// What a key was charged in the current second or minute, and at most in one.
#[derive(Clone, Copy, Default)]
struct Peak {
    window: u64,
    now: u64,
    most: u64,
}

impl Peak {
    fn add(&mut self, at: Timestamp, length_ns: u64, cost: u64) {
        let window = at.as_nanos() / length_ns;
        if self.window != window {
            (self.window, self.now) = (window, 0);
        }
        self.now = self.now.saturating_add(cost);
        self.most = self.most.max(self.now);
    }
}

/// What a key would need, or got, at one rate.
#[derive(Clone, Copy, Default)]
struct Backlog {
    tat: u128,
    burst: u64,
}

#[derive(Clone, Copy, Default)]
struct Judged {
    tat: Option<Ticks>,
    denied: u64,
}

impl Replay<'_> {
    /// Suggestions for each limit of the first policy that was charged at all.
    ///
    /// # Errors
    ///
    /// [`Error::Spool`].
    pub fn suggest(&mut self) -> Result<BTreeMap<String, Suggestion>> {
        let Some(side) = self.sides.first() else { return Ok(BTreeMap::new()) };
        let limit_of: Vec<usize> = side.ledger.limits_of_slots().collect();
        let names: Vec<String> = side.ledger.names().map(ToString::to_string).collect();
        let mut requests = vec![0_u64; names.len()];
        let mut peaks = vec![[Peak::default(); 2]; limit_of.len()];
        self.charges(|at, slot, cost| {
            requests[limit_of[slot]] += 1;
            let [second, minute] = &mut peaks[slot];
            second.add(at, SECOND_NS, cost);
            minute.add(at, MINUTE_NS, cost);
        })?;
        let per_limit = |value: &dyn Fn(usize) -> u64| {
            let mut values = vec![Vec::new(); names.len()];
            limit_of.iter().enumerate().for_each(|(slot, limit)| values[*limit].push(value(slot)));
            values.into_iter().map(percentiles).collect::<Vec<_>>()
        };
        let [seconds, minutes] = [0, 1].map(|kind| per_limit(&|slot| peaks[slot][kind].most));
        let mut backlogs = vec![[Backlog::default(); ROWS]; limit_of.len()];
        self.charges(|at, slot, cost| {
            for (backlog, rate) in backlogs[slot].iter_mut().zip(minutes[limit_of[slot]]) {
                backlog.add(at, rate.max(1), cost);
            }
        })?;
        let bursts: Vec<_> = (0..ROWS).map(|row| per_limit(&|slot| backlogs[slot][row].burst)).collect();
        drop(backlogs);
        let bucket = |limit: usize, row: usize| {
            TokenBucket::new(minutes[limit][row].max(1), MINUTE_NS, bursts[row][limit][row].max(1)).ok()
        };
        let buckets: Vec<Vec<_>> =
            (0..names.len()).map(|limit| (0..ROWS).map(|row| bucket(limit, row)).collect()).collect();
        let mut judged = vec![[Judged::default(); ROWS]; limit_of.len()];
        self.charges(|at, slot, cost| {
            for (judged, bucket) in judged[slot].iter_mut().zip(&buckets[limit_of[slot]]) {
                let Some(bucket) = bucket else { continue };
                match bucket.take(judged.tat, at, cost) {
                    Verdict::Allowed { tat } => judged.tat = Some(tat),
                    _ => judged.denied += 1,
                }
            }
        })?;
        let mut denied = vec![[(0_u64, 0_u64); ROWS]; names.len()];
        for (limit, judged) in limit_of.iter().zip(&judged) {
            for ((keys, requests), judged) in denied[*limit].iter_mut().zip(judged) {
                *keys += u64::from(judged.denied > 0);
                *requests += judged.denied;
            }
        }
        let mut keys = vec![0_u64; names.len()];
        limit_of.iter().for_each(|limit| keys[*limit] += 1);
        let row = |limit: usize, row: usize| Row {
            percentile: PERCENTILES[row].0,
            peak_per_second: seconds[limit][row],
            peak_per_minute: minutes[limit][row],
            per_minute: minutes[limit][row].max(1),
            burst: bursts[row][limit][row].max(1),
            keys_denied: denied[limit][row].0,
            requests_denied: denied[limit][row].1,
        };
        let suggested = names.into_iter().enumerate().filter(|(limit, _)| requests[*limit] > 0).map(|(limit, name)| {
            let rows = (0..ROWS).map(|place| row(limit, place)).collect();
            (name, Suggestion { keys: keys[limit], requests: requests[limit], rows })
        });
        Ok(suggested.collect())
    }

    /// Shows every charge of the first policy in the order of time: when, on which limit and key, and how much it came to by its
    /// answer. Whether the policy's own figures would have denied it does not count.
    fn charges(&mut self, mut show: impl FnMut(Timestamp, usize, u64)) -> Result<()> {
        let (judges, sides) = (&self.judges, &self.sides);
        let (Some(judge), Some(side)) = (judges.first(), sides.first()) else { return Ok(()) };
        self.spool.each::<Error>(|Record { at, caller, status }| {
            let Some(plan) = side.plans.get(caller as usize).copied().flatten() else { return Ok(()) };
            for (slot, name, cost, by_answer) in side.ledger.costs(plan) {
                let actual = if by_answer && status > 0 { judge.rules.answered(name, status) } else { None };
                match actual {
                    Some(Actual::Clear | Actual::Cost(0)) => {}
                    _ if cost == 0 => {}
                    _ => show(at, slot, cost),
                }
            }
            Ok(())
        })
    }
}

impl Backlog {
    /// The theoretical arrival time if everything is admitted, in ticks of `1/rate` ns, and the burst that this takes.
    fn add(&mut self, at: Timestamp, rate: u64, cost: u64) {
        let now = u128::from(at.as_nanos()) * u128::from(rate);
        self.tat = self.tat.max(now) + u128::from(cost) * u128::from(MINUTE_NS);
        let burst = (self.tat - now).div_ceil(u128::from(MINUTE_NS));
        self.burst = self.burst.max(u64::try_from(burst).unwrap_or(u64::MAX).min(TokenBucket::MAX_TOKENS));
    }
}

/// The value at each of [`PERCENTILES`], by nearest rank; zeros of nothing.
fn percentiles(mut values: Vec<u64>) -> [u64; ROWS] {
    values.sort_unstable();
    PERCENTILES.map(|(_, thousandths)| {
        let rank = (values.len() as u64 * thousandths).div_ceil(1000).saturating_sub(1);
        usize::try_from(rank).ok().and_then(|rank| values.get(rank)).copied().unwrap_or(0)
    })
}
