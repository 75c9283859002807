//! What a run of the model is about: who calls, under which terms and clocks, and how far the search goes.
//!
//! A scenario is finite by construction: every call, jump of time, loss and crash is counted down, so that breadth-first
//! search visits every interleaving and stops.

use crate::mutant::Mutant;
use crate::properties::Fault;
use crate::table::EPOCH;
use std::time::Duration;
use tollgate_core::{
    Charge, Charges, Item, ItemKey, Key, LimitName, Log, PenaltyRule, Span, Terms, Timestamp, TokenBucket, Window,
};

/// A second, in nanoseconds.
pub(crate) const SECOND: i64 = 1_000_000_000;

/// What another key says of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Elsewhere {
    Allows,
    /// Either.
    MayDeny,
    Denies,
}

/// One of the callers that share the key.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// How far its clock is ahead of the table's, nanoseconds.
    pub(crate) offset: i64,
    /// What it asks for in each of its calls.
    pub(crate) calls: Vec<Charges>,
    /// What another key says of its calls after this one was charged.
    pub(crate) elsewhere: Elsewhere,
    /// Whether it charges as part of a transaction.
    pub(crate) exactly: bool,
    /// What its calls turn out to cost, if that is told afterwards.
    pub(crate) settles: Option<u64>,
    /// Most tokens that it takes ahead with a write.
    pub(crate) leases: u64,
}

impl Caller {
    /// A caller whose clock is right.
    pub(crate) fn new(calls: Vec<Charges>) -> Self {
        Self { offset: 0, calls, elsewhere: Elsewhere::Allows, exactly: false, settles: None, leases: 0 }
    }

    /// Its clock is that many seconds ahead.
    pub(crate) fn ahead(self, secs: i64) -> Self {
        Self { offset: secs * SECOND, ..self }
    }

    pub(crate) fn refusable(self) -> Self {
        Self { elsewhere: Elsewhere::MayDeny, ..self }
    }

    pub(crate) fn refused(self) -> Self {
        Self { elsewhere: Elsewhere::Denies, ..self }
    }

    /// Its calls are charged as estimated, and turn out to cost this.
    pub(crate) fn settling(self, actual: u64) -> Self {
        let within = Some(std::time::Duration::from_secs(60));
        let reserve = |charge: &Charge| Charge { settled_within: within, ..charge.clone() };
        let reserving = |asked: &Charges| charges(asked.charges().iter().map(reserve).collect());
        Self { calls: self.calls.iter().map(reserving).collect(), settles: Some(actual), ..self }
    }

    /// It takes up to `most` tokens ahead.
    pub(crate) fn leasing(self, most: u64) -> Self {
        Self { leases: most, ..self }
    }

    pub(crate) fn exactly(self) -> Self {
        Self { exactly: true, ..self }
    }
}

/// What an operator sets. Ends are in true seconds since the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// A ban until then.
    Ban(u64),
    /// Other figures for a limit until then.
    Override(LimitName, TokenBucket, u64),
    /// Everything is lifted.
    Lift,
}

/// Somebody who bans the key, or gives it other figures.
#[derive(Debug, Clone)]
pub(crate) struct Operator {
    /// How far its clock is ahead of the table's, nanoseconds.
    pub(crate) offset: i64,
    /// What it does, in turn.
    pub(crate) changes: Vec<Change>,
}

/// Who calls, and the bounds of the search.
#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    /// The callers; each starts without knowledge of the item.
    pub(crate) callers: Vec<Caller>,
    /// Those who set holds.
    pub(crate) operators: Vec<Operator>,
    /// By how many seconds true time may jump.
    pub(crate) jumps: Vec<u64>,
    /// How many jumps there are.
    pub(crate) advances: u8,
    /// A caller that has waited longer than this many seconds since it made its write gives up.
    pub(crate) deadline: u64,
    /// How many requests or replies get lost, deadlines apart.
    pub(crate) losses: u8,
    /// How many callers crash.
    pub(crate) crashes: u8,
    /// Whether the table deletes the item once it may.
    pub(crate) deletes: bool,
    /// A request that is under way for longer than this many seconds never arrives.
    pub(crate) latest: u64,
    /// Which guard is missing.
    pub(crate) mutant: Mutant,
    /// The only fault to look for, if not all.
    pub(crate) only: Option<Fault>,
}

