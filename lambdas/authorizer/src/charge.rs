//! The limits of a REST API's request, charged before its function is paid for.
//!
//! Invariants: a request is charged here or by the layer behind, never by both: here if all that its limits count by is in what an
//! authorizer sees, and nothing of what it is charged depends on the answer. It is counted as what the layer would count it as.

use crate::Failure;
use crate::answer::principal;
use crate::event::RestRequest;
use http::Request;
use http::request::Parts;
use serde_json::{Map, Value};
use std::time::Duration;
use tollgate::http::{Facts, Matched, explain, matched, span};
use tollgate::tollgate_policy::{Algorithm, RouteMatch, Source, up_to};
use tollgate::{Limiter, Outcome, Policy, Store, Timestamp};
use tracing::Instrument;

/// What became of a request's limits.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Charged {
    /// There are none, or they are the layer's: it charges them, or refuses what no waiting helps.
    Left,
    /// They were charged.
    Here,
    /// One of them denies, and says when to come back.
    Denied(Duration),
}

pub(crate) async fn charge<S: Store>(
    policy: &Policy,
    limiter: &Limiter<S>,
    request: &RestRequest,
    passed_on: &Map<String, Value>,
    now: Timestamp,
) -> Result<Charged, Failure> {
    let facts = facts(request, passed_on);
    let parts = parts(request).ok_or(Failure::Event)?;
    let matched = match matched(policy, &parts, &facts) {
        Matched::Route(matched) if is_for_here(policy, &matched) => matched,
        _ => return Ok(Charged::Left),
    };
    let undecided = |error: &dyn std::fmt::Display| {
        tracing::warn!(%error, route = matched.route.pattern().as_str(), "the limiter could not decide; nobody is let in");
        Failure::Undecided
    };
    let explained =
        explain(policy, &matched, &parts, &facts, None, now, &|_| None).map_err(|error| undecided(&error))?;
    explained.record(limiter.store().meter());
    // As the layer's, so that lines about denials say as much.
    let span = span(policy, &matched, &parts, &facts, now);
    let taken = limiter.take(&explained.resolution.charges).instrument(span).await;
    let decision = taken.map_err(|error| undecided(&error))?;
    Ok(match decision.outcome() {
        _ if decision.is_allowed() => Charged::Here,
        Outcome::NeverFits => Charged::Left,
        _ => Charged::Denied(policy.jittered(decision, up_to).retry_after().unwrap_or_default()),
    })
}

/// As the layer has them: API Gateway puts what is passed on into the event of the function behind.
fn facts(request: &RestRequest, passed_on: &Map<String, Value>) -> Facts {
    let mut authorizer = passed_on.clone();
    authorizer.insert("principalId".to_owned(), principal(passed_on));
    let mut context = request.context.clone();
    context.insert("authorizer".to_owned(), authorizer.into());
    Facts::from_request_context(context).with_path(request.path.clone())
}

fn is_for_here(policy: &Policy, matched: &RouteMatch<'_>) -> bool {
    // There is no body yet, an API key is looked at after the authorizer, and the context can be what code in front of the layer adds.
    let is_unseen = |dimension: &str| {
        matches!(policy.identity().origin(dimension), Some(Source::Body(_) | Source::ApiKey | Source::Context(_)))
    };
    // Whoever has to prove who he is does so first.
    let mut route = matched.route.charges().iter().map(|charge| match policy.limit(charge.limit.as_str()) {
        Ok(limit) => {
            let mut dimensions = limit.key().iter().flat_map(|part| part.alternatives());
            // Only a handler behind the layer can settle, or wait for its slot.
            let is_handlers = charge.settle_within.is_some() || matches!(limit.algorithm(), Algorithm::Pacer { .. });
            !is_handlers && !limit.counts_by_answer() && !dimensions.any(is_unseen)
        }
        Err(_) => false,
    });
    matched.route.step_up().is_none() && !is_unseen("plan") && route.all(|is_for_here| is_for_here)
}

/// Without the path, which is in the facts: what a client sends there need not be one that a URI can have.
fn parts(request: &RestRequest) -> Option<Parts> {
    let target = if request.query.is_empty() { "/".to_owned() } else { format!("/?{}", request.query) };
    let built = Request::builder().method(request.method.as_str()).uri(target).body(()).ok()?;
    let (mut parts, ()) = built.into_parts();
    parts.headers = request.headers.clone();
    Some(parts)
}
