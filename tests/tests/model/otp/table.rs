//! The model: people who run the real protocol, one item of a table, and a network that delays and loses.

use super::mutant::{self, Mutant};
use super::referee::{Event, Fault, Referee};
use super::scenario::{Nth, Scenario, Script, Typed};
use crate::shared::Shared;
use stateright::{Model, Property};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use tollgate_core::Timestamp;
use tollgate_otp::issue::{self, Issue};
use tollgate_otp::verify::{self, Attempt};
use tollgate_otp::write::Change;
use tollgate_otp::{Denied, Item, Verification, Write};

/// True time at the start, epoch seconds.
const EPOCH: u64 = 1_000_000;

/// What can happen next. Numbers are indices of people, but for `Late` (of orphans) and `Advance` (seconds).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    Start(usize),
    /// The table executes a request.
    Deliver(usize),
    /// Somebody learns what the table said.
    Reply(usize),
    /// A request, a reply or whoever waits for it is lost.
    Lose(usize),
    /// A request reaches the table after its maker has given up.
    Late(usize),
    /// True time moves; whoever is past his deadline gives up.
    Advance(u64),
    /// The table deletes the expired item.
    Delete,
}

/// What a write is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Work {
    Send(Nth),
    Type { of: Nth, is_right: bool },
}

/// A write under way, made at a true time.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Flight {
    work: Work,
    write: Shared<Write>,
    made: u64,
    writes: u8,
}

/// What the table said; of an applied write, when and which was the last code then.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Answer {
    Applied(Shared<Item>, u64, Nth),
    Refused(Option<Shared<Item>>),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Phase {
    Idle,
    Asked(Flight),
    Answered(Flight, Answer),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Person {
    turns: u8,
    phase: Phase,
}

/// A state of the search.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    secs: u64,
    item: Option<Shared<Item>>,
    people: Vec<Person>,
    orphans: Vec<Flight>,
    referee: Referee,
    /// Codes that were made so far.
    codes: Nth,
    advances: u8,
    losses: u8,
    fault: Option<Fault>,
}

/// A scenario, ready to be searched.
#[derive(Debug)]
pub(crate) struct Table {
    scenario: Scenario,
    /// Beside the states, since a flag in them would multiply them.
    pub(crate) happened: Arc<Mutex<BTreeSet<Event>>>,
}

impl Table {
    pub(crate) fn new(scenario: Scenario) -> Self {
        Self { scenario, happened: Arc::default() }
    }

    fn note(&self, event: Event) {
        self.happened.lock().unwrap().insert(event);
    }

    fn raise(&self, s: &mut State, fault: Option<Fault>) {
        if let Some(fault) = fault.filter(|fault| self.scenario.only.is_none_or(|only| only == *fault)) {
            s.fault.get_or_insert(fault);
        }
    }

    fn clock(&self, p: usize, secs: u64) -> Timestamp {
        Timestamp::from_secs(EPOCH + secs).offset_by(self.scenario.everybody[p].ahead * 1_000_000_000)
    }

