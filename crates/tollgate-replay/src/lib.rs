//! What would this policy have done to yesterday's traffic: an access log decided offline with the limiter's arithmetic.
//!
//! # Layout
//!
//! | module | what it is |
//! | --- | --- |
//! | [`combined`] | one line of the combined log format, as an [`Entry`] borrowed from it |
//! | `date` | the time field of a line |
//! | `escape` | the escapes in a field |
//! | [`rules`] | what a replay asks of a policy: [`Rules`] |
//! | `policy` | [`Rules`] for a [`Policy`](tollgate_policy::Policy) |
//! | `intake` | the log read once into records of 16 bytes |
//! | `ledger` | theoretical arrival times and counts, decided in time order |
//! | [`report`] | the answer, as data; its JSON shape is a contract |
//! | [`text`] | the answer, as a page for a person |
//!
//! One way through: bytes -> [`Entry`] -> [`Matched`] -> [`Resolved`] charges -> records sorted by time -> [`Report`].
//! Requests are decided in the order of their times, and those of one second in the order of the log, each with
//! [`Figures::take`](tollgate_core::Figures::take), behind the locks of limits with a penalty. A limit with shards
//! counts as one, so what a shard alone would have denied is allowed here. Else what comes out is what the limiter would have answered to
//! callers that behave as those in the log did, retries not added and not taken away.
//!
//! ```
//! use tollgate_core::{Charge, Charges, ItemKey, Key, LimitName, Terms, TokenBucket};
//! use tollgate_replay::{Matched, Options, Resolved, Rules, replay};
//!
//! /// One request a minute per client address.
//! struct PerAddress(Charge);
//!
//! impl Rules for PerAddress {
//!     fn limits(&self) -> Vec<LimitName> {
//!         vec![self.0.limit.clone()]
//!     }
//!     fn matched(&self, _method: &str, _path: &str) -> Matched {
//!         Matched::Route(0)
//!     }
//!     fn resolve(&self, _route: usize, value: &dyn Fn(&str) -> Option<String>) -> Resolved {
//!         let Some(address) = value("client_ip") else { return Resolved::default().missing(self.0.limit.clone()) };
//!         let key = Key::new([("client_ip", address)]).ok();
//!         let charges = key.and_then(|key| Charges::new(ItemKey::shared(key), vec![self.0.clone()]).ok());
//!         charges.into_iter().fold(Resolved::default(), Resolved::charged)
//!     }
//! }
//!
//! let terms = Terms::new(1, TokenBucket::new(1, 60_000_000_000, 1)?);
//! let limit = LimitName::new("per-ip")?;
//! let rules = PerAddress(Charge::new(limit, terms, 1));
//!
//! let log = r#"192.0.2.1 - - [17/May/2015:10:05:03 +0000] "GET / HTTP/1.1" 200 12
//! 192.0.2.1 - - [17/May/2015:10:05:04 +0000] "GET /a HTTP/1.1" 200 12"#;
//! let report = replay(log.as_bytes(), &rules, &Options::default(), |_bytes_read| ())?;
//! assert_eq!((report.requests, report.denied), (2, 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod combined;
mod date;
mod error;
mod escape;
mod intake;
mod ledger;
mod policy;
pub mod report;
pub mod rules;
pub mod text;

pub use combined::{Entry, Flaw, LineError, Request};
pub use error::{Error, Result};
pub use intake::{Options, replay, replay_beside};
pub use report::{DeniedKey, LimitReport, MalformedLine, Report};
pub use rules::{Matched, Resolved, Rules};
