//! What the comparison and its contestants tell each other: an order a line on standard input, an answer a line on standard
//! output, in JSON. The drivers in other languages do the same orders.
//!
//! Invariant: a contestant does one order at a time, and is idle between them.

use serde::{Deserialize, Serialize};

/// What a contestant is to do. Of the two limits `scarce` has 10 calls an hour, and `plenty` as many as anybody asks for.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "snake_case")]
pub(crate) enum Order {
    /// Have so many clients that share nothing, connections included. A table that is not there is created.
    Open {
        /// How many, those of earlier orders included.
        clients: usize,
    },
    /// Decide once on each key, on `scarce`, the clients in turn.
    Decide {
        /// The keys.
        keys: Vec<String>,
        /// All at the same time, or one after the other.
        at_once: bool,
    },
    /// Decide once on each of the keys of a load, on `plenty`, by the first client.
    Fill {
        /// What the keys begin with; a number follows.
        prefix: String,
        /// How many keys.
        keys: usize,
        /// Callers at the same time.
        callers: usize,
    },
    /// Decide on keys of a load at random, on `plenty`, by the first client.
    Load {
        /// What the keys begin with.
        prefix: String,
        /// How many keys.
        keys: usize,
        /// Callers at the same time, each with one decision at a time.
        callers: usize,
        /// How long.
        seconds: f64,
    },
}

/// What came of an order.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Answer {
    /// Decisions that let the call pass.
    pub(crate) allowed: u64,
    /// Decisions that did not.
    pub(crate) denied: u64,
    /// Calls that got no decision.
    pub(crate) failed: u64,
    /// Why the first of them did not.
    pub(crate) failure: Option<String>,
    /// How long the order took, in microseconds.
    pub(crate) micros: u64,
    /// Median latency of a decision, in microseconds.
    pub(crate) p50_us: u64,
    /// 99th percentile, in microseconds.
    pub(crate) p99_us: u64,
}

impl Answer {
    /// Calls that got a decision.
    pub(crate) fn decisions(&self) -> u64 {
        self.allowed + self.denied
    }

    /// Decisions a second.
    pub(crate) fn per_second(&self) -> u64 {
        self.decisions().saturating_mul(1_000_000) / self.micros.max(1)
    }
}
