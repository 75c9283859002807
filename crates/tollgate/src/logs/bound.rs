//! How many lines of one kind are written, a kind being the place in the code that they come from.
//!
//! Invariant: what is kept back is counted, and the next line of the kind says how many.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tracing::callsite::Identifier;

/// Most lines a second of one kind and one process: denials are one kind, each sort of failure another.
pub const LINES_PER_SECOND: u32 = 10;

/// The kinds that were met. There are as many as there are places that log.
#[derive(Debug, Default)]
pub(super) struct Bound(Mutex<HashMap<Identifier, Kind>>);

#[derive(Debug)]
struct Kind {
    /// When the second began that is counted.
    since: Instant,
    written: u32,
    kept_back: u64,
}

impl Bound {
    /// Whether one more line of `kind` is written `now`: then how many were kept back before it.
    pub(super) fn admit(&self, kind: Identifier, now: Instant) -> Option<u64> {
        let mut kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kind = kinds.entry(kind).or_insert(Kind { since: now, written: 0, kept_back: 0 });
        if now.saturating_duration_since(kind.since) >= Duration::from_secs(1) {
            (kind.since, kind.written) = (now, 0);
        }
        if kind.written == LINES_PER_SECOND {
            kind.kept_back += 1;
            return None;
        }
        kind.written += 1;
        Some(std::mem::take(&mut kind.kept_back))
    }
}
