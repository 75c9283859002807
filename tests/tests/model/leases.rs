//! Callers that take tokens ahead, and spend them without asking anybody.

use crate::mutant::Mutant;
use crate::properties::{Admission, Event};
use crate::scenario::Scenario;
use crate::shared::Shared;
use crate::state::{Flight, Party, Phase, State, Work};
use crate::table::Table;
use tollgate_core::lease::Pool;
use tollgate_core::{Charged, Item, LimitName, Take, Timestamp, TokenBucket};

impl Table {
    /// Whether a call is let through by what its caller has taken ahead.
    pub(crate) fn spend(&self, s: &mut State, c: usize, turn: usize) -> bool {
        let [charge] = self.charges(c, turn).charges() else { return false };
        let Some(pool) = s.parties[c].pool.as_deref() else { return false };
        let now = self.moment(c, s.secs).now;
        let pretended = match self.scenario.mutant {
            Mutant::LeaseNeverEnds => Timestamp::from_secs(now.as_secs().saturating_sub(2)),
            Mutant::LeaseUntilSlotEnds => Timestamp::from_secs(now.as_secs() - 1),
            _ => now,
        };
        let mut pool = pool.clone();
        if pool.spend(&charge.terms, charge.cost, pretended).is_none() {
            return false;
        }
        s.parties[c].pool = Some(Shared::new(pool));
        self.coverage.note(Event::Leased);
        s.admitted.push(Admission { limit: charge.limit.clone(), secs: s.secs, cost: charge.cost, under: None });
        self.check_admitted(s);
        self.forget(s, c);
        true
    }

    /// How many tokens a call takes ahead: all that there is room for, as far as its caller knows.
    pub(crate) fn ahead(&self, s: &State, c: usize, turn: usize) -> u64 {
        let charges = self.charges(c, turn);
        let room = Take::room(charges, s.parties[c].last_seen.as_deref(), self.moment(c, s.secs));
        self.scenario.callers[c]
            .leases
            .min((room * charges.charges()[0].cost).saturating_sub(charges.charges()[0].cost))
    }

    /// Keeps what a call that was charged has taken ahead; its own part, if the limit is leased.
    pub(crate) fn lease(&self, s: &mut State, flight: &Flight, left: &Item) -> Option<Vec<Charged>> {
        let (c, Work::Call(take)) = (flight.party, &flight.work) else { return None };
        if self.scenario.callers[c].leases == 0 {
            return None;
        }
        let one = self.charges(c, flight.turn);
        let (told, own) = take.shares(one, 1, flight.ahead, left).remove(0);
        let marked = (self.scenario.mutant == Mutant::LeaseOfUnleased).then(|| marked(left));
        let left = marked.as_ref().unwrap_or(left);
        let pool = Pool::of(one, take.charged().first()?, one.charges()[0].cost, &told, left)?;
        let pool = match s.parties[c].pool.take() {
            Some(earlier) => pool.after((*earlier).clone()),
            None => pool,
        };
        s.parties[c].pool = Some(Shared::new(pool));
        one.charges()[0].terms.leased.then_some(own)
    }

    /// Another key has denied a call on a leased limit: what it was charged stays with its caller.
    pub(crate) fn take_back(&self, s: &mut State, c: usize, own: &[Charged], left: Shared<Item>) {
        let party = &mut s.parties[c];
        if let (Some(pool), [own]) = (party.pool.as_deref(), own) {
            let mut pool = pool.clone();
            pool.give_back(own, 0, self.moment(c, s.secs).now);
            party.pool = Some(Shared::new(pool));
            self.coverage.note(Event::TakenBack);
        }
        (party.last_seen, party.phase) = (Some(left), Phase::Idle);
        self.forget(s, c);
    }
}

/// The item as if its buckets were leased.
fn marked(item: &Item) -> Item {
    let mut item = item.clone();
    item.buckets.values_mut().for_each(|bucket| bucket.terms.leased = true);
    item
}

/// Drops what was taken ahead if the item that was seen last is another than it was taken from.
pub(crate) fn look(party: &mut Party) {
    if let Some(pool) = &party.pool {
        let mut pool = (**pool).clone();
        pool.see(party.last_seen.as_deref());
        party.pool = Some(Shared::new(pool));
    }
}

/// The figures that bound what a limit admits: of a leased one the bursts of plans add up, and what is taken ahead when a newer
/// revision comes may be spent beside it.
pub(crate) fn bounds(scenario: &Scenario, limit: &LimitName) -> Vec<TokenBucket> {
    let mut buckets = scenario.buckets_of(limit);
    if scenario.terms_of(limit).iter().all(|terms| !terms.leased) {
        return buckets;
    }
    buckets.sort_by_key(|bucket| (bucket.n(), bucket.period(), bucket.burst()));
    buckets.dedup();
    let is_one_revision = scenario.outstanding() == 0;
    let burst = |bucket: &TokenBucket| bucket.burst();
    let all = if is_one_revision { buckets.iter().map(burst).sum() } else { buckets.iter().map(burst).max().unwrap() };
    let burst = all + scenario.outstanding();
    buckets.iter().map(|bucket| TokenBucket::new(bucket.n(), bucket.period(), burst).unwrap()).collect()
}
