//! `POST /api/auth/otp/send`: a code is made, charged on the route's limits and handed to the courier.
//!
//! The account's item goes first: while its cooldown lasts nothing is charged, or one account that asks again and again would use up the
//! budget of its whole country. Then the limits, as the policy's route has them, with what only the directory knows in the
//! request context: `context.otp.number`, `context.otp.block` and `context.otp.country`.
//!
//! Invariants: no message goes out that the limits of the route have not counted on the table, whatever `on_store_failure` says; an
//! account that nothing can be sent to is counted by itself where others are by number, block and country.

use crate::Service;
use crate::answer::{self, Answer};
use crate::caller::{Addressed, Caller};
use lambda_http::Request;
use lambda_http::service_fn;
use lambda_http::tower::{Layer, ServiceExt};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use tollgate::http::Facts;
use tollgate::{Decision, Policy, Source, Store};
use tollgate_otp::{Courier, Destination, Directory, Issuance, Issued, Message};

/// What is asked for.
#[derive(Deserialize)]
struct Wish {
    purpose: String,
}

impl<S: Store + 'static, D: Directory, C: Courier + 'static> Service<S, D, C> {
    pub(crate) async fn send(&self, mut request: Request) -> Answer {
        let policy = self.policy.current();
        let caller = match Caller::of(&policy, &request) {
            Ok(Some(caller)) => caller,
            Ok(None) => return answer::unauthenticated(),
            Err(error) => return answer::failed(&error.into()),
        };
        let Ok(Wish { purpose }) = serde_json::from_slice(request.body()) else {
            return answer::bad_request(r#"write {"purpose":"login"}"#);
        };
        let (Addressed { to, recipient }, issued) = match self.issue(&policy, &caller, &purpose).await {
            Ok((addressed, Issuance::Issued(issued))) => (addressed, issued),
            Ok((_, Issuance::Denied(denied))) => return answer::denied(denied),
            Ok(_) => return answer::unavailable(),
            Err(error) => return answer::failed(&error),
        };
        let facts = Facts::of(request.extensions()).into_owned();
        request.extensions_mut().insert(facts.with_context_field("otp", counted_by(&caller, to.as_ref())));
        let message = Message::new(to, issued.code.clone(), recipient.purpose().clone(), issued.expires_in);
        let courier = Arc::clone(&self.courier);
        let hand_over = service_fn(move |request: Request| {
            let (courier, message, issued) = (Arc::clone(&courier), message.clone(), issued.clone());
            async move { deliver(&*courier, &request, message, &issued).await }
        });
        // Boxed, since the SDK's futures nest deeper than the compiler follows by itself.
        Box::pin(self.layer.layer(hand_over).oneshot(request)).await
    }

    async fn issue(
        &self,
        policy: &Policy,
        caller: &Caller,
        purpose: &str,
    ) -> Result<(Addressed, Issuance), tollgate_otp::Error> {
        let (_, purpose) = policy.otp_for(purpose)?;
        let addressed = caller.addressed(policy, purpose, &self.directory).await?;
        let issuance = self.otp.issue(policy, &addressed.recipient).await?;
        Ok((addressed, issuance))
    }
}

/// What only the directory knows of where a message goes.
fn counted_by(caller: &Caller, to: Option<&Destination>) -> Value {
    match to {
        Some(to) => json!({ "number": to.number(), "block": to.block(), "country": to.country() }),
        // All such accounts together would run out sooner than others, and so be told apart.
        None => {
            let itself = format!("nowhere {}", caller.account);
            json!({ "number": itself, "block": itself, "country": itself })
        }
    }
}

async fn deliver<C: Courier>(courier: &C, request: &Request, message: Message, issued: &Issued) -> Answer {
    if !request.extensions().get::<Decision>().is_some_and(is_counted) {
        tracing::error!("nothing is sent, since the policy has no route with limits for it, or one that is not closed");
        return answer::unavailable();
    }
    match courier.take(message).await {
        Ok(()) => answer::sent(issued),
        Err(error) => answer::failed(&error.into()),
    }
}

/// Whether every limit has counted the message where all processes count.
fn is_counted(decision: &Decision) -> bool {
    let on_table = |source| matches!(source, Source::Table | Source::Lease);
    decision.unasked.is_empty()
        && !decision.limits.is_empty()
        && decision.limits.iter().all(|limit| on_table(limit.source))
}
