//! Penalties: whoever a limit denies again and again waits longer each time.
//!
//! A limit with a [`PenaltyRule`] locks a key when its own arithmetic denies a call. While the lock lasts every call is denied,
//! whatever the limit has by then. Each lock is longer than the last, by a level, and levels are forgotten one by one after it:
//!
//! ```text
//! length  = max(min(first * factor^level, most), what the arithmetic asks for)      until = now + length
//! level'  = max(0, min(level + 1, where `most` is reached) - floor((now - until) / forget))
//! ```
//!
//! What is remembered is one number beside the limit's state, `p`, led by the end of the lock. So "not locked" is one comparison,
//! which every form that charges has in its condition, and a call that was made before a lock is refused by it however late it
//! arrives. Charges, refunds and changes of terms leave `p` alone.
//!
//! Invariants: a lock is written only if `p` is still what its maker has seen, so that callers who are denied at once raise the
//! level once; none ends another earlier, but for one that lies in the future: see [`Penalty::pulled_back`].
//!
//! **Clocks.** Nobody whose clock agrees with the table's is admitted before a lock has ended by the fastest of such clocks. A
//! caller whose clock does not goes by it for itself, since it may never agree; but to it no level is forgotten, it cannot
//! shorten a lock, and one that it sets in the future is cut by the first caller that does agree.

use crate::charge::{Charge, LimitName};
use crate::error::{Error, Result};
use crate::item::Item;
use crate::take::Moment;
use crate::time::Timestamp;
use crate::token_bucket::{TokenBucket, Verdict};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The longest length that is kept of a lock, milliseconds: 300,000 years.
const MOST_LENGTH_MS: u64 = 10_u64.pow(16) - 1;
/// What packs the level.
const LEVELS: i128 = 100;
/// What packs length and level behind the end. An end in 20 digits, a length in 16 and a level in 2 are the 38 digits that a
/// DynamoDB number has.
const UNIT: i128 = 10_i128.pow(16) * LEVELS;

const SECOND_NS: u64 = 1_000_000_000;

/// How long a limit locks a key that it has denied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PenaltyRule {
    first_ns: u64,
    factor: u64,
    most_ns: u64,
    forget_ns: u64,
    extend: bool,
    edge_after: Option<u8>,
}

impl PenaltyRule {
    /// The shortest lock: 1 s, since clocks that agree may lie two apart.
    pub const SHORTEST: Duration = Duration::from_secs(1);
    /// The longest lock: 30 days. A limit whose own wait is longer locks for as long as that.
    pub const LONGEST: Duration = Duration::from_secs(30 * 86_400);
    /// By how much a lock is at most longer than the last: ten times.
    pub const MAX_FACTOR: u64 = 10;
    /// The longest time that a level is remembered for after a lock: 365 days.
    pub const LONGEST_MEMORY: Duration = Duration::from_secs(365 * 86_400);

