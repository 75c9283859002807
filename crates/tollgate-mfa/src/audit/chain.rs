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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::audit::storage::{attributes_of, link, to_stored};
    use crate::audit::{Actor, Author, Event};
    use std::time::Duration;
    use tollgate_core::{Key, Timestamp};

    const DAY: u64 = 86_400;

    /// A chain with one entry a day from day 0, each kept for as many days.
    fn chain(kept: &[u64]) -> (Link, BTreeMap<u64, Stored>) {
        let account = Key::new([("user", "alice")]).unwrap();
        let (mut last, mut entries) = (Link::default(), BTreeMap::new());
        for (day, kept) in (0..).zip(kept) {
            let by = Author { actor: Actor::User, session: None, retention: Duration::from_secs(kept * DAY) };
            let at = Timestamp::from_secs(day * DAY);
            let found = attributes_of(&by.did(Event::FactorEnrolled), &last, at, by.retention);
            last = link(&account, day + 1, &found).unwrap();
            entries.insert(last.seq, to_stored(&account, last.seq, &found).unwrap());
        }
        (last, entries)
    }

    #[test]
    fn what_has_expired_is_not_missing_and_whatever_the_policy_was_none_expires_before_an_older_one() {
        let (head, whole) = chain(&[40, 10, 10, 50]);
        for first in 1..=5 {
            let left: BTreeMap<_, _> = whole.range(first..).map(|(seq, stored)| (*seq, stored.clone())).collect();
            for (day, least) in [(39, 1), (40, 4), (52, 4), (53, 5)] {
                let breaks = check(&head, &left, day * DAY);
                let expected = (first > least).then_some(Break::Missing { first: 1, last: first - 1 });
                // Of what has expired nobody knows any more what was before it.
                assert_eq!(breaks, Vec::from_iter(expected.filter(|_| least < first && day < 53)), "{first} {day}");
            }
        }
    }

    #[test]
    fn any_change_of_any_link_shows_where_it_is() {
        let (head, whole) = chain(&[400; 6]);
        assert_eq!(check(&head, &whole, DAY), []);
        for seq in 1..=6 {
            let mut one = whole.clone();
            one.get_mut(&seq).unwrap().link.digest[0] ^= 1;
            assert_eq!(check(&head, &one, DAY), [Break::Changed { seq }]);
            let mut one = whole.clone();
            one.remove(&seq);
            assert_eq!(check(&head, &one, DAY), [Break::Missing { first: seq, last: seq }]);
            // A head that is behind hides nothing before it.
            if let Some(before) = whole.get(&seq).map(|stored| stored.before) {
                assert_eq!(check(&before, &whole, DAY), [], "{seq}");
            }
        }
    }
}
