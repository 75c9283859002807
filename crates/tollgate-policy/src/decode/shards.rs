//! `shards` of a limit: what can be divided among several items, and what a divided limit cannot have.
//!
//! Invariant: the shards of every limit add up to its figures, on every plan, and an operator's order reaches all of them at once.

use super::fields::{self, Fields};
use super::limits::LimitEntry;
use crate::algorithm::Algorithm;
use crate::charges::items_of_a_caller;
use crate::identity::Identity;
use crate::limit::{Figures, Limit};
use crate::report::{Report, Span};
use std::num::NonZeroU16;
use tollgate_core::Shard;

/// `shards`, if it is there and right, by the figures for everybody and of every plan.
pub(super) fn shards<'f>(
    report: &mut Report<'_>,
    limit: &Fields<'_>,
    algorithm: Option<Algorithm>,
    figures: impl Iterator<Item = &'f Figures>,
) -> Option<Option<NonZeroU16>> {
    let Some(node) = limit.get("shards") else { return Some(None) };
    let shards = fields::integer(report, node, "shards", 2..=u64::from(Shard::MOST), "8")?;
    let shards = u16::try_from(shards).ok().and_then(NonZeroU16::new)?;
    let wrong = [
        (
            limit.get("penalty"),
            "a limit with shards cannot lock: a lock would be on the shard that has denied, and the others let the key pass",
            "remove `penalty`, or `shards`",
        ),
        (
            limit.says("atomic", true),
            "a limit with shards is in no transaction: which shard is charged shows only when one has room",
            "remove `atomic`, or `shards`",
        ),
        (
            limit.get("lease"),
            "a limit with shards is not leased: what a process takes ahead is of one item, and each call is on another",
            "remove `lease`, or `shards`",
        ),
        (limit.says("own_item", false), "a limit with shards has items of its own", "remove `own_item`, or `shards`"),
    ];
    let mut is_right = fields::none_of(report, wrong);
    is_right &= algorithm.is_none_or(|algorithm| can_be_divided(report, &node.span(), algorithm));
    if is_right {
        for figures in figures.filter(|figures| !figures.core.can_be_divided(shards)) {
            is_right &= explain(report, &node.span(), shards, figures);
        }
    }
    is_right.then_some(Some(shards))
}

fn can_be_divided(report: &mut Report<'_>, at: &Span, algorithm: Algorithm) -> bool {
    let why = match algorithm {
        Algorithm::Pacer { .. } => {
            "a pacer has no shards: each would tell its calls instants of its own, and they would go together"
        }
        Algorithm::SlidingLog => {
            "a log has no shards: it counts 32 calls at most, and a success would clear one of them"
        }
        _ => return true,
    };
    report.error(at, why, "remove `shards`, or write another `algorithm`");
    false
}

/// Tells why figures cannot be divided; that is never right.
fn explain(report: &mut Report<'_>, at: &Span, shards: NonZeroU16, figures: &Figures) -> bool {
    let most = figures.core.most();
    let (message, help) = if most < u64::from(shards.get()) {
        let message = format!("{shards} shards of {most} at once ({}) leave some without a call", figures.rate());
        (message, format!("write at most {most} shards, or let more pass at once"))
    } else {
        let message = format!("{shards} shards of {} are slower than a rate can be", figures.rate());
        (message, "write fewer shards, or remove them: so slow a limit needs none".to_owned())
    };
    report.error(at, message, help);
    false
}

/// Reports limits of which one caller can have more items than a transaction takes: what an operator sets is set on all at once.
pub(super) fn check(report: &mut Report<'_>, identity: &Identity, limits: &[LimitEntry]) {
    for entry in limits {
        let Some((limit, shards)) = entry.limit.as_ref().and_then(|limit| Some((limit, limit.shards?))) else {
            continue;
        };
        let each = items_of_a_caller(identity, limit);
        let most = usize::from(Shard::MOST) / each;
        if usize::from(shards.get()) > most {
            let message = format!(
                "limit `{}` has {shards} shards for each of up to {each} secrets that its personal values can be under, and one \
                 transaction sets a ban on 100 items",
                entry.name
            );
            report.error(&entry.at, message, format!("write at most {most} shards"));
        }
    }
}

/// How many shards keep a limit with these figures below so many writes a second to each, at `cost` tokens a call; `None` if it cannot
/// have them.
pub(super) fn enough(limit: &Limit, per_second: u64, cost: u64) -> Option<NonZeroU16> {
    let is_apart = limit.penalty.is_none() && limit.lease.is_none() && !limit.atomic;
    let suits = |shards: NonZeroU16| {
        let suits = |figures: &Figures| {
            let takes = per_second.saturating_mul(u64::from(shards.get()));
            !figures.exceeds(takes, cost)
                && figures.core.can_be_divided(shards)
                && figures.core.least_of_shards(shards) >= cost
        };
        limit.all_figures().all(|(_, figures)| suits(figures))
    };
    (2..=Shard::MOST).filter_map(NonZeroU16::new).find(|shards| is_apart && suits(*shards))
}
