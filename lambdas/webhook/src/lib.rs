//! A receiver of webhooks: what the sender has signed is queued, and whoever works on it takes it from there at his own pace.
//!
//! | answer | when |
//! | --- | --- |
//! | 202 | the queue has it |
//! | 400 | the signature's header cannot be read or its time is not the present, or the body is no JSON object |
//! | 401 | there is no signature, or none that a secret of ours makes |
//! | 405, 413 | another method than POST, or more than [`MAX_BYTES`] |
//! | 503 | the queue has not taken it; senders try again |
//!
//! | module | what it is |
//! | --- | --- |
//! | [`signature`] | who has sent it, and when |
//! | [`secrets`] | what signatures are made with, also while it changes |
//! | [`message`] | what is queued, and what makes two deliveries the same |
//! | `queue` | the queue |
//! | [`settings`] | the environment variables |
//!
//! Invariants: nothing is read of a body before its signature is right; 202 is said only after the queue has taken it; no limit counts it
//! and no table is asked, since a sender that repeats itself is the protocol working.

pub mod message;
mod queue;
pub mod secrets;
pub mod settings;
pub mod signature;

use crate::message::Message;
use crate::queue::Queue;
use crate::secrets::Secrets;
use crate::settings::Settings;
use crate::signature::{Refused, Signature};
use lambda_http::http::{Method, StatusCode};
use lambda_http::{Body, Error, Request, Response};
use serde_json::json;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tollgate::http::{event, reply};
use tollgate::{Clock, SystemClock};

/// Bytes that a body may have. Payment processors send some thousand; a message of SQS takes four times as much.
pub const MAX_BYTES: usize = 256 << 10;

/// When a sender that looks at `Retry-After` may try again.
const SOON: Duration = Duration::from_secs(1);

/// Runs the function until its sandbox ends.
pub fn main() -> ExitCode {
    tollgate::lambda::run(serve)
}

async fn serve() -> Result<(), Error> {
    // As it is, and not in a box of a box, so that it is known for what it is.
    let settings = Settings::from_environment().map_err(|error| -> Error { error })?;
    let receiver = Receiver::open(settings, Arc::new(SystemClock)).await?;
    let receiver = &receiver;
    event::run(move |request: Request| async move { Ok(receiver.answer(&request).await) }).await
}

/// Verifies and queues.
#[derive(Debug)]
struct Receiver {
    header: String,
    tolerance: Duration,
    service: String,
    secrets: Secrets,
    queue: Queue,
    clock: Arc<dyn Clock>,
}

impl Receiver {
    async fn open(settings: Settings, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        let secrets = Secrets::open(settings.secret, clock.now()).await?;
        let queue = Queue::open(settings.queue_url).await;
        let Settings { header, tolerance, service, .. } = settings;
        Ok(Self { header, tolerance, service, secrets, queue, clock })
    }

    async fn answer(&self, request: &Request) -> Response<Body> {
        if request.method() != Method::POST {
            return reply::other_method("POST");
        }
        let body: &[u8] = request.body();
        if body.len() > MAX_BYTES {
            let message = format!("a body has at most {MAX_BYTES} bytes");
            return reply::error(StatusCode::PAYLOAD_TOO_LARGE, "too_large", &message);
        }
        if let Err(refused) = self.verify(request, body).await {
            tracing::warn!(service = self.service, why = %refused, "a webhook is refused");
            return refusal(&refused);
        }
        let message = match Message::of(body) {
            Ok(message) => message,
            Err(error) => {
                tracing::warn!(service = self.service, why = %error, "a webhook is refused");
                return reply::error(StatusCode::BAD_REQUEST, "malformed", &error.to_string());
            }
        };
        // Boxed, since the SDK's futures are large.
        if let Err(why) = Box::pin(self.queue.put(&message)).await {
            tracing::error!(service = self.service, why, "a webhook is not queued");
            let message = "this could not be queued; send it again";
            return reply::later(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message, SOON);
        }
        reply::json(StatusCode::ACCEPTED, &json!({ "received": true }))
    }

    async fn verify(&self, request: &Request, body: &[u8]) -> Result<(), Refused> {
        let mut given = request.headers().get_all(&self.header).iter();
        let (Some(header), None) = (given.next(), given.next()) else {
            return Err(if request.headers().contains_key(&self.header) {
                Refused::Malformed
            } else {
                Refused::Missing
            });
        };
        let signature: Signature<'_> = header.to_str().map_err(|_| Refused::Malformed)?.try_into()?;
        let now = self.clock.now();
        let keys = self.secrets.current(now).await;
        signature.verify(&keys, body, now, self.tolerance)
    }
}

fn refusal(refused: &Refused) -> Response<Body> {
    let (status, error) = match refused {
        Refused::Missing | Refused::Wrong => (StatusCode::UNAUTHORIZED, "wrong_signature"),
        Refused::Malformed => (StatusCode::BAD_REQUEST, "malformed"),
        Refused::Stale => (StatusCode::BAD_REQUEST, "stale"),
    };
    reply::error(status, error, &refused.to_string())
}
