//! The judgement: from what became of messages to what is asked of whoever wants the next one.
//!
//! Three things speak against a prefix, each by a [bound](crate::pumping::evidence) and not by a quotient:
//!
//! | what | against what | from |
//! | --- | --- | --- |
//! | few codes of its messages are verified | half of what the table has learned to be usual in the country | cohorts whose codes are over |
//! | its numbers come in runs | one of twenty having a neighbour by chance, as families and companies do | all messages |
//! | several prefixes of one country are suspected at once | | the country as a whole, which is then asked for CAPTCHAs |
//!
//! Blocks are judged first, then prefixes of fewer digits by what is left once blocks that explain it are set aside, at last the country: so
//! what is restricted is as narrow as the evidence. A prefix that is restricted already is judged as a whole first, and then its parts. Up goes one rung at a time, and beyond CAPTCHA only on the messages of those who solved
//! one. Down goes it by itself: see [`ladder`](crate::pumping::ladder).
//!
//! Invariants: a judgement is a function of its arguments; a country is never restricted beyond CAPTCHAs if those who solve them
//! verify a tenth of theirs, or half of what is usual there.

use super::cohort::{Cohorts, Tally, Window};
use super::evidence::{ENOUGH, SOME, too_few, too_many};
use super::ladder::{Baseline, Ladder, Rung, Scope, Standing};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::time::Duration;
use tollgate_core::Timestamp;

/// Cohorts that are judged together: an hour, so that few messages add up.
const HORIZON: u64 = 12;

/// How much later than the end of its last code a cohort is judged. A credit comes through a queue: clocks lie up to two seconds apart, an
/// answer and a batch take some more, and a batch that the table refused is handed out again after twenty. What is later still counts as
/// not verified.
const GRACE: Duration = Duration::from_secs(30);

/// The part of messages whose number has a neighbour among the others by chance.
const NEIGHBOURS: f64 = 0.05;

/// Suspected scopes in one that make it the suspect, where nothing else in it speaks for it.
const SEVERAL: usize = 3;

/// Prefixes of a country that were suspected within [`RECENT`], and that make it a suspect.
const MANY: usize = 5;

/// How long a prefix counts among the many of its country.
const RECENT: Duration = Duration::from_secs(3 * 3600);

/// Messages that are too few to speak for a scope.
const FEW: u64 = 5;

/// Standings that are kept of a country; beyond, the country itself is what is judged.
const MOST_STANDINGS: usize = 100;

/// Why a scope went up or down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Why {
    /// Few codes were verified.
    Conversion,
    /// Numbers came in runs.
    Consecutive,
    /// Several scopes in it are suspected.
    Several,
    /// Its hold is over.
    HoldOver,
}

impl Why {
    /// Its name, in logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Conversion => "conversion",
            Self::Consecutive => "consecutive",
            Self::Several => "several",
            Self::HoldOver => "hold over",
        }
    }
}

/// A scope that went up or down.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// Which.
    pub scope: Scope,
    /// Where it was.
    pub from: Rung,
    /// Where it is.
    pub to: Rung,
    /// Why.
    pub why: Why,
}

/// The windows that a judgement at `now` looks at, where codes are good for `ttl`.
#[must_use]
pub fn windows(now: Timestamp, ttl: Duration) -> RangeInclusive<u64> {
    newest_matured(now, ttl).saturating_sub(HORIZON)..=Window::of(now).0
}

/// The last window of which no code is good any more, by its number.
fn newest_matured(now: Timestamp, ttl: Duration) -> u64 {
    let over = now.as_nanos().saturating_sub(u64::try_from((ttl + GRACE).as_nanos()).unwrap_or(u64::MAX));
    Window::of(Timestamp::from_nanos(over)).0.saturating_sub(1)
}

/// What is known of some blocks.
#[derive(Debug, Clone, Copy, Default)]
struct Evidence {
    /// Of matured cohorts.
    sent: u64,
    verified: u64,
    refused: u64,
    /// Of all cohorts.
    asked: u64,
    consecutive: u64,
}

