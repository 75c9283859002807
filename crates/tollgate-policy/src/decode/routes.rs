//! `[[routes]]` and `[[exempt]]`: which requests are charged what.

use super::fields::{self, Fields, Node};
use super::keys;
use super::limits::{LimitEntry, store_failure};
use super::settling;
use super::step_up;
use crate::algorithm::Algorithm;
use crate::charges::{most_items, most_sharing};
use crate::identity::{Identity, Source};
use crate::limit::{Figures, Limit};
use crate::pattern::Pattern;
use crate::report::{Report, Span};
use crate::route::{Exemption, Route, RouteCharge};
use crate::suggest;
use tollgate_core::{Charges, LimitName, TokenBucket};

const MATCH_EXAMPLE: &str = "\"POST /api/orders\"";
const CHARGE_EXAMPLE: &str = "[\"orders\"]";

/// What the rest of the file declares.
pub(super) struct Scope<'a> {
    pub(super) identity: &'a Identity,
    pub(super) limits: &'a [LimitEntry],
    pub(super) declares_cors: bool,
}

/// A route or an exemption, and where its `match` is.
pub(super) struct Matched<T> {
    pub(super) at: Span,
    pub(super) value: T,
}

pub(super) fn decode(report: &mut Report<'_>, node: Option<Node<'_>>, scope: &Scope<'_>) -> Vec<Matched<Route>> {
    let Some(list) = node.and_then(|node| fields::list(report, node, "routes", "[[routes]]")) else {
        return Vec::new();
    };
    list.iter().filter_map(|node| route(report, node, scope)).collect()
}

pub(super) fn exemptions(report: &mut Report<'_>, node: Option<Node<'_>>) -> Vec<Matched<Exemption>> {
    let Some(list) = node.and_then(|node| fields::list(report, node, "exempt", "[[exempt]]")) else {
        return Vec::new();
    };
    list.iter().filter_map(|node| exemption(report, node)).collect()
}

fn route(report: &mut Report<'_>, node: Node<'_>, scope: &Scope<'_>) -> Option<Matched<Route>> {
    let fields = Fields::open(report, node, "[[routes]]", &keys::ROUTE)?;
    let pattern = pattern(report, &fields);
    let help = format!("name the limits that a request is charged on: `charge = {CHARGE_EXAMPLE}`");
    let charges = fields.required(report, "charge", &help);
    let atomic = fields.get("atomic").and_then(|node| fields::boolean(report, node, "atomic", "false"));
    let atomic = atomic.unwrap_or(false);
    let charges = charges.and_then(|node| charges_of(report, node, scope, pattern.as_ref().map(|(_, p)| p), atomic));
    let on_store_failure = fields.get("on_store_failure").and_then(|node| store_failure(report, node));
    let cors = fields.get("cors").is_none_or(|node| cors(report, node, scope));
    let step_up = fields.get("step_up").map(|node| step_up::decode(report, node, scope.identity));
    let (at, pattern) = pattern?;
    let step_up = step_up.map_or(Some(None), |step_up| step_up.map(Some))?;
    Some(Matched { at, value: Route { pattern, charges: charges?, on_store_failure, atomic, cors, step_up } })
}

fn cors(report: &mut Report<'_>, node: Node<'_>, scope: &Scope<'_>) -> bool {
    let wanted = fields::boolean(report, node, "cors", "false").unwrap_or(true);
    if wanted && !scope.declares_cors {
        let help = "declare it once for all routes: `[http]` with `cors = { origins = [\"https://app.example.com\"] }`";
        report.absent(&node.span(), "cors", "`cors = true`, but the policy has no [http] cors", help);
    }
    wanted
}