    fn issue(&self, p: usize, n: Nth) -> Issue<'_> {
        let Scenario { world, everybody, .. } = &self.scenario;
        Issue::new(world.rules(), world.code(n).0, world.digest(n, everybody[p].keyring))
    }

    fn attempt(&self, p: usize, of: Nth, is_right: bool) -> Attempt<'_> {
        let world = &self.scenario.world;
        let (challenge, right) = world.code(of);
        let typed = if is_right { right } else { &world.wrong };
        let keyring = self.scenario.mutant.verifies_by(self.scenario.everybody[p].keyring);
        Attempt::new(world.rules(), world.secrets(keyring), &world.recipient, *challenge, typed)
    }

    /// Whether the process that serves `p` has the secret of what is stored.
    fn can_compare(&self, p: usize, item: &Item) -> bool {
        let keyring = self.scenario.everybody[p].keyring;
        self.scenario.world.secrets(keyring).ids().any(|id| id == item.digest.kid())
    }

    fn start(&self, s: &mut State, p: usize) {
        let turn = usize::from(s.people[p].turns);
        s.people[p].turns += 1;
        let now = self.clock(p, s.secs);
        let (work, write) = match &self.scenario.everybody[p].script {
            Script::Sends(_) => {
                s.codes += 1;
                (Work::Send(s.codes), self.issue(p, s.codes).first(now))
            }
            Script::Types(codes) => {
                let (last, first) = s.referee.messages().unwrap();
                let (of, is_right) = match codes[turn] {
                    Typed::Right => (last, true),
                    Typed::Wrong => (last, false),
                    Typed::First => (first, true),
                };
                (Work::Type { of, is_right }, self.attempt(p, of, is_right).count(now))
            }
        };
        self.ask(s, p, Flight { work, write: Shared::new(write.clone()), made: s.secs, writes: 0 }, write);
    }

    fn ask(&self, s: &mut State, p: usize, flight: Flight, write: Write) {
        let writes = flight.writes + 1;
        // A send is refused once for what it did not know, and once more for each other code that comes in between, or a deletion.
        let others = usize::from(s.codes) + if self.scenario.deletes { 1 } else { 0 };
        let most = match flight.work {
            Work::Send(_) => 1 + others,
            Work::Type { .. } => 2,
        };
        if usize::from(writes) > most {
            self.raise(s, Some(Fault::TooManyWrites));
        }
        s.people[p].phase = Phase::Asked(Flight { write: Shared::new(write), made: s.secs, writes, ..flight });
    }

    /// The table executes a write.
    fn execute(&self, s: &mut State, flight: &Flight) -> Answer {
        let before = s.item.clone();
        let sent = self.scenario.mutant.weaken(&flight.write);
        let Some(next) = sent.apply(before.as_deref()) else {
            self.check_refusal(s, flight);
            return Answer::Refused(before);
        };
        let is_count = sent.change == Change::Count;
        let is_wrong = matches!(flight.work, Work::Type { is_right: false, .. });
        if self.scenario.mutant == Mutant::ComparesInCondition && is_count && is_wrong {
            // The digest is one more condition: whether it fails is what a guesser wants to know.
            let fault = s.referee.compares(&self.scenario, self.scenario.world.nth(next.challenge), false);
            self.raise(s, fault);
            return Answer::Refused(before);
        }
        let (is_late_count, is_read) =
            (mutant::is_late_count(&sent), self.scenario.mutant == Mutant::CountsAfterComparing && is_count);
        if !is_late_count {
            self.applied(s, flight, &next);
        }
        let next = Shared::new(next);
        if is_late_count || !is_read {
            s.item = Some(next.clone());
        }
        // Nothing but a first code is stored before there is a last one.
        let last = s.referee.last().unwrap();
        Answer::Applied(next, s.secs, last)
    }

    fn applied(&self, s: &mut State, flight: &Flight, next: &Item) {
        let found = self.scenario.world.nth(next.challenge);
        let fault = match (flight.work, &flight.write.change) {
            (Work::Send(n), _) => {
                let is_resent = s.referee.last().is_some();
                let (is_new, fault) = s.referee.stores(&self.scenario, n, flight.made);
                if is_resent {
                    self.note(if is_new { Event::NewWindow } else { Event::Resent });
                }
                fault
            }
            (Work::Type { of, is_right }, Change::Count) => {
                let counted = s.referee.counts(&self.scenario, of, found, flight.made);
                self.raise(s, counted);
                s.referee.compares(&self.scenario, found, is_right)
            }
            (Work::Type { of, .. }, _) => {
                s.referee.uses(of);
                None
            }
        };
        self.raise(s, fault);
    }

    fn check_refusal(&self, s: &mut State, flight: &Flight) {
        let (Work::Type { of, .. }, Change::Count) = (flight.work, &flight.write.change) else { return };
        if s.referee.is_open(&self.scenario, of, flight.made) {
            self.raise(s, Some(Fault::RefusedActive));
        }
    }

    fn reply(&self, s: &mut State, p: usize) {
        let Phase::Answered(flight, answer) = std::mem::replace(&mut s.people[p].phase, Phase::Idle) else { return };
        match flight.work {
            Work::Send(n) => self.reply_to_send(s, p, n, flight, answer),
            Work::Type { of, is_right } => self.reply_to_type(s, p, (of, is_right), flight, answer),
        }
    }

    fn reply_to_send(&self, s: &mut State, p: usize, n: Nth, flight: Flight, answer: Answer) {
        let now = self.clock(p, s.secs);
        match answer {
            Answer::Applied(..) => {
                let fault = s.referee.sends(&self.scenario, n, flight.made);
                self.raise(s, fault);
            }
            Answer::Refused(found) => match self.issue(p, n).refused(found.as_deref(), now) {
                issue::Next::Write(write) => self.ask(s, p, flight, write),
                issue::Next::Denied(Denied::Locked { .. }) => self.note(Event::SendLocked),
                issue::Next::Denied(_) => self.note(Event::TooSoon),
            },
        }
    }

    fn reply_to_type(&self, s: &mut State, p: usize, typed: (Nth, bool), flight: Flight, answer: Answer) {
        let said = match (answer, &flight.write.change) {
            (Answer::Applied(item, ..), Change::Count) => match self.compare(s, p, typed, flight, &item) {
                Some(said) => said,
                None => return,
            },
            (Answer::Refused(found), Change::Count) => self.uncounted(p, typed, flight.made, found.as_deref()),
            (Answer::Applied(_, at, last), _) => {
                let (of, is_right) = typed;
                let fault = s.referee.verifies(&self.scenario, of, is_right, at, last);
                self.raise(s, fault);
                Verification::Verified
            }
            (Answer::Refused(_), _) => {
                self.note(Event::UseRefused);
                Verification::NoActive
            }
        };
        match said {
            Verification::Verified => self.note(Event::Verified),
            Verification::WrongCode { .. } => self.note(Event::WrongCode),
            Verification::NoActive => self.note(Event::NoActive),
            _ => {}
        }
    }

    /// What is said once the attempt is counted; `None` if there is another write.
    fn compare(
        &self,
        s: &mut State,
        p: usize,
        typed: (Nth, bool),
        flight: Flight,
        item: &Item,
    ) -> Option<Verification> {
        let (of, is_right) = typed;
        let is_late_count = mutant::is_late_count(&flight.write);
        match self.attempt(p, of, is_right).counted(item, self.clock(p, s.secs)) {
            verify::Next::Write(write) => self.ask(s, p, flight, write),
            verify::Next::Done(_) if self.scenario.mutant == Mutant::CountsAfterComparing && !is_late_count => {
                let late = Shared::new(mutant::late_count());
                s.people[p].phase = Phase::Asked(Flight { write: late, made: s.secs, ..flight });
            }
            verify::Next::Done(said) => {
                let is_known = self.can_compare(p, item);
                self.note(if is_known { Event::WrongCode } else { Event::SecretGone });
                // Whoever has the secret and types the right code has it compared and used.
                self.raise(s, (is_known && is_right && !is_late_count).then_some(Fault::RightRefused));
                return Some(said);
            }
        }
        None
    }

    fn uncounted(&self, p: usize, typed: (Nth, bool), made: u64, found: Option<&Item>) -> Verification {
        let said = self.attempt(p, typed.0, typed.1).uncounted(found, self.clock(p, made));
        if let (Verification::Locked { .. }, Some(found)) = (said, found) {
            let is_account = found.guesses >= self.scenario.world.rules().budget;
            self.note(if is_account { Event::AccountLocked } else { Event::CodeLocked });
        }
        said
    }

    fn give_up(&self, s: &mut State, p: usize) {
        let unconfirmed = self.scenario.mutant == Mutant::SendsUnconfirmed;
        match std::mem::replace(&mut s.people[p].phase, Phase::Idle) {
            Phase::Idle => {}
            Phase::Asked(flight) => {
                if let (true, Work::Send(n)) = (unconfirmed, flight.work) {
                    let fault = s.referee.sends(&self.scenario, n, flight.made);
                    self.raise(s, fault);
                }
                s.orphans.push(flight);
            }
            Phase::Answered(_, Answer::Applied(..)) => self.note(Event::LostAfterApply),
            Phase::Answered(..) => {}
        }
    }

    fn advance(&self, s: &mut State, secs: u64) {
        s.secs += secs;
        s.advances -= 1;
        for p in 0..s.people.len() {
            let made = match &s.people[p].phase {
                Phase::Idle => continue,
                Phase::Asked(flight) | Phase::Answered(flight, _) => flight.made,
            };
            if made + Scenario::DEADLINE < s.secs {
                self.give_up(s, p);
            }
        }
        s.orphans.retain(|flight| s.secs - flight.made <= Scenario::LATEST);
    }
}