    /// A first lock of `first`, each next one `factor` times as long, `most` at most; a level less for each `forget` without
    /// a lock, and for a `forget` of zero all of them when a lock has ended.
    ///
    /// # Errors
    ///
    /// [`Error::Figure`] if one is outside its range: `first` from [`Self::SHORTEST`], `most` from `first` to
    /// [`Self::LONGEST`], `factor` from 1 to [`Self::MAX_FACTOR`], `forget` up to [`Self::LONGEST_MEMORY`].
    pub fn new(first: Duration, factor: u64, most: Duration, forget: Duration) -> Result<Self> {
        let check = |figure, holds, range, found: String| {
            if holds { Ok(()) } else { Err(Error::Figure { figure, range, found }) }
        };
        check("first", (Self::SHORTEST..=Self::LONGEST).contains(&first), "from 1s to 30day", format!("{first:?}"))?;
        check("most", (first..=Self::LONGEST).contains(&most), "from `first` to 30day", format!("{most:?}"))?;
        check("factor", (1..=Self::MAX_FACTOR).contains(&factor), "a whole number from 1 to 10", factor.to_string())?;
        check("forget", forget <= Self::LONGEST_MEMORY, "at most 365day", format!("{forget:?}"))?;
        let ns = |d: Duration| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX);
        Ok(Self {
            first_ns: ns(first),
            factor,
            most_ns: ns(most),
            forget_ns: ns(forget),
            extend: false,
            edge_after: None,
        })
    }

    /// The same, where a call that is made during a lock has it begin anew: [`Self::extended`].
    #[must_use]
    pub const fn extending(mut self, extend: bool) -> Self {
        self.extend = extend;
        self
    }

    /// The same, where who is locked after `locks` before it that are not forgotten is to be kept out in front, too, before anything is
    /// reached: 1 to [`Self::highest`].
    ///
    /// # Errors
    ///
    /// [`Error::Figure`] if no lock has so many before it.
    pub fn at_the_edge_after(mut self, locks: u8) -> Result<Self> {
        let highest = self.highest();
        if !(1..=highest).contains(&locks) {
            let range = "1 to the lock that is as long as `most`";
            return Err(Error::Figure {
                figure: "edge_after",
                range,
                found: format!("{locks}, where that is {highest}"),
            });
        }
        self.edge_after = Some(locks);
        Ok(self)
    }

    /// How many locks that are not forgotten one has before it that keeps the key out in front; `None`: none does.
    #[must_use]
    pub const fn edge_after(&self) -> Option<u8> {
        self.edge_after
    }

    /// The first lock.
    #[must_use]
    pub const fn first(&self) -> Duration {
        Duration::from_nanos(self.first_ns)
    }

    /// How many times as long as the last one a lock is.
    #[must_use]
    pub const fn factor(&self) -> u64 {
        self.factor
    }

    /// The longest lock.
    #[must_use]
    pub const fn most(&self) -> Duration {
        Duration::from_nanos(self.most_ns)
    }

    /// The time without a lock after which a level is forgotten.
    #[must_use]
    pub const fn forget(&self) -> Duration {
        Duration::from_nanos(self.forget_ns)
    }

    /// Whether a call during a lock has it begin anew.
    #[must_use]
    pub const fn extends(&self) -> bool {
        self.extend
    }

    /// The highest level: the first at which a lock is as long as it can be. A factor of 1 has no other than 0.
    #[must_use]
    pub fn highest(&self) -> u8 {
        if self.factor == 1 { 0 } else { (0..u8::MAX).find(|level| self.at(*level) == self.most_ns).unwrap_or(u8::MAX) }
    }

    /// The length of a lock at `level`, by the rule alone.
    #[must_use]
    pub fn length(&self, level: u8) -> Duration {
        Duration::from_nanos(self.at(level))
    }

    fn at(&self, level: u8) -> u64 {
        self.first_ns.saturating_mul(self.factor.saturating_pow(u32::from(level))).min(self.most_ns)
    }

    /// The level that a lock set at `now` has, after the one that is remembered.
    #[must_use]
    pub fn level(&self, last: Option<&Penalty>, now: Timestamp) -> u8 {
        let Some(last) = last else { return 0 };
        let elapsed = now.as_nanos().saturating_sub(last.until.as_nanos());
        let forgotten = elapsed.checked_div(self.forget_ns).unwrap_or(u64::MAX);
        self.raised(last).saturating_sub(u8::try_from(forgotten).unwrap_or(u8::MAX))
    }

    /// The level after that of `last`, of which nothing is forgotten.
    fn raised(&self, last: &Penalty) -> u8 {
        last.level.saturating_add(1).min(self.highest())
    }

    /// The lock that is set at `now` whatever is remembered, as long as the rule alone makes it.
    #[must_use]
    pub fn next(&self, last: Option<&Penalty>, now: Timestamp) -> Penalty {
        let level = self.level(last, now);
        Self::lock(level, self.length(level), now)
    }

    /// How long after the end of a lock nothing is left to forget, whatever its level.
    #[must_use]
    pub fn forgotten_after(&self) -> Duration {
        Duration::from_nanos(self.forget_ns.saturating_mul(u64::from(self.highest())))
    }

    fn lock(level: u8, length: Duration, now: Timestamp) -> Penalty {
        let length_ms = crate::time::millis_rounded_up(length).min(MOST_LENGTH_MS);
        Penalty { until: now + length, length_ms, level }
    }

    /// The lock as a call at `now` moves it that finds it in force: it ends as long from now as the rule makes one of its level.
    /// `None` if that would be less than a second later, which calls that a process denies from memory are not counted in
    /// either, or if the rule does not say so.
    #[must_use]
    pub fn extended(&self, lock: &Penalty, now: Timestamp) -> Option<Penalty> {
        let length = self.length(lock.level.min(self.highest()));
        let gained = (now + length).as_nanos().saturating_sub(lock.until.as_nanos());
        (self.extend && gained >= SECOND_NS).then(|| Self::lock(lock.level, length, now))
    }

    /// What a call at `now` leaves of which the limit said `verdict`: a lock, or one that is moved. `None` if all stays as it
    /// is. Levels are forgotten as of `forgets_by`.
    #[must_use]
    pub fn after(
        &self,
        last: Option<&Penalty>,
        verdict: Verdict,
        now: Timestamp,
        forgets_by: Timestamp,
    ) -> Option<Penalty> {
        match (last.filter(|last| last.rest(now).is_some()), verdict) {
            (Some(lock), _) => self.extended(lock, now),
            (None, Verdict::Denied { retry_after }) => {
                let level = self.level(last, forgets_by);
                Some(Self::lock(level, self.length(level).max(retry_after), now))
            }
            (None, Verdict::Allowed { .. } | Verdict::NeverFits) => None,
        }
    }

    /// What is said of a call at `now` of which the arithmetic says `verdict`, and what is remembered then, by somebody who decides
    /// alone.
    #[must_use]
    pub fn judge(&self, last: Option<&Penalty>, verdict: Verdict, now: Timestamp) -> (Option<Penalty>, Verdict) {
        let next = self.after(last, verdict, now, now).or(last.copied());
        (next, next.map_or(verdict, |lock| lock.denies(verdict, now)))
    }

    /// Seconds from `now` that `penalty` must be remembered for: to the end of the lock, and until its last level is
    /// forgotten; and for as long again as an item outlives its limits.
    #[must_use]
    pub fn horizon_secs(&self, penalty: &Penalty, now: Timestamp) -> u64 {
        let rest = penalty.until.as_nanos().saturating_sub(now.as_nanos());
        let levels = self.forget_ns.saturating_mul(u64::from(self.raised(penalty)));
        let ns = rest.saturating_add(levels).saturating_add(TokenBucket::CLOCK_TOLERANCE_NS);
        ns / SECOND_NS + 1 + TokenBucket::LATEST_ARRIVAL_SECS
    }

    /// The most of [`Self::horizon_secs`], where the limit itself asks for no longer waits.
    #[must_use]
    pub fn longest_horizon_secs(&self) -> u64 {
        let highest = Penalty { until: Timestamp::from_nanos(self.most_ns), length_ms: 0, level: self.highest() };
        self.horizon_secs(&highest, Timestamp::default())
    }
}

