//! What is remembered of a key: a bucket a limit, and how long the whole must be kept.
//!
//! Invariant: whether a limit has state is judged by its own attributes, never by `expires_at`; an item that the table
//! has not deleted yet and one that it has read the same.

use crate::charge::LimitName;
use crate::entry::Entries;
use crate::error::{Error, Result};
use crate::figures::{Figures, State};
use crate::hold::Hold;
use crate::log::Log;
use crate::penalty::Penalty;
use crate::terms::Terms;
use crate::time::Timestamp;
use crate::token_bucket::{Ticks, TokenBucket};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// `b`: a stretch of time in which `tat` was moved by charges and refunds only. Stored as `since.id`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BusyPeriod {
    /// The instant that its first `tat` was reckoned at.
    ///
    /// A later change of terms reckons debt at no earlier instant, whatever the clock of the caller says. Otherwise two
    /// callers whose clocks differ could move a bucket between a fast and a slow plan, and each round trip would forgive
    /// what the fast plan refills in the difference.
    pub since: Timestamp,
    /// Random, so that no two busy periods of a bucket are taken for one.
    pub id: u64,
}

impl fmt::Display for BusyPeriod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.since.as_nanos(), self.id)
    }
}

impl FromStr for BusyPeriod {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parse = || {
            let (since, id) = text.split_once('.')?;
            Some(Self { since: Timestamp::from_nanos(since.parse().ok()?), id: id.parse().ok()? })
        };
        // Only the form that `Display` writes is accepted: conditions compare `b` as text.
        parse()
            .filter(|period| period.to_string() == text)
            .ok_or_else(|| Error::Stored { attribute: "b".to_owned(), found: text.to_owned() })
    }
}

/// The stored state of one limit. In the table its attributes are `<limit>.tat`, `.f`, `.b`, `.g` and `.e`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Bucket {
    /// `tat`: the theoretical arrival time of a token bucket, in ticks of its rate; the counts of a window, packed; what the
    /// entries of a log cost.
    pub tat: Ticks,
    /// `f`: the terms that `tat` is counted under.
    pub terms: Terms,
    /// `b`: the busy period; renewed by every move of `tat` other than a charge and a refund.
    pub busy_period: BusyPeriod,
    /// `g`, gross: what `tat` would be had nothing been given back in this busy period. Charges raise both, refunds lower
    /// `tat` alone; so `g` tells whether anything was charged since it was seen, and `g - tat` what was refunded. It starts
    /// below `tat` by the debt beyond a whole bucket that a change of terms carried in.
    pub gross: Ticks,
    /// `e`: the entries of a log; of other limits, reservations. Within a busy period `tat` and `g` tell every change of a log's,
    /// since a charge raises `g`, and taking an entry out lowers `tat`.
    pub entries: Entries,
}

impl Bucket {
    /// A bucket that starts a new busy period with `state`.
    #[must_use]
    pub fn starting(terms: Terms, state: impl Into<State>, busy_period: BusyPeriod) -> Self {
        let State { tat, entries } = state.into();
        let gross = match terms.figures {
            Figures::TokenBucket(bucket) => tat.min(bucket.at(busy_period.since) + bucket.window()),
            Figures::Window(_) | Figures::Log(_) => tat,
        };
        Self { tat, terms, busy_period, gross, entries }
    }

    /// What figures read of it.
    #[must_use]
    pub fn state(&self) -> State {
        State { tat: self.tat, entries: self.entries.clone() }
    }

    /// Where the state is pulled back to if it lies further in the future than callers with agreeing clocks can have left it:
    /// a clock was wrong. `None` if it does not.
    #[must_use]
    pub fn pulled_back(&self, now: Timestamp) -> Option<State> {
        let with_tat = |tat| State { tat, entries: self.entries.clone() };
        match self.terms.figures {
            Figures::TokenBucket(bucket) => {
                let emptied = bucket.at(now) + bucket.window();
                let carried_in = (self.tat - self.gross).max(Ticks(0));
                let tolerance = bucket.span(TokenBucket::CLOCK_TOLERANCE_NS);
                let furthest = bucket.at(now) + bucket.furthest() + carried_in + tolerance;
                (self.tat > furthest).then(|| with_tat(emptied))
            }
            Figures::Window(window) => {
                (!window.is_plausible(self.tat, now)).then(|| with_tat(window.pulled_back(self.tat, now)))
            }
            Figures::Log(_) => {
                Log::pulled_back(&self.entries, now).map(|entries| State { entries, ..State::from(self.tat) })
            }
        }
    }

    /// Ticks given back in this busy period, less the debt beyond a whole bucket that it began with.
    #[must_use]
    pub fn refunded(&self) -> Ticks {
        self.gross - self.tat
    }

    /// Whether nothing is missing.
    #[must_use]
    pub fn is_full(&self, now: Timestamp) -> bool {
        self.terms.figures.reset_after(self, now).is_zero()
    }

    /// Whether forgetting the state changes no decision.
    #[must_use]
    pub fn is_idle(&self, now: Timestamp) -> bool {
        self.terms.figures.is_idle(self, now)
    }
}

/// The stored state of one key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Item {
    /// State by limit.
    pub buckets: BTreeMap<LimitName, Bucket>,
    /// `<limit>.p`: the last lock of each limit that has set one.
    pub penalties: BTreeMap<LimitName, Penalty>,
    /// `hold`: what an operator has set for the key: a ban, other figures.
    pub hold: Option<Hold>,
    /// `h`: the longest memory of the limits kept here, in seconds; it only grows.
    pub horizon: Option<u64>,
    /// `expires_at`: when the table may delete the item (DynamoDB TTL), epoch seconds.
    pub expires_at: Option<u64>,
}

impl Item {
    /// Whether the item is past its `expires_at` and reads as absent.
    #[must_use]
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|at| at < now.as_secs())
    }
}
