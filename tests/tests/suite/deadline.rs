//! Many callers of one key, on a store that takes its time: what the end of a call's time means.

use crate::harness::{SECOND, bucket, charge, key, remaining};
use crate::through::through;
use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{Instant, sleep};
use tollgate::testing::{ManualClock, MemoryStore};
use tollgate::{Limiter, Source, Store};
use tollgate_core::{Charges, Item, ItemKey, LimitName, StoreFailure, Terms, Write};
use tollgate_dynamodb::{Error, Result, Transacted, Written};

const HOUR: u64 = 3600 * SECOND;

/// A store in memory that answers after a while, some of it before and some after it writes, and refuses a transaction on
/// an item that is in another one. Tokio's time, which the tests stop, is the only one that passes.
#[derive(Clone)]
struct Slow {
    memory: MemoryStore,
    most_ms: u64,
    in_transaction: Arc<Mutex<HashSet<ItemKey>>>,
    last_sent: Arc<Mutex<Option<Instant>>>,
}

impl Slow {
    fn new(most_ms: u64) -> Self {
        let memory = MemoryStore::new(ManualClock::new(tollgate::Timestamp::from_secs(1_767_225_600)));
        Self { memory, most_ms, in_transaction: Arc::default(), last_sent: Arc::default() }
    }

    /// Half a round trip.
    async fn travel(&self) {
        sleep(Duration::from_micros(fastrand::u64(500..=self.most_ms * 500))).await;
    }

    fn sent(&self) {
        *self.last_sent.lock().unwrap() = Some(Instant::now());
    }

    fn left(&self, charges: &Charges) -> u64 {
        remaining(&self.memory, charges)
    }
}

impl Store for Slow {
    through!(memory: moment, meter);

    async fn read(&self, item: &ItemKey, limits: &[&LimitName]) -> Result<Option<Item>> {
        self.sent();
        self.travel().await;
        let found = self.memory.read(item, limits).await;
        self.travel().await;
        found
    }

    async fn write(&self, item: &ItemKey, write: &Write) -> Result<Written> {
        self.sent();
        self.travel().await;
        if self.in_transaction.lock().unwrap().contains(item) {
            return Err(Error::Conflict);
        }
        let written = self.memory.write(item, write).await;
        self.travel().await;
        written
    }

    async fn transact(&self, writes: &[(&ItemKey, &Write)]) -> Result<Transacted> {
        self.sent();
        self.travel().await;
        let items: Vec<_> = writes.iter().map(|(item, _)| (*item).clone()).collect();
        {
            let mut busy = self.in_transaction.lock().unwrap();
            if items.iter().any(|item| busy.contains(item)) {
                return Err(Error::Conflict);
            }
            busy.extend(items.iter().cloned());
        }
        // The table goes on whether or not the caller still waits.
        let freed = (self.clone(), items);
        let done = tokio::spawn(async move {
            sleep(Duration::from_millis(1)).await;
            let (store, items) = freed;
            store.in_transaction.lock().unwrap().retain(|busy| !items.contains(busy));
        });
        let transacted = self.memory.transact(writes).await;
        done.await.unwrap();
        self.travel().await;
        transacted
    }
}

/// What became of calls that were made all at once.
#[derive(Debug, Default, PartialEq)]
struct Met {
    allowed: u64,
    let_pass: u64,
    denied: u64,
    contended: u64,
    without_answer: u64,
}

async fn at_once(store: &Slow, callers: u64, charges: &[Charges]) -> Met {
    let started = Instant::now();
    let calls = (0..callers).map(|_| {
        let (store, charges) = (store.clone(), charges.to_vec());
        tokio::spawn(async move { Limiter::new(store).take(&charges).await })
    });
    let mut met = Met::default();
    for call in calls.collect::<Vec<_>>() {
        match call.await.unwrap() {
            Ok(decision) if decision.unasked.iter().any(|u| u.source == Source::Open) => met.let_pass += 1,
            Ok(decision) if decision.is_allowed() => met.allowed += 1,
            Ok(_) => met.denied += 1,
            Err(Error::Contended { .. }) => met.contended += 1,
            Err(_) => met.without_answer += 1,
        }
    }
    let last_sent = store.last_sent.lock().unwrap().unwrap();
    assert!(last_sent < started + Limiter::<Slow>::DEADLINE, "a request was sent after the deadline");
    met
}

fn open(item: &ItemKey, name: &str, terms: Terms) -> Charges {
    Charges::new(item.clone(), vec![charge(name, terms, 1)]).unwrap().with_store_failure(StoreFailure::Open)
}

/// What is to be exact under load must not give up being so when load is all that there is.
#[tokio::test(start_paused = true)]
async fn contention_on_transactions_never_lets_a_call_pass() {
    for most_ms in [2, 8, 20] {
        let store = Slow::new(most_ms);
        let of = |name| open(&key(), name, Terms::new(1, bucket(30, HOUR, 30)));
        let both = [of("user").atomically(true), of("tenant").atomically(true)];
        let met = at_once(&store, 100, &both).await;
        assert_eq!(met.let_pass, 0, "{met:?}");
        assert!(met.allowed <= 30 && met.contended > 0, "{met:?}");
        // Whatever was charged beyond that is that of calls that got no answer.
        let charged = 30 - store.left(&both[0]);
        assert_eq!(charged, 30 - store.left(&both[1]));
        assert!((met.allowed..=met.allowed + met.contended).contains(&charged), "{met:?}: {charged} charged");
    }
}

#[tokio::test(start_paused = true)]
async fn contention_on_one_item_never_lets_a_call_pass() {
    // A window shorter than the spread of the calls: they overtake each other.
    let store = Slow::new(12);
    let met = at_once(&store, 60, &[open(&key(), "orders", Terms::new(1, bucket(1000, SECOND, 1)))]).await;
    assert_eq!((met.let_pass, met.without_answer), (0, 0), "{met:?}");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_too_slow_for_all_is_an_outage() {
    let of = |name| open(&key(), name, Terms::new(1, bucket(1, HOUR, 1)));
    let limiter = Limiter::new(Slow::new(2)).with_deadline(Duration::from_micros(400));
    for charges in [vec![of("user")], vec![of("user").atomically(true), of("tenant")]] {
        let decision = limiter.take(&charges).await.unwrap();
        assert!(decision.is_allowed() && decision.unasked.iter().all(|u| u.source == Source::Open));
        assert_eq!(decision.unasked.len(), charges.len());
    }
}
