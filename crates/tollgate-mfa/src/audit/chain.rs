//! Whether what is there of a log is all that was said, and as it was said.
//!
//! Every entry tells the one before it by a hash, and when that expires; the head tells the last one. An entry that is not there
//! is missing unless whoever tells of it says that it has expired. Expiry never goes back along a chain, so everything before
//! one that has expired has expired as well. Invariant: every entry that is told by a later one or the head, and was not to expire yet, is
//! found to be as it was written, or is a [`Break`].

use super::entry::Recorded;
use std::collections::BTreeMap;
use std::fmt;

/// What an entry is told by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Link {
    /// Its number; 0: there is none.
    pub seq: u64,
    /// The SHA-256 over all of it.
    pub digest: [u8; 32],
    /// When the table may delete it, epoch seconds; never before the one that is before it.
    pub expires_at: u64,
}

/// An entry as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// What it says.
    pub recorded: Recorded,
    /// What it is told by.
    pub link: Link,
    /// What tells the one before it.
    pub before: Link,
}

/// Something was done to the log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Break {
    /// Entries are not there, and were not to expire yet.
    Missing {
        /// The first that is known to be.
        first: u64,
        /// The last.
        last: u64,
    },
    /// An entry is not what is told of it.
    Changed {
        /// Its number.
        seq: u64,
    },
}

impl fmt::Display for Break {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { first, last } if first == last => write!(f, "entry {first} is missing"),
            Self::Missing { first, last } => write!(f, "entries {first} to {last} are missing"),
            Self::Changed { seq } => write!(f, "entry {seq}, or what tells of it, was changed"),
        }
    }
}

/// What is wrong with a chain whose head and entries are these, the latest first. `now` in epoch seconds.
#[must_use]
pub fn check(head: &Link, entries: &BTreeMap<u64, Stored>, now: u64) -> Vec<Break> {
    let mut breaks = Vec::new();
    // The head is written after the entry, so it may be behind: what follows it is told by none.
    let last = entries.keys().next_back().copied().unwrap_or(0).max(head.seq);
    let mut told = (last == head.seq).then_some(*head);
    let mut seq = last;
    while seq > 0 {
        if told.is_some_and(|told| told.expires_at <= now) {
            return breaks;
        }
        let Some(stored) = entries.get(&seq) else {
            let below = entries.range(..seq).next_back().map_or(0, |(below, _)| *below);
            breaks.push(Break::Missing { first: below + 1, last: seq });
            (told, seq) = (None, below);
            continue;
        };
        if told.is_some_and(|told| told != stored.link) {
            breaks.push(Break::Changed { seq });
        }
        told = Some(stored.before);
        seq -= 1;
        // The head tells of one that is not the last.
        if seq == head.seq && seq > 0 && told.is_some_and(|told| told != *head) {
            breaks.push(Break::Changed { seq: seq + 1 });
        }
    }
    breaks
}
