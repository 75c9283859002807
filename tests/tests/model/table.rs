//! The model: callers that run the real [`Take`], one item of a table, and a network that delays and loses.
//!
//! A caller's step, the table's evaluation of a write and a jump of time are separate actions, so that anything may
//! happen between them. The table's side is [`Write::apply`], the meaning that the stores implement.

use crate::mutant::{Form, Mutant, form};
use crate::properties::{Admission, Coverage, Event, Fault, expires_in_time, fits, over_admitted, takes_tokens};
use crate::scenario::Scenario;
use stateright::{Model, Property};
use std::sync::Arc;
use tollgate_core::take::{Moment, Notice};
use tollgate_core::write::Assign;
use tollgate_core::{Charges, Decision, Item, Outcome, Step, Take, Timestamp, Write};

/// True time at the start, epoch seconds.
const EPOCH: u64 = 1_000;

/// A request of a call and how the call stands.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Flight {
    take: Take,
    /// The write, or a read.
    request: Option<Write>,
    /// True time of the instant that the request is dated by.
    secs: u64,
    /// The id of a busy period that the call may start.
    busy_period: u64,
    /// Writes made so far.
    writes: u8,
    /// Charging writes applied so far.
    charged: u8,
}

/// What the table said.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Reply {
    Read(Option<Arc<Item>>),
    Applied(Arc<Item>),
    /// The item that was found, and true time then.
    Refused(Option<Arc<Item>>, u64),
}

/// Where a caller is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    Idle,
    Asked(Arc<Flight>),
    Answered(Arc<Flight>, Reply),
}

/// A caller's memory.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Memory {
    calls: usize,
    last_seen: Option<Arc<Item>>,
    phase: Phase,
}

/// Everything.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    /// True time, and the table's, seconds since the start.
    secs: u64,
    item: Option<Arc<Item>>,
    callers: Vec<Memory>,
    /// Requests whose caller has given up: they may still reach the table, or never.
    orphans: Vec<Arc<Flight>>,
    admitted: Vec<Admission>,
    advances: u8,
    losses: u8,
    crashes: u8,
    pub(crate) fault: Option<Fault>,
}

