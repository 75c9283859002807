//! A `lambda_http` handler behind a policy: behind an API Gateway (REST or HTTP API), a function URL or a load balancer.
//!
//! `tollgate::lambda` does the rest of a function: environment, logs, metrics, the policy and newer ones, a warm connection.

use lambda_http::tower::{Layer, ServiceExt};
use lambda_http::{Body, Error, Request, Response, service_fn};
use std::process::ExitCode;
use std::sync::Arc;
use tollgate::Decision;
use tollgate::http::{TollgateLayer, event};
use tollgate::lambda::{self, Function};

fn main() -> ExitCode {
    lambda::main(serve)
}

async fn serve(function: Function) -> Result<(), Error> {
    let layer = TollgateLayer::new(function.live().clone(), Arc::clone(&function.limiter));
    let (function, layer) = (&function, &layer);
    let answer = move |request: Request| async move {
        // Looks for a newer policy if it is time, and writes the metrics when it is dropped.
        let _invocation = function.begin().await;
        // Boxed, since the SDK's futures nest deeper than the compiler follows by itself.
        Box::pin(layer.layer(service_fn(order)).oneshot(request)).await
    };
    event::run(answer).await
}

/// The layer has charged the call; what is left is in the request's extensions.
async fn order(request: Request) -> Result<Response<Body>, Error> {
    let decision = request.extensions().get::<Decision>();
    let left = decision.and_then(|decision| decision.limits.first()).map_or(0, |limit| limit.remaining);
    Ok(Response::builder().status(201).body(Body::from(format!("{left} orders left\n")))?)
}
