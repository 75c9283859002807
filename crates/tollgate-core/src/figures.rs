//! The figures of a limit, whichever algorithm it counts by; what the protocol asks of an algorithm.
//!
//! Every algorithm keeps its state in one integer that a charge adds to, so that the conditional writes are the same for
//! all: a commutative add below a ceiling where the state is known, a fresh start where it is as good as forgotten, and an
//! exact replacement for the rest. A log has entries beside it. Invariant: within one busy period a state only grows,
//! refunds apart.

use crate::entry::{self, Entries, Entry};
use crate::item::Bucket;
use crate::log::Log;
use crate::pacer::Demand;
use crate::terms::OnChange;
use crate::time::Timestamp;
use crate::token_bucket::{Ticks, TokenBucket, Verdict};
use crate::wide::mul_div_ceil;
use crate::window::{Window, with_debt};
use crate::write::Check;
use std::fmt;
use std::time::Duration;

/// What a limit admits, and how it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Figures {
    /// A token bucket, or a pacer.
    TokenBucket(TokenBucket),
    /// A fixed window, a calendar quota or a sliding-window counter.
    Window(Window),
    /// A sliding-window log.
    Log(Log),
}

/// What is stored of a limit, as far as figures read it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct State {
    /// The integer: a theoretical arrival time, packed counts, the cost of a log's entries.
    pub tat: Ticks,
    /// The entries of a log, or reservations.
    pub entries: Entries,
}

impl From<Ticks> for State {
    fn from(tat: Ticks) -> Self {
        Self { tat, entries: Entries::default() }
    }
}

/// A state that was found, or none.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    tat: Option<Ticks>,
    entries: &'a Entries,
}

impl From<Option<Ticks>> for Seen<'_> {
    fn from(tat: Option<Ticks>) -> Self {
        Self { tat, entries: &entry::NONE }
    }
}

impl<'a> From<Option<&'a State>> for Seen<'a> {
    fn from(state: Option<&'a State>) -> Self {
        state.map_or_else(|| Self::from(None::<Ticks>), Self::from)
    }
}

impl<'a> From<&'a State> for Seen<'a> {
    fn from(state: &'a State) -> Self {
        Self { tat: Some(state.tat), entries: &state.entries }
    }
}

impl<'a> From<&'a Bucket> for Seen<'a> {
    fn from(bucket: &'a Bucket) -> Self {
        Self { tat: Some(bucket.tat), entries: &bucket.entries }
    }
}

/// How a charge changes a state that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// It is added.
    Add,
    /// The state is as good as none, whatever it is by then: a new one begins.
    Restart,
    /// A new one begins, by what this one is exactly.
    Anew,
}

impl From<TokenBucket> for Figures {
    fn from(bucket: TokenBucket) -> Self {
        Self::TokenBucket(bucket)
    }
}

impl From<Window> for Figures {
    fn from(window: Window) -> Self {
        Self::Window(window)
    }
}

impl From<Log> for Figures {
    fn from(log: Log) -> Self {
        Self::Log(log)
    }
}

impl Figures {
    /// The token bucket, if it is one; a pacer is one, too.
    #[must_use]
    pub const fn token_bucket(&self) -> Option<TokenBucket> {
        match self {
            Self::TokenBucket(bucket) => Some(*bucket),
            Self::Window(_) | Self::Log(_) => None,
        }
    }

    /// The log, if it is one.
    #[must_use]
    pub const fn log(&self) -> Option<Log> {
        match self {
            Self::Log(log) => Some(*log),
            Self::TokenBucket(_) | Self::Window(_) => None,
        }
    }

    /// Most that is admitted at once: the burst, or what a window admits. A cost above it never fits.
    #[must_use]
    pub const fn most(&self) -> u64 {
        match self {
            Self::TokenBucket(bucket) => bucket.burst(),
            Self::Window(window) => window.most(),
            Self::Log(log) => log.most(),
        }
    }

