//! Calls that another key denies, and those that turn out to cost something else: the caller runs the real [`Settlement`] on what it
//! charged. The former are not admitted.

use crate::logs;
use crate::mutant::Mutant;
use crate::properties::{Admission, Event, Fault};
use crate::scenario::Elsewhere;
use crate::shared::Shared;
use crate::state::{Flight, Phase, Reply, State, Work};
use crate::table::Table;
use tollgate_core::settle::Step;
use tollgate_core::write::Assign;
use tollgate_core::{
    Actual, Bucket, Charged, Charges, Item, LimitName, LimitWrite, Settlement, Terms, Ticks, Timestamp, Write,
};

/// A charge on one limit, and the bucket that it left.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Left {
    limit: LimitName,
    cost: u64,
    after: Bucket,
}

/// Charges that are being given back.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Giving {
    refund: Settlement,
    charges: Vec<Left>,
    /// The instant that the charge was dated by.
    charged_at: Timestamp,
    /// What the call has cost, unless it is refused, and whether that may be told once more.
    actual: Option<(u64, bool)>,
}

impl Giving {
    fn start(
        mutant: Mutant,
        asked: &Charges,
        (charged, charged_at): (&[Charged], Timestamp),
        item: &Item,
        now: Timestamp,
    ) -> (Self, Step) {
        let left = |charge: &tollgate_core::Charge| Left {
            limit: charge.limit.clone(),
            cost: charge.cost,
            after: item.buckets[&charge.limit].clone(),
        };
        let left: Vec<_> = asked.charges().iter().filter(|c| c.cost > 0).map(left).collect();
        let (refund, step) = Settlement::giving_back(charged.to_vec(), item, now);
        let giving = Self { refund, charges: left, charged_at, actual: None };
        let step = giving.naive(mutant, Some(item), now).unwrap_or(step);
        (giving, step)
    }

    fn refused(&self, mutant: Mutant, item: Option<&Item>, now: Timestamp) -> Step {
        self.naive(mutant, item, now).unwrap_or_else(|| self.refund.refused(item, now))
    }

    /// What a mutant that reckons otherwise would do: the real `Settlement` of a charge that was made up to that end.
    fn naive(&self, mutant: Mutant, item: Option<&Item>, now: Timestamp) -> Option<Step> {
        let pretend: fn(&mut Bucket, &Bucket) = match mutant {
            Mutant::RefundsAll => |after, found| {
                after.busy_period = found.busy_period;
                far_ahead(after, found);
            },
            Mutant::RefundsAllOfItsBusyPeriod => far_ahead,
            Mutant::RefundsIgnoringOthers => |after, found| after.gross = after.tat + found.refunded(),
            Mutant::RefundsInAnyBusyPeriod => |after, found| after.busy_period = found.busy_period,
            _ => return None,
        };
        let charged = |left: &Left| {
            let mut after = left.after.clone();
            if let Some(found) = item.and_then(|item| item.buckets.get(&left.limit)) {
                pretend(&mut after, found);
            }
            Charged::new(left.limit.clone(), left.cost, &after, self.charged_at)
        };
        let charged = self.charges.iter().map(charged).collect();
        Some(item.map_or(Step::Done, |item| Settlement::giving_back(charged, item, now).1))
    }

    /// The ids that a busy period or an entry must not have beside it.
    pub(crate) fn ids(&self) -> impl Iterator<Item = u64> {
        let of = |left: &Left| {
            let entries = left.after.entries.iter().map(|entry| entry.id);
            entries.chain([left.after.busy_period.id]).collect::<Vec<_>>()
        };
        self.charges.iter().flat_map(of)
    }

    /// No answer has come: what may still arrive, and what is sent again. What has no entry is sent once.
    pub(crate) fn given_up(&self) -> (Work, Option<Work>) {
        let last = |actual| Work::Refund(Self { actual: Some((actual, false)), ..self.clone() });
        match self.actual {
            Some((actual, true)) => (last(actual), Some(last(actual))),
            _ => (Work::Refund(self.clone()), None),
        }
    }

    /// What is wrong with the `nth` write that settles, if anything.
    pub(crate) fn fault(&self, nth: u8, write: &Write, before: Option<&Item>, next: &Item) -> Option<Fault> {
        let Some(before) = before.filter(|_| nth == 1) else { return Some(Fault::OverRefunded) };
        for write in &write.limits {
            let (before, next) = (&before.buckets[&write.limit], &next.buckets[&write.limit]);
            let left = self.charges.iter().find(|left| left.limit == write.limit).unwrap();
            let entry = logs::settled(write);
            if entry.is_some_and(|entry| !before.entries.contains(&entry)) {
                return Some(Fault::SettledTwice);
            }
            let given = before.tat - next.tat;
            if given.0 <= 0 && self.actual.is_some() {
                continue;
            }
            if before.busy_period != left.after.busy_period && entry.is_none_or(|entry| entry.is_reservation()) {
                return Some(Fault::RefundedElsewhere);
            }
            let entries = entry.iter().fold(before.entries.clone(), tollgate_core::Entries::without);
            let expected = Bucket { tat: next.tat, entries, ..before.clone() };
            let kept = self.actual.map_or(0, |(actual, _)| actual);
            if *next != expected || given.0 <= 0 || given > inc(&before.terms, left.cost - kept) {
                return Some(Fault::OverRefunded);
            }
        }
        None
    }

