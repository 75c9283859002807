//! The ladder: what a prefix or a country is suspected of, what follows from it, and for how long.
//!
//! ```text
//! observe ─► CAPTCHA ─► CAPTCHA and a reduced rate ─► block
//!         ◄─         ◄─                            ◄─          by itself, once the hold is over
//! ```
//!
//! Invariants: every standing ends by itself: from a block there is always a way down after its hold, whatever is or is not counted
//! meanwhile. What was counted before a standing began says nothing about what it achieves. When a scope was first suspected is known for
//! as long as it is remembered, however often it goes up and down.

use crate::destination::Destination;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use tollgate_core::{Error, Timestamp};

/// What is asked of whoever wants a message, from the least to the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Rung {
    /// Nothing; messages are counted.
    #[default]
    Observe,
    /// He shows that he is human.
    Captcha,
    /// That, and few messages go out at all.
    Reduced,
    /// No message goes out.
    Block,
}

impl Rung {
    const NAMES: [(Self, &str); 4] =
        [(Self::Observe, "observe"), (Self::Captcha, "captcha"), (Self::Reduced, "reduced"), (Self::Block, "block")];

    /// The next one up.
    #[must_use]
    pub const fn up(self) -> Self {
        match self {
            Self::Observe => Self::Captcha,
            Self::Captcha => Self::Reduced,
            Self::Reduced | Self::Block => Self::Block,
        }
    }

    /// The next one down.
    #[must_use]
    pub const fn down(self) -> Self {
        match self {
            Self::Observe | Self::Captcha => Self::Observe,
            Self::Reduced => Self::Captcha,
            Self::Block => Self::Reduced,
        }
    }

    /// Its name, in the table, metrics and texts.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        Self::NAMES.iter().find(|(rung, _)| *rung == self).map_or("observe", |(_, name)| name)
    }
}

impl FromStr for Rung {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::NAMES.iter().find(|(_, name)| *name == text).map(|(rung, _)| *rung).ok_or_else(|| unread(text))
    }
}

/// Which numbers: a country (`RO`), or all that begin with a prefix (`+40721`).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Scope(String);

impl Scope {
    /// Digits that the scopes between a block and its country leave out of the block.
    const LONGEST_STEP: usize = 3;
    /// The shortest prefix that is judged by itself, `+` included: longer than any country code.
    const SHORTEST: usize = 5;

    /// A country, two letters of ISO 3166-1.
    #[must_use]
    pub fn country(country: &str) -> Self {
        Self(country.to_owned())
    }

    /// The scopes that a block is in, the smallest first: the block, up to three digits less, the country.
    pub fn around(country: &str, block: &str) -> impl Iterator<Item = Self> {
        let longest = block.len();
        let prefixes = (0..=Self::LONGEST_STEP)
            .filter_map(move |less| longest.checked_sub(less).filter(|len| less == 0 || *len >= Self::SHORTEST));
        let prefixes: Vec<_> = prefixes.filter_map(|len| block.get(..len).map(|text| Self(text.to_owned()))).collect();
        prefixes.into_iter().chain([Self::country(country)])
    }

    /// Whether it is a whole country.
    #[must_use]
    pub fn is_country(&self) -> bool {
        !self.0.starts_with('+')
    }

    /// As text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where a scope stands.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Standing {
    /// The country that it is in.
    pub country: String,
    /// What is asked.
    pub rung: Rung,
    /// Since when; only messages since then say anything about it.
    pub since: Timestamp,
    /// When it, or a scope that it took the place of, was first suspected.
    pub suspected: Timestamp,
    /// Until when at least; then it steps down, or is forgotten.
    pub until: Timestamp,
    /// How often it has gone up before.
    pub raised: u32,
    /// When it last did.
    pub risen: Timestamp,
}

impl Standing {
    /// The first hold.
    pub const HOLD: Duration = Duration::from_secs(30 * 60);
    /// How often the hold doubles: to eight hours.
    pub const DOUBLINGS: u32 = 4;
    /// How long it is remembered, once it has come down, that a scope was suspected.
    pub const MEMORY: Duration = Duration::from_secs(86_400);

    /// One rung up from `rung`, for the `raised`th time.
    #[must_use]
    pub fn raised(country: &str, rung: Rung, raised: u32, now: Timestamp) -> Self {
        let hold = Self::HOLD * 2_u32.pow(raised.min(Self::DOUBLINGS));
        let (country, rung, until) = (country.to_owned(), rung.up(), now + hold);
        Self { country, rung, since: now, suspected: now, until, raised: raised + 1, risen: now }
    }

    /// One rung down.
    #[must_use]
    pub fn lowered(&self, now: Timestamp) -> Self {
        let rung = self.rung.down();
        let hold = if rung == Rung::Observe { Self::MEMORY } else { Self::HOLD };
        Self { rung, since: now, until: now + hold, ..self.clone() }
    }
}

