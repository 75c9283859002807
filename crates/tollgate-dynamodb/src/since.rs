//! How long something is ago, the time that the process was frozen for included.
//!
//! Invariant: of the two clocks the one counts that saw more; which of them a freeze stops is not documented.

use std::time::{Duration, Instant, SystemTime};

/// An instant, by both clocks. Ordered by the monotonic one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Since {
    at: Instant,
    at_wall: SystemTime,
}

impl Since {
    /// Now.
    #[must_use]
    pub fn now() -> Self {
        Self { at: Instant::now(), at_wall: SystemTime::now() }
    }

    /// Whether it is less than `age` ago. A wall clock that was set back makes it long ago.
    #[must_use]
    pub fn is_within(&self, age: Duration) -> bool {
        self.at.elapsed() < age && self.at_wall.elapsed().is_ok_and(|elapsed| elapsed < age)
    }
}