    /// What a write that settles has charged beside.
    pub(crate) fn more(&self, secs: u64, write: &Write, before: Option<&Item>, next: &Item) -> Vec<Admission> {
        let Some(before) = before else { return Vec::new() };
        let of = |write: &LimitWrite| {
            let (before, next) = (&before.buckets[&write.limit], &next.buckets[&write.limit]);
            let bucket = next.terms.figures.token_bucket()?;
            let inc = match &write.assign {
                Assign::Extend { inc, .. } => *inc,
                Assign::Replace(next) => next.tat - bucket.at(next.busy_period.since),
                Assign::GiveBack { .. } => return None,
            };
            let cost = u64::try_from(inc.0).unwrap() / bucket.period();
            (next.tat > before.tat).then(|| Admission { limit: write.limit.clone(), secs, cost, under: None })
        };
        write.limits.iter().filter_map(of).collect()
    }
}

/// What a charge adds to a state.
fn inc(terms: &Terms, cost: u64) -> Ticks {
    terms.figures.token_bucket().map_or(Ticks(cost.into()), |bucket| bucket.inc(cost))
}

/// Makes a slot so far ahead that all of it is unused, whatever others were given back.
fn far_ahead(after: &mut Bucket, found: &Bucket) {
    after.tat = Ticks(i128::MAX / 4);
    after.gross = after.tat + found.refunded();
}

impl Table {
    /// What another key says of a call of which that is the reply.
    pub(crate) fn elsewhere(&self, flight: &Flight, reply: &Reply) -> Elsewhere {
        let is_charging = matches!(&flight.work, Work::Call(take) if take.is_charging());
        let is_charged = matches!(reply, Reply::Applied(_)) && is_charging;
        if is_charged { self.scenario.callers[flight.party].elsewhere } else { Elsewhere::Allows }
    }

    /// The charge was applied, but another key denies: it is given back from the item that it left.
    pub(crate) fn refuse(&self, s: &mut State, c: usize) {
        let Phase::Answered(flight, Reply::Applied(item)) = s.parties[c].phase.clone() else { return };
        let mut flight = (*flight).clone();
        let item = self.left(s, c, flight.request.as_ref(), &item);
        let Work::Call(mut take) = flight.work else { return };
        let moment = self.moment(c, s.secs);
        take.applied(&item, moment);
        let charges = self.charges(c, flight.turn);
        flight.work = Work::Call(take);
        let Work::Call(take) = &flight.work else { return };
        if let Some(own) = self.lease(s, &flight, &item) {
            return self.take_back(s, c, &own, item);
        }
        let own = take.shares(charges, 1, flight.ahead, &item).remove(0).1;
        let charged = (&*if flight.ahead > 0 { own } else { take.charged().to_vec() }, self.moment(c, flight.secs).now);
        let (giving, step) = Giving::start(self.scenario.mutant, charges, charged, &item, moment.now);
        s.parties[c].last_seen = Some(item);
        (flight.applied, flight.busy_period, flight.writes) = (0, None, 0);
        flight.work = Work::Refund(giving);
        self.give_back(s, flight, step);
    }

    /// A call has come to what it was not charged: that is told, before the next.
    pub(crate) fn settle(&self, s: &mut State, mut flight: Flight, item: &Shared<Item>) {
        let (c, Work::Call(take)) = (flight.party, &flight.work) else { return };
        let Some(actual) = self.scenario.callers[c].settles else { return };
        let moment = self.moment(c, s.secs);
        let charged = (take.charged(), self.moment(c, flight.secs).now);
        let (mut giving, _) = Giving::start(Mutant::None, self.charges(c, flight.turn), charged, item, moment.now);
        let settled = take.charged().iter().map(|charged| (charged.clone(), Actual::Cost(actual))).collect();
        let (settlement, step) = Settlement::start(settled, item, moment.now, s.fresh_busy_period());
        (giving.refund, giving.actual) = (settlement, Some((actual, true)));
        (flight.applied, flight.busy_period, flight.writes) = (0, None, 0);
        flight.work = Work::Refund(giving);
        self.give_back(s, flight, step);
    }

    fn give_back(&self, s: &mut State, mut flight: Flight, step: Step) {
        let c = flight.party;
        if let Step::Write(write) = step {
            (flight.request, flight.secs) = (Some(write), s.secs);
            s.parties[c].phase = Phase::Asked(Shared::new(flight));
        } else {
            let is_again = matches!(&flight.work, Work::Refund(Giving { actual: Some((_, false)), .. }));
            self.coverage.note(if is_again { Event::FoundSettled } else { Event::NothingToRefund });
            s.parties[c].phase = Phase::Idle;
            self.forget(s, c);
        }
    }

    /// The table answered a refund. That its caller learns of it at once leaves out nothing: the longer a refused one
    /// waits, the less it gives back.
    pub(crate) fn refund_answered(&self, s: &mut State, flight: Flight, reply: Reply) {
        let (c, Work::Refund(giving)) = (flight.party, &flight.work) else { return };
        let (item, step) = match reply {
            Reply::Read(_) => return,
            Reply::Applied(item) => (Some(item), Step::Done),
            Reply::Refused(item, _) => {
                if item == s.parties[c].last_seen {
                    self.raise(s, Fault::RefusedUnchanged);
                }
                let step = giving.refused(self.scenario.mutant, item.as_deref(), self.moment(c, s.secs).now);
                (item, step)
            }
        };
        s.parties[c].last_seen = item;
        self.give_back(s, flight, step);
    }
}
