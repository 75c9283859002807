//! Waiting times as they are told. Invariant: rounded up, so that who waits as told is never early.

use std::time::Duration;

/// Units of a longer wait, with their seconds. Symbols of the SI, which are the same in every language.
const UNITS: [(u64, &str); 4] = [(86_400, "d"), (3600, "h"), (60, "min"), (1, "s")];

/// Whole seconds, rounded up.
pub(crate) fn seconds(wait: Duration) -> u64 {
    wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0))
}

/// The seconds of `Retry-After` (RFC 9110 section 10.2.3): rounded up, at least 1.
#[must_use]
pub fn retry_after(wait: Duration) -> u64 {
    seconds(wait).max(1)
}

/// The seconds for a person: `72 s`, `1 h 12 min`; at most two units, rounded up.
pub(crate) fn text(seconds: u64) -> String {
    let pairs = UNITS.iter().zip(UNITS.iter().skip(1));
    // Up to two minutes, seconds say it better.
    let pair = pairs.into_iter().find(|((unit, _), _)| seconds >= *unit).filter(|_| seconds >= 120);
    let Some(((large, name), (small, small_name))) = pair else { return format!("{seconds} s") };
    let total = seconds.div_ceil(*small);
    let (whole, rest) = (total / (large / small), total % (large / small));
    if rest == 0 { format!("{whole} {name}") } else { format!("{whole} {name} {rest} {small_name}") }
}

#[cfg(test)]
mod tests {
    use super::{Duration, retry_after, seconds, text};

    #[test]
    fn waits_are_rounded_up() {
        assert_eq!((seconds(Duration::ZERO), retry_after(Duration::ZERO)), (0, 1));
        assert_eq!((seconds(Duration::from_nanos(1)), retry_after(Duration::from_millis(71_999))), (1, 72));
        assert_eq!(seconds(Duration::MAX), u64::MAX);
    }

    #[test]
    fn waits_are_told_in_at_most_two_units() {
        let told = [(1, "1 s"), (72, "72 s"), (119, "119 s"), (120, "2 min"), (150, "2 min 30 s"), (3600, "1 h")];
        let longer = [(3601, "1 h 1 min"), (4320, "1 h 12 min"), (86_399, "24 h"), (90_061, "1 d 2 h")];
        for (seconds, expected) in told.into_iter().chain(longer) {
            assert_eq!(text(seconds), expected);
        }
    }
}
