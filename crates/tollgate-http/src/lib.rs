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
//! axum's bodies need the feature `axum`, those of `lambda_http` the feature `lambda`.
//!
//! # Layout
//!
//! | module | what it is |
//! | --- | --- |
//! | `layer` | [`TollgateLayer`]: the tower layer |
//! | `gate` | the decision about one request |
//! | `span` | [`span()`]: what lines about a request have beside their own fields |
//! | `step_up` | [`caller`], [`authentication`]: who has to prove what, and has he |
//! | `identify` | [`matched`], [`explain`]: who is charged for a request, and on what |
//! | `facts` | [`Facts`]: what the gateway vouches for |
//! | `lambda` | facts from the events of a Lambda function (feature `lambda`) |
//! | `event` | an event as `lambda_http` can take it (feature `lambda`) |
//! | `client_address` | the address that a request is counted by; pure |
//! | `dimension` | values of key dimensions in a request |
//! | `cookie` | cookies by name |
//! | `scalar` | values of JSON as the text of a dimension |
//! | `body` | [`body_field`]: fields of a body, and [`Peek`]: looking into a body before its handler gets it |
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
//! [`Facts`]. Several lines of a header are joined with a comma; a query parameter that is given twice with different
//! values has none; path parameters are percent-decoded, so that two spellings are one key.
//!
//! A dimension without value and fallback, or with one over 2 KB, is no error: such calls share one bucket for each limit
//! and are counted (`missing_dimensions`). A plan that the policy does not have is the default plan, counted as well
//! (`unknown_plans`).
//!
//! ## The client's address
//!
//! Each hop knows for sure who asked it: the gateway by its source address, a proxy by the entry that it appends to the
//! forwarding header. Read from the gateway outwards, `trusted_hops = N` takes the entry that the Nth proxy wrote, and
//! `trusted_proxies` the first that is no proxy's. What a client sends along stands further out and is never reached.
//!
//! | in front of the function | what it sees | policy |
//! | --- | --- | --- |
//! | REST API, regional or private | source address: the client; `X-Forwarded-For`: `…, client` | nothing |
//! | REST API, edge-optimised | source address: the client; `X-Forwarded-For`: `…, client, edge` (its own edge is no hop) | nothing |
//! | HTTP API | source address: the client; `X-Forwarded-For`: `…, client` | nothing |
//! | function URL | source address: the client; of `X-Forwarded-For` only the first entry, which is the sender's: it is never looked at | nothing |
//! | Application Load Balancer | no source address; `X-Forwarded-For`: `…, client` (attribute `append`, the default) | nothing |
//! | CloudFront, then a REST API, HTTP API or load balancer | as above with CloudFront for the client: `…, client, cloudfront` | `trusted_hops = 1` |
//! | CloudFront, then a function URL | `CloudFront-Viewer-Address`, if the origin request policy adds it | `trusted_hops = 1, header = "CloudFront-Viewer-Address"` |
//! | nothing: axum with its own port | the peer, if a layer inserts it: [`Facts::with_source_address`] | nothing |
//! | a proxy, then axum (App Runner, a load balancer, nginx) | `X-Forwarded-For` or `Forwarded`: `…, client`; the peer is the proxy | `trusted_hops = 1` |
//!
//! **A number of hops holds only if nobody reaches the gateway past the proxies**: who does writes what the last of them
//! would have written. Close the way (an origin access control or a secret header for CloudFront, security groups), or name the
//! proxies' addresses: `trusted_proxies` takes whoever is none of them for the client.
//!
//! - Ports, brackets and zone ids are stripped, `::ffff:192.0.2.1` is `192.0.2.1`, IPv6 is counted by its /64 (or
//!   `ipv6_prefix`). Several lines of a header are one list.
//! - An entry of a trusted proxy that is not there or is no address makes the call one without an address, never one with
//!   the next entry (`unproven_addresses`): the policy trusts more than there is.
//! - An address that is a proxy's which the policy does not know of is counted (`shared_addresses`): an internal one where the
//!   header tells more, one behind CloudFront where no hop is trusted, or a list of nothing but trusted proxies.
//! - On a server of one's own that gets both `X-Forwarded-For` and `Forwarded`, one of them is the sender's. Say which the proxies
//!   write (`header`), or there is no address. AWS's gateways write the former.
//! - `lambda_http` keeps of a header that a REST API's event has in both `headers` and `multiValueHeaders` the last line only. The
//!   entries of the proxies nearest to the gateway are in that.
//!
//! ## The body
//!
//! It is read only where a dimension of the route is in it, up to [`MAX_BODY_BYTES`], and reaches the handler whole. Text,
//! numbers and booleans of the top level are values, if every sensible way of reading the body gives the same one: parsers
//! differ, and a sender must not be counted as one and served as another.
//!
//! | `Content-Type` | read as |
//! | --- | --- |
//! | none, `application/json`, `text/json`, `…+json`, `application/x-www-form-urlencoded` | JSON and a form, whichever it says |
//! | `text/plain` | JSON |
//! | any other (multipart, XML), one with a comma or another character set than UTF-8 | nothing |
//!
//! - Nothing is read of a body that is compressed, or whose `Content-Type` or `Content-Encoding` is given twice.
//! - A field has no value if it is given twice with different values, if another name differs only in what some parsers make
//!   no difference of (case, blanks around it, `[]` behind it, `.` for `_`), or if JSON and form, or a form with and without `;`
//!   as a separator, read it differently.
//! - What begins like JSON and is more or less than one object, what begins as no form does, and a form with a line that
//!   begins with `--` has no fields at all.
//! - A number beyond 53 bits has none: it is another to JavaScript than to Python.
//!
//! ## Known devices
//!
//! A device is known by a token in its cookie, which a handler sets once somebody has proved who he is:
//! `policy.device_cookie("device", &username, now)?.set_cookie()` as a `Set-Cookie`, with the policy in force and `now` as
//! of `limiter.store().moment()`. The layer looks at the first 64 KiB of the `Cookie` fields, in all their lines; of several
//! cookies of the name, the first with a genuine token counts, so that one which a subdomain has planted does no harm. What is
//! forged, expired or another account's is as good as none.
//!
//! # Step-up
//!
//! A route with `step_up` wants [`TollgateLayer::with_sessions`]; without them nobody passes it. It is asked before anything is
//! charged; a grant is used up after. The caller is `user`, `tenant` and `session` of the policy's `[identity]`, from claims or the
//! gateway's context; `auth_time`, `acr` and `amr` are the claims of those names. A grant comes in `Tollgate-Grant`, and the 401 of a
//! route with `bind` tells in `action` what one is to be for.
//!
//! # The answers
//!
//! | what happened | status | body's `error` | `Retry-After` |
//! | --- | --- | --- | --- |
//! | the caller has to prove again who he is | 401, with the challenge of RFC 9470 | `insufficient_user_authentication` | none |
//! | a field that a grant is bound to has no one value | 400 | `bad_request` | none |
//! | nobody knows whether he has | 503 | `step_up_unavailable` | 1 |
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
mod cookie;
mod cors;
mod costs;
mod device;
mod dimension;
mod error;
#[cfg(feature = "lambda")]
pub mod event;
mod facts;
mod fields;
mod gate;
mod identify;
#[cfg(feature = "lambda")]
mod lambda;
mod language;
mod layer;
mod legacy;
mod problem;
mod quota;
pub mod reply;
mod scalar;
mod span;
mod step_up;
mod wait;

pub use answer::{Additions, Answer, Decided, Exchange};
pub use body::{MAX_BODY_BYTES, Peek, ReadAhead, body_field, read_ahead};
pub use costs::{Costs, NotSettled};
pub use device::known_device;
pub use facts::Facts;
pub use gate::CHARGED;
pub use identify::{Explained, Matched, explain, matched};
pub use language::preferred as preferred_languages;
pub use layer::{Tollgate, TollgateLayer};
pub use span::span;
pub use step_up::{GRANT_HEADER, authentication, caller, demand, vouched};
pub use wait::retry_after;
