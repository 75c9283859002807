//! The in-process arithmetic in nanoseconds, beside governor's in the same run.
//!
//! A bucket and governor's decide from a time that is handed in, so that neither pays for a clock; a leased decision and governor's by
//! key read theirs. All always have a token.

use super::{charges, leased};
use crate::error::Result;
use crate::open;
use governor::clock::FakeRelativeClock;
use governor::{Quota, RateLimiter};
use serde::Serialize;
use std::hint::black_box;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};
use tollgate::Limiter;
use tollgate_core::take::Moment;
use tollgate_core::{Item, Step, Take, Timestamp, TokenBucket, Verdict};
use tollgate_dynamodb::connect::Connected;

const ROUNDS: u32 = 200_000;

/// One operation.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Line {
    /// What was called.
    pub name: &'static str,
    /// Nanoseconds a call, the best of five runs.
    pub ns: f64,
}

pub(super) async fn measure(connected: &Connected, table: &str) -> Result<Vec<Line>> {
    Ok(vec![
        Line { name: "leased decision", ns: leased_decision(connected, table).await? },
        Line { name: "governor check of a key", ns: governor_by_key() },
        Line { name: "TokenBucket::take", ns: token_bucket()? },
        Line { name: "governor check", ns: governor() },
        Line { name: "the whole protocol, no I/O", ns: protocol()? },
    ])
}

fn token_bucket() -> Result<f64> {
    let bucket = TokenBucket::new(1000, 1_000_000_000, 100)?;
    Ok(best(|| {
        let (mut tat, mut now) = (None, Timestamp::from_secs(1_767_225_600));
        for _ in 0..ROUNDS {
            now = now + Duration::from_millis(1);
            if let Verdict::Allowed { tat: next } = black_box(bucket).take(black_box(tat), black_box(now), 1) {
                tat = Some(next);
            }
        }
        black_box(tat);
    }))
}

fn governor() -> f64 {
    let quota = Quota::per_second(NonZeroU32::MIN.saturating_add(999)).allow_burst(NonZeroU32::MIN.saturating_add(99));
    let clock = FakeRelativeClock::default();
    let limiter = RateLimiter::direct_with_clock(quota, clock.clone());
    best(|| {
        for _ in 0..ROUNDS {
            clock.advance(Duration::from_millis(1));
            let _ = black_box(black_box(&limiter).check());
        }
    })
}

/// A whole decision by the limiter of a table, which is asked once a second.
async fn leased_decision(connected: &Connected, table: &str) -> Result<f64> {
    let (store, _) = open::store(connected, table).await?;
    let limiter = Limiter::new(store).with_deadline(Duration::from_secs(30));
    let charges = leased(("orders", 100_000_000, 1), 50_000_000)?;
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let start = Instant::now();
        for _ in 0..ROUNDS {
            black_box(limiter.take(black_box(&charges)).await?);
        }
        best = best.min(start.elapsed().as_secs_f64() * 1e9 / f64::from(ROUNDS));
    }
    Ok(best)
}

fn governor_by_key() -> f64 {
    let quota = Quota::per_second(NonZeroU32::MAX).allow_burst(NonZeroU32::MAX);
    let limiter = RateLimiter::keyed(quota);
    let key = "bench:0123456789abcdef".to_owned();
    best(|| {
        for _ in 0..ROUNDS {
            let _ = black_box(black_box(&limiter).check_key(black_box(&key)));
        }
    })
}

/// A decision on an item in a local variable: choosing the form, applying the write, telling the answer.
fn protocol() -> Result<f64> {
    let all = charges(&[("orders", 1000, 1)])?;
    let [charges] = all.as_slice() else { return Ok(f64::NAN) };
    Ok(best(|| {
        let mut item: Option<Item> = None;
        let mut now = Timestamp::from_secs(1_767_225_600);
        for busy_period in 0..ROUNDS {
            now = now + Duration::from_millis(1);
            let moment = Moment { now, clock_agrees: true };
            let (mut take, step) = Take::start(charges.clone(), item.as_ref(), moment, u64::from(busy_period));
            if let Step::Write(write) = step {
                item = write.apply(item.as_ref());
                let _ = black_box(item.as_ref().map(|item| take.applied(item, moment)));
            }
        }
    }))
}

fn best(mut run: impl FnMut()) -> f64 {
    let once = || {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64() * 1e9 / f64::from(ROUNDS)
    };
    std::iter::repeat_with(once).take(5).fold(f64::INFINITY, f64::min)
}
