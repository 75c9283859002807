//! Decisions asked for in JSON (`POST /v1/decisions`), for callers in any language.
//!
//! Invariant: an answer with status 200 is a decision; bad input is 400 and charges nothing; a limiter that cannot
//! decide is 503, never 429. Nothing here knows HTTP beyond the number of a status.

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use std::fmt;
use tollgate_core::time::millis_rounded_up;
use tollgate_core::{Charges, Decision, Key, LimitDecision, Mode, Outcome, Unasked};
use tollgate_dynamodb::{Limiter, Store};
use tollgate_policy::{Error, Logged, Policy, Source, Wanted, up_to};
use tracing::field::Empty;
use tracing::{Instrument, Span};

/// A status and a JSON body.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// 200, 400 or 503.
    pub status: u16,
    /// The body.
    pub body: Value,
}

/// One decision wanted.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    limit: String,
    #[serde(deserialize_with = "pairs")]
    key: Vec<(String, String)>,
    plan: Option<String>,
    /// Kept as JSON until checked, so that -5 and 0.5 get an answer that says what is wrong with them.
    cost: Option<Value>,
}

/// One limit's answer.
#[derive(Debug, Serialize)]
struct Answer<'a> {
    allowed: bool,
    limit: &'a str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    never_fits: bool,
    remaining: Option<u64>,
    retry_after_ms: Option<u64>,
    reset_ms: Option<u64>,
    source: &'a str,
    /// Of a pacer, how long to wait before the call may go; of a cost of 0, how long the next one would have to.
    #[serde(skip_serializing_if = "Option::is_none")]
    wait_ms: Option<u64>,
    /// What a limit that only reports says: `allowed`, `denied` or `never_fits`.
    #[serde(skip_serializing_if = "Option::is_none")]
    shadow: Option<&'a str>,
    /// The wait that a limit which only reports, and says `denied`, would ask for.
    #[serde(skip_serializing_if = "Option::is_none")]
    shadow_retry_after_ms: Option<u64>,
    /// The wait of a pacer that only reports, and keeps nobody waiting.
    #[serde(skip_serializing_if = "Option::is_none")]
    shadow_wait_ms: Option<u64>,
    /// What is in force for the key that it was decided by: `ban` or `override`, which operators set, or `penalty`, the limit's own
    /// lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<&'a str>,
}

/// Decides what `body` asks for: an object for one limit, an array for one all-or-nothing decision on several limits and
/// keys, answered in the same order. Each answer's `allowed` is that of the whole decision; the limits in the way are those
/// with `retry_after_ms` above 0, or with `never_fits`, where it is `null`. What a limit that only reports says is in its
/// `shadow`, and the wait that it would ask for in `shadow_retry_after_ms`. A pacer's answer has `wait_ms`: the call may go
/// that much later, and where several are charged, after the longest. What is left is `null` where a limit was not
/// asked, since another was known to deny, or where the store gave no answer.
pub async fn decide<S: Store>(policy: &Policy, limiter: &Limiter<S>, body: &[u8]) -> Reply {
    let (requests, is_array) = match parse(body) {
        Ok(parsed) => parsed,
        Err(message) => return bad_request(&message),
    };
    let wanted = match wanted(policy, &requests) {
        Ok(wanted) => wanted,
        Err(message) => return bad_request(&message),
    };
    let answers: Vec<Value> = match limiter.take(&wanted.charges).instrument(span(policy, &requests)).await {
        Ok(decision) => {
            let told = policy.jittered(decision, up_to);
            requests.iter().zip(&wanted.keys).map(|(r, keys)| answer(&r.limit, keys, &told)).collect()
        }
        Err(error) => return unavailable(&error),
    };
    let body = if is_array { Value::Array(answers) } else { answers.into_iter().next().unwrap_or_default() };
    Reply { status: 200, body }
}

/// What a line about a denial has beside its own fields: who buys, where the policy says so and all keys agree.
fn span(policy: &Policy, requests: &[Request]) -> Span {
    let span = tracing::info_span!("decisions", tenant = Empty, api_key = Empty);
    if span.is_disabled() {
        return span;
    }
    for name in Logged::DIMENSIONS {
        let mut values =
            requests.iter().flat_map(|r| &r.key).filter(|(known, _)| known == name).map(|(_, value)| value);
        let Some(value) = values.next().filter(|first| values.all(|value| value == *first)) else { continue };
        // Nobody says whether it is the id of a key or the key.
        let is_secret = policy.identity().source(name) == Some(&Source::ApiKey);
        if let Some(told) = policy.logged(name, value, is_secret) {
            span.record(name, &*told);
        }
    }
    span
}

fn parse(body: &[u8]) -> Result<(Vec<Request>, bool), String> {
    let is_array = body.trim_ascii_start().starts_with(b"[");
    // Read straight into the shape, so that a field or dimension that is given twice is an error and not a silent choice.
    let parsed =
        if is_array { serde_json::from_slice(body) } else { serde_json::from_slice(body).map(|one| vec![one]) };
    let shape = r#"write {"limit":"orders","key":{"user":"alice"},"plan":"free","cost":1}"#;
    let requests: Vec<Object> = parsed.map_err(|e| match e.classify() {
        serde_json::error::Category::Data => format!("{}; {shape}", unquoted(&e)),
        _ => format!("the body is not JSON: {e}"),
    })?;
    if requests.is_empty() {
        return Err("the array is empty; name at least one limit".to_owned());
    }
    Ok((requests.into_iter().map(|Object(request)| request).collect(), is_array))
}

