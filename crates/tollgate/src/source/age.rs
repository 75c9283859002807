//! A clock for ages. Invariant: it never goes back, and it counts the time that an environment was frozen if either
//! the monotonic or the wall clock did: which of them a freeze stops is not documented.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tollgate_core::{Clock, Timestamp};

/// Time since the process looked first, as a [`Timestamp`] from the epoch.
#[derive(Debug)]
pub(super) struct AgeClock(Mutex<Reading>);

#[derive(Debug)]
struct Reading {
    monotonic: Instant,
    wall: SystemTime,
    age: Duration,
}

impl Default for AgeClock {
    fn default() -> Self {
        Self(Mutex::new(Reading { monotonic: Instant::now(), wall: SystemTime::now(), age: Duration::ZERO }))
    }
}

impl Clock for AgeClock {
    fn now(&self) -> Timestamp {
        let mut reading = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (monotonic, wall) = (Instant::now(), SystemTime::now());
        let stepped = step(monotonic.duration_since(reading.monotonic), wall.duration_since(reading.wall).ok());
        *reading = Reading { monotonic, wall, age: reading.age.saturating_add(stepped) };
        Timestamp::default() + reading.age
    }
}

/// What to add to an age: the longer of what the two clocks say has passed. `wall` is `None` if it was set back.
fn step(monotonic: Duration, wall: Option<Duration>) -> Duration {
    wall.unwrap_or_default().max(monotonic)
}

#[cfg(test)]
mod tests {
    use super::step;
    use std::time::Duration;

    #[test]
    fn frozen_time_counts_and_a_clock_that_is_set_back_takes_nothing_away() {
        let [second, hour] = [1, 3600].map(Duration::from_secs);
        assert_eq!(step(second, Some(hour)), hour, "the monotonic clock stood still");
        assert_eq!(step(hour, Some(second)), hour, "the wall clock did");
        assert_eq!(step(second, None), second, "the wall clock was set back");
    }
}
