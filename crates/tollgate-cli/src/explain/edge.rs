//! Which rules in front would count the request, by the evaluator of `tollgate-waf`.

use axum::http::HeaderMap;
use serde::Serialize;
use std::net::IpAddr;
use tollgate_policy::Policy;
use tollgate_waf::evaluate::{Request, Truth};
use tollgate_waf::{Action, Catches, offline, render};

/// A rule of `[edge]`, and this request.
#[derive(Debug, Serialize)]
pub(super) struct Ahead {
    rule: String,
    /// Requests of one address in a window, like `100/300s`; `None` of the rule that keeps out who is listed.
    rate: Option<String>,
    /// What happens to a request that is over it.
    stage: &'static str,
    /// Whether it counts the request; `None` if that takes an address that is not known, or who is listed.
    counts: Option<bool>,
}

/// All rules of the policy, in the order in which they are asked.
pub(super) fn ahead(
    policy: &Policy,
    method: &str,
    path: &str,
    headers: &HeaderMap,
    source: Option<IpAddr>,
) -> Vec<Ahead> {
    let Some(acl) = render::web_acl(policy) else { return Vec::new() };
    let request = request(method, path, headers, source);
    let rules = offline(&acl);
    let ahead = acl.rules.iter().map(|rule| Ahead {
        rate: match &rule.catches {
            Catches::Over(rate) => Some(format!("{}/{}s", rate.limit, rate.window_secs)),
            _ => None,
        },
        stage: match rule.action {
            Action::Block { .. } => "block",
            Action::Captcha => "captcha",
            Action::Challenge => "challenge",
            _ => "count",
        },
        counts: match rules.counts(&rule.name, &request) {
            // Who is listed, the table knows.
            _ if !matches!(rule.catches, Catches::Over(_)) => None,
            Some(Truth::Yes) => Some(true),
            Some(Truth::No) => Some(false),
            _ => None,
        },
        rule: rule.name.clone(),
    });
    ahead.collect()
}

/// A request as WAF sees it.
pub(crate) fn request(method: &str, path: &str, headers: &HeaderMap, source: Option<IpAddr>) -> Request {
    headers.iter().fold(Request::new(method, path, source), |request, (name, value)| {
        request.header(name.as_str(), &String::from_utf8_lossy(value.as_bytes()))
    })
}

impl Ahead {
    /// A line for people; none of a rule that does not count the request.
    pub(super) fn text(&self) -> Option<String> {
        let Self { rule, rate, stage, counts } = self;
        let Some(rate) = rate else {
            return Some(format!("  in front, {rule}: {stage} if `tollgate waf kept-out` lists its address\n"));
        };
        let counted = match counts {
            Some(false) => return None,
            Some(true) => "counts it",
            None => "counts it unless its address is left out",
        };
        Some(format!("  in front, {rule} {counted}: {rate} of one address, then {stage}\n"))
    }
}