/// What can happen next. Numbers are indices of callers, but for `Late` (of orphans) and `Advance` (seconds).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// A caller starts its next call.
    Start(usize),
    /// The table executes a request.
    Deliver(usize),
    /// A caller learns what the table said.
    Reply(usize),
    /// A request or reply gets lost; its caller gives up.
    Lose(usize),
    /// A caller dies and is replaced by one that has seen nothing.
    Crash(usize),
    /// A request reaches the table after its caller has given up.
    Late(usize),
    /// True time moves; callers past their deadline give up.
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

    /// What the clock of `caller` shows at a true time. All clocks agree with the table's to within its tolerance.
    fn moment(&self, caller: usize, secs: u64) -> Moment {
        let now = Timestamp::from_secs(EPOCH + secs).offset_by(self.scenario.callers[caller].offset);
        Moment { now, clock_agrees: true }
    }

    fn charges(&self, caller: usize, call: usize) -> &Charges {
        &self.scenario.callers[caller].calls[call]
    }

    /// True time of the instant that a write is dated by: a corrected busy form may keep that of the call's first write.
    fn dated(&self, caller: usize, write: &Write, secs: u64) -> u64 {
        let Some(Assign::Extend { start, terms, .. }) = write.limits.first().map(|l| &l.assign) else { return secs };
        let now = Timestamp::from_nanos(u64::try_from(start.0 / i128::from(terms.bucket.n())).unwrap());
        now.offset_by(-self.scenario.callers[caller].offset).as_secs() - EPOCH
    }

    fn raise(&self, s: &mut State, fault: Fault) {
        if self.scenario.only.is_none_or(|only| only == fault) {
            s.fault.get_or_insert(fault);
        }
    }

    fn start(&self, s: &mut State, c: usize) {
        let busy_period = s.fresh_busy_period();
        let charges = self.charges(c, s.callers[c].calls).clone();
        let last_seen = s.callers[c].last_seen.clone();
        let (take, step) = Take::start(charges, last_seen.as_deref(), self.moment(c, s.secs), busy_period);
        s.callers[c].calls += 1;
        let flight = Flight { take, request: None, secs: s.secs, busy_period, writes: 0, charged: 0 };
        self.follow(s, c, flight, step, None);
    }

    /// Does what a `Take` says. `refused` is the refusal that it concludes from, if any.
    fn follow(&self, s: &mut State, c: usize, mut flight: Flight, step: Step, refused: Option<(Option<&Item>, u64)>) {
        if flight.take.notices().any(|n| matches!(n, Notice::PulledBack(_))) {
            self.raise(s, Fault::PulledBack);
        }
        flight.secs = s.secs;
        match step {
            Step::Read => flight.request = None,
            Step::Write(write) => {
                flight.writes += 1;
                if usize::from(flight.writes) > self.scenario.most_writes(c) {
                    self.raise(s, Fault::TooManyWrites);
                }
                flight.secs = self.dated(c, &write, s.secs);
                flight.request = Some(write);
            }
            Step::Done(decision) => {
                if decision.is_allowed() {
                    self.raise(s, Fault::AllowedUncharged);
                }
                if let Some((item, secs)) = refused {
                    self.denied(s, c, &flight, &decision, item, secs);
                }
                s.callers[c].phase = Phase::Idle;
                return;
            }
        }
        s.callers[c].phase = Phase::Asked(Arc::new(flight));
    }

    fn denied(&self, s: &mut State, c: usize, flight: &Flight, decision: &Decision, item: Option<&Item>, secs: u64) {
        self.coverage.note(Event::Denied);
        if decision.outcome() == Outcome::Denied
            && fits(flight.take.charges(), decision, item, self.moment(c, secs).now)
        {
            self.raise(s, Fault::DeniedThoughItFits);
        }
    }

    /// The table executes a request: the item before and after decide what it answers.
    fn execute(&self, s: &mut State, flight: &mut Flight) -> Reply {
        let Some(write) = &flight.request else { return Reply::Read(s.item.clone()) };
        let sent = self.scenario.mutant.weaken(write);
        let Some(next) = sent.apply(s.item.as_deref()) else { return Reply::Refused(s.item.clone(), s.secs) };
        for limit in write.limits.iter().filter(|l| s.item.as_ref().is_some_and(|i| i.buckets.contains_key(&l.limit))) {
            self.coverage.note(match form(limit) {
                Form::Busy => Event::Busy,
                Form::Idle => Event::Idle,
                Form::Change => Event::Change,
            });
        }
        if s.item.as_ref().is_some_and(|before| next.horizon < before.horizon) {
            self.raise(s, Fault::HorizonShrank);
        } else if !expires_in_time(&self.scenario, &next) {
            self.raise(s, Fault::ExpiresTooEarly);
        }
        flight.charged += u8::from(takes_tokens(write, s.item.as_deref(), flight.take.charges()));
        if flight.charged > 1 {
            self.raise(s, Fault::ChargedTwice);
        }
        let next = Arc::new(next);
        s.item = Some(Arc::clone(&next));
        Reply::Applied(next)
    }

    fn deliver(&self, s: &mut State, c: usize) {
        let Phase::Asked(flight) = &s.callers[c].phase else { return };
        let mut flight = (**flight).clone();
        let reply = self.execute(s, &mut flight);
        // A write that was corrected from the item found fits that item, whatever time has done meanwhile.
        if matches!(&reply, Reply::Refused(item, _) if flight.writes > 1 && *item == s.callers[c].last_seen) {
            self.raise(s, Fault::RefusedUnchanged);
        }
        s.callers[c].phase = Phase::Answered(Arc::new(flight), reply);
    }

    fn reply(&self, s: &mut State, c: usize) {
        let Phase::Answered(flight, reply) = s.callers[c].phase.clone() else { return };
        let mut flight = (*flight).clone();
        let moment = self.moment(c, s.secs);
        match reply {
            Reply::Read(item) => {
                let step = flight.take.read(item.as_deref(), moment);
                s.callers[c].last_seen = item;
                self.follow(s, c, flight, step, None);
            }
            Reply::Refused(item, secs) => {
                let step = flight.take.refused(item.as_deref(), moment);
                s.callers[c].last_seen.clone_from(&item);
                self.follow(s, c, flight, step, Some((item.as_deref(), secs)));
            }
            Reply::Applied(item) => {
                let step = flight.take.applied(&item, moment);
                s.callers[c].last_seen = Some(Arc::clone(&item));
                match step {
                    Step::Done(decision) if decision.is_allowed() => {
                        s.callers[c].phase = Phase::Idle;
                        self.admit(s, &flight, &decision);
                    }
                    // A denial that moved a bucket to other terms, or a limit that has room since.
                    step => self.follow(s, c, flight, step, Some((Some(&item), s.secs))),
                }
            }
        }
    }

    fn admit(&self, s: &mut State, flight: &Flight, decision: &Decision) {
        if flight.charged == 0 {
            self.raise(s, Fault::AllowedUncharged);
        }
        if flight.writes > 1 {
            self.coverage.note(Event::AdmittedAfterRefusal);
        }
        for (charge, told) in flight.take.charges().charges().iter().zip(&decision.limits) {
            if told.terms.revision > charge.terms.revision {
                self.coverage.note(Event::FollowedNewer);
            }
            if charge.cost > 0 {
                s.admitted.push(Admission { limit: charge.limit.clone(), secs: flight.secs, cost: charge.cost });
            }
        }
        s.admitted.sort();
        if over_admitted(&self.scenario, &s.admitted) {
            self.raise(s, Fault::OverAdmitted);
        }
    }

    fn give_up(&self, s: &mut State, c: usize) {
        match std::mem::replace(&mut s.callers[c].phase, Phase::Idle) {
            Phase::Idle => {}
            Phase::Asked(flight) => s.orphans.push(flight),
            Phase::Answered(flight, reply) => {
                if matches!(reply, Reply::Applied(_)) {
                    self.coverage.note(Event::LostAfterApply);
                    if self.scenario.mutant == Mutant::RetriesAmbiguous {
                        s.callers[c].phase = Phase::Asked(flight);
                    }
                }
            }
        }
    }

    fn advance(&self, s: &mut State, secs: u64) {
        s.secs += secs;
        s.advances -= 1;
        for c in 0..s.callers.len() {
            let made = match &s.callers[c].phase {
                Phase::Idle => continue,
                Phase::Asked(flight) | Phase::Answered(flight, _) => flight.secs,
            };
            if made + self.scenario.deadline < s.secs {
                self.give_up(s, c);
            }
        }
        s.orphans.retain(|flight| s.secs - flight.secs <= self.scenario.latest);
    }
}

