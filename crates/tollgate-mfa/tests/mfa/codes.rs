//! Codes of factors, in every interleaving of those who type them: the real [`Attempt`]s and [`Write::apply`], searched state by state.
//!
//! Each person goes through the protocol a write at a time, at the clock of the process that serves him, while others go between and true
//! time moves. The referee keeps its own account: which steps and recovery codes were accepted, and how often something was compared.
//! With the order turned round, comparing before counting, it finds the fault that the order is there for.

use proptest::prelude::*;
use std::collections::{BTreeSet, HashSet};
use std::time::Duration;
use tollgate_core::Timestamp;
use tollgate_mfa::factors::attempt::Next;
use tollgate_mfa::factors::totp::{STEP, Secret};
use tollgate_mfa::factors::{Account, Attempt, Change, CodeHash, Recovery, Totp, Tries, Verification, Write};

const START: u64 = 1_767_225_600;
const SEALED: &str = "k1.sealed";

/// What somebody types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Typed {
    /// The app's code of a step, counted from the first.
    Step(u64),
    /// No code of the app.
    Wrong,
    /// A recovery code.
    Recovery(u8),
}

/// How far somebody has come.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Phase {
    Start,
    Counted(Account),
    Marks(Write),
    Done,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Person {
    typed: Typed,
    /// Seconds that the clock of his process is ahead.
    ahead: i64,
    phase: Phase,
}

/// What has happened.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
struct Referee {
    accepted: Vec<u64>,
    used: BTreeSet<u8>,
    /// Comparisons of wrong codes since true time moved or a right one was accepted.
    wrong: u32,
    fault: Option<&'static str>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct State {
    account: Account,
    people: Vec<Person>,
    secs: u64,
    jumps: Vec<u64>,
    referee: Referee,
}

/// The order of the protocol, and the one that it is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    CountsFirst,
    ComparesFirst,
}

fn secret() -> Secret {
    Secret::of(b"12345678901234567890").expect("20 bytes")
}

fn hash(n: u8) -> CodeHash {
    CodeHash([n; 32])
}

fn account() -> Account {
    let since = Timestamp::from_secs(START);
    let totp = Some(Totp { sealed: SEALED.to_owned(), since, step: START / STEP - 3 });
    Account { totp, recovery: Some(Recovery { since, codes: (0..3).map(hash).collect() }), ..Account::default() }
}

fn state(people: &[(Typed, i64)], jumps: &[u64]) -> State {
    let person = |(typed, ahead): &(Typed, i64)| Person { typed: *typed, ahead: *ahead, phase: Phase::Start };
    let people = people.iter().map(person).collect();
    State { account: account(), people, secs: 0, jumps: jumps.to_vec(), referee: Referee::default() }
}

impl State {
    fn write(&mut self, write: &Write) -> bool {
        let after = write.apply(Some(&self.account));
        let applied = after.is_some();
        self.account = after.unwrap_or_else(|| self.account.clone());
        applied
    }

    fn raise(&mut self, fault: &'static str) {
        self.referee.fault.get_or_insert(fault);
    }

    fn accepts(&mut self, write: &Write) {
        self.referee.wrong = 0;
        match &write.change {
            Change::Pass { step, .. } => {
                if self.referee.accepted.last().is_some_and(|last| last >= step) {
                    self.raise("a step was accepted again, or one before the last");
                }
                self.referee.accepted.push(*step);
            }
            Change::Use(code) => {
                if !self.referee.used.insert(code.0[0]) {
                    self.raise("a recovery code was used twice");
                }
            }
            other => panic!("{other:?}"),
        }
    }

    /// The next state where the person `p` goes on.
    fn goes_on(&self, p: usize, order: Order) -> Option<Self> {
        let mut next = self.clone();
        let Person { typed, ahead, phase } = self.people[p].clone();
        let now = Timestamp::from_secs(START + self.secs).offset_by(ahead * 1_000_000_000);
        let secret = secret();
        let code = match typed {
            Typed::Step(step) => secret.code(Timestamp::from_secs(START + step * STEP)),
            // Of a step that is far away.
            _ => secret.code(Timestamp::from_secs(START / 2)),
        };
        let attempt = match typed {
            Typed::Recovery(n) => Attempt::Recovery(Some(hash(n))),
            _ => Attempt::App { sealed: SEALED, secret: &secret, code: &code, reseal: SEALED },
        };
        let compares = |next: &mut Self, counted: &Account| match attempt.counted(counted, now) {
            Next::Write(write) => {
                // When it was compared: the write may arrive later.
                let present = (START + next.secs) / STEP;
                if matches!(write.change, Change::Pass { step, .. } if step.abs_diff(present) > 2) {
                    next.raise("a code was right more than a step and the clocks' difference away");
                }
                Phase::Marks(write)
            }
            Next::Done(Verification::WrongCode { .. }) => {
                next.referee.wrong += u32::from(typed == Typed::Wrong);
                if next.referee.wrong > Tries::WAITS[0].0 {
                    next.raise("more wrong codes were compared at once than may be");
                }
                if order == Order::ComparesFirst {
                    next.write(&attempt.count(now));
                }
                Phase::Done
            }
            Next::Done(other) => panic!("{other:?}"),
        };
        let phase = match (phase, order) {
            (Phase::Done, _) => return None,
            (Phase::Start, Order::ComparesFirst) if attempt.count(now).apply(Some(&self.account)).is_some() => {
                Phase::Counted(self.account.clone())
            }
            (Phase::Start, Order::CountsFirst) if next.write(&attempt.count(now)) => {
                Phase::Counted(next.account.clone())
            }
            (Phase::Start, _) => Phase::Done,
            (Phase::Counted(counted), _) => compares(&mut next, &counted),
            (Phase::Marks(write), _) => {
                if next.write(&write) {
                    next.accepts(&write);
                }
                Phase::Done
            }
        };
        next.people[p].phase = phase;
        Some(next)
    }

