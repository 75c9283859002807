//! The authorizer of an API of API Gateway: whose token it is, and on REST APIs whether he is within his limits.
//!
//! | API | who is not authenticated | who is over a limit |
//! | --- | --- | --- |
//! | REST (events without a version) | 401: the invocation fails with `Unauthorized` | denied, which the template's gateway response makes 429 |
//! | HTTP (payload format 2.0; 1.0 is refused) | 403: that API has one answer to whoever is not let in | let in; the layer in the function behind answers 429 |
//!
//! A gateway response has one status for all denials, so that nothing else may deny on a REST API; step-up is the layer's on both.
//! Invariants: what is passed on of a token are its verified claims, and nothing else of the request; what nobody can decide lets
//! nobody in; a decision that is charged is asked for at each request, so its result must not be cached.
//!
//! # Layout
//!
//! | module | what it is |
//! | --- | --- |
//! | [`settings`] | whose tokens, by the environment |
//! | [`https`] | the issuer's keys over HTTPS |
//! | `event` | what an authorizer is asked |
//! | `charge` | the limits of a REST API's request |
//! | `answer` | what API Gateway is told |

mod answer;
mod charge;
mod event;
pub mod https;
pub mod settings;

use crate::event::Event;
use https::Https;
use lambda_runtime::{Diagnostic, LambdaEvent, service_fn};
use serde_json::Value;
use std::process::ExitCode;
use std::sync::Arc;
use tollgate::lambda::Function;
use tollgate::{Limiter, LivePolicy, Store};
use tollgate_mfa::token::{Fetch, Rejected, Verifier};

/// Runs the function until its sandbox ends.
pub fn main() -> ExitCode {
    tollgate::lambda::main(serve)
}

async fn serve(function: Function) -> Result<(), lambda_runtime::Error> {
    let issuer = match settings::from_environment() {
        Ok(issuer) => issuer,
        Err(error) => {
            error.report().await;
            return Err(error);
        }
    };
    let verifier = Verifier::new(issuer, Https::default());
    if let Err(error) = verifier.keys().warm_up().await {
        // The first token asks again.
        tracing::warn!(%error, "the issuer's keys are not there yet");
    }
    let authorizer = Authorizer::new(function.live().clone(), Arc::clone(&function.limiter), verifier);
    let (function, authorizer) = (&function, &authorizer);
    let handle = move |event: LambdaEvent<Value>| async move {
        let _invocation = function.begin().await;
        // Boxed, since the SDK's futures nest deeper than the compiler follows by itself.
        Box::pin(authorizer.answer(&event.payload)).await
    };
    lambda_runtime::run(service_fn(handle)).await
}

/// Why there is no answer. To API Gateway the text counts: it makes 401 of the first on a REST API, and 500 of all others.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// Nobody is signed in.
    #[error("Unauthorized")]
    Unauthorized,
    /// Nobody knows: the issuer's keys or the table cannot be had.
    #[error("the authorizer cannot decide")]
    Undecided,
    /// The event is no authorizer's.
    #[error("the event is none of a REQUEST authorizer of a REST API, or of an HTTP API with payload format 2.0")]
    Event,
}

impl From<Failure> for Diagnostic {
    fn from(failure: Failure) -> Self {
        let kind = match failure {
            Failure::Unauthorized => "Unauthorized",
            Failure::Undecided => "Undecided",
            Failure::Event => "Event",
        };
        Self { error_type: kind.to_owned(), error_message: failure.to_string() }
    }
}

/// Lets callers in by their tokens.
#[derive(Debug)]
pub struct Authorizer<F, S> {
    policy: LivePolicy,
    limiter: Arc<Limiter<S>>,
    verifier: Verifier<F>,
}

impl<F: Fetch, S: Store> Authorizer<F, S> {
    /// An authorizer that believes `verifier`, and charges REST APIs' requests by `policy` on `limiter`.
    #[must_use]
    pub fn new(policy: LivePolicy, limiter: Arc<Limiter<S>>, verifier: Verifier<F>) -> Self {
        Self { policy, limiter, verifier }
    }

    /// Answers one event.
    ///
    /// # Errors
    ///
    /// See [`Failure`].
    pub async fn answer(&self, event: &Value) -> Result<Value, Failure> {
        let event = Event::read(event).ok_or(Failure::Event)?;
        let now = self.limiter.store().moment().now;
        let claims = match event.bearer() {
            Some(token) => self.verifier.verify(token, now).await,
            None => Err(Rejected::Malformed),
        };
        let claims = match claims {
            Ok(claims) => claims,
            Err(Rejected::Unavailable(error)) => {
                tracing::warn!(%error, "nobody is let in");
                return Err(Failure::Undecided);
            }
            Err(rejected) => {
                tracing::info!(%rejected, "a token is not believed");
                return event.refused();
            }
        };
        let context = answer::context(&claims);
        match event {
            Event::Http(_) => Ok(answer::let_in(context)),
            Event::Rest(request) => {
                let charged = charge::charge(&self.policy.current(), &self.limiter, &request, &context, now).await?;
                Ok(answer::policy(&request, context, &charged))
            }
        }
    }
}
