//! What an operator has set for one key: a ban, or other figures for some of its limits, each until some instant.
//!
//! A hold lies beside the buckets in the item, and every write that charges requires the hold that its caller has seen. So
//! the first decision after it is set, changed or lifted finds it, in every process, without a read and without polling.
//! Invariants: a hold that is written has an `id` of its own, so that no two are taken for one; its text form is
//! canonical, since conditions compare it as text.

use crate::charge::LimitName;
use crate::error::{Error, Result};
use crate::figures::Figures;
use crate::time::Timestamp;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// Other figures for one limit of one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Override {
    /// The figures.
    pub figures: Figures,
    /// When they end.
    pub until: Timestamp,
}

/// What an operator has set for a key. Stored as `id;ban=UNTIL;LIMIT=UNTIL/FIGURES;…`, instants in
/// nanoseconds, figures as [`Figures`] writes them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Hold {
    /// Random, new with every change.
    pub id: u64,
    /// When the ban ends; `None` if there is none.
    pub banned_until: Option<Timestamp>,
    /// Other figures, by limit.
    pub overrides: BTreeMap<LimitName, Override>,
}

impl Hold {
    /// The most limits that a hold overrides: 16, as many as a decision has on one item.
    pub const MOST_OVERRIDES: usize = crate::Charges::MOST_LIMITS;

    /// What is left of the hold at `now`; `None` if everything in it has ended.
    #[must_use]
    pub fn in_force(&self, now: Timestamp) -> Option<Self> {
        let left = Self {
            id: self.id,
            banned_until: self.banned_until.filter(|until| *until > now),
            overrides: self.overrides.iter().filter(|(_, o)| o.until > now).map(|(l, o)| (l.clone(), *o)).collect(),
        };
        (!left.is_empty()).then_some(left)
    }

    /// Whether it sets nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.banned_until.is_none() && self.overrides.is_empty()
    }

    /// When the last of it ends.
    #[must_use]
    pub fn until(&self) -> Timestamp {
        let ends = self.overrides.values().map(|o| o.until).chain(self.banned_until);
        ends.max().unwrap_or_default()
    }
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.id)?;
        if let Some(until) = self.banned_until {
            write!(f, ";ban={}", until.as_nanos())?;
        }
        for (limit, Override { figures, until }) in &self.overrides {
            write!(f, ";{limit}={}/{figures}", until.as_nanos())?;
        }
        Ok(())
    }
}

impl FromStr for Hold {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parse = || {
            let mut parts = text.split(';');
            let mut hold = Self { id: parts.next()?.parse().ok()?, ..Self::default() };
            for part in parts {
                let (name, value) = part.split_once('=')?;
                let (until, figures) = value.split_once('/').map_or((value, None), |(u, figures)| (u, Some(figures)));
                let until = Timestamp::from_nanos(until.parse().ok()?);
                match figures {
                    // A limit may be called `ban`, too: it has figures.
                    None if name == "ban" => hold.banned_until = Some(until),
                    figures => {
                        let figures = Figures::parse(figures?)?;
                        hold.overrides.insert(LimitName::new(name).ok()?, Override { figures, until });
                    }
                }
            }
            Some(hold)
        };
        parse()
            .filter(|hold| hold.to_string() == text)
            .ok_or_else(|| Error::Stored { attribute: "hold".to_owned(), found: text.to_owned() })
    }
}
