//! The figures of one limit in one decision, as answers tell them. Invariant: limits that are hidden, only report, or were
//! decided by a ban are not among them, each other one is once, and what is left is never more than the quota.

use crate::wait;
use std::time::Duration;
use tollgate_core::{Decision, Held, Key, LimitDecision, Mode};
use tollgate_policy::{Limit, Policy};

/// Whether a ban is in the way. Then the caller learns how long it lasts, and nothing of any limit: neither would help.
pub(crate) fn is_banned(decision: &Decision) -> bool {
    decision.limits.iter().any(|limit| limit.is_in_the_way() && is_by_ban(limit))
}

fn is_by_ban(decision: &LimitDecision) -> bool {
    matches!(decision.held, Some(Held::Ban { .. }))
}

/// A visible limit and its part of a decision.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quota<'a> {
    pub(crate) limit: &'a Limit,
    decision: &'a LimitDecision,
    plan: Option<&'a str>,
}

impl<'a> Quota<'a> {
    /// The visible limits of a decision, in its order; none under a ban.
    pub(crate) fn visible(decision: &'a Decision, policy: &'a Policy, plan: Option<&'a str>) -> Vec<Self> {
        let shown = if is_banned(decision) { &[] } else { decision.limits.as_slice() };
        Self::each_once(shown, policy, plan)
    }

    /// The visible ones of `limits`, in their order; of one that was charged on several keys the most urgent.
    pub(crate) fn each_once(
        limits: impl IntoIterator<Item = &'a LimitDecision>,
        policy: &'a Policy,
        plan: Option<&'a str>,
    ) -> Vec<Self> {
        let mut quotas: Vec<Self> = Vec::new();
        for quota in limits.into_iter().filter_map(|decision| Self::of(decision, policy, plan)) {
            match quotas.iter_mut().find(|known| known.name() == quota.name()) {
                Some(known) if quota.decision.urgency() > known.decision.urgency() => *known = quota,
                Some(_) => {}
                None => quotas.push(quota),
            }
        }
        quotas
    }

    /// The quota of a limit; `None` if answers keep quiet about it, or the policy does not have it.
    pub(crate) fn of(decision: &'a LimitDecision, policy: &'a Policy, plan: Option<&'a str>) -> Option<Self> {
        let is_quiet = decision.mode == Mode::Shadow || is_by_ban(decision);
        let limit = policy.limit(decision.limit.as_str()).ok().filter(|limit| !limit.is_hidden() && !is_quiet)?;
        Some(Self { limit, decision, plan })
    }

    /// Who is counted.
    pub(crate) fn key(&self) -> &'a Key {
        &self.decision.key
    }

    /// The limit's name.
    pub(crate) fn name(&self) -> &'a str {
        self.decision.limit.as_str()
    }

    /// Tokens and period: as declared; where another revision or plan was found on the key, its figures, of a bucket over the declared
    /// period if they come out whole (10 an hour and not 1 in 6 minutes), else in lowest terms.
    fn rate(&self) -> (u64, Duration) {
        let figures = self.limit.figures(self.plan);
        let decided = self.decision.terms.figures;
        if figures.core() == decided {
            return (figures.n(), figures.period());
        }
        let declared = figures.period().as_nanos();
        let (n, decided_ns) = decided.rate();
        if decided.token_bucket().is_none() {
            // So many in a window are not as many parts of it in parts of the window.
            return (n, Duration::from_nanos(decided_ns));
        }
        let (tokens, period) = (u128::from(n) * declared, u128::from(decided_ns));
        let whole = tokens.is_multiple_of(period).then(|| tokens / period);
        match whole.and_then(|n| u64::try_from(n).ok()).filter(|n| *n > 0) {
            Some(n) => (n, figures.period()),
            None => (n, Duration::from_nanos(decided_ns)),
        }
    }

    /// Tokens a window.
    pub(crate) fn quota(&self) -> u64 {
        self.rate().0
    }

    /// The window in seconds, rounded up.
    pub(crate) fn window(&self) -> u64 {
        wait::seconds(self.rate().1).max(1)
    }

    /// Tokens left, at most the quota (a burst can be larger).
    pub(crate) fn remaining(&self) -> u64 {
        self.decision.remaining.min(self.quota())
    }

    /// Seconds to the next token, rounded up; 0 if none is missing.
    pub(crate) fn next(&self) -> u64 {
        wait::seconds(self.decision.next_token_after)
    }

    /// Seconds until nothing is missing, rounded up.
    pub(crate) fn reset(&self) -> u64 {
        wait::seconds(self.decision.reset_after)
    }

    /// The burst as the policy writes it.
    pub(crate) fn burst(&self) -> u64 {
        self.decision.terms.figures.burst()
    }

    /// The rate as the policy writes it, like `50/h`, or in its manner.
    pub(crate) fn rate_text(&self) -> String {
        let figures = self.limit.figures(self.plan);
        if figures.core() == self.decision.terms.figures {
            figures.rate().to_owned()
        } else {
            format!("{}/{}s", self.quota(), self.window())
        }
    }
}
