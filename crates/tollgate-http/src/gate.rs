//! The decision about one request: its route, its caller, the charge, and what follows from the answer.
//!
//! Invariants: exempt and unmatched requests and preflights (`OPTIONS`) are not charged; whatever a request holds, what
//! cannot be decided is passed or refused as the policy says, and never fails otherwise; what a route's `step_up` does not let through
//! is neither charged nor passed, whatever the policy says of the limiter.

use crate::answer::{Additions, Answer, Decided, Exchange};
use crate::body::{self, Peek};
use crate::costs::Unsettled;
use crate::dimension::Asked;
use crate::error::{Error, Result};
use crate::facts::Facts;
use crate::identify::{self, Identified, Matched, identify};
use crate::span;
use crate::step_up::Guard;
use http::StatusCode;
use http::request::Parts;
use std::sync::Arc;
use tollgate_core::{Charges, Decision};
use tollgate_dynamodb::{Limiter, Store, Taken};
use tollgate_mfa::Sessions;
use tollgate_policy::{LivePolicy, up_to};
use tracing::Instrument;

/// The field of a Lambda authorizer's context that says that it has charged the request: `"true"`. In the events of REST APIs that
/// context is apart from the claims of any token.
pub const CHARGED: &str = "tollgateCharged";

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
    /// What is known of how callers have proved who they are.
    pub(crate) sessions: Option<Arc<Sessions>>,
}

impl<S> Clone for Gate<S> {
    fn clone(&self) -> Self {
        let Self { policy, limiter, sessions } = self;
        Self { policy: policy.clone(), limiter: Arc::clone(limiter), sessions: sessions.clone() }
    }
}

impl<S: Store> Gate<S> {
    /// Decides about a request, and charges it if it is admitted.
    pub(crate) async fn ask<B: Peek>(&self, parts: &Parts, body: &mut B) -> Verdict {
        let policy = self.policy.current();
        let facts = Facts::of(&parts.extensions);
        let Matched::Route(matched) = identify::matched(&policy, parts, &facts) else { return Verdict::Unlimited };
        let is_charged = facts.context(&format!("authorizer.{CHARGED}")).as_deref() == Some("true");
        if is_charged && matched.route.step_up().is_none() {
            return Verdict::Unlimited;
        }
        let exchange = Exchange { policy: &policy, route: matched.route, headers: &parts.headers };
        let body = body::wanted(&policy, matched.route, body).await;
        let now = self.limiter.store().moment().now;
        let asked = Asked::new(&policy, &matched, parts, &facts, body, now);
        let span = span::of(&asked);
        async {
            let sessions = self.sessions.as_deref();
            let meter = self.limiter.store().meter();
            let guard = |required| Guard { sessions, required, exchange: &exchange, meter };
            let guard = matched.route.step_up().map(guard);
            let spending = match &guard {
                Some(guard) => match guard.ask(&asked).await {
                    Ok(spending) => spending,
                    Err(answer) => return Verdict::Refused(*answer),
                },
                None => None,
            };
            let admitted = match self.decide(&asked).await {
                Ok((decided, charges, taken)) if decided.decision.is_allowed() => {
                    let additions = Additions::of(&decided, &exchange);
                    let unsettled = Unsettled::new(&policy, &decided, charges, taken);
                    Admitted { decision: decided.decision, additions, unsettled }
                }
                Ok((Decided { decision, plan }, ..)) => {
                    let told = Decided { decision: policy.jittered(decision, up_to), plan };
                    return Verdict::Refused(Answer::refused(&told, &exchange));
                }
                Err(error) => return undecided(&error, &exchange),
            };
            // Last, so that a call that is limited leaves the grant as it is.
            if let (Some(guard), Some(spending)) = (guard, spending)
                && let Err(answer) = guard.spend(&spending).await
            {
                self.give_up(admitted, answer.status).await;
                return Verdict::Refused(*answer);
            }
            Verdict::Admitted(Box::new(admitted))
        }
        .instrument(span)
        .await
    }

    /// Settles what was charged for a request that does not go on after all.
    async fn give_up(&self, admitted: Admitted, status: StatusCode) {
        if let Some(unsettled) = admitted.unsettled {
            unsettled.settle(&self.limiter, status, admitted.additions).await;
        }
    }

    async fn decide(&self, asked: &Asked<'_>) -> Result<(Decided, Vec<Charges>, Taken)> {
        let Identified { plan, names_unknown_plan, resolution } = identify(asked)?;
        identify::record(self.limiter.store().meter(), names_unknown_plan, &resolution, asked.doubt());
        let (decision, taken) = self.limiter.take_unsettled(&resolution.charges).await?;
        Ok((Decided { decision, plan }, resolution.charges, taken))
    }
}

/// The limiter has already passed what the policy lets pass.
fn undecided(error: &Error, exchange: &Exchange<'_>) -> Verdict {
    let route = exchange.route.pattern().as_str();
    tracing::warn!(%error, route, "the limiter could not decide; the call is refused");
    Verdict::Refused(Answer::unavailable(exchange))
}
