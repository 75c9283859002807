//! Rates as people write them, `50/h` or `5/15min`. Invariant: what is accepted is whole numbers only, and what is
//! refused comes with a right example.

/// What is wrong with a value and what to write instead; the caller knows where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// What is wrong.
    pub(crate) message: String,
    /// What to write.
    pub(crate) help: String,
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
    pub(crate) period_ns: u64,
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

/// Parses `<n>/<unit>` or `<n>/<m><unit>`.
pub(crate) fn parse(text: &str) -> Result<Rate, Problem> {
    let (n, period) = text.split_once('/').ok_or_else(|| Problem::new(format!("rate {text:?} has no `/`"), EXAMPLE))?;
    let n = whole(n).map_err(|why| Problem::new(format!("rate {text:?} {why} before the `/`"), EXAMPLE))?;
    let digits = period.bytes().take_while(|b| !b.is_ascii_alphabetic()).count();
    let (count, unit) = period.split_at_checked(digits).unwrap_or((period, ""));
    let count = match count {
        "" => 1,
        count => whole(count).map_err(|why| Problem::new(format!("rate {text:?} {why} after the `/`"), EXAMPLE))?,
    };
    if unit == "month" {
        return Err(Problem::new(
            "a rate per `month` is not supported by this version: calendar months need the quota algorithm",
            "write the period in days, like \"3000/30day\"",
        ));
    }
    let ns = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, ns)| *ns).ok_or_else(|| unknown_unit(text, unit))?;
    let period_ns = count.checked_mul(ns).ok_or_else(|| {
        Problem::new(format!("period must be from 1 ns to 200 years, not {period}"), "write a shorter period")
    })?;
    Ok(Rate { n, period_ns })
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

fn unknown_unit(text: &str, unit: &str) -> Problem {
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
        "" => format!("rate {text:?} has no unit after the `/`"),
        unit => format!("rate {text:?} has the unknown unit `{unit}`"),
    };
    let units = crate::suggest::quoted(UNITS.iter().map(|(name, _)| *name));
    let help = match meant {
        Some(meant) => format!("did you mean `{meant}`? {EXAMPLE}; units: {units}"),
        None => format!("{EXAMPLE}; units: {units}"),
    };
    Problem::new(message, help)
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use super::{Rate, SECOND, parse};

    #[test]
    fn every_form_of_a_rate() {
        let ok = |text, n, period_ns| assert_eq!(parse(text), Ok(Rate { n, period_ns }), "{text}");
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
            "1/month",
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
        assert!(parse("1/month").expect_err("month").message.contains("not supported by this version"));
        assert!(parse("5/minute").expect_err("minute").help.contains("did you mean `min`?"));
    }
}
