//! What a call is counted as once it is over: `count`, `on_success`, `refund_on` and `debt` of a limit, `settle_within` of a charge.
//!
//! Invariant: what is not said means that a call counts, as what it was charged, whatever comes of it.

use super::fields::{self, Fields, Node};
use super::limits::LimitEntry;
use super::lock::RangedDuration;
use crate::algorithm::Algorithm;
use crate::identity::{Identity, Source};
use crate::limit::{Counting, KeyPart, Limit, OnSuccess};
use crate::report::Report;
use std::time::Duration;
use tollgate_core::TokenBucket;

/// How long a charge may wait to be settled.
const WAITS: RangedDuration = RangedDuration {
    what: "settle_within",
    least: Duration::from_secs(1),
    most: Duration::from_secs(86_400),
    example: "\"1min\"",
};

pub(super) fn counting(report: &mut Report<'_>, fields: &Fields<'_>, algorithm: Algorithm) -> Option<Counting> {
    let failures_only = match fields.get("count") {
        Some(node) => fields::word(report, node, "count", &[("all", false), ("failures", true)])?,
        None => false,
    };
    let words = [("clear", OnSuccess::Clear), ("keep", OnSuccess::Keep)];
    let on_success = match fields.get("on_success") {
        Some(node) => Some((node, fields::word(report, node, "on_success", &words)?)),
        None => None,
    };
    let refunds_failures = match fields.get("refund_on") {
        Some(node) => fields::word(report, node, "refund_on", &[("5xx", true)])?,
        None => false,
    };
    if let (true, Some(node)) = (failures_only, fields.get("penalty")) {
        let help = "remove `penalty` here, and put it on another limit of the route that counts all calls";
        let message = "a limit that counts failures cannot lock: calls that are under way count, and may yet succeed";
        report.error(&node.span(), message, help);
        return None;
    }
    for node in ["count", "refund_on"].into_iter().filter_map(|key| fields.get(key)) {
        if matches!(algorithm, Algorithm::Pacer { .. }) {
            let help = "remove it, or write another algorithm";
            report.error(&node.span(), "a call of a pacer has gone when its answer is known: it counts", help);
            return None;
        }
    }
    let clears = algorithm == Algorithm::SlidingLog;
    let successes = match (failures_only, on_success) {
        (false, Some((node, _))) => {
            let help = "write `count = \"failures\"` beside it, or remove it";
            report.error(&node.span(), "`on_success` is for limits that count failures", help);
            return None;
        }
        (true, Some((node, OnSuccess::Clear))) if !clears => {
            let help = "write `on_success = \"keep\"`, or `algorithm = \"sliding-log\"`";
            report.error(&node.span(), "only a log knows which failures came before a success", help);
            return None;
        }
        (true, Some((_, chosen))) => Some(chosen),
        (true, None) => Some(if clears { OnSuccess::Clear } else { OnSuccess::Keep }),
        (false, None) => None,
    };
    Some(Counting { successes, refunds_failures, is_chosen: on_success.is_some() })
}

/// `debt` of a limit or of a plan's table; 0 where nothing is said, `None` if it is wrong.
pub(super) fn debt(report: &mut Report<'_>, fields: &Fields<'_>, algorithm: Algorithm) -> Option<u64> {
    let Some(node) = fields.get("debt") else { return Some(0) };
    if !algorithm.has_debt() {
        let message = format!("a limit with `algorithm = \"{}\"` has no debt", algorithm.as_str());
        report.error(&node.span(), message, "remove `debt`, or write `algorithm = \"token-bucket\"`");
        return None;
    }
    fields::integer(report, node, "debt", 0..=TokenBucket::MAX_TOKENS, "50")
}

/// `settle_within` of a charge, if it is right.
pub(super) fn settle_within(report: &mut Report<'_>, node: Node<'_>, limit: Option<&Limit>) -> Option<Duration> {
    let within = WAITS.read(report, node)?;
    if limit.is_some_and(|limit| matches!(limit.algorithm, Algorithm::Pacer { .. })) {
        let help = "remove `settle_within`, or charge a limit with another algorithm";
        report.error(&node.span(), "what a call of a pacer costs is settled when it is told to go", help);
        return None;
    }
    if limit.is_some_and(|limit| limit.lease.is_some()) {
        let message = "a leased limit is charged what a call costs from the start: what is taken ahead is no estimate";
        report.error(&node.span(), message, "remove `settle_within`, or `lease` of the limit");
        return None;
    }
    Some(within)
}

/// Whoever has one account would otherwise clear what his address has tried on others, as often as he likes.
pub(super) fn advise(report: &mut Report<'_>, identity: &Identity, limits: &[LimitEntry]) {
    // What a success is of: an account that the caller names, in a claim, the body or the path, or a device that is bound to one.
    let proves = |dimension: &str| {
        let source = identity.source(dimension);
        matches!(source, Some(Source::Claim(_) | Source::Body(_) | Source::Path(_) | Source::Device(_)))
    };
    for entry in limits {
        let Some(limit) = &entry.limit else { continue };
        let Counting { successes, is_chosen, .. } = limit.counting;
        let is_proved = limit.key.iter().any(|part: &KeyPart| part.alternatives().all(proves));
        if successes == Some(OnSuccess::Clear) && !is_chosen && !is_proved {
            let message = format!(
                "a success clears the failures of limit `{}`, which is not counted by whom it is of: one account of one's own \
                 is enough to try others for ever",
                limit.name
            );
            report.warning(&entry.at, message, "write `on_success = \"keep\"`, or \"clear\" if that is wanted");
        }
    }
}