/// How many codes are verified where nobody attacks, as learned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Baseline {
    sent: u64,
    verified: u64,
    /// The window up to which cohorts were learned, by its number.
    pub(crate) learned: u64,
}

impl Baseline {
    /// What is taken for known before anything is: of twenty messages, fourteen verified.
    const PRIOR: (u64, u64) = (20, 14);
    /// After so many messages all before count half, so that a country's habits may change.
    const MEMORY: u64 = 2000;
    /// After so many messages it is learned more than taken for known.
    const KNOWN: u64 = 50;
    /// Nobody is suspected who verifies more than half of what is usual, or more than this, percent.
    const LOW: f64 = 0.03;
    /// Below this a prefix is not only odd but bad: "conversion of a prefix < 10%".
    const BAD: f64 = 0.10;

    /// Learns a cohort.
    pub(crate) fn learn(&mut self, sent: u64, verified: u64) {
        self.sent += sent;
        self.verified += verified;
        while self.sent > Self::MEMORY {
            self.sent /= 2;
            self.verified /= 2;
        }
    }

    /// The part of messages whose code is verified, 0 to 1.
    #[must_use]
    #[allow(clippy::cast_precision_loss, reason = "at most 2020")]
    pub fn conversion(&self) -> f64 {
        (self.verified + Self::PRIOR.1) as f64 / (self.sent + Self::PRIOR.0) as f64
    }

    /// Whether it is learned, more than taken for known.
    #[must_use]
    pub const fn is_known(&self) -> bool {
        self.sent >= Self::KNOWN
    }

    /// Who converts less than this is suspected: half of what is usual, 3% at least.
    #[must_use]
    pub fn odd(&self) -> f64 {
        (self.conversion() / 2.0).max(Self::LOW)
    }

    /// Who has shown that he is human and converts less than this is restricted further: 10%, or less where that is odd.
    #[must_use]
    pub fn bad(&self) -> f64 {
        self.odd().min(Self::BAD)
    }
}

/// All standings of a table: one small item, which everybody who sends reads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ladder {
    /// When it was last judged, whole seconds.
    pub judged: Timestamp,
    /// Who is, or was, suspected.
    pub standings: BTreeMap<Scope, Standing>,
    /// What is usual, by country.
    pub baselines: BTreeMap<String, Baseline>,
}

impl Ladder {
    /// The highest standing of those that a destination is in.
    #[must_use]
    pub fn of(&self, to: &Destination) -> Option<(&Scope, &Standing)> {
        self.over(to.country(), to.block())
    }

    /// The highest standing of those that a block is in; of several the widest.
    pub(crate) fn over(&self, country: &str, block: &str) -> Option<(&Scope, &Standing)> {
        Scope::around(country, block)
            .filter_map(|scope| self.standings.get_key_value(&scope))
            .max_by_key(|(_, standing)| standing.rung)
    }

    /// When a destination was first suspected: the earliest of all scopes that it is in.
    #[must_use]
    pub fn suspected(&self, to: &Destination) -> Option<Timestamp> {
        let around = Scope::around(to.country(), to.block());
        around.filter_map(|scope| self.standings.get(&scope)).map(|standing| standing.suspected).min()
    }

    /// How many scopes are on this rung.
    #[must_use]
    pub fn on(&self, rung: Rung) -> u64 {
        self.standings.values().filter(|standing| standing.rung == rung).count() as u64
    }
}

/// One standing, baseline or time a line; what [`Ladder::from_str`] reads.
impl fmt::Display for Ladder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "judged {}", self.judged.as_secs())?;
        for (country, Baseline { sent, verified, learned }) in &self.baselines {
            writeln!(f, "usual {country} {sent} {verified} {learned}")?;
        }
        for (scope, Standing { country, rung, since, suspected, until, raised, risen }) in &self.standings {
            let (since, suspected, until, risen) =
                (since.as_secs(), suspected.as_secs(), until.as_secs(), risen.as_secs());
            writeln!(f, "at {scope} {country} {} {since} {until} {raised} {suspected} {risen}", rung.as_str())?;
        }
        Ok(())
    }
}

fn unread(text: &str) -> Error {
    Error::Stored { attribute: "ladder".to_owned(), found: format!("{text:?}") }
}

