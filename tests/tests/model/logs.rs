//! What logs and settled charges must keep, told from what is stored by its definition.

use crate::properties::Admission;
use crate::scenario::Scenario;
use crate::windows;
use tollgate_core::write::Assign;
use tollgate_core::{Bucket, Check, Entering, Entry, Expect, LimitWrite, Log, Terms, Timestamp};

const SECOND: u64 = 1_000_000_000;

fn log(terms: &Terms) -> Option<Log> {
    match terms.figures {
        tollgate_core::Figures::Log(log) => Some(log),
        _ => None,
    }
}

/// Whether more was admitted than a log has in some window that is shorter by what the clocks lie apart.
pub(crate) fn over_admitted(scenario: &Scenario, admitted: &[Admission]) -> bool {
    let exceeds = |last: &Admission| {
        let logs: Vec<_> = scenario.terms_of(&last.limit).iter().filter_map(log).collect();
        let (Some(most), Some(window)) =
            (logs.iter().map(Log::most).max(), logs.iter().map(|log| log.window_ns() / SECOND).min())
        else {
            return false;
        };
        let window = window - scenario.spread().unsigned_abs() / SECOND;
        let within = |a: &&Admission| a.limit == last.limit && a.secs <= last.secs && last.secs - a.secs < window;
        admitted.iter().filter(within).map(|a| a.cost).sum::<u64>() > most
    };
    admitted.iter().any(exceeds)
}

fn is_live(log: Log, entry: &Entry, now: Timestamp) -> bool {
    now.as_nanos() < entry.at.as_nanos() + log.window_ns()
}

/// Whether a cost fits what was found at `now`, by the definition; `None` if that is no log.
pub(crate) fn fits(terms: &Terms, found: Option<&Bucket>, now: Timestamp, cost: u64) -> Option<bool> {
    let log = log(terms)?;
    let live = found.into_iter().flat_map(|found| found.entries.iter()).filter(|entry| is_live(log, entry, now));
    Some(live.map(|entry| entry.cost).sum::<u64>() + cost <= log.most())
}

/// Whether `bucket` counts nothing any more at `now`; `None` if it is no log's or window's.
pub(crate) fn is_over(bucket: &Bucket, now: Timestamp) -> Option<bool> {
    match log(&bucket.terms) {
        Some(log) => Some(!bucket.entries.iter().any(|entry| is_live(log, entry, now))),
        None => windows::is_over(bucket, now),
    }
}

/// Whether `bucket` is a log's whose integer is not what its entries cost.
pub(crate) fn is_off(bucket: &Bucket) -> bool {
    log(&bucket.terms).is_some() && bucket.tat.0 != i128::from(bucket.entries.cost())
}

/// The entry that a write requires and takes out.
pub(crate) fn settled(limit: &LimitWrite) -> Option<Entry> {
    match (&limit.entering, &limit.assign, &limit.expect) {
        (Entering::Remove(entry), ..) => Some(*entry),
        (Entering::Set(_), Assign::Replace(_), Expect::Present(checks)) => {
            checks.iter().find_map(|check| match check {
                Check::Holds(entry) => Some(*entry),
                _ => None,
            })
        }
        _ => None,
    }
}
