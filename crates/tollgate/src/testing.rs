//! For your tests: a store in memory with the semantics of the table, and a clock that moves only when told.
//!
//! The store runs the same protocol on the same conditional writes as [`DynamoStore`](crate::DynamoStore); only the
//! table is a map. Invariant: a write is atomic, and one whose condition does not hold changes nothing and returns the
//! item that it found.
//!
//! ```
//! use std::time::Duration;
//! use tollgate::testing::{ManualClock, MemoryStore};
//! use tollgate::{Limiter, Policy, Timestamp, Wanted};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
//! let policy = Policy::parse("version = 1\n[limits.orders]\nkey = ['user']\nrate = '3/h'\n")?.policy;
//! let clock = ManualClock::new(Timestamp::from_secs(1_767_225_600));
//! let limiter = Limiter::new(MemoryStore::new(clock.clone()));
//! let charges = policy.charges(&[Wanted { limit: "orders", key: &[("user", "alice")], plan: None, cost: 1 }])?;
//! for _ in 0..3 {
//!     assert!(limiter.take(&charges).await?.is_allowed());
//! }
//! let denied = limiter.take(&charges).await?;
//! assert_eq!(denied.retry_after(), Some(Duration::from_secs(1200)));
//! clock.advance(Duration::from_secs(1200));
//! assert!(limiter.take(&charges).await?.is_allowed());
//! # Ok(())
//! # })
//! # }
//! ```

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tollgate_core::take::Moment;
use tollgate_core::{Clock, Item, ItemKey, LimitName, Write};
use tollgate_dynamodb::{Counters, Event, Meter, Result, Store, Transacted, Written};

pub use tollgate_core::ManualClock;

/// A table in memory. Clones share it, as two processes share a table.
#[derive(Debug, Clone)]
pub struct MemoryStore {
    items: Arc<Mutex<HashMap<ItemKey, Item>>>,
    clock: ManualClock,
    counters: Arc<Counters>,
}

impl MemoryStore {
    /// An empty table whose clock, and whose callers' clock, is `clock`.
    #[must_use]
    pub fn new(clock: ManualClock) -> Self {
        Self { items: Arc::default(), clock, counters: Arc::default() }
    }

    /// The item of `key`, as stored.
    #[must_use]
    pub fn item(&self, key: &ItemKey) -> Option<Item> {
        self.items().get(key).cloned()
    }

    /// What was counted.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Deletes what is past its `expires_at`, as DynamoDB's TTL does sooner or later; returns how many items.
    pub fn delete_expired(&self) -> usize {
        let now = self.clock.now();
        let mut items = self.items();
        let before = items.len();
        items.retain(|_, item| !item.is_expired(now));
        before - items.len()
    }

    fn items(&self) -> MutexGuard<'_, HashMap<ItemKey, Item>> {
        // A panic elsewhere cannot leave an item half written: each write replaces a whole item.
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for MemoryStore {
    fn moment(&self) -> Moment {
        Moment { now: self.clock.now(), clock_agrees: true }
    }

    fn meter(&self) -> &dyn Meter {
        &*self.counters
    }

    async fn read(&self, key: &ItemKey, _limits: &[&LimitName]) -> Result<Option<Item>> {
        self.counters.record(Event::RoundTrip);
        self.counters.record(Event::ReadUnits(1));
        Ok(self.item(key))
    }

    async fn write(&self, key: &ItemKey, write: &Write) -> Result<Written> {
        self.counters.record(Event::RoundTrip);
        self.counters.record(Event::WriteUnits(1));
        let mut items = self.items();
        let found = items.get(key);
        Ok(match write.apply(found) {
            Some(next) => {
                items.insert(key.clone(), next.clone());
                Written::Applied(next)
            }
            None => Written::Refused(found.cloned()),
        })
    }

    async fn transact(&self, writes: &[(&ItemKey, &Write)]) -> Result<Transacted> {
        self.counters.record(Event::RoundTrip);
        writes.iter().for_each(|_| self.counters.record(Event::WriteUnits(2)));
        let mut items = self.items();
        let next: Vec<_> = writes.iter().map(|(key, write)| write.apply(items.get(*key))).collect();
        if next.iter().any(Option::is_none) {
            let refused = |((key, _), next): (&(&ItemKey, &Write), &Option<Item>)| {
                next.is_none().then(|| items.get(*key).cloned())
            };
            return Ok(Transacted::Refused(writes.iter().zip(&next).map(refused).collect()));
        }
        for ((key, _), next) in writes.iter().zip(next) {
            items.extend(next.map(|next| ((*key).clone(), next)));
        }
        Ok(Transacted::Applied)
    }
}
