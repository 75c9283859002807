//! The terms a bucket is kept under, and how its debt moves to other terms without letting anyone farm the move.
//!
//! A stored bucket names its terms in its fingerprint `f`; a caller whose terms differ never adds to it blindly.
//! Invariant: moving debt between two plans of one revision, in any order and as often as one likes, never admits more
//! than `max burst + max rate * time`. That holds only if debt is carried in tokens, rounded up, unclamped (resetting,
//! clamping or scaling it can be farmed by alternating a stale and a fresh token).

use crate::error::{Error, Result};
use crate::figures::{Figures, State};
use crate::time::Timestamp;
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
/// The text form, stored as `f`, is `revision/n/period/burst/plan` with the reduced rate, `revision*` where processes lease; where an
/// operator's override stands in place of these figures, its own come first: `n/period/burst!revision/n/period/burst/plan`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Terms {
    /// The policy's `revision`, at least 1.
    pub revision: u64,
    /// The plan that the figures are of; empty if the limit has one set of figures for everybody.
    pub plan: Arc<str>,
    /// The figures that count.
    pub figures: Figures,
    /// The policy's figures, if those that count are an operator's override.
    ///
    /// A bucket must not forget them, or the revision that they are of. A caller that still has an older revision would
    /// else find nothing newer when the override has ended, and count the debt by its own figures: if the newer revision
    /// had left half of it to a burst half as large, what that forgave could be spent again.
    pub in_place_of: Option<Figures>,
    /// Whether processes take tokens ahead and spend them by themselves ([`lease`](crate::lease)). Nobody then moves the slots of
    /// tokens that a process may still have.
    pub leased: bool,
}

impl Terms {
    /// Terms of a limit without plans.
    #[must_use]
    pub fn new(revision: u64, figures: impl Into<Figures>) -> Self {
        Self { revision, plan: Arc::from(""), figures: figures.into(), in_place_of: None, leased: false }
    }

    /// The same, of a plan.
    #[must_use]
    pub fn on_plan(self, plan: impl Into<Arc<str>>) -> Self {
        Self { plan: plan.into(), ..self }
    }

    /// The same, of a limit that processes lease.
    #[must_use]
    pub fn leased(self) -> Self {
        Self { leased: true, ..self }
    }

    /// The terms of an operator's override that stands in place of these, whatever plan its callers are on. Nobody takes ahead of it, so
    /// that its debt moves in tokens when it ends: an instant under slow figures would lock the key for long.
    #[must_use]
    pub fn overridden_by(&self, figures: impl Into<Figures>) -> Self {
        let policy = self.policy();
        Self { figures: figures.into(), in_place_of: Some(policy.figures), leased: false, ..policy }
    }

    /// The terms of the policy, that an override may stand in place of.
    #[must_use]
    pub fn policy(&self) -> Self {
        Self { figures: self.in_place_of.unwrap_or(self.figures), in_place_of: None, ..self.clone() }
    }

    /// Whether an operator's override set the figures that count.
    #[must_use]
    pub fn is_override(&self) -> bool {
        self.in_place_of.is_some()
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

    /// The terms that a caller under these goes by where a bucket is kept under `found` and an operator's override is in
    /// force or not: where none is and none was, its own.
    ///
    /// An override stands in place of whatever was found, so that callers of several plans and revisions agree on it. When
    /// it has ended, the bucket goes to its caller's terms, or to the policy's that were found if those are newer.
    #[must_use]
    pub fn beside(&self, found: Option<&Self>, overridden_by: Option<Figures>) -> Self {
        match (overridden_by, found) {
            (Some(figures), found) => found.unwrap_or(self).overridden_by(figures),
            (None, Some(found)) if found.is_override() && found.revision > self.revision => found.policy(),
            (None, _) => self.clone(),
        }
    }

    /// The state, under these terms, of debt that `found` counts as `state`. Rounded up.
    #[must_use]
    pub fn carry(&self, found: &Self, state: impl Into<State>, now: Timestamp, rule: OnChange) -> State {
        let rule = (self.standing(found) == Standing::CallerIsNewer).then_some(rule);
        self.figures.carry(&found.figures, &state.into(), now, (rule, found.leased))
    }
}

impl fmt::Display for Terms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let policy = self.in_place_of.as_ref().unwrap_or(&self.figures);
        if self.is_override() {
            write!(f, "{}!", self.figures)?;
        }
        let leased = if self.leased { "*" } else { "" };
        write!(f, "{}{leased}/{policy}/{}", self.revision, self.plan)
    }
}

impl FromStr for Terms {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        // A plan may have any character, but three figures and no more stand before it only where there is an override.
        let (over, policy) = match text.split_once('!').map(|(over, policy)| (Figures::parse(over), policy)) {
            Some((Some(over), policy)) => (Some(over), policy),
            _ => (None, text),
        };
        let parse = || {
            let (revision, rest) = policy.split_once('/')?;
            let (slash, _) = rest.match_indices('/').nth(2)?;
            let (revision, leased) = revision.strip_suffix('*').map_or((revision, false), |revision| (revision, true));
            let terms = Self::new(revision.parse().ok()?, Figures::parse(&rest[..slash])?).on_plan(&rest[slash + 1..]);
            let terms = Self { leased, ..terms };
            Some(over.map_or_else(|| terms.clone(), |figures| terms.overridden_by(figures)))
        };
        // Only the form that `Display` writes is accepted: conditions compare `f` as text.
        parse()
            .filter(|terms| terms.to_string() == text)
            .ok_or_else(|| Error::Stored { attribute: "f".to_owned(), found: text.to_owned() })
    }
}