/// The last lock of a key on one limit, in force or over. In the table it is one number, `<limit>.p`: the end in nanoseconds,
/// then 16 digits for the length in milliseconds, then 2 for the level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Penalty {
    /// When it ends, or ended.
    pub until: Timestamp,
    /// How long it was made, in milliseconds, rounded up. It began that long before it ends.
    pub length_ms: u64,
    /// The level that it was made at: how many locks before it were not forgotten.
    pub level: u8,
}

impl Penalty {
    /// The time that is left of the lock; `None` if it has ended.
    #[must_use]
    pub fn rest(&self, now: Timestamp) -> Option<Duration> {
        let ns = self.until.as_nanos().checked_sub(now.as_nanos()).filter(|ns| *ns > 0);
        ns.map(Duration::from_nanos)
    }

    /// What is said instead of `verdict` at `now`: a lock denies whatever there is, for as long as both ask for. Waiting does not
    /// make room for what never fits.
    #[must_use]
    pub fn denies(&self, verdict: Verdict, now: Timestamp) -> Verdict {
        match (self.rest(now), verdict) {
            (None, verdict) | (Some(_), verdict @ Verdict::NeverFits) => verdict,
            (Some(rest), Verdict::Denied { retry_after }) => Verdict::Denied { retry_after: rest.max(retry_after) },
            (Some(rest), Verdict::Allowed { .. }) => Verdict::Denied { retry_after: rest },
        }
    }

    /// The lock as it is cut if it begins further in the future than callers with agreeing clocks can have it begin: a clock was
    /// wrong. It then begins now. `None` if it does not.
    #[must_use]
    pub fn pulled_back(&self, now: Timestamp) -> Option<Self> {
        let length = Duration::from_millis(self.length_ms);
        let began = u128::from(self.until.as_nanos()).saturating_sub(length.as_nanos());
        let furthest = u128::from(now.as_nanos()) + u128::from(TokenBucket::CLOCK_TOLERANCE_NS);
        (began > furthest).then(|| Self { until: now + length, ..*self })
    }

    /// The smallest number of a lock that is in force at `now`: every smaller one has ended.
    #[must_use]
    pub fn in_force_from(now: Timestamp) -> i128 {
        (i128::from(now.as_nanos()) + 1) * UNIT
    }

    fn packed(&self) -> i128 {
        i128::from(self.until.as_nanos()) * UNIT + i128::from(self.length_ms) * LEVELS + i128::from(self.level)
    }
}

impl fmt::Display for Penalty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.packed().fmt(f)
    }
}

impl FromStr for Penalty {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parse = || {
            let packed: i128 = text.parse().ok()?;
            let until = Timestamp::from_nanos(u64::try_from(packed / UNIT).ok()?);
            let length_ms = u64::try_from(packed % UNIT / LEVELS).ok()?;
            Some(Self { until, length_ms, level: u8::try_from(packed % LEVELS).ok()? })
        };
        // Only the form that `Display` writes is accepted: conditions compare `p` as it is.
        parse()
            .filter(|penalty: &Self| penalty.to_string() == text)
            .ok_or_else(|| Error::Stored { attribute: "p".to_owned(), found: text.to_owned() })
    }
}

