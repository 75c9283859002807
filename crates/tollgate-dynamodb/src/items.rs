//! Items of others than the limiter, on its table: reads and conditional writes within a deadline, by whoever has nothing to decide
//! without an answer.
//!
//! Invariants: a write is sent again only if it was not applied; while the table is known to be gone nobody waits for it; whatever
//! fails is an error, and no error lets anybody pass.

use crate::attributes::Attributes;
use crate::breaker::{Breaker, BreakerState, Health};
use crate::error::{Error, Fate, Result};
use crate::expression::Expressions;
use crate::meter::Event;
use crate::patience::{Backoff, Patience};
use crate::setting::AtomicDuration;
use crate::store::{Deleted, DynamoStore, Store, Together, Updated};
use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;
use tollgate_core::Timestamp;

/// Writes items that are not limits'. One a process.
#[derive(Debug)]
pub struct Items {
    store: DynamoStore,
    breaker: Breaker,
    deadline: AtomicDuration,
}

impl Items {
    /// Default deadline of a call, all its writes and waits included: a second. Nobody decides in the table's place, so it is
    /// waited for longer than by a limiter.
    pub const DEADLINE: Duration = Duration::from_secs(1);

    /// Items of the table of `store`, which was [warmed up](DynamoStore::warm_up): what is judged by the clock is only right once that
    /// is known to agree with the table's.
    #[must_use]
    pub fn new(store: DynamoStore) -> Self {
        Self { store, breaker: Breaker::new(), deadline: AtomicDuration::new(Self::DEADLINE) }
    }

    /// Changes the deadline of a call.
    #[must_use]
    pub fn with_deadline(self, deadline: Duration) -> Self {
        self.set_deadline(deadline);
        self
    }

    /// The same for calls from now on.
    pub fn set_deadline(&self, deadline: Duration) {
        self.deadline.set(deadline);
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
    #[doc(hidden)]
    #[must_use]
    pub fn begin(&self) -> Call<'_> {
        Call { items: self, patience: Patience::new(self.deadline.get()) }
    }
}

/// The writes that are one answer together, and the time that is left for them.
#[doc(hidden)]
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
        let store = &self.items.store;
        // Boxed, here and below, since the SDK's futures are large.
        self.ask(Box::pin(self.patience.write(store.meter(), || store.update(pk, rendered.clone())))).await
    }

    /// Writes several items by their `pk`, each once, if all conditions hold, atomically. A transaction costs twice the units.
    ///
    /// # Errors
    ///
    /// As [`Call::update`].
    pub async fn update_together(&self, writes: &[(String, Expressions)]) -> Result<Together> {
        let store = &self.items.store;
        self.ask(Box::pin(self.patience.write(store.meter(), || store.update_together(writes)))).await
    }

    /// Deletes the item of `pk` if the condition holds, atomically, and says whether it did. A condition that an item without
    /// attributes meets is met where there is none.
    ///
    /// # Errors
    ///
    /// As [`Call::update`].
    pub async fn delete(&self, pk: &str, rendered: &Expressions) -> Result<bool> {
        let store = &self.items.store;
        let deleted = self.patience.write(store.meter(), || store.delete(pk, rendered.clone()));
        Ok(matches!(self.ask(Box::pin(deleted)).await?, Deleted::Gone { .. }))
    }

    /// Reads the item of `pk`, strongly consistent.
    ///
    /// # Errors
    ///
    /// Whatever keeps the table from answering in time.
    pub async fn read(&self, pk: &str) -> Result<Option<Attributes>> {
        self.ask(Box::pin(self.patience.read(self.items.store.get(pk)))).await
    }

    /// Reads those items of `pks` that exist, by their `pk`, eventually consistent: one request a hundred.
    ///
    /// # Errors
    ///
    /// Whatever keeps the table from answering in time.
    pub async fn read_all(&self, pks: impl IntoIterator<Item = String>) -> Result<HashMap<String, Attributes>> {
        let (mut open, mut found) = (pks.into_iter().collect::<Vec<_>>(), HashMap::new());
        let mut backoff = Backoff::new(Duration::from_millis(5));
        while !open.is_empty() {
            let rest = open.split_off(open.len().min(DynamoStore::MOST_READ));
            let asked = open.len();
            let (some, left) = self.ask(Box::pin(self.patience.read(self.items.store.get_all(open)))).await?;
            found.extend(some);
            if left.len() == asked {
                self.patience.make_way(&mut backoff).await?;
            }
            open = rest;
            open.extend(left);
        }
        Ok(found)
    }

    /// The answer to a request, unless the table is known to be gone.
    async fn ask<T>(&self, request: impl Future<Output = Result<T>>) -> Result<T> {
        let Items { store, breaker, .. } = self.items;
        let answer = match breaker.admit() {
            None => Err(Error::Suspended),
            Some(leave) => {
                let answer = request.await;
                leave.report(Health::of(&answer), store.meter());
                answer
            }
        };
        answer.inspect_err(|error| store.meter().record(Event::StoreFailure(error)))
    }

    /// Others changed the item each time between two of `writes`.
    #[must_use]
    pub fn contended(&self) -> Error {
        self.patience.contended(Fate::NotApplied)
    }
}
