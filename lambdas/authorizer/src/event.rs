//! What an authorizer is asked. Invariant: of a header that was sent twice there is no token, since the function behind could take the
//! other one.

use crate::Failure;
use crate::answer;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value};

/// An event, by the API that sends it.
#[derive(Debug)]
pub(crate) enum Event {
    /// Of an HTTP API, version 2.0.
    Http(HeaderMap),
    /// Of a REST API, without a version.
    Rest(RestRequest),
}

/// A REST API's request, as its authorizer sees it: without the body.
#[derive(Debug)]
pub(crate) struct RestRequest {
    /// What is to be allowed or denied.
    pub(crate) resource: String,
    pub(crate) method: String,
    pub(crate) path: String,
    /// Encoded again.
    pub(crate) query: String,
    pub(crate) headers: HeaderMap,
    pub(crate) context: Map<String, Value>,
}

impl Event {
    pub(crate) fn read(event: &Value) -> Option<Self> {
        let text = |name: &str| event[name].as_str().map(str::to_owned);
        match event["version"].as_str() {
            Some("2.0") => return event["routeArn"].is_string().then(|| Self::Http(single(&event["headers"]))),
            // An HTTP API that asks in the old format has no 429 for a denial, and does not tell its function what was charged.
            Some(_) => return None,
            None => {}
        }
        let resource = text("methodArn")?;
        Some(Self::Rest(RestRequest {
            resource,
            method: text("httpMethod")?,
            path: text("path")?,
            query: query(event),
            headers: several(event),
            context: event["requestContext"].as_object().cloned().unwrap_or_default(),
        }))
    }

    /// The bearer token (RFC 6750 section 2.1).
    pub(crate) fn bearer(&self) -> Option<&str> {
        let headers = match self {
            Self::Http(headers) => headers,
            Self::Rest(request) => &request.headers,
        };
        let mut lines = headers.get_all(http::header::AUTHORIZATION).iter();
        let only = lines.next().filter(|_| lines.next().is_none())?.to_str().ok()?;
        let (scheme, token) = only.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
    }

    /// What whoever is not signed in is told.
    pub(crate) fn refused(&self) -> Result<Value, Failure> {
        match self {
            Self::Http(_) => Ok(answer::kept_out()),
            Self::Rest(_) => Err(Failure::Unauthorized),
        }
    }
}

fn single(headers: &Value) -> HeaderMap {
    let lines = headers.as_object().into_iter().flatten();
    lines.filter_map(|(name, line)| field(name, line)).collect()
}

/// All lines where the event has them, which REST APIs' do.
fn several(event: &Value) -> HeaderMap {
    let Some(fields) = event["multiValueHeaders"].as_object() else { return single(&event["headers"]) };
    let lines = |(name, lines): (&String, &Value)| -> Vec<_> {
        lines.as_array().into_iter().flatten().filter_map(|line| field(name, line)).collect()
    };
    fields.iter().flat_map(lines).fold(HeaderMap::new(), |mut all, (name, line)| {
        all.append(name, line);
        all
    })
}

fn field(name: &str, line: &Value) -> Option<(HeaderName, HeaderValue)> {
    // Of any text, as the function behind has it: a line that is left out would not be counted as one that was sent.
    Some((name.parse().ok()?, HeaderValue::from_bytes(line.as_str()?.as_bytes()).ok()?))
}

fn query(event: &Value) -> String {
    let mut out = form_urlencoded::Serializer::new(String::new());
    let several = event["multiValueQueryStringParameters"].as_object();
    for (name, values) in several.into_iter().flatten() {
        for value in values.as_array().into_iter().flatten().filter_map(Value::as_str) {
            out.append_pair(name, value);
        }
    }
    if several.is_none() {
        for (name, value) in event["queryStringParameters"].as_object().into_iter().flatten() {
            out.append_pair(name, value.as_str().unwrap_or_default());
        }
    }
    out.finish()
}
