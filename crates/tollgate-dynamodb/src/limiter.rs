//! The limiter: drives the core's protocol against a store, within a deadline, and remembers what it last saw of a key.
//!
//! Invariants: what was last seen only picks the form of the first write, it never answers; a write whose fate is
//! unknown ends the decision with an error and is not repeated; only "not applied" is retried, within the deadline.

use crate::error::{Error, Result};
use crate::meter::Event;
use crate::partition_key;
use crate::store::{Store, Written};
use quick_cache::sync::Cache;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};
#[cfg(doc)]
use tollgate_core::TokenBucket;
use tollgate_core::{Charges, Decision, Item, Step, Take, Write};

/// Decides charges on a store. Cheap to share behind an [`Arc`]; one a process.
#[derive(Debug)]
pub struct Limiter<S> {
    store: S,
    last_seen: Cache<String, Arc<Item>>,
    deadline: Duration,
}

impl<S: Store> Limiter<S> {
    /// Keys whose last seen item is remembered.
    pub const REMEMBERED_KEYS: usize = 10_000;
    /// Default deadline of a decision. DynamoDB answers in single-digit milliseconds; what takes ten times as long is better
    /// decided by `on_store_failure`.
    pub const DEADLINE: Duration = Duration::from_millis(50);
    /// Longest deadline of a decision: [`TokenBucket::LATEST_ARRIVAL_SECS`] reckons with it.
    pub const LONGEST_DEADLINE: Duration = Duration::from_secs(60);
    /// Writes after which a decision on a contended key is given up. Uncontended decisions need two at most.
    pub const MOST_WRITES: u32 = 16;

    /// A limiter on `store`.
    #[must_use]
    pub fn new(store: S) -> Self {
        Self { store, last_seen: Cache::new(Self::REMEMBERED_KEYS), deadline: Self::DEADLINE }
    }

    /// Changes the deadline of a decision, all its requests and waits included; at most [`Self::LONGEST_DEADLINE`].
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline.min(Self::LONGEST_DEADLINE);
        self
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &S {
        &self.store
    }

    /// Decides `charges`, all or nothing, and charges them if allowed.
    ///
    /// # Errors
    ///
    /// The store gave no answer: see [`Error`]. A denial is `Ok`.
    pub async fn take(&self, charges: &Charges) -> Result<Decision> {
        let result = self.drive(charges).await;
        match &result {
            Ok(decision) => self.store.meter().record(Event::Decision(decision)),
            Err(error) => self.store.meter().record(Event::StoreFailure(error)),
        }
        result
    }

    async fn drive(&self, charges: &Charges) -> Result<Decision> {
        let until = Instant::now() + self.deadline;
        let pk = partition_key::of(charges.key());
        let last_seen = self.last_seen.get(&pk);
        let (mut take, mut step) =
            Take::start(charges.clone(), last_seen.as_deref(), self.store.moment(), fastrand::u64(..));
        let mut writes = 0;
        loop {
            step = match step {
                Step::Done(decision) => {
                    self.report(&take);
                    return Ok(decision);
                }
                Step::Read => {
                    let limits: Vec<_> = charges.charges().iter().map(|charge| &charge.limit).collect();
                    let read = timeout_at(until, self.store.read(charges.key(), &limits)).await;
                    let item = read.map_err(|_| Error::Deadline(self.deadline))??;
                    self.remember(&pk, item.as_ref());
                    take.read(item.as_ref(), self.store.moment())
                }
                Step::Write(_) if writes == Self::MOST_WRITES => {
                    self.report(&take);
                    return Err(Error::Contended(writes));
                }
                Step::Write(write) => {
                    writes += 1;
                    match self.write(charges, &write, until).await? {
                        Written::Applied(item) => {
                            self.remember(&pk, Some(&item));
                            take.applied(&item, self.store.moment())
                        }
                        Written::Refused(item) => {
                            self.remember(&pk, item.as_ref());
                            if writes > 2 {
                                // Two is what a wrong guess costs; from the third on, others are in the way.
                                sleep(jittered(Duration::from_millis(1 << writes.min(6)))).await;
                            }
                            take.refused(item.as_ref(), self.store.moment())
                        }
                    }
                }
            };
        }
    }

    /// Sends one write, again only while the table says that it was not applied, and only until the deadline.
    async fn write(&self, charges: &Charges, write: &Write, until: Instant) -> Result<Written> {
        let mut pause = Duration::from_millis(5);
        loop {
            let sent = timeout_at(until, self.store.write(charges.key(), write)).await;
            let Ok(answer) = sent else {
                return Err(Error::Ambiguous(format!("no answer within {:?}", self.deadline)));
            };
            match answer {
                Err(e) if e.may_be_retried() => {
                    self.store.meter().record(Event::Throttled);
                    let wait = jittered(pause);
                    if Instant::now() + wait >= until {
                        return Err(e);
                    }
                    sleep(wait).await;
                    pause *= 2;
                }
                answer => return answer,
            }
        }
    }

    fn remember(&self, pk: &str, item: Option<&Item>) {
        match item {
            Some(item) => self.last_seen.insert(pk.to_owned(), Arc::new(item.clone())),
            None => drop(self.last_seen.remove(pk)),
        }
    }

    /// Tells what was noticed on the way, whether or not it led to an answer.
    fn report(&self, take: &Take) {
        for notice in take.notices() {
            self.store.meter().record(Event::Notice(notice));
        }
    }
}

/// Full jitter, so that callers who were in each other's way do not come back together.
fn jittered(most: Duration) -> Duration {
    most.mul_f64(fastrand::f64())
}
