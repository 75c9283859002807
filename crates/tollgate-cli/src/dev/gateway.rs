//! The gateway of `tollgate dev`: each request becomes an event, the real handlers answer, and their answer the response.
//!
//! Invariant: nothing is decided here; what a client gets is what the Lambda functions' own code said.

use super::Dev;
use super::event::{Authorizer, event, is_human};
use super::routes::problem;
use axum::body::Body;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use lambda_http::request::LambdaRequest;
use serde_json::{Value, json};
use std::net::IpAddr;
use tollgate::{Clock, SystemClock};
use tollgate_otp::Proof;

const OTP: &str = "otp";
const MFA: &str = "mfa";

/// Asks the limiter function, as a caller whose request IAM has authorised.
pub(super) async fn limiter(dev: &Dev, parts: &Parts, body: &[u8], peer: IpAddr) -> Response {
    let event = match event(parts, body, peer, Authorizer::Iam, SystemClock.now()) {
        Ok(event) => event,
        Err(message) => return problem(StatusCode::BAD_REQUEST, &message),
    };
    let policy = dev.policy.current();
    match ::limiter::handler::answer(&policy, &dev.limiter, &event.to_string()).await {
        Ok(answer) => from_answer(&answer),
        Err(failure) => problem(StatusCode::INTERNAL_SERVER_ERROR, &failure.to_string()),
    }
}

/// The function that answers on a path behind the HTTP API.
pub(super) fn function(path: &str) -> &'static str {
    match path {
        path if ::otp::serves(path) => OTP,
        path if ::mfa::serves(path) => MFA,
        _ => "api",
    }
}

/// Asks the functions of one-time codes and of second factors on their paths, and the sample API on all others.
pub(super) async fn functions(dev: &Dev, parts: &Parts, body: &[u8], peer: IpAddr) -> Response {
    let mut event = match event(parts, body, peer, Authorizer::Jwt, SystemClock.now()) {
        Ok(event) => event,
        Err(message) => return problem(StatusCode::BAD_REQUEST, &message),
    };
    if let Err(refused) = authorize(dev, parts, &mut event).await {
        return refused;
    }
    if is_human(&parts.headers) {
        event["headers"][Proof::HEADER] = dev.captcha.as_str().into();
    }
    let failed = |what: &dyn std::fmt::Display| problem(StatusCode::INTERNAL_SERVER_ERROR, &what.to_string());
    let request = match serde_json::from_value::<LambdaRequest>(tollgate::http::event::addressable(event)) {
        Ok(request) => request.into(),
        Err(error) => return failed(&error),
    };
    let answer = match function(parts.uri.path()) {
        OTP => dev.otp.call(request).await,
        MFA => dev.mfa.call(request).await,
        _ => dev.api.call(request).await,
    };
    match answer {
        Ok(response) => {
            let (parts, body) = response.into_parts();
            Response::from_parts(parts, Body::from(body.to_vec()))
        }
        Err(error) => failed(&error),
    }
}

/// Asks the authorizer about a request with a token, where there is an issuer; what it says takes the principal header's place.
async fn authorize(dev: &Dev, parts: &Parts, event: &mut Value) -> Result<(), Response> {
    let Some(authorizer) = dev.authorizer.as_ref().filter(|_| parts.headers.contains_key(AUTHORIZATION)) else {
        return Ok(());
    };
    let mut question = event.clone();
    question["routeArn"] = "arn:aws:execute-api:us-east-1:000000000000:dev/$default/ANY/".into();
    // An HTTP API has no answer of its own for either.
    let failed = |_| problem(StatusCode::INTERNAL_SERVER_ERROR, "Internal Server Error");
    let answer = authorizer.answer(&question).await.map_err(failed)?;
    if answer["isAuthorized"] != true {
        return Err(problem(StatusCode::FORBIDDEN, "Forbidden"));
    }
    event["requestContext"]["authorizer"] = json!({ "lambda": answer["context"] });
    Ok(())
}

/// The response that a function's JSON answer stands for.
fn from_answer(answer: &Value) -> Response {
    let status = answer["statusCode"].as_u64().and_then(|status| u16::try_from(status).ok());
    let status = status.and_then(|status| StatusCode::from_u16(status).ok()).unwrap_or(StatusCode::BAD_GATEWAY);
    let mut response = (status, answer["body"].as_str().unwrap_or_default().to_owned()).into_response();
    for (name, value) in answer["headers"].as_object().into_iter().flatten() {
        let name = HeaderName::try_from(name.as_str());
        let value = HeaderValue::try_from(value.as_str().unwrap_or_default());
        if let (Ok(name), Ok(value)) = (name, value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}
