//! The limits of a REST API's request, charged before its function is paid for.
//!
//! Invariant: a request is charged here or by the layer behind, never by both: here if all that its limits count by is in what an
//! authorizer sees, and nothing of what it is charged depends on the answer.

use crate::Failure;
use crate::event::RestRequest;
use http::Request;
use http::request::Parts;
use serde_json::{Map, Value};
use std::time::Duration;
use tollgate::http::{Facts, Matched, explain, matched};
use tollgate::tollgate_policy::{RouteMatch, Source};
use tollgate::{Limiter, Policy, Store, Timestamp};

/// What became of a request's limits.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Charged {
    /// There are none, or the layer charges them.
    Left,
    /// They were charged.
    Here,
    /// One of them denies, and says when to come back; `None`: never, the cost is beyond it.
    Denied(Option<Duration>),
}

pub(crate) async fn charge<S: Store>(
    policy: &Policy,
    limiter: &Limiter<S>,
    request: &RestRequest,
    claims: &Map<String, Value>,
    now: Timestamp,
) -> Result<Charged, Failure> {
    let facts = Facts::from_request_context(request.context.clone()).with_claims(claims.clone());
    let facts = facts.with_path(request.path.clone());
    let parts = parts(request).ok_or(Failure::Event)?;
    let matched = match matched(policy, &parts, &facts) {
        Matched::Route(matched) if is_for_here(policy, &matched) => matched,
        _ => return Ok(Charged::Left),
    };
    let undecided = |error: &dyn std::fmt::Display| {
        tracing::warn!(%error, route = matched.route.pattern().as_str(), "the limiter could not decide; nobody is let in");
        Failure::Undecided
    };
    let explained = explain(policy, &matched, &parts, &facts, None, now, &|_| None);
    let charges = explained.map_err(|error| undecided(&error))?.resolution.charges;
    let decision = limiter.take(&charges).await.map_err(|error| undecided(&error))?;
    Ok(if decision.is_allowed() { Charged::Here } else { Charged::Denied(decision.retry_after()) })
}

fn is_for_here(policy: &Policy, matched: &RouteMatch<'_>) -> bool {
    let in_body = |dimension: &str| matches!(policy.identity().origin(dimension), Some(Source::Body(_)));
    // Whoever has to prove who he is does so first.
    let mut route = matched.route.charges().iter().map(|charge| match policy.limit(charge.limit.as_str()) {
        Ok(limit) => {
            let mut dimensions = limit.key().iter().flat_map(|part| part.alternatives());
            charge.settle_within.is_none() && !limit.counts_by_answer() && !dimensions.any(in_body)
        }
        Err(_) => false,
    });
    matched.route.step_up().is_none() && !in_body("plan") && route.all(|is_for_here| is_for_here)
}

fn parts(request: &RestRequest) -> Option<Parts> {
    let target =
        if request.query.is_empty() { request.path.clone() } else { format!("{}?{}", request.path, request.query) };
    let built = Request::builder().method(request.method.as_str()).uri(target).body(()).ok()?;
    let (mut parts, ()) = built.into_parts();
    parts.headers = request.headers.clone();
    Some(parts)
}
