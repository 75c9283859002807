//! `tollgate explain`: what a request would be charged, under which keys, and why.

pub(crate) mod edge;
mod request;
mod step_up;

use crate::args::ExplainArgs;
use crate::error::{CliError, Result};
use crate::secrets::Keys;
use crate::{key, open, output, secrets};
use edge::Ahead;
use request::{Handed, handed};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::num::{NonZeroU16, NonZeroU64};
use std::time::Duration;
use step_up::StepUp;
use tollgate::http::{Explained, Facts, Matched};
use tollgate::{Clock, SystemClock};
use tollgate_core::time::millis_rounded_up;
use tollgate_core::{Charges, PenaltyRule, Zone};
use tollgate_dynamodb::partition_key;
use tollgate_policy::{Error, Mode, OnSuccess, Policy, ResolvedCharge, ResolvedKey, StoreFailure};

/// The whole answer.
#[derive(Debug, Serialize)]
struct Explanation {
    method: String,
    /// As routes are looked up by it: without the gateway's stage, and without the query.
    path: String,
    /// `route`, `exempt`, `preflight` or `unmatched`.
    matched: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pattern: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    revision: u64,
    plan: Option<String>,
    /// Whether the caller named a plan that the policy does not have, and is counted on the default one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    names_unknown_plan: bool,
    dimensions: Vec<Dimension>,
    charges: Vec<Charge>,
    /// What is odd about the client's address: `unproven_address` or `shared_address`.
    #[serde(skip_serializing_if = "Option::is_none")]
    doubt: Option<&'static str>,
    /// What the caller has to have proved before anything is charged.
    #[serde(skip_serializing_if = "Option::is_none")]
    step_up: Option<StepUp>,
    /// The rules of `[edge]`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    edge: Vec<Ahead>,
}

/// What a limit of the route may be counted by.
#[derive(Debug, Serialize)]
struct Dimension {
    name: String,
    /// Its one spelling, or `None` if the request has no value for it.
    value: Option<String>,
    /// Where the policy takes it from, like `claims.sub`.
    from: String,
    /// Whether it is kept as a keyed hash only.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    personal: bool,
}

#[derive(Debug, Serialize)]
struct Charge {
    limit: String,
    cost: u64,
    /// The key, or `None` if a dimension has no value.
    key: Option<String>,
    /// The entry of the limit's key that has no value.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<String>,
    rate: String,
    /// Of a token bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    burst: Option<u64>,
    algorithm: &'static str,
    /// Of a quota.
    #[serde(skip_serializing_if = "Option::is_none")]
    zone: Option<&'static str>,
    /// Of a pacer, how many of the burst go before their time.
    #[serde(skip_serializing_if = "Option::is_none")]
    delay: Option<u64>,
    /// Of a pacer, how long a call may have to wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_wait_ms: Option<u64>,
    /// `failures`, if only those count.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<&'static str>,
    /// Where failures count, what a success does to those before it: `clear` or `keep`.
    #[serde(skip_serializing_if = "Option::is_none")]
    on_success: Option<&'static str>,
    /// `5xx`, if what the server failed is given back.
    #[serde(skip_serializing_if = "Option::is_none")]
    refund_on: Option<&'static str>,
    /// How many tokens a call may owe that turns out to cost more.
    #[serde(skip_serializing_if = "Option::is_none")]
    debt: Option<u64>,
    /// How long the cost is an estimate.
    #[serde(skip_serializing_if = "Option::is_none")]
    settle_within_ms: Option<u64>,
    /// How long it locks a key that it has denied.
    #[serde(skip_serializing_if = "Option::is_none")]
    penalty: Option<Penalty>,
    /// By how much more than the true wait a denied caller is told at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_jitter_ms: Option<u64>,
    /// `enforce` or `shadow`.
    mode: &'static str,
    /// `open` or `closed`.
    on_store_failure: &'static str,
    /// Whether the limit has an item, and a write, of its own.
    own_item: bool,
    /// Most tokens that a process takes ahead.
    #[serde(skip_serializing_if = "Option::is_none")]
    lease: Option<NonZeroU64>,
    /// How many items it is divided among, of which a call is charged on one.
    #[serde(skip_serializing_if = "Option::is_none")]
    shards: Option<NonZeroU16>,
    /// Whether it is charged in one transaction with others of the decision.
    atomic: bool,
    /// `false` where calls of one process at once take a write each.
    #[serde(skip_serializing_if = "Option::is_none")]
    coalesce: Option<bool>,
    /// `false` where no process denies from memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    deny_cache: Option<bool>,
    /// The items that are written: one, and one more for each secret that is being retired; of a limit with shards all that can be.
    partition_keys: Vec<String>,
    /// The first of them, if the key has all its values.
    #[serde(skip_serializing_if = "Option::is_none")]
    partition_key: Option<String>,
}