fn exemption(report: &mut Report<'_>, node: Node<'_>) -> Option<Matched<Exemption>> {
    let fields = Fields::open(report, node, "[[exempt]]", &keys::EXEMPTION)?;
    let pattern = pattern(report, &fields);
    let help = "say why, for whoever reads this next: `why = \"a rate-limited health check lies\"`";
    let why = fields.required(report, "why", help).and_then(|node| {
        let why = fields::text(report, node, "why", "\"a rate-limited health check lies\"")?;
        if why.trim().is_empty() {
            report.error(&node.span(), "`why` is empty", help);
            return None;
        }
        Some(why.to_owned())
    });
    let (at, pattern) = pattern?;
    Some(Matched { at, value: Exemption { pattern, why: why? } })
}

fn pattern(report: &mut Report<'_>, fields: &Fields<'_>) -> Option<(Span, Pattern)> {
    let node = fields.required(report, "match", &format!("say which requests: `match = {MATCH_EXAMPLE}`"))?;
    let text = fields::text(report, node, "match", MATCH_EXAMPLE)?;
    let pattern = Pattern::parse(text).map_err(|problem| report.error(&node.span(), problem.message, problem.help));
    Some((node.span(), pattern.ok()?))
}

fn charges_of(
    report: &mut Report<'_>,
    node: Node<'_>,
    scope: &Scope<'_>,
    pattern: Option<&Pattern>,
    atomic: bool,
) -> Option<Vec<RouteCharge>> {
    let list = fields::list(report, node, "charge", CHARGE_EXAMPLE)?;
    if list.is_empty() {
        let help = format!("write `charge = {CHARGE_EXAMPLE}`, or use [[exempt]] for requests that are never counted");
        report.error(&node.span(), "`charge` is empty", help);
        return None;
    }
    let mut charges: Vec<RouteCharge> = Vec::with_capacity(list.len());
    let mut limits = Vec::with_capacity(list.len());
    let mut complete = true;
    for node in list.iter() {
        let Some((charge, limit)) = charge(report, node, scope) else {
            complete = false;
            continue;
        };
        if charges.iter().any(|earlier| earlier.limit == charge.limit) {
            let message = format!("limit `{}` is charged twice on this route", charge.limit);
            report.error(&node.span(), message, "add the costs up in one charge");
        }
        charges.push(charge);
        let Some(limit) = limit else { continue };
        limits.push(limit);
        if let Some(pattern) = pattern {
            check_params(report, &node.span(), scope.identity, limit, pattern);
        }
    }
    check_size(report, &node.span(), scope.identity, &limits);
    check_together(report, &node.span(), atomic, &limits);
    complete.then_some(charges)
}

/// A charge, and its limit unless something is wrong with that.
fn charge<'a>(report: &mut Report<'_>, node: Node<'_>, scope: &Scope<'a>) -> Option<(RouteCharge, Option<&'a Limit>)> {
    let (name_node, cost_node, within_node) = if node.get_ref().is_str() {
        (node, None, None)
    } else {
        let fields = Fields::open(report, node, "a charge", &keys::CHARGE)?;
        let name = fields.required(report, "limit", "name the limit: `{ limit = \"units\", cost = 5 }`")?;
        (name, fields.get("cost"), fields.get("settle_within"))
    };
    let name = fields::text(report, name_node, "limit", "\"orders\"")?;
    let cost = match cost_node {
        Some(node) => fields::integer(report, node, "cost", 1..=TokenBucket::MAX_TOKENS, "5")?,
        None => 1,
    };
    let Some(entry) = scope.limits.iter().find(|entry| entry.name == name) else {
        let help = suggest::help(name, "limit", scope.limits.iter().map(|entry| entry.name.as_str()));
        report.absent(&name_node.span(), name, format!("there is no limit `{name}`"), help);
        return None;
    };
    let limit = entry.limit.as_ref();
    if let Some(limit) = limit {
        check_cost(report, &cost_node.unwrap_or(node).span(), limit, cost);
        warn_of_pacer(report, &name_node.span(), limit);
    }
    let settle_within = within_node.and_then(|node| settling::settle_within(report, node, limit));
    Some((RouteCharge { settle_within, ..RouteCharge::new(LimitName::new(name).ok()?, cost) }, limit))
}

