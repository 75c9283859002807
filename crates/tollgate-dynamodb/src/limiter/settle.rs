//! Settling what a call was charged: giving it back where the call is refused elsewhere or does not take place, and making it the
//! true cost where that is known afterwards.
//!
//! Invariant: a write whose fate is unknown is sent again only if the table can tell that it was applied; what is not given
//! back comes back as the bucket refills.

use super::{Driven, Limiter, Met, Place, Taken};
use crate::breaker::BreakerState;
use crate::error::{Error, Fate, Result};
use crate::meter::Event;
use crate::partition_key;
use crate::patience::Backoff;
use crate::store::Store;
use futures_util::future::join_all;
use std::sync::Arc;
use tollgate_core::settle::Step;
use tollgate_core::{Actual, Charged, Charges, Decision, Item, LimitDecision, LimitName, Settlement, Take, Timestamp};

/// What became of what a call was charged.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settled {
    /// The limits of the items that were settled, as they are then.
    pub limits: Vec<LimitDecision>,
    /// Limits that the call cost more than their room and debt, and by how many tokens. Those are not charged.
    pub beyond: Vec<(LimitName, u64)>,
    /// Limits that did not know of the call any more, since it was settled after its time (`settled_within`) or an operator has reset
    /// the key. It counts as what it was charged, and what it cost more is not charged.
    pub late: Vec<LimitName>,
    /// Items of which the store gave no answer. What they were charged may be settled or not; it is not charged twice.
    pub lost: usize,
}

/// An item after its settlement.
#[derive(Default)]
struct Left {
    /// Whether there was anything to settle.
    wrote: bool,
    limits: Vec<LimitDecision>,
    beyond: Vec<(LimitName, u64)>,
    late: Vec<LimitName>,
}

impl<S: Store> Limiter<S> {
    /// Gives back what a call that does not take place was charged on `charges`, as far as that can be: the part of its slots
    /// in the future, and of a pacer's only what nobody waits behind. What the store does not answer is counted as lost.
    pub async fn cancel(&self, charges: &[Charges], taken: Taken) {
        let give_back = async |(charges, part): (&Charges, Option<Driven>)| {
            if let Some(mut part) = part {
                self.give_back(charges, &mut part).await;
            }
        };
        join_all(charges.iter().zip(taken.0).map(give_back)).await;
    }

    /// Makes what a call was charged on `charges` what it has come to, limit by limit; `None` leaves a charge as it is.
    ///
    /// Less is given back as far as it lies in the future ([`tollgate_core::settle`]), more is charged up to the limit's debt. A
    /// charge that was made to be settled ([`settled_within`](tollgate_core::Charge::settled_within)) is settled once, however often
    /// the request is repeated; any other is, or is lost. One write for each item, more where others
    /// contend for it, within the deadline, and once more as long where an answer is lost. Nothing is left for later: where a process
    /// is frozen after its answer, settle before it.
    pub async fn settle(
        &self,
        charges: &[Charges],
        taken: Taken,
        actual: impl Fn(&LimitName) -> Option<Actual>,
    ) -> Settled {
        let settle = async |(charges, part): (&Charges, Option<Driven>)| {
            let part = part?;
            let charges = part.asked(charges);
            let told = |charged: Charged| actual(charged.limit()).map(|actual| (charged, actual));
            let settles = |(charged, actual): &(Charged, Actual)| !charged.is_settled_by(*actual);
            let wanted: Vec<_> = part.charged.into_iter().filter_map(told).filter(settles).collect();
            (!wanted.is_empty()).then_some(())?;
            Some(self.settle_item(&charges, wanted, part.place).await)
        };
        let mut settled = Settled::default();
        for answer in join_all(charges.iter().zip(taken.0).map(settle)).await.into_iter().flatten() {
            match answer {
                Ok(left) => {
                    if left.wrote {
                        self.parts.store.meter().record(Event::Settled);
                    }
                    settled.limits.extend(left.limits);
                    settled.beyond.extend(left.beyond);
                    settled.late.extend(left.late);
                }
                Err(error) => {
                    self.parts.store.meter().record(Event::SettlementLost);
                    tracing::warn!(%error, "a charge could not be settled");
                    settled.lost += 1;
                }
            }
        }
        if !settled.late.is_empty() {
            self.parts.store.meter().record(Event::SettledLate);
        }
        for (limit, tokens) in &settled.beyond {
            self.parts.store.meter().record(Event::BeyondDebt { limit: limit.as_str(), tokens: *tokens });
        }
        settled
    }