/// As in the policy.
#[derive(Debug, Serialize)]
struct Penalty {
    first_ms: u64,
    factor: u64,
    most_ms: u64,
    forget_ms: u64,
    extend: bool,
}

impl Penalty {
    fn of(rule: &PenaltyRule) -> Self {
        let [first_ms, most_ms, forget_ms] = [rule.first(), rule.most(), rule.forget()].map(millis_rounded_up);
        Self { first_ms, factor: rule.factor(), most_ms, forget_ms, extend: rule.extends() }
    }

    fn text(&self) -> String {
        let Self { first_ms, factor, most_ms, forget_ms, extend } = self;
        let anew = if *extend { ", anew with each call" } else { "" };
        format!(
            ", locks for {first_ms} ms, then {factor} times as long each time up to {most_ms} ms{anew}, a level less in {forget_ms} ms"
        )
    }
}

pub(crate) async fn run(args: &ExplainArgs) -> Result<()> {
    let policy = open::policy(&args.policy.policy)?;
    let handed = handed(args).await?;
    let given = dimensions(&policy, args)?;
    // What the command line says of a plan is a mistake if the policy has no such plan; what a request says is not.
    policy.plans().resolve(args.plan.as_deref())?;
    let explanation = match explain(&policy, &handed, &given) {
        // This request is counted by a personal value, as others may not be.
        Err(Error::NoSecrets { .. }) => explain(&secrets::attach(policy, Keys::OfOnesOwn).await?, &handed, &given),
        other => other,
    };
    let explanation = explanation?;
    output::result(args.json, &explanation, || text(&explanation))
}

fn explain(
    policy: &Policy,
    Handed { parts, body }: &Handed,
    given: &BTreeMap<String, String>,
) -> tollgate_policy::Result<Explanation> {
    let facts = Facts::of(&parts.extensions);
    let mut explanation = Explanation {
        method: parts.method.to_string(),
        path: facts.path().unwrap_or(parts.uri.path()).to_owned(),
        matched: "unmatched",
        pattern: None,
        why: None,
        revision: policy.revision(),
        plan: None,
        names_unknown_plan: false,
        dimensions: Vec::new(),
        charges: Vec::new(),
        doubt: None,
        step_up: None,
        edge: Vec::new(),
    };
    let source = given.get("client_ip").and_then(|address| tollgate_policy::parse_address(address));
    let source = facts.source_address().or(source);
    explanation.edge = edge::ahead(policy, parts.method.as_str(), &explanation.path, &parts.headers, source);
    match tollgate::http::matched(policy, parts, &facts) {
        Matched::Preflight => explanation.matched = "preflight",
        Matched::Exempt(exemption) => {
            explanation.matched = "exempt";
            explanation.pattern = Some(exemption.pattern().to_string());
            explanation.why = Some(exemption.why().to_owned());
        }
        Matched::Route(matched) => {
            let value = |name: &str| given.get(name).cloned();
            // The command is for people who look at what a request of theirs does now.
            let now = SystemClock.now();
            let explained = tollgate::http::explain(policy, &matched, parts, &facts, body.clone(), now, &value)?;
            explanation.matched = "route";
            explanation.pattern = Some(matched.route.pattern().to_string());
            explanation.charges = charges(policy, &explained)?;
            explanation.dimensions = explained
                .dimensions
                .iter()
                .filter_map(|(name, value)| dimension(policy, name, value.as_ref()))
                .collect();
            explanation.step_up = matched.route.step_up().map(|required| StepUp::of(required, policy, &facts, now));
            explanation.names_unknown_plan = explained.names_unknown_plan;
            (explanation.doubt, explanation.plan) = (explained.doubt(), explained.plan);
        }
        _ => {}
    }
    Ok(explanation)
}

/// How long the cost of a limit is an estimate, if it is one.
fn estimated(charges: &Charges, of: &ResolvedCharge) -> Option<Duration> {
    charges.charges().iter().find(|charge| charge.limit == of.limit)?.settled_within
}

