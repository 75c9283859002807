//! What commands say of a limit's lock.

use crate::hold::utc;
use serde::Serialize;
use std::collections::BTreeMap;
use tollgate_core::{LimitName, Penalty, Timestamp};
use tollgate_policy::Policy;

/// The last lock of a limit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct ToldLock {
    /// Whether it is in force.
    locked: bool,
    until_ms: u64,
    /// How many locks before it were not forgotten when it was set.
    level: u8,
}

impl ToldLock {
    pub(crate) fn of(lock: &Penalty, now: Timestamp) -> Self {
        Self { locked: lock.rest(now).is_some(), until_ms: lock.until.as_millis(), level: lock.level }
    }

    /// By limit, as they are at `now`.
    pub(crate) fn by_limit(locks: &BTreeMap<LimitName, Penalty>, now: Timestamp) -> BTreeMap<String, Self> {
        locks.iter().map(|(limit, lock)| (limit.to_string(), Self::of(lock, now))).collect()
    }

    pub(crate) fn is_in_force(&self) -> bool {
        self.locked
    }

    pub(crate) fn text(&self) -> String {
        let Self { locked, until_ms, level } = self;
        let since = if *locked { "locked until" } else { "last locked until" };
        format!("{since} {} (level {level})", utc(*until_ms))
    }
}

/// The limits of a policy that lock.
pub(crate) fn limits(policy: &Policy) -> Vec<LimitName> {
    policy.limits().iter().filter(|limit| limit.penalty().is_some()).map(|limit| limit.name().clone()).collect()
}

/// In one line.
pub(crate) fn text(locks: &BTreeMap<String, ToldLock>) -> String {
    locks.iter().map(|(limit, lock)| format!("{limit} {}", lock.text())).collect::<Vec<_>>().join("; ")
}
