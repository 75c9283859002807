//! What a process admits by itself while the store gives no answer: of each limit its share.
//!
//! The share of one of `instances` processes is the limit's figures divided: the rate exactly, what fits at once rounded down. It has room
//! for one call, though, whatever that costs of the whole limit: a call whose cost is above the share passes when nothing is missing,
//! and is owed for in full.
//!
//! **What is admitted.** In any interval one process admits at most the greater of its share of the burst and its dearest call,
//! and its share of the rate × the interval, of a limit that it has not forgotten. All together admit at most `instances` times that, where there are no more of them. (A
//! cost above the share `B` starts its slot at `now'`, any other at `now' + B - inc` at the latest: so slots, which never overlap, end by
//! `now' + max(B, inc)`.) It comes on top of what the table has admitted.
//!
//! The state is an [`Item`] of the process's own, that is decided on by the same protocol as the table's: every algorithm, shadow
//! limits, plans and revisions are what they are there. Invariants: nothing of it ever reaches the table; what was seen there
//! of holds and locks binds here, until it ends by its own instant; no denial here locks anybody.

use crate::charge::{Charge, Charges};
use crate::decision::{Decision, LimitDecision, Source};
use crate::figures::Figures;
use crate::hold::{Hold, Override};
use crate::item::Item;
use crate::settle::{self, Actual, Charged, Settlement};
use crate::take::{Moment, Step, Take};
use crate::terms::Terms;
use crate::time::Timestamp;
use std::num::NonZeroU64;

impl Figures {
    /// The share of one of `instances` processes, with room for a call of `cost` if the whole has room for it.
    #[must_use]
    pub fn share(&self, instances: NonZeroU64, cost: u64) -> Self {
        let most = (self.most() / instances).max(cost.min(self.most())).max(1);
        let debt = self.debt() / instances;
        match self {
            Self::TokenBucket(bucket) => bucket.share(most, debt, instances).into(),
            Self::Window(window) => window.share(most, debt).into(),
            Self::Log(log) => log.share(most).into(),
        }
    }
}

/// One process among those that decide by themselves.
#[derive(Debug, Clone, Copy)]
pub struct Local {
    /// How many processes share each limit.
    pub instances: NonZeroU64,
    /// When.
    pub now: Timestamp,
}

/// What a process says of one item by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The decision.
    pub decision: Decision,
    /// The item of its own afterwards.
    pub item: Item,
    /// What was charged to it; empty unless the decision is allowed.
    pub charged: Vec<Charged>,
}

/// An item after a settlement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// The item of the process's own, if there was anything to settle.
    pub item: Option<Item>,
    /// Limits that the call cost more than their room and debt, and by how many tokens.
    pub beyond: Vec<(crate::LimitName, u64)>,
}

impl Local {
    /// Decides `charges` on `own`, the item of this process, under what it last saw of the table's item. `id` is random.
    #[must_use]
    pub fn decide(&self, charges: &Charges, own: Option<&Item>, seen: Option<&Item>, id: u64) -> Answer {
        let (shared, mut item) = (self.shared(charges, seen), self.bound(charges, own, seen));
        let (mut take, mut step) = Take::start_exactly(shared, Some(&item), self.moment(), id);
        // Every write is made from the very item that it is applied to, so none is refused twice.
        let mut decision = loop {
            step = match step {
                Step::Done(decision) | Step::Lock { denial: decision, .. } => break decision,
                Step::Read => take.read(Some(&item), self.moment()),
                Step::Write(write) => match write.apply(Some(&item)) {
                    Some(left) => {
                        item = left;
                        take.applied(&item, self.moment())
                    }
                    None => take.refused(Some(&item), self.moment()),
                },
            };
        };
        self.tell_whole(charges, seen, &mut decision.limits);
        Answer { decision, charged: take.charged().to_vec(), item }
    }

    /// What each limit says of the item without being charged, since another denies.
    #[must_use]
    pub fn tell(&self, charges: &Charges, own: Option<&Item>, seen: Option<&Item>) -> Vec<LimitDecision> {
        let (shared, item) = (self.shared(charges, seen), self.bound(charges, own, seen));
        let mut limits = Take::tell(&shared, &item, self.moment());
        self.tell_whole(charges, seen, &mut limits);
        limits
    }

    /// Makes what was charged to `own` what it has come to.
    #[must_use]
    pub fn settle(&self, charged: Vec<(Charged, Actual)>, own: &Item, id: u64) -> Settled {
        let (settlement, step) = Settlement::start(charged, own, self.now, id);
        let item = match step {
            settle::Step::Write(write) => write.apply(Some(own)),
            settle::Step::Done => None,
        };
        Settled { item, beyond: settlement.beyond(own, self.now) }
    }

    /// Nobody else writes to the item, so the clock agrees with its own.
    fn moment(&self) -> Moment {
        Moment { now: self.now, clock_agrees: true }
    }

    /// The charges by the figures of the share. A limit's rule for penalties stays only where it is locked already: a share is less
    /// than the limit, and whoever has used it up did nothing to be locked for.
    fn shared(&self, charges: &Charges, seen: Option<&Item>) -> Charges {
        let is_locked = |charge: &Charge| {
            let lock = seen.and_then(|item| item.penalties.get(&charge.limit));
            lock.is_some_and(|lock| lock.rest(self.now).is_some())
        };
        charges.each(|charge| {
            let figures = charge.terms.figures.share(self.instances, charge.cost);
            let penalty = charge.penalty.filter(|_| is_locked(charge));
            // What is charged here nobody else has leased.
            let terms = Terms { figures, leased: false, ..charge.terms.clone() };
            Charge { terms, penalty, ..charge.clone() }
        })
    }

    /// The item of this process with what is known to be in force for the key.
    fn bound(&self, charges: &Charges, own: Option<&Item>, seen: Option<&Item>) -> Item {
        let own = own.cloned().unwrap_or_default();
        let hold = seen.and_then(|item| item.hold.as_ref()).map(|hold| {
            let shared = charges.charges().iter().filter_map(|charge| {
                let Override { figures, until } = *hold.overrides.get(&charge.limit)?;
                let figures = figures.share(self.instances, charge.cost);
                Some((charge.limit.clone(), Override { figures, until }))
            });
            Hold { overrides: shared.collect(), ..hold.clone() }
        });
        Item { hold, penalties: seen.map(|item| item.penalties.clone()).unwrap_or_default(), ..own }
    }

    /// A limit is told by its whole figures, as everywhere.
    fn tell_whole(&self, charges: &Charges, seen: Option<&Item>, limits: &mut [LimitDecision]) {
        let hold = seen.and_then(|item| item.hold.as_ref()).and_then(|hold| hold.in_force(self.now));
        for (told, charge) in limits.iter_mut().zip(charges.charges()) {
            let other = hold.as_ref().and_then(|hold| hold.overrides.get(&charge.limit));
            told.terms = charge.terms.beside(None, other.map(|other| other.figures));
            told.source = Source::Local;
        }
    }
}
