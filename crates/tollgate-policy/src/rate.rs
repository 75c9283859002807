//! Rates and durations as people write them, `50/h`, `5/15min` and `30min`. Invariant: what is accepted is whole numbers
//! only, what is refused comes with a right example, and what is written here can be read here.

use crate::error::{Error, Result as PolicyResult};
use std::time::Duration;
use tollgate_core::{Figures, Period, Span};

/// What is wrong with a value and what to write instead; the caller knows where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// What is wrong.
    pub(crate) message: String,
    /// What to write.
    pub(crate) help: String,
}

impl From<Problem> for Error {
    fn from(Problem { message, help }: Problem) -> Self {
        Self::Notation { message, help }
    }
}

impl Problem {
    pub(crate) fn new(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { message: message.into(), help: help.into() }
    }
}

/// `n` tokens every `period_ns` nanoseconds, not yet checked against the bounds of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rate {
    pub(crate) n: u64,
    /// Of a month, 30 days.
    pub(crate) period_ns: u64,
    /// The period of the calendar, if it can be one.
    pub(crate) calendar: Option<Period>,
}

const SECOND: u64 = 1_000_000_000;

/// Units of a period and their length in nanoseconds. A year is 365 days.
const UNITS: [(&str, u64); 9] = [
    ("ms", SECOND / 1000),
    ("s", SECOND),
    ("sec", SECOND),
    ("second", SECOND),
    ("min", 60 * SECOND),
    ("h", 3600 * SECOND),
    ("hour", 3600 * SECOND),
    ("day", 86_400 * SECOND),
    ("year", 365 * 86_400 * SECOND),
];

const EXAMPLE: &str = "write a whole number, `/` and a period, like \"50/h\", \"100/min\" or \"5/15min\"";

const DURATION_EXAMPLE: &str = "write a whole number and a unit, like \"90s\", \"30min\", \"2h\" or \"7day\"";

/// Parses `<n>/<unit>` or `<n>/<m><unit>`.
pub(crate) fn parse(text: &str) -> Result<Rate, Problem> {
    let what = format!("rate {text:?}");
    let (n, period) = text.split_once('/').ok_or_else(|| Problem::new(format!("{what} has no `/`"), EXAMPLE))?;
    let n = whole(n).map_err(|why| Problem::new(format!("{what} {why} before the `/`"), EXAMPLE))?;
    let (count, unit) = counted(period);
    let count = match count {
        "" => 1,
        count => whole(count).map_err(|why| Problem::new(format!("{what} {why} after the `/`"), EXAMPLE))?,
    };
    let calendar = Period::parse(unit).filter(|_| count == 1);
    if let Some(Period::Month) = calendar {
        return Ok(Rate { n, period_ns: Period::Month.nominal_ns(), calendar });
    }
    if unit == Period::Month.as_str() {
        return Err(Problem::new("a quota is per one day or one month", "write it like \"100000/month\""));
    }
    let ns = unit_ns(unit).ok_or_else(|| unknown_unit(&format!("{what} has "), " after the `/`", unit, EXAMPLE))?;
    let period_ns = count.checked_mul(ns).ok_or_else(|| {
        Problem::new(format!("period must be from 1 ns to 200 years, not {period}"), "write a shorter period")
    })?;
    Ok(Rate { n, period_ns, calendar })
}

/// A duration as the policy writes periods, with a number: `90s`, `30min`, `2h`, `7day`.
///
/// # Errors
///
/// [`Error::Notation`].
pub fn duration(text: &str) -> PolicyResult<Duration> {
    Ok(read_duration(text)?)
}

pub(crate) fn read_duration(text: &str) -> Result<Duration, Problem> {
    let what = format!("duration {text:?}");
    let (count, unit) = counted(text);
    let count = whole(count).map_err(|why| Problem::new(format!("{what} {why}"), DURATION_EXAMPLE))?;
    let ns = unit_ns(unit).ok_or_else(|| unknown_unit(&format!("{what} has "), "", unit, DURATION_EXAMPLE))?;
    let ns = count.checked_mul(ns).ok_or_else(|| Problem::new(format!("{what} is too long"), DURATION_EXAMPLE))?;
    Ok(Duration::from_nanos(ns))
}