impl State {
    /// The smallest id that nobody holds: as good as a random one, and it makes equal states equal.
    fn fresh_busy_period(&self) -> u64 {
        let replies = self.callers.iter().filter_map(|c| match &c.phase {
            Phase::Answered(_, Reply::Read(item) | Reply::Refused(item, _)) => item.as_ref(),
            Phase::Answered(_, Reply::Applied(item)) => Some(item),
            Phase::Idle | Phase::Asked(_) => None,
        });
        let items = self.callers.iter().filter_map(|c| c.last_seen.as_ref()).chain(&self.item).chain(replies);
        let flights = self.callers.iter().filter_map(|c| match &c.phase {
            Phase::Asked(flight) | Phase::Answered(flight, _) => Some(flight),
            Phase::Idle => None,
        });
        let mut held: Vec<u64> = items.flat_map(|i| i.buckets.values().map(|b| b.busy_period.id)).collect();
        held.extend(flights.chain(&self.orphans).map(|f| f.busy_period));
        (0..).find(|id| !held.contains(id)).unwrap()
    }
}

impl Model for Table {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let callers = vec![Memory { calls: 0, last_seen: None, phase: Phase::Idle }; self.scenario.callers.len()];
        let Scenario { advances, losses, crashes, .. } = self.scenario;
        let (orphans, admitted) = (Vec::new(), Vec::new());
        vec![State { secs: 0, item: None, callers, orphans, admitted, advances, losses, crashes, fault: None }]
    }

    fn actions(&self, s: &State, actions: &mut Vec<Action>) {
        if s.fault.is_some() {
            return;
        }
        for (c, caller) in s.callers.iter().enumerate() {
            match &caller.phase {
                Phase::Idle if caller.calls < self.scenario.callers[c].calls.len() => actions.push(Action::Start(c)),
                Phase::Idle => {}
                Phase::Asked(_) => actions.push(Action::Deliver(c)),
                Phase::Answered(..) => actions.push(Action::Reply(c)),
            }
            if s.losses > 0 && caller.phase != Phase::Idle {
                actions.push(Action::Lose(c));
            }
            if s.crashes > 0 && (caller.phase != Phase::Idle || caller.last_seen.is_some()) {
                actions.push(Action::Crash(c));
            }
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
            Action::Start(c) => self.start(&mut s, c),
            Action::Deliver(c) => self.deliver(&mut s, c),
            Action::Reply(c) => self.reply(&mut s, c),
            Action::Lose(c) => {
                s.losses -= 1;
                self.give_up(&mut s, c);
            }
            Action::Crash(c) => {
                s.crashes -= 1;
                self.give_up(&mut s, c);
                s.callers[c].last_seen = None;
            }
            Action::Late(i) => {
                let mut flight = (*s.orphans.remove(i)).clone();
                if matches!(self.execute(&mut s, &mut flight), Reply::Applied(_)) {
                    self.coverage.note(Event::AppliedLate);
                }
            }
            Action::Advance(secs) => self.advance(&mut s, secs),
            Action::Delete => {
                self.coverage.note(Event::Deleted);
                s.item = None;
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
            Property::always("expires_at covers tat", |_, s: &State| s.fault != Some(Fault::ExpiresTooEarly)),
            Property::always("a corrected write fits", |_, s: &State| s.fault != Some(Fault::RefusedUnchanged)),
            Property::always("few writes", |_, s: &State| s.fault != Some(Fault::TooManyWrites)),
            Property::always("agreeing clocks pull nothing", |_, s: &State| s.fault != Some(Fault::PulledBack)),
        ]
    }
}
