//! The figures of a limit, whichever algorithm it counts by; what the protocol asks of an algorithm.
//!
//! Every algorithm keeps its state in one integer that a charge adds to, so that the conditional writes are the same for
//! all: a commutative add below a ceiling where the state is known, a fresh start where it is as good as forgotten, and an
//! exact replacement for the rest. Invariant: within one busy period a state only grows, refunds apart.

use crate::pacer::Demand;
use crate::terms::OnChange;
use crate::time::Timestamp;
use crate::token_bucket::{Ticks, TokenBucket, Verdict};
use crate::wide::mul_div_ceil;
use crate::window::Window;
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

impl Figures {
    /// The token bucket, if it is one; a pacer is one, too.
    #[must_use]
    pub const fn token_bucket(&self) -> Option<TokenBucket> {
        match self {
            Self::TokenBucket(bucket) => Some(*bucket),
            Self::Window(_) => None,
        }
    }

    /// Most that is admitted at once: the burst, or what a window admits. A cost above it never fits.
    #[must_use]
    pub const fn most(&self) -> u64 {
        match self {
            Self::TokenBucket(bucket) => bucket.burst(),
            Self::Window(window) => window.most(),
        }
    }

    /// What is admitted in the long run: so many every so many nanoseconds, in lowest terms for a token bucket.
    #[must_use]
    pub const fn rate(&self) -> (u64, u64) {
        match self {
            Self::TokenBucket(bucket) => (bucket.n(), bucket.period()),
            Self::Window(window) => (window.most(), window.length_ns()),
        }
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
    pub fn take(&self, state: Option<Ticks>, now: Timestamp, demand: impl Into<Demand>) -> Verdict {
        let demand = demand.into();
        match self {
            Self::TokenBucket(bucket) => bucket.take(state, now, demand),
            Self::Window(window) => window.take(state, now, demand.cost),
        }
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
    pub fn remaining(&self, state: Option<Ticks>, now: Timestamp) -> u64 {
        match self {
            Self::TokenBucket(bucket) => bucket.remaining(state, now),
            Self::Window(window) => window.remaining(state, now),
        }
    }

    /// Time until nothing is missing; zero if nothing is.
    #[must_use]
    pub fn reset_after(&self, state: Option<Ticks>, now: Timestamp) -> Duration {
        match self {
            Self::TokenBucket(bucket) => bucket.reset_after(state, now),
            Self::Window(window) => window.reset_after(state, now),
        }
    }

    /// Time until one more is left; zero if nothing is missing.
    #[must_use]
    pub fn next_after(&self, state: Option<Ticks>, now: Timestamp) -> Duration {
        match self {
            Self::TokenBucket(bucket) => bucket.next_token_after(state, now),
            Self::Window(window) => window.next_after(state, now),
        }
    }

    /// Seconds that a limit must be remembered for, so that forgetting it changes no decision.
    #[must_use]
    pub fn horizon_secs(&self) -> u64 {
        match self {
            Self::TokenBucket(bucket) => bucket.horizon_secs(),
            Self::Window(window) => window.horizon_secs(),
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
        }
    }

    /// The state of a limit of which nothing is missing, by every clock that agrees with the table's.
    #[must_use]
    pub fn full(&self, now: Timestamp) -> Ticks {
        match self {
            Self::TokenBucket(bucket) => bucket.at(now) - bucket.span(TokenBucket::CLOCK_TOLERANCE_NS),
            // Whose clock is behind counts in the window that it finds.
            Self::Window(window) => window.fresh(now),
        }
    }

    /// The state of a limit that nothing was charged to.
    pub(crate) fn fresh(&self, now: Timestamp) -> Ticks {
        match self {
            Self::TokenBucket(bucket) => bucket.at(now),
            Self::Window(window) => window.fresh(now),
        }
    }

    /// What a charge adds to the state.
    pub(crate) fn inc(&self, cost: u64) -> Ticks {
        match self {
            Self::TokenBucket(bucket) => bucket.inc(cost),
            Self::Window(_) => Ticks(i128::from(cost)),
        }
    }

    /// A state below this is as good as none at `now`.
    pub(crate) fn idle_below(&self, now: Timestamp) -> Ticks {
        match self {
            Self::TokenBucket(bucket) => bucket.at(now),
            Self::Window(window) => window.idle_below(now),
        }
    }

    /// Whether a charge at `now` may be added to a state that is not idle. If not, a new busy period begins with it.
    pub(crate) fn continues(&self, state: Ticks, now: Timestamp) -> bool {
        match self {
            Self::TokenBucket(_) => true,
            Self::Window(window) => window.continues(state, now),
        }
    }

    /// The states that a charge at `now` may be added to, the first and the last, as far as is known from a state
    /// that was seen; `None` if there are none.
    pub(crate) fn busy(&self, seen: Option<Ticks>, now: Timestamp, demand: Demand) -> Option<(Ticks, Ticks)> {
        match self {
            Self::TokenBucket(bucket) => {
                let start = bucket.at(now);
                Some((start, start + bucket.reach(demand))).filter(|(start, ceil)| start <= ceil)
            }
            Self::Window(window) => window.busy(seen, now, demand.cost),
        }
    }

    /// Whether a state of these figures can be moved to `other` and back without losing anything: buckets always, windows if
    /// they are the same stretches of time, counted the same way.
    ///
    /// Else a move between two plans could be farmed: what was counted in a day would be forgotten at the end of the hour that it
    /// was moved to, and the day be counted anew after moving back.
    #[must_use]
    pub fn shares_state_with(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::TokenBucket(_), Self::TokenBucket(_)) => true,
            (Self::Window(a), Self::Window(b)) => a.span() == b.span() && a.is_sliding() == b.is_sliding(),
            _ => false,
        }
    }