    fn jumps(&self) -> Option<Self> {
        let mut next = self.clone();
        next.secs += next.jumps.pop()?;
        next.referee.wrong = 0;
        Some(next)
    }

    /// Whoever is alike need not be told apart.
    fn sorted(mut self) -> Self {
        self.people.sort_by_key(|person| format!("{person:?}"));
        self
    }
}

/// Visits every state; returns how many there are, or the first fault.
fn search(start: State, order: Order) -> Result<usize, &'static str> {
    let (mut seen, mut open) = (HashSet::new(), vec![start.sorted()]);
    while let Some(state) = open.pop() {
        if let Some(fault) = state.referee.fault {
            return Err(fault);
        }
        if seen.contains(&state) {
            continue;
        }
        let next = (0..state.people.len()).filter_map(|p| state.goes_on(p, order)).chain(state.jumps());
        open.extend(next.map(State::sorted));
        seen.insert(state);
    }
    Ok(seen.len())
}

#[test]
fn one_code_typed_by_many_at_once_is_accepted_once() {
    let many = [(Typed::Step(0), 0), (Typed::Step(0), 1), (Typed::Step(0), -1), (Typed::Step(0), 0)];
    assert!(search(state(&many, &[30]), Order::CountsFirst).unwrap() > 100);
    let many = [(Typed::Recovery(1), 0), (Typed::Recovery(1), 0), (Typed::Recovery(1), 0), (Typed::Recovery(2), 0)];
    assert!(search(state(&many, &[]), Order::CountsFirst).unwrap() > 100);
}

#[test]
fn codes_of_neighbouring_steps_are_accepted_in_their_order_whatever_the_delays() {
    let people = [(Typed::Step(0), 0), (Typed::Step(1), 0), (Typed::Step(2), 1), (Typed::Step(1), -1)];
    assert!(search(state(&people, &[30, 30]), Order::CountsFirst).unwrap() > 1000);
}

#[test]
fn no_more_wrong_codes_are_compared_at_once_than_may_be_and_it_takes_the_order_for_that() {
    let wrong = [(Typed::Wrong, 0); 7];
    assert!(search(state(&wrong, &[]), Order::CountsFirst).unwrap() > 100);
    let fault = "more wrong codes were compared at once than may be";
    assert_eq!(search(state(&wrong, &[]), Order::ComparesFirst), Err(fault));
}

#[test]
fn wrong_codes_wait_longer_and_longer_and_end_at_a_hundred() {
    let (secret, mut account, mut now) = (secret(), account(), Timestamp::from_secs(START));
    let wrong = Attempt::App { sealed: SEALED, secret: &secret, code: "x", reseal: SEALED };
    let mut waited = Vec::new();
    while let Some(counted) = wrong.count(now).apply(Some(&account)) {
        account = counted;
        match account.totp_tries.turn(now) {
            tollgate_mfa::factors::Turn::After(wait) => {
                assert!(wrong.count((now + wait).offset_by(-1)).apply(Some(&account)).is_none());
                waited.push(wait.as_secs());
                now = now + wait;
            }
            turn => assert!(account.totp_tries.wrong < 5 || account.totp_tries.wrong == 100, "{turn:?}"),
        }
    }
    assert_eq!(account.totp_tries.wrong, 100);
    assert_eq!(waited, [vec![60; 5], vec![900; 10], vec![3600; 80]].concat());
    // For good, and for this factor alone.
    assert!(wrong.count(now + Duration::from_secs(365 * 86_400)).apply(Some(&account)).is_none());
    assert!(Attempt::Recovery(None).count(now).apply(Some(&account)).is_some());
}

/// What can happen beside the codes.
#[derive(Debug, Clone)]
enum Event {
    /// Somebody begins to type, at a process whose clock is so far ahead.
    Types(Typed, i64),
    /// One of those under way goes on.
    GoesOn(usize),
    /// True time moves, forwards only.
    Passes(u64),
}

fn event() -> impl Strategy<Value = Event> {
    let typed = prop_oneof![
        6 => (0_u64..8).prop_map(Typed::Step),
        2 => Just(Typed::Wrong),
        3 => (0_u8..3).prop_map(Typed::Recovery),
    ];
    prop_oneof![
        3 => (typed, -20_i64..20).prop_map(|(typed, ahead)| Event::Types(typed, ahead)),
        6 => (0_usize..8).prop_map(Event::GoesOn),
        1 => (0_u64..70).prop_map(Event::Passes),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn no_code_is_accepted_twice_whatever_the_order_the_delays_and_the_clocks(
        events in prop::collection::vec(event(), 1..60)
    ) {
        let mut state = state(&[], &[]);
        for event in events {
            match event {
                Event::Types(typed, ahead) => state.people.push(Person { typed, ahead, phase: Phase::Start }),
                Event::Passes(secs) => state.secs += secs,
                Event::GoesOn(n) => {
                    let going: Vec<_> =
                        (0..state.people.len()).filter(|p| state.people[*p].phase != Phase::Done).collect();
                    if let Some(p) = going.get(n % going.len().max(1)) {
                        state = state.goes_on(*p, Order::CountsFirst).expect("he is not done");
                    }
                    state.referee.wrong = 0;
                }
            }
            prop_assert_eq!(state.referee.fault, None);
        }
    }
}
