//! Who is asking and how the answer is spoken: a tower layer between a gateway and a handler.
//!
//! ```
//! use std::sync::Arc;
//! use tollgate::testing::{ManualClock, MemoryStore};
//! use tollgate::{Limiter, Policy};
//! use tollgate_http::TollgateLayer;
//!
//! let policy = Policy::parse("version = 1\n[limits.a]\nkey = ['user']\nrate = '5/h'\n")?.policy;
//! let limiter = Limiter::new(MemoryStore::new(ManualClock::default()));
//! let app: axum::Router = axum::Router::new().layer(TollgateLayer::new(policy, Arc::new(limiter)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Layout
//!
//! | module | what it is |
//! | --- | --- |
//! | `layer` | [`TollgateLayer`]: the tower layer |
//! | `gate` | the decision about one request |
//! | `facts` | [`Facts`]: what the gateway vouches for |
//! | `lambda` | facts from the events of a Lambda function (feature `lambda`) |
//! | `dimension` | values of key dimensions in a request |
//! | `answer` | [`Answer`]: status, fields and body from a decision; pure |
//! | `quota` | the figures of a limit, as answers tell them |
//! | `fields`, `legacy` | the `RateLimit` fields, and those from before them |
//! | `error` | why a request could not be decided, for logs |
//! | `problem`, `language`, `wait` | the body, its language, waiting times |
//! | `cors` | what pages of other origins may read |
//!
//! # Who is asking
//!
//! Dimensions come from where the policy's `[identity]` says. Claims, API key, request context and source address are
//! [`Facts`]. Several lines of a header are joined with a comma; of several query parameters of a name the first counts;
//! path parameters are percent-decoded, so that two spellings are one key. The client's address is the one that the
//! gateway tells: `trusted_hops` and `trusted_proxies` are not looked at in this version, and the body is not read, so
//! its dimensions have no value.
//!
//! A dimension without value and fallback, or with one over 2 KB, is no error: such calls share one bucket for each limit
//! and are counted (`missing_dimensions`). A plan that the policy does not have is the default plan, counted as well
//! (`unknown_plans`).
//!
//! # The answers
//!
//! | what happened | status | body's `error` | `Retry-After` |
//! | --- | --- | --- | --- |
//! | denied | 429 | `rate_limited` | whole seconds, rounded up, at least 1 |
//! | the cost never fits | 403, since waiting does not help and 429 asks to come back | `cost_never_fits` | none |
//! | the limiter could not decide, and the policy is closed | 503 | `limiter_unavailable` | 1 |
//! | the store is gone, and the policy is open (contention is no outage: 503) | the handler's | | |
//!
//! Denials and the responses of admitted requests carry `RateLimit-Policy` and `RateLimit` for all limits of the route
//! that are not hidden. Where a hidden limit has the longest wait, the answer says only how long.

mod answer;
mod body;
mod client_address;
mod cors;
mod dimension;
mod error;
mod facts;
mod fields;
mod gate;
#[cfg(feature = "lambda")]
mod lambda;
mod language;
mod layer;
mod legacy;
mod problem;
mod quota;
mod wait;

pub use answer::{Additions, Answer, Decided, Exchange};
pub use body::{MAX_BODY_BYTES, Peek, ReadAhead, read_ahead};
pub use facts::Facts;
pub use layer::{Tollgate, TollgateLayer};
