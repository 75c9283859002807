//! What a route's `step_up` makes of a request: it goes on, or its caller is told how to prove who he is.
//!
//! Invariant: whoever cannot be told from what the gateway vouches for, and whatever cannot be decided, does not go on; no part of a
//! request but its grant says anything of an authentication.

use crate::answer::{Answer, Exchange};
use crate::dimension::Asked;
use crate::facts::Facts;
use http::request::Parts;
use tollgate_dynamodb::{Event, Meter};
use tollgate_mfa::{Action, Authentication, Caller, GrantId, Sessions, Shortcoming, Usable, auth_time};
use tollgate_policy::{Policy, Source, StepUp};

/// The header field that a grant comes in.
pub const GRANT_HEADER: &str = "tollgate-grant";

/// A result of asking: what is still to be used up before the request goes on, or what its caller is told.
pub(crate) type Stepped = Result<Option<Spending>, Box<Answer>>;

/// A grant that is used up once the request is admitted.
#[derive(Debug)]
pub(crate) struct Spending {
    usable: Usable,
    action: Action,
}

/// What a route with `step_up` is asked with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Guard<'a> {
    /// What is known of callers; without it nobody knows, and nobody goes on.
    pub(crate) sessions: Option<&'a Sessions>,
    pub(crate) required: &'a StepUp,
    pub(crate) exchange: &'a Exchange<'a>,
    /// Who is told of refusals.
    pub(crate) meter: &'a dyn Meter,
}

impl Guard<'_> {
    /// Asks whether a request may do what the route guards.
    pub(crate) async fn ask(&self, asked: &Asked<'_>) -> Stepped {
        let required = self.required;
        let action = match &required.bind {
            Some(fields) => {
                Some(action(fields, asked).map_err(|field| Box::new(Answer::unbound(self.exchange, field)))?)
            }
            None => None,
        };
        let Some(action) = action else { return self.of_session(asked.facts).await.map(|()| None) };
        let (sessions, caller) = (self.sessions()?, self.caller(asked.facts, Some(&action))?);
        let judged = sessions.judge_grant(&caller, action, grant(asked.parts), required).await;
        let judged = judged.map_err(|error| self.unknown(&error))?;
        let usable = judged.map_err(|shortcoming| self.refused(shortcoming, Some(&action)))?;
        Ok(Some(Spending { usable, action }))
    }

    /// Asks whether the caller's session may do what is guarded.
    async fn of_session(&self, facts: &Facts) -> Result<(), Box<Answer>> {
        let (sessions, caller) = (self.sessions()?, self.caller(facts, None)?);
        let judged = sessions.judge(&caller, authentication(facts), self.required).await;
        judged.map_err(|error| self.unknown(&error))?.map_err(|shortcoming| self.refused(shortcoming, None))
    }

    fn caller(&self, facts: &Facts, action: Option<&Action>) -> Result<Caller, Box<Answer>> {
        let caller = caller(self.exchange.policy, facts).map_err(|error| self.unknown(&error))?;
        caller.ok_or_else(|| self.refused(Shortcoming::Missing, action))
    }

    /// Uses a grant up: of many requests with one, one goes on.
    pub(crate) async fn spend(&self, spending: &Spending) -> Result<(), Box<Answer>> {
        let used = self.sessions()?.consume(&spending.usable).await;
        // It may be used up all the same.
        let was_there = used.map_err(|error| self.unknown(&error))?;
        if was_there { Ok(()) } else { Err(self.refused(Shortcoming::Missing, Some(&spending.action))) }
    }

    fn sessions(&self) -> Result<&Sessions, Box<Answer>> {
        self.sessions.ok_or_else(|| self.unknown(&"the layer has no sessions"))
    }

    fn refused(&self, shortcoming: Shortcoming, action: Option<&Action>) -> Box<Answer> {
        let (route, reason) = (self.route(), shortcoming.as_str());
        tracing::info!(shortcoming = reason, route, "the caller has to prove again who he is");
        self.meter.record(Event::StepUpRequired { route, reason });
        Box::new(Answer::step_up(self.exchange, self.required, shortcoming, action))
    }

    fn unknown(&self, error: &dyn std::fmt::Display) -> Box<Answer> {
        let route = self.route();
        tracing::warn!(%error, route, "nobody knows whether the caller has proved who he is; the call is refused");
        self.meter.record(Event::StepUpUnavailable(route));
        Box::new(Answer::unproven(self.exchange))
    }

    fn route(&self) -> &str {
        self.exchange.route.pattern().as_str()
    }
}

/// What only a handler can know to be needed, asked as a route's `step_up` is: whether the session of a request's caller may do what
/// asks for `required`. `meter` is told of refusals.
///
/// # Errors
///
/// The answer: the challenge of RFC 9470, or 503 where nobody knows.
pub async fn demand(
    exchange: &Exchange<'_>,
    facts: &Facts,
    sessions: &Sessions,
    required: &StepUp,
    meter: &dyn Meter,
) -> Result<(), Box<Answer>> {
    Guard { sessions: Some(sessions), required, exchange, meter }.of_session(facts).await
}

/// Who asks, by what the gateway vouches for; `None` if it vouches for nobody. A user without a tenant is another than one with.
///
/// # Errors
///
/// Personal values without secrets, or a value that is too long to be a key.
pub fn caller(policy: &Policy, facts: &Facts) -> tollgate_policy::Result<Option<Caller>> {
    let value = |dimension: &str| policy.value(dimension, |dimension| vouched(policy, facts, dimension));
    let Some(user) = value("user")? else { return Ok(None) };
    let mut pairs = vec![("user", user)];
    pairs.extend(value("tenant")?.map(|tenant| ("tenant", tenant)));
    // Under the active secret: what is known by a hash ends when that rotates.
    let Some(subject) = policy.keys(&pairs)?.into_iter().next() else { return Ok(None) };
    Ok(Some(Caller { subject, session: value("session")? }))
}

/// What the gateway vouches for of a dimension: a claim, or a field of its context. Nothing of what its sender could choose.
#[must_use]
pub fn vouched(policy: &Policy, facts: &Facts, dimension: &str) -> Option<String> {
    match policy.identity().source(dimension)? {
        Source::Claim(name) => facts.claim(name),
        Source::Context(name) => facts.context(name),
        _ => None,
    }
}

/// What the token says of its caller's authentication; `None` if it does not say when that was.
#[must_use]
pub fn authentication(facts: &Facts) -> Option<Authentication> {
    let at = auth_time::read(facts.raw_claim("auth_time")?)?;
    Some(Authentication { at, acr: facts.claim("acr"), amr: facts.claims_of("amr") })
}

fn grant(parts: &Parts) -> Option<GrantId> {
    let mut lines = parts.headers.get_all(GRANT_HEADER).iter();
    let only = lines.next().filter(|_| lines.next().is_none())?;
    only.to_str().ok()?.parse().ok()
}

/// The action that a request is; the error is the field that has no one value.
fn action<'f>(fields: &'f [String], asked: &Asked<'_>) -> Result<Action, &'f str> {
    let value = |field: &'f String| asked.body_field(field).map(|value| (field.as_str(), value)).ok_or(field.as_str());
    let fields = fields.iter().map(value).collect::<Result<Vec<_>, _>>()?;
    let query = asked.parts.uri.query().unwrap_or_default();
    let query = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    let path = asked.facts.path().unwrap_or(asked.parts.uri.path());
    Ok(Action::new(asked.parts.method.as_str(), path, query, &fields))
}
