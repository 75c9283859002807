//! `[limits.NAME]`: keys, figures and messages.

use super::fields::{self, Fields, Node};
use super::keys;
use super::lease;
use super::lock::{Escalation, RangedDuration};
use super::settling;
use super::shards;
use super::texts::Texts;
use crate::algorithm::Algorithm;
use crate::limit::{Figures, KeyPart, Limit};
use crate::message::OF_DENIAL;
use crate::policy::Plans;
use crate::rate;
use crate::report::{Report, Span};
use crate::suggest;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tollgate_core::{LimitName, Mode, OnChange, StoreFailure, TokenBucket, Zone};

/// Most entries of a key, and most alternatives of an entry.
const MAX_KEY: usize = 4;

/// The longest `retry_jitter`.
const MOST_JITTER: Duration = Duration::from_secs(3600);

/// Locks are twice as long each time, an hour at most, and a level shorter for each day without one.
const PENALTY: Escalation = Escalation {
    what: "penalty",
    keys: &keys::PENALTY,
    of_first: "say how long the first denial locks a key: `first = \"1min\"`",
    forget: Duration::from_secs(86_400),
};

const MESSAGE: Texts = Texts { what: "message", known: OF_DENIAL, example: "Try again in {retry_after}." };

const KEY_EXAMPLE: &str = "[\"user\"]";
const RATE_EXAMPLE: &str = "\"50/h\"";

/// What the rest of the file declares.
pub(super) struct Scope<'a> {
    pub(super) dimensions: BTreeSet<&'a str>,
    pub(super) plans: &'a Plans,
}

/// A limit that is declared, and its value unless something is wrong with it.
pub(super) struct LimitEntry {
    pub(super) name: String,
    pub(super) at: Span,
    pub(super) limit: Option<Limit>,
}

pub(super) fn decode(report: &mut Report<'_>, node: Option<Node<'_>>, scope: &Scope<'_>) -> Vec<LimitEntry> {
    let Some(table) = node.and_then(|node| fields::table(report, node, "[limits]", "[limits.orders]")) else {
        if node.is_none() {
            report.warning(&(0..0), "the policy has no limits", "declare one, like [limits.orders]");
        }
        return Vec::new();
    };
    let decode = |(key, node): fields::Entry<'_>| {
        let name: &str = key.get_ref();
        let valid = LimitName::new(name).map_err(|error| {
            report.error(&key.span(), error.to_string(), "rename it, like [limits.tenant-orders]");
        });
        let limit = limit(report, node, valid.ok(), &format!("[limits.{name}]"), scope);
        LimitEntry { name: name.to_owned(), at: key.span(), limit }
    };
    fields::entries(table).into_iter().map(decode).collect()
}

