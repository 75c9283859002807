//! An event as `lambda_http` can take it. Invariant: whatever a client sent, a request comes of it and no panic.
//!
//! `lambda_http` builds the request's URI from the event's host, scheme, path and query without a doubt. A load balancer passes on
//! what clients send there, so what no address can be built from is left out before.

use lambda_http::http::{HeaderValue, Uri};
use lambda_http::request::LambdaRequest;
use lambda_http::tower::ServiceExt;
use lambda_http::{Adapter, Body, Error, LambdaEvent, Request, Response, lambda_runtime, service_fn};
use serde_json::{Map, Value};
use std::future::Future;
use url::Url;

const HOST: &str = "host";
const SCHEME: &str = "x-forwarded-proto";

/// Answers events until the sandbox ends: `lambda_http::run`, but for what an event may hold.
///
/// # Errors
///
/// The Runtime API fails.
pub async fn run<'a, A, F>(answer: A) -> Result<(), Error>
where
    A: Fn(Request) -> F + Copy,
    F: Future<Output = Result<Response<Body>, Error>> + Send + 'a,
{
    let handle = move |event: LambdaEvent<Value>| async move {
        let request: LambdaRequest = serde_json::from_value(addressable(event.payload))?;
        Adapter::from(service_fn(answer)).oneshot(LambdaEvent::new(request, event.context)).await
    };
    lambda_runtime::run(service_fn(handle)).await
}

/// The event, without a host and scheme that make no address and cookies that no header can carry, and with a query that a URI
/// can.
#[must_use]
pub fn addressable(mut event: Value) -> Value {
    let Some(fields) = event.as_object_mut() else { return event };
    if !has_an_address(fields, "/") {
        for headers in ["headers", "multiValueHeaders"] {
            if let Some(Value::Object(headers)) = fields.get_mut(headers) {
                headers.retain(|name, _| !is(name, HOST) && !is(name, SCHEME));
            }
        }
    }
    if let Some(Value::Array(cookies)) = fields.get_mut("cookies") {
        // It leaves out all of them for one that no header can carry, and a subdomain can plant one.
        cookies.retain(|cookie| cookie.as_str().is_some_and(|cookie| HeaderValue::from_str(cookie).is_ok()));
    }
    if let Some(Value::String(query)) = fields.get_mut("rawQueryString") {
        query.retain(|c| c.is_ascii_graphic() && !"\"<>\\^`{|}#".contains(c));
    }
    event
}

fn is(name: &str, wanted: &str) -> bool {
    name.eq_ignore_ascii_case(wanted)
}

/// Whether the address of a request for `path` can be built from the event's host and scheme, as `lambda_http` does.
pub fn has_an_address(event: &Map<String, Value>, path: &str) -> bool {
    let (hosts, schemes) = (given(event, HOST, "localhost"), given(event, SCHEME, "https"));
    hosts.iter().all(|host| {
        schemes.iter().all(|scheme| {
            let address = Url::parse(&format!("{scheme}://{host}{path}"));
            address.is_ok_and(|address| address.as_str().parse::<Uri>().is_ok())
        })
    })
}

/// All values that the event has for a header, or the one to go by if it has none.
fn given<'a>(event: &'a Map<String, Value>, wanted: &str, default: &'a str) -> Vec<&'a str> {
    let headers =
        ["headers", "multiValueHeaders"].into_iter().filter_map(|name| event.get(name)?.as_object()).flatten();
    let mut values = Vec::new();
    for (_, value) in headers.filter(|(name, _)| is(name, wanted)) {
        match value {
            Value::Array(several) => values.extend(several.iter().filter_map(Value::as_str)),
            one => values.extend(one.as_str()),
        }
    }
    if values.is_empty() { vec![default] } else { values }
}
