//! What the rules have caught: addresses that are over a limit now, and a sample of requests.

use super::pace::Paced;
use super::plan::told_addresses;
use super::{Failure, Operation, Patience, Progress, Result, Waf, Wanted, merge, observe};
use crate::model::WebAcl;
use crate::shape;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// Requests that a sample has at most (API Reference, `GetSampledRequests`).
const MOST_SAMPLED: u64 = 500;
/// How far back the API samples (the same page).
const SAMPLED_FOR: Duration = Duration::from_secs(3 * 3600);

/// What a rule has caught.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleStatus {
    /// The rule.
    pub rule: String,
    /// What it does with what it catches: `Count`, `Block`, `Captcha`, `Challenge`.
    pub action: String,
    /// Whether it is a limit; else it stops who is in an IP set.
    pub is_rate_based: bool,
    /// Addresses over the limit now, or those in the set; why that is not known otherwise.
    pub limited: std::result::Result<Vec<String>, String>,
    /// What a sample of the last three hours has: requests by method and path, most first; why that is not known otherwise.
    pub sampled: std::result::Result<Vec<(String, u64)>, String>,
}

/// What each rule of the policy has caught, in the order in which they are asked; `None` if there is no ACL of that name. `now` is in
/// seconds since the epoch.
///
/// # Errors
///
/// [`Error::Call`](super::Error::Call) if the ACL cannot be read.
pub async fn status<W: Waf>(
    waf: &W,
    wanted: &Wanted,
    now: u64,
    patience: Patience,
    progress: Progress<'_>,
) -> Result<Option<Vec<RuleStatus>>> {
    let waf = Paced::new(waf, patience, progress);
    let Some(found) = observe::acl(&waf, &wanted.acl).await? else { return Ok(None) };
    let scope = shape::scope(wanted.acl.scope);
    let mut rules: Vec<&Value> =
        merge::rules(&found.value).iter().filter(|rule| merge::is_ours(rule, &wanted.acl.prefix)).collect();
    rules.sort_by_key(|rule| rule["Priority"].as_u64());
    let mut all = Vec::new();
    for rule in rules {
        let sample = json!({
            "WebAclArn": found.value["ARN"], "RuleMetricName": rule["VisibilityConfig"]["MetricName"], "Scope": scope,
            "TimeWindow": { "StartTime": now.saturating_sub(SAMPLED_FOR.as_secs()), "EndTime": now }, "MaxItems": MOST_SAMPLED,
        });
        let is_rate_based = rule["Statement"]["RateBasedStatement"].is_object();
        let limited = if is_rate_based {
            let keys = json!({
                "Scope": scope, "WebACLName": wanted.acl.name, "WebACLId": found.value["Id"], "RuleName": rule["Name"],
            });
            waf.call(Operation::GetLimitedKeys, keys).await.map(|answer| addresses(&answer)).map_err(told)
        } else {
            listed(&waf, &wanted.acl, &rule["Statement"]).await.map_err(|error| error.to_string())
        };
        all.push(RuleStatus {
            is_rate_based,
            limited,
            rule: rule["Name"].as_str().unwrap_or_default().to_owned(),
            action: rule["Action"]
                .as_object()
                .into_iter()
                .flatten()
                .find(|(_, of)| !of.is_null())
                .map(|(kind, _)| kind.clone())
                .unwrap_or_default(),
            sampled: waf.call(Operation::GetSampledRequests, sample).await.map(|answer| by_path(&answer)).map_err(told),
        });
    }
    Ok(Some(all))
}

/// Addresses in those of our IP sets that a statement refers to.
async fn listed<W: Waf>(waf: &Paced<'_, W>, acl: &WebAcl, statement: &Value) -> Result<Vec<String>> {
    let statement = statement.to_string();
    let sets = observe::ours(waf, acl).await?.into_values();
    let named = sets.filter(|set| statement.contains(&set.value["ARN"].to_string()));
    Ok(named.flat_map(|set| told_addresses(&set.value)).collect())
}

/// What is not known does not keep the rest from being told.
fn told(failure: Failure) -> String {
    failure.to_string()
}

fn addresses(answer: &Value) -> Vec<String> {
    let of = |key: &str| {
        let list = answer[key]["Addresses"].as_array().into_iter().flatten();
        list.filter_map(|address| address.as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    [of("ManagedKeysIPV4"), of("ManagedKeysIPV6")].concat()
}

/// Each request of a sample stands for as many as its weight says.
fn by_path(answer: &Value) -> Vec<(String, u64)> {
    let mut paths: BTreeMap<String, u64> = BTreeMap::new();
    for sampled in answer["SampledRequests"].as_array().into_iter().flatten() {
        let request = &sampled["Request"];
        let text = |key: &str| request[key].as_str().unwrap_or_default();
        let path = text("URI").split('?').next().unwrap_or_default();
        *paths.entry(format!("{} {path}", text("Method"))).or_default() += sampled["Weight"].as_u64().unwrap_or(1);
    }
    let mut paths: Vec<_> = paths.into_iter().collect();
    paths.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    paths
}