fn limit(
    report: &mut Report<'_>,
    node: Node<'_>,
    name: Option<LimitName>,
    what: &str,
    scope: &Scope<'_>,
) -> Option<Limit> {
    let fields = Fields::open(report, node, what, &keys::LIMIT)?;
    let key = fields
        .required(report, "key", &format!("say who is counted: `key = {KEY_EXAMPLE}`"))
        .and_then(|node| key(report, node, scope));
    // The figures of another algorithm follow other rules; what this one would say about them is noise.
    let algorithm = algorithm(report, &fields);
    let (base, by_plan) = match algorithm {
        Some(algorithm) => {
            let base = figures(report, &fields, algorithm);
            let by_plan = by_plan(report, fields.get("plans"), scope.plans, (algorithm, base.as_ref()));
            (base, by_plan)
        }
        None => (None, None),
    };
    let max_wait = match algorithm {
        Some(algorithm) => transpose(max_wait(report, &fields, algorithm)),
        None => Some(None),
    };
    if let (Some(Algorithm::Pacer { delay }), Some(base)) = (algorithm, &base) {
        check_delay(report, &fields, delay, base);
    }
    let counting = algorithm.map(|algorithm| settling::counting(report, &fields, algorithm));
    let own_item = fields.get("own_item").map(|node| fields::boolean(report, node, "own_item", "false"));
    let lease = lease::lease(report, &fields, algorithm);
    let all_figures = base.iter().chain(by_plan.iter().flat_map(BTreeMap::values));
    let shards = shards::shards(report, &fields, algorithm, all_figures);
    let atomic = fields.get("atomic").map(|node| fields::boolean(report, node, "atomic", "false"));
    let first = fields.get("first").map(|node| fields::boolean(report, node, "first", "true"));
    let coalesce = fields.get("coalesce").map(|node| fields::boolean(report, node, "coalesce", "false"));
    let deny_cache = fields.get("deny_cache").map(|node| fields::boolean(report, node, "deny_cache", "false"));
    let mode = match fields.get("mode") {
        Some(node) => fields::word(report, node, "mode", &[("enforce", Mode::Enforce), ("shadow", Mode::Shadow)]),
        None => Some(Mode::default()),
    };
    let on_change = match fields.get("on_change") {
        Some(node) => fields::word(
            report,
            node,
            "on_change",
            &[("proportional", OnChange::Proportional), ("reset", OnChange::Reset), ("keep", OnChange::Keep)],
        ),
        None => Some(OnChange::default()),
    };
    let messages = fields.get("message").map(|node| MESSAGE.read(report, node));
    let upgrade_url = fields.get("upgrade_url").map(|node| upgrade_url(report, node));
    let on_store_failure = fields.get("on_store_failure").map(|node| store_failure(report, node));
    let hidden = match fields.get("headers") {
        Some(node) => fields::word(report, node, "headers", &[("visible", false), ("hidden", true)]),
        None => Some(false),
    };
    let penalty = fields.get("penalty").map(|node| PENALTY.read(report, node));
    let jitter = RangedDuration { what: "retry_jitter", least: Duration::ZERO, most: MOST_JITTER, example: "\"10s\"" };
    let retry_jitter = fields.get("retry_jitter").map(|node| jitter.read(report, node));
    Some(Limit {
        name: name?,
        key: key?,
        algorithm: algorithm?,
        base: base?,
        by_plan: by_plan?,
        max_wait: max_wait?,
        on_change: on_change?,
        counting: counting??,
        messages: transpose(messages)?,
        upgrade_url: transpose(upgrade_url)?,
        on_store_failure: transpose(on_store_failure)?,
        hidden: hidden?,
        mode: mode?,
        own_item: transpose(own_item)?.unwrap_or(false),
        lease: lease?,
        shards: shards?,
        atomic: transpose(atomic)?.unwrap_or(false),
        first: transpose(first)?.unwrap_or(false),
        coalesce: transpose(coalesce)?.unwrap_or(true),
        deny_cache: transpose(deny_cache)?.unwrap_or(true),
        penalty: transpose(penalty)?,
        retry_jitter: transpose(retry_jitter)?.unwrap_or_default(),
    })
}

/// A value that is not there is fine; one that is wrong is not.
fn transpose<T>(value: Option<Option<T>>) -> Option<Option<T>> {
    match value {
        Some(None) => None,
        Some(value) => Some(value),
        None => Some(None),
    }
}

fn key(report: &mut Report<'_>, node: Node<'_>, scope: &Scope<'_>) -> Option<Vec<KeyPart>> {
    let list = fields::list(report, node, "key", KEY_EXAMPLE)?;
    if list.is_empty() || list.len() > MAX_KEY {
        let message = format!("a key has 1 to {MAX_KEY} entries, not {}", list.len());
        report.error(
            &node.span(),
            message,
            format!("name the dimensions that are counted together, like {KEY_EXAMPLE}"),
        );
        return None;
    }
    let mut seen = BTreeSet::new();
    let parts: Vec<_> = list.iter().map(|node| key_part(report, node, scope, &mut seen)).collect();
    parts.into_iter().collect()
}

fn key_part<'a>(
    report: &mut Report<'_>,
    node: Node<'a>,
    scope: &Scope<'_>,
    seen: &mut BTreeSet<&'a str>,
) -> Option<KeyPart> {
    let text = fields::text(report, node, "a key dimension", "\"user\"")?;
    let alternatives: Vec<&str> = text.split("??").map(str::trim).collect();
    let mut valid = alternatives.len() <= MAX_KEY;
    if !valid {
        let message = format!("{text:?} has {} alternatives; the most is {MAX_KEY}", alternatives.len());
        report.error(&node.span(), message, "write it like \"user ?? client_ip\"");
    }
    for dimension in &alternatives {
        if dimension.is_empty() {
            let help = "write a dimension, or two with a fallback between them, like \"user ?? client_ip\"";
            report.error(&node.span(), format!("{text:?} lacks a dimension"), help);
            valid = false;
        } else if !scope.dimensions.contains(dimension) {
            let nearest = suggest::nearest(dimension, scope.dimensions.iter().copied());
            let help = match nearest {
                Some(name) => format!("did you mean `{name}`?"),
                None => format!("declare it under [identity], like `{dimension} = \"claims.{dimension}\"`"),
            };
            report.absent(&node.span(), dimension, format!("key dimension `{dimension}` is not declared"), help);
            valid = false;
        } else if !seen.insert(dimension) {
            let help = "name each dimension once in a key";
            report.error(&node.span(), format!("key dimension `{dimension}` occurs twice"), help);
            valid = false;
        }
    }
    valid.then(|| KeyPart::new(alternatives.into_iter().map(str::to_owned).collect()))
}

