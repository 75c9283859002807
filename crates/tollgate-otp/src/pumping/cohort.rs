//! Cohorts: what became of the messages that were sent within the same five minutes, by block of numbers.
//!
//! Invariants: a verified code counts in the cohort of its message, whenever it is typed; a cohort is judged once no code of it is good
//! any more, so that a message counts as not verified only if it never was. Counts only grow, whoever adds to them and in what order.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tollgate_core::Timestamp;

/// Five minutes, by their number since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Window(pub u64);

impl Window {
    /// How long a window is.
    pub const LENGTH: Duration = Duration::from_secs(300);

    /// The window that an instant is in.
    #[must_use]
    pub const fn of(at: Timestamp) -> Self {
        Self(at.as_secs() / Self::LENGTH.as_secs())
    }

    /// Its first instant.
    #[must_use]
    pub const fn start(self) -> Timestamp {
        Timestamp::from_secs(self.0.saturating_mul(Self::LENGTH.as_secs()))
    }

    /// The instant at which it is over.
    #[must_use]
    pub const fn end(self) -> Timestamp {
        Self(self.0.saturating_add(1)).start()
    }
}

/// What is counted of the ten thousand numbers of one [block](crate::Destination::block), in one window.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Messages that were handed to the courier.
    pub sent: u64,
    /// Credits of those whose code was verified. More than were sent by less than one sum of credits at most, where some were given twice.
    pub verified: u64,
    /// Messages that were asked for and refused, since nobody had shown that he is human or too many were asked for.
    pub refused: u64,
    /// Marks of the numbers.
    pub numbers: BTreeSet<u32>,
    /// Marks of the numbers behind them.
    pub next: BTreeSet<u32>,
}

impl Tally {
    /// Most marks of numbers that are kept; beyond, messages are counted only.
    pub const MOST_MARKS: usize = 64;
    /// Most refusals that are counted; more say nothing more.
    pub const MOST_REFUSED: u64 = 10_000;

    /// Messages whose code was verified; never more than were sent.
    #[must_use]
    pub fn converted(&self) -> u64 {
        self.verified.min(self.sent)
    }

    /// Messages whose number comes right behind that of another one.
    #[must_use]
    pub fn consecutive(&self) -> u64 {
        self.numbers.intersection(&self.next).count() as u64
    }
}

/// What becomes of the counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Change {
    /// A message went out to a number with these marks.
    Sent(Marks),
    /// The same where there are as many marks as are kept.
    SentOnly,
    /// So many codes were verified.
    Verified(u64),
    /// A message was refused.
    Refused,
}

/// What is kept of a number: enough to tell that another is next to it, too little to tell which it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Marks {
    /// Of the number.
    pub number: u32,
    /// Of the number behind it.
    pub next: u32,
}

impl Change {
    /// The counts after the change, or `None` if its condition does not hold and nothing is written.
    #[must_use]
    pub fn apply(self, found: Option<&Tally>) -> Option<Tally> {
        let mut tally = found.cloned().unwrap_or_default();
        match self {
            Self::Sent(_) if tally.numbers.len() >= Tally::MOST_MARKS => return None,
            Self::Sent(marks) => {
                tally.sent += 1;
                tally.numbers.insert(marks.number);
                tally.next.insert(marks.next);
            }
            Self::SentOnly if tally.sent == 0 => return None,
            Self::SentOnly => tally.sent += 1,
            Self::Verified(_) if tally.verified >= tally.sent => return None,
            Self::Verified(n) => tally.verified += n,
            Self::Refused if tally.refused >= Tally::MOST_REFUSED => return None,
            Self::Refused => tally.refused += 1,
        }
        Some(tally)
    }
}

/// What is counted of a country, by window and block.
pub type Cohorts = BTreeMap<Window, BTreeMap<String, Tally>>;

/// An item that counts are in: blocks of a country are divided among several, so that no write is of a large item, and that none is
/// written too often.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CohortKey {
    /// Two letters of ISO 3166-1.
    pub country: String,
    /// When the messages were sent.
    pub window: Window,
    /// Which part of the blocks, below [`Self::SHARDS`].
    pub shard: u8,
}

impl CohortKey {
    /// How many items a cohort is divided among.
    pub const SHARDS: u8 = 8;

    /// Where a block is counted.
    #[must_use]
    pub fn of(country: &str, block: &str, window: Window) -> Self {
        // FNV-1a: the same in every process and version.
        let hash = block
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        let shard = u8::try_from((hash ^ (hash >> 40)) % u64::from(Self::SHARDS)).unwrap_or_default();
        Self { country: country.to_owned(), window, shard }
    }

    /// All items of a cohort.
    pub fn all(country: &str, window: Window) -> impl Iterator<Item = Self> {
        (0..Self::SHARDS).map(move |shard| Self { country: country.to_owned(), window, shard })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MOST_AT_ONCE: u64 = 4;

    fn change() -> impl Strategy<Value = Change> {
        prop_oneof![
            (0_u32..100).prop_map(|n| Change::Sent(Marks { number: n, next: n + 1 })),
            Just(Change::SentOnly),
            (1..=MOST_AT_ONCE).prop_map(Change::Verified),
            Just(Change::Refused),
        ]
    }

    proptest! {
        #[test]
        fn no_more_are_verified_than_were_sent(changes in prop::collection::vec(change(), 0..300)) {
            let mut tally = Tally::default();
            for change in changes {
                let next = change.apply(Some(&tally)).unwrap_or_else(|| tally.clone());
                prop_assert!(next.sent >= tally.sent && next.verified >= tally.verified);
                prop_assert!(next.converted() >= tally.converted() && next.converted() <= next.sent);
                prop_assert!(next.verified < next.sent + MOST_AT_ONCE);
                prop_assert!(next.numbers.len() <= Tally::MOST_MARKS);
                tally = next;
            }
        }

        #[test]
        fn the_order_of_messages_does_not_matter(mut numbers in prop::collection::vec(0_u32..500, 1..60), seed in 0_u64..100) {
            let add = |numbers: &[u32]| {
                let mut tally = Tally::default();
                for n in numbers {
                    tally = Change::Sent(Marks { number: *n, next: n + 1 }).apply(Some(&tally)).unwrap();
                }
                tally
            };
            let before = add(&numbers);
            fastrand::Rng::with_seed(seed).shuffle(&mut numbers);
            prop_assert_eq!(add(&numbers), before);
        }
    }

    #[test]
    fn runs_of_numbers_are_told_from_scattered_ones() {
        let of = |numbers: &[u32]| {
            let add =
                |tally: Tally, n: &u32| Change::Sent(Marks { number: *n, next: n + 1 }).apply(Some(&tally)).unwrap();
            numbers.iter().fold(Tally::default(), add).consecutive()
        };
        assert_eq!((of(&[7, 9, 8, 10]), of(&[1, 3, 5, 7]), of(&[]), of(&[4, 4, 4])), (3, 0, 0, 0));
    }

    #[test]
    fn a_window_is_five_minutes_and_blocks_are_spread() {
        let at = Timestamp::from_secs(1_767_225_899);
        assert_eq!((Window::of(at).start().as_secs(), Window::of(at).end().as_secs()), (1_767_225_600, 1_767_225_900));
        let shards: BTreeSet<_> =
            (0..200).map(|i| CohortKey::of("RO", &format!("+40721{i:03}"), Window(1)).shard).collect();
        assert_eq!(shards.len(), usize::from(CohortKey::SHARDS));
    }
}
