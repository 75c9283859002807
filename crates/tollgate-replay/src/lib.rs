//! What would this policy have done to yesterday's traffic: an access log decided offline with the limiter's arithmetic.
//!
//! # Layout
//!
//! | module | what it is |
//! | --- | --- |
//! | [`entry`] | a request as a line tells it, whatever the format: [`Entry`] |
//! | [`format`](mod@format) | the formats, and which of them a file has |
//! | `date` | times in a line |
//! | `escape` | the escapes in a field |
//! | `lines` | the lines of a log, out of its compression |
//! | [`rules`] | what a replay asks of a policy: [`Rules`] |
//! | `policy` | [`Rules`] of a [`Policy`](tollgate_policy::Policy): [`Applied`] |
//! | `callers` | who asks for what, by number |
//! | `intake` | logs read once into records of 16 bytes: [`Replay`] |
//! | [`spool`] | records in the order of time, in bounded memory |
//! | `ledger` | theoretical arrival times and counts |
//! | `decide` | records decided in the order of time |
//! | [`suggest`] | limits out of the traffic |
//! | [`compare`] | what another policy would have done otherwise |
//! | [`report`] | the answer, as data; its JSON shape is a contract |
//! | [`text`] | the answer, as a page for a person |
//!
//! One way through: bytes -> [`Entry`] -> [`Matched`] -> [`Resolved`] charges -> records in the order of time -> [`Report`].
//! Memory is for the distinct callers, keys and routes; what has to be put in order goes through a temporary file where it is
//! more than 16 MiB.
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
//!         let Some(address) = value("client_ip") else { return Resolved::default().missing(self.0.limit.clone(), "client_ip") };
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
//! let report = replay(log.as_bytes(), &rules, &Options::default())?;
//! assert_eq!((report.requests, report.denied), (2, 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod callers;
pub mod compare;
mod date;
mod decide;
pub mod entry;
mod error;
mod escape;
pub mod format;
mod intake;
mod ledger;
mod lines;
mod policy;
pub mod report;
pub mod rules;
pub mod spool;
pub mod suggest;
pub mod text;

pub use compare::Comparison;
pub use entry::{Entry, Flaw, LineError, Request, Waf};
pub use error::{Error, Result};
pub use format::{Format, Reader};
pub use intake::{Options, Replay, replay};
pub use lines::decompressed;
pub use policy::Applied;
pub use report::{DeniedKey, LimitReport, MalformedLine, Report};
pub use rules::{Lookup, Matched, Place, Resolved, Rules};
pub use spool::Spool;
pub use suggest::Suggestion;
