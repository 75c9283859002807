//! The algorithms that a limit can count by, and the figures that each takes. Invariant: what a policy writes as a rate means
//! the same number of calls in the same time under each; only when they may come differs.

#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;
use crate::limit::Figures;
use crate::rate::{self, Problem, Rate};
use std::time::Duration;
use tollgate_core::{Log, Period, Span, TokenBucket, Window, Zone};

/// How a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Algorithm {
    /// Tokens that come back one by one, and a burst.
    #[default]
    TokenBucket,
    /// A count that starts anew with every period, counted from the Unix epoch.
    FixedWindow,
    /// A count that starts anew with every day or month of a time zone.
    Quota(Zone),
    /// The count of the period and what is left of the one before it, taken for evenly spread.
    SlidingWindow,
    /// Every call of the last period, with its instant: exact, and for small numbers, like wrong passwords.
    SlidingLog,
    /// Each call is told when it may go, so that they go at the rate; of the burst that may be ahead of its time, the first
    /// `delay` go at once, if there are as many.
    Pacer {
        /// How many.
        delay: u64,
    },
}

impl Algorithm {
    /// The name that a policy uses.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TokenBucket => "token-bucket",
            Self::FixedWindow => "fixed-window",
            Self::Quota(_) => "quota",
            Self::SlidingWindow => "sliding-window",
            Self::SlidingLog => "sliding-log",
            Self::Pacer { .. } => "pacer",
        }
    }

    /// The time zone of a quota.
    #[must_use]
    pub const fn zone(self) -> Option<Zone> {
        match self {
            Self::Quota(zone) => Some(zone),
            _ => None,
        }
    }

    /// The figures that a policy writes as `rate` and `burst`, without debt. A window has no burst; of a token bucket it is the number
    /// of the rate where nothing is said, of a pacer 0.
    ///
    /// # Errors
    ///
    /// [`Error::Notation`], or [`Error::Core`] for figures out of range.
    pub fn figures(self, rate: &str, burst: Option<u64>) -> Result<Figures> {
        if burst.is_some() && !self.has_burst() {
            return Err(self.no_burst().into());
        }
        Ok(self.build(rate, rate::parse(rate)?, burst, 0)??)
    }

    pub(crate) const fn has_burst(self) -> bool {
        matches!(self, Self::TokenBucket | Self::Pacer { .. })
    }

    /// Whether a call can leave debt that turns out to cost more: where what is owed is a number that time takes back.
    pub(crate) const fn has_debt(self) -> bool {
        !matches!(self, Self::SlidingLog | Self::Pacer { .. })
    }

    pub(crate) fn no_burst(self) -> Problem {
        let help = "remove the burst: a window admits what its rate says, at any instant within it";
        Problem::new(format!("a limit with `algorithm = \"{}\"` has no burst", self.as_str()), help)
    }

    /// Figures of a rate that was read; the outer error is a rate that the algorithm cannot have, the inner one a figure out
    /// of range.
    pub(crate) fn build(
        self,
        text: &str,
        rate: Rate,
        burst: Option<u64>,
        debt: u64,
    ) -> std::result::Result<tollgate_core::Result<Figures>, Problem> {
        let Rate { n, period_ns, calendar } = rate;
        if calendar == Some(Period::Month) && !matches!(self, Self::Quota(_)) {
            let message = "a rate per `month` needs `algorithm = \"quota\"`: other periods have a fixed length";
            return Err(Problem::new(
                message,
                "write `algorithm = \"quota\"`, or the period in days, like \"3000/30day\"",
            ));
        }
        let window = |span, sliding| Window::new(n, span, sliding)?.with_debt(debt).map(Into::into);
        let core: tollgate_core::Result<tollgate_core::Figures> = match self {
            Self::TokenBucket => TokenBucket::new(n, period_ns, burst.unwrap_or(n))
                .and_then(|bucket| bucket.with_debt(debt))
                .map(Into::into),
            Self::Pacer { delay } => {
                // One call is in time, and the burst is ahead of it.
                let most = burst.unwrap_or(0).saturating_add(1);
                TokenBucket::new(n, period_ns, most).map(|bucket| bucket.paced(delay).into())
            }
            Self::FixedWindow => window(Span::Every(period_ns), false),
            Self::SlidingWindow => window(Span::Every(period_ns), true),
            Self::SlidingLog => Log::new(n, period_ns).map(Into::into),
            Self::Quota(zone) => {
                let Some(period) = calendar else {
                    let message = format!("a quota is per day or month, not {text:?}");
                    let help = "write it like \"1000/day\" or \"100000/month\", or `algorithm = \"fixed-window\"`";
                    return Err(Problem::new(message, help));
                };
                window(Span::Calendar(period, zone), false)
            }
        };
        Ok(core.map(|core| Figures { rate: text.to_owned(), n, period: Duration::from_nanos(period_ns), core }))
    }
}
