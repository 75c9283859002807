//! The model: parties that run the real protocol, one item of a table, and a network that delays and loses.
//!
//! A party's step, the table's evaluation of a write and a jump of time are separate actions, so that anything may
//! happen between them. The table's side is [`Write::apply`](tollgate_core::Write::apply), the meaning that the stores
//! implement.

use crate::logs;
use crate::mutant::{Form, Mutant, form};
use crate::penalties::nothing_is_lost;
use crate::properties::{
    Coverage, Event, Fault, bypasses_ban, expires_in_time, goes_by_hold, keeps_hold, takes_tokens,
};
use crate::scenario::{Elsewhere, Scenario};
use crate::shared::Shared;
use crate::state::{Flight, Party, Phase, Reply, State, Work};
use stateright::{Model, Property};
use std::sync::Arc;
use tollgate_core::take::Moment;
use tollgate_core::{Charges, Item, Timestamp, Write};

/// True time at the start, epoch seconds.
pub(crate) const EPOCH: u64 = 1_000;

/// What can happen next. Numbers are indices of parties, but for `Late` (of orphans) and `Advance` (seconds).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// A caller starts its next call, an operator looks at the item for the next change.
    Start(usize),
    /// The table executes a request.
    Deliver(usize),
    /// A caller learns what the table said.
    Reply(usize),
    /// A caller learns that its charge was applied, and that another key denies the call.
    Refuse(usize),
    /// A request or reply gets lost; its party gives up.
    Lose(usize),
    /// A caller dies and is replaced by one that has seen nothing.
    Crash(usize),
    /// A request reaches the table after its party has given up.
    Late(usize),
    /// True time moves; parties past their deadline give up.
    Advance(u64),
    /// The table deletes the expired item.
    Delete,
}

/// A scenario, ready to be searched.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) scenario: Scenario,
    pub(crate) coverage: Arc<Coverage>,
}

impl Table {
    pub(crate) fn new(scenario: Scenario) -> Self {
        Self { scenario, coverage: Arc::default() }
    }

    /// What the clock of a party shows at a true time. All clocks agree with the table's to within its tolerance.
    pub(crate) fn moment(&self, party: usize, secs: u64) -> Moment {
        let now = Timestamp::from_secs(EPOCH + secs).offset_by(self.scenario.offset(party));
        Moment { now, clock_agrees: true }
    }

    pub(crate) fn charges(&self, caller: usize, call: usize) -> &Charges {
        &self.scenario.callers[caller].calls[call]
    }

    pub(crate) fn raise(&self, s: &mut State, fault: Fault) {
        if self.scenario.only.is_none_or(|only| only == fault) {
            s.fault.get_or_insert(fault);
        }
    }

    fn is_caller(&self, party: usize) -> bool {
        party < self.scenario.callers.len()
    }

    /// The table executes a request: the item before and after decide what it answers.
    pub(crate) fn execute(&self, s: &mut State, flight: &mut Flight) -> Reply {
        let Some(write) = flight.request.clone() else { return Reply::Read(s.item.clone()) };
        let before = s.item.clone();
        let sent = self.scenario.mutant.weaken(&write, EPOCH + flight.secs, before.as_deref());
        let Some(next) = sent.apply(before.as_deref()) else { return Reply::Refused(before, s.secs) };
        self.note_forms(&write, before.as_deref());
        if before.as_ref().is_some_and(|before| next.horizon < before.horizon) {
            self.raise(s, Fault::HorizonShrank);
        }
        if next.buckets.values().any(logs::is_off) {
            self.raise(s, Fault::OverAdmitted);
        }
        if !expires_in_time(&self.scenario, &next) {
            self.raise(s, Fault::ExpiresTooEarly);
        }
        match &flight.work {
            Work::Call(_) | Work::GivenUp => self.check_call(s, flight, &write, before.as_deref(), &next),
            Work::Refund(giving) => {
                flight.applied += 1;
                let fault = giving.fault(flight.applied, &write, before.as_deref(), &next);
                let more = giving.more(flight.secs, &write, before.as_deref(), &next);
                if let Some(fault) = fault {
                    self.raise(s, fault);
                } else if !more.is_empty() {
                    self.coverage.note(Event::ChargedMore);
                    s.admitted.extend(more);
                    self.check_admitted(s);
                }
            }
            Work::Change => {}
        }
        let next = Shared::new(next);
        s.item = Some(next.clone());
        Reply::Applied(next)
    }

