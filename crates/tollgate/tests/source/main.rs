//! The policy in production: every place it can be in, and what happens to the one in force.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs, unreachable_pub)]

mod appconfig;
mod harness;
mod moto;
mod place;
mod refresher;
mod secrets;
mod wire;
