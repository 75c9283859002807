//! What this process last saw of a key's item: a guess for the form of the next write, and, while it is fresh, grounds to
//! deny.
//!
//! Invariants: memory admits nothing; its age counts the time that a process is frozen for ([`Since`]).

use crate::partition_key;
use crate::setting::AtomicDuration;
use crate::since::Since;
use quick_cache::sync::Cache;
use std::sync::Arc;
use std::time::Duration;
use tollgate_core::{Charges, Item, Shard};

/// An item and when it was seen.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) item: Arc<Item>,
    since: Since,
}

impl Seen {
    pub(crate) fn now(item: Arc<Item>) -> Self {
        Self { item, since: Since::now() }
    }

    /// The same age, another item.
    pub(crate) fn with(&self, item: Arc<Item>) -> Self {
        Self { item, since: self.since }
    }
}

/// What was last seen of each of the keys that were asked for most lately.
#[derive(Debug)]
pub(crate) struct Memory {
    seen: Cache<String, Seen>,
    denies_for: AtomicDuration,
}

impl Memory {
    pub(crate) fn new(keys: usize, denies_for: Duration) -> Self {
        Self { seen: Cache::new(keys), denies_for: AtomicDuration::new(denies_for) }
    }

    pub(crate) fn deny_for(&self, age: Duration) {
        self.denies_for.set(age);
    }

    /// What was last seen, however long ago.
    pub(crate) fn last(&self, pk: &str) -> Option<Seen> {
        self.seen.get(pk)
    }

    /// What was last seen of the item of `charges`, or of the latest of its shards: what an operator has set is on all of them.
    pub(crate) fn latest(&self, charges: &Charges) -> Option<Seen> {
        let last = |charges: &Charges| self.last(&partition_key::of(charges.item()));
        match charges.shards() {
            None => last(charges),
            Some(shards) => {
                let seen = Shard::all(shards).filter_map(|shard| last(&charges.on_shard(shard.index())));
                seen.max_by_key(|seen| seen.since)
            }
        }
    }

    /// What was seen so lately that it may deny.
    pub(crate) fn fresh(&self, pk: &str) -> Option<Arc<Item>> {
        self.last(pk).filter(|seen| seen.since.is_within(self.denies_for.get())).map(|seen| seen.item)
    }

    pub(crate) fn remember(&self, pk: &str, item: Option<Seen>) {
        match item {
            Some(seen) => self.seen.insert(pk.to_owned(), seen),
            None => drop(self.seen.remove(pk)),
        }
    }
}