fn charges(policy: &Policy, explained: &Explained<'_>) -> tollgate_policy::Result<Vec<Charge>> {
    let together = together(&explained.resolution.charges);
    let told = |charge: &ResolvedCharge| {
        let limit = policy.limit(charge.limit.as_str())?;
        let figures = limit.figures(explained.plan.as_deref());
        let items: Vec<_> = explained.resolution.charges.iter().filter(|c| charges_it(c, charge)).collect();
        let partition_keys: Vec<_> = items.iter().flat_map(|c| limit.items(c.key().clone())).collect();
        let partition_keys: Vec<_> = partition_keys.iter().map(partition_key::of).collect();
        let (key, missing) = match &charge.key {
            ResolvedKey::Found { key, .. } => (Some(key.to_string()), None),
            ResolvedKey::Missing(part) => (None, Some(part.to_string())),
            _ => (None, None),
        };
        // On an item whose limits only report no failure matters.
        let denying = items.iter().filter(|c| !c.only_report()).map(|c| c.on_store_failure());
        Ok(Charge {
            limit: charge.limit.to_string(),
            cost: charge.cost,
            partition_key: key.as_ref().and(partition_keys.first().cloned()),
            key,
            missing,
            rate: figures.rate().to_owned(),
            burst: figures.core().token_bucket().map(|_| figures.core().burst()),
            algorithm: limit.algorithm().as_str(),
            zone: limit.algorithm().zone().map(Zone::name),
            delay: figures.core().token_bucket().and_then(|bucket| bucket.delay()),
            max_wait_ms: limit.max_wait().map(millis_rounded_up),
            count: limit.counts_failures().map(|_| "failures"),
            on_success: limit.counts_failures().map(|then| if then == OnSuccess::Clear { "clear" } else { "keep" }),
            refund_on: limit.refunds_failures().then_some("5xx"),
            debt: Some(figures.core().debt()).filter(|debt| *debt > 0),
            settle_within_ms: items.first().and_then(|charges| estimated(charges, charge)).map(millis_rounded_up),
            penalty: limit.penalty().as_ref().map(Penalty::of),
            retry_jitter_ms: Some(millis_rounded_up(limit.retry_jitter())).filter(|ms| *ms > 0),
            mode: if limit.mode() == Mode::Shadow { "shadow" } else { "enforce" },
            on_store_failure: denying.max().unwrap_or(StoreFailure::Open).as_str(),
            own_item: limit.has_own_item(),
            lease: limit.lease(),
            shards: limit.shards(),
            atomic: items.iter().any(|c| together.contains(c)),
            coalesce: Some(limit.coalesces()).filter(|is_on| !is_on),
            deny_cache: Some(limit.denies_from_memory()).filter(|is_on| !is_on),
            partition_keys,
        })
    };
    explained.resolution.resolved.iter().map(told).collect()
}

/// The items of a decision that are written in one transaction, as the limiter does it: those that it takes in, if one of all asks for it
/// and there is more than one.
fn together(all: &[Charges]) -> Vec<&Charges> {
    let within: Vec<_> = all.iter().filter(|charges| charges.can_be_transacted()).collect();
    if within.len() > 1 && all.iter().any(Charges::is_atomic) { within } else { Vec::new() }
}

fn charges_it(charges: &Charges, resolved: &ResolvedCharge) -> bool {
    charges.charges().iter().any(|charge| charge.limit == resolved.limit)
}

fn dimension(policy: &Policy, name: &str, value: Option<&String>) -> Option<Dimension> {
    let declared = policy.identity().dimension(name)?;
    let personal = declared.personal;
    Some(Dimension { name: name.to_owned(), value: value.cloned(), from: declared.source.to_string(), personal })
}

fn pair<'a>(flag: &str, text: &'a str, example: &str) -> Result<(&'a str, &'a str)> {
    let split = text.split_once('=').filter(|(name, value)| !name.is_empty() && !value.is_empty());
    split.ok_or_else(|| CliError::Input(format!("{flag} {text:?} must be NAME=VALUE, like {example}")))
}

/// What the command line says of the caller, as the policy's identity mapping would find it.
fn dimensions(policy: &Policy, args: &ExplainArgs) -> Result<BTreeMap<String, String>> {
    let named = [
        ("user", &args.user),
        ("tenant", &args.tenant),
        ("plan", &args.plan),
        ("api_key", &args.api_key),
        ("client_ip", &args.client_ip),
    ];
    let named = named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)));
    let mut all: BTreeMap<_, _> = named.collect();
    for text in &args.dimensions {
        let (name, value) = pair("--dimension", text, "order=42")?;
        if policy.identity().source(name).is_none() {
            let known: Vec<_> = policy.identity().dimensions().map(|(name, _)| name).collect();
            let known = known.join(", ");
            return Err(CliError::Input(format!("--dimension {text:?}: the policy declares {known}, and no {name:?}")));
        }
        all.insert(name.to_owned(), value.to_owned());
    }
    key::check_address(policy, all.iter().map(|(name, value)| (name.as_str(), value.as_str())))?;
    Ok(all)
}

