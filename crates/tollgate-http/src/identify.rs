//! Who is charged for a request, and on what: its route, its caller's plan, the keys.
//!
//! Invariant: the layer and whoever asks what it would do go through here, so that they never differ.

use crate::client_address::Doubt;
use crate::dimension::Asked;
use crate::facts::Facts;
use bytes::Bytes;
use http::Method;
use http::request::Parts;
use std::borrow::Cow;
use tollgate_core::Timestamp;
use tollgate_dynamodb::{Event, Meter};
use tollgate_policy::{Error, Exemption, IfMissing, Policy, Resolution, Result, Route, RouteCharge, RouteMatch};

/// What a policy says of a request.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Matched<'a> {
    /// It is a preflight (`OPTIONS`), and never counted.
    Preflight,
    /// It is exempt.
    Exempt(&'a Exemption),
    /// It is on no route.
    Unmatched,
    /// It is charged as this route says.
    Route(RouteMatch<'a>),
}

/// What a policy says of a request with these facts.
pub fn matched<'a>(policy: &'a Policy, request: &'a Parts, facts: &'a Facts) -> Matched<'a> {
    let path = facts.path().unwrap_or(request.uri.path());
    // A preflight carries no credentials, and a browser does not tell the page why it failed.
    if request.method == Method::OPTIONS {
        return Matched::Preflight;
    }
    let by = |method: &str| match policy.exemption(method, path) {
        Some(exemption) => Matched::Exempt(exemption),
        None => policy.route(method, path).map_or(Matched::Unmatched, Matched::Route),
    };
    match by(request.method.as_str()) {
        // Frameworks answer HEAD with the handler of GET, so it costs the same unless the policy says otherwise.
        Matched::Unmatched if request.method == Method::HEAD => by("GET"),
        matched => matched,
    }
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

/// Has it counted what is odd about a request that is charged so.
pub(crate) fn record(meter: &dyn Meter, names_unknown_plan: bool, resolution: &Resolution, doubt: Option<Doubt>) {
    if names_unknown_plan {
        meter.record(Event::UnknownPlan);
    }
    for (limit, _) in resolution.missing() {
        meter.record(Event::MissingDimension(limit.as_str()));
    }
    if let Some(doubt) = doubt {
        meter.record(doubt.event());
    }
}

/// Identifies the caller of `asked`.
pub(crate) fn identify(asked: &Asked<'_>) -> Result<Identified> {
    let (policy, route) = (asked.policy, asked.matched.route);
    let claimed = asked.value("plan");
    let accepted = claimed.as_deref().filter(|plan| policy.plans().accepts(plan));
    let plan = policy.plans().resolve(accepted)?;
    let charges = charges(route, asked.facts);
    let resolution = policy.resolve(&charges, |name| asked.value(name), plan, IfMissing::Share)?.on(route);
    let names_unknown_plan = claimed.is_some() && accepted.is_none();
    Ok(Identified { plan: plan.map(str::to_owned), names_unknown_plan, resolution })
}

/// What a route charges, at the costs that the facts tell.
fn charges<'r>(route: &'r Route, facts: &Facts) -> Cow<'r, [RouteCharge]> {
    let told = |charge: &RouteCharge| facts.cost(charge.limit.as_str());
    if route.charges().iter().all(|charge| told(charge).is_none()) {
        return Cow::Borrowed(route.charges());
    }
    let mut charges = route.charges().to_vec();
    charges.retain(|charge| told(charge) != Some(0));
    for charge in &mut charges {
        charge.cost = told(charge).unwrap_or(charge.cost);
    }
    Cow::Owned(charges)
}

/// What the layer would make of a request on a route: see [`explain`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Explained<'a> {
    /// The plan whose figures count.
    pub plan: Option<String>,
    /// Whether the caller named a plan that the policy does not have, and is counted on the default one.
    pub names_unknown_plan: bool,
    /// Every dimension that a limit of the route may be counted by, with its value in this request in its one spelling.
    pub dimensions: Vec<(&'a str, Option<String>)>,
    /// The keys, and what is charged on them.
    pub resolution: Resolution,
    doubt: Option<Doubt>,
}

impl Explained<'_> {
    /// What is odd about the client's address, if it was asked for: `unproven_address` or `shared_address`.
    #[must_use]
    pub fn doubt(&self) -> Option<&'static str> {
        self.doubt.map(Doubt::as_str)
    }

    /// Has `meter` count what is odd about the request, as the layer does with each that it charges: for whoever charges one in its place.
    pub fn record(&self, meter: &dyn Meter) {
        record(meter, self.names_unknown_plan, &self.resolution, self.doubt);
    }
}

/// What the layer would make of a request that [`matched`] has found on a route, charging nothing. `body` is what
/// [`Peek`](crate::Peek) gives of it up to [`MAX_BODY_BYTES`](crate::MAX_BODY_BYTES); `now` is the time by which the age of a
/// device's token is told; `given` goes before what the request says of a dimension.
///
/// # Errors
///
/// As [`Policy::resolve`].
pub fn explain<'a>(
    policy: &'a Policy,
    matched: &'a RouteMatch<'a>,
    request: &'a Parts,
    facts: &'a Facts,
    body: Option<Bytes>,
    now: Timestamp,
    given: &(dyn Fn(&str) -> Option<String> + Sync),
) -> Result<Explained<'a>> {
    let asked = Asked::new(policy, matched, request, facts, body, now).given(given);
    let Identified { plan, names_unknown_plan, resolution } = identify(&asked)?;
    let mut dimensions: Vec<(&str, Option<String>)> = Vec::new();
    for charge in matched.route.charges() {
        for name in policy.limit(charge.limit.as_str())?.key().iter().flat_map(|part| part.alternatives()) {
            if dimensions.iter().all(|(known, _)| *known != name) {
                let value = match policy.value(name, |name| asked.value(name)) {
                    Err(Error::Core(tollgate_core::Error::KeyTooLong { .. })) => None,
                    found => found?,
                };
                dimensions.push((name, value));
            }
        }
    }
    let doubt = asked.doubt();
    Ok(Explained { plan, names_unknown_plan, dimensions, resolution, doubt })
}
