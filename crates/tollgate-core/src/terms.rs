//! The terms a bucket is kept under, and how its debt moves to other terms without letting anyone farm the move.
//!
//! A stored bucket names its terms in its fingerprint `f`; a caller whose terms differ never adds to it blindly.
//! Invariant: moving debt between two plans of one revision, in any order and as often as one likes, never admits more
//! than `max burst + max rate * time`. That holds only if debt is carried in tokens, rounded up, unclamped (resetting,
//! clamping or scaling it can be farmed by alternating a stale and a fresh token).

use crate::error::{Error, Result};
use crate::time::Timestamp;
use crate::token_bucket::{Ticks, TokenBucket};
use crate::wide::mul_div_ceil;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// What a newer policy revision does with the debt of a bucket that an older one left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum OnChange {
    /// Debt stays the same share of the burst: a half-empty bucket stays half empty.
    #[default]
    Proportional,
    /// Debt is forgiven: the bucket starts full.
    Reset,
    /// Debt stays the same number of tokens, at most the new burst.
    Keep,
}

/// Whose figures a caller and a stored bucket should go by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Same terms: nothing to do.
    Same,
    /// The caller's revision is newer: debt moves by the limit's [`OnChange`].
    CallerIsNewer,
    /// The caller's revision is older: it follows the figures that it found.
    CallerIsOlder,
    /// Same revision, other plan (a stale token beside a fresh one): debt moves in tokens.
    OtherPlan,
    /// Same revision and plan, other figures: somebody changed figures without raising `revision`. Moves like
    /// [`Standing::OtherPlan`] and is counted as RevisionConflict.
    RevisionConflict,
    /// An operator's override began or ended. Moves like [`Standing::OtherPlan`], whatever the revisions.
    Override,
}

/// The figures of a limit together with where they come from: policy revision and plan.
///
/// The text form, stored as `f`, is `revision/n/period/burst/plan` with the reduced rate.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Terms {
    /// The policy's `revision`, at least 1; [`Terms::OVERRIDE_REVISION`] if an operator set the figures.
    pub revision: u64,
    /// The plan that the figures are of; empty if the limit has one set of figures for everybody.
    pub plan: Arc<str>,
    /// The figures.
    pub bucket: TokenBucket,
}

impl Terms {
    /// The revision of an override's terms; a policy's is 1 at least.
    pub const OVERRIDE_REVISION: u64 = 0;

    /// Terms of a limit without plans.
    #[must_use]
    pub fn new(revision: u64, bucket: TokenBucket) -> Self {
        Self { revision, plan: Arc::from(""), bucket }
    }

    /// Terms that an operator's override sets for one key, whatever revision and plan its callers have.
    #[must_use]
    pub fn of_override(bucket: TokenBucket) -> Self {
        Self::new(Self::OVERRIDE_REVISION, bucket)
    }

    /// Whether an operator's override set these terms.
    #[must_use]
    pub fn is_override(&self) -> bool {
        self.revision == Self::OVERRIDE_REVISION
    }

    /// How a caller under these terms stands to a bucket kept under `found`.
    #[must_use]
    pub fn standing(&self, found: &Self) -> Standing {
        if self == found {
            return Standing::Same;
        }
        if self.is_override() || found.is_override() {
            return Standing::Override;
        }
        match self.revision.cmp(&found.revision) {
            std::cmp::Ordering::Greater => Standing::CallerIsNewer,
            std::cmp::Ordering::Less => Standing::CallerIsOlder,
            std::cmp::Ordering::Equal if self.plan == found.plan => Standing::RevisionConflict,
            std::cmp::Ordering::Equal => Standing::OtherPlan,
        }
    }

    /// The theoretical arrival time, in this bucket's ticks, of debt that `found` counts as `tat`. Rounded up.
    #[must_use]
    pub fn carry(&self, found: &Self, tat: Ticks, now: Timestamp, rule: OnChange) -> Ticks {
        let debt = (tat - found.bucket.at(now)).0.max(0);
        let (old, new) = (&found.bucket, &self.bucket);
        let tokens = || mul_div_ceil(debt, i128::from(new.period()), i128::from(old.period()));
        let carried = match (self.standing(found), rule) {
            (Standing::Same, _) => debt,
            (Standing::CallerIsNewer, OnChange::Reset) => 0,
            (Standing::CallerIsNewer, OnChange::Keep) => tokens().min(new.window().0),
            (Standing::CallerIsNewer, OnChange::Proportional) => mul_div_ceil(debt, new.window().0, old.window().0),
            (Standing::CallerIsOlder | Standing::OtherPlan | Standing::RevisionConflict | Standing::Override, _) => {
                tokens()
            }
        };
        new.at(now) + Ticks(carried)
    }
}

impl fmt::Display for Terms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}/{}/{}/{}/{}",
            self.revision,
            self.bucket.n(),
            self.bucket.period(),
            self.bucket.burst(),
            self.plan
        )
    }
}

impl FromStr for Terms {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parse = || {
            let mut parts = text.splitn(5, '/');
            let mut figure = || parts.next()?.parse::<u64>().ok();
            let (revision, n, period, burst) = (figure()?, figure()?, figure()?, figure()?);
            let plan = Arc::from(parts.next()?);
            Some(Self { revision, plan, bucket: TokenBucket::new(n, period, burst).ok()? })
        };
        // Only the form that `Display` writes is accepted: conditions compare `f` as text.
        parse()
            .filter(|terms| terms.to_string() == text)
            .ok_or_else(|| Error::Stored { attribute: "f".to_owned(), found: text.to_owned() })
    }
}
