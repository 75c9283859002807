//! The layer from the outside: requests in, responses out, on a store in memory with a clock that moves when told.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod answers;
mod body;
mod caller;
mod client_address;
mod cors;
mod costs;
mod device;
mod failures;
mod languages;
mod layer;
mod penalties;
mod properties;
mod support;