    /// What is admitted in the long run: so many every so many nanoseconds, in lowest terms for a token bucket.
    #[must_use]
    pub const fn rate(&self) -> (u64, u64) {
        match self {
            Self::TokenBucket(bucket) => (bucket.n(), bucket.period()),
            Self::Window(window) => (window.most(), window.length_ns()),
            Self::Log(log) => (log.most(), log.window_ns()),
        }
    }

    /// How many tokens beyond what it has it lends to calls that turn out to cost more.
    #[must_use]
    pub const fn debt(&self) -> u64 {
        match self {
            Self::TokenBucket(bucket) => bucket.debt(),
            Self::Window(window) => window.debt(),
            Self::Log(_) => 0,
        }
    }

    /// Whether a charge has a slot in time, which others are lined up behind.
    #[must_use]
    pub const fn has_slots(&self) -> bool {
        matches!(self, Self::TokenBucket(_))
    }

    /// Whether calls are told when to go.
    #[must_use]
    pub fn is_paced(&self) -> bool {
        self.token_bucket().is_some_and(|bucket| bucket.delay().is_some())
    }

    /// The burst as a policy writes it: most at once, or how many calls of a pacer may be ahead of their time.
    #[must_use]
    pub fn burst(&self) -> u64 {
        self.most() - u64::from(self.is_paced())
    }

