//! Counting by windows: fixed windows, calendar quotas, and the sliding-window counter, in one integer each.
//!
//! The state is the count of the window and of the one before it, packed as `(start * K + previous) * K + count` with
//! `K = 10^9` and `start` the instant that the window began at, in nanoseconds: at most 38 digits, as many as a DynamoDB number
//! carries. So a charge within a window is the same commutative add below a ceiling that a token bucket's is, and the
//! window and its previous count are in the bounds of that one comparison:
//!
//! ```text
//! fixed      allowed  iff  count + cost <= most
//! sliding    allowed  iff  previous * (length - elapsed) + (count + cost) * length <= most * length
//! ```
//!
//! all in integers. The sliding counter takes what the previous window counted for evenly spread, so what it admits within
//! `length` is below twice `most` at worst, where a fixed window's is twice `most`: 100 at 59.00 to 59.99 s and 100 at 60.00
//! to 60.99 s of 100 a minute are 200 by fixed windows and 101 by the sliding counter.
//!
//! Invariants: a count only grows within a window (refunds apart); a caller whose clock is behind counts in the later window
//! that it finds, so no window gets more than `most`.

use crate::calendar::{Period, Zone};
use crate::error::{Error, Result};
use crate::pacer::Demand;
use crate::time::Timestamp;
use crate::token_bucket::{Ticks, TokenBucket, Verdict};
use std::fmt;
use std::time::Duration;

/// What packs the counts: more than any of them.
const K: i128 = 1_000_000_000;

/// The figures of a limit that counts by windows: at most `most` in each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Window {
    most: u64,
    span: Span,
    sliding: bool,
    /// How much beyond it calls may have cost that cost more than was thought.
    debt: u64,
}

/// When windows begin and end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Span {
    /// Every so many nanoseconds, counted from the Unix epoch.
    Every(u64),
    /// With the calendar of a time zone.
    Calendar(Period, Zone),
}

/// The state of a limit as of some instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counts {
    /// When the window began, nanoseconds since the epoch.
    start: u64,
    previous: u64,
    count: u64,
}

impl Counts {
    fn unpack(state: Ticks) -> Self {
        let packed = state.0.max(0);
        let part = |n: i128| u64::try_from(n % K).unwrap_or_default();
        Self {
            start: u64::try_from(packed / (K * K)).unwrap_or(u64::MAX),
            previous: part(packed / K),
            count: part(packed),
        }
    }

    fn pack(self) -> Ticks {
        let capped = |n: u64| i128::from(n).min(K - 1);
        Ticks((i128::from(self.start) * K + capped(self.previous)) * K + capped(self.count))
    }
}

impl Window {
    /// Most of a window: 999,999,999.
    pub const MAX_COUNT: u64 = 999_999_999;
    /// Shortest window that is no calendar's, in nanoseconds: 1 s. Clocks that agree with the table's lie up to
    /// [`TokenBucket::CLOCK_TOLERANCE_NS`] apart.
    pub const MIN_LENGTH_NS: u64 = 1_000_000_000;

    /// At most `most` in each window of `span`. A sliding counter also counts the part of the window before that is not
    /// longer ago than a window.
    ///
    /// # Errors
    ///
    /// [`Error::Figure`] if a figure is out of its range.
    pub fn new(most: u64, span: Span, sliding: bool) -> Result<Self> {
        let check = |figure, holds, range, found: u64| match holds {
            true => Ok(()),
            false => Err(Error::Figure { figure, range, found: found.to_string() }),
        };
        check("rate", (1..=Self::MAX_COUNT).contains(&most), "a whole number from 1 to 999,999,999 a window", most)?;
        if let Span::Every(ns) = span {
            let range = Self::MIN_LENGTH_NS..=TokenBucket::MAX_PERIOD_NS;
            check("period", range.contains(&ns), "from 1 s to 200 years for a window", ns)?;
        }
        Ok(Self { most, span, sliding, debt: 0 })
    }

    /// The same, and calls that turn out to cost more may be counted up to `debt` beyond it.
    ///
    /// # Errors
    ///
    /// [`Error::Figure`] if the two are more than [`Self::MAX_COUNT`] together.
    pub fn with_debt(self, debt: u64) -> Result<Self> {
        Self::new(self.most.saturating_add(debt), self.span, self.sliding)?;
        Ok(Self { debt, ..self })
    }

    /// A part of it, with `most` in a window and so much `debt`.
    pub(crate) fn share(&self, most: u64, debt: u64) -> Self {
        Self { most, debt, ..*self }
    }

    /// Most that may be counted beyond it.
    #[must_use]
    pub const fn debt(&self) -> u64 {
        self.debt
    }

    /// What fits into the window with the debt, beside what it has counted.
    pub(crate) fn room_with_debt(&self, state: Ticks, now: Timestamp) -> u64 {
        let counts = self.counts(Some(state), now);
        (self.room(counts, now) + self.debt).saturating_sub(counts.count)
    }

