//! The system clock, and how far it is from the table's, told from the `Date` header of every reply.
//!
//! `Date` counts whole seconds, so one reply says only that `local - table` lies in `(sent - Date - 1 s,
//! received - Date]`; several recent replies are intersected. Invariants: a correction is applied only when the whole
//! interval lies beyond one second, so a clock that is right is never touched; a clock agrees with the table's only if what
//! is left of the interval after correction lies within one second, so two clocks that agree are at most two apart.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use tollgate_core::{Clock, Timestamp};

/// The operating system's wall clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        // A clock before 1970 reads as 1970 and is corrected from the first reply on.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }
}

const SECOND_NS: i64 = 1_000_000_000;
/// Replies that are intersected: enough to narrow the interval, few enough that drift does not empty it.
const RECENT: usize = 16;

/// The offset of a clock from the table's.
#[derive(Debug, Default)]
pub struct Offset {
    recent: Mutex<VecDeque<(i64, i64)>>,
    /// The local clock counts as the table's, and replies are not asked.
    trusted: bool,
    /// Nanoseconds to subtract from local time.
    correction: AtomicI64,
    /// Whether the corrected clock is within a second of the table's.
    agrees: AtomicBool,
}

impl Offset {
    /// The offset of a clock that counts as the table's: zero, known, and not to be told otherwise.
    #[must_use]
    pub fn trusted() -> Self {
        Self { trusted: true, agrees: AtomicBool::new(true), ..Self::default() }
    }

    /// Takes in a reply: local times of sending and receiving, and the `Date` header in epoch seconds.
    ///
    /// Returns the new correction in nanoseconds if it moved by more than a second.
    pub fn observe(&self, sent: Timestamp, received: Timestamp, date_secs: u64) -> Option<i64> {
        if self.trusted {
            return None;
        }
        let date = Timestamp::from_secs(date_secs);
        let interval = (difference(sent, date).saturating_sub(SECOND_NS), difference(received, date));
        if interval.0 >= interval.1 {
            // The local clock stepped back while the request was under way: the reply says nothing.
            return None;
        }
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.push_front(interval);
        recent.truncate(RECENT);
        let (narrowed, used) = intersect_newest(&recent);
        // Older replies that contradict newer ones are from before the clock stepped.
        recent.truncate(used);
        drop(recent);
        let correction = correction(narrowed);
        let before = self.correction.swap(correction, Ordering::Relaxed);
        let left = (narrowed.0 - correction)..=(narrowed.1 - correction);
        self.agrees.store(*left.start() >= -SECOND_NS && *left.end() <= SECOND_NS, Ordering::Relaxed);
        ((correction - before).abs() > SECOND_NS).then_some(correction)
    }

    /// Whether the corrected clock is known to be within a second of the table's. It is after a reply or two.
    #[must_use]
    pub fn agrees(&self) -> bool {
        self.agrees.load(Ordering::Relaxed)
    }

    /// Local time as the table would tell it.
    #[must_use]
    pub fn correct(&self, local: Timestamp) -> Timestamp {
        local.offset_by(self.correction.load(Ordering::Relaxed).saturating_neg())
    }
}

/// The intersection of the longest run of newest intervals that have one, and the length of that run.
fn intersect_newest(newest_first: &VecDeque<(i64, i64)>) -> ((i64, i64), usize) {
    let mut narrowed = (i64::MIN, i64::MAX);
    for (used, (from, to)) in newest_first.iter().enumerate() {
        let next = (narrowed.0.max(*from), narrowed.1.min(*to));
        if next.0 >= next.1 {
            return (narrowed, used);
        }
        narrowed = next;
    }
    (narrowed, newest_first.len())
}

fn correction((from, to): (i64, i64)) -> i64 {
    if from >= SECOND_NS || to <= -SECOND_NS { from.midpoint(to) } else { 0 }
}

