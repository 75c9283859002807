//! The function that delivers and counts: batches of the queue, each message by itself, but that what they have counted alike is one write.
//!
//! Invariant: a message is reported as failed, and so handed out again, only where nothing was sent and trying again is of use, or
//! where nobody can open it; after some times it is in the dead-letter queue. A verified code that is handed out again may be counted twice.

use super::items;
use super::settings::Channels;
use lambda_http::lambda_runtime::{self, LambdaEvent};
use lambda_http::{Error, service_fn};
use serde::{Deserialize, Serialize};
use std::process::ExitCode;
use tollgate::Policy;
use tollgate::lambda::Function;
use tollgate_otp::{Carrier, Dispatcher, Errand};
use tollgate_otp_aws::{Carriers, Email, Events, Sms, config};

/// Some messages of a queue, as Lambda hands them out ("Using Lambda with Amazon SQS").
#[derive(Deserialize)]
struct Batch {
    #[serde(rename = "Records")]
    records: Vec<Record>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    message_id: String,
    body: String,
}

/// Which of them are to be handed out again ("Implementing partial batch responses").
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    batch_item_failures: Vec<Failure>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Failure {
    item_identifier: String,
}

/// Runs the function until its sandbox ends.
pub fn main() -> ExitCode {
    tollgate::lambda::main(serve)
}

async fn serve(function: Function) -> Result<(), Error> {
    let Channels { sms, email, event_bus } = Channels::from_environment();
    let sdk = config().await;
    let mut carriers = Carriers::default();
    carriers.sms = sms.map(|options| Sms::new(&sdk, options));
    carriers.email = email.map(|options| Email::new(&sdk, options));
    carriers.events = event_bus.map(|bus| Events::new(&sdk, bus));
    let dispatcher = Dispatcher::new(items(&function), carriers);
    let (function, dispatcher) = (&function, &dispatcher);
    let handle = move |event: LambdaEvent<Batch>| async move {
        let policy = function.begin().await;
        // Boxed, since the SDK's futures nest deeper than the compiler follows by itself.
        Ok::<_, Error>(Box::pin(run(&policy, dispatcher, event.payload)).await)
    };
    lambda_runtime::run(service_fn(handle)).await
}

async fn run<C: Carrier>(policy: &Policy, dispatcher: &Dispatcher<C>, batch: Batch) -> Report {
    let mut batch_item_failures = Vec::new();
    let mut again = |id: String, error: &tollgate_otp::Error| {
        tracing::warn!(id, %error, "an errand is to be tried again");
        batch_item_failures.push(Failure { item_identifier: id });
    };
    let (mut ids, mut errands) = (Vec::new(), Vec::new());
    for Record { message_id, body } in batch.records {
        match Errand::open(&body, policy) {
            Ok(errand) => {
                ids.push(message_id);
                errands.push(errand);
            }
            Err(error) => again(message_id, &error),
        }
    }
    for (id, dispatched) in ids.into_iter().zip(dispatcher.run(&errands).await) {
        match dispatched {
            Ok(dispatched) => tracing::debug!(id, ?dispatched, "an errand is done"),
            Err(error) => again(id, &error),
        }
    }
    Report { batch_item_failures }
}
