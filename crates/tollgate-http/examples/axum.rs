//! An axum application behind a policy, on the table that the AWS configuration of the environment reaches.

use axum::extract::Extension;
use axum::http::StatusCode;
use axum::routing::{get, post};
use std::sync::Arc;
use tollgate::http::TollgateLayer;
use tollgate::{Connection, Counters, Decision, DynamoStore, Limiter, Policy, SystemClock, connect};

async fn order(Extension(decision): Extension<Decision>) -> (StatusCode, String) {
    let left = decision.limits.first().map_or(0, |limit| limit.remaining);
    (StatusCode::CREATED, format!("{left} orders left\n"))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let connected = connect(&Connection::from_environment()).await?;
    let store = DynamoStore::new(&connected, "tollgate", Arc::new(SystemClock), Arc::new(Counters::default()));
    let app = axum::Router::new().route("/healthz", get(async || "ok\n")).route("/api/orders", post(order));

    let policy = Policy::load("infra/tollgate.toml")?.policy;
    let limiter = Arc::new(Limiter::new(store));
    let app = app.layer(TollgateLayer::new(policy, limiter));

    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    Ok(axum::serve(listener, app).await?)
}
