//! The routes of `tollgate dev`.

use super::Dev;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tollgate::{Clock, Store, Timestamp, decisions};

type Shared = State<Arc<Dev>>;

/// All routes of a development server.
pub fn router(dev: Arc<Dev>) -> Router {
    Router::new()
        .route("/v1/decisions", post(decide))
        .route("/healthz", get(async || Json(json!({ "status": "ok" }))))
        .route("/dev/clock", post(set_clock))
        .route("/dev/stats", get(stats))
        .method_not_allowed_fallback(async || problem(StatusCode::METHOD_NOT_ALLOWED, "this path takes another method"))
        .fallback(async || {
            problem(
                StatusCode::NOT_FOUND,
                "this version serves POST /v1/decisions, GET /healthz, POST /dev/clock and GET /dev/stats",
            )
        })
        .with_state(dev)
}

async fn decide(State(dev): Shared, body: Result<Bytes, BytesRejection>) -> Response {
    let body = match body {
        Ok(body) => body,
        Err(rejected) => return problem(rejected.status(), &rejected.body_text()),
    };
    let reply = decisions::decide(&dev.policy, &dev.limiter, &body).await;
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (status, Json(reply.body)).into_response();
    response.headers_mut().insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-store"));
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(header::RETRY_AFTER, header::HeaderValue::from_static("1"));
    }
    response
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

async fn stats(State(dev): Shared) -> Response {
    let store = dev.limiter.store();
    let mut stats = json!({
        "dynamodb_endpoint": dev.endpoint,
        "table": store.table(),
        "clock": if dev.manual.is_some() { "manual" } else { "system" },
        "now_ms": store.moment().now.as_millis(),
    });
    if let (Value::Object(stats), Ok(Value::Object(counts))) = (&mut stats, serde_json::to_value(dev.counters.counts()))
    {
        stats.extend(counts);
    }
    Json(stats).into_response()
}

fn problem(status: StatusCode, message: &str) -> Response {
    let error = status.canonical_reason().unwrap_or("error").to_lowercase().replace(' ', "_");
    (status, Json(json!({ "error": error, "message": message }))).into_response()
}
