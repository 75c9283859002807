//! Rate limiting, OTP protection and MFA step-up on one DynamoDB table: the one crate a user adds.
//!
//! ```no_run
//! use std::sync::Arc;
//! use tollgate::{Connection, Counters, DynamoStore, Limiter, Policy, SystemClock, Wanted, connect};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let policy = Policy::load("tollgate.toml")?.policy;
//! let connected = connect(&Connection::from_environment()).await?;
//! let store = DynamoStore::new(&connected, "tollgate", Arc::new(SystemClock), Arc::new(Counters::default()));
//! store.warm_up().await?; // in init: opens the connection and learns the table's clock
//! let limiter = Limiter::new(store);
//!
//! let charges = policy.charges(&[Wanted { limit: "orders", key: &[("user", "alice")], plan: None, cost: 1 }])?;
//! let decision = limiter.take(&charges).await?; // a denial is a value, an error is the store's
//! if !decision.is_allowed() {
//!     println!("come back in {:?}", decision.retry_after());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! | crate | what it is |
//! | --- | --- |
//! | [`tollgate_core`] | the arithmetic, the conditional writes as data, the protocol: pure |
//! | [`tollgate_policy`] | the policy file |
//! | [`tollgate_dynamodb`] | the table |
//! | [`decisions`] | decisions asked for in JSON, for callers in any language |
//! | [`pacer`] | calls that go out, each told when it may go |
//! | [`source`] | the policy in production: read from a file, SSM, S3 or AppConfig, refreshed without a deployment |
//! | `http` | a tower layer in front of a handler, and its answers (feature `http`; `axum` on axum, `lambda-http` on Lambda events) |
//! | `mfa` | who has proved of late who he is, for routes with `step_up` (feature `http`) |
//! | [`metrics`], [`denials`] | what is counted, for CloudWatch; a line for each denial |
//! | `logs` (feature `logs`) | structured logs, bounded |
//! | `lambda` (feature `lambda`) | what a Lambda function does in init and around an invocation |
//! | [`testing`] | a store in memory and a manual clock |
//! | [`guide`] | a page for each question that comes up: algorithms, keys, plans, logins, failure, hot keys, deployment, costs, privacy, migration, proof, scale |

pub mod decisions;
pub mod denials;
pub mod guide;
#[cfg(feature = "lambda")]
pub mod lambda;
#[cfg(feature = "logs")]
pub mod logs;
pub mod metrics;
pub mod pacer;
pub mod source;
pub mod testing;

pub use pacer::{Pacer, Reservation, Reserved};
pub use tollgate_core::{Charges, Clock, Decision, ItemKey, Key, LimitDecision, Outcome, Source, Timestamp};
pub use tollgate_dynamodb::{Connection, Counters, DynamoStore, Limiter, Meter, Store, SystemClock, connect};
#[cfg(feature = "http")]
pub use tollgate_http as http;
#[cfg(feature = "http")]
pub use tollgate_mfa as mfa;
pub use tollgate_policy::{DeviceCookie, KeySecrets, LivePolicy, Policy, Wanted};
pub use {tollgate_core, tollgate_dynamodb, tollgate_policy};
