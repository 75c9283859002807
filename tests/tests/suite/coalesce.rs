//! Calls of one process that come at once take one write together: how many writes, who is admitted, what if one goes away.

use crate::harness::{Client, SECOND, bucket, charge, costing, key, one, remaining};
use crate::through::through;
use futures_util::future::join_all;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Semaphore;
use tollgate::testing::{ManualClock, MemoryStore};
use tollgate::{Decision, Limiter, Outcome, Source, Store, Timestamp};
use tollgate_core::{Charge, Charges, ItemKey, LimitName, StoreFailure, Terms, Write};
use tollgate_dynamodb::{BreakerState, Error, Fate, Result, Written};

const DAY: u64 = 86_400 * SECOND;

fn allowed(decisions: &[Decision]) -> usize {
    decisions.iter().filter(|decision| decision.is_allowed()).count()
}

/// On one thread, so that they come at once: a request goes for those who have come by then.
#[tokio::test]
async fn forty_callers_of_one_process_on_a_new_key_of_ten_take_few_writes_by_default() {
    let client = Client::new().await;
    let ten = one(&key(), 1, DAY, 10);
    let before = client.counts();
    let decisions = join_all((0..40).map(|_| client.take(&ten))).await;
    let after = client.counts();
    assert_eq!(allowed(&decisions), 10);
    let round_trips = after.round_trips - before.round_trips;
    assert!(
        (2..=5).contains(&round_trips),
        "{round_trips}: one by the first, and one for the others, or for those who had come"
    );
    assert!(after.coalesced >= 4 && after.decisions - before.decisions == 40, "{after:?}");
    let mut left: Vec<_> = decisions.iter().filter(|d| d.is_allowed()).map(|d| d.limits[0].remaining).collect();
    left.sort_unstable();
    assert_eq!(left, (0..10).collect::<Vec<_>>(), "each is told what it left");
    for denied in decisions.iter().filter(|d| !d.is_allowed()) {
        assert_eq!(denied.outcome(), Outcome::Denied);
        assert!(denied.retry_after().is_some_and(|wait| wait <= Duration::from_secs(86_400)));
    }
}

/// The process as a whole, a limit, and a limit whose item another one shares.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn where_coalescing_is_off_each_call_takes_a_write() {
    let of = |item: ItemKey, coalesce: [bool; 2]| {
        let terms = Terms::new(1, bucket(1, DAY, 1000));
        let charge = |limit, coalesce| Charge { coalesce, ..charge(limit, terms.clone(), 1) };
        Charges::new(item, vec![charge("a", coalesce[0]), charge("b", coalesce[1])]).unwrap()
    };
    for (process, limits) in [(false, [true, true]), (true, [false, false]), (true, [true, false])] {
        let client = Client::new().await;
        let (limiter, charges) = (client.limiter.coalescing(process), of(key(), limits));
        join_all((0..40).map(|_| limiter.take(std::slice::from_ref(&charges)))).await;
        let counts = client.counters.counts();
        assert_eq!((counts.write_units, counts.coalesced), (40, 0), "{process} {limits:?}");
    }
}

/// Whoever wants something else is not kept waiting by those who are alike.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn calls_of_other_costs_go_apart_and_all_are_exact() {
    let client = Client::new().await;
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
    fails: Arc<Mutex<Option<Error>>>,
}

impl Gated {
    fn new() -> Self {
        let memory = MemoryStore::new(ManualClock::new(Timestamp::from_secs(1_767_225_600)));
        Self { memory, gate: Arc::new(Semaphore::new(0)), writes: Arc::default(), fails: Arc::default() }
    }

    fn writes(&self) -> u64 {
        self.writes.load(Ordering::SeqCst)
    }

    /// It answers, or fails, at once from now on.
    fn answers(&self, error: Option<Error>) {
        *self.fails.lock().unwrap() = error;
        self.gate.add_permits(1_000_000);
    }

    fn is_silent(&self) {
        self.gate.forget_permits(usize::MAX);
    }

    fn left(&self, charges: &Charges) -> u64 {
        remaining(&self.memory, charges)
    }
}

impl Store for Gated {
    through!(memory: moment, meter, read, transact);

