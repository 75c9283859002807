//! The limiter as a Lambda function: decisions for callers in any language, over HTTP with IAM or by direct invocation.
//!
//! `POST /v1/decisions` from API Gateway (REST and HTTP APIs) or a function URL, or the same JSON as the event of a
//! direct invocation. Invariants: an HTTP event (proxy integration) that AWS has not authorised by IAM is refused, whatever a template
//! says; no event, however malformed, ends the process; what a decision is stays in [`tollgate::decisions`].
//!
//! # Layout
//!
//! | module | what it is |
//! | --- | --- |
//! | [`handler`] | from an event to its answer |
//! | [`http`] | HTTP events: which kind, who signed it, what it asks for, and the response |
//! | [`failure`] | what a direct caller is told instead of a decision |

pub mod failure;
pub mod handler;
pub mod http;

use lambda_runtime::{LambdaEvent, service_fn};
use serde_json::value::RawValue;
use std::process::ExitCode;
use tollgate::lambda::Function;

/// Runs the function until its sandbox ends.
pub fn main() -> ExitCode {
    tollgate::lambda::main(serve)
}

async fn serve(function: Function) -> Result<(), lambda_runtime::Error> {
    let function = &function;
    // The event stays text until here, since a decision parses its own.
    let handle = move |event: LambdaEvent<Box<RawValue>>| async move {
        let policy = function.begin().await;
        // Boxed, since the SDK's futures nest deeper than the compiler follows by itself.
        Box::pin(handler::answer(&policy, &function.limiter, event.payload.get())).await
    };
    lambda_runtime::run(service_fn(handle)).await
}