    /// What of it a call may take.
    fn debt_of(&self, demand: Demand) -> u64 {
        if demand.into_debt { self.debt } else { 0 }
    }

    /// Most of a window.
    #[must_use]
    pub const fn most(&self) -> u64 {
        self.most
    }

    /// When windows begin and end.
    #[must_use]
    pub const fn span(&self) -> Span {
        self.span
    }

    /// Whether the window before counts, too.
    #[must_use]
    pub const fn is_sliding(&self) -> bool {
        self.sliding
    }

    /// The length of a window in nanoseconds; of a month, 30 days.
    #[must_use]
    pub const fn length_ns(&self) -> u64 {
        match self.span {
            Span::Every(ns) => ns,
            Span::Calendar(period, _) => period.nominal_ns(),
        }
    }

    /// When the window of an instant began.
    fn opening(&self, at: u64) -> u64 {
        match self.span {
            Span::Every(ns) => at / ns * ns,
            Span::Calendar(period, zone) => zone.opening(period, at),
        }
    }

    /// When the window that began at `start` ends.
    fn closing(&self, start: u64) -> u64 {
        match self.span {
            Span::Every(ns) => start.saturating_add(ns),
            Span::Calendar(period, zone) => zone.closing(period, start),
        }
    }

    /// The counts at `now`.
    fn counts(&self, state: Option<Ticks>, now: Timestamp) -> Counts {
        let start = self.opening(now.as_nanos());
        let empty = Counts { start, previous: 0, count: 0 };
        let Some(found) = state.map(Counts::unpack) else { return empty };
        if found.start >= start {
            found
        } else if self.sliding && self.closing(found.start) >= start {
            Counts { previous: found.count, ..empty }
        } else {
            empty
        }
    }

    /// The state of a limit that nothing was charged to.
    pub(crate) fn fresh(&self, now: Timestamp) -> Ticks {
        self.counts(None, now).pack()
    }

    /// The state that everything below is as good as forgotten at `now`.
    pub(crate) fn idle_below(&self, now: Timestamp) -> Ticks {
        let start = self.opening(now.as_nanos());
        let start = if self.sliding { self.opening(start.saturating_sub(1)) } else { start };
        Counts { start, previous: 0, count: 0 }.pack()
    }

    /// Whether a charge at `now` is counted in the very window that `state` counts.
    pub(crate) fn continues(&self, state: Ticks, now: Timestamp) -> bool {
        self.counts(Some(state), now).start == Counts::unpack(state).start
    }

    /// The states that a charge at `now` may be added to: those of the same window after the same one before it, up
    /// to what leaves room. `None` if that window has none.
    pub(crate) fn busy(&self, state: Option<Ticks>, now: Timestamp, demand: Demand) -> Option<(Ticks, Ticks)> {
        let counts = self.counts(state, now);
        let most = (self.room(counts, now) + self.debt_of(demand)).checked_sub(demand.cost)?;
        let at = |count| Counts { count, ..counts }.pack();
        Some((at(0), at(most)))
    }

    /// What fits into the window, what it has counted included.
    fn room(&self, counts: Counts, now: Timestamp) -> u64 {
        if !self.sliding {
            return self.most;
        }
        let length = i128::from(self.closing(counts.start).saturating_sub(counts.start).max(1));
        let left = length - i128::from(now.as_nanos().saturating_sub(counts.start)).min(length);
        let room = (i128::from(self.most) * length - i128::from(counts.previous) * left).div_euclid(length);
        u64::try_from(room).unwrap_or(0)
    }

    /// Decides a charge at `now`.
    #[must_use]
    pub fn take(&self, state: Option<Ticks>, now: Timestamp, demand: impl Into<Demand>) -> Verdict {
        let demand = demand.into();
        let (cost, debt) = (demand.cost, self.debt_of(demand));
        if cost > self.most + debt {
            return Verdict::NeverFits;
        }
        let counts = self.counts(state, now);
        let count = counts.count.saturating_add(cost);
        if count <= self.room(counts, now) + debt {
            Verdict::Allowed { tat: Counts { count, ..counts }.pack() }
        } else {
            Verdict::Denied { retry_after: self.until(self.fits_at(counts, cost), now) }
        }
    }

    /// The first instant at which a cost that does not fit now does, if nobody else comes; it is at most `most`.
    fn fits_at(&self, counts: Counts, cost: u64) -> u64 {
        let end = self.closing(counts.start);
        if !self.sliding {
            return end;
        }
        // The first instant of a window at which `previous * (length - elapsed)` is at most `room * length`.
        let decayed = |start: u64, previous: u64, room: u64| {
            let length = u128::from(self.closing(start).saturating_sub(start));
            let left =
                (u128::from(room) * length).checked_div(u128::from(previous)).map_or(length, |left| left.min(length));
            start.saturating_add(u64::try_from(length - left).unwrap_or(u64::MAX))
        };
        match self.most.checked_sub(counts.count.saturating_add(cost)) {
            Some(room) => decayed(counts.start, counts.previous, room),
            None => decayed(end, counts.count, self.most.saturating_sub(cost)),
        }
    }