/// Reports a route on which a transaction is wanted that one of its limits cannot be a part of.
fn check_together(report: &mut Report<'_>, at: &Span, is_atomic: bool, limits: &[&Limit]) {
    if !is_atomic && !limits.iter().any(|limit| limit.atomic) {
        return;
    }
    let apart = |limit: &&&Limit| limit.shards.is_some() || limit.lease.is_some();
    let Some(limit) = limits.iter().find(apart) else { return };
    let is = if limit.shards.is_some() { "has shards" } else { "is leased" };
    let message = format!("limit `{}` {is}, and is in no transaction with the others of this route", limit.name);
    report.error(at, message, "remove `atomic`, or charge the limit on another route");
}

/// Reports a cost that a limit never has enough for.
pub(super) fn check_cost(report: &mut Report<'_>, at: &Span, limit: &Limit, cost: u64) {
    let tight = limit.all_figures().map(|(plan, figures)| (plan, limit.most_of_a_call(figures)));
    let Some((plan, burst)) = tight.min_by_key(|(_, burst)| *burst).filter(|(_, burst)| *burst < cost) else { return };
    let plan = plan.map(|plan| format!(" on plan `{plan}`")).unwrap_or_default();
    let shard = if limit.shards.is_some() { " in its smallest shard" } else { "" };
    let message = format!("cost {cost} never fits limit `{}`, which takes {burst} at most{plan}{shard}", limit.name);
    let figure = if limit.algorithm.has_burst() { "burst" } else { "rate" };
    report.error(at, message, format!("lower the cost to at most {burst}, or raise the {figure}"));
}

/// What passes a route is not held back: only the handler can wait.
fn warn_of_pacer(report: &mut Report<'_>, at: &Span, limit: &Limit) {
    let keeps_waiting =
        |figures: &Figures| matches!(limit.algorithm, Algorithm::Pacer { delay } if delay < figures.core.burst());
    if limit.all_figures().any(|(_, figures)| keeps_waiting(figures)) {
        let message = format!("limit `{}` is a pacer, and requests of a route pass without waiting", limit.name);
        let help = "have the handler wait for `Decision::starts_after`, or write `algorithm = \"token-bucket\"`";
        report.warning(at, message, help);
    }
}

/// A decision that can be too large for the table would fail at every call.
fn check_size(report: &mut Report<'_>, at: &Span, identity: &Identity, limits: &[&Limit]) {
    let (items, most) = (most_items(identity, limits.iter().copied()), Charges::MOST_ITEMS);
    if items > most {
        let message = format!("the limits of this route can be {items} items, and a decision has {most} at most");
        let help = "charge fewer limits, count several by the same key, or drop `own_item`; a key with personal values \
                    counts four times, once for each secret that there can be";
        report.error(at, message, help);
    }
    let (sharing, most) = (most_sharing(limits.iter().copied()), Charges::MOST_LIMITS);
    if sharing > most {
        let message = format!("{sharing} limits of this route share an item, and one write carries {most}");
        report.error(at, message, "charge fewer limits, or give some of them `own_item = true`");
    }
}

/// An entry of a key that only path parameters can give needs one of them in the pattern.
fn check_params(report: &mut Report<'_>, at: &Span, identity: &Identity, limit: &Limit, pattern: &Pattern) {
    let lacking = |dimension: &str| match identity.origin(dimension) {
        Some(Source::Path(param)) if !pattern.params().any(|known| known == param) => Some(param.clone()),
        _ => None,
    };
    for part in &limit.key {
        let params: Vec<Option<String>> = part.alternatives().map(lacking).collect();
        if let Some(Some(param)) = params.iter().find(|param| params.iter().all(Option::is_some) && param.is_some()) {
            let message = format!("limit `{}` is counted by `{part}`, but the path has no {{{param}}}", limit.name);
            report.error(
                at,
                message,
                format!("put {{{param}}} into the path of `match`, like \"GET /orders/{{{param}}}\""),
            );
        }
    }
}
