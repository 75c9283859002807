//! What API Gateway is told. Invariant: what is passed on are verified claims, as text, and a mark of ours that no claim can set.

use crate::charge::Charged;
use crate::event::RestRequest;
use serde_json::{Map, Value, json};
use std::time::Duration;
use tollgate::http::CHARGED;

/// An HTTP API's caller who is not signed in.
pub(crate) fn kept_out() -> Value {
    json!({ "isAuthorized": false })
}

/// One who is.
pub(crate) fn let_in(claims: &Map<String, Value>) -> Value {
    json!({ "isAuthorized": true, "context": context(claims) })
}

/// The policy for a REST API's request.
pub(crate) fn policy(request: &RestRequest, claims: &Map<String, Value>, charged: &Charged) -> Value {
    let mut context = context(claims);
    let effect = match charged {
        Charged::Left => "Allow",
        Charged::Here => {
            context.insert(CHARGED.to_owned(), "true".into());
            "Allow"
        }
        Charged::Denied(wait) => {
            let wait = wait.map_or_else(String::new, |wait| seconds(wait).to_string());
            context.insert("retryAfter".to_owned(), wait.into());
            "Deny"
        }
    };
    json!({
        "principalId": claims.get("sub").and_then(Value::as_str).unwrap_or_default(),
        "policyDocument": {
            "Version": "2012-10-17",
            "Statement": [{ "Action": "execute-api:Invoke", "Effect": effect, "Resource": request.resource }],
        },
        "context": context,
    })
}

/// Claims as text, which is all that the context of an authorizer takes; methods of authentication with blanks between.
fn context(claims: &Map<String, Value>) -> Map<String, Value> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        Value::Array(list) => {
            let all: Option<Vec<_>> = list.iter().map(Value::as_str).collect();
            all.map(|all| all.join(" "))
        }
        Value::Null | Value::Object(_) => None,
    };
    let ours = [CHARGED, "retryAfter"];
    let passed = claims.iter().filter(|(name, _)| !ours.contains(&name.as_str()));
    passed.filter_map(|(name, value)| Some((name.clone(), text(value)?.into()))).collect()
}

/// Whole seconds that are not too early, at least 1.
fn seconds(wait: Duration) -> u64 {
    (wait.as_secs() + u64::from(wait.subsec_nanos() > 0)).max(1)
}
