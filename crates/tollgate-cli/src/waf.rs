//! `tollgate waf render|plan|apply|destroy|status|kept-out`.
//!
//! Invariant: nothing is written without `--yes`, and `render` asks nobody.

use crate::args::{PolicyFile, WafArgs, WafCommand, WafFormat, WafScope, WafTarget};
use crate::error::{CliError, Result};
use crate::{kept_out, open, output};
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};
use tollgate::Connection;
use tollgate_policy::EdgeScope;
use tollgate_waf::aws::AwsWaf;
use tollgate_waf::converge::{self, Change, Patience, RuleStatus, Wanted};
use tollgate_waf::{CLOUDFRONT_REGION, WebAcl, capacity, check, output as written, render};

/// Paths that are shown of a sample.
const SHOWN: usize = 5;

pub(crate) async fn run(args: &WafArgs) -> Result<()> {
    match &args.command {
        WafCommand::Render { format, scope, policy, .. } => print(*format, &acl(policy, *scope)?),
        WafCommand::Plan { on } => plan(on).await,
        WafCommand::Apply { on, yes } => apply(on, *yes).await,
        WafCommand::Destroy { on, yes } => destroy(on, *yes).await,
        WafCommand::Status { on } => status(on).await,
        WafCommand::KeptOut { release, target, policy, json } => {
            kept_out::run(release.as_deref(), target, policy, *json).await
        }
    }
}

/// The rules of a policy that WAF would take, in another scope than its own if one is given.
fn acl(file: &PolicyFile, scope: Option<WafScope>) -> Result<WebAcl> {
    let path = file.policy.display();
    let mut acl = render::web_acl(&open::policy(&file.policy)?)
        .ok_or_else(|| CliError::Input(format!("{path} has no [edge]; add one with [[edge.rules]]")))?;
    match scope {
        Some(WafScope::Regional) => acl.scope = EdgeScope::Regional,
        Some(WafScope::Cloudfront) => acl.scope = EdgeScope::CloudFront,
        None => {}
    }
    let refused = check::rendered(&acl);
    if !refused.is_empty() {
        return Err(CliError::Check(format!("{path}: WAF would refuse the rules: {}", refused.join("; "))));
    }
    let units = capacity::of(&acl.rules);
    let included = capacity::INCLUDED;
    if units > included {
        output::note(format!("the rules take about {units} capacity units; above {included} requests cost more"));
    }
    Ok(acl)
}

fn print(format: WafFormat, acl: &WebAcl) -> Result<()> {
    let value = match format {
        WafFormat::Yaml => {
            output::say(written::yaml(&written::template(acl)).trim_end());
            return Ok(());
        }
        WafFormat::Cloudformation => written::template(acl),
        WafFormat::Cdk => written::props(acl),
        WafFormat::Api => written::calls(acl),
    };
    output::say(format!("{value:#}"));
    Ok(())
}

/// The API, and what is to be.
async fn opened(on: &WafTarget) -> Result<(AwsWaf, Wanted)> {
    let acl = acl(&on.policy, None)?;
    let mut connection = Connection::from_environment();
    connection.endpoint_url.clone_from(&on.endpoint_url);
    connection.region.clone_from(&on.region);
    if acl.scope == EdgeScope::CloudFront {
        if let Some(region) = on.region.as_deref().filter(|region| *region != CLOUDFRONT_REGION) {
            return Err(CliError::Input(format!(
                "ACLs for CloudFront are in {CLOUDFRONT_REGION}, not in {region}; leave `--region` out"
            )));
        }
        connection.region = Some(CLOUDFRONT_REGION.to_owned());
    }
    Ok((AwsWaf::connect(&connection).await?, Wanted::new(acl, on.resources.clone())))
}