impl Evidence {
    fn add(&mut self, tally: &Tally, is_matured: bool) {
        self.asked += tally.sent;
        self.consecutive += tally.consecutive();
        if is_matured {
            self.sent += tally.sent;
            self.verified += tally.converted();
            self.refused += tally.refused;
        }
    }

    fn sum<'e>(all: impl IntoIterator<Item = &'e Self>) -> Self {
        all.into_iter().fold(Self::default(), |a, b| Self {
            sent: a.sent + b.sent,
            verified: a.verified + b.verified,
            refused: a.refused + b.refused,
            asked: a.asked + b.asked,
            consecutive: a.consecutive + b.consecutive,
        })
    }

    /// Why scopes of this rung go up, if they do.
    #[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    fn speaks_against(&self, rung: Rung, is_country: bool, usual: &Baseline) -> Option<Why> {
        let (expected, enough) = match rung {
            Rung::Block => return None,
            Rung::Observe => (usual.odd(), ENOUGH),
            // Only a robot farm is so near to nothing, and people are everywhere in a country.
            _ if is_country => (usual.bad(), ENOUGH),
            // That it is attacked is known from those who solve no CAPTCHA; whether those who do are a part of it is what is asked.
            _ if usual.is_known() && self.goes_on(usual, ENOUGH) => (usual.odd(), SOME),
            _ => (usual.odd() / 2.0, ENOUGH),
        };
        if too_few(self.verified, self.sent, expected) >= enough {
            return Some(Why::Conversion);
        }
        // Humans who live next to each other, as far as a CAPTCHA tells.
        let are_runs = rung == Rung::Observe && too_many(self.consecutive, NEIGHBOURS * self.asked as f64) >= ENOUGH;
        are_runs.then_some(Why::Consecutive)
    }

    /// Whether nothing in it speaks for it.
    fn is_no_excuse(&self, usual: &Baseline) -> bool {
        self.sent < FEW || too_few(self.verified, self.sent, usual.odd()) >= SOME
    }

    /// Whether whoever is refused looks like an attack that goes on. An honest person is refused once before he solves a CAPTCHA.
    fn goes_on(&self, usual: &Baseline, enough: f64) -> bool {
        too_few(self.verified, self.sent + self.refused, usual.odd() / 2.0) >= enough
    }
}

/// A block whose messages are not explained yet.
struct Block {
    /// The scopes that it can be judged in, none wider than the one that restricts it: the smallest first, or that one if it is a prefix.
    scopes: Vec<Scope>,
    rung: Rung,
    raised: u32,
    evidence: Evidence,
}

/// Judges a country by its `cohorts` of the [`windows`] of now. What it says of others stays.
#[must_use]
pub fn judge(ladder: &Ladder, country: &str, cohorts: &Cohorts, ttl: Duration, now: Timestamp) -> (Ladder, Vec<Step>) {
    let now = Timestamp::from_secs(now.as_secs());
    let judgement = Judgement {
        ladder,
        country,
        usual: ladder.baselines.get(country).copied().unwrap_or_default(),
        cohorts,
        newest: newest_matured(now, ttl),
        now,
    };
    let mut next = Ladder { judged: now, ..ladder.clone() };
    let mut steps = judgement.up(&mut next);
    steps.extend(judgement.together(&mut next));
    steps.extend(judgement.down(&mut next));
    judgement.learn(&mut next);
    (next, steps)
}

struct Judgement<'a> {
    ladder: &'a Ladder,
    country: &'a str,
    usual: Baseline,
    cohorts: &'a Cohorts,
    newest: u64,
    now: Timestamp,
}

