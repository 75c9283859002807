//! Step-up as properties: what no sequence of requests, refreshes, factors, revocations and clock steps can reach.
#![allow(clippy::unwrap_used)]

mod judging;
mod sequences;
mod tokens;
