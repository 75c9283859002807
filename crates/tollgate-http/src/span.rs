//! What lines about a request have beside their own fields: its route, the gateway's id of it, and who buys where the policy says so.
//!
//! Invariant: only what the policy and the gateway have written, and what [`Policy::logged`] makes of a value: no part of the request.

use crate::dimension::Asked;
use crate::facts::Facts;
use http::request::Parts;
use tollgate_core::Timestamp;
use tollgate_policy::{Logged, Policy, RouteMatch, Source};
use tracing::Span;
use tracing::field::Empty;

/// The span of a request on a route, for whoever decides about one in the layer's place. What is in the body is not known here.
#[must_use]
pub fn span(policy: &Policy, matched: &RouteMatch<'_>, request: &Parts, facts: &Facts, now: Timestamp) -> Span {
    of(&Asked::new(policy, matched, request, facts, None, now))
}

pub(crate) fn of(asked: &Asked<'_>) -> Span {
    let (route, id) = (asked.matched.route.pattern().as_str(), asked.facts.context("requestId"));
    let span = tracing::info_span!("request", route, apiRequestId = id, tenant = Empty, api_key = Empty);
    if span.is_disabled() {
        return span;
    }
    let identity = asked.policy.identity();
    for name in Logged::DIMENSIONS {
        let is_logged = identity.dimension(name).is_some_and(|dimension| dimension.log.is_some());
        let Some(value) = Some(name).filter(|_| is_logged).and_then(|name| asked.value(name)) else { continue };
        let is_key = identity.source(name) == Some(&Source::ApiKey);
        // The id is no secret; the key itself is, and so may be what an authorizer calls one.
        let is_secret = is_key && asked.facts.context("identity.apiKeyId").as_deref() != Some(value.as_str());
        if let Some(told) = asked.policy.logged(name, &value, is_secret) {
            span.record(name, &*told);
        }
    }
    span
}