/// The rate of figures as a policy could write it.
#[must_use]
pub fn rate_text(figures: &Figures) -> String {
    match figures {
        Figures::Window(window) => match window.span() {
            Span::Calendar(period, _) => format!("{}/{}", window.most(), period.as_str()),
            // In lowest terms it would be another limit: 60 at once a minute are not 1 a second.
            _ => per(window.most().into(), window.length_ns().into()),
        },
        Figures::Log(log) => per(log.most().into(), log.window_ns().into()),
        figures => {
            let (n, period) = figures.rate();
            lowest_terms(n, period)
        }
    }
}

/// A rate as a policy could write it: whole tokens a second, minute, hour or day if there are such (`50/h`
/// and not `1/72s`), else over the shortest period that has.
fn lowest_terms(n: u64, period_ns: u64) -> String {
    let (n, period) = (u128::from(n), u128::from(period_ns));
    let whole = |ns: u64| (n * u128::from(ns)).is_multiple_of(period).then(|| n * u128::from(ns) / period);
    let mut day_or_less = CANONICAL.iter().filter(|(_, ns)| *ns <= 86_400 * SECOND);
    if let Some((tokens, unit)) = day_or_less.find_map(|(unit, ns)| Some((whole(*ns)?, *unit))) {
        return format!("{tokens}/{unit}");
    }
    // The shortest unit is a millisecond; the reduced period need not be a multiple of it.
    let shortest = u128::from(SECOND / 1000);
    let times = (1..=shortest).find(|times| (period * times).is_multiple_of(shortest)).unwrap_or(1);
    per(n * times, period * times)
}

/// `n` over a period of `period` nanoseconds, in the longest unit that it is a multiple of.
fn per(tokens: u128, period: u128) -> String {
    let shortest = u128::from(SECOND / 1000);
    let fits = CANONICAL.iter().rev().find(|(_, ns)| period.is_multiple_of(u128::from(*ns)));
    let (unit, ns) = fits.map_or(("ms", shortest), |(unit, ns)| (*unit, u128::from(*ns)));
    match period / ns {
        1 => format!("{tokens}/{unit}"),
        count => format!("{tokens}/{count}{unit}"),
    }
}

/// The units that rates are told in, one of each length.
const CANONICAL: [(&str, u64); 5] = [
    ("s", SECOND),
    ("min", 60 * SECOND),
    ("h", 3600 * SECOND),
    ("day", 86_400 * SECOND),
    ("year", 365 * 86_400 * SECOND),
];

/// The number and the unit of a period.
fn counted(period: &str) -> (&str, &str) {
    let digits = period.bytes().take_while(|b| !b.is_ascii_alphabetic()).count();
    period.split_at_checked(digits).unwrap_or((period, ""))
}

fn unit_ns(unit: &str) -> Option<u64> {
    UNITS.iter().find(|(name, _)| *name == unit).map(|(_, ns)| *ns)
}

/// A whole number of digits only. Zero passes: the bucket's own bounds say what is wrong with it.
fn whole(text: &str) -> Result<u64, &'static str> {
    if text.is_empty() {
        return Err("has no number");
    }
    if text.starts_with('-') {
        return Err("has a negative number");
    }
    if !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err("needs digits only (no fraction, sign, space or separator)");
    }
    text.parse().map_err(|_| "has a number above 1,000,000,000,000")
}

