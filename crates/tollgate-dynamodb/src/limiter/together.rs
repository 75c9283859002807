//! A decision on several items in one transaction.
//!
//! Invariants: the reply of a transaction has no items, so each charge requires the very state that was seen; what has to be
//! looked at, or moved without a charge, is so by itself before. Items whose limits only report cannot refuse the call, and a shard is
//! chosen anew where one denies, so they are no part of the transaction.

use super::conclude::{Answers, Part, rule};
use super::{Driven, Limiter, Met, Place};
use crate::error::{Fate, Result};
use crate::memory::Seen;
use crate::partition_key;
use crate::patience::{Backoff, Patience};
use crate::store::{Store, Transacted, Written};
use futures_util::future::{join, join_all};
use std::sync::Arc;
use tollgate_core::{Charges, Decision, Item, Step, StoreFailure, Take, Write};

/// An item of a transaction.
struct Together<'c> {
    charges: &'c Charges,
    pk: String,
    take: Take,
    step: Step,
    /// The item as the next write requires it.
    seen: Option<Seen>,
    /// The item as the charge left it.
    charged: Option<Arc<Item>>,
}

impl<S: Store> Limiter<S> {
    /// All items that a transaction takes in one, and beside it the others.
    pub(super) async fn together(&self, charges: &[Charges]) -> Answers {
        let (within, beside): (Vec<_>, Vec<_>) = charges.iter().partition(|charges| charges.can_be_transacted());
        let (beside, within) = join(self.apart(beside.iter().copied()), self.transact_or_fail(&within)).await;
        let (mut others, mut parts) = (beside.parts.into_iter(), within.parts.into_iter());
        let in_order =
            charges.iter().filter_map(|c| if c.can_be_transacted() { parts.next() } else { others.next() }).collect();
        let failures = beside.failures.into_iter().chain(within.failures).collect();
        let (answered, shared) = (beside.answered + within.answered, beside.shared + within.shared);
        Answers { parts: in_order, failures, answered, shared }
    }

    /// None of the items is decided if the store fails, so each follows its rule.
    async fn transact_or_fail(&self, charges: &[&Charges]) -> Answers {
        let mut items: Vec<_> = charges.iter().map(|charges| self.begin_together(charges)).collect();
        let patience = self.patience();
        let answer = self.drive_together(&mut items, &patience).await;
        for item in &items {
            self.report(&item.take, &patience).await;
        }
        match answer {
            Ok(()) => {
                let is_denied = items.iter().any(Together::is_denied);
                let parts: Vec<_> = items.into_iter().map(|item| Ok(self.finish_together(item, is_denied))).collect();
                Answers { answered: parts.len(), parts, failures: Vec::new(), shared: 0 }
            }
            Err(error) => {
                let parts: Vec<Part> = charges.iter().map(|charges| Err(rule(charges, &error))).collect();
                let strictest = charges.iter().map(|charges| rule(charges, &error)).max();
                Answers {
                    parts,
                    failures: vec![(strictest.unwrap_or(StoreFailure::Closed), error)],
                    answered: 0,
                    shared: 0,
                }
            }
        }
    }

