//! The decision about one request: its route, its caller, the charge, and what follows from the answer.
//!
//! Invariant: exempt and unmatched requests and preflights (`OPTIONS`) are not charged; whatever a request holds, what
//! cannot be decided is passed or refused as the policy says, and never fails otherwise.

use crate::answer::{Additions, Answer, Decided, Exchange};
use crate::body::{self, Peek};
use crate::costs::Unsettled;
use crate::dimension::Asked;
use crate::error::{Error, Result};
use crate::facts::Facts;
use crate::identify::{self, Identified, Matched, identify};
use http::request::Parts;
use std::sync::Arc;
use tollgate_core::{Charges, Decision};
use tollgate_dynamodb::{Event, Limiter, Store, Taken};
use tollgate_policy::{LivePolicy, up_to};
use tracing::Instrument;

/// What becomes of a request.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// It is not limited.
    Unlimited,
    /// It was charged, or passes without.
    Admitted(Box<Admitted>),
    /// It is refused.
    Refused(Answer),
}

/// A request that goes on.
#[derive(Debug)]
pub(crate) struct Admitted {
    pub(crate) decision: Decision,
    pub(crate) additions: Additions,
    /// What its answer can change of what it was charged.
    pub(crate) unsettled: Option<Unsettled>,
}

/// The policy in force and the limiter that decides by it.
#[derive(Debug)]
pub(crate) struct Gate<S> {
    pub(crate) policy: LivePolicy,
    pub(crate) limiter: Arc<Limiter<S>>,
}

impl<S> Clone for Gate<S> {
    fn clone(&self) -> Self {
        Self { policy: self.policy.clone(), limiter: Arc::clone(&self.limiter) }
    }
}

impl<S: Store> Gate<S> {
    /// Decides about a request, and charges it if it is admitted.
    pub(crate) async fn ask<B: Peek>(&self, parts: &Parts, body: &mut B) -> Verdict {
        let policy = self.policy.current();
        let facts = Facts::of(&parts.extensions);
        let Matched::Route(matched) = identify::matched(&policy, parts, &facts) else { return Verdict::Unlimited };
        let exchange = Exchange { policy: &policy, route: matched.route, headers: &parts.headers };
        let body = body::wanted(&policy, matched.route, body).await;
        let now = self.limiter.store().moment().now;
        // Only what the policy and the gateway have written: no part of the request.
        let (route, id) = (matched.route.pattern().as_str(), facts.context("requestId"));
        let span = tracing::info_span!("request", route, apiRequestId = id);
        match self.decide(&Asked::new(&policy, &matched, parts, &facts, body, now)).instrument(span).await {
            Ok((decided, charges, taken)) if decided.decision.is_allowed() => {
                let additions = Additions::of(&decided, &exchange);
                let unsettled = Unsettled::new(&policy, &decided, charges, taken);
                Verdict::Admitted(Box::new(Admitted { decision: decided.decision, additions, unsettled }))
            }
            Ok((Decided { decision, plan }, ..)) => {
                let told = Decided { decision: policy.jittered(decision, up_to), plan };
                Verdict::Refused(Answer::refused(&told, &exchange))
            }
            Err(error) => undecided(&error, &exchange),
        }
    }

    async fn decide(&self, asked: &Asked<'_>) -> Result<(Decided, Vec<Charges>, Taken)> {
        let Identified { plan, names_unknown_plan, resolution } = identify(asked)?;
        if names_unknown_plan {
            self.meter(Event::UnknownPlan);
        }
        for (limit, _) in resolution.missing() {
            self.meter(Event::MissingDimension(limit.as_str()));
        }
        if let Some(doubt) = asked.doubt() {
            self.meter(doubt.event());
        }
        let (decision, taken) = self.limiter.take_unsettled(&resolution.charges).await?;
        Ok((Decided { decision, plan }, resolution.charges, taken))
    }

    fn meter(&self, event: Event<'_>) {
        self.limiter.store().meter().record(event);
    }
}

/// The limiter has already passed what the policy lets pass.
fn undecided(error: &Error, exchange: &Exchange<'_>) -> Verdict {
    let route = exchange.route.pattern().as_str();
    tracing::warn!(%error, route, "the limiter could not decide; the call is refused");
    Verdict::Refused(Answer::unavailable(exchange))
}
