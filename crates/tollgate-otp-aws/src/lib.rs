//! What one-time codes need of others where they are deployed: of AWS a queue, text messages, email, events and the profiles of a user
//! pool; a judge of CAPTCHAs.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`queue`] | [`Queue`]: errands on SQS, sealed |
//! | [`carriers`] | [`Carriers`]: each message by the carrier of its channel |
//! | [`sms`] | text messages by AWS End User Messaging |
//! | [`email`] | email by SES |
//! | [`event`] | an event on EventBridge, for whoever delivers in another way |
//! | [`cognito`] | [`Cognito`]: verified numbers and addresses of a user pool |
//! | [`turnstile`] | CAPTCHAs of Cloudflare Turnstile |
//! | `failure` | what an error of the SDK says of a message |
//!
//! The SDK's crates are large, so they are a dependency of this crate alone, and this one of the deployed function alone.
//! Invariant: what a provider could do twice is asked for once: the SDK repeats nothing unless a client says otherwise.

pub mod carriers;
pub mod cognito;
pub mod email;
pub mod event;
mod failure;
pub mod queue;
pub mod sms;
pub mod turnstile;

pub use carriers::Carriers;
pub use cognito::Cognito;
pub use email::Email;
pub use event::Events;
pub use queue::Queue;
pub use sms::Sms;
pub use turnstile::Turnstile;

pub use tollgate_dynamodb::connect::services as config;

use aws_smithy_types::retry::RetryConfig;
use std::time::Duration;

/// For requests that do no harm if they are made twice.
fn once_more() -> RetryConfig {
    RetryConfig::standard().with_max_attempts(2).with_initial_backoff(Duration::from_millis(50))
}