    /// Decides a charge at `now` on `state` (`None`: untouched).
    #[must_use]
    pub fn take<'a>(&self, state: impl Into<Seen<'a>>, now: Timestamp, demand: impl Into<Demand>) -> Verdict {
        let (seen, demand) = (state.into(), demand.into());
        match self {
            Self::TokenBucket(bucket) => bucket.take(seen.tat, now, demand),
            Self::Window(window) => window.take(seen.tat, now, demand),
            Self::Log(log) => log.take(seen.tat.unwrap_or_default(), seen.entries, now, demand.cost),
        }
    }

    /// The state after a charge that fits and leaves the integer as `tat`; `entry` is its own, if it has one.
    #[must_use]
    pub fn charged<'a>(&self, state: impl Into<Seen<'a>>, now: Timestamp, tat: Ticks, entry: Option<Entry>) -> State {
        let seen = state.into();
        let kept = match self {
            // Reservations that nobody waits for any longer make room, where it is short.
            Self::TokenBucket(_) | Self::Window(_) if seen.entries.len() < Entries::MOST => seen.entries.clone(),
            Self::TokenBucket(_) | Self::Window(_) => seen.entries.only(|entry| entry.at > now),
            Self::Log(log) if entry.is_some_and(|entry| log.has_room(seen.tat.unwrap_or_default(), entry.cost)) => {
                seen.entries.clone()
            }
            Self::Log(log) => log.live(seen.entries, now),
        };
        State { tat, entries: entry.into_iter().fold(kept, Entries::with) }
    }

    /// How long after `now` a call may go whose charge of `cost` left the state as `after`; zero unless it is paced.
    #[must_use]
    pub fn starts_after(&self, after: Option<Ticks>, now: Timestamp, cost: u64) -> Duration {
        match (self, after) {
            (Self::TokenBucket(bucket), Some(after)) => bucket.starts_after(after - bucket.inc(cost), now),
            _ => Duration::ZERO,
        }
    }

    /// What is left at `now`, 0 to [`Self::most`].
    #[must_use]
    pub fn remaining<'a>(&self, state: impl Into<Seen<'a>>, now: Timestamp) -> u64 {
        let seen = state.into();
        match self {
            Self::TokenBucket(bucket) => bucket.remaining(seen.tat, now),
            Self::Window(window) => window.remaining(seen.tat, now),
            Self::Log(log) => log.remaining(seen.entries, now),
        }
    }

    /// Time until nothing is missing; zero if nothing is.
    #[must_use]
    pub fn reset_after<'a>(&self, state: impl Into<Seen<'a>>, now: Timestamp) -> Duration {
        let seen = state.into();
        match self {
            Self::TokenBucket(bucket) => bucket.reset_after(seen.tat, now),
            Self::Window(window) => window.reset_after(seen.tat, now),
            Self::Log(log) => log.reset_after(seen.entries, now),
        }
    }

    /// Time until one more is left; zero if nothing is missing.
    #[must_use]
    pub fn next_after<'a>(&self, state: impl Into<Seen<'a>>, now: Timestamp) -> Duration {
        let seen = state.into();
        match self {
            Self::TokenBucket(bucket) => bucket.next_token_after(seen.tat, now),
            Self::Window(window) => window.next_after(seen.tat, now),
            Self::Log(log) => log.next_after(seen.entries, now),
        }
    }

    /// Seconds that a limit must be remembered for, so that forgetting it changes no decision.
    #[must_use]
    pub fn horizon_secs(&self) -> u64 {
        match self {
            Self::TokenBucket(bucket) => bucket.horizon_secs(),
            Self::Window(window) => window.horizon_secs(),
            Self::Log(log) => log.horizon_secs(),
        }
    }

    /// As [`Self::horizon_secs`], for a state that may hold more debt than the figures alone leave.
    #[must_use]
    pub(crate) fn horizon_of(&self, state: Option<Ticks>, now: Timestamp) -> u64 {
        match self {
            Self::TokenBucket(bucket) => {
                let debt = state.map_or(Ticks(0), |tat| tat - bucket.at(now));
                bucket.horizon_secs().max(bucket.horizon_of(debt))
            }
            Self::Window(window) => window.horizon_secs(),
            Self::Log(log) => log.horizon_secs(),
        }
    }

    /// The state of a limit of which nothing is missing, by every clock that agrees with the table's.
    #[must_use]
    pub fn full(&self, now: Timestamp) -> Ticks {
        match self {
            Self::TokenBucket(bucket) => bucket.at(now) - bucket.span(TokenBucket::CLOCK_TOLERANCE_NS),
            // Whose clock is behind counts in the window that it finds.
            Self::Window(window) => window.fresh(now),
            Self::Log(_) => Ticks(0),
        }
    }

    /// The state of a limit that nothing was charged to.
    pub(crate) fn fresh(&self, now: Timestamp) -> Ticks {
        match self {
            Self::TokenBucket(bucket) => bucket.at(now),
            Self::Window(window) => window.fresh(now),
            Self::Log(_) => Ticks(0),
        }
    }

    /// What a charge adds to the state.
    pub(crate) fn inc(&self, cost: u64) -> Ticks {
        match self {
            Self::TokenBucket(bucket) => bucket.inc(cost),
            Self::Window(_) | Self::Log(_) => Ticks(i128::from(cost)),
        }
    }

    /// A state below this is as good as none at `now`. Of a log the integer does not tell.
    pub(crate) fn idle_below(&self, now: Timestamp) -> Ticks {
        match self {
            Self::TokenBucket(bucket) => bucket.at(now),
            Self::Window(window) => window.idle_below(now),
            Self::Log(_) => Ticks(0),
        }
    }

    /// Where a call at `now` may begin that spends what was charged earlier from `from` on: before each token's slot has started, or
    /// while the window that it was counted in lasts. `None` if nowhere.
    pub(crate) fn spendable(&self, from: Ticks, now: Timestamp) -> Option<Ticks> {
        match self {
            Self::TokenBucket(bucket) => Some(from.max(bucket.at(now))),
            Self::Window(window) => window.continues(from, now).then_some(from),
            Self::Log(_) => None,
        }
    }

    /// Whether forgetting the state changes no decision at `now`.
    pub(crate) fn is_idle<'a>(&self, state: impl Into<Seen<'a>>, now: Timestamp) -> bool {
        let seen = state.into();
        match self {
            Self::TokenBucket(_) | Self::Window(_) => seen.tat.is_none_or(|tat| tat < self.idle_below(now)),
            Self::Log(log) => log.used(seen.entries, now) == 0,
        }
    }

    /// Whether what the state counts is over at `now`, so that it can be left for other figures without losing anything.
    pub(crate) fn is_over(&self, state: &Bucket, now: Timestamp) -> bool {
        match self {
            Self::TokenBucket(_) | Self::Log(_) => self.is_idle(state, now),
            Self::Window(window) => !window.continues(state.tat, now),
        }
    }

    /// How a charge of `cost` at `now`, which fits, changes the state.
    pub(crate) fn form(&self, state: &Bucket, now: Timestamp, cost: u64) -> Form {
        match self {
            Self::TokenBucket(_) | Self::Window(_) if self.is_idle(state, now) => Form::Restart,
            Self::Window(window) if !window.continues(state.tat, now) => Form::Anew,
            Self::Log(log) if !log.has_room(state.tat, cost) => Form::Anew,
            Self::TokenBucket(_) | Self::Window(_) | Self::Log(_) => Form::Add,
        }
    }

    /// Whole tokens that calls may still cost, debt included, that cost more than was thought.
    pub(crate) fn room(&self, state: &Bucket, now: Timestamp) -> u64 {
        match self {
            Self::TokenBucket(bucket) => bucket.room(state.tat, now),
            Self::Window(window) => window.room_with_debt(state.tat, now),
            Self::Log(log) => log.remaining(&state.entries, now),
        }
    }

    /// What a state must be like for a charge at `now` to be added to it, as far as is known from one that was seen; `None` if
    /// there is no such state.
    pub(crate) fn busy(&self, seen: Option<Ticks>, now: Timestamp, demand: Demand) -> Option<Check> {
        match self {
            Self::TokenBucket(bucket) => {
                let start = bucket.at(now);
                let ceil = start + bucket.reach(demand);
                (start <= ceil).then_some(Check::TatBetween(start, ceil))
            }
            Self::Window(window) => window.busy(seen, now, demand).map(|(from, to)| Check::TatBetween(from, to)),
            // Entries that are no longer live count: the integer does not tell them apart. It has no floor.
            Self::Log(log) => {
                let most = log.most().checked_sub(demand.cost)?;
                Some(Check::TatAtMost(Ticks(i128::from(most))))
            }
        }
    }

    /// Whether a state of these figures can be moved to `other` and back without losing anything: buckets always, windows if
    /// they are the same stretches of time, counted the same way, logs if their windows are of one length.
    ///
    /// Else a move between two plans could be farmed: what was counted in a day would be forgotten at the end of the hour that it
    /// was moved to, and the day be counted anew after moving back.
    #[must_use]
    pub fn shares_state_with(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::TokenBucket(_), Self::TokenBucket(_)) => true,
            (Self::Window(a), Self::Window(b)) => a.span() == b.span() && a.is_sliding() == b.is_sliding(),
            (Self::Log(a), Self::Log(b)) => a.window_ns() == b.window_ns(),
            _ => false,
        }
    }

    /// What of a charge may be given back of `found`, if the slot of a token bucket's starts at `start`.
    pub(crate) fn unused(&self, found: Ticks, start: Ticks, inc: Ticks, now: Timestamp) -> Ticks {
        match self {
            Self::TokenBucket(bucket) => (start + inc - start.max(bucket.at(now))).clamp(Ticks(0), inc),
            // Of a window that is still counted in, all of it: a call that did not go through is none.
            Self::Window(window) if window.continues(found, now) => inc,
            // Of a log, entries are taken out, not time.
            Self::Window(_) | Self::Log(_) => Ticks(0),
        }
    }

    /// What is missing at `now`, rounded up.
    fn used(&self, state: &State, now: Timestamp) -> i128 {
        match self {
            Self::TokenBucket(bucket) => {
                mul_div_ceil((state.tat - bucket.at(now)).0.max(0), 1, i128::from(bucket.period()))
            }
            Self::Window(window) => i128::from(window.used(state.tat, now)),
            Self::Log(log) => i128::from(log.used(&state.entries, now)),
        }
    }

    /// The state in which `used` is missing at `now`.
    fn with_used(&self, used: i128, now: Timestamp) -> State {
        match self {
            Self::TokenBucket(bucket) => {
                let debt = Ticks(used.max(0).saturating_mul(i128::from(bucket.period())));
                (bucket.at(now) + debt).into()
            }
            Self::Window(window) => window.with_used(u64::try_from(used).unwrap_or(u64::MAX), now).into(),
            Self::Log(_) => logged(Log::with_used(u64::try_from(used).unwrap_or(u64::MAX), now)),
        }
    }

    /// The state under these figures of what `found` counts as `state`, rounded up, with the debt as `rule` says; unclamped
    /// and in tokens without one, or in time where calls were told to go by it, or still are to go by it (`leased`). A log knows what
    /// happened, and keeps it.
    pub(crate) fn carry(
        &self,
        found: &Self,
        state: &State,
        now: Timestamp,
        (rule, leased): (Option<OnChange>, bool),
    ) -> State {
        let carried = match rule {
            Some(OnChange::Reset) => self.fresh(now).into(),
            rule => self.carry_debt(found, state, now, (rule, leased)),
        };
        match (self, found) {
            (Self::Log(_), _) | (_, Self::Log(_)) => carried,
            // What is reserved is still to be settled.
            _ => State { entries: state.entries.clone(), ..carried },
        }
    }

    fn carry_debt(
        &self,
        found: &Self,
        state: &State,
        now: Timestamp,
        (rule, leased): (Option<OnChange>, bool),
    ) -> State {
        let tat = state.tat;
        let (most, old_most) = (i128::from(self.most()), i128::from(found.most()));
        let moved = |used: i128| match rule {
            Some(OnChange::Proportional) => mul_div_ceil(used, most, old_most),
            Some(_) => used.min(most),
            None => used,
        };
        match (self, found) {
            (Self::TokenBucket(new), Self::TokenBucket(old)) if rule.is_none() && (leased || old.delay().is_some()) => {
                new.at(now).max(Ticks(mul_div_ceil(tat.0, i128::from(new.n()), i128::from(old.n())))).into()
            }
            (Self::TokenBucket(new), Self::TokenBucket(old)) => {
                let debt = (tat - old.at(now)).0.max(0);
                let tokens = || mul_div_ceil(debt, i128::from(new.period()), i128::from(old.period()));
                let moved = Ticks(match rule {
                    Some(OnChange::Proportional) => mul_div_ceil(debt, new.window().0, old.window().0),
                    Some(_) => tokens().min(new.window().0),
                    None => tokens(),
                });
                (new.at(now) + moved).into()
            }
            (Self::Window(window), Self::Window(_)) if self.shares_state_with(found) => {
                let moved = |count| u64::try_from(moved(i128::from(count))).unwrap_or(u64::MAX);
                window.recounted(tat, now, moved).into()
            }
            (Self::Log(log), Self::Log(_)) => logged(log.live(&state.entries, now)),
            _ => self.with_used(moved(found.used(state, now)), now),
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let bucket = || {
            let (figures, delay) = text.split_once('~').map_or((text, None), |(figures, delay)| (figures, Some(delay)));
            let (figures, debt) = with_debt(figures);
            let mut parts = figures.splitn(3, '/').map(str::parse);
            let mut figure = || parts.next()?.ok();
            let bucket = TokenBucket::new(figure()?, figure()?, figure()?).ok()?;
            let bucket = debt.map_or(Some(bucket), |debt| bucket.with_debt(debt.parse().ok()?).ok())?;
            delay.map_or(Some(bucket), |delay| Some(bucket.paced(delay.parse().ok()?)))
        };
        let window = || Window::parse(text).map(Self::Window);
        bucket().map(Self::TokenBucket).or_else(window).or_else(|| Log::parse(text).map(Self::Log))
    }
}

/// The state of a log with these entries.
fn logged(entries: Entries) -> State {
    State { tat: Ticks(i128::from(entries.cost())), entries }
}

/// `n/period/burst` in nanoseconds, with debt `n/period/burst+debt`, of a pacer `n/period/burst~delay`, or as a [`Window`] or a [`Log`] writes itself: three parts
/// always.
impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TokenBucket(bucket) => {
                write!(f, "{}/{}/{}", bucket.n(), bucket.period(), bucket.burst())?;
                if bucket.debt() > 0 {
                    write!(f, "+{}", bucket.debt())?;
                }
                bucket.delay().map_or(Ok(()), |delay| write!(f, "~{delay}"))
            }
            Self::Window(window) => window.fmt(f),
            Self::Log(log) => log.fmt(f),
        }
    }
}
