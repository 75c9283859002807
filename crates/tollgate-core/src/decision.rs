//! The answer to a charge. A denial is a value, never an error, and every limit's state is in it, not only the one that won.

use crate::charge::{Charge, Charges, LimitName, Mode};
use crate::hold::Hold;
use crate::key::Key;
use crate::terms::Terms;
use crate::time::Timestamp;
use std::cmp::Reverse;
use std::time::Duration;

/// What a limit said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// The cost fits.
    Allowed,
    /// The cost does not fit now; it will, after `retry_after`, if nobody else comes.
    Denied,
    /// The cost is above the burst and never fits.
    NeverFits,
}

impl Outcome {
    /// The name used in JSON, logs and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::NeverFits => "never_fits",
        }
    }
}

/// Where the answer came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Source {
    /// The store.
    Table,
    /// What this process saw of the key less than a second ago; such an answer is a denial.
    Cache,
    /// What this process was charged for ahead.
    Lease,
    /// The store could not answer, and this process decided by its share of the limit.
    Local,
    /// The store could not answer and the policy lets calls pass.
    Open,
    /// The store could not answer and the policy lets no call pass.
    Closed,
}

impl Source {
    /// The name used in JSON and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Cache => "cache",
            Self::Lease => "lease",
            Self::Local => "local",
            Self::Open => "open",
            Self::Closed => "closed",
        }
    }
}

/// What is in force for a key that a limit was decided by: set by an operator, or a penalty of the limit's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Held {
    /// A ban.
    Ban {
        /// When it ends.
        until: Timestamp,
    },
    /// Other figures for this key.
    Override {
        /// When they end.
        until: Timestamp,
    },
    /// The limit's lock: it has denied the key before.
    Penalty {
        /// When it ends.
        until: Timestamp,
    },
}

impl Held {
    /// What `hold` says of `limit` at `now`.
    #[must_use]
    pub fn of(hold: &Hold, limit: &LimitName, now: Timestamp) -> Option<Self> {
        let ban = hold.banned_until.map(|until| Self::Ban { until });
        let other = hold.overrides.get(limit).map(|o| Self::Override { until: o.until });
        let in_force = |held: &Self| match held {
            Self::Ban { until } | Self::Override { until } | Self::Penalty { until } => *until > now,
        };
        ban.filter(in_force).or(other.filter(in_force))
    }

    /// The name used in JSON and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ban { .. } => "ban",
            Self::Override { .. } => "override",
            Self::Penalty { .. } => "penalty",
        }
    }
}

/// One limit's part of a decision.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct LimitDecision {
    /// Who is counted.
    pub key: Key,
    /// Which limit.
    pub limit: LimitName,
    /// The terms that it was decided under: the caller's, newer ones that it found, or an operator's. Of [`Source::Local`] it was a
    /// share of these that was decided by. Of a shard those of the whole limit, as the caller or an operator says.
    pub terms: Terms,
    /// The cost that was asked for.
    pub cost: u64,
    /// Whether the limit denies.
    pub mode: Mode,
    /// What this limit said.
    pub outcome: Outcome,
    /// What is in force for the key that it was decided by.
    pub held: Option<Held>,
    /// Whole tokens left after the decision; of a limit that is divided, those of the shard that was asked: the whole has no fewer.
    pub remaining: u64,
    /// How long to wait until the cost fits; `None` unless denied.
    pub retry_after: Option<Duration>,
    /// How long to wait before the call may go, from [`Self::decided_at`]; of a cost of 0, how long the next call would have to.
    /// Zero unless the limit is a pacer and has room.
    pub starts_after: Duration,
    /// The instant that it was decided for, by the clock of the store.
    pub decided_at: Timestamp,
    /// Time until the next whole token; zero if full.
    pub next_token_after: Duration,
    /// Time until the bucket is full; zero if it is.
    pub reset_after: Duration,
    /// Where this part came from.
    pub source: Source,
}

impl LimitDecision {
    /// Whether this limit is in the way of the call.
    #[must_use]
    pub fn is_in_the_way(&self) -> bool {
        let denies = self.mode == Mode::Enforce || matches!(self.held, Some(Held::Ban { .. }));
        denies && self.outcome != Outcome::Allowed
    }

    /// What it said, as metrics and logs name it: of a limit that only reports `shadow_denied` and `shadow_never_fits`.
    #[must_use]
    pub fn said(&self) -> &'static str {
        let reports = self.mode == Mode::Shadow && !self.is_in_the_way();
        match self.outcome {
            Outcome::Denied if reports => "shadow_denied",
            Outcome::NeverFits if reports => "shadow_never_fits",
            said => said.as_str(),
        }
    }

    /// How much this limit matters to the caller beside others, the greatest the most: whether it is in the way, how long it
    /// has to be waited for (without end, if the cost never fits), how long a pacer keeps the call, how little is left.
    #[must_use]
    pub fn urgency(&self) -> impl Ord + use<> {
        let is_in_the_way = self.is_in_the_way();
        let wait = match self.outcome {
            Outcome::NeverFits => Some(Duration::MAX),
            Outcome::Allowed | Outcome::Denied => self.retry_after,
        };
        (is_in_the_way, wait, self.starts_after, Reverse(self.remaining))
    }
}

