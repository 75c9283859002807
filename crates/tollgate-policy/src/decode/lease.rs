//! `lease` of a limit: what a process may take ahead, and what a leased limit cannot have.
//!
//! Invariant: a limit that is leased has an item of its own, denies, and is charged what a call costs from the start.

use super::fields::{self, Fields, Node};
use super::limits::LimitEntry;
use crate::algorithm::Algorithm;
use crate::limit::Figures;
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
    let wrong = wrong(limit).into_iter().map(|(node, message)| (node, message, "remove it, or `lease`"));
    let is_right = fields::none_of(report, wrong);
    let suits = algorithm.is_none_or(|algorithm| can_be_leased(report, &node.span(), algorithm));
    (suits && is_right).then_some(Some(lease))
}

fn wrong<'f>(limit: &'f Fields<'_>) -> Vec<(Option<Node<'f>>, &'static str)> {
    let word = |key: &str, wrong: &str| limit.get(key).filter(|node| node.get_ref().as_str() == Some(wrong));
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
            limit.says("atomic", true),
            "a leased limit is in no transaction: what is taken ahead is spent without asking the table",
        ),
        (limit.says("own_item", false), "a leased limit has an item of its own"),
        (
            limit.says("coalesce", false),
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

/// Longest that a leased bucket may take to refill where plans have figures of their own, seconds.
const REFILLS_IN: u64 = 10;
/// What is lost for longer with a process that ends is worth a word, seconds.
const LOST_FOR: u64 = 3600;

/// Reports leased limits under which a key would be locked, and those of which a process that ends takes much with it.
pub(super) fn check(report: &mut Report<'_>, limits: &[LimitEntry]) {
    for entry in limits {
        let Some(limit) = entry.limit.as_ref().filter(|limit| limit.lease.is_some()) else { continue };
        let slowest = limit.all_figures().max_by_key(|(_, figures)| remembers_secs(figures));
        let Some((plan, figures)) = slowest else { continue };
        let (secs, name) = (remembers_secs(figures), &limit.name);
        let has_plans = limit.plans().next().is_some();
        if secs > REFILLS_IN && has_plans && figures.core.token_bucket().is_some() {
            let plan = plan.map_or_else(|| "without a plan of its own".to_owned(), |plan| format!("on plan `{plan}`"));
            let message = format!(
                "limit `{name}` is leased, and refills in {secs} s {plan}: what a key owes moves between leased plans as an instant, so \
                 one that leaves it would have to wait for as long"
            );
            report.error(&entry.at, message, format!("have every plan refill in {REFILLS_IN} s, or remove `lease`"));
        } else if secs > LOST_FOR {
            let message = format!(
                "limit `{name}` is leased, and remembers for {secs} s: what a process has taken ahead when it ends is lost for as long"
            );
            report.warning(
                &entry.at,
                message,
                "remove `lease`, unless processes live long and `lease` is small beside the limit",
            );
        }
    }
}

/// How long a bucket takes to refill, or a window lasts.
fn remembers_secs(figures: &Figures) -> u64 {
    let (_, length_ns) = figures.core.rate();
    let ns = figures.core.token_bucket().map_or(length_ns.into(), |bucket| bucket.refill_ns());
    u64::try_from(ns.div_ceil(1_000_000_000)).unwrap_or(u64::MAX)
}
