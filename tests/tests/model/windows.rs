//! What limits that count by windows must keep, told from the packed state by its definition.

use crate::properties::Admission;
use crate::scenario::Scenario;
use tollgate_core::{Bucket, Item, LimitName, Span, Terms, Ticks, Timestamp, Window};

/// What packs the counts.
const K: i128 = 1_000_000_000;
const SECOND: u64 = 1_000_000_000;

/// When the window began that `bucket` counts in, epoch seconds; `None` if it counts no windows.
pub(crate) fn opening(bucket: &Bucket) -> Option<u64> {
    length(&bucket.terms)?;
    let (start, ..) = unpacked(bucket.tat);
    Some(start / SECOND)
}

/// Start in nanoseconds, what the window before counted, and the window.
fn unpacked(tat: Ticks) -> (u64, i128, i128) {
    (u64::try_from(tat.0 / K / K).unwrap(), tat.0 / K % K, tat.0 % K)
}

/// The length of a window, in seconds.
fn length(terms: &Terms) -> Option<u64> {
    match window(terms)?.span() {
        Span::Every(ns) => Some(ns / SECOND),
        _ => None,
    }
}

fn window(terms: &Terms) -> Option<Window> {
    match terms.figures {
        tollgate_core::Figures::Window(window) => Some(window),
        _ => None,
    }
}

/// Whether a window admitted more than it has, or more than `item` says that it has counted.
pub(crate) fn over_admitted(scenario: &Scenario, admitted: &[Admission], item: Option<&Item>) -> bool {
    let in_window = |limit: &LimitName, secs: u64| {
        let of = admitted.iter().filter(|a| a.limit == *limit && a.secs == secs);
        of.map(|a| i128::from(a.cost)).sum::<i128>()
    };
    let most = |limit: &LimitName| scenario.terms_of(limit).iter().filter_map(window).map(|window| window.most()).max();
    let exceeds = |a: &Admission| most(&a.limit).is_some_and(|most| in_window(&a.limit, a.secs) > most.into());
    let forgets = item.iter().flat_map(|item| &item.buckets).any(|(limit, bucket)| {
        let (Some(length), Some(secs)) = (length(&bucket.terms), opening(bucket)) else { return false };
        let (_, previous, count) = unpacked(bucket.tat);
        let before = secs.checked_sub(length).map_or(0, |secs| in_window(limit, secs));
        let is_sliding = window(&bucket.terms).is_some_and(|window| window.is_sliding());
        in_window(limit, secs) > count || is_sliding && before > previous
    });
    forgets || admitted.iter().any(exceeds)
}

/// Whether a cost fits what was found at `now`, by the definition.
pub(crate) fn fits(terms: &Terms, found: Option<&Bucket>, now: Timestamp, cost: u64) -> Option<bool> {
    let (window, length) = (window(terms)?, i128::from(length(terms)? * SECOND));
    let now = i128::from(now.as_nanos());
    let start = now / length * length;
    let (previous, count, start) = match found.map(|found| unpacked(found.tat)) {
        Some((at, previous, count)) if i128::from(at) >= start => (previous, count, i128::from(at)),
        Some((at, _, count)) if i128::from(at) == start - length => (count, 0, start),
        _ => (0, 0, start),
    };
    let left = length - (now - start).max(0);
    let previous = if window.is_sliding() { previous } else { 0 };
    Some(previous * left + (count + i128::from(cost)) * length <= i128::from(window.most()) * length)
}

/// Whether `bucket` counts nothing any more at `now`; `None` if it counts no windows.
pub(crate) fn is_over(bucket: &Bucket, now: Timestamp) -> Option<bool> {
    let (start, ..) = unpacked(bucket.tat);
    let windows = if window(&bucket.terms)?.is_sliding() { 2 } else { 1 };
    Some(start + windows * length(&bucket.terms)? * SECOND <= now.as_nanos())
}