impl Judgement<'_> {
    /// The cohorts that speak, and whether each is matured.
    fn spoken(&self) -> impl Iterator<Item = (Window, bool, &BTreeMap<String, Tally>)> {
        let oldest = self.newest.saturating_sub(HORIZON - 1);
        let spoken = self.cohorts.range(Window(oldest)..);
        spoken.map(|(window, blocks)| (*window, window.0 <= self.newest, blocks))
    }

    fn blocks(&self) -> Vec<Block> {
        let mut evidence: BTreeMap<&str, Evidence> = BTreeMap::new();
        for (window, is_matured, blocks) in self.spoken() {
            for (block, tally) in blocks {
                let standings =
                    Scope::around(self.country, block).filter_map(|scope| self.ladder.standings.get(&scope));
                let since = standings.map(|standing| standing.since).max();
                if since.is_none_or(|since| window.start() >= since) {
                    evidence.entry(block).or_default().add(tally, is_matured);
                }
            }
        }
        evidence.into_iter().map(|(block, evidence)| self.block(block, evidence)).collect()
    }

    fn block(&self, block: &str, evidence: Evidence) -> Block {
        let mut scopes: Vec<_> = Scope::around(self.country, block).collect();
        let raised = scopes.iter().filter_map(|scope| self.ladder.standings.get(scope)).map(|found| found.raised).max();
        let over = self.ladder.over(self.country, block).filter(|(_, standing)| standing.rung > Rung::Observe);
        if let Some((over, _)) = over {
            let inside = scopes.iter().position(|scope| scope == over).unwrap_or(scopes.len());
            scopes.truncate(inside + 1);
            // A suspected prefix goes up as a whole, unless a part of it speaks for the rest.
            if !over.is_country() {
                scopes.reverse();
            }
        }
        let rung = over.map_or(Rung::Observe, |(_, standing)| standing.rung);
        Block { scopes, rung, raised: raised.unwrap_or(0), evidence }
    }

    /// The scopes that go up.
    fn up(&self, next: &mut Ladder) -> Vec<Step> {
        let mut rest = self.blocks();
        let mut steps: Vec<Step> = Vec::new();
        let levels = rest.iter().map(|block| block.scopes.len()).max().unwrap_or(0);
        for level in 0..levels {
            let mut groups: BTreeMap<(Scope, Rung), Vec<&Block>> = BTreeMap::new();
            for block in &rest {
                if let Some(scope) = block.scopes.get(level) {
                    groups.entry((scope.clone(), block.rung)).or_default().push(block);
                }
            }
            let mut explained = BTreeSet::new();
            let suspected: Vec<Scope> = next
                .standings
                .iter()
                .filter(|(scope, standing)| !scope.is_country() && standing.rung > Rung::Observe)
                .map(|(scope, _)| scope.clone())
                .collect();
            for ((scope, rung), group) in groups {
                let inside = suspected.iter().filter(|other| other.as_str().starts_with(scope.as_str())).count();
                let evidence = Evidence::sum(group.iter().map(|block| &block.evidence));
                let together = || rung == Rung::Observe && inside >= SEVERAL && evidence.is_no_excuse(&self.usual);
                let against = evidence.speaks_against(rung, scope.is_country(), &self.usual);
                let Some(why) = against.or_else(|| together().then_some(Why::Several)) else { continue };
                if !scope.is_country() && self.has_no_room(next, &scope) {
                    continue;
                }
                let raised = group.iter().map(|block| block.raised).max().unwrap_or(0);
                steps.retain(|step| scope.is_country() || !step.scope.as_str().starts_with(scope.as_str()));
                steps.push(self.raise(next, &scope, rung, raised, why));
                explained.insert((scope, rung));
            }
            rest.retain(|block| {
                block.scopes.get(level).is_none_or(|scope| !explained.contains(&(scope.clone(), block.rung)))
            });
        }
        steps
    }

    /// Whether one more would stand on the ladder than are kept of a country.
    fn has_no_room(&self, next: &Ladder, scope: &Scope) -> bool {
        !next.standings.contains_key(scope)
            && next.standings.values().filter(|standing| standing.country == self.country).count() >= MOST_STANDINGS
    }

    fn raise(&self, next: &mut Ladder, scope: &Scope, from: Rung, raised: u32, why: Why) -> Step {
        let mut standing = Standing::raised(self.country, from, raised, self.now);
        if let Some(known) = next.standings.get(scope) {
            standing.suspected = known.suspected;
        }
        // What it restricts no less needs no standing of its own.
        if !scope.is_country() {
            next.standings.retain(|other, inside| {
                let is_over = other.as_str().starts_with(scope.as_str()) && inside.rung <= standing.rung;
                if is_over {
                    standing.raised = standing.raised.max(inside.raised);
                    standing.suspected = standing.suspected.min(inside.suspected);
                }
                !is_over
            });
        }
        let to = standing.rung;
        next.standings.insert(scope.clone(), standing);
        Step { scope: scope.clone(), from, to, why }
    }

    /// The country, if many of its prefixes are suspected: whoever attacks moves on to the next.
    fn together(&self, next: &mut Ladder) -> Option<Step> {
        let scope = Scope::country(self.country);
        let known = next.standings.get(&scope);
        if known.is_some_and(|standing| standing.rung > Rung::Observe) {
            return None;
        }
        let (since, raised) = known.map_or((Timestamp::default(), 0), |standing| (standing.since, standing.raised));
        let is_recent = |standing: &&Standing| {
            // To come down is no suspicion, so `since` does not tell.
            let is_recent = standing.risen > since && standing.risen + RECENT > self.now;
            standing.country == self.country && is_recent
        };
        let many = next.standings.values().filter(is_recent).count() >= MANY;
        many.then(|| self.raise(next, &scope, Rung::Observe, raised, Why::Several))
    }

    /// The scopes whose hold is over and that nothing speaks against any more.
    fn down(&self, next: &mut Ladder) -> Vec<Step> {
        let over: Vec<_> = next
            .standings
            .iter()
            .filter(|(_, standing)| standing.country == self.country && standing.until <= self.now)
            .map(|(scope, standing)| (scope.clone(), standing.clone()))
            .collect();
        let mut steps = Vec::new();
        for (scope, standing) in over {
            match standing.rung {
                Rung::Observe => drop(next.standings.remove(&scope)),
                Rung::Captcha | Rung::Reduced if self.since(&scope, standing.since).goes_on(&self.usual, SOME) => {
                    next.standings.insert(scope, Standing { until: self.now + Standing::HOLD, ..standing });
                }
                from => {
                    let lowered = standing.lowered(self.now);
                    steps.push(Step { scope: scope.clone(), from, to: lowered.rung, why: Why::HoldOver });
                    next.standings.insert(scope, lowered);
                }
            }
        }
        steps
    }

    /// What matured cohorts since then say of a scope, whoever restricts what is in it.
    fn since(&self, scope: &Scope, since: Timestamp) -> Evidence {
        let is_inside = |block: &str| scope.is_country() || block.starts_with(scope.as_str());
        let mut evidence = Evidence::default();
        for (_, is_matured, blocks) in self.spoken().filter(|(window, ..)| window.start() >= since) {
            for (_, tally) in blocks.iter().filter(|(block, _)| is_inside(block)) {
                evidence.add(tally, is_matured);
            }
        }
        evidence
    }

    /// What is usual, from cohorts that have been looked at for as long as they speak, and from nobody who was suspected.
    fn learn(&self, next: &mut Ladder) {
        let oldest = self.newest.saturating_sub(HORIZON - 1);
        let usual = next.baselines.entry(self.country.to_owned()).or_default();
        let first = usual.learned.saturating_add(1).min(oldest);
        for (window, blocks) in self.cohorts.range(Window(first)..Window(oldest)) {
            for (block, tally) in blocks {
                let over = Scope::around(self.country, block).filter_map(|scope| next.standings.get(&scope));
                let is_trusted =
                    |standing: &Standing| standing.rung <= Rung::Captcha && window.start() >= standing.since;
                if over.into_iter().all(is_trusted) {
                    usual.learn(tally.sent, tally.converted());
                }
            }
        }
        usual.learned = usual.learned.max(oldest.saturating_sub(1));
    }
}

#[cfg(test)]
#[path = "judged.rs"]
mod tests;
