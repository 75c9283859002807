//! The routes of `tollgate dev`: its pages, its own under `/dev`, the limiter function's, those of one-time codes and second factors, and the sample API for all others.

use super::feed::{Seen, Told};
use super::{Dev, console, event, gateway, pages};
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{ConnectInfo, FromRequest, Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::json;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tollgate::{Clock, Store, Timestamp};

/// The server, as handlers get it.
pub(super) type Shared = State<Arc<Dev>>;

/// All routes of a development server.
pub fn router(dev: Arc<Dev>) -> Router {
    let other_method = async || problem(StatusCode::METHOD_NOT_ALLOWED, "this path takes another method");
    Router::new()
        .route("/v1/decisions", any(decide))
        .route("/", get(pages::console).fallback(functions))
        .route("/mfa", get(pages::mfa))
        .route("/dev/assets/{*name}", get(pages::asset))
        .route("/dev/clock", post(set_clock))
        .route("/dev/faults", post(set_faults))
        .route("/dev/outbox", get(outbox))
        .route("/dev/sentinel", post(judge))
        .route("/dev/events", get(console::events))
        .route("/dev/items", get(console::items))
        .route("/dev/stats", get(console::stats))
        .method_not_allowed_fallback(other_method)
        .fallback(functions)
        .with_state(dev)
}

async fn decide(State(dev): Shared, request: Request) -> Response {
    let (parts, body, peer) = match received(request).await {
        Ok(received) => received,
        Err(refused) => return refused,
    };
    let told = Told::of(&parts, dev.limiter.store().moment().now);
    // WAF is in front of the API; a function's URL has none.
    dev.feed.keep("limiter", told, None, gateway::limiter(&dev, &parts, &body, peer), Response::status).await
}

/// The functions behind the HTTP API.
async fn functions(State(dev): Shared, request: Request) -> Response {
    let (parts, body, peer) = match received(request).await {
        Ok(received) => received,
        Err(refused) => return refused,
    };
    let now = dev.limiter.store().moment().now;
    let seen = Seen::of(&parts, event::source_ip(&parts.headers, peer).parse().ok(), now);
    let (layer, told) = (gateway::function(parts.uri.path()), Told::of(&parts, now));
    // Boxed, since the SDK's futures are large.
    let answer = Box::pin(gateway::functions(&dev, &parts, &body, peer));
    dev.feed.keep(layer, told, Some(&seen), answer, Response::status).await
}

async fn outbox(State(dev): Shared) -> Response {
    Json(dev.outbox.messages()).into_response()
}

/// Judges who is suspected, now.
async fn judge(State(dev): Shared) -> Response {
    match dev.judge().await {
        Ok(Some(watched)) => Json(sentinel::told(&watched)).into_response(),
        Ok(None) => problem(StatusCode::CONFLICT, "the policy has no [otp.pumping], so that nobody is watched"),
        Err(error) => problem(StatusCode::SERVICE_UNAVAILABLE, &error.to_string()),
    }
}

/// A request as a gateway has it: head, whole body, and who sent it.
async fn received(request: Request) -> Result<(Parts, Bytes, IpAddr), Response> {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(peer)| peer.ip());
    let (parts, body) = request.into_parts();
    let whole = Request::from_parts(parts.clone(), body);
    let body = Bytes::from_request(whole, &()).await;
    let body = body.map_err(|rejected: BytesRejection| problem(rejected.status(), &rejected.body_text()))?;
    Ok((parts, body, peer.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))))
}

/// Exactly one of the two.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
enum Hands {
    /// Move forward by so many milliseconds.
    #[serde(rename = "advance_ms")]
    Advance(u64),
    /// Set to so many milliseconds after the epoch.
    #[serde(rename = "set_ms")]
    Set(u64),
}

async fn set_clock(State(dev): Shared, body: Bytes) -> Response {
    let Some(clock) = &dev.manual else {
        return problem(StatusCode::CONFLICT, "the clock is the system's; start with --clock manual to set it");
    };
    match serde_json::from_slice(&body) {
        Ok(Hands::Advance(ms)) => drop(clock.advance(Duration::from_millis(ms))),
        Ok(Hands::Set(ms)) => clock.set(Timestamp::from_millis(ms)),
        Err(error) => {
            let expected = r#"write {"advance_ms":900} or {"set_ms":1767225599000}"#;
            return problem(StatusCode::BAD_REQUEST, &format!("{error}; {expected}"));
        }
    }
    let swept = dev.embedded.as_ref().map(crate::embedded::Embedded::sweep).transpose();
    match swept {
        Ok(swept) => Json(json!({ "now_ms": clock.now().as_millis(), "expired_items_deleted": swept })).into_response(),
        Err(error) => problem(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

async fn set_faults(State(dev): Shared, body: Bytes) -> Response {
    if dev.embedded.is_none() {
        return problem(StatusCode::CONFLICT, "the table is not the embedded one; start without --endpoint-url");
    }
    match serde_json::from_slice(&body) {
        Ok(faulty) => {
            dev.fail(faulty);
            Json(faulty).into_response()
        }
        Err(error) => {
            let expected = r#"write {"store":"pause"} (or "ok", "error"), or {"store":"slow","ms":200}"#;
            problem(StatusCode::BAD_REQUEST, &format!("{error}; {expected}"))
        }
    }
}

pub(super) fn problem(status: StatusCode, message: &str) -> Response {
    let error = status.canonical_reason().unwrap_or("error").to_lowercase().replace(' ', "_");
    (status, Json(json!({ "error": error, "message": message }))).into_response()
}