/// What serde says of JSON of another shape, without the value of the wrong type or the unknown name that it quotes: either
/// may be personal, and this text is logged.
fn unquoted(error: &serde_json::Error) -> String {
    let text = error.to_string();
    if text.starts_with("invalid") {
        return format!("a value at line {} column {} has the wrong type", error.line(), error.column());
    }
    match text.rsplit_once(", expected ") {
        Some((unknown, known)) if unknown.starts_with("unknown field") => format!("unknown field, expected {known}"),
        _ => text,
    }
}

/// A request as an object; serde would take its fields from an array, too.
struct Object(Request);

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Object;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object, A::Error> {
                Request::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

/// An object as pairs, duplicates included: the policy says what is wrong with those.
fn pairs<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(String, String)>, D::Error> {
    struct Pairs;
    impl<'de> Visitor<'de> for Pairs {
        type Value = Vec<(String, String)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object of dimensions and their values as strings")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut pairs = Vec::new();
            while let Some(pair) = map.next_entry()? {
                pairs.push(pair);
            }
            Ok(pairs)
        }
    }
    deserializer.deserialize_map(Pairs)
}

const COST: &str = "cost must be a whole number from 0 to 1,000,000,000,000";

fn cost(request: &Request) -> Result<u64, String> {
    match &request.cost {
        None => Ok(1),
        Some(cost) => cost.as_u64().ok_or_else(|| COST.to_owned()),
    }
}

/// What does not fit the policy, without what the caller wrote instead of a known name or a figure: a value in the wrong
/// place may be personal, and this text is logged. Names of the policy's own are told.
fn unechoed(error: &Error) -> String {
    match error {
        Error::UnknownLimit { help, .. } => format!("unknown limit: {help}"),
        Error::UnknownPlan { help, .. } => format!("unknown plan: {help}"),
        Error::SurplusDimension { limit, wants, .. } => {
            format!("limit {limit:?} is not counted by one of the dimensions that are given; its key is: {wants}")
        }
        Error::Core(tollgate_core::Error::Cost(_)) => COST.to_owned(),
        // The others name what the policy has, or count.
        known => known.to_string(),
    }
}

/// What is to be charged, and the keys of each request.
struct Charging {
    charges: Vec<Charges>,
    keys: Vec<Vec<Key>>,
}

fn wanted(policy: &Policy, requests: &[Request]) -> Result<Charging, String> {
    let given: Vec<Vec<(&str, &str)>> =
        requests.iter().map(|r| r.key.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()).collect();
    let mut wanted = Vec::with_capacity(requests.len());
    for (request, key) in requests.iter().zip(&given) {
        wanted.push(Wanted { limit: &request.limit, key, plan: request.plan.as_deref(), cost: cost(request)? });
    }
    let (charges, keys) = policy.charges_and_keys(&wanted).map_err(|e| unechoed(&e))?;
    Ok(Charging { charges, keys })
}

/// The answer about one limit: of several keys of it, the one that is most in the way.
fn answer(limit: &str, keys: &[Key], decision: &Decision) -> Value {
    let allowed = decision.is_allowed();
    let decided = decision.limits.iter().filter(|l| l.limit.as_str() == limit && keys.contains(&l.key));
    let worst = decided.max_by_key(|l| l.urgency());
    let unasked = || decision.unasked.iter().find(|u| u.charge.limit.as_str() == limit && keys.contains(&u.key));
    match (worst, unasked()) {
        (Some(limit), _) => json!(known(limit, allowed)),
        (None, Some(limit)) => json!(unknown(limit, allowed)),
        // Every limit that was asked about is in the decision, one way or the other.
        (None, None) => Value::Null,
    }
}

fn known(limit: &LimitDecision, allowed: bool) -> Answer<'_> {
    let is_in_the_way = limit.is_in_the_way();
    let never_fits = is_in_the_way && limit.outcome == Outcome::NeverFits;
    let reports = limit.mode == Mode::Shadow;
    let wait = limit.retry_after.map(millis_rounded_up);
    let paced = limit.terms.figures.is_paced().then(|| millis_rounded_up(limit.starts_after));
    Answer {
        // Of the decision, not of this limit: whoever reads one answer of an array must not take a refusal for a permission.
        allowed,
        limit: limit.limit.as_str(),
        never_fits,
        remaining: Some(limit.remaining),
        retry_after_ms: (!never_fits).then_some(wait.filter(|_| is_in_the_way).unwrap_or(0)),
        reset_ms: Some(millis_rounded_up(limit.reset_after)),
        source: limit.source.as_str(),
        wait_ms: paced.map(|ms| if reports { 0 } else { ms }),
        shadow: reports.then_some(limit.outcome.as_str()),
        shadow_retry_after_ms: wait.filter(|_| reports),
        shadow_wait_ms: paced.filter(|_| reports),
        held: limit.held.map(tollgate_core::Held::as_str),
    }
}

fn unknown(limit: &Unasked, allowed: bool) -> Answer<'_> {
    let never_fits = limit.never_fits();
    Answer {
        allowed,
        limit: limit.charge.limit.as_str(),
        never_fits,
        remaining: None,
        retry_after_ms: (!never_fits).then_some(0),
        reset_ms: None,
        source: limit.source.as_str(),
        wait_ms: None,
        shadow: None,
        shadow_retry_after_ms: None,
        shadow_wait_ms: None,
        held: None,
    }
}

fn bad_request(message: &str) -> Reply {
    Reply { status: 400, body: json!({ "error": "bad_request", "message": message }) }
}

fn unavailable(error: &tollgate_dynamodb::Error) -> Reply {
    tracing::warn!(%error, "the limiter could not decide; the call is refused");
    // What the store said is for the log: it names endpoint, table and role.
    let message = "the limiter cannot decide now; this says nothing about the caller's limit; try again";
    Reply { status: 503, body: json!({ "error": "limiter_unavailable", "message": message }) }
}