impl Model for Table {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let people = vec![Person { turns: 0, phase: Phase::Idle }; self.scenario.everybody.len()];
        let Scenario { advances, losses, .. } = self.scenario;
        let (orphans, referee) = (Vec::new(), Referee::default());
        vec![State { secs: 0, item: None, people, orphans, referee, codes: 0, advances, losses, fault: None }]
    }

    fn actions(&self, s: &State, actions: &mut Vec<Action>) {
        if s.fault.is_some() {
            return;
        }
        for (p, person) in s.people.iter().enumerate() {
            let somebody = &self.scenario.everybody[p];
            let has_what_to_type = matches!(somebody.script, Script::Sends(_)) || s.referee.messages().is_some();
            match &person.phase {
                Phase::Idle if usize::from(person.turns) < somebody.turns() && has_what_to_type => {
                    actions.push(Action::Start(p));
                }
                Phase::Idle => {}
                Phase::Asked(_) => actions.push(Action::Deliver(p)),
                Phase::Answered(..) => actions.push(Action::Reply(p)),
            }
            if s.losses > 0 && person.phase != Phase::Idle {
                actions.push(Action::Lose(p));
            }
        }
        actions.extend((0..s.orphans.len()).map(Action::Late));
        if s.advances > 0 {
            actions.extend(self.scenario.jumps.iter().copied().map(Action::Advance));
        }
        if self.scenario.deletes && s.item.as_ref().is_some_and(|item| EPOCH + s.secs > item.expires_at) {
            actions.push(Action::Delete);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut s = last.clone();
        match action {
            Action::Start(p) => self.start(&mut s, p),
            Action::Deliver(p) => {
                let Phase::Asked(flight) = s.people[p].phase.clone() else { return None };
                let answer = self.execute(&mut s, &flight);
                s.people[p].phase = Phase::Answered(flight, answer);
            }
            Action::Reply(p) => self.reply(&mut s, p),
            Action::Lose(p) => {
                s.losses -= 1;
                self.give_up(&mut s, p);
            }
            Action::Late(i) => {
                let flight = s.orphans.remove(i);
                if let Answer::Applied(..) = self.execute(&mut s, &flight) {
                    self.note(Event::AppliedLate);
                }
            }
            Action::Advance(secs) => self.advance(&mut s, secs),
            Action::Delete => {
                s.item = None;
                self.note(Event::Deleted);
            }
        }
        Some(s)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("verified once", |_, s: &State| s.fault != Some(Fault::VerifiedTwice)),
            Property::always("only the right code", |_, s: &State| s.fault != Some(Fault::WrongVerified)),
            Property::always("only the last code", |_, s: &State| s.fault != Some(Fault::SupersededVerified)),
            Property::always("not after its time", |_, s: &State| s.fault != Some(Fault::ExpiredVerified)),
            Property::always("few guesses of a code", |_, s: &State| s.fault != Some(Fault::CodeGuessed)),
            Property::always("few guesses of an account", |_, s: &State| s.fault != Some(Fault::AccountGuessed)),
            Property::always("only what is active counts", |_, s: &State| s.fault != Some(Fault::CountedInactive)),
            Property::always("sent once stored", |_, s: &State| s.fault != Some(Fault::SentUnstored)),
            Property::always("sent after the cooldown", |_, s: &State| s.fault != Some(Fault::SentTooSoon)),
            Property::always("nothing is sent that is locked", |_, s: &State| s.fault != Some(Fault::SentWhileLocked)),
            Property::always("a refusal is exact", |_, s: &State| s.fault != Some(Fault::RefusedActive)),
            Property::always("the right code is not refused", |_, s: &State| s.fault != Some(Fault::RightRefused)),
            Property::always("few writes", |_, s: &State| s.fault != Some(Fault::TooManyWrites)),
        ]
    }
}
