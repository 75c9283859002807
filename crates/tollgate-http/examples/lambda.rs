//! A Lambda function behind a policy: behind an API Gateway (REST or HTTP API), a function URL or a load balancer.

use lambda_http::tower::Layer;
use lambda_http::{Body, Error, Request, Response, service_fn};
use std::sync::Arc;
use tollgate::http::TollgateLayer;
use tollgate::{Connection, Counters, DynamoStore, Limiter, Policy, SystemClock, connect};

async fn handler(_: Request) -> Result<Response<Body>, Error> {
    Ok(Response::builder().status(201).body(Body::from("ordered\n"))?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let connected = connect(&Connection::from_environment()).await?;
    let store = DynamoStore::new(&connected, "tollgate", Arc::new(SystemClock), Arc::new(Counters::default()));
    store.warm_up().await?; // in init: opens the connection and learns the table's clock

    let policy = Policy::load("tollgate.toml")?.policy;
    let limiter = Arc::new(Limiter::new(store));
    let app = TollgateLayer::new(policy, limiter).layer(service_fn(handler));

    lambda_http::run(app).await
}
