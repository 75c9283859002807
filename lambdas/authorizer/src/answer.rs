//! What API Gateway is told. Invariant: what is passed on are verified claims, as text, and a mark of ours that no claim can set.

use crate::charge::Charged;
use crate::event::RestRequest;
use serde_json::{Map, Value, json};
use tollgate::http::{CHARGED, retry_after};

/// An HTTP API's caller who is not signed in.
pub(crate) fn kept_out() -> Value {
    json!({ "isAuthorized": false })
}

/// One who is.
pub(crate) fn let_in(context: Map<String, Value>) -> Value {
    json!({ "isAuthorized": true, "context": context })
}

/// The policy for a REST API's request.
pub(crate) fn policy(request: &RestRequest, mut context: Map<String, Value>, charged: &Charged) -> Value {
    let principal = principal(&context);
    let effect = match charged {
        Charged::Left => "Allow",
        Charged::Here => {
            context.insert(CHARGED.to_owned(), "true".into());
            "Allow"
        }
        Charged::Denied(wait) => {
            context.insert("retryAfter".to_owned(), retry_after(*wait).to_string().into());
            "Deny"
        }
    };
    json!({
        "principalId": principal,
        "policyDocument": {
            "Version": "2012-10-17",
            "Statement": [{ "Action": "execute-api:Invoke", "Effect": effect, "Resource": request.resource }],
        },
        "context": context,
    })
}

/// Who it is, for the gateway's logs.
pub(crate) fn principal(context: &Map<String, Value>) -> Value {
    context.get("sub").cloned().unwrap_or_else(|| "".into())
}

/// Claims as text, which is all that the context of an authorizer takes; methods of authentication with blanks between.
pub(crate) fn context(claims: &Map<String, Value>) -> Map<String, Value> {
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
