//! `tollgate explain`: what a request would be charged, under which keys, and why.

use crate::args::ExplainArgs;
use crate::error::{CliError, Result};
use crate::secrets::Tables;
use crate::{open, output, secrets};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use tollgate_policy::{IfMissing, Network, Policy, ResolvedCharge, ResolvedKey, RouteMatch};

/// The whole answer.
#[derive(Debug, Serialize)]
struct Explanation {
    method: String,
    path: String,
    /// `route`, `exempt` or `unmatched`.
    matched: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pattern: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    revision: u64,
    plan: Option<String>,
    charges: Vec<Charge>,
}

#[derive(Debug, Serialize)]
struct Charge {
    limit: String,
    cost: u64,
    /// The key, or `None` if a dimension has no value.
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<String>,
    rate: String,
    burst: u64,
    algorithm: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    partition_key: Option<String>,
}

pub(crate) async fn run(args: &ExplainArgs) -> Result<()> {
    let policy = secrets::attach(open::policy(&args.policy.policy)?, Tables::Here).await?;
    let explanation = explain(&policy, args)?;
    output::result(args.json, &explanation, || text(&explanation))
}

fn explain(policy: &Policy, args: &ExplainArgs) -> Result<Explanation> {
    let mut explanation = Explanation {
        method: args.method.clone(),
        path: args.path.clone(),
        matched: "unmatched",
        pattern: None,
        why: None,
        revision: policy.revision(),
        plan: None,
        charges: Vec::new(),
    };
    if let Some(exemption) = policy.exemption(&args.method, &args.path) {
        explanation.matched = "exempt";
        explanation.pattern = Some(exemption.pattern().to_string());
        explanation.why = Some(exemption.why().to_owned());
    } else if let Some(found) = policy.route(&args.method, &args.path) {
        let plan = policy.plans().resolve(args.plan.as_deref()).map_err(|e| CliError::Input(e.to_string()))?;
        explanation.matched = "route";
        explanation.pattern = Some(found.route.pattern().to_string());
        explanation.plan = plan.map(str::to_owned);
        explanation.charges = charges(policy, &found, args, plan)?;
    }
    Ok(explanation)
}

fn charges(policy: &Policy, found: &RouteMatch<'_>, args: &ExplainArgs, plan: Option<&str>) -> Result<Vec<Charge>> {
    let given = dimensions(policy, args)?;
    let input = |e: tollgate_policy::Error| CliError::Input(e.to_string());
    let lookup = |dimension: &str| given.get(dimension).cloned();
    let resolution = policy.resolve(found.route.charges(), lookup, plan, IfMissing::LeaveOut).map_err(input)?;
    resolution.resolved.iter().map(|charge| told(policy, charge, plan).map_err(input)).collect()
}

fn told(policy: &Policy, charge: &ResolvedCharge, plan: Option<&str>) -> tollgate_policy::Result<Charge> {
    let limit = policy.limit(charge.limit.as_str())?;
    let figures = limit.figures(plan);
    let (key, missing) = match &charge.key {
        ResolvedKey::Found { key, .. } => (Some(key), None),
        ResolvedKey::Missing(part) => (None, Some(part.to_string())),
        _ => (None, None),
    };
    Ok(Charge {
        limit: charge.limit.to_string(),
        cost: charge.cost,
        key: key.map(ToString::to_string),
        missing,
        rate: figures.rate().to_owned(),
        burst: figures.bucket().burst(),
        algorithm: "token-bucket",
        partition_key: key.map(|key| tollgate_dynamodb::partition_key::of(&limit.item(key.clone()))),
    })
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
    for pair in &args.dimensions {
        let split = pair.split_once('=').filter(|(name, value)| !name.is_empty() && !value.is_empty());
        let (name, value) =
            split.ok_or_else(|| CliError::Input(format!("--dimension {pair:?} must be NAME=VALUE, like order=42")))?;
        if policy.identity().source(name).is_none() {
            let known: Vec<_> = policy.identity().dimensions().map(|(name, _)| name).collect();
            let known = known.join(", ");
            return Err(CliError::Input(format!("--dimension {pair:?}: the policy declares {known}, and no {name:?}")));
        }
        all.insert(name.to_owned(), value.to_owned());
    }
    if let Some(address) = all.get("client_ip")
        && Network::read(address, policy.identity().client_ip().ipv6_prefix).is_none()
    {
        return Err(CliError::Input(format!("{address:?} is not an IP address; write 192.0.2.1")));
    }
    Ok(all)
}

fn text(explanation: &Explanation) -> String {
    let Explanation { method, path, matched, pattern, why, revision, plan, charges } = explanation;
    let pattern = pattern.as_deref().unwrap_or_default();
    let mut out = String::new();
    let _ = match *matched {
        "exempt" => writeln!(out, "{method} {path} is exempt by `{pattern}`: {}", why.as_deref().unwrap_or_default()),
        "route" => writeln!(out, "{method} {path} is on route `{pattern}` (policy revision {revision})"),
        _ => writeln!(out, "{method} {path} is on no route: nothing is charged"),
    };
    if let Some(plan) = plan {
        let _ = writeln!(out, "  plan {plan}");
    }
    for Charge { limit, cost, key, missing, rate, burst, partition_key, .. } in charges {
        let _ = match (key, missing) {
            (Some(key), _) => writeln!(out, "  {limit}: cost {cost} of {rate}, burst {burst}, on key {key}"),
            (None, missing) => {
                let missing = missing.as_deref().unwrap_or("a dimension");
                writeln!(
                    out,
                    "  {limit}: cost {cost} of {rate}, burst {burst}; `{missing}` has no value in this request"
                )
            }
        };
        if let Some(pk) = partition_key {
            let _ = writeln!(out, "    item pk = {pk:?}");
        }
    }
    out
}
