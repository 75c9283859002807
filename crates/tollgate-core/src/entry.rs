//! Single charges that are remembered one by one: those of a log, and reservations that are not settled yet.
//!
//! An entry is one number, so that the table keeps them as a set of numbers: `ADD` and `DELETE` of one entry commute with those of
//! others, and `contains` tells whether it is there. Invariants: an entry is taken out at most once, by whoever
//! finds it there; two entries of a limit are one only if instant, random id and cost are the same.

use crate::error::{Error, Result};
use crate::time::Timestamp;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// How many costs there are in the packed form, and how many ids: 20 digits of an instant, 15 of an id and 3 of a cost are the 38
/// digits that a DynamoDB number carries.
const COSTS: i128 = 1_000;
const IDS: u64 = 1_000_000_000_000_000;

/// One charge. Ordered by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entry {
    /// Of a log, the instant of the charge; of a reservation, when it is no longer waited for.
    pub at: Timestamp,
    /// Random, below 10^15.
    pub id: u64,
    /// Tokens of an entry of a log, at most [`Entry::MOST_COST`]; 0 of a reservation, whose cost its holder knows.
    pub cost: u64,
}

impl Entry {
    /// Most tokens of an entry: 999.
    pub const MOST_COST: u64 = 999;

    /// A charge of a log; of `id` as much counts as it has room for.
    #[must_use]
    pub fn new(at: Timestamp, id: u64, cost: u64) -> Self {
        Self { at, id: id % IDS, cost: cost.min(Self::MOST_COST) }
    }

    /// A reservation that nobody waits for any longer at `until`.
    #[must_use]
    pub fn reservation(until: Timestamp, id: u64) -> Self {
        Self::new(until, id, 0)
    }

    /// Whether it is a reservation.
    #[must_use]
    pub fn is_reservation(&self) -> bool {
        self.cost == 0
    }
}

/// `(at * 10^15 + id) * 1000 + cost`, with `at` in nanoseconds.
impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = (i128::from(self.at.as_nanos()) * i128::from(IDS) + i128::from(self.id)) * COSTS;
        (whole + i128::from(self.cost)).fmt(f)
    }
}

impl FromStr for Entry {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parse = || {
            let packed: i128 = text.parse().ok().filter(|packed| *packed >= 0)?;
            let (charge, cost) = (packed / COSTS, packed % COSTS);
            let (at, id) = (charge / i128::from(IDS), charge % i128::from(IDS));
            let at = Timestamp::from_nanos(u64::try_from(at).ok()?);
            Some(Self { at, id: u64::try_from(id).ok()?, cost: u64::try_from(cost).ok()? })
        };
        parse().ok_or_else(|| Error::Stored { attribute: "e".to_owned(), found: text.to_owned() })
    }
}

/// The entries of one limit, by time.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Entries(BTreeSet<Entry>);

/// No entries.
pub(crate) static NONE: Entries = Entries(BTreeSet::new());

impl Entries {
    /// Most entries of one limit: 32. Each takes some 21 bytes, and an item beyond 1 KB costs a second write unit.
    pub const MOST: usize = 32;

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `entry` is one.
    #[must_use]
    pub fn contains(&self, entry: &Entry) -> bool {
        self.0.contains(entry)
    }

    /// All of them, the earliest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.0.iter()
    }

    /// The tokens of all.
    #[must_use]
    pub fn cost(&self) -> u64 {
        self.iter().map(|entry| entry.cost).sum()
    }

    /// Those that `keep` says.
    #[must_use]
    pub fn only(&self, keep: impl Fn(&Entry) -> bool) -> Self {
        self.iter().filter(|entry| keep(entry)).copied().collect()
    }

    /// These and one more.
    #[must_use]
    pub fn with(mut self, entry: Entry) -> Self {
        self.0.insert(entry);
        self
    }

    /// These but one.
    #[must_use]
    pub fn without(mut self, entry: &Entry) -> Self {
        self.0.remove(entry);
        self
    }
}

impl FromIterator<Entry> for Entries {
    fn from_iter<I: IntoIterator<Item = Entry>>(entries: I) -> Self {
        Self(entries.into_iter().collect())
    }
}
