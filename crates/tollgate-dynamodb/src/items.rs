//! Items of others than the limiter, on its table: conditional writes within a deadline, by whoever has nothing to decide without
//! an answer.
//!
//! Invariants: a write is sent again only if it was not applied; while the table is known to be gone nobody waits for it; whatever
//! fails is an error, and no error lets anybody pass.

use crate::breaker::{Breaker, BreakerState, Health};
use crate::error::{Error, Result};
use crate::expression::Expressions;
use crate::meter::Event;
use crate::patience::Patience;
use crate::store::{DynamoStore, Store, Updated};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tollgate_core::Timestamp;

/// Writes items that are not limits'. One a process.
#[derive(Debug)]
pub struct Items {
    store: DynamoStore,
    breaker: Breaker,
    deadline_ms: AtomicU64,
}

impl Items {
    /// Default deadline of a call, all its writes and waits included: a second. Nobody decides in the table's place, so it is
    /// waited for longer than by a limiter.
    pub const DEADLINE: Duration = Duration::from_secs(1);

    /// Items of the table of `store`, which was [warmed up](DynamoStore::warm_up): what is judged by the clock is only right once that
    /// is known to agree with the table's.
    #[must_use]
    pub fn new(store: DynamoStore) -> Self {
        Self { store, breaker: Breaker::new(), deadline_ms: AtomicU64::new(millis(Self::DEADLINE)) }
    }

    /// Changes the deadline of a call.
    #[must_use]
    pub fn with_deadline(self, deadline: Duration) -> Self {
        self.set_deadline(deadline);
        self
    }

    /// The same for calls from now on; whole milliseconds.
    pub fn set_deadline(&self, deadline: Duration) {
        self.deadline_ms.store(millis(deadline), Ordering::Relaxed);
    }

    /// Whether writes go to the table.
    #[must_use]
    pub fn breaker(&self) -> BreakerState {
        self.breaker.state()
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &DynamoStore {
        &self.store
    }

    /// The time as the table would tell it.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.store.moment().now
    }

    /// A call, whose writes have the deadline together.
    #[must_use]
    pub fn begin(&self) -> Call<'_> {
        Call { items: self, patience: Patience::new(Duration::from_millis(self.deadline_ms.load(Ordering::Relaxed))) }
    }
}

fn millis(deadline: Duration) -> u64 {
    u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX)
}

/// The writes that are one answer together, and the time that is left for them.
#[derive(Debug)]
pub struct Call<'i> {
    items: &'i Items,
    patience: Patience,
}

impl Call<'_> {
    /// Writes the item of `pk` if the condition holds, atomically.
    ///
    /// # Errors
    ///
    /// Whatever keeps the table from answering in time; [`Error::fate`] says whether the write may have been applied.
    pub async fn update(&self, pk: &str, rendered: &Expressions) -> Result<Updated> {
        let Items { store, breaker, .. } = self.items;
        let updated = match breaker.admit() {
            None => Err(Error::Suspended),
            Some(leave) => {
                let updated = self.patience.write(store.meter(), || store.update(pk, rendered.clone())).await;
                let is_gone = updated.as_ref().is_err_and(Error::is_outage);
                leave.report(if is_gone { Health::Gone } else { Health::Answers }, store.meter());
                updated
            }
        };
        updated.inspect_err(|error| store.meter().record(Event::StoreFailure(error)))
    }

    /// Others changed the item each time between two of `writes`.
    #[must_use]
    pub fn contended(&self) -> Error {
        self.patience.contended(crate::error::Fate::NotApplied)
    }
}
