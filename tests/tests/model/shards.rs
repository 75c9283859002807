//! A limit divided between two shards, searched exhaustively: callers that ask one shard and, where that denies, perhaps the other.
//!
//! What holds of one item is the matter of the other scenarios. Here the real [`Take`] runs on two, and what is checked is of both
//! together: they never admit more than the limit that is divided, over any interval, and no call is charged on both. Which shard
//! is asked first, whether the other is asked at all, who is first, when time moves, and which reply is lost (its write may still
//! arrive) are all tried.

use crate::properties::{Admission, Coverage, Event, over_admitted};
use crate::scenario::{Caller, Scenario, charge, limit, single, terms};
use crate::shared::Shared;
use crate::table::EPOCH;
use stateright::{Checker, HasDiscoveries, Model, Property};
use std::num::NonZeroU16;
use std::sync::Arc;
use tollgate_core::take::Moment;
use tollgate_core::{
    Charges, Decision, Item, ItemKey, Key, Outcome, Shard, Step, Take, Terms, Timestamp, TokenBucket, Write,
};

const SHARDS: u16 = 2;

/// How the limit is divided, and when the other shard is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rules {
    /// The real ones.
    Real,
    /// The burst is divided and rounded up.
    RoundsUp,
    /// The burst is divided, and the rate is not.
    KeepsTheRate,
    /// The other shard is asked as well where the answer of the first is lost.
    AsksOnWithoutAnswer,
}

/// What a caller waits for on a shard.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Asked {
    /// Which of whose calls.
    call: (usize, usize),
    shard: u16,
    is_second: bool,
    take: Take,
    /// The write, or a read.
    write: Option<Write>,
    /// True time of the instant that the write is dated by.
    secs: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Phase {
    Idle,
    Asking(Shared<Asked>),
    /// This shard gave no room.
    Denied(u16),
}

