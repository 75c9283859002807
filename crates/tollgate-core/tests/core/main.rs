//! The core attacked from outside: exactness of the arithmetic, the protocol against the meaning of its writes, terms, keys.
//!
//! Bounds are checked in integers, stated apart from the code under test.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod carry;
mod clock;
mod extremes;
mod group;
mod guesses;
mod histories;
mod holds;
mod key;
mod lease;
mod local;
mod log;
mod pacer;
mod penalty;
mod recall;
mod refund;
mod several_limits;
mod shadow;
mod shard;
mod store;
mod terms;
mod token_bucket;
mod window;
mod writes;
