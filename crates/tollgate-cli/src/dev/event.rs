//! A request as the event that an HTTP API (API Gateway, format 2.0) would hand to a function.
//!
//! What the gateway's authorizer would say of the caller comes from the header `x-dev-principal`
//! (`user=alice,tenant=acme,plan=free,api_key=k1`), and the source address from `x-dev-source-ip`. Invariant: both headers end
//! here; no function ever sees one, and nothing else that a client sends tells who it is.

use axum::http::HeaderMap;
use axum::http::header::COOKIE;
use axum::http::request::Parts;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use std::net::IpAddr;
use tollgate::Timestamp;
use tollgate::http::event::has_an_address;
use tollgate_otp::Proof;

const PRINCIPAL: &str = "x-dev-principal";
const SOURCE_IP: &str = "x-dev-source-ip";
/// The header that gateways append to.
pub(crate) const FORWARDED_FOR: &str = "x-forwarded-for";

/// Who vouches for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Authorizer {
    /// A JWT authorizer, by the principal header; without the header nobody does.
    Jwt,
    /// IAM: the request was signed.
    Iam,
}

/// The event of a request; the error says what is wrong with its headers.
pub(super) fn event(
    parts: &Parts,
    body: &[u8],
    peer: IpAddr,
    authorizer: Authorizer,
    now: Timestamp,
) -> Result<Value, String> {
    let text = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
    if parts.headers.get(PRINCIPAL).is_some_and(|value| value.to_str().is_err()) {
        return Err(format!("{PRINCIPAL} must be ASCII"));
    }
    let source_ip = source_ip(&parts.headers, peer);
    let mut context = json!({
        "accountId": "000000000000",
        "apiId": "dev",
        "domainName": text("host").unwrap_or("localhost"),
        "domainPrefix": "dev",
        "http": {
            "method": parts.method.as_str(),
            "path": parts.uri.path(),
            "protocol": "HTTP/1.1",
            "sourceIp": source_ip,
            "userAgent": text("user-agent").unwrap_or_default(),
        },
        "requestId": format!("{:016x}", fastrand::u64(..)),
        "routeKey": "$default",
        "stage": "$default",
        "timeEpoch": now.as_millis(),
    });
    let vouched = match authorizer {
        Authorizer::Iam => {
            Some(json!({ "iam": { "userArn": "arn:aws:iam::000000000000:user/dev", "accessKey": "dev" } }))
        }
        Authorizer::Jwt => {
            text(PRINCIPAL).map(claims).transpose()?.map(|claims| json!({ "jwt": { "claims": claims } }))
        }
    };
    if let (Value::Object(context), Some(vouched)) = (&mut context, vouched) {
        context.insert("authorizer".to_owned(), vouched);
    }
    let (body, is_base64) = match std::str::from_utf8(body) {
        Ok(text) => (text.to_owned(), false),
        Err(_) => (STANDARD.encode(body), true),
    };
    let event = json!({
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": parts.uri.path(),
        "rawQueryString": parts.uri.query().unwrap_or_default(),
        "headers": joined(&parts.headers, Some(&source_ip)),
        "cookies": cookies(&parts.headers),
        "requestContext": context,
        "body": body,
        "isBase64Encoded": is_base64,
    });
    if !event.as_object().is_some_and(|event| has_an_address(event, parts.uri.path())) {
        return Err("host and x-forwarded-proto do not make an address; a gateway would refuse them".to_owned());
    }
    Ok(event)
}

/// The address that the gateway sees.
pub(super) fn source_ip(headers: &HeaderMap, peer: IpAddr) -> String {
    let told = headers.get(SOURCE_IP).and_then(|value| value.to_str().ok());
    told.map_or_else(|| peer.to_string(), str::to_owned)
}

/// The cookies of all lines, which events of format 2.0 have in a field of their own.
pub(crate) fn cookies(headers: &HeaderMap) -> Vec<String> {
    let lines = headers.get_all(COOKIE).iter().map(|line| String::from_utf8_lossy(line.as_bytes()));
    lines.flat_map(|line| line.split(';').map(|cookie| cookie.trim().to_owned()).collect::<Vec<_>>()).collect()
}

/// Several lines of one header are joined by commas, and the address that the gateway saw appended to the forwarding
/// header, as the gateway does; cookies, our own headers and what only WAF inserts are left out.
pub(crate) fn joined(headers: &HeaderMap, source_ip: Option<&str>) -> Map<String, Value> {
    let mut joined = Map::new();
    for name in
        headers.keys().filter(|name| ![PRINCIPAL, SOURCE_IP, Proof::HEADER, COOKIE.as_str()].contains(&name.as_str()))
    {
        let lines = headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        joined.insert(name.as_str().to_owned(), lines.collect::<Vec<_>>().join(",").into());
    }
    if let Some(source_ip) = source_ip {
        let sent = joined.get(FORWARDED_FOR).and_then(Value::as_str);
        let appended = sent.map_or_else(|| source_ip.to_owned(), |sent| format!("{sent}, {source_ip}"));
        joined.insert(FORWARDED_FOR.to_owned(), appended.into());
    }
    joined
}

/// Whether the principal says `captcha=solved`, as if a rule of AWS WAF had let him pass.
pub(super) fn is_human(headers: &HeaderMap) -> bool {
    let principal = headers.get(PRINCIPAL).and_then(|value| value.to_str().ok()).unwrap_or_default();
    principal.split(',').any(|pair| pair.trim() == "captcha=solved")
}

/// `user=alice,plan=free` as claims: `user` is the subject, every other name is its own claim.
fn claims(principal: &str) -> Result<Map<String, Value>, String> {
    let pairs = principal.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').ok_or_else(|| {
                format!("{PRINCIPAL}: {pair:?} is not NAME=VALUE; write user=alice,tenant=acme,plan=free,api_key=k1")
            })?;
            let name = if name.trim() == "user" { "sub" } else { name.trim() };
            Ok((name.to_owned(), value.trim().into()))
        })
        .collect()
}
