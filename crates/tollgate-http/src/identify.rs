//! Who is charged for a request, and on what: its route, its caller's plan, the keys.
//!
//! Invariant: the layer and whoever asks what it would do go through here, so that they never differ.

use crate::client_address::Doubt;
use crate::dimension::Asked;
use crate::facts::Facts;
use bytes::Bytes;
use http::Method;
use http::request::Parts;
use tollgate_policy::{IfMissing, Policy, Resolution, Result, RouteMatch};

/// The route of a request; `None` if it is not limited.
pub(crate) fn route<'a>(policy: &'a Policy, method: &Method, path: &'a str) -> Option<RouteMatch<'a>> {
    // A preflight carries no credentials, and a browser does not tell the page why it failed.
    if *method == Method::OPTIONS {
        return None;
    }
    let matched = policy.route(method.as_str(), path);
    // Frameworks answer HEAD with the handler of GET, so it costs the same unless the policy says otherwise.
    if *method == Method::HEAD && policy.exemption("HEAD", path).is_none() {
        return matched.or_else(|| policy.route("GET", path));
    }
    matched
}

/// Who a request is charged as.
pub(crate) struct Identified {
    /// The plan whose figures count.
    pub(crate) plan: Option<String>,
    /// Whether the caller named a plan that the policy does not have.
    pub(crate) names_unknown_plan: bool,
    /// The keys, and what is charged on them.
    pub(crate) resolution: Resolution,
}

/// Identifies the caller of `asked`; `value` gives the value of a dimension.
pub(crate) fn identify(asked: &Asked<'_>, value: impl Fn(&str) -> Option<String>) -> Result<Identified> {
    let (policy, route) = (asked.policy, asked.matched.route);
    let claimed = value("plan");
    let accepted = claimed.as_deref().filter(|plan| policy.plans().accepts(plan));
    let plan = policy.plans().resolve(accepted)?;
    let resolution = policy.resolve(route.charges(), value, plan, IfMissing::Share)?.on(route);
    let names_unknown_plan = claimed.is_some() && accepted.is_none();
    Ok(Identified { plan: plan.map(str::to_owned), names_unknown_plan, resolution })
}

/// What the layer would make of a request: see [`explain`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Explained<'a> {
    /// Its route.
    pub matched: RouteMatch<'a>,
    /// The plan whose figures count.
    pub plan: Option<String>,
    /// Whether the caller named a plan that the policy does not have, and is counted on the default one.
    pub names_unknown_plan: bool,
    /// Every dimension that a limit of the route may be counted by, with its value in this request in its one spelling.
    pub dimensions: Vec<(&'a str, Option<String>)>,
    /// The keys, and what is charged on them.
    pub resolution: Resolution,
    /// What is odd about the client's address, if it was asked for: `unproven_address` or `shared_address`.
    pub doubt: Option<&'static str>,
}

/// What the layer would make of a request, charging nothing; `None` if it is not limited. The caller is known by the
/// request's extensions ([`Facts`]), `given` goes before what the request says of a dimension.
///
/// # Errors
///
/// As [`Policy::resolve`].
pub fn explain<'a>(
    policy: &'a Policy,
    request: &'a Parts,
    body: Option<Bytes>,
    given: impl Fn(&str) -> Option<String>,
) -> Result<Option<Explained<'a>>> {
    let facts = Facts::of(&request.extensions);
    let Some(matched) = route(policy, &request.method, request.uri.path()) else { return Ok(None) };
    let asked = Asked::new(policy, &matched, request, &facts, body);
    let value = |dimension: &str| given(dimension).or_else(|| asked.value(dimension));
    let Identified { plan, names_unknown_plan, resolution } = identify(&asked, value)?;
    let mut dimensions: Vec<(&str, Option<String>)> = Vec::new();
    for charge in matched.route.charges() {
        for name in policy.limit(charge.limit.as_str())?.key().iter().flat_map(|part| part.alternatives()) {
            if dimensions.iter().all(|(known, _)| *known != name) {
                let spelling = value(name).map(|value| policy.identity().canonical(name, &value));
                dimensions.push((name, spelling.filter(|value| !value.is_empty())));
            }
        }
    }
    let doubt = asked.doubt().map(Doubt::as_str);
    Ok(Some(Explained { matched, plan, names_unknown_plan, dimensions, resolution, doubt }))
}
