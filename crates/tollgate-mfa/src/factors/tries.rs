//! Wrong codes in a row: what they cost in waiting, and where they end.
//!
//! ```text
//! wrong so far    0-4     5-9      10-19    20-99    100
//! the next one    at once 1 min    15 min   1 h      never
//! ```
//!
//! Whoever guesses has three chances in a million with each try (a step either way), so three in ten thousand in all, for which he needs
//! more than three days. NIST SP 800-63B-4, section 3.2.2, asks for a hundred at most. Each factor has its own tries, so that nobody who
//! guesses at one keeps its owner from another.
//!
//! Invariant: the more there are, the longer the wait; a try that nothing is known of yet counts as wrong.

use std::time::Duration;
use tollgate_core::Timestamp;

/// Wrong tries in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Tries {
    /// How many.
    pub wrong: u32,
    /// When the last one was; of none it does not matter.
    pub last: Timestamp,
}

/// When a factor can be tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Turn {
    /// Now.
    Now,
    /// After that time.
    After(Duration),
    /// Not any more: it has to be enrolled anew, or made anew.
    Never,
}

impl Tries {
    /// Wrong tries in a row after which a factor is locked.
    pub const MOST: u32 = 100;

    /// Below so many wrong tries, the next one waits so long after the last.
    pub const WAITS: [(u32, Duration); 4] = [
        (5, Duration::ZERO),
        (10, Duration::from_secs(60)),
        (20, Duration::from_secs(15 * 60)),
        (Self::MOST, Duration::from_secs(3600)),
    ];

    /// When the next try can be.
    #[must_use]
    pub fn turn(&self, now: Timestamp) -> Turn {
        let Some((_, wait)) = Self::WAITS.iter().find(|(below, _)| self.wrong < *below) else { return Turn::Never };
        let until = (self.last + *wait).as_nanos();
        match until.checked_sub(now.as_nanos()).filter(|ns| *ns > 0 && !wait.is_zero()) {
            Some(ns) => Turn::After(Duration::from_nanos(ns)),
            None => Turn::Now,
        }
    }

    /// The same after one more, at `now`.
    #[must_use]
    pub fn and_one(&self, now: Timestamp) -> Self {
        Self { wrong: self.wrong + 1, last: now }
    }

    /// Whether the last one made the wait longer, or was the last of all.
    #[must_use]
    pub fn is_a_step(&self) -> bool {
        Self::WAITS.iter().any(|(below, _)| self.wrong == *below)
    }

    /// How many more there can be.
    #[must_use]
    pub fn left(&self) -> u32 {
        Self::MOST.saturating_sub(self.wrong)
    }
}