type Seen = [Option<Shared<Item>>; SHARDS as usize];

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Party {
    /// Calls begun.
    turns: usize,
    last_seen: Seen,
    phase: Phase,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct State {
    secs: u64,
    items: Seen,
    callers: Vec<Party>,
    /// Requests whose caller has given up.
    orphans: Vec<Shared<Asked>>,
    /// Calls that were charged, once for each time.
    charged: Vec<(usize, usize)>,
    admitted: Vec<Admission>,
    advances: u8,
    losses: u8,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Action {
    /// A caller asks a shard, for its next call or for the one that another shard has denied.
    Ask(usize, u16),
    /// A caller leaves it at the denial.
    Accept(usize),
    /// The table executes a request, and its caller learns what it says.
    Answer(usize),
    /// The caller gives up.
    Lose(usize),
    /// The table executes a request that nobody waits for.
    Late(usize),
    Advance,
}

/// A limit between two shards, and each caller's calls by their costs.
#[derive(Debug)]
struct Divided {
    whole: Terms,
    calls: Vec<Vec<u64>>,
    /// The limit as one item would have it, whose bound is to hold.
    bound: Scenario,
    losses: u8,
    rules: Rules,
    coverage: Arc<Coverage>,
}

impl Divided {
    fn new(whole: &Terms, calls: &[&[u64]], losses: u8, rules: Rules) -> Self {
        let bound = Scenario::new(vec![Caller::new(vec![single(whole, 1)])], &[1], 0);
        let calls = calls.iter().map(|costs| costs.to_vec()).collect();
        Self { whole: whole.clone(), calls, bound, losses, rules, coverage: Arc::default() }
    }

    /// What a call is charged on a shard.
    fn charges(&self, shard: u16, cost: u64) -> Charges {
        let item = ItemKey::own(Key::new([("user", "alice")]).unwrap(), limit("l"));
        let on = |item: ItemKey, terms: &Terms| Charges::new(item, vec![charge("l", terms, cost)]).unwrap();
        let (n, of) = (u64::from(SHARDS), NonZeroU16::new(SHARDS).unwrap());
        let whole = self.whole.figures.token_bucket().unwrap();
        let (period, burst) = match self.rules {
            Rules::Real | Rules::AsksOnWithoutAnswer => return on(item, &self.whole).sharded(Some(of)).on_shard(shard),
            Rules::RoundsUp => (whole.period() * n, whole.burst().div_ceil(n)),
            Rules::KeepsTheRate => (whole.period(), self.whole.figures.shard(Shard::new(shard, of).unwrap()).burst()),
        };
        let figures = TokenBucket::new(whole.n(), period, burst).unwrap().into();
        on(item.on_shard(shard), &Terms { figures, ..self.whole.clone() })
    }

    fn ask(&self, s: &mut State, c: usize, shard: u16) {
        let is_second = matches!(s.callers[c].phase, Phase::Denied(_));
        s.callers[c].turns += usize::from(!is_second);
        let turn = s.callers[c].turns - 1;
        let seen = s.callers[c].last_seen[usize::from(shard)].clone();
        // No two calls have the same: as good as random.
        let id = u64::try_from(turn * self.calls.len() + c).unwrap();
        let charges = self.charges(shard, self.calls[c][turn]);
        let (take, step) = Take::start(charges, seen.as_deref(), moment(s.secs), id);
        let asked = Asked { call: (c, turn), shard, is_second, take, write: None, secs: s.secs };
        self.follow(s, asked, step);
    }

    fn follow(&self, s: &mut State, asked: Asked, step: Step) {
        let c = asked.call.0;
        s.callers[c].phase = match step {
            Step::Done(decision) => self.decided(s, &asked, &decision),
            Step::Read => Phase::Asking(Shared::new(Asked { write: None, secs: s.secs, ..asked })),
            Step::Write(write) | Step::Lock { write, .. } => {
                // A corrected write may keep the instant of the first.
                let memory = write.memory.unwrap();
                let secs = memory.expires_at - memory.horizon - 1 - EPOCH;
                Phase::Asking(Shared::new(Asked { write: Some(write), secs, ..asked }))
            }
        };
        if s.callers[c].turns == self.calls[c].len() && s.callers[c].phase == Phase::Idle {
            // Nothing depends on what it remembers.
            s.callers[c].last_seen = [None, None];
        }
    }

    /// What comes of a decision: an admission, a denial that the other shard may turn, or the end of the call.
    fn decided(&self, s: &mut State, asked: &Asked, decision: &Decision) -> Phase {
        let is_denied = decision.outcome() == Outcome::Denied;
        if decision.is_allowed() {
            let cost = decision.limits[0].cost;
            s.admitted.push(Admission { limit: limit("l"), secs: asked.secs, cost, under: None });
            s.admitted.sort();
        }
        if asked.is_second {
            self.coverage.note(if is_denied { Event::Denied } else { Event::AdmittedByOtherShard });
        }
        if is_denied && !asked.is_second { Phase::Denied(asked.shard) } else { Phase::Idle }
    }

    fn answer(&self, s: &mut State, c: usize) {
        let Phase::Asking(asked) = s.callers[c].phase.clone() else { return };
        let (mut asked, moment) = ((*asked).clone(), moment(s.secs));
        let applied = execute(s, &asked);
        let found = s.items[usize::from(asked.shard)].clone();
        let step = match (&applied, &asked.write) {
            (Some(item), _) => asked.take.applied(item, moment),
            (None, Some(_)) => asked.take.refused(found.as_deref(), moment),
            (None, None) => asked.take.read(found.as_deref(), moment),
        };
        s.callers[c].last_seen[usize::from(asked.shard)] = found;
        self.follow(s, asked, step);
    }

    fn lose(&self, s: &mut State, c: usize) {
        s.losses -= 1;
        let Phase::Asking(asked) = std::mem::replace(&mut s.callers[c].phase, Phase::Idle) else { return };
        if self.rules == Rules::AsksOnWithoutAnswer && !asked.is_second {
            s.callers[c].phase = Phase::Denied(asked.shard);
        }
        s.orphans.push(asked);
    }
}

fn moment(secs: u64) -> Moment {
    Moment { now: Timestamp::from_secs(EPOCH + secs), clock_agrees: true }
}

/// The table executes a request; what its write left, if it was applied. Every write of these scenarios that is applied charges.
fn execute(s: &mut State, asked: &Asked) -> Option<Shared<Item>> {
    let item = &mut s.items[usize::from(asked.shard)];
    let next = Shared::new(asked.write.as_ref()?.apply(item.as_deref())?);
    *item = Some(next.clone());
    s.charged.push(asked.call);
    s.charged.sort_unstable();
    Some(next)
}

impl Model for Divided {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let party = Party { turns: 0, last_seen: [None, None], phase: Phase::Idle };
        let (callers, losses) = (vec![party; self.calls.len()], self.losses);
        let (orphans, charged, admitted) = (Vec::new(), Vec::new(), Vec::new());
        vec![State { secs: 0, items: [None, None], callers, orphans, charged, admitted, advances: 2, losses }]
    }

    fn actions(&self, s: &State, actions: &mut Vec<Action>) {
        for (c, party) in s.callers.iter().enumerate() {
            match &party.phase {
                Phase::Idle if party.turns < self.calls[c].len() => {
                    actions.extend((0..SHARDS).map(|shard| Action::Ask(c, shard)));
                }
                Phase::Idle => {}
                Phase::Denied(first) => actions.extend([Action::Ask(c, 1 - first), Action::Accept(c)]),
                Phase::Asking(_) => {
                    actions.push(Action::Answer(c));
                    actions.extend((s.losses > 0).then_some(Action::Lose(c)));
                }
            }
        }
        actions.extend((0..s.orphans.len()).map(Action::Late));
        actions.extend((s.advances > 0).then_some(Action::Advance));
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut s = last.clone();
        match action {
            Action::Ask(c, shard) => self.ask(&mut s, c, shard),
            Action::Accept(c) => s.callers[c].phase = Phase::Idle,
            Action::Answer(c) => self.answer(&mut s, c),
            Action::Lose(c) => self.lose(&mut s, c),
            Action::Late(i) => {
                let asked = s.orphans.remove(i);
                execute(&mut s, &asked);
            }
            Action::Advance => {
                s.secs += 1;
                s.advances -= 1;
            }
        }
        Some(s)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("both shards never over-admit", |divided: &Self, s: &State| {
                !over_admitted(&divided.bound, &s.admitted)
            }),
            Property::always("no call is charged twice", |_, s: &State| {
                !s.charged.windows(2).any(|two| two[0] == two[1])
            }),
        ]
    }
}

