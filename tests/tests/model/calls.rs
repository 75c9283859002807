//! Callers: each runs the real [`Take`], from what it last saw to an answer, and is admitted or not.

use crate::leases::look;
use crate::mutant::Mutant;
use crate::properties::{Admission, Event, Fault, fits, over_admitted, override_exceeded};
use crate::shared::Shared;
use crate::state::{Flight, Phase, Reply, State, Work};
use crate::table::{EPOCH, Table};
use crate::{logs, windows};
use tollgate_core::take::Notice;
use tollgate_core::write::ItemCheck;
use tollgate_core::{Decision, Held, Item, Mode, Outcome, Step, Take, Timestamp, Write};

impl Table {
    pub(crate) fn start_call(&self, s: &mut State, c: usize) {
        let turn = s.parties[c].turns;
        s.parties[c].turns += 1;
        if !self.spend(s, c, turn) {
            let ahead = self.ahead(s, c, turn);
            self.begin(s, (c, turn), ahead, 0);
        }
    }

    /// Starts to decide, with so many tokens ahead.
    fn begin(&self, s: &mut State, (c, turn): (usize, usize), ahead: u64, writes: u8) {
        let id = s.fresh_busy_period();
        let charges = self.charges(c, turn).ahead(ahead).unwrap();
        let (last_seen, moment) = (s.parties[c].last_seen.clone(), self.moment(c, s.secs));
        let start = if self.scenario.callers[c].exactly { Take::start_exactly } else { Take::start };
        let (take, mut step) = start(charges, last_seen.as_deref(), moment, id);
        if let (Mutant::ProbesUnderBan, Step::Write(write)) = (self.scenario.mutant, &mut step) {
            ask_for_the_ban(write, last_seen.as_deref());
        }
        let (work, busy_period) = (Work::Call(take), Some(id));
        let flight =
            Flight { party: c, turn, work, request: None, secs: s.secs, busy_period, ahead, writes, applied: 0 };
        self.follow(s, flight, step, None);
    }

    /// Does what a `Take` says. `refused` is the refusal that it concludes from, if any.
    fn follow(&self, s: &mut State, mut flight: Flight, step: Step, refused: Option<(Option<&Item>, u64)>) {
        let (c, Work::Call(take)) = (flight.party, &flight.work) else { return };
        if take.notices().any(|n| matches!(n, Notice::PulledBack(_))) {
            self.raise(s, Fault::PulledBack);
        }
        flight.secs = s.secs;
        match step {
            Step::Read => flight.request = None,
            Step::Write(write) | Step::Lock { write, .. } => {
                flight.writes += 1;
                if usize::from(flight.writes) > self.scenario.most_writes(c) {
                    self.raise(s, Fault::TooManyWrites);
                }
                flight.secs = self.dated(c, &write);
                flight.request = Some(write);
            }
            Step::Done(decision) => {
                let mut decision = decision;
                if let (1.., Some((item, _))) = (flight.ahead, refused) {
                    // What it would have taken ahead is told apart from the call itself.
                    let (one, moment) = (self.charges(c, flight.turn), self.moment(c, s.secs));
                    decision = item.map(|item| Decision::new(Take::tell(one, item, moment))).unwrap_or_default();
                    if decision.is_allowed() {
                        s.parties[c].phase = Phase::Idle;
                        return self.begin(s, (c, flight.turn), 0, flight.writes);
                    }
                }
                let wants = |mode| take.charges().charges().iter().any(|c| c.mode == mode && c.cost > 0);
                if decision.is_allowed() && wants(Mode::Enforce) {
                    self.raise(s, Fault::AllowedUncharged);
                }
                if let Some((item, secs)) = refused {
                    self.concluded(s, &flight, &decision, item, secs);
                }
                s.parties[c].phase = Phase::Idle;
                self.forget(s, c);
                return;
            }
        }
        s.parties[c].phase = Phase::Asked(Shared::new(flight));
    }

    /// True time of the instant that a write is dated by: a corrected one may keep that of the call's first. It is told by
    /// `expires_at`, which no override of the model reaches.
    fn dated(&self, caller: usize, write: &Write) -> u64 {
        let memory = write.memory.unwrap();
        let now = Timestamp::from_secs(memory.expires_at - memory.horizon - 1);
        now.offset_by(-self.scenario.offset(caller)).as_secs() - EPOCH
    }

