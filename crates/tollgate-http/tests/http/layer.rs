//! The layer as a tower service: readiness, and what it does to the responses of others.

use crate::support::{App, SAMPLE, facts, request};
use axum::body::Body;
use axum::routing::any;
use http::{Request, Response, header};
use serde_json::json;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};
use tollgate::http::TollgateLayer;
use tollgate::testing::{ManualClock, MemoryStore};
use tollgate::{Limiter, Policy};
use tower::{Layer, Service, ServiceExt};

/// Panics, as many services do, when it is called without having been ready; a clone is not.
#[derive(Debug, Default)]
struct Strict {
    ready: bool,
}

impl Clone for Strict {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Service<Request<Body>> for Strict {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        assert!(std::mem::take(&mut self.ready), "called before it was ready");
        let exposed = [(header::ACCESS_CONTROL_EXPOSE_HEADERS, "X-Order, retry-after")];
        let mut response = Response::new("ok".to_owned());
        response.headers_mut().extend(exposed.map(|(name, value)| (name, value.parse().expect("a value"))));
        ready(Ok(response))
    }
}

fn layered(http: &str) -> impl Service<Request<Body>, Response = Response<String>, Error = Infallible> + Clone {
    let policy = Policy::parse(&format!("{SAMPLE}\n[http]\n{http}\n")).expect("valid").policy;
    let limiter = Limiter::new(MemoryStore::new(ManualClock::default()));
    TollgateLayer::new(policy, Arc::new(limiter)).layer(Strict::default())
}

fn order() -> Request<Body> {
    let origin = [("origin", "https://app.example.com")];
    request("POST", "/api/orders", &facts(&json!({ "sub": "alice" })), &origin)
}

/// The layer does not sleep: the handler is told, and a pacer's denial is a 429 like any.
#[tokio::test]
async fn a_pacer_on_a_route_passes_and_tells_the_handler_how_long_to_wait() {
    let policy = "version = 1\n[limits.out]\nkey = ['user']\nrate = '10/s'\nalgorithm = 'pacer'\nburst = 2\n\
                  [[routes]]\nmatch = '*'\ncharge = ['out']\n";
    let handler = any(async |request: Request<Body>| {
        let decision = request.extensions().get::<tollgate::Decision>();
        decision.map_or(0, |decision| decision.starts_after().as_millis()).to_string()
    });
    let app = App::with_handler(policy, handler);
    let mut told = Vec::new();
    for _ in 0..4 {
        let answered = app.ask("GET", "/", "alice", &[]).await;
        told.push((answered.status, if answered.status == 200 { answered.text } else { String::new() }));
    }
    assert_eq!(told, [(200, "0".to_owned()), (200, "100".to_owned()), (200, "200".to_owned()), (429, String::new())]);
}

#[tokio::test]
async fn the_inner_service_is_ready_when_it_is_called() {
    let mut service = layered("");
    assert_eq!(service.call(order()).await.expect("infallible").body(), "ok");
    for _ in 0..60 {
        service.ready().await.expect("infallible").call(order()).await.expect("infallible");
    }
    let clone = service.clone();
    assert_eq!(clone.oneshot(order()).await.expect("infallible").status(), 429);
}

#[tokio::test]
async fn names_that_a_handler_exposes_are_kept_and_ours_added() {
    let response = layered("cors = { origins = [\"*\"] }").oneshot(order()).await.expect("infallible");
    let exposed: Vec<_> = response.headers().get_all(header::ACCESS_CONTROL_EXPOSE_HEADERS).iter().collect();
    assert_eq!(exposed, ["X-Order, retry-after", "RateLimit, RateLimit-Policy, WWW-Authenticate"]);
}
