//! The sliding-window log: every charge with its instant, so that what is admitted in any window is exact.
//!
//! ```text
//! live     = the entries later than now - window
//! allowed  iff  cost of live + cost <= most
//! ```
//!
//! The state is the entries, and beside them their cost: the integer that every algorithm has. As long as that leaves room, a
//! charge is the same commutative add below a ceiling, and adds its entry; entries that are no longer live count there, so a
//! full log is written anew, without them, by a write that requires it to be as seen.
//!
//! It counts what must be counted exactly and is rare, like wrong passwords: an attempt is entered before it is tried and
//! taken out when it has succeeded, so that 50 at once are 5 tries.
//!
//! Invariants: no two charges are both in a window of which they are too much together, whoever makes them; an entry leaves the
//! log when it is no longer live or is taken out as a whole, and nothing else lowers what is counted.

use crate::entry::{Entries, Entry};
use crate::error::{Error, Result};
use crate::time::Timestamp;
use crate::token_bucket::{Ticks, TokenBucket, Verdict};
use std::fmt;
use std::time::Duration;

/// The figures of a log: at most `most` in any `window`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Log {
    most: u64,
    window_ns: u64,
}

impl Log {
    /// Most of a window: as many entries as fit beside the rest of an item, [`Entries::MOST`].
    pub const MOST: u64 = Entries::MOST as u64;

    /// At most `most` in any window of `window_ns` nanoseconds.
    ///
    /// # Errors
    ///
    /// [`Error::Figure`] if a figure is out of its range.
    pub fn new(most: u64, window_ns: u64) -> Result<Self> {
        let check = |figure, holds, range, found: u64| match holds {
            true => Ok(()),
            false => Err(Error::Figure { figure, range, found: found.to_string() }),
        };
        check("rate", (1..=Self::MOST).contains(&most), "a whole number from 1 to 32 for a log", most)?;
        let windows = TokenBucket::CLOCK_TOLERANCE_NS / 2..=TokenBucket::MAX_PERIOD_NS;
        check("period", windows.contains(&window_ns), "from 1 s to 200 years for a log", window_ns)?;
        Ok(Self { most, window_ns })
    }

    /// The same with `most` in any window.
    pub(crate) fn share(&self, most: u64) -> Self {
        Self { most, ..*self }
    }

    /// Most of any window.
    #[must_use]
    pub const fn most(&self) -> u64 {
        self.most
    }

    /// The length of a window in nanoseconds.
    #[must_use]
    pub const fn window_ns(&self) -> u64 {
        self.window_ns
    }

    /// When an entry is no longer live.
    fn end(&self, entry: &Entry) -> u64 {
        entry.at.as_nanos().saturating_add(self.window_ns)
    }

    /// The entries that count at `now`.
    #[must_use]
    pub fn live(&self, entries: &Entries, now: Timestamp) -> Entries {
        entries.only(|entry| self.end(entry) > now.as_nanos())
    }

    /// What is counted at `now`.
    pub(crate) fn used(&self, entries: &Entries, now: Timestamp) -> u64 {
        entries.iter().filter(|entry| self.end(entry) > now.as_nanos()).map(|entry| entry.cost).sum()
    }

    /// Whether a charge of `cost` can be added to a log with so much in it, live or not.
    pub(crate) fn has_room(&self, held: Ticks, cost: u64) -> bool {
        held + Ticks(i128::from(cost)) <= Ticks(i128::from(self.most))
    }

    /// Decides a charge of `cost` at `now` on a log of `entries` that cost `held` in all.
    pub(crate) fn take(&self, held: Ticks, entries: &Entries, now: Timestamp, cost: u64) -> Verdict {
        if cost > self.most {
            return Verdict::NeverFits;
        }
        let used = self.used(entries, now);
        if used + cost > self.most {
            return Verdict::Denied { retry_after: self.until(self.fits_at(entries, now, cost), now) };
        }
        let kept = if self.has_room(held, cost) { held } else { Ticks(i128::from(used)) };
        Verdict::Allowed { tat: kept + Ticks(i128::from(cost)) }
    }

    /// The first instant at which `cost` fits, at most `most`, if nobody else comes.
    fn fits_at(&self, entries: &Entries, now: Timestamp, cost: u64) -> u64 {
        let mut used = self.used(entries, now);
        let mut at = now.as_nanos();
        for entry in entries.iter().filter(|entry| self.end(entry) > now.as_nanos()) {
            if used + cost <= self.most {
                break;
            }
            used -= entry.cost;
            at = self.end(entry);
        }
        at
    }

    fn until(&self, at: u64, now: Timestamp) -> Duration {
        Duration::from_nanos(at.saturating_sub(now.as_nanos()))
    }

    /// What is left at `now`, 0 to `most`.
    pub(crate) fn remaining(&self, entries: &Entries, now: Timestamp) -> u64 {
        self.most.saturating_sub(self.used(entries, now))
    }

    /// Time until one more than now is left; zero if nothing is missing.
    pub(crate) fn next_after(&self, entries: &Entries, now: Timestamp) -> Duration {
        match self.remaining(entries, now) {
            left if left < self.most => self.until(self.fits_at(entries, now, left + 1), now),
            _ => Duration::ZERO,
        }
    }

    /// Time until nothing is missing; zero if nothing is.
    pub(crate) fn reset_after(&self, entries: &Entries, now: Timestamp) -> Duration {
        entries.iter().next_back().map_or(Duration::ZERO, |last| self.until(self.end(last), now))
    }

    /// Seconds that the state must be remembered for: a window, and as much longer as for a token bucket.
    pub(crate) fn horizon_secs(&self) -> u64 {
        let ns = self.window_ns.saturating_add(TokenBucket::CLOCK_TOLERANCE_NS);
        (ns / 1_000_000_000 + 1).saturating_add(TokenBucket::LATEST_ARRIVAL_SECS)
    }

    /// The entries with those that lie further ahead than agreeing clocks can have left them dated `now`; `None` if there are none.
    pub(crate) fn pulled_back(entries: &Entries, now: Timestamp) -> Option<Entries> {
        let latest = now + Duration::from_nanos(TokenBucket::CLOCK_TOLERANCE_NS);
        let is_beyond = |entry: &Entry| entry.at > latest;
        let dated = |entry: &Entry| if is_beyond(entry) { Entry { at: now, ..*entry } } else { *entry };
        entries.iter().any(is_beyond).then(|| entries.iter().map(dated).collect())
    }

    /// Entries at `now` that cost `used`.
    pub(crate) fn with_used(used: u64, now: Timestamp) -> Entries {
        (used > 0).then(|| Entry::new(now, 0, used)).into_iter().collect()
    }

    /// Reads what [`Display`](fmt::Display) writes.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (most, window) = text.strip_suffix("/log")?.split_once('/')?;
        Self::new(most.parse().ok()?, window.parse().ok()?).ok()
    }
}

/// `most/window/log`, with the window in nanoseconds.
impl fmt::Display for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/log", self.most, self.window_ns)
    }
}
