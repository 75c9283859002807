//! What a run of the model is about: who calls, under which terms and clocks, and how far the search goes.
//!
//! A scenario is finite by construction: every call, jump of time, loss and crash is counted down, so that breadth-first
//! search visits every interleaving and stops.

use crate::mutant::Mutant;
use crate::properties::Fault;
use tollgate_core::{Charge, Charges, Key, LimitName, OnChange, Terms, TokenBucket};

/// A second, in nanoseconds.
pub(crate) const SECOND: i64 = 1_000_000_000;

/// One of the callers that share the key.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// How far its clock is ahead of the table's, nanoseconds.
    pub(crate) offset: i64,
    /// What it asks for in each of its calls.
    pub(crate) calls: Vec<Charges>,
}

/// Who calls, and the bounds of the search.
#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    /// The callers; each starts without knowledge of the item.
    pub(crate) callers: Vec<Caller>,
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
        Self { callers, jumps, advances, deadline, losses, crashes, deletes, latest, mutant, only: None }
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
        let others = self.callers.iter().enumerate().filter(|(c, _)| *c != caller).map(|(_, other)| other.calls.len());
        // A caller's own earlier calls may still be under way, and the table may delete once a jump.
        let own = self.callers[caller].calls.len() - 1;
        2 + others.sum::<usize>() + own + if self.deletes { usize::from(self.advances) } else { 0 }
    }

    /// The difference between the fastest and the slowest clock, the table's included, nanoseconds.
    pub(crate) fn spread(&self) -> i64 {
        let offsets = || self.callers.iter().map(|c| c.offset).chain([0]);
        offsets().max().unwrap() - offsets().min().unwrap()
    }

    /// The charges that callers ever make on `limit`.
    pub(crate) fn charges_on<'a>(&'a self, limit: &'a LimitName) -> impl Iterator<Item = &'a Charge> {
        let all = self.callers.iter().flat_map(|caller| caller.calls.iter().flat_map(|c| c.charges()));
        all.filter(move |charge| charge.limit == *limit)
    }
}

/// A caller whose clock is `offset` seconds ahead and that makes `calls` calls of the same `charges`.
pub(crate) fn caller(offset: i64, calls: usize, charges: &Charges) -> Caller {
    Caller { offset: offset * SECOND, calls: vec![charges.clone(); calls] }
}

/// Terms of `n` tokens per `period_ms` and `burst`.
pub(crate) fn terms(revision: u64, plan: &str, n: u64, period_ms: u64, burst: u64) -> Terms {
    let bucket = TokenBucket::new(n, period_ms * 1_000_000, burst).unwrap();
    Terms { revision, plan: plan.into(), bucket }
}

/// A charge on the limit `name`.
pub(crate) fn charge(name: &str, terms: &Terms, cost: u64) -> Charge {
    let limit = LimitName::new(name).unwrap();
    Charge { limit, terms: terms.clone(), on_change: OnChange::Proportional, cost }
}

/// Charges on the one key of the model.
pub(crate) fn charges(list: Vec<Charge>) -> Charges {
    Charges::new(Key::new([("user", "alice")]).unwrap(), list).unwrap()
}

/// A charge on the only limit.
pub(crate) fn single(terms: &Terms, cost: u64) -> Charges {
    charges(vec![charge("l", terms, cost)])
}

/// A caller whose clock is right and whose calls have these costs, in turn.
pub(crate) fn spender(terms: &Terms, costs: &[u64]) -> Caller {
    Caller { offset: 0, calls: costs.iter().map(|cost| single(terms, *cost)).collect() }
}