    fn until(&self, at: u64, now: Timestamp) -> Duration {
        Duration::from_nanos(at.saturating_sub(now.as_nanos()))
    }

    /// What is left of the window, 0 to `most`.
    #[must_use]
    pub fn remaining(&self, state: Option<Ticks>, now: Timestamp) -> u64 {
        let counts = self.counts(state, now);
        self.room(counts, now).saturating_sub(counts.count)
    }

    /// Time until one more than now is left; zero if nothing is missing.
    #[must_use]
    pub fn next_after(&self, state: Option<Ticks>, now: Timestamp) -> Duration {
        let left = self.remaining(state, now);
        if left >= self.most {
            return Duration::ZERO;
        }
        self.until(self.fits_at(self.counts(state, now), left + 1), now)
    }

    /// Time until nothing is missing; zero if nothing is.
    #[must_use]
    pub fn reset_after(&self, state: Option<Ticks>, now: Timestamp) -> Duration {
        let counts = self.counts(state, now);
        let end = self.closing(counts.start);
        match (counts.count, counts.previous) {
            (0, 0) => Duration::ZERO,
            (1.., _) if self.sliding => self.until(self.closing(end), now),
            _ => self.until(end, now),
        }
    }

    /// Seconds that the state must be remembered for: what is left of the window, the next one for a sliding counter, and as
    /// much longer as for a token bucket.
    #[must_use]
    pub fn horizon_secs(&self) -> u64 {
        let longest = match self.span {
            Span::Every(ns) => ns,
            Span::Calendar(period, _) => period.longest_ns(),
        };
        let windows = if self.sliding { 2 } else { 1 };
        let ns = u128::from(longest) * windows + u128::from(TokenBucket::CLOCK_TOLERANCE_NS);
        u64::try_from(ns / 1_000_000_000 + 1).unwrap_or(u64::MAX).saturating_add(TokenBucket::LATEST_ARRIVAL_SECS)
    }

    /// Whether a clock that agrees with the table's can have left the state.
    pub(crate) fn is_plausible(&self, state: Ticks, now: Timestamp) -> bool {
        let latest = now + Duration::from_nanos(TokenBucket::CLOCK_TOLERANCE_NS);
        Counts::unpack(state).start <= self.opening(latest.as_nanos())
    }

    /// The same counts in the window of `now`.
    pub(crate) fn pulled_back(&self, state: Ticks, now: Timestamp) -> Ticks {
        Counts { start: self.opening(now.as_nanos()), ..Counts::unpack(state) }.pack()
    }

    /// What is missing at `now`, rounded up.
    pub(crate) fn used(&self, state: Ticks, now: Timestamp) -> u64 {
        let counts = self.counts(Some(state), now);
        (self.most - self.room(counts, now)).saturating_add(counts.count)
    }

    /// The state at `now` with `used` counted in its window.
    pub(crate) fn with_used(&self, used: u64, now: Timestamp) -> Ticks {
        Counts { count: used, ..self.counts(None, now) }.pack()
    }

    /// The state at `now` with each count, of windows of the same stretches, as `scale` has it.
    pub(crate) fn recounted(&self, state: Ticks, now: Timestamp, scale: impl Fn(u64) -> u64) -> Ticks {
        let counts = self.counts(Some(state), now);
        Counts { previous: scale(counts.previous), count: scale(counts.count), ..counts }.pack()
    }
}

/// `most/span/kind`, or `most+debt/span/kind`, as in `100/60000000000/sliding` or `100000/month@Europe:Bucharest/fixed`.
impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.sliding { "sliding" } else { "fixed" };
        write!(f, "{}", self.most)?;
        if self.debt > 0 {
            write!(f, "+{}", self.debt)?;
        }
        match self.span {
            Span::Every(ns) => write!(f, "/{ns}/{kind}"),
            Span::Calendar(period, zone) => write!(f, "/{}@{}/{kind}", period.as_str(), zone.name().replace('/', ":")),
        }
    }
}

impl Window {
    /// Reads what [`Display`](fmt::Display) writes.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '/');
        let (most, debt) = with_debt(parts.next()?);
        let most = most.parse().ok()?;
        let span = match parts.next()? {
            named if named.contains('@') => {
                let (period, zone) = named.split_once('@')?;
                Span::Calendar(Period::parse(period)?, Zone::get(&zone.replace(':', "/"))?)
            }
            ns => Span::Every(ns.parse().ok()?),
        };
        let sliding = match parts.next()? {
            "fixed" => false,
            "sliding" => true,
            _ => return None,
        };
        let window = Self::new(most, span, sliding).ok()?;
        debt.map_or(Some(window), |debt| window.with_debt(debt.parse().ok()?).ok())
    }
}

/// A figure and the debt behind it, as in `100+20`.
pub(crate) fn with_debt(text: &str) -> (&str, Option<&str>) {
    text.split_once('+').map_or((text, None), |(most, debt)| (most, Some(debt)))
}
