//! `lease` of a limit: what a process may take ahead, and what a leased limit cannot have.
//!
//! Invariant: a limit that is leased has an item of its own, denies, and is charged what a call costs from the start.

use super::fields::{self, Fields, Node};
use crate::algorithm::Algorithm;
use crate::report::{Report, Span};
use std::num::NonZeroU64;
use tollgate_core::TokenBucket;

/// `lease`, if it is there and right.
pub(super) fn lease(
    report: &mut Report<'_>,
    limit: &Fields<'_>,
    algorithm: Option<Algorithm>,
) -> Option<Option<NonZeroU64>> {
    let Some(node) = limit.get("lease") else { return Some(None) };
    let lease = NonZeroU64::new(fields::integer(report, node, "lease", 1..=TokenBucket::MAX_TOKENS, "500")?)?;
    let is_wrong = |(node, message): (Option<Node<'_>>, &str)| {
        let Some(node) = node else { return false };
        report.error(&node.span(), message, "remove it, or `lease`");
        true
    };
    let wrong = wrong(limit).into_iter().map(is_wrong).fold(false, |any, wrong| any | wrong);
    let suits = algorithm.is_none_or(|algorithm| can_be_leased(report, &node.span(), algorithm));
    (suits && !wrong).then_some(Some(lease))
}

fn wrong<'f>(limit: &'f Fields<'_>) -> Vec<(Option<Node<'f>>, &'static str)> {
    let word = |key: &str, wrong: &str| limit.get(key).filter(|node| node.get_ref().as_str() == Some(wrong));
    let says = |key: &str, wrong: bool| limit.get(key).filter(|node| node.get_ref().as_bool() == Some(wrong));
    let plans = limit.get("plans").and_then(|node| node.get_ref().as_table());
    let of_plans = plans.into_iter().flat_map(|plans| plans.values()).filter_map(|plan| plan.get_ref().get("debt"));
    let debts = of_plans.chain(limit.get("debt"));
    let others = [
        (limit.get("penalty"), "a leased limit cannot lock: what is taken ahead is spent without asking for a lock"),
        (limit.get("refund_on"), "a leased limit gives nothing back by an answer: only its process could spend that"),
        (
            word("count", "failures"),
            "a leased limit counts all calls: only the process of a success could spend it again",
        ),
        (
            says("atomic", true),
            "a leased limit is in no transaction: what is taken ahead is spent without asking the table",
        ),
        (says("own_item", false), "a leased limit has an item of its own"),
        (
            says("coalesce", false),
            "the calls of a leased limit line up: what one of them takes ahead is for those who come meanwhile",
        ),
        (
            word("mode", "shadow"),
            "a limit in shadow mode is not leased: it may have no room, and is charged where it has",
        ),
    ];
    let debts = debts.map(|node| (Some(node), "a leased limit has no debt: its calls cost what they are charged"));
    others.into_iter().chain(debts).collect()
}

fn can_be_leased(report: &mut Report<'_>, at: &Span, algorithm: Algorithm) -> bool {
    let why = match algorithm {
        Algorithm::Pacer { .. } => "a pacer is not leased: each call is told an instant of its own",
        Algorithm::SlidingLog => "a log is not leased: each call is an entry of its own",
        _ => return true,
    };
    report.error(at, why, "remove `lease`, or write another `algorithm`");
    false
}
