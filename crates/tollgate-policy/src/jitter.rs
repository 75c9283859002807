//! Waits as they are told: the true one and something more, so that a crowd that was denied at once does not return at once.
//!
//! Invariant: never less than the true wait, and what was decided stays as it is.

use crate::policy::Policy;
use std::time::Duration;
use tollgate_core::Decision;

impl Policy {
    /// The decision with the waits that are told: of a limit in the way that has a `retry_jitter`, the true one and what `random`
    /// takes from zero to that.
    #[must_use]
    pub fn jittered(&self, mut decision: Decision, mut random: impl FnMut(Duration) -> Duration) -> Decision {
        for limit in decision.limits.iter_mut().filter(|limit| limit.is_in_the_way()) {
            let most = self.limit(limit.limit.as_str()).map_or(Duration::ZERO, crate::Limit::retry_jitter);
            let Some(wait) = limit.retry_after.filter(|_| !most.is_zero()) else { continue };
            let more = random(most).min(most);
            limit.retry_after = Some(wait + more);
            limit.next_token_after += more;
        }
        decision
    }
}

/// Any time from zero to `most`, both included, each as likely as the others: to the nanosecond.
#[must_use]
pub fn up_to(most: Duration) -> Duration {
    Duration::from_nanos(fastrand::u64(..=u64::try_from(most.as_nanos()).unwrap_or(u64::MAX)))
}
