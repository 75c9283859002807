//! What a route's `step_up` makes of a request: it goes on, or its caller is told how to prove who he is.
//!
//! Invariant: whoever cannot be told from what the gateway vouches for, and whatever cannot be decided, does not go on; no part of a
//! request but its grant says anything of an authentication.

use crate::answer::{Answer, Exchange};
use crate::dimension::Asked;
use crate::facts::Facts;
use http::request::Parts;
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

/// Asks whether a request may do what `required` guards. Without `sessions` nobody knows, and it may not.
pub(crate) async fn ask(
    sessions: Option<&Sessions>,
    required: &StepUp,
    asked: &Asked<'_>,
    exchange: &Exchange<'_>,
) -> Stepped {
    let action = match &required.bind {
        Some(fields) => Some(action(fields, asked).map_err(|field| Box::new(Answer::unbound(exchange, field)))?),
        None => None,
    };
    let refused = |shortcoming: Shortcoming| {
        let route = exchange.route.pattern().as_str();
        tracing::info!(shortcoming = shortcoming.as_str(), route, "the caller has to prove again who he is");
        Box::new(Answer::step_up(exchange, required, shortcoming, action.as_ref()))
    };
    let unknown = |error: &dyn std::fmt::Display| {
        let route = exchange.route.pattern().as_str();
        tracing::warn!(%error, route, "nobody knows whether the caller has proved who he is; the call is refused");
        Box::new(Answer::unproven(exchange))
    };
    let sessions = sessions.ok_or_else(|| unknown(&"the layer has no sessions"))?;
    let caller = caller(asked.policy, asked.facts).map_err(|error| unknown(&error))?;
    let caller = caller.ok_or_else(|| refused(Shortcoming::Missing))?;
    let Some(action) = action else {
        let judged = sessions.judge(&caller, token(asked.facts), required).await.map_err(|error| unknown(&error))?;
        return judged.map(|()| None).map_err(refused);
    };
    let judged = sessions.judge_grant(&caller, action, grant(asked.parts), required).await;
    let usable = judged.map_err(|error| unknown(&error))?.map_err(refused)?;
    Ok(Some(Spending { usable, action }))
}

/// Uses a grant up: of many requests with one, one goes on.
pub(crate) async fn spend(
    sessions: Option<&Sessions>,
    spending: &Spending,
    exchange: &Exchange<'_>,
) -> Result<(), Box<Answer>> {
    let used = match sessions {
        Some(sessions) => sessions.consume(&spending.usable).await,
        None => Ok(false),
    };
    let required = exchange.route.step_up();
    match (used, required) {
        (Ok(true), _) => Ok(()),
        (Ok(false), Some(required)) => {
            Err(Box::new(Answer::step_up(exchange, required, Shortcoming::Missing, Some(&spending.action))))
        }
        (Ok(false), None) => Err(Box::new(Answer::unproven(exchange))),
        (Err(error), _) => {
            tracing::warn!(%error, "a grant may be used up; the call is refused");
            Err(Box::new(Answer::unproven(exchange)))
        }
    }
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
fn token(facts: &Facts) -> Option<Authentication> {
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