    /// What of a charge may be given back of `found`, if the slot of a token bucket's starts at `start`.
    pub(crate) fn unused(&self, found: Ticks, start: Ticks, inc: Ticks, now: Timestamp) -> Ticks {
        match self {
            Self::TokenBucket(bucket) => (start + inc - start.max(bucket.at(now))).clamp(Ticks(0), inc),
            // Of a window that is still counted in, all of it: a call that did not go through is none.
            Self::Window(window) if window.continues(found, now) => inc,
            Self::Window(_) => Ticks(0),
        }
    }

    /// What is missing at `now`, rounded up.
    fn used(&self, state: Ticks, now: Timestamp) -> i128 {
        match self {
            Self::TokenBucket(bucket) => {
                mul_div_ceil((state - bucket.at(now)).0.max(0), 1, i128::from(bucket.period()))
            }
            Self::Window(window) => i128::from(window.used(state, now)),
        }
    }

    /// The state in which `used` is missing at `now`.
    fn with_used(&self, used: i128, now: Timestamp) -> Ticks {
        match self {
            Self::TokenBucket(bucket) => {
                bucket.at(now) + Ticks(used.max(0).saturating_mul(i128::from(bucket.period())))
            }
            Self::Window(window) => window.with_used(u64::try_from(used).unwrap_or(u64::MAX), now),
        }
    }

    /// The state under these figures of what `found` counts as `state`, rounded up, with the debt as `rule` says; unclamped
    /// and in tokens without one, or in time where calls were told to go by it.
    pub(crate) fn carry(&self, found: &Self, state: Ticks, now: Timestamp, rule: Option<OnChange>) -> Ticks {
        if rule == Some(OnChange::Reset) {
            return self.fresh(now);
        }
        let (most, old_most) = (i128::from(self.most()), i128::from(found.most()));
        let moved = |used: i128| match rule {
            Some(OnChange::Proportional) => mul_div_ceil(used, most, old_most),
            Some(_) => used.min(most),
            None => used,
        };
        match (self, found) {
            (Self::TokenBucket(new), Self::TokenBucket(old)) if rule.is_none() && old.delay().is_some() => {
                new.at(now).max(Ticks(mul_div_ceil(state.0, i128::from(new.n()), i128::from(old.n()))))
            }
            (Self::TokenBucket(new), Self::TokenBucket(old)) => {
                let debt = (state - old.at(now)).0.max(0);
                let tokens = || mul_div_ceil(debt, i128::from(new.period()), i128::from(old.period()));
                new.at(now)
                    + Ticks(match rule {
                        Some(OnChange::Proportional) => mul_div_ceil(debt, new.window().0, old.window().0),
                        Some(_) => tokens().min(new.window().0),
                        None => tokens(),
                    })
            }
            (Self::Window(window), Self::Window(_)) if self.shares_state_with(found) => {
                window.recounted(state, now, |count| u64::try_from(moved(i128::from(count))).unwrap_or(u64::MAX))
            }
            _ => self.with_used(moved(found.used(state, now)), now),
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let bucket = || {
            let (figures, delay) = text.split_once('~').map_or((text, None), |(figures, delay)| (figures, Some(delay)));
            let mut parts = figures.splitn(3, '/').map(str::parse);
            let mut figure = || parts.next()?.ok();
            let bucket = TokenBucket::new(figure()?, figure()?, figure()?).ok()?;
            delay.map_or(Some(bucket), |delay| Some(bucket.paced(delay.parse().ok()?)))
        };
        bucket().map(Self::TokenBucket).or_else(|| Window::parse(text).map(Self::Window))
    }
}

/// `n/period/burst` in nanoseconds, of a pacer `n/period/burst~delay`, or as a [`Window`] writes itself: three parts always.
impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TokenBucket(bucket) => {
                write!(f, "{}/{}/{}", bucket.n(), bucket.period(), bucket.burst())?;
                bucket.delay().map_or(Ok(()), |delay| write!(f, "~{delay}"))
            }
            Self::Window(window) => window.fmt(f),
        }
    }
}
