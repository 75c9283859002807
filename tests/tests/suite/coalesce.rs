//! Calls of one process that come at once take one write together: how many writes, who is admitted, what if one goes away.

use crate::harness::{Client, SECOND, bucket, charge, key, one};
use futures_util::future::join_all;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;
use tollgate::testing::{ManualClock, MemoryStore};
use tollgate::{Decision, Limiter, Meter, Outcome, Store, Timestamp};
use tollgate_core::take::Moment;
use tollgate_core::{Charges, Item, ItemKey, LimitName, StoreFailure, Terms, Write};
use tollgate_dynamodb::{Error, Fate, Result, Transacted, Written};

const DAY: u64 = 86_400 * SECOND;

fn allowed(decisions: &[Decision]) -> usize {
    decisions.iter().filter(|decision| decision.is_allowed()).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn forty_callers_of_one_process_on_a_new_key_of_ten_take_two_writes() {
    let mut client = Client::new().await;
    client.limiter = client.limiter.coalescing(true);
    let ten = one(&key(), 1, DAY, 10);
    let before = client.counts();
    let decisions = join_all((0..40).map(|_| client.take(&ten))).await;
    let after = client.counts();
    assert_eq!(allowed(&decisions), 10);
    assert_eq!(after.round_trips - before.round_trips, 2, "one by the first, and one by nine for all");
    assert_eq!((after.coalesced, after.decisions - before.decisions), (8, 40));
    let mut left: Vec<_> = decisions.iter().filter(|d| d.is_allowed()).map(|d| d.limits[0].remaining).collect();
    left.sort_unstable();
    assert_eq!(left, (0..10).collect::<Vec<_>>(), "each is told what it left");
    for denied in decisions.iter().filter(|d| !d.is_allowed()) {
        assert_eq!(denied.outcome(), Outcome::Denied);
        assert!(denied.retry_after().is_some_and(|wait| wait <= Duration::from_secs(86_400)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_process_that_is_not_told_to_takes_a_write_each() {
    let client = Client::new().await;
    let limiter = client.limiter;
    let many = one(&key(), 1, DAY, 1000);
    join_all((0..40).map(|_| limiter.take(std::slice::from_ref(&many)))).await;
    assert_eq!((client.counters.counts().write_units, client.counters.counts().coalesced), (40, 0));
}

/// Whoever wants something else is not kept waiting by those who are alike.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn calls_of_other_costs_go_apart_and_all_are_exact() {
    let mut client = Client::new().await;
    client.limiter = client.limiter.coalescing(true);
    let (item, terms) = (key(), Terms::new(1, bucket(1, DAY, 30)));
    let calls = (0..60).map(|i| {
        let charges = Charges::new(item.clone(), vec![charge("limit", terms.clone(), 1 + i % 3)]).unwrap();
        let client = &client;
        async move { if client.take(&charges).await.is_allowed() { 1 + i % 3 } else { 0 } }
    });
    let spent: u64 = join_all(calls).await.into_iter().sum();
    assert!((28..=30).contains(&spent), "{spent} of 30: only what is left and too small for a call stays");
}

/// A store in memory whose answers are given one at a time, as the test says; it counts writes, and fails if it is told so.
#[derive(Debug, Clone)]
struct Gated {
    memory: MemoryStore,
    gate: Arc<Semaphore>,
    writes: Arc<AtomicU64>,
    fails: Arc<AtomicU64>,
}

impl Gated {
    fn new() -> Self {
        let memory = MemoryStore::new(ManualClock::new(Timestamp::from_secs(1_767_225_600)));
        Self { memory, gate: Arc::new(Semaphore::new(0)), writes: Arc::default(), fails: Arc::default() }
    }
}

impl Store for Gated {
    fn moment(&self) -> Moment {
        self.memory.moment()
    }

    fn meter(&self) -> &dyn Meter {
        self.memory.meter()
    }

    async fn read(&self, key: &ItemKey, limits: &[&LimitName]) -> Result<Option<Item>> {
        self.memory.read(key, limits).await
    }

    async fn write(&self, key: &ItemKey, write: &Write) -> Result<Written> {
        self.writes.fetch_add(1, Ordering::SeqCst);
        // The write is applied at once, and its answer waits.
        let written = self.memory.write(key, write).await;
        self.gate.acquire().await.unwrap().forget();
        if self.fails.load(Ordering::SeqCst) > 0 {
            return Err(Error::Ambiguous("the table is gone".to_owned()));
        }
        written
    }

    async fn transact(&self, writes: &[(&ItemKey, &Write)]) -> Result<Transacted> {
        self.memory.transact(writes).await
    }
}

type Call = tokio::task::JoinHandle<Result<Decision>>;

async fn lined_up(calls: usize, burst: u64) -> (Gated, Vec<Call>) {
    let (_, store, calls) = lined_up_on(calls, burst, StoreFailure::Closed).await;
    (store, calls)
}

/// A limiter, its store, and so many calls on one key that have been made; the first waits for its answer.
async fn lined_up_on(calls: usize, burst: u64, rule: StoreFailure) -> (Arc<Limiter<Gated>>, Gated, Vec<Call>) {
    let store = Gated::new();
    let limiter = Arc::new(Limiter::new(store.clone()).with_deadline(Duration::from_secs(30)).coalescing(true));
    let charges = one(&key(), 1, DAY, burst).with_store_failure(rule);
    let mut handles = Vec::new();
    for _ in 0..calls {
        let (limiter, charges) = (Arc::clone(&limiter), charges.clone());
        handles.push(tokio::spawn(async move { limiter.take(&[charges]).await }));
        // In their order.
        tokio::task::yield_now().await;
    }
    (limiter, store, handles)
}

async fn ended(calls: Vec<Call>) -> Vec<Option<bool>> {
    let ended = join_all(calls).await.into_iter();
    ended.map(|call| call.ok().and_then(|answer| answer.ok()).map(|decision| decision.is_allowed())).collect()
}

#[tokio::test(start_paused = true)]
async fn those_who_line_up_are_served_by_the_next_of_them() {
    let (store, calls) = lined_up(6, 4).await;
    assert_eq!(store.writes.load(Ordering::SeqCst), 1);
    store.gate.add_permits(10);
    assert_eq!(ended(calls).await, [true, true, true, true, false, false].map(Some));
    assert_eq!(store.writes.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_keeps_nobody_waiting() {
    // The first, which nobody has lined up for yet but behind; one in line; the one that would go next.
    for dropped in [0, 1, 3] {
        let (store, mut calls) = lined_up(5, 10).await;
        calls.remove(dropped).abort();
        tokio::task::yield_now().await;
        store.gate.add_permits(10);
        assert_eq!(ended(calls).await, [Some(true); 4], "{dropped}");
    }
}

/// What may have been charged for somebody is not charged again: he is told that nobody knows.
#[tokio::test(start_paused = true)]
async fn those_whom_a_dropped_call_had_gone_for_are_not_charged_twice() {
    let (store, mut calls) = lined_up(5, 10).await;
    store.gate.add_permits(1);
    let first = calls.remove(0).await.unwrap().unwrap();
    assert!(first.is_allowed());
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    assert_eq!(store.writes.load(Ordering::SeqCst), 2, "the second goes for four");
    calls.remove(0).abort();
    let errors: Vec<_> = join_all(calls).await.into_iter().map(|call| call.unwrap().unwrap_err()).collect();
    assert!(errors.iter().all(|error| error.fate() == Fate::Unknown && !error.is_outage()), "{errors:?}");
    assert_eq!(store.writes.load(Ordering::SeqCst), 2);
}

/// Whose request it was learns that the table is gone; those whom it went for learn that others were in the way, which is never
/// a reason to let them pass.
#[tokio::test(start_paused = true)]
async fn a_failure_that_is_anothers_lets_nobody_pass() {
    for rule in [StoreFailure::Open, StoreFailure::Local, StoreFailure::Closed] {
        let (_, store, calls) = lined_up_on(5, 10, rule).await;
        store.fails.store(1, Ordering::SeqCst);
        store.gate.add_permits(10);
        let mut ended = join_all(calls).await.into_iter().map(std::result::Result::unwrap);
        let first = ended.next().unwrap();
        assert_eq!(first.is_ok(), rule != StoreFailure::Closed, "{rule:?}: {first:?}");
        let _goes_for_the_others = ended.next();
        for other in ended {
            assert!(matches!(&other, Err(error) if !error.is_outage()), "{rule:?}: {other:?}");
        }
        assert_eq!(store.writes.load(Ordering::SeqCst), 2);
    }
}

/// Two requests that fail for forty calls are two, and no run of failures that has the breaker spare the table.
#[tokio::test(start_paused = true)]
async fn one_request_that_fails_for_many_counts_once() {
    let (limiter, store, calls) = lined_up_on(40, 100, StoreFailure::Closed).await;
    store.fails.store(1, Ordering::SeqCst);
    store.gate.add_permits(100);
    join_all(calls).await;
    assert_eq!(limiter.breaker(), tollgate_dynamodb::BreakerState::Closed);
}

/// Whoever waits in line waits no longer than his own time.
#[tokio::test(start_paused = true)]
async fn a_deadline_passes_in_line_as_well() {
    let (store, calls) = lined_up(3, 10).await;
    let started = tokio::time::Instant::now();
    let ended = join_all(calls).await;
    assert!(ended.iter().all(|call| matches!(call, Ok(Err(_)))), "{ended:?}");
    assert_eq!(started.elapsed(), Duration::from_secs(30));
    assert!(store.writes.load(Ordering::SeqCst) >= 1);
}
