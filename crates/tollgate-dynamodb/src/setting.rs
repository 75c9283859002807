//! A time that is set anew while others go by it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A duration that handles share, of whole nanoseconds; what is longer than 584 years is that.
#[derive(Debug)]
pub(crate) struct AtomicDuration(AtomicU64);

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl AtomicDuration {
    pub(crate) fn new(time: Duration) -> Self {
        Self(AtomicU64::new(nanos(time)))
    }

    pub(crate) fn set(&self, time: Duration) {
        self.0.store(nanos(time), Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }
}
