//! A contestant in Rust: does the orders of [`protocol`](crate::protocol) with a [`Decider`].
//!
//! Invariant: a caller waits for its decision before it asks for the next one, as the callers of the other drivers do.

use crate::bare::{Http, Sdk};
use crate::error::{Error, Result};
use crate::ours::Ours;
use crate::protocol::{Answer, Order};
use futures_util::future::{join_all, try_join_all};
use hdrhistogram::Histogram;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

/// Which of the two limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    /// 10 calls an hour.
    Scarce,
    /// As many as anybody asks for.
    Plenty,
}

/// A client of its own, with connections of its own.
#[derive(Debug)]
pub(crate) enum Decider {
    Ours(Box<Ours>),
    Sdk(Sdk),
    Http(Box<Http>),
}

impl Decider {
    async fn open(endpoint: &str, setting: &str) -> Result<Self> {
        Ok(match setting {
            Sdk::SETTING => Self::Sdk(Sdk::open(endpoint).await?),
            Http::SETTING => Self::Http(Box::new(Http::open(endpoint).await?)),
            _ => Self::Ours(Box::new(Ours::open(endpoint, setting).await?)),
        })
    }

    async fn decide(&self, limit: Limit, key: &str) -> Result<bool> {
        match self {
            Self::Ours(ours) => ours.decide(limit, key).await,
            Self::Sdk(sdk) => sdk.write(key).await,
            Self::Http(http) => http.write(key).await,
        }
    }
}

/// Does orders until there are none.
pub(crate) async fn run(endpoint: &str, setting: &str) -> Result<()> {
    let mut deciders: Vec<Arc<Decider>> = Vec::new();
    let mut orders = BufReader::new(tokio::io::stdin()).lines();
    let mut answers = tokio::io::stdout();
    while let Some(line) = orders.next_line().await? {
        let answer = match serde_json::from_str(&line)? {
            Order::Open { clients } => {
                let missing = clients.saturating_sub(deciders.len());
                let opened = try_join_all((0..missing).map(|_| Decider::open(endpoint, setting))).await?;
                deciders.extend(opened.into_iter().map(Arc::new));
                Answer::default()
            }
            order => perform(order, &deciders).await?,
        };
        answers.write_all(format!("{}\n", serde_json::to_string(&answer)?).as_bytes()).await?;
        answers.flush().await?;
    }
    Ok(())
}

async fn perform(order: Order, deciders: &[Arc<Decider>]) -> Result<Answer> {
    let first = deciders.first().ok_or_else(|| Error::bare("an order before clients are open"))?;
    let began = Instant::now();
    let tallies = match order {
        Order::Open { .. } => Vec::new(),
        Order::Decide { keys, at_once } => {
            let calls = keys.into_iter().zip(deciders.iter().cycle().cloned()).map(|(key, decider)| async move {
                let mut tally = Tally::new()?;
                tally.one(&decider, Limit::Scarce, &key).await;
                Ok::<_, Error>(tally)
            });
            if at_once { at_the_same_time(calls).await? } else { one_by_one(calls).await? }
        }
        Order::Fill { prefix, keys, callers } => {
            let next = AtomicUsize::new(0);
            let key = move || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&next| next < keys);
            calling(first, callers, prefix, key).await?
        }
        Order::Load { prefix, keys, callers, seconds } => {
            let until = began + Duration::from_secs_f64(seconds);
            let key = move || (Instant::now() < until).then(|| fastrand::usize(..keys));
            calling(first, callers, prefix, key).await?
        }
    };
    Tally::sum(tallies, began.elapsed())
}

/// So many callers, each of which decides on one key after the other until there is no next.
async fn calling(
    decider: &Arc<Decider>,
    callers: usize,
    prefix: String,
    next: impl Fn() -> Option<usize> + Send + Sync + 'static,
) -> Result<Vec<Tally>> {
    let (prefix, next) = (Arc::new(prefix), Arc::new(next));
    let caller = |_| {
        let (decider, prefix, next) = (decider.clone(), prefix.clone(), next.clone());
        async move {
            let mut tally = Tally::new()?;
            while let Some(number) = next() {
                tally.one(&decider, Limit::Plenty, &format!("{prefix}{number}")).await;
            }
            Ok(tally)
        }
    };
    at_the_same_time((0..callers).map(caller)).await
}

async fn one_by_one(calls: impl Iterator<Item = impl Future<Output = Result<Tally>>>) -> Result<Vec<Tally>> {
    let mut tallies = Vec::new();
    for call in calls {
        tallies.push(call.await?);
    }
    Ok(tallies)
}

/// As tasks, which the runtime spreads over its threads.
async fn at_the_same_time(
    calls: impl Iterator<Item = impl Future<Output = Result<Tally>> + Send + 'static>,
) -> Result<Vec<Tally>> {
    let tasks = calls.map(tokio::spawn).collect::<Vec<_>>();
    join_all(tasks).await.into_iter().map(|task| task.map_err(Error::bare)?).collect()
}

/// What one caller has met.
#[derive(Debug)]
struct Tally {
    answer: Answer,
    latencies: Histogram<u64>,
}

impl Tally {
    fn new() -> Result<Self> {
        // 1 µs to a minute, three significant digits.
        let latencies = Histogram::new_with_bounds(1, 60_000_000, 3).map_err(Error::bare)?;
        Ok(Self { answer: Answer::default(), latencies })
    }

    async fn one(&mut self, decider: &Decider, limit: Limit, key: &str) {
        let asked = Instant::now();
        match decider.decide(limit, key).await {
            Ok(true) => self.answer.allowed += 1,
            Ok(false) => self.answer.denied += 1,
            Err(error) => self.fail(error.to_string()),
        }
        self.latencies.saturating_record(micros(asked.elapsed()));
    }

    fn fail(&mut self, why: String) {
        self.answer.failed += 1;
        self.answer.failure.get_or_insert(why);
    }

    fn sum(tallies: Vec<Self>, elapsed: Duration) -> Result<Answer> {
        let mut sum = Self::new()?;
        for Self { answer, latencies } in tallies {
            sum.answer.allowed += answer.allowed;
            sum.answer.denied += answer.denied;
            sum.answer.failed += answer.failed;
            sum.answer.failure = sum.answer.failure.or(answer.failure);
            sum.latencies.add(latencies).map_err(Error::bare)?;
        }
        let Self { answer, latencies } = sum;
        let (p50_us, p99_us) = (latencies.value_at_quantile(0.5), latencies.value_at_quantile(0.99));
        Ok(Answer { micros: micros(elapsed), p50_us, p99_us, ..answer })
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
