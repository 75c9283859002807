//! What can only be judged with the whole file in view: routes that hide each other, and advice about the table.

use super::limits::LimitEntry;
use super::routes::Matched;
use crate::algorithm::Algorithm;
use crate::limit::Limit;
use crate::report::{Report, Span};
use crate::route::{Exemption, Route};
use crate::suggest;
use std::collections::BTreeMap;
use std::num::NonZeroU64;

/// Writes a second that one DynamoDB item takes (1,000 write units a second for each partition).
const ITEM_WRITES_PER_SECOND: u64 = 1000;

/// Size up to which a write of an item takes one unit, in bytes.
const WRITE_UNIT_BYTES: usize = 1024;

/// Reports routes that conflict with an earlier one, and routes that exemptions leave nothing of.
pub(super) fn reachable(report: &mut Report<'_>, routes: &[Matched<Route>], exemptions: &[Matched<Exemption>]) {
    for (i, route) in routes.iter().enumerate() {
        let pattern = &route.value.pattern;
        if let Some(earlier) = routes.iter().take(i).find(|earlier| pattern.conflicts_with(&earlier.value.pattern)) {
            let line = report.line(&earlier.at);
            let message = format!(
                "route `{pattern}` matches the same requests as `{}` in line {line}, and neither is more specific",
                earlier.value.pattern
            );
            report.error(&route.at, message, "remove one of the two, or give one a literal segment or other methods");
        }
        if pattern.covered_by(exemptions.iter().map(|exemption| &exemption.value.pattern)) {
            let message = format!("route `{pattern}` is unreachable: an exemption covers every request of it");
            report.error(&route.at, message, "remove the route, or narrow the exemption");
        }
    }
}

/// Warns about limits that nothing charges, keys that are too hot for an item, and items that are too large for a unit.
pub(super) fn advise(report: &mut Report<'_>, limits: &[LimitEntry], routes: &[Matched<Route>], revision: u64) {
    for entry in limits {
        let charged = |route: &Matched<Route>| {
            let charges = route.value.charges.iter();
            charges.filter(|charge| charge.limit.as_str() == entry.name).map(|charge| charge.cost).min()
        };
        let least_cost = routes.iter().filter_map(charged).min();
        // Calls that go out are on no route.
        let goes_out = entry.limit.as_ref().is_some_and(|limit| matches!(limit.algorithm, Algorithm::Pacer { .. }));
        if least_cost.is_none() && !routes.is_empty() && !goes_out {
            let message = format!("no route charges limit `{}`", entry.name);
            report.warning(&entry.at, message, "add it to the `charge` of a route, or remove it");
        }
        if let Some(limit) = &entry.limit {
            warn_if_hot(report, &entry.at, limit, least_cost.unwrap_or(1));
        }
    }
    warn_if_large(report, limits, revision);
}

fn warn_if_hot(report: &mut Report<'_>, at: &Span, limit: &Limit, cost: u64) {
    // A process that takes tokens ahead asks for its next calls with the same write.
    let ahead = limit.lease.map_or(0, NonZeroU64::get);
    let hot = limit.all_figures().find(|(_, figures)| figures.exceeds(ITEM_WRITES_PER_SECOND, cost + ahead));
    if let Some((_, figures)) = hot {
        let who = if limit.key.iter().all(|part| part.has("everyone")) { "all callers together" } else { "one key" };
        let message = format!(
            "limit `{}` lets {who} make more than {ITEM_WRITES_PER_SECOND} calls a second ({}), and each is a write \
             to one DynamoDB item, which takes about {ITEM_WRITES_PER_SECOND}",
            limit.name,
            figures.rate()
        );
        report.warning(
            at,
            message,
            "lower the rate, count by a dimension with more values, or let processes take tokens ahead (`lease`)",
        );
    }
}

/// Warns once for each set of dimensions whose shared item can pass [`WRITE_UNIT_BYTES`], at its last limit.
fn warn_if_large(report: &mut Report<'_>, limits: &[LimitEntry], revision: u64) {
    let mut items: BTreeMap<Vec<&str>, Vec<(&LimitEntry, usize)>> = BTreeMap::new();
    for entry in limits {
        let Some(limit) = entry.limit.as_ref().filter(|limit| !limit.has_own_item()) else { continue };
        let bytes = limit_bytes(limit, revision);
        for dimensions in limit.resolutions() {
            items.entry(dimensions).or_default().push((entry, bytes));
        }
    }
    for (dimensions, sharing) in items {
        let bytes = ITEM_BYTES + sharing.iter().map(|(_, bytes)| bytes).sum::<usize>();
        if let Some((last, _)) = sharing.last().filter(|_| bytes > WRITE_UNIT_BYTES) {
            let message = format!(
                "{} limits share the item of a key by {}: up to {bytes} bytes, and each write of more than \
                 {WRITE_UNIT_BYTES} costs two units",
                sharing.len(),
                suggest::quoted(dimensions)
            );
            report.warning(&last.at, message, "shorten the limits' names, or give some of them `own_item = true`");
        }
    }
}

/// Upper estimate of what an item has beside its limits: the partition key (its name, and at most 256 bytes, since
/// longer keys are stored as a digest), `h` and `expires_at` with a number of at most 20 digits each.
const ITEM_BYTES: usize = (2 + 256) + (1 + NUMBER_20) + (10 + NUMBER_20);

/// A DynamoDB number takes a byte for two digits and one or two more (developer guide, "Item sizes and formats").
const NUMBER_20: usize = 12;
const NUMBER_38: usize = 21;

/// Upper estimate of the bytes of one limit: the attributes `.tat`, `.f`, `.b` and `.g` with their names, `.p` if it locks, and
/// `.e` if it is a log.
fn limit_bytes(limit: &Limit, revision: u64) -> usize {
    let plans = limit.all_figures().map(|(plan, _)| limit.terms(plan, revision).to_string().len());
    let terms = plans.max().unwrap_or(0);
    let names = 4 * limit.name.as_str().len() + ".tat.f.b.g".len();
    let lock = limit.penalty.map_or(0, |_| limit.name.as_str().len() + ".p".len() + NUMBER_38);
    let most = limit.all_figures().filter_map(|(_, figures)| figures.core().log()).map(|log| log.most()).max();
    let entries = most.and_then(|most| usize::try_from(most).ok()).map_or(0, |most| {
        // A set of numbers has 3 bytes of its own, and 1 for each element.
        limit.name.as_str().len() + ".e".len() + 3 + most * (NUMBER_38 + 1)
    });
    names + NUMBER_38 + terms + NUMBER_20 + NUMBER_38 + lock + entries
}