    fn concluded(&self, s: &mut State, flight: &Flight, decision: &Decision, item: Option<&Item>, secs: u64) {
        let now = self.moment(flight.party, secs).now;
        if decision.outcome() != Outcome::Denied {
            return;
        }
        self.coverage.note(Event::Denied);
        let is_ban = |held| matches!(held, Some(Held::Ban { .. }));
        if decision.limits.iter().any(|l| is_ban(l.held)) {
            self.coverage.note(Event::Banned);
        } else if !self.is_locked(s, decision, item)
            && fits(self.charges(flight.party, flight.turn), decision, item, now)
        {
            self.raise(s, Fault::DeniedThoughItFits);
        }
    }

    pub(crate) fn reply(&self, s: &mut State, c: usize) {
        let Phase::Answered(flight, reply) = s.parties[c].phase.clone() else { return };
        let mut flight = (*flight).clone();
        let Work::Call(take) = &mut flight.work else { return };
        let moment = self.moment(c, s.secs);
        match reply {
            Reply::Read(item) => {
                let step = take.read(item.as_deref(), moment);
                s.parties[c].last_seen = item;
                look(&mut s.parties[c]);
                self.follow(s, flight, step, None);
            }
            Reply::Refused(item, secs) => {
                let step = take.refused(item.as_deref(), moment);
                s.parties[c].last_seen.clone_from(&item);
                look(&mut s.parties[c]);
                self.follow(s, flight, step, Some((item.as_deref(), secs)));
            }
            Reply::Applied(item) => {
                let item = self.left(s, c, flight.request.as_ref(), &item);
                let Work::Call(take) = &mut flight.work else { return };
                let step = take.applied(&item, moment);
                s.parties[c].last_seen = Some(item.clone());
                match step {
                    Step::Done(decision) if decision.is_allowed() => {
                        s.parties[c].phase = Phase::Idle;
                        self.lease(s, &flight, &item);
                        self.admit(s, &flight, &decision, &item);
                        self.settle(s, flight, &item);
                        self.forget(s, c);
                    }
                    // A denial that moved a bucket to other terms, or a limit that has room since.
                    step => self.follow(s, flight, step, Some((Some(&item), s.secs))),
                }
            }
        }
    }

    /// The item that a caller believes its write has left: the reply of a transaction has none.
    pub(crate) fn left(&self, s: &State, c: usize, write: Option<&Write>, item: &Shared<Item>) -> Shared<Item> {
        if !self.scenario.callers[c].exactly {
            return item.clone();
        }
        let write = write.unwrap();
        // A mutant may have had a write applied that did not fit.
        write.apply(s.parties[c].last_seen.as_deref()).map_or_else(|| item.clone(), Shared::new)
    }

    fn admit(&self, s: &mut State, flight: &Flight, decision: &Decision, left: &Item) {
        if flight.applied == 0 {
            self.raise(s, Fault::AllowedUncharged);
        }
        if flight.writes > 1 {
            self.coverage.note(Event::AdmittedAfterRefusal);
        }
        let actual = self.scenario.callers[flight.party].settles;
        for (charge, told) in self.charges(flight.party, flight.turn).charges().iter().zip(&decision.limits) {
            // What is charged beyond the estimate is told when it is.
            let cost = actual.map_or(charge.cost, |actual| actual.min(charge.cost));
            if told.terms.revision > charge.terms.revision {
                self.coverage.note(Event::FollowedNewer);
            }
            let under = self.scenario.override_of(left, &charge.limit);
            if under.is_some() {
                self.coverage.note(Event::AdmittedByOverride);
            }
            if told.outcome != Outcome::Allowed {
                self.coverage.note(Event::LeftOut);
            } else if cost > 0 {
                let secs = windows::opening(&left.buckets[&charge.limit]).unwrap_or(flight.secs);
                s.admitted.push(Admission { limit: charge.limit.clone(), secs, cost, under });
            }
        }
        self.check_admitted(s);
        if override_exceeded(&self.scenario, &s.admitted) {
            self.raise(s, Fault::OverrideExceeded);
        }
    }
}

impl Table {
    /// Whether what was admitted so far is within every bound.
    pub(crate) fn check_admitted(&self, s: &mut State) {
        s.admitted.sort();
        let is_over = windows::over_admitted(&self.scenario, &s.admitted, s.item.as_deref())
            || logs::over_admitted(&self.scenario, &s.admitted);
        if is_over || over_admitted(&self.scenario, &s.admitted) {
            self.raise(s, Fault::OverAdmitted);
        }
    }
}

/// Has a probe ask for the ban that its caller knows of, instead of for none.
fn ask_for_the_ban(write: &mut Write, seen: Option<&Item>) {
    let hold = seen.and_then(|item| item.hold.as_ref()).filter(|hold| hold.banned_until.is_some());
    for check in &mut write.checks {
        if let (ItemCheck::HoldIs(none @ None), Some(hold)) = (check, hold) {
            *none = Some(hold.clone());
        }
    }
}