    async fn write(&self, key: &ItemKey, write: &Write) -> Result<Written> {
        self.writes.fetch_add(1, Ordering::SeqCst);
        // The write is applied at once, unless the table will say that it was not, and its answer waits.
        let is_refused = self.fails.lock().unwrap().as_ref().is_some_and(|error| error.fate() == Fate::NotApplied);
        let written = if is_refused { Ok(Written::Refused(None)) } else { self.memory.write(key, write).await };
        self.gate.acquire().await.unwrap().forget();
        match self.fails.lock().unwrap().clone() {
            Some(error) => Err(error),
            None => written,
        }
    }
}

fn gone() -> Error {
    Error::Ambiguous("the table is gone".to_owned())
}

/// The deadline of calls that line up.
const DEADLINE: Duration = Duration::from_secs(30);

fn at_gate() -> (Arc<Limiter<Gated>>, Gated) {
    let store = Gated::new();
    (Arc::new(Limiter::new(store.clone()).with_deadline(DEADLINE)), store)
}

type Call = tokio::task::JoinHandle<Result<Decision>>;

/// A call that has been made, behind those before it.
async fn made(limiter: &Arc<Limiter<Gated>>, charges: &Charges) -> Call {
    let (limiter, charges) = (Arc::clone(limiter), charges.clone());
    let call = tokio::spawn(async move { limiter.take(&[charges]).await });
    settled().await;
    call
}

/// Everything that can happen by now has happened.
async fn settled() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

async fn lined_up(calls: usize, burst: u64) -> (Gated, Vec<Call>) {
    let (_, store, calls) = lined_up_on(calls, burst, StoreFailure::Closed).await;
    (store, calls)
}

/// A limiter, its store, and so many calls on one key that have been made; the first waits for its answer.
async fn lined_up_on(calls: usize, burst: u64, rule: StoreFailure) -> (Arc<Limiter<Gated>>, Gated, Vec<Call>) {
    let (limiter, store) = at_gate();
    let charges = one(&key(), 1, DAY, burst).with_store_failure(rule);
    let mut handles = Vec::new();
    for _ in 0..calls {
        handles.push(made(&limiter, &charges).await);
    }
    (limiter, store, handles)
}

fn sources(decision: &Decision) -> Vec<Source> {
    let unasked = decision.unasked.iter().map(|unasked| unasked.source);
    decision.limits.iter().map(|limit| limit.source).chain(unasked).collect()
}

async fn ended(calls: Vec<Call>) -> Vec<Option<bool>> {
    let ended = join_all(calls).await.into_iter();
    ended.map(|call| call.ok().and_then(|answer| answer.ok()).map(|decision| decision.is_allowed())).collect()
}

