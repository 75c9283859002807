//! Who asks, and what he has to have proved.
//!
//! Invariant: who asks is what the authorizer vouches for, and no part of the request; how he is called is for his own eyes.

use crate::Handlers;
use lambda_http::{Body, Request, Response};
use tollgate::http::{self, Exchange, Facts};
use tollgate::mfa::Caller;
use tollgate::tollgate_policy::{self, StepUp};
use tollgate::{Policy, Store};
use tollgate_mfa::audit::{Actor, Author};
use tollgate_mfa::factors::Vault;

/// The claim that an app shows, if the token has it; else it shows the user.
const LABEL: &str = "email";

/// What somebody has to have proved of late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// That he has signed in.
    SignIn,
    /// As much as lets him enrol and remove factors.
    Enrolment,
    /// All that a second factor proves.
    Everything,
}

/// Who asks, once an authorizer has let him in.
#[derive(Debug, Clone)]
pub(crate) struct Asker {
    /// Whose session and whose factors.
    pub(crate) caller: Caller,
    /// What an app shows him by.
    pub(crate) label: String,
}

impl Asker {
    /// The one of a request; `None` if nobody vouches for one.
    pub(crate) fn of(policy: &Policy, facts: &Facts) -> tollgate_policy::Result<Option<Self>> {
        let label = facts.claim(LABEL).or_else(|| http::vouched(policy, facts, "user"));
        Ok(http::caller(policy, facts)?.zip(label).map(|(caller, label)| Self { caller, label }))
    }

    /// Who the log says has done something to his own account.
    pub(crate) fn author(&self, policy: &Policy) -> Author {
        self.acting_as(policy, Actor::User)
    }

    /// The same, to the rules of his tenant.
    pub(crate) fn admin(&self, policy: &Policy) -> Author {
        self.acting_as(policy, Actor::Admin(self.caller.subject.clone()))
    }

    fn acting_as(&self, policy: &Policy, actor: Actor) -> Author {
        Author { actor, session: self.caller.session.clone(), retention: policy.audit_retention() }
    }
}

impl<S: Store, V: Vault> Handlers<S, V> {
    /// Asks whether whoever asks has proved what it `needs` as recently as the policy's `[mfa]` says. The error is the answer.
    pub(crate) async fn demand(
        &self,
        policy: &Policy,
        request: &Request,
        needs: Needs,
    ) -> Result<Result<(), Box<Response<Body>>>, tollgate_mfa::Error> {
        let rules = policy.mfa()?;
        let mut required = StepUp::within(rules.max_age);
        required.acr = match needs {
            Needs::SignIn => Vec::new(),
            Needs::Enrolment => vec![rules.acr.clone(), rules.enrol_acr.clone()],
            Needs::Everything => vec![rules.acr.clone()],
        };
        let facts = Facts::of(request.extensions());
        let path = facts.path().unwrap_or(request.uri().path());
        // It has been charged by a route of the policy; of another one since, in doubt, nobody knows.
        let Some(matched) = policy.route(request.method().as_str(), path) else {
            return Ok(Err(Box::new(crate::answer::unavailable())));
        };
        let exchange = Exchange { policy, route: matched.route, headers: request.headers() };
        let meter = self.limiter.store().meter();
        let asked = http::demand(&exchange, &facts, &self.sessions, &required, meter).await;
        Ok(asked.map_err(|answer| Box::new(answer.into_response())))
    }

    /// The same, unless the route of the policy asks itself: then the layer has asked.
    pub(crate) async fn demand_unless_guarded(
        &self,
        policy: &Policy,
        request: &Request,
        needs: Needs,
    ) -> Result<Result<(), Box<Response<Body>>>, tollgate_mfa::Error> {
        let facts = Facts::of(request.extensions());
        let path = facts.path().unwrap_or(request.uri().path());
        let is_guarded = policy.route(request.method().as_str(), path).is_some_and(|at| at.route.step_up().is_some());
        if is_guarded { Ok(Ok(())) } else { self.demand(policy, request, needs).await }
    }
}
