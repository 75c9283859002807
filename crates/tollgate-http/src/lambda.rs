//! Facts from the events that `lambda_http` hands to a function. Invariant: the path is the one that the API's routes are
//! written with, without the stage that API Gateway puts in front of it.

use crate::facts::Facts;
use http::Extensions;
use lambda_http::RequestExt;
use lambda_http::request::RequestContext;
use serde_json::Value;
use tollgate_policy::without_stage;

/// The facts of the event that a request was made from; `None` if it was not made by `lambda_http`.
pub(crate) fn facts(extensions: &Extensions) -> Option<Facts> {
    let context = extensions.get::<RequestContext>()?;
    let fields = match serde_json::to_value(context) {
        Ok(Value::Object(fields)) => fields,
        Ok(_) | Err(_) => return None,
    };
    let facts = Facts::from_request_context(fields);
    let raw = extensions.raw_http_path();
    let path = match context {
        // An HTTP API has its stage in the raw path; `lambda_http` adds that of a REST API, but to the URI only.
        RequestContext::ApiGatewayV2(v2) => without_stage(raw, v2.stage.as_deref()),
        _ => raw,
    };
    Some(if path.is_empty() { facts } else { facts.with_path(path) })
}
