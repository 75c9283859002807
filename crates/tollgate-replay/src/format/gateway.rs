//! One line of an access log of API Gateway, in JSON.
//!
//! The format is the user's own: a JSON object whose values are `$context` variables. Known are the names of the console's
//! suggestion, those of the sample template (`infra/template.yaml`), and the variables' own names, also nested:
//! <https://docs.aws.amazon.com/apigateway/latest/developerguide/set-up-access-logging.html> for REST APIs,
//! <https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-logging-variables.html> for HTTP APIs.
//!
//! Invariant: a line without a time, a method or a path is refused, not guessed at. `-` is no value, as API Gateway writes it.

use super::cursor::number;
use super::json::Object;
use crate::date;
use crate::entry::{Entry, Flaw, LineError, Request};
use std::borrow::Cow;
use tollgate_core::Timestamp;
use tollgate_policy::without_stage;

/// Times in milliseconds since 1970.
const MILLIS: [&str; 3] = ["requestTimeEpoch", "request_time_epoch", "timeEpoch"];
/// Times as text.
const TIMES: [&str; 6] = ["requestTime", "request_time", "time", "timestamp", "@timestamp", "date"];
const METHODS: [&str; 4] = ["httpMethod", "method", "http_method", "http.method"];
/// The path of the request goes before the pattern of the route, which has no values of parameters.
const PATHS: [&str; 6] = ["path", "rawPath", "requestPath", "uri", "http.path", RESOURCE_PATH];
const RESOURCE_PATH: &str = "resourcePath";
const ADDRESSES: [&str; 8] =
    ["ip", "sourceIp", "source_ip", "identity.sourceIp", "http.sourceIp", "clientIp", "client_ip", "remoteAddr"];
const STATUSES: [&str; 3] = ["status", "statusCode", "status_code"];

/// Whether an object can be one line of such a log.
pub(super) fn is_one(object: &Object<'_>) -> bool {
    object.first(&MILLIS).or_else(|| object.first(&TIMES)).is_some()
        && (object.first(&METHODS).is_some() || object.get("routeKey").is_some())
}

pub(super) fn parse(object: Object<'_>) -> Result<Entry<'_>, LineError> {
    let time = time(&object)?;
    // `GET /orders/{id}`, or `$default`.
    let route_key = object.get("routeKey").and_then(|key| key.split_once(' '));
    let method = object.first(&METHODS).map(|(_, method)| method).or(route_key.map(|(method, _)| method));
    // `$context.path` begins with the stage; the pattern of a resource or route does not.
    let stage = object.get("stage");
    let of_request = |(name, path)| if name == RESOURCE_PATH { path } else { without_stage(path, stage) };
    let path = object.first(&PATHS).map(of_request).or(route_key.map(|(_, path)| path));
    let request = match (method, path) {
        (Some(method), Some(path)) => {
            let query = object.first(&["queryString", "rawQueryString"]).map(|(_, query)| query);
            let target = query.map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"));
            Request { method: Cow::Owned(method.to_owned()), target: Cow::Owned(target) }
        }
        (None, _) => return Err(LineError::whole(Flaw::Lacks("`httpMethod`"))),
        (_, None) => return Err(LineError::whole(Flaw::Lacks("`path`, `resourcePath` or `routeKey`"))),
    };
    let client_ip = object.first(&ADDRESSES).and_then(|(_, address)| address.parse().ok());
    let status = object.first(&STATUSES).map_or(Some(0), |(_, status)| {
        number(status.as_bytes()).and_then(|status| u16::try_from(status).ok()).filter(|status| *status < 1000)
    });
    let status = status.ok_or(LineError::whole(Flaw::Status))?;
    let size = object.get("responseLength").and_then(|size| number(size.as_bytes()));
    let user = object.get("user").map(|user| Cow::Owned(user.to_owned()));
    Ok(Entry { time, client_ip, user, request: Some(request), status, size, fields: object.into_fields(), waf: None })
}

fn time(object: &Object<'_>) -> Result<Timestamp, LineError> {
    if let Some((name, millis)) = object.first(&MILLIS) {
        let nanos = number(millis.as_bytes()).and_then(|millis| millis.checked_mul(1_000_000));
        return nanos.map(Timestamp::from_nanos).ok_or(LineError::whole(Flaw::TimeOf(name)));
    }
    let Some((name, text)) = object.first(&TIMES) else {
        return Err(LineError::whole(Flaw::Lacks("`requestTimeEpoch` or `requestTime`")));
    };
    let text = text.as_bytes();
    date::parse(text).or_else(|| date::iso(text)).ok_or(LineError::whole(Flaw::TimeOf(name)))
}
