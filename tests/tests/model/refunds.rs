//! Calls that another key denies: the caller runs the real [`Settlement`] on what it charged, and is not admitted.

use crate::mutant::Mutant;
use crate::properties::{Event, Fault};
use crate::scenario::Elsewhere;
use crate::shared::Shared;
use crate::state::{Flight, Phase, Reply, State, Work};
use crate::table::Table;
use tollgate_core::settle::Step;
use tollgate_core::{Bucket, Charged, Charges, Item, LimitName, Settlement, Terms, Ticks, Timestamp};

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
        let giving = Self { refund, charges: left, charged_at };
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

    pub(crate) fn busy_periods(&self) -> impl Iterator<Item = u64> {
        self.charges.iter().map(|left| left.after.busy_period.id)
    }

    /// What is wrong with the `nth` refund, if anything.
    pub(crate) fn fault(&self, nth: u8, before: Option<&Item>, next: &Item) -> Option<Fault> {
        let Some(before) = before.filter(|_| nth == 1) else { return Some(Fault::OverRefunded) };
        for (limit, next) in &next.buckets {
            let before = &before.buckets[limit];
            let given = before.tat - next.tat;
            if before == next {
                continue;
            }
            let left = self.charges.iter().find(|left| left.limit == *limit).unwrap();
            if before.busy_period != left.after.busy_period {
                return Some(Fault::RefundedElsewhere);
            }
            let expected = Bucket { tat: next.tat, ..before.clone() };
            if *next != expected || given.0 <= 0 || given > inc(&before.terms, left.cost) {
                return Some(Fault::OverRefunded);
            }
        }
        None
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
        let charged = (take.charged(), self.moment(c, flight.secs).now);
        let (giving, step) = Giving::start(self.scenario.mutant, charges, charged, &item, moment.now);
        s.parties[c].last_seen = Some(item);
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
            self.coverage.note(Event::NothingToRefund);
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