/// 1/s and 3 at once: two in the first shard, one in the other.
fn search(calls: &[&[u64]], losses: u8, rules: Rules) -> (impl Checker<Divided>, Arc<Coverage>) {
    let divided = Divided::new(&terms(1, "", 1, 1000, 3), calls, losses, rules);
    let coverage = Arc::clone(&divided.coverage);
    (divided.checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join(), coverage)
}

fn holds(calls: &[&[u64]], losses: u8, states: usize) {
    let (checker, coverage) = search(calls, losses, Rules::Real);
    checker.assert_properties();
    for event in [Event::Denied, Event::AdmittedByOtherShard] {
        assert!(coverage.has(event), "{event:?} never happened");
    }
    assert!(checker.unique_state_count() >= states, "only {} states", checker.unique_state_count());
}

#[test]
fn two_shards_admit_together_what_the_limit_says() {
    holds(&[&[1, 1, 1], &[1, 1]], 0, 56_000);
}

#[test]
fn a_lost_reply_of_a_shard() {
    holds(&[&[1, 2], &[1, 1]], 1, 62_000);
}

#[test]
fn a_burst_that_is_rounded_up_and_a_rate_that_is_not_divided_are_caught() {
    for rules in [Rules::RoundsUp, Rules::KeepsTheRate] {
        let (checker, _) = search(&[&[1, 1, 1], &[1, 1]], 0, rules);
        assert!(checker.discovery("both shards never over-admit").is_some(), "{rules:?}");
    }
}

#[test]
fn asking_the_other_shard_without_an_answer_of_the_first_is_caught() {
    let (checker, _) = search(&[&[1, 2], &[1, 1]], 1, Rules::AsksOnWithoutAnswer);
    assert!(checker.discovery("no call is charged twice").is_some());
}
