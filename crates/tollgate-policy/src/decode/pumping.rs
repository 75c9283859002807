//! `[otp.pumping]`: what messages cost, and on which limits that and a reduced rate are charged.

use super::fields::{self, Fields, Node};
use super::identity;
use super::keys;
use super::limits::LimitEntry;
use super::routes::check_cost;
use crate::otp::PumpingRules;
use crate::report::Report;
use crate::suggest;
use std::collections::BTreeMap;
use tollgate_core::{LimitName, TokenBucket};

const PRICES_EXAMPLE: &str = "{ RO = 480, VN = 790 }";
const SPEND_EXAMPLE: &str = "[\"otp-spend-hour\", \"otp-spend-day\"]";

/// `Some(None)` if there is none, `None` if it has a mistake.
#[allow(clippy::option_option)]
pub(super) fn decode(
    report: &mut Report<'_>,
    node: Option<Node<'_>>,
    countries: &[String],
    limits: &[LimitEntry],
) -> Option<Option<PumpingRules>> {
    let Some(node) = node else { return Some(None) };
    let fields = Fields::open(report, node, "[otp.pumping]", &keys::PUMPING)?;
    let prices = prices(report, &fields, countries);
    let spend = spend(report, &fields, limits);
    let help = "name the limit that few messages are charged on: `reduced = \"otp-reduced\"`";
    let reduced_node = fields.required(report, "reduced", help);
    let reduced = reduced_node.and_then(|node| limit(report, node, "reduced", limits));
    if let (Some(prices), Some(spend), Some(node)) = (&prices, &spend, fields.get("prices")) {
        let most = prices.iter().filter(|(country, _)| countries.contains(country)).map(|(_, price)| *price).max();
        let charged =
            limits.iter().filter_map(|entry| entry.limit.as_ref()).filter(|limit| spend.contains(&limit.name));
        charged.for_each(|limit| check_cost(report, &node.span(), limit, most.unwrap_or(1)));
    }
    let is_both = |reduced: &LimitName| spend.iter().flatten().any(|name| name == reduced);
    if let (Some(name), Some(node)) = (reduced.as_ref().filter(|name| is_both(name)), reduced_node) {
        let message = format!("limit `{name}` is one of `spend`, and prices are charged on it");
        report.error(&node.span(), message, "name a limit of its own, that a message to suspected numbers costs 1 on");
        return None;
    }
    Some(Some(PumpingRules { prices: prices?, spend: spend?, reduced: reduced? }))
}

/// A price for each country that codes may be sent to.
fn prices(report: &mut Report<'_>, fields: &Fields<'_>, countries: &[String]) -> Option<BTreeMap<String, u64>> {
    let help = format!("say what a message to each country costs: `prices = {PRICES_EXAMPLE}`");
    let node = fields.required(report, "prices", &help)?;
    let mut prices = BTreeMap::new();
    let mut complete = true;
    for (name, value) in fields::entries(fields::table(report, node, "prices", PRICES_EXAMPLE)?) {
        let country = name.get_ref().as_ref();
        let is_known = identity::region(report, value, country).is_some();
        let price = fields::integer(report, value, "a price", 1..=TokenBucket::MAX_TOKENS, "480");
        match price.filter(|_| is_known) {
            Some(price) => drop(prices.insert(country.to_owned(), price)),
            None => complete = false,
        }
    }
    if !complete {
        return None;
    }
    let lacking: Vec<_> = countries.iter().filter(|country| !prices.contains_key(*country)).collect();
    for country in &lacking {
        report.error(&node.span(), format!("`prices` has no price for {country}, where codes are sent to"), &help);
    }
    lacking.is_empty().then_some(prices)
}

fn spend(report: &mut Report<'_>, fields: &Fields<'_>, limits: &[LimitEntry]) -> Option<Vec<LimitName>> {
    let help = format!("name the limits that prices are charged on: `spend = {SPEND_EXAMPLE}`");
    let node = fields.required(report, "spend", &help)?;
    let list = fields::list(report, node, "spend", SPEND_EXAMPLE)?;
    if list.is_empty() {
        report.error(&node.span(), "`spend` has no limit", &help);
        return None;
    }
    let mut names: Vec<LimitName> = Vec::new();
    let mut complete = true;
    for node in list {
        match limit(report, node, "a limit of `spend`", limits) {
            Some(name) if names.contains(&name) => {
                report.error(&node.span(), format!("limit `{name}` is given twice"), "write each limit once");
                complete = false;
            }
            Some(name) => names.push(name),
            None => complete = false,
        }
    }
    complete.then_some(names)
}

/// A limit that exists.
fn limit(report: &mut Report<'_>, node: Node<'_>, what: &str, limits: &[LimitEntry]) -> Option<LimitName> {
    let name = fields::text(report, node, what, "\"otp-reduced\"")?;
    if limits.iter().all(|entry| entry.name != name) {
        let help = suggest::help(name, "limit", limits.iter().map(|entry| entry.name.as_str()));
        report.absent(&node.span(), name, format!("there is no limit `{name}`"), help);
        return None;
    }
    LimitName::new(name).ok()
}