impl Scenario {
    /// A scenario without failures: the callers contend while time may jump.
    pub(crate) fn new(callers: Vec<Caller>, jumps: &[u64], advances: u8) -> Self {
        let (jumps, mutant) = (jumps.to_vec(), Mutant::None);
        let (deadline, losses, crashes, deletes, latest) = (1, 0, 0, false, u64::MAX);
        let operators = Vec::new();
        Self { callers, operators, jumps, advances, deadline, losses, crashes, deletes, latest, mutant, only: None }
    }

    /// An operator whose clock is right makes these changes in turn.
    pub(crate) fn operated(mut self, changes: Vec<Change>) -> Self {
        self.operators.push(Operator { offset: 0, changes });
        self
    }

    pub(crate) fn losing(mut self, losses: u8) -> Self {
        self.losses = losses;
        self
    }

    pub(crate) fn crashing(mut self, crashes: u8) -> Self {
        self.crashes = crashes;
        self
    }

    pub(crate) fn deleting(mut self) -> Self {
        self.deletes = true;
        self
    }

    pub(crate) fn arriving_within(mut self, secs: u64) -> Self {
        self.latest = secs;
        self
    }

    pub(crate) fn without(mut self, guard: Mutant) -> Self {
        self.mutant = guard;
        self
    }

    pub(crate) fn looking_for(mut self, fault: Fault) -> Self {
        self.only = Some(fault);
        self
    }

    /// Most writes of one call of `caller`: two, and one for every change that somebody else may make meanwhile, since a
    /// corrected write is refused only if the item has changed.
    pub(crate) fn most_writes(&self, caller: usize) -> usize {
        // A call changes the item once, and once more if it is refunded or settled, or locks.
        let locks = |calls: &[Charges]| calls.iter().flat_map(Charges::charges).any(|charge| charge.penalty.is_some());
        let again = |by: &Caller| by.elsewhere != Elsewhere::Allows || by.settles.is_some();
        let changes = |calls: usize, by: &Caller| calls * (1 + usize::from(again(by)) + usize::from(locks(&by.calls)));
        let others = self.callers.iter().enumerate().filter(|(c, _)| *c != caller);
        let others: usize = others.map(|(_, other)| changes(other.calls.len(), other)).sum();
        // A caller's own earlier calls may still be under way, and the table may delete once a jump.
        let own = changes(self.callers[caller].calls.len() - 1, &self.callers[caller]);
        let operators: usize = self.operators.iter().map(|o| o.changes.len()).sum();
        let lock = usize::from(locks(&self.callers[caller].calls));
        // What it would take ahead may not fit, and is then left out.
        let ahead = if self.callers[caller].leases > 0 { 2 } else { 0 };
        2 + lock + ahead + others + own + operators + if self.deletes { usize::from(self.advances) } else { 0 }
    }

    /// The operator that is this party.
    pub(crate) fn operator(&self, party: usize) -> &Operator {
        &self.operators[party - self.callers.len()]
    }

    /// How far the clock of a party is ahead, nanoseconds.
    pub(crate) fn offset(&self, party: usize) -> i64 {
        self.callers.get(party).map_or_else(|| self.operator(party).offset, |caller| caller.offset)
    }

    /// How many calls or changes a party makes.
    pub(crate) fn turns(&self, party: usize) -> usize {
        self.callers.get(party).map_or_else(|| self.operator(party).changes.len(), |caller| caller.calls.len())
    }

    fn offsets(&self) -> impl Iterator<Item = i64> {
        self.callers.iter().map(|c| c.offset).chain(self.operators.iter().map(|o| o.offset)).chain([0])
    }

    /// The difference between the fastest and the slowest clock, the table's included, nanoseconds.
    pub(crate) fn spread(&self) -> i64 {
        self.offsets().max().unwrap() - self.offsets().min().unwrap()
    }

    /// What the fastest clock shows.
    pub(crate) fn fastest(&self, secs: u64) -> Timestamp {
        Timestamp::from_secs(EPOCH + secs).offset_by(self.offsets().max().unwrap())
    }

    /// What the slowest clock shows.
    pub(crate) fn slowest(&self, secs: u64) -> Timestamp {
        Timestamp::from_secs(EPOCH + secs).offset_by(self.offsets().min().unwrap())
    }

    /// All terms that callers of `limit` have.
    pub(crate) fn terms_of(&self, limit: &LimitName) -> Vec<Terms> {
        let charges = self.callers.iter().flat_map(|caller| caller.calls.iter().flat_map(Charges::charges));
        charges.filter(|charge| charge.limit == *limit).map(|charge| charge.terms.clone()).collect()
    }