impl FromStr for Ladder {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let mut ladder = Self::default();
        for line in text.lines() {
            let number = |text: &str| text.parse::<u64>().map_err(|_| unread(line));
            let second = |text: &str| number(text).map(Timestamp::from_secs);
            match line.split(' ').collect::<Vec<_>>()[..] {
                ["judged", at] => ladder.judged = second(at)?,
                ["usual", country, sent, verified, learned] => {
                    let usual =
                        Baseline { sent: number(sent)?, verified: number(verified)?, learned: number(learned)? };
                    ladder.baselines.insert(country.to_owned(), usual);
                }
                ["at", scope, country, rung, since, until, raised, ref rest @ ..] => {
                    let raised = u32::try_from(number(raised)?).map_err(|_| unread(line))?;
                    let (country, rung, since, until) =
                        (country.to_owned(), rung.parse()?, second(since)?, second(until)?);
                    let (suspected, risen) = match rest {
                        // Earlier versions wrote less.
                        [] => (since, since),
                        [suspected] => (second(suspected)?, since),
                        [suspected, risen] => (second(suspected)?, second(risen)?),
                        _ => return Err(unread(line)),
                    };
                    let standing = Standing { country, rung, since, suspected, until, raised, risen };
                    ladder.standings.insert(Scope(scope.to_owned()), standing);
                }
                _ => return Err(unread(line)),
            }
        }
        Ok(ladder)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn scopes(country: &str, block: &str) -> Vec<String> {
        Scope::around(country, block).map(|scope| scope.to_string()).collect()
    }

    #[test]
    fn a_block_is_in_its_prefixes_and_its_country() {
        assert_eq!(scopes("RO", "+4072123"), ["+4072123", "+407212", "+40721", "+4072", "RO"]);
        assert_eq!(scopes("XX", "+1234"), ["+1234", "XX"]);
    }

    #[test]
    fn what_is_written_is_read_back_and_nothing_else() {
        let mut ladder = Ladder { judged: Timestamp::from_secs(7), ..Ladder::default() };
        assert_eq!(ladder.to_string().parse(), Ok(ladder.clone()));
        let now = Timestamp::from_secs(1_767_225_600);
        ladder.standings.insert(Scope("+40721".to_owned()), Standing::raised("RO", Rung::Captcha, 3, now));
        ladder.standings.insert(Scope::country("VN"), Standing::raised("VN", Rung::Observe, 0, now).lowered(now));
        ladder.baselines.insert("RO".to_owned(), Baseline { sent: 100, verified: 80, learned: 5 });
        assert_eq!(ladder.to_string().parse(), Ok(ladder));
        for (earlier, suspected) in [("", 100), (" 50", 50)] {
            let earlier: Ladder = format!("at +4072 RO block 100 200 3{earlier}\n").parse().unwrap();
            let read = earlier.standings.values().map(|found| (found.suspected.as_secs(), found.risen.as_secs()));
            assert_eq!(read.collect::<Vec<_>>(), [(suspected, 100)]);
        }
        for wrong in [
            "at",
            "judged x",
            "usual RO 1 2",
            "at +4 RO up 1 2 3",
            "at +4 RO block 1 2 3 4 5 6",
            "at +4 RO block 1 2 3 x",
        ] {
            assert!(wrong.parse::<Ladder>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_highest_standing_around_a_number_counts() {
        let (mut ladder, now) = (Ladder::default(), Timestamp::from_secs(1_767_225_600));
        let of =
            |ladder: &Ladder| ladder.over("RO", "+4072123").map(|(scope, standing)| (scope.to_string(), standing.rung));
        assert_eq!(of(&ladder), None);
        ladder.standings.insert(Scope::country("RO"), Standing::raised("RO", Rung::Observe, 0, now));
        assert_eq!(of(&ladder), Some(("RO".to_owned(), Rung::Captcha)));
        ladder.standings.insert(Scope("+40721".to_owned()), Standing::raised("RO", Rung::Captcha, 0, now));
        assert_eq!(of(&ladder), Some(("+40721".to_owned(), Rung::Reduced)));
        assert_eq!(ladder.over("RO", "+4073123").map(|(_, standing)| standing.rung), Some(Rung::Captcha));
        assert!(ladder.over("VN", "+8491234").is_none());
    }

    #[test]
    fn holds_double_to_eight_hours() {
        let now = Timestamp::from_secs(1_767_225_600);
        let hours =
            |raised| (Standing::raised("RO", Rung::Observe, raised, now).until.as_secs() - now.as_secs()) / 1800;
        assert_eq!([0, 1, 2, 3, 4, 5, 100].map(hours), [1, 2, 4, 8, 16, 16, 16]);
    }

    #[test]
    fn what_is_usual_is_learned_and_half_forgotten() {
        let mut usual = Baseline::default();
        assert!((usual.conversion() - 0.7).abs() < 1e-9);
        usual.learn(980, 98);
        assert!((usual.conversion() - 0.112).abs() < 1e-9 && (usual.bad() - 0.056).abs() < 1e-9);
        for _ in 0..10 {
            usual.learn(1000, 900);
        }
        assert!(usual.conversion() > 0.85 && usual.sent <= Baseline::MEMORY && (usual.bad() - 0.1).abs() < 1e-9);
        usual.learn(u64::from(u32::MAX), 0);
        assert!((usual.odd() - 0.03).abs() < 1e-9, "never nothing");
    }
}
