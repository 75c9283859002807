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
use tollgate_core::{Charge, Charges, Decision, LimitDecision, LimitName, Outcome, Source};
use tollgate_dynamodb::{Limiter, Store};
use tollgate_policy::{Policy, StoreFailure, Wanted};

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
}

/// Decides what `body` asks for: an object for one limit, an array for one all-or-nothing decision on several limits of
/// one key, answered in the same order. Each answer's `allowed` is that of the whole decision; the limits in the way are those
/// with `retry_after_ms` above 0 or `never_fits`.
pub async fn decide<S: Store>(policy: &Policy, limiter: &Limiter<S>, body: &[u8]) -> Reply {
    let (requests, is_array) = match parse(body) {
        Ok(parsed) => parsed,
        Err(message) => return bad_request(&message),
    };
    let charges = match charges(policy, &requests) {
        Ok(charges) => charges,
        Err(message) => return bad_request(&message),
    };
    let answers = match limiter.take(&charges).await {
        Ok(decision) => ordered(&requests, &decision),
        Err(error) if error.is_outage() && policy.store_failure(None, names(&charges)) == StoreFailure::Open => {
            tracing::warn!(%error, "the store gave no answer; the limit lets calls pass");
            let allowed = charges.charges().iter().all(|charge| !never_fits(charge));
            charges.charges().iter().map(|charge| unanswered(charge, allowed)).collect()
        }
        Err(error) => return unavailable(&error),
    };
    let body = if is_array { Value::Array(answers) } else { answers.into_iter().next().unwrap_or_default() };
    Reply { status: 200, body }
}

fn parse(body: &[u8]) -> Result<(Vec<Request>, bool), String> {
    let is_array = body.trim_ascii_start().starts_with(b"[");
    // Read straight into the shape, so that a field or dimension that is given twice is an error and not a silent choice.
    let parsed =
        if is_array { serde_json::from_slice(body) } else { serde_json::from_slice(body).map(|one| vec![one]) };
    let shape = r#"write {"limit":"orders","key":{"user":"alice"},"plan":"free","cost":1}"#;
    let requests: Vec<Object> = parsed.map_err(|e| match e.classify() {
        // serde's word for a value of the wrong type quotes the value, which may be personal; this text is logged.
        serde_json::error::Category::Data if e.to_string().starts_with("invalid") => {
            format!("a value at line {} column {} has the wrong type; {shape}", e.line(), e.column())
        }
        serde_json::error::Category::Data => format!("{e}; {shape}"),
        _ => format!("the body is not JSON: {e}"),
    })?;
    if requests.is_empty() {
        return Err("the array is empty; name at least one limit".to_owned());
    }
    Ok((requests.into_iter().map(|Object(request)| request).collect(), is_array))
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

fn cost(request: &Request) -> Result<u64, String> {
    match &request.cost {
        None => Ok(1),
        Some(cost) => cost.as_u64().ok_or_else(|| format!("cost must be a whole number from 0, not {cost}")),
    }
}

fn charges(policy: &Policy, requests: &[Request]) -> Result<Charges, String> {
    let keys: Vec<Vec<(&str, &str)>> =
        requests.iter().map(|r| r.key.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()).collect();
    let mut wanted = Vec::with_capacity(requests.len());
    for (request, key) in requests.iter().zip(&keys) {
        wanted.push(Wanted { limit: &request.limit, key, plan: request.plan.as_deref(), cost: cost(request)? });
    }
    let mut charges = policy.charges(&wanted).map_err(|e| e.to_string())?;
    match (charges.pop(), charges.is_empty()) {
        (Some(only), true) => Ok(only),
        _ => {
            Err("several keys in one decision are not supported by this version; ask for each key by itself".to_owned())
        }
    }
}

fn names(charges: &Charges) -> impl Iterator<Item = &LimitName> {
    charges.charges().iter().map(|charge| &charge.limit)
}

fn ordered(requests: &[Request], decision: &Decision) -> Vec<Value> {
    let of = |request: &Request| decision.limits.iter().find(|l| l.limit.as_str() == request.limit);
    requests.iter().filter_map(of).map(|limit| answer(limit, decision)).collect()
}

fn answer(limit: &LimitDecision, decision: &Decision) -> Value {
    let never_fits = limit.outcome == Outcome::NeverFits;
    let wait = limit.retry_after.unwrap_or_default();
    json!(Answer {
        // Of the decision, not of this limit: whoever reads one answer of an array must not take a refusal for a permission.
        allowed: decision.is_allowed(),
        limit: limit.limit.as_str(),
        never_fits,
        remaining: Some(limit.remaining),
        retry_after_ms: (!never_fits).then(|| millis_rounded_up(wait)),
        reset_ms: Some(millis_rounded_up(limit.reset_after)),
        source: decision.source.as_str(),
    })
}

/// The answer of a limit that lets calls pass while the store is gone: what is left is not known.
fn unanswered(charge: &Charge, allowed: bool) -> Value {
    let never_fits = never_fits(charge);
    json!(Answer {
        allowed,
        limit: charge.limit.as_str(),
        never_fits,
        remaining: None,
        retry_after_ms: (!never_fits).then_some(0),
        reset_ms: None,
        source: Source::Open.as_str(),
    })
}

/// A cost above the burst does not fit, store or not.
fn never_fits(charge: &Charge) -> bool {
    charge.cost > charge.terms.bucket.burst()
}

fn bad_request(message: &str) -> Reply {
    Reply { status: 400, body: json!({ "error": "bad_request", "message": message }) }
}

fn unavailable(error: &tollgate_dynamodb::Error) -> Reply {
    tracing::warn!(%error, "the store gave no answer; the limit is closed");
    // What the store said is for the log: it names endpoint, table and role.
    let message = "the limiter cannot decide now; this says nothing about the caller's limit; try again";
    Reply { status: 503, body: json!({ "error": "limiter_unavailable", "message": message }) }
}
