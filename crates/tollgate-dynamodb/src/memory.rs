//! What this process last saw of a key's item: a guess for the form of the next write, and, while it is fresh, grounds to
//! deny.
//!
//! Invariants: memory admits nothing; its age counts the time that a process is frozen for, by whichever of the two clocks
//! saw more of it.

use quick_cache::sync::Cache;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tollgate_core::Item;

/// An item and when it was seen.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) item: Arc<Item>,
    at: Instant,
    at_wall: SystemTime,
}

impl Seen {
    pub(crate) fn now(item: Arc<Item>) -> Self {
        Self { item, at: Instant::now(), at_wall: SystemTime::now() }
    }

    /// The same age, another item.
    pub(crate) fn with(&self, item: Arc<Item>) -> Self {
        Self { item, ..self.clone() }
    }

    /// Whether it is no older than `age`. A wall clock that was set back makes it old.
    fn is_fresh(&self, age: Duration) -> bool {
        self.at.elapsed() < age && self.at_wall.elapsed().is_ok_and(|elapsed| elapsed < age)
    }
}

/// What was last seen of each of the keys that were asked for most lately.
#[derive(Debug)]
pub(crate) struct Memory {
    seen: Cache<String, Seen>,
    denies_for: Duration,
}

impl Memory {
    pub(crate) fn new(keys: usize, denies_for: Duration) -> Self {
        Self { seen: Cache::new(keys), denies_for }
    }

    pub(crate) fn deny_for(&mut self, age: Duration) {
        self.denies_for = age;
    }

    /// What was last seen, however long ago.
    pub(crate) fn last(&self, pk: &str) -> Option<Seen> {
        self.seen.get(pk)
    }

    /// What was seen so lately that it may deny.
    pub(crate) fn fresh(&self, pk: &str) -> Option<Arc<Item>> {
        self.last(pk).filter(|seen| seen.is_fresh(self.denies_for)).map(|seen| seen.item)
    }

    pub(crate) fn remember(&self, pk: &str, item: Option<Seen>) {
        match item {
            Some(seen) => self.seen.insert(pk.to_owned(), seen),
            None => drop(self.seen.remove(pk)),
        }
    }
}
