//! The time field of a log line, exact: the fixed 26 bytes that servers write, any zone, to the second.
//!
//! Invariant: a text either denotes one instant or is refused; no field is clamped or carried into the next. A direct
//! parser instead of a format string: it runs once a line and takes less time than looking its text up in a cache would.

use tollgate_core::Timestamp;

/// The instant of `17/May/2015:10:05:03 +0000`; `None` if it is not of that form, names no instant (30 February, 24:00,
/// second 60) or lies outside 1970 to 2554.
pub(crate) fn parse(text: &[u8]) -> Option<Timestamp> {
    let text: &[u8; 26] = text.try_into().ok()?;
    let punctuation = [(2, b'/'), (6, b'/'), (11, b':'), (14, b':'), (17, b':'), (20, b' ')];
    if punctuation.iter().any(|(at, mark)| text[*at] != *mark) {
        return None;
    }
    let year = number(&text[7..11], 9999)?;
    let month = month_of(&text[3..6])?;
    let day = number(&text[..2], days_in(year, month)).filter(|day| *day > 0)?;
    let clock = number(&text[12..14], 23)? * 3600 + number(&text[15..17], 59)? * 60 + number(&text[18..20], 59)?;
    let ahead = number(&text[22..24], 23)? * 3600 + number(&text[24..], 59)? * 60;
    let ahead = match text[21] {
        b'+' => ahead,
        b'-' => -ahead,
        _ => return None,
    };
    let secs = u64::try_from(days_since_epoch(year, month, day) * 86_400 + clock - ahead).ok()?;
    Some(Timestamp::from_nanos(secs.checked_mul(1_000_000_000)?))
}

/// A number of exactly these digits, at most `max`.
fn number(digits: &[u8], max: i64) -> Option<i64> {
    let value = digits.iter().try_fold(0, |value, d| d.is_ascii_digit().then(|| value * 10 + i64::from(d - b'0')))?;
    (value <= max).then_some(value)
}

fn month_of(name: &[u8]) -> Option<i64> {
    const NAMES: [&[u8]; 12] =
        [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];
    (1..).zip(NAMES).find_map(|(month, known)| (known == name).then_some(month))
}

fn days_in(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 in the proleptic Gregorian calendar, counted in years that begin in March, so that the leap day
/// is the last one (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", `days_from_civil`).
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}