/// A limit that was not decided on: the call passed without it, or was denied by another before it was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unasked {
    /// Who would have been counted.
    pub key: Key,
    /// What would have been charged.
    pub charge: Charge,
    /// Why there is no answer: [`Source::Open`] or [`Source::Closed`] if the store gave none, [`Source::Local`] if it gave none and
    /// its share was not asked, [`Source::Cache`] if the store was not asked.
    pub source: Source,
}

impl Unasked {
    /// The charges of one item, without an answer.
    pub fn of(charges: &Charges, source: Source) -> impl Iterator<Item = Self> {
        charges.charges().iter().map(move |charge| Self { key: charges.key().clone(), charge: charge.clone(), source })
    }

    /// A cost above the burst does not fit, store or not.
    #[must_use]
    pub fn never_fits(&self) -> bool {
        self.source == Source::Open
            && self.charge.mode == Mode::Enforce
            && self.charge.cost > self.charge.terms.figures.most()
    }

    /// What became of the call on it, as metrics and logs name it; `None` if it said nothing, since another was known to deny.
    #[must_use]
    pub fn said(&self) -> Option<&'static str> {
        let said = if self.never_fits() { Outcome::NeverFits.as_str() } else { self.source.as_str() };
        (self.source != Source::Cache).then_some(said)
    }
}

/// The answer to one decision: allowed only if every limit allows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Decision {
    /// What each limit said, in the order of the charges. Of a denial nothing is charged, to any of them.
    pub limits: Vec<LimitDecision>,
    /// Limits that were not decided on.
    pub unasked: Vec<Unasked>,
}

impl Decision {
    /// A decision of these limits.
    #[must_use]
    pub fn new(limits: Vec<LimitDecision>) -> Self {
        Self { limits, unasked: Vec::new() }
    }

    /// Adds the decision on other items to this one.
    pub fn extend(&mut self, other: Self) {
        self.limits.extend(other.limits);
        self.unasked.extend(other.unasked);
    }

    /// Whether there are limits, and each has counted the call where all processes count: for what nobody may do while nobody counts it,
    /// whatever the policy says of a store that gives no answer.
    #[must_use]
    pub fn is_counted(&self) -> bool {
        let by_all = |limit: &LimitDecision| matches!(limit.source, Source::Table | Source::Lease);
        self.unasked.is_empty() && !self.limits.is_empty() && self.limits.iter().all(by_all)
    }

    /// Whether the call may go on.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        self.outcome() == Outcome::Allowed
    }

    /// The outcome of the whole: a cost that never fits outweighs one that has to wait.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        let has = |outcome| self.limits.iter().any(|l| l.is_in_the_way() && l.outcome == outcome);
        if has(Outcome::NeverFits) || self.unasked.iter().any(Unasked::never_fits) {
            Outcome::NeverFits
        } else if has(Outcome::Denied) {
            Outcome::Denied
        } else {
            Outcome::Allowed
        }
    }

    /// How long to wait before the call may go, from when it was decided: for the slowest of the pacers that it was charged
    /// on. Limits that only report keep nobody waiting.
    #[must_use]
    pub fn starts_after(&self) -> Duration {
        self.pacing().map(|l| l.starts_after).max().unwrap_or_default()
    }

    /// The instant, by the clock of the store, before which the call may not go; `None` if it may go when it likes.
    #[must_use]
    pub fn starts_at(&self) -> Option<Timestamp> {
        self.pacing().map(|l| l.decided_at + l.starts_after).max()
    }

    /// The limits that keep an admitted call waiting.
    fn pacing(&self) -> impl Iterator<Item = &LimitDecision> {
        // Of a cost of 0 it is told when the next call would go.
        let keeps_waiting = |l: &&LimitDecision| l.mode == Mode::Enforce && !l.starts_after.is_zero();
        let allowed = self.is_allowed();
        self.limits.iter().filter(move |_| allowed).filter(keeps_waiting)
    }

    /// The longest wait among the limits that denied; `None` if allowed or if waiting does not help.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self.outcome() {
            Outcome::Denied => self.limits.iter().filter(|l| l.is_in_the_way()).filter_map(|l| l.retry_after).max(),
            Outcome::Allowed | Outcome::NeverFits => None,
        }
    }
}