async fn plan(on: &WafTarget) -> Result<()> {
    let (waf, wanted) = opened(on).await?;
    let changes = converge::plan(&waf, &wanted, Patience::default(), &progress).await?;
    let name = &wanted.acl.name;
    let units = capacity::of(&wanted.acl.rules);
    let value = json!({ "web_acl": name, "drift": !changes.is_empty(), "capacity": units, "changes": changes });
    output::result(on.json, &value, || match lines(&changes) {
        nothing if nothing.is_empty() => {
            format!("web ACL {name} is what the policy says; our rules take about {units} capacity units")
        }
        lines => lines,
    })?;
    if changes.is_empty() {
        return Ok(());
    }
    Err(CliError::Drift(format!("web ACL {name} is not what the policy says; `tollgate waf apply --yes` makes it so")))
}

async fn apply(on: &WafTarget, yes: bool) -> Result<()> {
    let (waf, wanted) = opened(on).await?;
    if !yes {
        let changes = converge::plan(&waf, &wanted, Patience::default(), &progress).await?;
        output::result(on.json, &json!({ "changes": changes, "writes": 0 }), || lines(&changes))?;
        return if changes.is_empty() { Ok(()) } else { Err(unconfirmed()) };
    }
    let applied = converge::apply(&waf, &wanted, Patience::default(), &progress).await?;
    let value = json!({ "changes": applied.changes, "writes": applied.writes });
    output::result(on.json, &value, || {
        format!("web ACL {} is what the policy says, by {} writes", wanted.acl.name, applied.writes)
    })
}

async fn destroy(on: &WafTarget, yes: bool) -> Result<()> {
    if !yes {
        return Err(unconfirmed());
    }
    let (waf, wanted) = opened(on).await?;
    let done = converge::destroy(&waf, &wanted, Patience::default(), &progress).await?;
    output::result(on.json, &json!({ "removed": done }), || {
        format!("the policy has nothing left in web ACL {}", wanted.acl.name)
    })
}

/// What takes long is told meanwhile.
fn progress(line: &str) {
    output::note(line);
}

fn unconfirmed() -> CliError {
    CliError::Input("nothing was written; add `--yes` to write".to_owned())
}

fn lines(changes: &[Change]) -> String {
    changes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

async fn status(on: &WafTarget) -> Result<()> {
    let (waf, wanted) = opened(on).await?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let rules = converge::status(&waf, &wanted, now, Patience::default(), &progress).await?;
    let name = &wanted.acl.name;
    let rules = rules
        .ok_or_else(|| CliError::Check(format!("there is no web ACL {name}; `tollgate waf apply --yes` makes it")))?;
    let value = json!({ "web_acl": name, "rules": rules.iter().map(told).collect::<Vec<_>>() });
    output::result(on.json, &value, || rules.iter().map(text).collect())
}

fn told(rule: &RuleStatus) -> Value {
    let sampled = rule.sampled.as_ref().map(|paths| {
        let of = |(path, requests): &(String, u64)| json!({ "path": path, "requests": requests });
        paths.iter().map(of).collect::<Vec<_>>()
    });
    json!({
        "rule": rule.rule, "action": rule.action,
        "limited": rule.limited.as_ref().ok(), "limited_unknown": rule.limited.as_ref().err(),
        "sampled": sampled.as_ref().ok(), "sampled_unknown": sampled.as_ref().err(),
    })
}

fn text(rule: &RuleStatus) -> String {
    let limited = match &rule.limited {
        Ok(addresses) if addresses.is_empty() => "nobody".to_owned(),
        Ok(addresses) => addresses.join(" "),
        Err(why) => format!("not known: {why}"),
    };
    let sampled = match &rule.sampled {
        Ok(paths) if paths.is_empty() => "nothing".to_owned(),
        Ok(paths) => {
            let shown = paths.iter().take(SHOWN).map(|(path, requests)| format!("{requests} of {path}"));
            shown.collect::<Vec<_>>().join(", ")
        }
        Err(why) => format!("not known: {why}"),
    };
    let of = if rule.is_rate_based { "over the limit" } else { "kept out" };
    format!("{} ({})\n  {of} now: {limited}\n  caught in three hours (a sample): {sampled}\n", rule.rule, rule.action)
}
