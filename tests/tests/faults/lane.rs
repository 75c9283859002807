//! A lane: three callers, each with a proxy of its own, that go through one schedule after the other.
//!
//! Invariant: a schedule ends when all of its requests have ended at the table, every caller has been answered from the table again,
//! and what the table has by then is in the record.

use crate::caller::{Caller, Counted, DEADLINE, TABLE, Told};
use crate::limits::{LIMITS, Limit, limit, policy};
use crate::proxy::{Proxy, Request, now};
use crate::schedule::{CALLERS, Planned, Schedule, Wanted, body};
use futures_util::future::join_all;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::sleep;
use tollgate::{Connection, Counters, DynamoStore, Limiter, Policy, SystemClock};

/// A call that was made.
#[derive(Debug, Clone)]
pub struct Call {
    pub caller: usize,
    pub planned: Planned,
    /// Nanoseconds of the wall clock, before it was sent and after its answer came.
    pub sent: u64,
    pub received: u64,
    /// The same time by a clock that nobody sets.
    pub took: Duration,
    pub told: Told,
    pub counted: Counted,
}

/// What happened in a schedule.
#[derive(Debug, Clone)]
pub struct Record {
    pub seed: u64,
    /// The calls of each caller, in order.
    pub calls: Vec<Vec<Call>>,
    /// The requests of each caller, in order.
    pub requests: Vec<Vec<Request>>,
    /// The tokens of each limit and key that the table says are taken.
    pub taken: BTreeMap<(&'static str, String), u64>,
}

/// Whether a schedule came to its end.
pub struct Stuck(pub String);

pub struct Lane<C> {
    ways: Vec<(Proxy, C)>,
    observer: Arc<Observer>,
}

/// Longer than any schedule takes, with every wait of the breaker.
const STUCK_AFTER: Duration = Duration::from_secs(120);

impl<C: Caller> Lane<C> {
    /// Three callers as `start` makes them from the address of the table.
    pub async fn new<F: Future<Output = C>>(observer: &Arc<Observer>, start: impl Fn(String) -> F) -> Self {
        let mut ways = Vec::new();
        for _ in 0..CALLERS {
            let proxy = Proxy::start(&observer.endpoint).await;
            let caller = start(proxy.url().to_owned()).await;
            ways.push((proxy, caller));
        }
        Self { ways, observer: observer.clone() }
    }

    /// Goes through a schedule.
    pub async fn run(&mut self, schedule: &Schedule) -> Result<Record, Stuck> {
        let seed = schedule.seed;
        let running = tokio::time::timeout(STUCK_AFTER, self.go_through(schedule)).await;
        running.map_err(|_| Stuck(format!("seed {seed}: not answered from the table within {STUCK_AFTER:?}")))
    }

    async fn go_through(&mut self, schedule: &Schedule) -> Record {
        let ways = self.ways.iter_mut().enumerate();
        let calls = join_all(ways.map(|(i, (proxy, caller))| make_calls(i, proxy, caller, schedule))).await;
        let mut requests = Vec::new();
        for (proxy, _) in &self.ways {
            requests.push(proxy.take_ledger().await);
        }
        let keys = calls.iter().flatten().flat_map(|call| &call.planned.wanted).map(|w| (w.limit.name, w.key.clone()));
        let taken = self.observer.taken(keys.collect()).await;
        Record { seed: schedule.seed, calls, requests, taken }
    }
}

async fn make_calls<C: Caller>(caller: usize, proxy: &Proxy, by: &mut C, schedule: &Schedule) -> Vec<Call> {
    let mut calls = Vec::new();
    proxy.set_weather(Some((schedule.weather.clone(), caller, DEADLINE)));
    for planned in &schedule.calls[caller] {
        sleep(planned.after).await;
        calls.push(make_call(caller, calls.len(), proxy, by, planned.clone()).await);
    }
    proxy.set_weather(None);
    let probe = Wanted { limit: limit("probe"), key: schedule.user.clone(), cost: 1 };
    let probe = Planned { wanted: vec![probe], after: Duration::from_millis(25), cut: None };
    loop {
        let call = make_call(caller, calls.len(), proxy, by, probe.clone()).await;
        let is_answered = matches!(&call.told, Told::Answers(answers) if answers[0].source == "table");
        calls.push(call);
        if is_answered {
            return calls;
        }
        sleep(probe.after).await;
    }
}

async fn make_call<C: Caller>(caller: usize, number: usize, proxy: &Proxy, by: &mut C, planned: Planned) -> Call {
    proxy.begin(number, planned.cut).await;
    let (began, sent) = (Instant::now(), now());
    let (told, counted) = by.ask(&body(&planned.wanted)).await;
    let (received, took) = (now(), began.elapsed());
    if planned.cut.is_none() {
        proxy.has_seen(number, usize::try_from(counted.round_trips).unwrap()).await;
    }
    Call { caller, planned, sent, received, took, told, counted }
}

/// Reads the table past all proxies.
pub struct Observer {
    endpoint: String,
    limiter: Limiter<DynamoStore>,
    policy: Policy,
}

impl Observer {
    pub async fn new(endpoint: &str) -> Self {
        let connected = tollgate::connect(&Connection::from_environment().endpoint_url(endpoint)).await.unwrap();
        let store = DynamoStore::new(&connected, TABLE, Arc::new(SystemClock), Arc::<Counters>::default());
        store.warm_up().await.unwrap();
        let limiter = Limiter::new(store).with_deadline(Duration::from_secs(60));
        let policy = Policy::parse(&policy()).unwrap().policy;
        Self { endpoint: endpoint.to_owned(), limiter, policy }
    }

    async fn taken(&self, keys: BTreeSet<(&'static str, String)>) -> BTreeMap<(&'static str, String), u64> {
        let mut taken = BTreeMap::new();
        for (name, key) in keys {
            let Limit { dimension, most, .. } = *limit(name);
            let wanted = [tollgate::Wanted { limit: name, key: &[(dimension, &key)], plan: None, cost: 0 }];
            let charges = self.policy.charges(&wanted).unwrap();
            let seen = &self.limiter.take(&charges).await.unwrap().limits[0];
            assert_eq!(seen.terms.figures.most(), most, "{name}");
            taken.insert((name, key), most - seen.remaining);
        }
        taken
    }
}

/// Every limit that has what it has for good: nothing comes back during a test.
pub fn is_slow(name: &str) -> bool {
    LIMITS.iter().any(|limit| limit.name == name && limit.period_s.is_none())
}
