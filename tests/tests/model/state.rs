//! What the model remembers: the item, what each party knows and has under way, and what was admitted so far.

use crate::properties::{Admission, Fault};
use crate::refunds::Giving;
use crate::shared::Shared;
use tollgate_core::lease::Pool;
use tollgate_core::write::ItemCheck;
use tollgate_core::{Bucket, Hold, Item, Take, Write};

/// What a request is made for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Work {
    /// A decision.
    Call(Take),
    /// A decision that nobody waits for any longer.
    GivenUp,
    /// A charge that is given back.
    Refund(Giving),
    /// An operator's change of the hold.
    Change,
}

/// A request, and how what it is made for stands.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Flight {
    pub(crate) party: usize,
    /// Which of the party's calls or changes.
    pub(crate) turn: usize,
    pub(crate) work: Work,
    /// The write, or a read.
    pub(crate) request: Option<Write>,
    /// True time of the instant that the request is dated by.
    pub(crate) secs: u64,
    /// The id of a busy period that the call may start.
    pub(crate) busy_period: Option<u64>,
    /// Tokens that the call takes ahead.
    pub(crate) ahead: u64,
    /// Writes made so far.
    pub(crate) writes: u8,
    /// Writes applied so far that charge, or give back.
    pub(crate) applied: u8,
}

/// What the table said.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Reply {
    Read(Option<Shared<Item>>),
    Applied(Shared<Item>),
    /// The item that was found, and true time then.
    Refused(Option<Shared<Item>>, u64),
}

/// Where a party is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    Idle,
    Asked(Shared<Flight>),
    Answered(Shared<Flight>, Reply),
}

/// A party's memory.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Party {
    /// Calls or changes begun.
    pub(crate) turns: usize,
    pub(crate) last_seen: Option<Shared<Item>>,
    /// What it has taken ahead.
    pub(crate) pool: Option<Shared<Pool>>,
    pub(crate) phase: Phase,
}

/// Everything.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    /// True time, and the table's, seconds since the start.
    pub(crate) secs: u64,
    pub(crate) item: Option<Shared<Item>>,
    /// The callers, then the operators.
    pub(crate) parties: Vec<Party>,
    /// Requests whose party has given up: they may still reach the table, or never.
    pub(crate) orphans: Vec<Shared<Flight>>,
    pub(crate) admitted: Vec<Admission>,
    pub(crate) advances: u8,
    pub(crate) losses: u8,
    pub(crate) crashes: u8,
    pub(crate) fault: Option<Fault>,
}

impl State {
    /// The smallest id of a busy period that nobody holds: as good as a random one, and it makes equal states equal.
    pub(crate) fn fresh_busy_period(&self) -> u64 {
        let ids =
            |b: &Bucket| std::iter::once(b.busy_period.id).chain(b.entries.iter().map(|e| e.id)).collect::<Vec<_>>();
        let of_items = self.items().flat_map(|item| item.buckets.values().flat_map(ids));
        let of_refunds = self.flights().filter_map(|flight| match &flight.work {
            Work::Refund(giving) => Some(giving.ids()),
            Work::Call(_) | Work::GivenUp | Work::Change => None,
        });
        let of_flights = self.flights().filter_map(|flight| flight.busy_period);
        let of_pools = self.parties.iter().filter_map(|party| Some(party.pool.as_ref()?.busy_period().id));
        smallest_but(of_items.chain(of_refunds.flatten()).chain(of_flights).chain(of_pools))
    }

    /// As [`Self::fresh_busy_period`], for a hold.
    pub(crate) fn fresh_hold(&self) -> u64 {
        let of_items = self.items().filter_map(|item| item.hold.as_ref());
        let of_flights = self.flights().filter_map(|flight| flight.request.as_ref()).flat_map(holds_of);
        smallest_but(of_items.chain(of_flights).map(|hold| hold.id))
    }

    /// All requests under way, and those that have been answered.
    fn flights(&self) -> impl Iterator<Item = &Shared<Flight>> {
        let waited_for = self.parties.iter().filter_map(|party| match &party.phase {
            Phase::Asked(flight) | Phase::Answered(flight, _) => Some(flight),
            Phase::Idle => None,
        });
        waited_for.chain(&self.orphans)
    }

    /// All items that somebody has before him.
    fn items(&self) -> impl Iterator<Item = &Shared<Item>> {
        let replies = self.parties.iter().filter_map(|party| match &party.phase {
            Phase::Answered(_, Reply::Read(item) | Reply::Refused(item, _)) => item.as_ref(),
            Phase::Answered(_, Reply::Applied(item)) => Some(item),
            Phase::Idle | Phase::Asked(_) => None,
        });
        self.parties.iter().filter_map(|party| party.last_seen.as_ref()).chain(&self.item).chain(replies)
    }
}

fn smallest_but(held: impl Iterator<Item = u64>) -> u64 {
    let held: Vec<_> = held.collect();
    let mut free = 0;
    while held.contains(&free) {
        free += 1;
    }
    free
}

/// The holds that a write names.
fn holds_of(write: &Write) -> impl Iterator<Item = &Hold> {
    let required = write.checks.iter().filter_map(|check| match check {
        ItemCheck::HoldIs(hold) => hold.as_ref(),
        ItemCheck::HorizonAtMost(_) => None,
    });
    required.chain(write.hold.iter().flatten())
}