    fn check_call(&self, s: &mut State, flight: &mut Flight, write: &Write, before: Option<&Item>, next: &Item) {
        if !keeps_hold(&self.scenario, before, next, s.secs) {
            self.raise(s, Fault::HoldLost);
        }
        self.check_locks(s, flight, write, before, next);
        if !goes_by_hold(write, next) {
            self.raise(s, Fault::WrongFigures);
        }
        if write.hold.is_some() {
            self.coverage.note(Event::Lapsed);
        }
        if takes_tokens(write, before, self.charges(flight.party, flight.turn)) {
            flight.applied += 1;
            if flight.applied > 1 {
                self.raise(s, Fault::ChargedTwice);
            }
            if bypasses_ban(&self.scenario, before, s.secs) {
                self.raise(s, Fault::BanBypassed);
            }
        }
    }

    fn note_forms(&self, write: &Write, before: Option<&Item>) {
        for limit in write.limits.iter().filter(|l| before.is_some_and(|i| i.buckets.contains_key(&l.limit))) {
            self.coverage.note(match form(limit) {
                Form::Busy => Event::Busy,
                Form::Idle => Event::Idle,
                Form::Exact => Event::Exact,
                Form::Refund => Event::Refunded,
            });
        }
    }

    fn deliver(&self, s: &mut State, p: usize) {
        let Phase::Asked(flight) = &s.parties[p].phase else { return };
        let mut flight = (**flight).clone();
        let reply = self.execute(s, &mut flight);
        match flight.work {
            Work::Call(_) | Work::GivenUp => {
                // A write that was corrected from the item found fits that item, whatever time has done meanwhile.
                if matches!(&reply, Reply::Refused(item, _) if flight.writes > 1 && *item == s.parties[p].last_seen) {
                    self.raise(s, Fault::RefusedUnchanged);
                }
                s.parties[p].phase = Phase::Answered(Shared::new(flight), reply);
            }
            Work::Refund(_) => self.refund_answered(s, flight, reply),
            Work::Change => self.change_answered(s, p, reply),
        }
    }

    pub(crate) fn give_up(&self, s: &mut State, p: usize) {
        match std::mem::replace(&mut s.parties[p].phase, Phase::Idle) {
            Phase::Idle => {}
            Phase::Asked(flight) => {
                let (work, again) = match &flight.work {
                    Work::Call(_) => (Work::GivenUp, None),
                    Work::Refund(giving) => giving.given_up(),
                    other => (other.clone(), None),
                };
                if let Some(work) = again {
                    s.parties[p].phase = Phase::Asked(Shared::new(Flight { work, ..(*flight).clone() }));
                }
                s.orphans.push(Shared::new(Flight { work, ..(*flight).clone() }));
            }
            Phase::Answered(flight, reply) => {
                if matches!(reply, Reply::Applied(_)) {
                    self.coverage.note(Event::LostAfterApply);
                    if self.scenario.mutant == Mutant::RetriesAmbiguous {
                        s.parties[p].phase = Phase::Asked(flight);
                    }
                }
            }
        }
        self.forget(s, p);
    }

    /// Drops what a party without further calls remembers: nothing depends on it.
    pub(crate) fn forget(&self, s: &mut State, p: usize) {
        if s.parties[p].phase == Phase::Idle && s.parties[p].turns == self.scenario.turns(p) {
            s.parties[p].last_seen = None;
            s.parties[p].pool = None;
        }
    }

    fn advance(&self, s: &mut State, secs: u64) {
        s.secs += secs;
        s.advances -= 1;
        for p in 0..s.parties.len() {
            let made = match &s.parties[p].phase {
                Phase::Idle => continue,
                Phase::Asked(flight) | Phase::Answered(flight, _) => flight.secs,
            };
            if made + self.scenario.deadline < s.secs {
                self.give_up(s, p);
            }
        }
        s.orphans.retain(|flight| s.secs - flight.secs <= self.scenario.latest);
    }

    fn party_actions(&self, s: &State, p: usize, actions: &mut Vec<Action>) {
        let party = &s.parties[p];
        match &party.phase {
            Phase::Idle if party.turns < self.scenario.turns(p) => actions.push(Action::Start(p)),
            Phase::Idle => {}
            Phase::Asked(_) => actions.push(Action::Deliver(p)),
            Phase::Answered(flight, reply) => {
                let elsewhere = self.elsewhere(flight, reply);
                if elsewhere != Elsewhere::Denies {
                    actions.push(Action::Reply(p));
                }
                if elsewhere != Elsewhere::Allows {
                    actions.push(Action::Refuse(p));
                }
            }
        }
        if s.losses > 0 && party.phase != Phase::Idle {
            actions.push(Action::Lose(p));
        }
        if s.crashes > 0 && self.is_caller(p) && (party.phase != Phase::Idle || party.last_seen.is_some()) {
            actions.push(Action::Crash(p));
        }
    }
}

