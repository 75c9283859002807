//! A front before the emulator that dates its replies by a manual clock, and does what [`Faults`] say.
//!
//! Invariant: without a fault nothing but the `Date` header is changed on the way, and that only for a manual clock.

use super::faults::{Fault, Faults};
use aws_smithy_types::date_time::{DateTime, Format};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::uri::{Authority, Scheme};
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use std::net::SocketAddr;
use std::str::FromStr;
use tokio::net::TcpListener;
use tollgate_core::{Clock, ManualClock};

#[derive(Clone)]
struct Front {
    client: Client<HttpConnector, Body>,
    authority: Authority,
    clock: Option<ManualClock>,
    faults: Faults,
}

/// Starts a front for the server at `upstream`; returns where it listens.
pub(super) async fn start(
    upstream: SocketAddr,
    clock: Option<ManualClock>,
    faults: Faults,
) -> std::io::Result<SocketAddr> {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client = Client::builder(TokioExecutor::new()).build(connector);
    let authority = Authority::from_str(&upstream.to_string()).map_err(std::io::Error::other)?;
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    let router = Router::new().fallback(forward).with_state(Front { client, authority, clock, faults });
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(address)
}

async fn forward(State(front): State<Front>, request: Request) -> Response {
    let faulty = front.faults.met().await;
    if faulty.store == Fault::Error {
        let body = r#"{"__type":"com.amazonaws.dynamodb.v20120810#InternalServerError","message":"a fault is set"}"#;
        let json = [(header::CONTENT_TYPE, "application/x-amz-json-1.0")];
        return (StatusCode::INTERNAL_SERVER_ERROR, json, body).into_response();
    }
    let response = pass_on(&front, request).await;
    tokio::time::sleep(faulty.lateness()).await;
    response
}

async fn pass_on(front: &Front, mut request: Request) -> Response {
    let mut parts = request.uri().clone().into_parts();
    parts.scheme = Some(Scheme::HTTP);
    parts.authority = Some(front.authority.clone());
    let Ok(uri) = Uri::from_parts(parts) else { return StatusCode::BAD_REQUEST.into_response() };
    *request.uri_mut() = uri;
    let mut response = match front.client.request(request).await {
        Ok(response) => response.into_response(),
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    };
    let Some(clock) = &front.clock else { return response };
    let now = i64::try_from(clock.now().as_secs()).unwrap_or(i64::MAX);
    let date = DateTime::from_secs(now).fmt(Format::HttpDate);
    if let Some(date) = date.ok().and_then(|text| HeaderValue::from_str(&text).ok()) {
        response.headers_mut().insert(header::DATE, date);
    }
    response
}