    fn begin_together<'c>(&self, charges: &'c Charges) -> Together<'c> {
        let pk = partition_key::of(charges.item());
        let seen = self.parts.memory.last(&pk);
        let item = seen.as_ref().map(|seen| &*seen.item);
        let (take, step) = Take::start_exactly(charges.clone(), item, self.parts.store.moment(), fastrand::u64(..));
        Together { charges, pk, take, step, seen, charged: None }
    }

    /// Until one of the items denies or all are charged.
    async fn drive_together(&self, items: &mut [Together<'_>], patience: &Patience) -> Result<()> {
        let mut backoff = Backoff::new(Self::FIRST_PAUSE);
        for attempt in 0..=Self::MOST_WRITES {
            let prepared = join_all(items.iter_mut().map(|item| self.prepare(item, patience))).await;
            prepared.into_iter().collect::<Result<()>>()?;
            let is_done = items.iter().all(|item| matches!(item.step, Step::Done(_)));
            if is_done || items.iter().any(Together::is_denied) {
                return Ok(());
            }
            if attempt == Self::MOST_WRITES {
                break;
            }
            // The first refusal may be due to what this process had not seen.
            if attempt > 1 {
                patience.make_way(&mut backoff).await?;
            }
            self.charge_together(items, patience).await?;
        }
        Err(patience.contended(Fate::NotApplied))
    }

    /// Does what concerns one item alone, until it is to be charged or answered.
    async fn prepare(&self, item: &mut Together<'_>, patience: &Patience) -> Result<()> {
        let mut backoff = Backoff::new(Self::FIRST_PAUSE);
        for attempt in 0..Self::MOST_WRITES {
            let moment = || self.parts.store.moment();
            match &item.step {
                Step::Read => {
                    let found = self.read(item.charges, &item.pk, patience).await?;
                    item.seen = found.clone().map(Seen::now);
                    item.step = item.take.read(found.as_deref(), moment());
                }
                Step::Write(write) if !item.take.is_charging() => {
                    match self.write(item.charges, &item.pk, write, patience).await? {
                        Met::Applied(left) => {
                            item.step = item.take.applied(&left, moment());
                            item.seen = Some(Seen::now(left));
                        }
                        Met::Refused(found) => {
                            if attempt > 1 {
                                patience.make_way(&mut backoff).await?;
                            }
                            item.step = item.take.refused(found.as_deref(), moment());
                            item.seen = found.map(Seen::now);
                        }
                    }
                }
                Step::Lock { write, denial } => match self.write(item.charges, &item.pk, write, patience).await {
                    Ok(Met::Applied(left)) => {
                        item.step = item.take.applied(&left, moment());
                        item.seen = Some(Seen::now(left));
                    }
                    Ok(Met::Refused(found)) => {
                        item.step = item.take.refused(found.as_deref(), moment());
                        item.seen = found.map(Seen::now);
                    }
                    Err(error) => item.step = Step::Done(self.unlocked(denial.clone(), &error)),
                },
                Step::Write(_) | Step::Done(_) => return Ok(()),
            }
        }
        Err(patience.contended(Fate::NotApplied))
    }

    /// Tries to charge all items that are to be charged.
    async fn charge_together(&self, items: &mut [Together<'_>], patience: &Patience) -> Result<()> {
        let writes: Vec<_> = items.iter().filter_map(|item| Some((item.charges, item.charge()?))).collect();
        let transacted = self.transact(&writes, patience).await?;
        let charging = items.iter_mut().filter(|item| item.charge().is_some());
        match transacted {
            Transacted::Applied => charging.for_each(|item| self.applied_together(item)),
            Transacted::Refused(found) => {
                // It requires the very states that were seen: somebody has changed one, be it before this process first looked.
                patience.met_others();
                for (item, found) in charging.zip(found) {
                    // An item whose own condition held keeps its write for the next try.
                    if let Some(found) = found {
                        self.refused_together(item, found);
                    }
                }
            }
        }
        Ok(())
    }

    /// Sends the charges of a transaction. One alone needs none.
    async fn transact(&self, writes: &[(&Charges, &Write)], patience: &Patience) -> Result<Transacted> {
        let meter = self.parts.store.meter();
        if let [(charges, write)] = writes {
            return Ok(match patience.write(meter, || self.parts.store.write(charges.item(), write)).await? {
                Written::Applied(_) => Transacted::Applied,
                Written::Refused(found) => Transacted::Refused(vec![Some(found)]),
            });
        }
        let writes: Vec<_> = writes.iter().map(|(charges, write)| (charges.item(), *write)).collect();
        patience.write(meter, || self.parts.store.transact(&writes)).await
    }

    fn applied_together(&self, item: &mut Together<'_>) {
        let Step::Write(write) = &item.step else { return };
        let seen = item.seen.as_ref();
        // The condition was that the limits are as seen; others that share the item may have moved on since.
        let Some(left) = write.apply(seen.map(|seen| &*seen.item)).map(Arc::new) else { return };
        let remembered = seen.map_or_else(|| Seen::now(left.clone()), |seen| seen.with(left.clone()));
        self.parts.memory.remember(&item.pk, Some(remembered));
        item.step = item.take.applied(&left, self.parts.store.moment());
        item.charged = Some(left);
    }

    fn refused_together(&self, item: &mut Together<'_>, found: Option<Item>) {
        let found = found.map(|found| Seen::now(Arc::new(found)));
        self.parts.memory.remember(&item.pk, found.clone());
        item.step = item.take.refused(found.as_ref().map(|seen| &*seen.item), self.parts.store.moment());
        item.seen = found;
    }

    fn finish_together(&self, item: Together<'_>, is_denied: bool) -> Driven {
        let decision = match (item.step, item.seen) {
            (Step::Done(decision), _) => decision,
            // Another item denied before this one was charged.
            (_, Some(seen)) if is_denied => {
                Decision::new(Take::tell(item.charges, &seen.item, self.parts.store.moment()))
            }
            _ => return Driven::unasked(item.charges),
        };
        Driven::new(decision, item.take.charged().to_vec(), Place::Table(item.charged))
    }
}

impl Together<'_> {
    /// The write that charges it, unless it is answered.
    fn charge(&self) -> Option<&Write> {
        match &self.step {
            Step::Write(write) => Some(write),
            Step::Read | Step::Lock { .. } | Step::Done(_) => None,
        }
    }

    fn is_denied(&self) -> bool {
        matches!(&self.step, Step::Done(decision) if !decision.is_allowed())
    }
}