#[tokio::test(start_paused = true)]
async fn those_who_line_up_are_served_by_one_write() {
    let (store, calls) = lined_up(6, 4).await;
    assert_eq!(store.writes(), 1);
    store.gate.add_permits(10);
    assert_eq!(ended(calls).await, [true, true, true, true, false, false].map(Some));
    assert_eq!(store.writes(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_keeps_nobody_waiting() {
    // The first, and those in line.
    for dropped in [0, 1, 3] {
        let (store, mut calls) = lined_up(5, 10).await;
        calls.remove(dropped).abort();
        tokio::task::yield_now().await;
        store.gate.add_permits(10);
        assert_eq!(ended(calls).await, [Some(true); 4], "{dropped}");
    }
}

/// Whoever goes for others is none of them: who hangs up takes nothing from them, and leaves what he was charged.
#[tokio::test(start_paused = true)]
async fn whoever_hangs_up_while_a_request_goes_for_him_and_others_takes_nothing_from_them() {
    for dropped in 0..4 {
        let (limiter, store) = at_gate();
        let charges = one(&key(), 1, DAY, 4);
        let mut calls = Vec::new();
        for _ in 0..6 {
            calls.push(made(&limiter, &charges).await);
        }
        store.gate.add_permits(1);
        assert!(calls.remove(0).await.unwrap().unwrap().is_allowed());
        settled().await;
        assert_eq!(store.writes(), 2, "one goes for all who fit, or to find out how many do");
        calls.remove(dropped).abort();
        settled().await;
        store.answers(None);
        let answers = ended(calls).await;
        let admitted = answers.iter().filter(|answer| **answer == Some(true)).count();
        assert!(answers.iter().all(Option::is_some), "{dropped}: {answers:?}");
        assert_eq!((admitted, store.left(&charges)), (3, 0), "{dropped}: {answers:?}");
    }
}

/// As one who comes a moment later is, by what this process has seen, unless the limit is not to deny by that.
#[tokio::test(start_paused = true)]
async fn who_lines_up_while_the_last_tokens_are_taken_is_denied_without_a_request() {
    for (deny_cache, source, writes) in [(true, Source::Cache, 2), (false, Source::Table, 3)] {
        let (limiter, store) = at_gate();
        let charge = Charge { deny_cache, ..charge("limit", Terms::new(1, bucket(1, DAY, 3)), 1) };
        let charges = Charges::new(key(), vec![charge]).unwrap();
        let mut calls = Vec::new();
        for _ in 0..3 {
            calls.push(made(&limiter, &charges).await);
        }
        store.gate.add_permits(1);
        settled().await;
        let late = [made(&limiter, &charges).await, made(&limiter, &charges).await];
        store.answers(None);
        assert_eq!(ended(calls).await, [Some(true); 3]);
        for call in late {
            let denied = call.await.unwrap().unwrap();
            assert_eq!((denied.outcome(), sources(&denied)), (Outcome::Denied, vec![source]));
        }
        assert_eq!(store.writes(), writes);
    }
}

/// What was charged for somebody who is gone is spent by the next.
#[tokio::test(start_paused = true)]
async fn of_a_leased_limit_nothing_is_lost_by_those_who_hang_up_in_line() {
    let (limiter, store) = at_gate();
    let terms = Terms::new(1, bucket(1, DAY, 6));
    let item = ItemKey::own(key().key, LimitName::new("limit").unwrap());
    let charges = Charges::new(item, vec![charge("limit", terms, 1).leased(1)]).unwrap();
    let mut calls = Vec::new();
    for _ in 0..5 {
        calls.push(made(&limiter, &charges).await);
    }
    store.gate.add_permits(1);
    settled().await;
    assert_eq!(store.writes(), 2);
    calls.remove(2).abort();
    calls.remove(1).abort();
    settled().await;
    store.answers(None);
    assert_eq!(ended(calls).await, [Some(true); 3]);
    let mut admitted = 3;
    while limiter.take(std::slice::from_ref(&charges)).await.unwrap().is_allowed() {
        admitted += 1;
    }
    assert_eq!(admitted, 6);
}

#[tokio::test(start_paused = true)]
async fn who_has_little_time_left_leaves_the_others_theirs() {
    let (limiter, store) = at_gate();
    let charges = one(&key(), 1, DAY, 10).with_store_failure(StoreFailure::Open);
    let first = made(&limiter, &charges).await;
    tokio::time::advance(Duration::from_secs(1)).await;
    let early = made(&limiter, &charges).await;
    tokio::time::advance(Duration::from_secs(28)).await;
    let late = made(&limiter, &charges).await;
    store.gate.add_permits(1);
    assert!(first.await.unwrap().unwrap().is_allowed());
    settled().await;
    assert_eq!(store.writes(), 2, "for both");
    tokio::time::advance(Duration::from_secs(5)).await;
    let early = early.await.unwrap().unwrap();
    assert_eq!(sources(&early), [Source::Open], "the table has told it nothing in its time");
    store.answers(None);
    let late = late.await.unwrap().unwrap();
    assert_eq!((sources(&late), late.is_allowed(), store.writes()), (vec![Source::Table], true, 2));
}

/// Neither by those in front nor by those beside them.
#[tokio::test(start_paused = true)]
async fn callers_who_hang_up_again_and_again_have_nobody_fail() {
    let (limiter, store) = at_gate();
    let charges = one(&key(), 1, DAY, 1000);
    let (mut honest, mut hung_up) = (Vec::new(), 0);
    for round in 0..30 {
        let rude = made(&limiter, &charges).await;
        honest.push(made(&limiter, &charges).await);
        rude.abort();
        settled().await;
        hung_up += u64::from(rude.await.is_err());
        if round % 3 == 2 {
            store.gate.add_permits(1);
            settled().await;
        }
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    store.answers(None);
    assert_eq!((ended(honest).await, hung_up), (vec![Some(true); 30], 30));
    assert!(store.writes() <= 13, "{}: one by each answer, and that of the first, which was dropped", store.writes());
}

/// Those behind the first, and those whom a request goes for when the table stops to answer.
#[tokio::test(start_paused = true)]
async fn without_the_table_each_of_forty_at_once_follows_its_own_rule() {
    for answered in [0, 1] {
        for rule in [StoreFailure::Open, StoreFailure::Local, StoreFailure::Closed] {
            let (_, store, calls) = lined_up_on(40 + answered, 10, rule).await;
            store.gate.add_permits(answered);
            let (mut passed, mut denied, mut refused) = (0, 0, 0);
            for call in calls.into_iter().skip(answered) {
                match call.await.unwrap() {
                    Ok(decision) => {
                        let source = if rule == StoreFailure::Open { Source::Open } else { Source::Local };
                        assert_eq!(sources(&decision), [source]);
                        if decision.is_allowed() { passed += 1 } else { denied += 1 }
                    }
                    Err(error) => {
                        assert!(error.is_outage(), "{error}");
                        refused += 1;
                    }
                }
            }
            let expected = match rule {
                StoreFailure::Open => (40, 0, 0),
                StoreFailure::Local => (10, 30, 0),
                _ => (0, 0, 40),
            };
            assert_eq!((passed, denied, refused), expected, "{answered} {rule:?}");
            assert_eq!(store.writes(), 1 + answered as u64, "{rule:?}");
        }
    }
}

/// Whoever hangs up or gives up before the request that goes for him ends does not hide from the breaker what became of it.
#[tokio::test(start_paused = true)]
async fn the_breaker_counts_a_request_that_goes_for_others_once_and_without_them() {
    let (limiter, store, calls) = lined_up_on(40, 100, StoreFailure::Open).await;
    store.gate.add_permits(1);
    settled().await;
    store.is_silent();
    join_all(calls).await;
    // It has as long as they had, from when it began.
    tokio::time::advance(DEADLINE).await;
    settled().await;
    for _ in 0..4 {
        assert_eq!(limiter.breaker(), BreakerState::Closed);
        limiter.take(&[one(&key(), 1, DAY, 9)]).await.unwrap();
    }
    assert_eq!((limiter.breaker(), store.writes()), (BreakerState::Open, 6));
}

/// It has others try, with what they have left: they ask once more, for all of them.
#[tokio::test(start_paused = true)]
async fn one_request_that_fails_early_is_no_outage_to_those_behind_it() {
    let (_, store, mut calls) = lined_up_on(5, 10, StoreFailure::Local).await;
    *store.fails.lock().unwrap() = Some(gone());
    store.gate.add_permits(1);
    assert_eq!(sources(&calls.remove(0).await.unwrap().unwrap()), [Source::Local]);
    store.answers(None);
    for call in calls {
        assert_eq!(sources(&call.await.unwrap().unwrap()), [Source::Table]);
    }
    assert_eq!(store.writes(), 2);
}

/// Time that others took is no outage, however silent the table is when it ends; nor is a hot key.
#[tokio::test(start_paused = true)]
async fn contention_and_a_hot_key_open_no_limit_to_those_in_line() {
    for silent_from in [5, 29, 60] {
        for error in [Error::Conflict, Error::HotKey(Fate::NotApplied)] {
            let (limiter, store) = at_gate();
            store.answers(Some(error.clone()));
            let charges = one(&key(), 1, DAY, 3).with_store_failure(StoreFailure::Open);
            let mut calls = Vec::new();
            for _ in 0..5 {
                calls.push(made(&limiter, &charges).await);
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            tokio::time::sleep(Duration::from_secs(silent_from - 5)).await;
            store.is_silent();
            let (mut closed, mut local) = (0, 0);
            for call in calls {
                match call.await.unwrap() {
                    Err(Error::Contended { .. }) => closed += 1,
                    Ok(decision) if sources(&decision) == [Source::Local] => local += 1,
                    other => panic!("{silent_from} {error}: {other:?}"),
                }
            }
            let expected = if matches!(error, Error::Conflict) { (5, 0) } else { (0, 5) };
            assert_eq!((closed, local), expected, "{silent_from} {error}");
        }
    }
}

/// Nor is time that goes to find out how many of those in line still fit.
#[tokio::test(start_paused = true)]
async fn what_others_took_meanwhile_opens_no_limit_to_those_in_line() {
    let (limiter, store) = at_gate();
    let charges = one(&key(), 1, DAY, 10).with_store_failure(StoreFailure::Open);
    let first = made(&limiter, &charges).await;
    let mut calls = Vec::new();
    for _ in 0..5 {
        calls.push(made(&limiter, &charges).await);
    }
    let elsewhere = costing(charges.item(), 1, DAY, 10, 6);
    assert!(Limiter::new(store.memory.clone()).take(&[elsewhere]).await.unwrap().is_allowed());
    store.gate.add_permits(2);
    assert!(first.await.unwrap().unwrap().is_allowed());
    for call in calls {
        let error = call.await.unwrap().unwrap_err();
        assert!(matches!(error, Error::Contended { .. }), "{error}");
    }
    assert_eq!(store.writes(), 3, "one for five, who do not fit, and one for some of them");
}

/// With what time is left it would hear no more.
#[tokio::test(start_paused = true)]
async fn whoever_lines_up_behind_a_request_that_hears_nothing_waits_for_no_other() {
    let (limiter, store) = at_gate();
    let charges = one(&key(), 1, DAY, 10).with_store_failure(StoreFailure::Local);
    let started = tokio::time::Instant::now();
    let first = made(&limiter, &charges).await;
    tokio::time::advance(DEADLINE - Duration::from_secs(1)).await;
    let late = made(&limiter, &charges).await;
    for call in [first, late] {
        assert_eq!(sources(&call.await.unwrap().unwrap()), [Source::Local]);
    }
    assert_eq!((started.elapsed(), store.writes()), (DEADLINE, 1));
}

/// A call that somebody has begun and does not go on with, or that runs where nothing runs any more.
#[tokio::test(start_paused = true)]
async fn nobody_waits_for_good_behind_a_call_that_is_not_polled() {
    let (limiter, store) = at_gate();
    let charges = [one(&key(), 1, DAY, 10).with_store_failure(StoreFailure::Open)];
    let mut held_up = Box::pin(limiter.take(&charges));
    assert!(futures_util::poll!(&mut held_up).is_pending());
    let behind = made(&limiter, &charges[0]).await;
    assert_eq!(sources(&behind.await.unwrap().unwrap()), [Source::Open]);
    store.answers(None);
    tokio::time::advance(DEADLINE).await;
    let next = limiter.take(&charges).await.unwrap();
    assert_eq!((sources(&next), next.is_allowed()), (vec![Source::Table], true));
    drop(held_up);
    assert_eq!(sources(&limiter.take(&charges).await.unwrap()), [Source::Table]);
}

/// Whoever is served by a runtime that ends meanwhile leaves the others to theirs.
#[test]
fn a_runtime_that_ends_takes_nobody_along_who_waits_on_another() {
    let (limiter, store) = at_gate();
    let charges = one(&key(), 1, DAY, 10);
    let [here, there] = [(); 2].map(|()| tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap());
    let first = there.block_on(made(&limiter, &charges));
    let second = there.block_on(made(&limiter, &charges));
    let third = here.block_on(made(&limiter, &charges));
    store.answers(None);
    drop((first, second));
    drop(there);
    assert!(here.block_on(third).unwrap().unwrap().is_allowed());
}

/// Two requests that fail for forty calls are two, and no run of failures that has the breaker spare the table.
#[tokio::test(start_paused = true)]
async fn one_request_that_fails_for_many_counts_once() {
    let (limiter, store, calls) = lined_up_on(40, 100, StoreFailure::Closed).await;
    store.answers(Some(gone()));
    join_all(calls).await;
    assert_eq!((limiter.breaker(), store.writes()), (BreakerState::Closed, 2));
}

/// Whoever waits in line waits no longer than his own time.
#[tokio::test(start_paused = true)]
async fn a_deadline_passes_in_line_as_well() {
    let (store, calls) = lined_up(3, 10).await;
    let started = tokio::time::Instant::now();
    let ended = join_all(calls).await;
    assert!(ended.iter().all(|call| matches!(call, Ok(Err(_)))), "{ended:?}");
    assert_eq!(started.elapsed(), Duration::from_secs(30));
    assert!(store.writes() >= 1);
}
