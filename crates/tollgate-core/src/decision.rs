//! The answer to a charge. A denial is a value, never an error, and every limit's state is in it, not only the one that won.

use crate::charge::LimitName;
use crate::terms::Terms;
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

/// Where the answer came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Source {
    /// The store.
    Table,
    /// The store could not answer and the policy lets calls pass.
    Open,
}

impl Source {
    /// The name used in JSON and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Open => "open",
        }
    }
}

/// One limit's part of a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitDecision {
    /// Which limit.
    pub limit: LimitName,
    /// The terms that it was decided under: the caller's, or newer ones that it found.
    pub terms: Terms,
    /// The cost that was asked for.
    pub cost: u64,
    /// What this limit said.
    pub outcome: Outcome,
    /// Whole tokens left after the decision.
    pub remaining: u64,
    /// How long to wait until the cost fits; `None` unless denied.
    pub retry_after: Option<Duration>,
    /// Time until the next whole token; zero if full.
    pub next_token_after: Duration,
    /// Time until the bucket is full; zero if it is.
    pub reset_after: Duration,
}

/// The answer to one decision: allowed only if every limit allows.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decision {
    /// What each limit said, in the order of the charges. Of a denial nothing is charged, to any of them.
    pub limits: Vec<LimitDecision>,
    /// Where the answer came from.
    pub source: Source,
}

impl Decision {
    /// A decision of these limits.
    #[must_use]
    pub fn new(limits: Vec<LimitDecision>, source: Source) -> Self {
        Self { limits, source }
    }

    /// Whether the call may go on.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        self.outcome() == Outcome::Allowed
    }

    /// The outcome of the whole: a cost that never fits outweighs one that has to wait.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        let has = |outcome| self.limits.iter().any(|l| l.outcome == outcome);
        if has(Outcome::NeverFits) {
            Outcome::NeverFits
        } else if has(Outcome::Denied) {
            Outcome::Denied
        } else {
            Outcome::Allowed
        }
    }

    /// The longest wait among the limits that denied; `None` if allowed or if waiting does not help.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self.outcome() {
            Outcome::Denied => self.limits.iter().filter_map(|l| l.retry_after).max(),
            Outcome::Allowed | Outcome::NeverFits => None,
        }
    }
}
