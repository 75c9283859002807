//! What locks must keep, told from the stored lock by its definition.

use crate::properties::{Event, Fault, takes_tokens_of};
use crate::scenario::Scenario;
use crate::state::{Flight, State};
use crate::table::{EPOCH, Table};
use tollgate_core::write::Write;
use tollgate_core::{Decision, Held, Item, LimitName, Outcome, Penalty, PenaltyRule, Timestamp};

impl Table {
    /// What a write of a call has made of the locks of `before`.
    pub(crate) fn check_locks(
        &self,
        s: &mut State,
        flight: &Flight,
        write: &Write,
        before: Option<&Item>,
        next: &Item,
    ) {
        let fastest = self.scenario.fastest(s.secs);
        let locked = |limit: &LimitName| before.and_then(|b| b.penalties.get(limit)).is_some_and(|p| p.until > fastest);
        let charges = self.charges(flight.party, flight.turn);
        if write.limits.iter().any(|part| locked(&part.limit) && takes_tokens_of(part, before, charges)) {
            self.raise(s, Fault::LockBypassed);
        }
        let at = self.moment(flight.party, flight.secs).now;
        for charge in charges.charges() {
            let of = |item: &Item| item.penalties.get(&charge.limit).copied();
            let (was, is) = (before.and_then(of), of(next));
            if was == is {
                continue;
            }
            let (Some(rule), Some(is)) = (charge.penalty, is) else { return self.raise(s, Fault::LockLost) };
            self.note_lock(&rule, was, is, at);
            if was.is_some_and(|was| was.until > is.until) {
                self.raise(s, Fault::LockLost);
            }
            if level_after(&rule, was, at) != Some(is.level) {
                self.raise(s, Fault::WrongLevel);
            }
        }
    }

    fn note_lock(&self, rule: &PenaltyRule, was: Option<Penalty>, is: Penalty, at: Timestamp) {
        self.coverage.note(match was {
            Some(was) if was.until > at => Event::LockExtended,
            Some(was) if is.level < (was.level + 1).min(highest(rule)) => Event::LevelForgotten,
            _ if is.level > 0 => Event::LevelRaised,
            _ => Event::Locked,
        });
    }

    /// Whether one of the limits that deny says that it is locked, and whether `item` bears that out.
    pub(crate) fn is_locked(&self, s: &mut State, decision: &Decision, item: Option<&Item>) -> bool {
        let mut any = false;
        for limit in decision.limits.iter().filter(|l| l.outcome == Outcome::Denied) {
            let Some(Held::Penalty { until }) = limit.held else { continue };
            let stored = item.and_then(|item| item.penalties.get(&limit.limit));
            if stored.is_none_or(|stored| stored.until != until || until <= limit.decided_at) {
                self.raise(s, Fault::DeniedThoughItFits);
            }
            any |= limit.is_in_the_way();
        }
        if any {
            self.coverage.note(Event::DeniedByLock);
        }
        any
    }
}

/// The level at which `most` is reached.
fn highest(rule: &PenaltyRule) -> u8 {
    let lengths =
        std::iter::successors(Some(rule.first()), |length| Some(*length * u32::try_from(rule.factor()).unwrap()));
    u8::try_from(lengths.take_while(|length| *length < rule.most()).count()).unwrap()
}

/// The level of a lock that is set, or moved, at `at`; `None` if none may be.
fn level_after(rule: &PenaltyRule, was: Option<Penalty>, at: Timestamp) -> Option<u8> {
    let Some(was) = was else { return Some(0) };
    if was.until > at {
        return rule.extends().then_some(was.level);
    }
    let over = u128::from(at.as_nanos() - was.until.as_nanos());
    let forgotten = u8::try_from(over / rule.forget().as_nanos()).unwrap_or(u8::MAX);
    Some((was.level + 1).min(highest(rule)).saturating_sub(forgotten))
}

/// Whether whoever finds the item deleted at `secs`, by the slowest clock, would have found no lock, and nothing of one.
pub(crate) fn nothing_is_lost(scenario: &Scenario, item: &Item, secs: u64) -> bool {
    let by_slowest = scenario.slowest(secs);
    item.penalties.iter().all(|(limit, penalty)| {
        let rules = scenario.callers.iter().flat_map(|c| &c.calls).flat_map(|c| c.charges());
        let mut rules = rules.filter(|charge| charge.limit == *limit).filter_map(|charge| charge.penalty);
        rules.all(|rule| penalty.until <= by_slowest && level_after(&rule, Some(*penalty), by_slowest) == Some(0))
    })
}

/// The second after which the table may delete the item.
pub(crate) fn deleted_at(item: &Item) -> u64 {
    item.expires_at.unwrap() + 1 - EPOCH
}
