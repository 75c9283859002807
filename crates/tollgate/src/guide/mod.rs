//! The guide: a page for each question that comes up with the limiter in use.
//!
//! | page | |
//! | --- | --- |
//! | [`algorithms`] | which algorithm to take |
//! | [`keys`] | who is counted: fallbacks, IPv6, proxies, networks that many share |
//! | [`plans`] | plans, quotas, one customer's figures, costs that are known late |
//! | [`logins`] | recipes: a login, a one-time code, a second factor |
//! | [`failure`] | who decides while the table does not answer, and what to alarm on |
//! | [`hot_keys`] | leases, shards, coalescing: which when |
//! | [`deploy`] | in which order |
//! | [`costs`] | worked examples, from a million to a billion decisions a month |
//! | [`privacy`] | what is kept, in which item, for how long; erasing; logs |
//! | [`migrating`] | from express-rate-limit, rate-limiter-flexible, Lua on Redis, nginx, zae-limiter |
//! | [`proof`] | what is proved, checked, tested and assumed |
//! | [`scale`] | what it costs from 1 to a million decisions a second, and what breaks first |
//!
//! Invariant: what a page shows was true of this source. Its commands are run, its policies parsed, its code compiled (the test
//! `documents` of the suite, and rustdoc); figures that follow from others are worked out anew.

#[doc = include_str!("../../guide/algorithms.md")]
pub mod algorithms {}

#[doc = include_str!("../../guide/keys.md")]
pub mod keys {}

#[doc = include_str!("../../guide/plans.md")]
pub mod plans {}

#[doc = include_str!("../../guide/logins.md")]
pub mod logins {}

#[doc = include_str!("../../guide/failure.md")]
pub mod failure {}

#[doc = include_str!("../../guide/hot_keys.md")]
pub mod hot_keys {}

#[doc = include_str!("../../guide/deploy.md")]
pub mod deploy {}

#[doc = include_str!("../../guide/costs.md")]
pub mod costs {}

#[doc = include_str!("../../guide/privacy.md")]
pub mod privacy {}

#[doc = include_str!("../../guide/migrating.md")]
pub mod migrating {}

#[doc = include_str!("../../guide/proof.md")]
pub mod proof {}

#[doc = include_str!("../../guide/scale.md")]
pub mod scale {}

#[cfg(test)]
mod migrating_tests;
#[cfg(test)]
mod tests;
