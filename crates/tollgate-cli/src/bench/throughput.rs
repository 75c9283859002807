//! Decisions a second and their latency, over HTTP.

use super::{charges, leased, task_failed};
use crate::error::{CliError, Result};
use crate::open;
use hdrhistogram::Histogram;
use serde::Serialize;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tollgate::Limiter;
use tollgate_core::Charges;
use tollgate_dynamodb::connect::Connected;

/// One situation.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Line {
    /// The situation.
    pub name: &'static str,
    /// Callers at once, in one process.
    pub callers: u32,
    /// Decisions a second, all callers together.
    pub per_second: u64,
    /// Median latency in microseconds.
    pub p50_us: u64,
    /// 99th percentile in microseconds.
    pub p99_us: u64,
}

pub(super) async fn measure(connected: &Connected, table: &str, each: Duration) -> Result<Vec<Line>> {
    let hot = vec![charges(&[("orders", 1_000_000, 3600)])?];
    let many = (0..1000).map(|_| charges(&[("orders", 1_000_000, 3600)])).collect::<Result<Vec<_>>>()?;
    Ok(vec![
        line(connected, table, "1 caller, many keys", 1, many.clone(), each).await?,
        line(connected, table, "8 callers, many keys", 8, many, each).await?,
        line(connected, table, "8 callers, one hot key", 8, hot, each).await?,
        line(connected, table, "8 callers, one leased key", 8, vec![leased(("orders", 1_000_000, 1), 500_000)?], each)
            .await?,
    ])
}

async fn line(
    connected: &Connected,
    table: &str,
    name: &'static str,
    callers: u32,
    charges: Vec<Vec<Charges>>,
    each: Duration,
) -> Result<Line> {
    let (store, _) = open::store(connected, table).await?;
    let limiter = Arc::new(Limiter::new(store).with_deadline(Duration::from_secs(30)));
    let charges = Arc::new(charges);
    let start = Instant::now();
    let running = (0..callers).map(|_| {
        let (limiter, charges) = (limiter.clone(), charges.clone());
        tokio::spawn(async move { caller(&limiter, &charges, start + each).await })
    });
    let mut all = histogram()?;
    for caller in running.collect::<Vec<_>>() {
        let one = caller.await.map_err(|e| task_failed(&e))??;
        all.add(one).map_err(|e| CliError::System(format!("cannot add latencies up: {e}")))?;
    }
    let micros = u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX).max(1);
    let per_second = all.len().saturating_mul(1_000_000) / micros;
    Ok(Line { name, callers, per_second, p50_us: all.value_at_quantile(0.5), p99_us: all.value_at_quantile(0.99) })
}

async fn caller<S: tollgate::Store>(
    limiter: &Limiter<S>,
    charges: &[Vec<Charges>],
    until: Instant,
) -> Result<Histogram<u64>> {
    let mut latencies = histogram()?;
    while Instant::now() < until {
        let charges = &charges[fastrand::usize(..charges.len())];
        let asked = Instant::now();
        limiter.take(charges).await?;
        latencies.saturating_record(u64::try_from(asked.elapsed().as_micros()).unwrap_or(u64::MAX));
    }
    Ok(latencies)
}

fn histogram() -> Result<Histogram<u64>> {
    // 1 µs to a minute, three significant digits.
    Histogram::new_with_bounds(1, 60_000_000, 3).map_err(|e| CliError::System(format!("cannot keep latencies: {e}")))
}
