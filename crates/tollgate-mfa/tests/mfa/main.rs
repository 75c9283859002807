//! Step-up as properties: what no sequence of requests, refreshes, factors, revocations and clock steps can reach.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod changes;
mod codes;
mod judging;
mod passkeys;
mod recovery;
mod sequences;
mod tenants;
mod tokens;