/// What a write requires of a limit's `p`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PenaltyExpect {
    /// `attribute_not_exists(p) OR p < Penalty::in_force_from(now)`: there is no lock at that instant.
    Unlocked(Timestamp),
    /// `p = seen`, or `attribute_not_exists(p)`.
    Is(Option<Penalty>),
}

/// The part of a write that concerns a limit's penalty.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PenaltyWrite {
    /// Which limit.
    pub limit: LimitName,
    /// What `p` must be like.
    pub expect: PenaltyExpect,
    /// The new `p`, if it changes.
    pub next: Option<Option<Penalty>>,
}

impl PenaltyWrite {
    /// Requires that the limit is not locked at `now`.
    #[must_use]
    pub fn unlocked(limit: LimitName, now: Timestamp) -> Self {
        Self { limit, expect: PenaltyExpect::Unlocked(now), next: None }
    }

    /// Replaces what is remembered, if it is still as `seen`.
    #[must_use]
    pub fn exact(limit: LimitName, seen: Option<Penalty>, next: Option<Penalty>) -> Self {
        Self { limit, expect: PenaltyExpect::Is(seen), next: Some(next) }
    }

    /// Whether `item` has what is required.
    #[must_use]
    pub fn holds(&self, item: &Item) -> bool {
        let found = item.penalties.get(&self.limit);
        match self.expect {
            PenaltyExpect::Unlocked(now) => found.is_none_or(|found| found.packed() < Penalty::in_force_from(now)),
            PenaltyExpect::Is(seen) => found.copied() == seen,
        }
    }

    /// Changes `item` as the write does.
    pub(crate) fn apply(&self, item: &mut Item) {
        match self.next {
            Some(Some(next)) => drop(item.penalties.insert(self.limit.clone(), next)),
            Some(None) => drop(item.penalties.remove(&self.limit)),
            None => {}
        }
    }
}

/// How a limit with a rule stands to what is remembered of it, as one caller sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lock {
    rule: PenaltyRule,
    seen: Option<Penalty>,
    /// The lock as it is cut, if it is.
    pulled: Option<Penalty>,
    /// Whether levels can be forgotten: by a clock that agrees alone.
    forgets: bool,
}

impl Lock {
    /// As `item` has it; `None` if the limit has no rule.
    pub(crate) fn of(charge: &Charge, item: Option<&Item>, moment: Moment, forgets: bool) -> Option<Self> {
        let rule = charge.penalty?;
        let seen = item.and_then(|item| item.penalties.get(&charge.limit)).copied();
        let pulled = seen.filter(|_| moment.clock_agrees).and_then(|seen| seen.pulled_back(moment.now));
        Some(Self { rule, seen, pulled, forgets })
    }

    /// The lock that is in force at `now`.
    pub(crate) fn in_force(&self, now: Timestamp) -> Option<Penalty> {
        self.pulled.or(self.seen).filter(|lock| lock.rest(now).is_some())
    }

    /// What is said instead of `verdict` at `now`; of a cost of 0, which has none, how long the lock lasts.
    pub(crate) fn verdict(&self, verdict: Option<Verdict>, now: Timestamp) -> Option<Verdict> {
        let Some(lock) = self.in_force(now) else { return verdict };
        let retry_after = lock.rest(now).unwrap_or_default();
        Some(verdict.map_or(Verdict::Denied { retry_after }, |verdict| lock.denies(verdict, now)))
    }

    /// Whether a denial would set a lock.
    pub(crate) fn would_lock(&self, verdict: Option<Verdict>, now: Timestamp) -> bool {
        matches!(verdict, Some(Verdict::Denied { .. })) && self.in_force(now).is_none()
    }

    /// What a call leaves that was told `verdict`, if that is something new.
    pub(crate) fn next(&self, verdict: Verdict, now: Timestamp) -> Option<Penalty> {
        let forgets_by = if self.forgets { now } else { Timestamp::default() };
        self.pulled.or_else(|| self.rule.after(self.seen.as_ref(), verdict, now, forgets_by))
    }

    /// The part of a write that makes it so, and for how many seconds it must be remembered.
    pub(crate) fn write(&self, limit: &LimitName, next: Penalty, now: Timestamp) -> (PenaltyWrite, u64) {
        (PenaltyWrite::exact(limit.clone(), self.seen, Some(next)), self.rule.horizon_secs(&next, now))
    }

    /// Until when the key is to be kept out in front, if what a call leaves is a new lock that does so.
    pub(crate) fn at_the_edge(&self, next: Penalty, now: Timestamp) -> Option<Timestamp> {
        let is_new = self.seen.is_none_or(|seen| seen.rest(now).is_none());
        (is_new && self.rule.edge_after.is_some_and(|after| next.level >= after)).then_some(next.until)
    }

    /// Whether the lock was cut.
    pub(crate) fn is_pulled(&self) -> bool {
        self.pulled.is_some()
    }
}