fn algorithm(report: &mut Report<'_>, fields: &Fields<'_>) -> Option<Algorithm> {
    let algorithm = match fields.get("algorithm") {
        Some(node) => {
            let all = [
                Algorithm::TokenBucket,
                Algorithm::FixedWindow,
                Algorithm::Quota(Zone::UTC),
                Algorithm::SlidingWindow,
                Algorithm::SlidingLog,
                Algorithm::Pacer { delay: 0 },
            ];
            fields::word(report, node, "algorithm", &all.map(|algorithm| (algorithm.as_str(), algorithm)))?
        }
        None => Algorithm::default(),
    };
    let algorithm = match (algorithm, fields.get("zone")) {
        (Algorithm::Quota(_), Some(node)) => Algorithm::Quota(time_zone(report, node)?),
        (_, Some(node)) => {
            let message = format!("a limit with `algorithm = \"{}\"` has no calendar, and no zone", algorithm.as_str());
            report.error(&node.span(), message, "remove `zone`, or write `algorithm = \"quota\"`");
            return None;
        }
        (algorithm, None) => algorithm,
    };
    match (algorithm, fields.get("delay")) {
        (Algorithm::Pacer { .. }, Some(node)) => {
            let delay = fields::integer(report, node, "delay", 0..=TokenBucket::MAX_TOKENS, "5")?;
            Some(Algorithm::Pacer { delay })
        }
        (_, Some(node)) => paces_nobody(report, node, "delay", algorithm),
        (algorithm, None) => Some(algorithm),
    }
}

/// What only a pacer has.
fn paces_nobody<T>(report: &mut Report<'_>, node: Node<'_>, key: &str, algorithm: Algorithm) -> Option<T> {
    let message =
        format!("a limit with `algorithm = \"{}\"` keeps nobody waiting, and has no {key}", algorithm.as_str());
    report.error(&node.span(), message, format!("remove `{key}`, or write `algorithm = \"pacer\"`"));
    None
}

/// `max_wait` of a pacer, if it is there.
fn max_wait(report: &mut Report<'_>, fields: &Fields<'_>, algorithm: Algorithm) -> Option<Option<Duration>> {
    let node = fields.get("max_wait")?;
    if !matches!(algorithm, Algorithm::Pacer { .. }) {
        return Some(paces_nobody(report, node, "max_wait", algorithm));
    }
    let text = fields::text(report, node, "max_wait", "\"2s\"");
    let read = text.map(|text| {
        rate::read_duration(text).map_err(|problem| report.error(&node.span(), problem.message, problem.help)).ok()
    });
    Some(read.flatten())
}

/// A plan with a smaller burst has as much delay as that.
fn check_delay(report: &mut Report<'_>, fields: &Fields<'_>, delay: u64, base: &Figures) {
    let burst = base.core.burst();
    if let Some(node) = fields.get("delay").filter(|_| delay > burst) {
        let message = format!("delay {delay} is more than the burst, {burst}, of which these calls are a part");
        report.error(
            &node.span(),
            message,
            format!("write at most {burst}, by which no call waits, or a larger burst"),
        );
    }
}

fn time_zone(report: &mut Report<'_>, node: Node<'_>) -> Option<Zone> {
    let name = fields::text(report, node, "zone", "\"Europe/Bucharest\"")?;
    let zone = Zone::get(name);
    if zone.is_none() {
        let help = match suggest::nearest(name, Zone::names()) {
            Some(near) => format!("did you mean {near:?}?"),
            None => "write a name of the IANA time zone database, like \"Europe/Bucharest\" or \"UTC\"".to_owned(),
        };
        report.error(&node.span(), format!("time zone {name:?} is not known"), help);
    }
    zone
}