    /// Gives back what a part of a refused call was charged, and tells its limits as they are then.
    pub(super) async fn give_back(&self, charges: &Charges, part: &mut Driven) {
        if part.charged.is_empty() {
            return;
        }
        let all = std::mem::take(&mut part.charged).into_iter().map(|charged| (charged, Actual::Cost(0))).collect();
        let asked = part.asked(charges);
        match self.settle_item(&asked, all, std::mem::replace(&mut part.place, Place::Table(None))).await {
            Ok(left) => {
                if left.wrote {
                    self.parts.store.meter().record(Event::Refunded);
                }
                if !left.limits.is_empty() {
                    part.decision = Decision::new(left.limits);
                }
            }
            Err(error) => {
                self.parts.store.meter().record(Event::RefundLost);
                tracing::warn!(%error, "a charge could not be given back");
            }
        }
    }

    async fn settle_item(&self, charges: &Charges, wanted: Vec<(Charged, Actual)>, place: Place) -> Result<Left> {
        let now = self.parts.store.moment().now;
        if matches!(place, Place::Here) {
            let (wrote, beyond) = self.parts.locals.settle(charges, wanted, now);
            return Ok(Left { wrote, beyond, ..Left::default() });
        }
        if let Some(told) = self.parts.leases.take_back(charges, &wanted, now) {
            return Ok(Left { wrote: told.is_some(), limits: told.into_iter().collect(), ..Left::default() });
        }
        let left = match place {
            // Not what memory has of the item: that may be older than the charge, if replies have overtaken each other.
            Place::Table(left) => left,
            // That was charged by an earlier call.
            Place::Lease | Place::Here => {
                let pk = partition_key::of(charges.item());
                match self.parts.memory.last(&pk) {
                    Some(seen) => Some(seen.item),
                    None => self.read(charges, &pk, &self.patience()).await?,
                }
            }
        };
        let Some(left) = left else { return Ok(Left::default()) };
        if self.breaker() != BreakerState::Closed {
            return Err(Error::Suspended);
        }
        let (settlement, step) = Settlement::start(wanted, &left, now, fastrand::u64(..));
        let begun = (step, left, now);
        match self.go_through(charges, &settlement, begun.clone()).await {
            // The write may have been applied, or not: if it was, this one is refused, and finds nothing left to do.
            Err(error) if error.fate() == Fate::Unknown && settlement.is_idempotent() => {
                let beyond = settlement.beyond(&begun.1, now);
                let left = self.go_through(charges, &settlement, begun).await?;
                Ok(if left.wrote { left } else { Left { wrote: true, late: Vec::new(), beyond, ..left } })
            }
            answer => answer,
        }
    }

    /// Writes until nothing is left to settle.
    async fn go_through(
        &self,
        charges: &Charges,
        settlement: &Settlement,
        (mut step, mut item, mut now): (Step, Arc<Item>, Timestamp),
    ) -> Result<Left> {
        let pk = partition_key::of(charges.item());
        let patience = self.patience();
        let mut backoff = Backoff::new(Self::FIRST_PAUSE);
        for _ in 0..Self::MOST_WRITES {
            let (beyond, late) = (settlement.beyond(&item, now), settlement.late(Some(&item)));
            let left = |item: Arc<Item>, wrote| {
                let limits = Take::tell(charges, &item, self.parts.store.moment());
                Left { wrote, limits, beyond, late }
            };
            let write = match step {
                Step::Done => return Ok(left(item, false)),
                Step::Write(write) => write,
            };
            match self.write(charges, &pk, &write, &patience).await? {
                Met::Applied(item) => return Ok(left(item, true)),
                Met::Refused(found) => {
                    patience.make_way(&mut backoff).await?;
                    now = self.parts.store.moment().now;
                    step = settlement.refused(found.as_deref(), now);
                    item = found.unwrap_or_default();
                }
            }
        }
        Err(patience.contended(Fate::NotApplied))
    }
}