    /// Tokens that callers may have taken ahead when a newer revision comes.
    pub(crate) fn outstanding(&self) -> u64 {
        let revisions =
            |caller: &Caller| caller.calls.iter().flat_map(Charges::charges).map(|c| c.terms.revision).max();
        let newest = self.callers.iter().filter_map(revisions).max();
        self.callers.iter().filter(|caller| revisions(caller) < newest).map(|caller| caller.leases).sum()
    }

    /// All token buckets that `limit` ever has: its callers' and the operators'.
    pub(crate) fn buckets_of(&self, limit: &LimitName) -> Vec<TokenBucket> {
        let own = self.terms_of(limit).into_iter().filter_map(|terms| terms.figures.token_bucket());
        own.chain(self.overrides().filter(|(l, ..)| *l == limit).map(|(_, bucket, _)| bucket)).collect()
    }

    /// The overrides that operators set: limit, figures, end.
    pub(crate) fn overrides(&self) -> impl Iterator<Item = (&LimitName, TokenBucket, Timestamp)> {
        self.operators.iter().flat_map(|o| &o.changes).filter_map(|change| match change {
            Change::Override(limit, bucket, secs) => Some((limit, *bucket, Timestamp::from_secs(EPOCH + secs))),
            Change::Ban(_) | Change::Lift => None,
        })
    }

    /// Which of the operators' overrides `item` has for `limit`. No two are equal.
    pub(crate) fn override_of(&self, item: &Item, limit: &LimitName) -> Option<usize> {
        let set = item.hold.as_ref()?.overrides.get(limit)?;
        self.overrides().position(|(l, bucket, until)| l == limit && set.figures == bucket.into() && until == set.until)
    }
}

/// A caller whose clock is `offset` seconds ahead and that makes `calls` calls of the same `charges`.
pub(crate) fn caller(offset: i64, calls: usize, charges: &Charges) -> Caller {
    Caller::new(vec![charges.clone(); calls]).ahead(offset)
}

/// `n` tokens per `period_ms` and `burst`.
pub(crate) fn figures(n: u64, period_ms: u64, burst: u64) -> TokenBucket {
    TokenBucket::new(n, period_ms * 1_000_000, burst).unwrap()
}

/// Terms of `n` tokens per `period_ms` and `burst`.
pub(crate) fn terms(revision: u64, plan: &str, n: u64, period_ms: u64, burst: u64) -> Terms {
    Terms::new(revision, figures(n, period_ms, burst)).on_plan(plan)
}

/// Terms of `most` in windows of so many seconds.
pub(crate) fn windows(revision: u64, most: u64, secs: u64, sliding: bool) -> Terms {
    Terms::new(revision, Window::new(most, Span::Every(secs * 1_000_000_000), sliding).unwrap())
}

/// Terms of a log of `most` in so many seconds.
pub(crate) fn log(revision: u64, most: u64, secs: u64) -> Terms {
    Terms::new(revision, Log::new(most, secs * 1_000_000_000).unwrap())
}

/// The limit `name`.
pub(crate) fn limit(name: &str) -> LimitName {
    LimitName::new(name).unwrap()
}

/// A charge on the limit `name`.
pub(crate) fn charge(name: &str, terms: &Terms, cost: u64) -> Charge {
    Charge::new(limit(name), terms.clone(), cost)
}

/// Locks of `first` seconds, then `factor` times as long, `most` at most; a level is forgotten in `forget` seconds.
pub(crate) fn rule(first: u64, factor: u64, most: u64, forget: u64) -> PenaltyRule {
    let secs = Duration::from_secs;
    PenaltyRule::new(secs(first), factor, secs(most), secs(forget)).unwrap()
}

/// A charge on the only limit, which locks.
pub(crate) fn penalised(terms: &Terms, cost: u64, rule: PenaltyRule) -> Charges {
    charges(vec![Charge { penalty: Some(rule), ..charge("l", terms, cost) }])
}

/// Charges on the one key of the model.
pub(crate) fn charges(list: Vec<Charge>) -> Charges {
    Charges::new(ItemKey::shared(Key::new([("user", "alice")]).unwrap()), list).unwrap()
}

/// A charge on the only limit.
pub(crate) fn single(terms: &Terms, cost: u64) -> Charges {
    charges(vec![charge("l", terms, cost)])
}

/// A caller whose clock is right and whose calls have these costs, in turn.
pub(crate) fn spender(terms: &Terms, costs: &[u64]) -> Caller {
    Caller::new(costs.iter().map(|cost| single(terms, *cost)).collect())
}