impl Model for Table {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let parties = self.scenario.callers.len() + self.scenario.operators.len();
        let parties = vec![Party { turns: 0, last_seen: None, pool: None, phase: Phase::Idle }; parties];
        let Scenario { advances, losses, crashes, .. } = self.scenario;
        let (orphans, admitted) = (Vec::new(), Vec::new());
        vec![State { secs: 0, item: None, parties, orphans, admitted, advances, losses, crashes, fault: None }]
    }

    fn actions(&self, s: &State, actions: &mut Vec<Action>) {
        if s.fault.is_some() {
            return;
        }
        for p in 0..s.parties.len() {
            self.party_actions(s, p, actions);
        }
        actions.extend((0..s.orphans.len()).map(Action::Late));
        if s.advances > 0 {
            actions.extend(self.scenario.jumps.iter().copied().map(Action::Advance));
        }
        let expires_at = s.item.as_ref().and_then(|item| item.expires_at);
        if self.scenario.deletes && expires_at.is_some_and(|at| EPOCH + s.secs > at) {
            actions.push(Action::Delete);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut s = last.clone();
        match action {
            Action::Start(p) if self.is_caller(p) => self.start_call(&mut s, p),
            Action::Start(p) => self.start_change(&mut s, p),
            Action::Deliver(p) => self.deliver(&mut s, p),
            Action::Reply(c) => self.reply(&mut s, c),
            Action::Refuse(c) => self.refuse(&mut s, c),
            Action::Lose(p) => {
                s.losses -= 1;
                self.give_up(&mut s, p);
            }
            Action::Crash(c) => {
                s.crashes -= 1;
                self.give_up(&mut s, c);
                s.parties[c].last_seen = None;
                s.parties[c].pool = None;
            }
            Action::Late(i) => {
                let mut flight = (*s.orphans.remove(i)).clone();
                if matches!(self.execute(&mut s, &mut flight), Reply::Applied(_)) {
                    self.coverage.note(match flight.work {
                        Work::Refund(_) => Event::RefundedLate,
                        Work::Call(_) | Work::GivenUp | Work::Change => Event::AppliedLate,
                    });
                }
            }
            Action::Advance(secs) => self.advance(&mut s, secs),
            Action::Delete => {
                self.coverage.note(Event::Deleted);
                let now = Timestamp::from_secs(EPOCH + s.secs);
                if s.item.as_ref().is_some_and(|item| !nothing_is_lost(&self.scenario, item, s.secs)) {
                    self.raise(&mut s, Fault::LockLost);
                }
                if s.item.take().is_some_and(|item| item.hold.as_ref().is_some_and(|h| h.in_force(now).is_some())) {
                    self.raise(&mut s, Fault::HoldLost);
                }
            }
        }
        Some(s)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("never over-admits", |_, s: &State| s.fault != Some(Fault::OverAdmitted)),
            Property::always("no call is charged twice", |_, s: &State| s.fault != Some(Fault::ChargedTwice)),
            Property::always("allowed only if charged", |_, s: &State| s.fault != Some(Fault::AllowedUncharged)),
            Property::always("a denial is exact", |_, s: &State| s.fault != Some(Fault::DeniedThoughItFits)),
            Property::always("h never shrinks", |_, s: &State| s.fault != Some(Fault::HorizonShrank)),
            Property::always("expires_at covers tat and hold", |_, s: &State| s.fault != Some(Fault::ExpiresTooEarly)),
            Property::always("a corrected write fits", |_, s: &State| s.fault != Some(Fault::RefusedUnchanged)),
            Property::always("few writes", |_, s: &State| s.fault != Some(Fault::TooManyWrites)),
            Property::always("agreeing clocks pull nothing", |_, s: &State| s.fault != Some(Fault::PulledBack)),
            Property::always("refunded once, at most the charge", |_, s: &State| s.fault != Some(Fault::OverRefunded)),
            Property::always("no call is settled twice", |_, s: &State| s.fault != Some(Fault::SettledTwice)),
            Property::always("no refund in another busy period", |_, s: &State| {
                s.fault != Some(Fault::RefundedElsewhere)
            }),
            Property::always("no charge under a ban", |_, s: &State| s.fault != Some(Fault::BanBypassed)),
            Property::always("charges go by the hold", |_, s: &State| s.fault != Some(Fault::WrongFigures)),
            Property::always("nobody is admitted while locked", |_, s: &State| s.fault != Some(Fault::LockBypassed)),
            Property::always("a lock is one level higher", |_, s: &State| s.fault != Some(Fault::WrongLevel)),
            Property::always("no lock is lost", |_, s: &State| s.fault != Some(Fault::LockLost)),
            Property::always("no hold is lost", |_, s: &State| s.fault != Some(Fault::HoldLost)),
            Property::always("an override keeps its own bound", |_, s: &State| {
                s.fault != Some(Fault::OverrideExceeded)
            }),
        ]
    }
}
