//! What the crate promises: a log read without losing a line, and decided as the limiter would have.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod bounds;
mod combined;
mod decisions;
mod formats;
mod otherwise;
mod page;
mod policy;
mod properties;
mod sample;
mod support;