fn text(explanation: &Explanation) -> String {
    let Explanation { method, path, matched, pattern, why, revision, dimensions, charges, doubt, .. } = explanation;
    let pattern = pattern.as_deref().unwrap_or_default();
    let mut out = String::new();
    let _ = match *matched {
        "exempt" => writeln!(out, "{method} {path} is exempt by `{pattern}`: {}", why.as_deref().unwrap_or_default()),
        "route" => writeln!(out, "{method} {path} is on route `{pattern}` (policy revision {revision})"),
        "preflight" => writeln!(out, "{method} {path} is a preflight: it passes, and nothing is charged"),
        _ => writeln!(out, "{method} {path} is on no route: nothing is charged"),
    };
    out.extend(explanation.edge.iter().filter_map(Ahead::text));
    if let Some(plan) = &explanation.plan {
        let unknown =
            if explanation.names_unknown_plan { ", since the policy has no plan as the caller names" } else { "" };
        let _ = writeln!(out, "  plan {plan}{unknown}");
    }
    for Dimension { name, value, from, personal } in dimensions {
        let kept = if *personal { ", kept as a keyed hash" } else { "" };
        let _ = match value {
            Some(value) => writeln!(out, "  {name} = {value} ({from}{kept})"),
            None => writeln!(out, "  {name} has no value ({from}{kept})"),
        };
    }
    match doubt {
        Some("unproven_address") => {
            out.push_str("  the address cannot be told: a proxy that the policy trusts left no entry\n")
        }
        Some(_) => {
            out.push_str("  the address is a proxy's in front, so that all its clients are one: see `trusted_hops`\n")
        }
        None => {}
    }
    if let Some(step_up) = &explanation.step_up {
        let _ = writeln!(out, "  {}", step_up.text());
    }
    for charge in charges {
        let Charge { limit, cost, rate, on_store_failure, .. } = charge;
        let counted = match (charge.burst, charge.zone) {
            (Some(burst), _) => format!("burst {burst}"),
            (None, Some(zone)) => format!("{} in {zone}", charge.algorithm),
            (None, None) => charge.algorithm.to_owned(),
        };
        let says = |holds: bool, what: &'static str| if holds { what } else { "" };
        let paced = charge.delay.map(|delay| format!(", paced with delay {delay}")).unwrap_or_default();
        let longest = charge.max_wait_ms.map(|ms| format!(", waits {ms} ms at most")).unwrap_or_default();
        let failures = match charge.on_success {
            Some("clear") => ", failures only, and a success clears them",
            Some(_) => ", failures only",
            None => "",
        };
        let refunds = charge.refund_on.map(|status| format!(", not what is answered {status}")).unwrap_or_default();
        let estimate = charge.settle_within_ms.map(|ms| format!(", settled within {ms} ms")).unwrap_or_default();
        let debt = charge.debt.map(|debt| format!(", {debt} of debt at most")).unwrap_or_default();
        let locks = charge.penalty.as_ref().map(Penalty::text).unwrap_or_default();
        let jitter = charge.retry_jitter_ms.map(|ms| format!(", up to {ms} ms more told")).unwrap_or_default();
        let mode = says(charge.mode == "shadow", ", only reports");
        let own_item = match (charge.shards, charge.lease) {
            (Some(shards), _) => format!(", on one of {shards} items of its own"),
            (None, Some(lease)) => format!(", an item of its own, up to {lease} taken ahead"),
            (None, None) => says(charge.own_item, ", an item of its own").to_owned(),
        };
        let atomic = says(charge.atomic, ", atomic");
        let coalesce = says(charge.coalesce.is_some(), ", not coalesced");
        let deny_cache = says(charge.deny_cache.is_some(), ", never denied from memory");
        let _ = write!(
            out,
            "  {limit}: cost {cost} of {rate}, {counted}{failures}{refunds}{estimate}{debt}{paced}{longest}{locks}{jitter}{mode}{own_item}{atomic}{coalesce}{deny_cache}, {on_store_failure} without the table, "
        );
        let _ = match (&charge.key, &charge.missing) {
            (Some(key), _) => writeln!(out, "on key {key}"),
            (None, missing) => {
                let missing = missing.as_deref().unwrap_or("a dimension");
                writeln!(out, "on the bucket of all calls where `{missing}` has no value")
            }
        };
        let shards = charge.shards.map_or(1, |shards| usize::from(shards.get()));
        let beside = if shards > 1 { format!(" to .{}", shards - 1) } else { String::new() };
        for pk in charge.partition_keys.iter().step_by(shards) {
            let _ = writeln!(out, "    item pk = {pk:?}{beside}");
        }
    }
    out
}