fn unknown_unit(has: &str, at: &str, unit: &str, example: &str) -> Problem {
    // Spellings that are near in meaning, not in letters.
    let meant = match unit {
        "m" | "mins" | "minute" | "minutes" => Some("min"),
        "d" | "days" => Some("day"),
        "hr" | "hrs" | "hours" => Some("h"),
        "secs" | "seconds" => Some("s"),
        "y" | "yr" | "years" => Some("year"),
        other => crate::suggest::nearest(other, UNITS.iter().map(|(name, _)| *name)).filter(|_| other.len() > 2),
    };
    let message = match unit {
        "" => format!("{has}no unit{at}"),
        unit => format!("{has}the unknown unit `{unit}`"),
    };
    let units = crate::suggest::quoted(UNITS.iter().map(|(name, _)| *name));
    let help = match meant {
        Some(meant) => format!("did you mean `{meant}`? {example}; units: {units}"),
        None => format!("{example}; units: {units}"),
    };
    Problem::new(message, help)
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use super::{Rate, SECOND, duration, parse, rate_text};
    use crate::algorithm::Algorithm;
    use std::time::Duration;
    use tollgate_core::{Period, TokenBucket};

    #[test]
    fn every_form_of_a_rate() {
        let ok = |text: &str, n, period_ns| {
            let calendar = Period::parse(text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '/'));
            assert_eq!(parse(text), Ok(Rate { n, period_ns, calendar }), "{text}");
        };
        ok("50/h", 50, 3600 * SECOND);
        ok("50/hour", 50, 3600 * SECOND);
        ok("7/min", 7, 60 * SECOND);
        ok("3/s", 3, SECOND);
        ok("3/sec", 3, SECOND);
        ok("3/second", 3, SECOND);
        ok("1/ms", 1, SECOND / 1000);
        ok("5/15min", 5, 900 * SECOND);
        ok("2000/300s", 2000, 300 * SECOND);
        ok("100/24h", 100, 86_400 * SECOND);
        ok("100/day", 100, 86_400 * SECOND);
        ok("3000/month", 3000, 30 * 86_400 * SECOND);
        ok("1/year", 1, 31_536_000 * SECOND);
        ok("1/100year", 1, 3_153_600_000 * SECOND);
    }

    #[test]
    fn what_is_not_a_rate_comes_with_an_example() {
        for text in [
            "",
            "50",
            "/h",
            "50/",
            "-5/s",
            "1.5/s",
            "1_000/s",
            "1,000/s",
            "50 / h",
            "50/h ",
            "5/fortnight",
            "5/1.5h",
            "5/-1h",
            "1/2month",
            "5/15",
            "+5/s",
            "99999999999999999999/s",
            "1/999999999999year",
            "١/s",
            "5/١s",
        ] {
            let problem = parse(text).expect_err(text);
            assert!(problem.help.contains("write"), "{text}: {problem:?}");
        }
        assert!(parse("5/minute").expect_err("minute").help.contains("did you mean `min`?"));
    }

    #[test]
    fn durations_are_periods_with_a_number() {
        for (text, secs) in [("90s", 90), ("30min", 1800), ("2h", 7200), ("1hour", 3600), ("7day", 604_800)] {
            assert_eq!(duration(text).expect(text), Duration::from_secs(secs), "{text}");
        }
        assert_eq!(duration("1500ms").expect("ms"), Duration::from_millis(1500));
        for text in ["", "h", "2", "-2h", "1.5h", "2 h", "2h30min", "2h ", "+2h", "forever", "2/h", "999999999999year"]
        {
            let error = duration(text).expect_err(text).to_string();
            assert!(error.contains("like \"90s\", \"30min\""), "{text}: {error}");
        }
        assert!(duration("5m").expect_err("m").to_string().contains("did you mean `min`?"));
        assert!(duration("2days").expect_err("days").to_string().contains("did you mean `day`?"));
    }

    #[test]
    fn a_rate_is_told_as_it_could_be_written() {
        for (text, told) in [
            ("50/h", "50/h"),
            ("100/min", "100/min"),
            ("600/min", "10/s"),
            ("5/15min", "20/h"),
            ("7/5h", "7/5h"),
            ("1/ms", "1000/s"),
            ("10/7ms", "10/7ms"),
            ("3/7s", "3/7s"),
            ("1/year", "1/year"),
            ("1/100year", "1/100year"),
            ("1000000000000/200year", "625/3942ms"),
        ] {
            let bucket = Algorithm::TokenBucket.figures(text, Some(1)).expect(text).core();
            assert_eq!(rate_text(&bucket), told, "{text}");
            assert_eq!(
                Algorithm::TokenBucket.figures(told, Some(1)).expect(told).core(),
                bucket,
                "{text} and {told} are one rate"
            );
        }
        // No policy can write it, but nothing goes wrong.
        let odd = TokenBucket::new(999_999_999_989, TokenBucket::MAX_PERIOD_NS - 1, 1).expect("within bounds");
        assert!(rate_text(&odd.into()).ends_with("ms"));
    }

    #[test]
    fn a_window_is_told_whole() {
        use tollgate_core::{Span, Window};
        for (most, secs, told) in
            [(60, 60, "60/min"), (120, 7200, "120/2h"), (3600, 3600, "3600/h"), (5, 900, "5/15min")]
        {
            let window = Window::new(most, Span::Every(secs * SECOND), false).expect("within bounds");
            assert_eq!(rate_text(&window.into()), told);
        }
    }
}
