//! What this process decides by itself where the store gives no answer: the items of [`Local`], bounded.
//!
//! Invariant: of one decision all items are charged, or none.

use crate::memory::Memory;
use crate::partition_key;
use quick_cache::unsync::Cache;
use std::fmt;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tollgate_core::local::Answer;
use tollgate_core::{Actual, Charged, Charges, Item, LimitName, Local, Timestamp};

/// The items that were decided on here most lately.
pub(crate) struct Locals {
    items: Mutex<Cache<String, Item>>,
    /// How many processes there are, in place of what the charges say; 0 if that is not known better.
    instances: AtomicU64,
}

impl fmt::Debug for Locals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Locals").field("instances", &self.instances).finish_non_exhaustive()
    }
}

impl Locals {
    pub(crate) fn new(keys: usize) -> Self {
        Self { items: Mutex::new(Cache::new(keys)), instances: AtomicU64::new(0) }
    }

    pub(crate) fn set_instances(&self, instances: Option<NonZeroU64>) {
        self.instances.store(instances.map_or(0, NonZeroU64::get), Ordering::Relaxed);
    }

    /// Decides all of `charges`, all or nothing, under what was last seen of the table's items.
    pub(crate) fn decide(&self, charges: &[&Charges], seen: &Memory, now: Timestamp) -> Vec<Answer> {
        let mut items = self.items();
        let asked: Vec<_> = charges
            .iter()
            .map(|charges| {
                let pk = partition_key::of(charges.item());
                let (local, seen) = (self.local(charges, now), seen.latest(charges).map(|seen| seen.item));
                let answer = local.decide(charges, items.get(&pk), seen.as_deref(), fastrand::u64(..));
                (pk, local, seen, answer)
            })
            .collect();
        let is_allowed = asked.iter().all(|(.., answer)| answer.decision.is_allowed());
        let mut answers = Vec::with_capacity(asked.len());
        for (charges, (pk, local, seen, mut answer)) in charges.iter().zip(asked) {
            if is_allowed || answer.charged.is_empty() {
                items.insert(pk, std::mem::take(&mut answer.item));
            } else {
                answer.decision.limits = local.tell(charges, items.get(&pk), seen.as_deref());
                answer.charged.clear();
            }
            answers.push(answer);
        }
        answers
    }

    /// Makes what `charges` were charged here what it has come to. Whether there was anything to settle, and what they cost beyond
    /// their room.
    pub(crate) fn settle(
        &self,
        charges: &Charges,
        charged: Vec<(Charged, Actual)>,
        now: Timestamp,
    ) -> (bool, Vec<(LimitName, u64)>) {
        let (pk, mut items) = (partition_key::of(charges.item()), self.items());
        let Some(own) = items.get(&pk) else { return (false, Vec::new()) };
        let settled = self.local(charges, now).settle(charged, own, fastrand::u64(..));
        let wrote = settled.item.is_some();
        if let Some(item) = settled.item {
            items.insert(pk, item);
        }
        (wrote, settled.beyond)
    }

    fn local(&self, charges: &Charges, now: Timestamp) -> Local {
        let better = NonZeroU64::new(self.instances.load(Ordering::Relaxed));
        Local { instances: better.unwrap_or(charges.instances()), now }
    }

    fn items(&self) -> MutexGuard<'_, Cache<String, Item>> {
        // An item is replaced as a whole, so a panic elsewhere leaves none half written.
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