/// `rate` and `burst` of a limit or of a plan's table.
fn figures(report: &mut Report<'_>, fields: &Fields<'_>, algorithm: Algorithm) -> Option<Figures> {
    let rate = fields.required(report, "rate", &format!("say how much passes: `rate = {RATE_EXAMPLE}`"));
    let rate = rate.and_then(|node| {
        let text = fields::text(report, node, "rate", RATE_EXAMPLE)?;
        let rate =
            rate::parse(text).map_err(|problem| report.error(&node.span(), problem.message, problem.help)).ok()?;
        Some((node, text, rate))
    });
    let burst = fields.get("burst");
    if let Some(node) = burst.filter(|_| !algorithm.has_burst()) {
        let problem = algorithm.no_burst();
        report.error(&node.span(), problem.message, problem.help);
        return None;
    }
    let range = match algorithm {
        Algorithm::Pacer { .. } => 0..=TokenBucket::MAX_TOKENS - 1,
        _ => 1..=TokenBucket::MAX_TOKENS,
    };
    let size = burst.map(|node| fields::integer(report, node, "burst", range, "20"));
    let debt = settling::debt(report, fields, algorithm);
    let (node, text, rate) = rate?;
    let size = transpose(size);
    // A burst that cannot be read must not hide what is wrong with the rate: that is checked with a burst of 1.
    let build = algorithm.build(text, rate, size.unwrap_or(Some(1)), debt.unwrap_or(0));
    let build = build.map_err(|problem| report.error(&node.span(), problem.message, problem.help)).ok()?;
    let build = build
        .map_err(|error| {
            let of_rate = matches!(error, tollgate_core::Error::Figure { figure: "rate" | "period", .. });
            let at = burst.filter(|_| !of_rate).unwrap_or(node).span();
            let help = "write a rate like \"50/h\", \"100/min\" or \"5/15min\" and a burst like 20";
            report.error(&at, error.to_string(), help);
        })
        .ok();
    size.and(debt).and(build)
}

fn by_plan(
    report: &mut Report<'_>,
    node: Option<Node<'_>>,
    plans: &Plans,
    (algorithm, base): (Algorithm, Option<&Figures>),
) -> Option<BTreeMap<Arc<str>, Figures>> {
    let mut by_plan = BTreeMap::new();
    let Some(node) = node else { return Some(by_plan) };
    let mut complete = true;
    let example = "plans.pro = { rate = \"500/h\", burst = 100 }";
    for (key, node) in fields::entries(fields::table(report, node, "plans", example)?) {
        let plan: &str = key.get_ref();
        if !plans.names().any(|known| known == plan) {
            let help = match suggest::nearest(plan, plans.names()) {
                Some(name) => format!("did you mean `{name}`?"),
                None => format!("add it to the names of [plans], like `names = [\"{plan}\"]`"),
            };
            report.absent(&key.span(), plan, format!("plan `{plan}` is not declared"), help);
        }
        let fields = Fields::open(report, node, &format!("plan `{plan}`"), &keys::FIGURES);
        match fields.and_then(|fields| figures(report, &fields, algorithm)) {
            Some(figures) => {
                if base.is_some_and(|base| !base.core.shares_state_with(&figures.core)) {
                    let message = format!("plan `{plan}` is counted over another period than its limit");
                    let help = "write its rate over the same period, or give it a limit of its own: two periods cannot share one count";
                    report.error(&node.span(), message, help);
                    complete = false;
                }
                drop(by_plan.insert(Arc::from(plan), figures));
            }
            None => complete = false,
        }
    }
    complete.then_some(by_plan)
}

fn upgrade_url(report: &mut Report<'_>, node: Node<'_>) -> Option<String> {
    let url = fields::text(report, node, "upgrade_url", "\"/billing\"")?;
    let starts = ["/", "https://", "http://"].iter().any(|start| url.starts_with(start));
    if !starts || url.contains(|c: char| c.is_whitespace() || c.is_control()) {
        let help = "write a path or a URL without blanks, like \"/billing\" or \"https://example.com/billing\"";
        report.error(&node.span(), format!("upgrade_url {url:?} is neither a path nor an http(s) URL"), help);
        return None;
    }
    Some(url.to_owned())
}

/// `on_store_failure` of a limit or a route.
pub(super) fn store_failure(report: &mut Report<'_>, node: Node<'_>) -> Option<StoreFailure> {
    let words = [StoreFailure::Local, StoreFailure::Open, StoreFailure::Closed].map(|rule| (rule.as_str(), rule));
    fields::word(report, node, "on_store_failure", &words)
}
