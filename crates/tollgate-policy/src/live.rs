//! The policy in force, replaceable while it is being used.
//!
//! Invariant: whoever asks gets a whole, checked policy, the same for as long as it holds on to it.

use crate::policy::Policy;
use std::sync::{Arc, PoisonError, RwLock};

/// The policy in force. Clones share it.
#[derive(Debug, Clone)]
pub struct LivePolicy(Arc<RwLock<Arc<Policy>>>);

impl LivePolicy {
    /// Puts a policy in force.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(policy))))
    }

    /// The policy in force now.
    #[must_use]
    pub fn current(&self) -> Arc<Policy> {
        // A panic elsewhere cannot leave half a policy: an Arc is replaced whole.
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts another policy in force, for all clones. One without [`KeySecrets`](crate::KeySecrets) of its own goes on with
    /// those of the policy that it replaces.
    pub fn replace(&self, policy: Policy) {
        let mut current = self.0.write().unwrap_or_else(PoisonError::into_inner);
        *current = Arc::new(policy.or_secrets_of(&current));
    }
}

impl From<Policy> for LivePolicy {
    fn from(policy: Policy) -> Self {
        Self::new(policy)
    }
}