fn difference(a: Timestamp, b: Timestamp) -> i64 {
    let ns = i128::from(a.as_nanos()) - i128::from(b.as_nanos());
    // Clamped well inside i64, so that midpoints and negations stay exact.
    i64::try_from(ns).unwrap_or(if ns < 0 { i64::MIN / 4 } else { i64::MAX / 4 })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const T: u64 = 1_767_225_600_000;

    fn reply(offset: &Offset, local_ms: u64, rtt_ms: u64, table_ms: u64) -> Option<i64> {
        offset.observe(Timestamp::from_millis(local_ms), Timestamp::from_millis(local_ms + rtt_ms), table_ms / 1000)
    }

    #[test]
    fn a_right_clock_is_never_touched_whatever_the_fraction_of_the_second() {
        for fraction in [0, 1, 499, 500, 999] {
            let offset = Offset::default();
            for i in 0..40 {
                let now = T + fraction + i * 37;
                assert_eq!(reply(&offset, now, 3, now + 1), None);
                assert_eq!(offset.correct(Timestamp::from_millis(now)).as_millis(), now);
            }
            assert!(offset.agrees());
        }
    }

    #[test]
    fn a_clock_that_is_off_is_corrected_to_within_the_interval() {
        for skew in [-3_600_000_i64, -11_000, -2_500, 2_500, 11_000, 3_600_000] {
            let offset = Offset::default();
            let table = T + 400;
            let local = table.checked_add_signed(skew).unwrap();
            assert!(reply(&offset, local, 2, table + 1).is_some(), "{skew}");
            let corrected = offset.correct(Timestamp::from_millis(local)).as_millis();
            assert!(corrected.abs_diff(table) <= 600, "{skew}: {corrected}");
        }
    }

    #[test]
    fn several_replies_narrow_the_interval() {
        let offset = Offset::default();
        // 2.2 s ahead: one reply at the start of a second only says (1.2, 2.2].
        for fraction in (0..1000).step_by(70) {
            let table = T + fraction;
            let _ = reply(&offset, table + 2_200, 1, table);
        }
        let corrected = offset.correct(Timestamp::from_millis(T + 2_200)).as_millis();
        assert!(corrected.abs_diff(T) <= 80, "{corrected}");
    }

    #[test]
    fn a_step_of_the_local_clock_is_seen_in_the_next_reply() {
        let offset = Offset::default();
        let _ = reply(&offset, T, 1, T);
        assert!(reply(&offset, T - 3_600_000, 1, T + 5).is_some());
        assert!(offset.correct(Timestamp::from_millis(T - 3_600_000)).as_millis().abs_diff(T) <= 1_000);
        assert!(reply(&offset, T + 20, 1, T + 20).is_some(), "and back");
        assert_eq!(offset.correct(Timestamp::from_millis(T + 20)).as_millis(), T + 20);
    }

    #[test]
    fn two_clocks_that_agree_are_at_most_two_seconds_apart_whatever_their_phases() {
        let (mut agreed, mut pairs) = (0, 0);
        for skews in [(-1_900, 1_900), (-1_500, 1_500), (-1_100, 1_100), (-900, 900), (-3_000, 1_500)] {
            for phase in (0..1000).step_by(37) {
                let clocks = [skews.0, skews.1].map(|skew: i64| (Offset::default(), skew));
                for step in 0..6_u64 {
                    let table = T + phase + step * 217;
                    let told = clocks.each_ref().map(|(offset, skew)| {
                        let local = table.checked_add_signed(*skew).unwrap();
                        let _ = reply(offset, local, 40 * step, table + 20 * step);
                        (offset.agrees(), offset.correct(Timestamp::from_millis(local)).as_millis())
                    });
                    pairs += 1;
                    if told[0].0 && told[1].0 {
                        agreed += 1;
                        assert!(told[0].1.abs_diff(told[1].1) <= 2_000, "{skews:?} {phase} {step}: {told:?}");
                    }
                }
            }
        }
        assert!(agreed * 2 > pairs, "most do agree before long: {agreed} of {pairs}");
    }

    #[test]
    fn a_step_back_during_a_request_is_not_a_measurement() {
        let offset = Offset::default();
        let (sent, received) = (Timestamp::from_millis(T), Timestamp::from_millis(T - 11_000));
        assert_eq!(offset.observe(sent, received, T / 1000), None);
        assert!(!offset.agrees());
    }
}
