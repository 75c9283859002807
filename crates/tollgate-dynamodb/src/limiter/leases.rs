//! What this process has taken ahead of the calls that it expects: spent without asking anybody, by [`Pool`]'s rules.
//!
//! Invariants: a call is admitted by what was charged for nobody else; a pool goes as soon as its item is seen to be another's;
//! nothing runs in the background, and what is not spent comes back as the bucket refills.

use super::{Driven, Limiter, Place};
use crate::meter::Event;
use crate::store::Store;
use quick_cache::sync::Cache;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tollgate_core::lease::Pool;
use tollgate_core::{Actual, Charge, Charged, Charges, Decision, Item, ItemKey, LimitDecision, Timestamp};

/// The pools of the items that were charged most lately.
#[derive(Debug)]
pub(super) struct Leases(Cache<ItemKey, Arc<Mutex<Pool>>>);

fn lock(pool: &Mutex<Pool>) -> MutexGuard<'_, Pool> {
    // Whatever is taken out of a pool is so in one step, before or after a panic elsewhere.
    pool.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Leases {
    pub(super) fn new(keys: usize) -> Self {
        Self(Cache::new(keys))
    }

    /// Admits a call by what was taken ahead.
    fn spend(&self, charges: &Charges, now: Timestamp) -> Option<(LimitDecision, Charged)> {
        let (charge, pool) = self.of(charges)?;
        lock(&pool).spend(&charge.terms, charge.cost, now)
    }

    /// Whether a call would be admitted.
    pub(super) fn has(&self, charges: &Charges, now: Timestamp) -> bool {
        self.of(charges).is_some_and(|(charge, pool)| lock(&pool).has(&charge.terms, charge.cost, now))
    }

    fn of<'c>(&self, charges: &'c Charges) -> Option<(&'c Charge, Arc<Mutex<Pool>>)> {
        let charge = charges.charges().first().filter(|_| charges.can_be_leased())?;
        Some((charge, self.0.get(charges.item())?))
    }

    /// How many tokens `calls` calls that are to be charged should take ahead, of a `room` of so many calls that the item has which was
    /// `seen` last.
    pub(super) fn extra(
        &self,
        charges: &Charges,
        calls: u64,
        (room, seen): (u64, Option<&Item>),
        now: Timestamp,
    ) -> u64 {
        let Some((charge, pool)) = self.of(charges) else { return 0 };
        let bucket = seen.and_then(|item| item.buckets.get(&charge.limit));
        let hold = seen.and_then(|item| item.hold.as_ref());
        let is_overridden = hold.is_some_and(|hold| hold.overrides.contains_key(&charge.limit));
        if is_overridden || bucket.is_some_and(|bucket| !bucket.terms.leased) {
            return 0;
        }
        let tokens = |calls: u64| charge.cost.saturating_mul(calls);
        lock(&pool).extra(charge.lease, (tokens(calls), charge.cost), tokens(room), now)
    }

    /// Keeps what a charge has taken ahead of `calls` calls. `told` is the last one's decision, and `item` what the charge left.
    pub(super) fn keep(&self, charges: &Charges, calls: u64, charged: &[Charged], told: &Decision, item: &Item) {
        let ([charge], [charged], true) = (charges.charges(), charged, charges.can_be_leased()) else { return };
        let Some(pool) = Pool::of(charges, charged, charge.cost.saturating_mul(calls), told, item) else { return };
        match self.0.get(charges.item()) {
            Some(known) => {
                let mut known = lock(&known);
                *known = pool.after(known.clone());
            }
            None => self.0.insert(charges.item().clone(), Arc::new(Mutex::new(pool))),
        }
    }

    /// Drops what was taken ahead of an item that was found to be another.
    pub(super) fn seen(&self, charges: &Charges, item: Option<&Item>) {
        if let Some((_, pool)) = self.of(charges) {
            lock(&pool).see(item);
        }
    }

    /// Takes back what a call has cost less; `None` if it has not.
    pub(super) fn take_back(
        &self,
        charges: &Charges,
        wanted: &[(Charged, Actual)],
        now: Timestamp,
    ) -> Option<Option<LimitDecision>> {
        let [(charged, actual)] = wanted else { return None };
        let kept = match actual {
            Actual::Cost(cost) => *cost,
            Actual::Clear => 0,
        };
        let is_less = charges.can_be_leased() && kept < charged.cost();
        is_less.then(|| Some(lock(&self.of(charges)?.1).give_back(charged, kept, now)))
    }
}

impl<S: Store> Limiter<S> {
    /// Decides a call by what was taken ahead, if that has it.
    pub(super) fn spend(&self, charges: &Charges) -> Option<Driven> {
        let (limit, charged) = self.spend_one(charges)?;
        Some(Driven::new(Decision::new(vec![limit]), vec![charged], Place::Lease))
    }

    fn spend_one(&self, charges: &Charges) -> Option<(LimitDecision, Charged)> {
        charges.can_be_leased().then(|| self.parts.leases.spend(charges, self.parts.store.moment().now))?
    }

    /// A whole decision by what was taken ahead: nobody is asked, and nothing is waited for.
    pub(super) fn take_leased(&self, charges: &[Charges]) -> Option<(Decision, Charged)> {
        let [charges] = charges else { return None };
        let (limit, charged) = self.spend_one(charges)?;
        let decision = Decision::new(vec![limit]);
        // It took less than it would to measure it.
        self.parts.store.meter().record(Event::Took(Duration::ZERO));
        self.parts.store.meter().record(Event::Decision(&decision));
        Some((decision, charged))
    }
}
