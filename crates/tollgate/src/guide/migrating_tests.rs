//! The tables of `migrating.md`: each row by the rule of the other limiter, as its source has it, and by ours under the page's policy.
#![allow(clippy::unwrap_used, clippy::panic)]

use crate::testing::{ManualClock, MemoryStore};
use crate::{Limiter, Policy, Timestamp, Wanted};
use std::time::Duration;

const PAGE: &str = include_str!("../../guide/migrating.md");

/// So many calls at an instant, milliseconds.
type Calls = Vec<(u64, u64)>;

/// Another limiter's state of one client: asked at an instant, it says whether a call passes.
type Theirs = Box<dyn FnMut(u64) -> bool>;
/// A new client of it.
type Rule = fn() -> Theirs;

/// express-rate-limit, `MemoryStore.increment`: a window begins with the first call after the last one is over; every call counts.
fn express(limit: u64, window: u64) -> Theirs {
    let (mut hits, mut reset) = (0, 0);
    Box::new(move |now| {
        if now >= reset {
            (hits, reset) = (0, now + window);
        }
        hits += 1;
        hits <= limit
    })
}

/// rate-limiter-flexible, `_upsert` and `_afterConsume`: the same, and the first call beyond the points starts a block.
fn flexible(points: u64, duration: u64, block: u64) -> Theirs {
    let (mut consumed, mut expire) = (0, 0);
    Box::new(move |now| {
        if now >= expire {
            (consumed, expire) = (0, now + duration);
        }
        consumed += 1;
        if consumed == points + 1 {
            expire = now + block;
        }
        consumed <= points
    })
}

/// The script: whole seconds.
fn script(rate: u64, capacity: u64) -> Theirs {
    let (mut tokens, mut refreshed) = (capacity, 0);
    Box::new(move |now| {
        let now = now / 1000;
        tokens = capacity.min(tokens + (now - refreshed) * rate);
        refreshed = now;
        let allowed = tokens >= 1;
        tokens -= u64::from(allowed);
        allowed
    })
}

/// nginx, `ngx_http_limit_req_lookup`: the excess in thousandths of a request.
fn nginx(rate: i64, burst: i64) -> Theirs {
    let mut last: Option<(i64, i64)> = None;
    Box::new(move |now| {
        let now = i64::try_from(now).unwrap();
        let excess = last.map_or(0, |(then, excess)| (excess - rate * (now - then) + 1000).max(0));
        let allowed = excess <= burst * 1000;
        if allowed {
            last = Some((now, excess));
        }
        allowed
    })
}

/// zae-limiter, `refill_bucket` and `try_consume`: thousandths of a token, and the time that they took; a denial writes nothing.
fn zae(capacity: u64, period: u64) -> Theirs {
    let milli = capacity * 1000;
    let (mut tokens, mut refilled) = (milli, 0);
    Box::new(move |now| {
        let added = (now - refilled) * milli / period;
        let found = milli.min(tokens + added);
        let allowed = found >= 1000;
        if allowed {
            (tokens, refilled) = (found - 1000, refilled + added * period / milli);
        }
        allowed
    })
}

fn passed(calls: &Calls, mut passes: impl FnMut(u64) -> bool) -> String {
    let passed = calls.iter().map(|(n, at)| (0..*n).filter(|_| passes(*at)).count().to_string());
    passed.collect::<Vec<_>>().join(", ")
}

/// What the real limiter admits under a policy, from a quarter of an hour on.
async fn ours(policy: &str, calls: &Calls) -> String {
    let policy = Policy::parse(policy).unwrap().policy;
    let limit = policy.limits()[0].name().as_str().to_owned();
    let key = if limit == "rpm" { ("user", "user-123") } else { ("client_ip", "198.51.100.7") };
    let charges = policy.charges(&[Wanted { limit: &limit, key: &[key], plan: None, cost: 1 }]).unwrap();
    let start = Timestamp::from_secs(1_767_225_600);
    let clock = ManualClock::new(start);
    // Memory of a denial is by real time, which stands still here.
    let limiter = Limiter::new(MemoryStore::new(clock.clone())).denying_from_memory_for(Duration::ZERO);
    let mut answers = Vec::new();
    for (n, at) in calls {
        clock.set(start + Duration::from_millis(*at));
        for _ in 0..*n {
            answers.push((*at, limiter.take(&charges).await.unwrap().is_allowed()));
        }
    }
    let mut answers = answers.into_iter();
    passed(calls, |_| answers.next().unwrap().1)
}

#[tokio::test]
async fn what_passes_elsewhere_and_here_is_as_the_page_says() {
    let theirs: [(&str, Rule); 5] = [
        ("express-rate-limit", || express(100, 900_000)),
        ("rate-limiter-flexible", || flexible(5, 60_000, 600_000)),
        ("A token bucket in Lua on Redis", || script(10, 20)),
        ("nginx", || nginx(10, 20)),
        ("zae-limiter", || zae(100, 60_000)),
    ];
    for (name, rule) in theirs {
        let section = PAGE.split("\n## ").find(|section| section.lines().next() == Some(name)).unwrap();
        let policy = section.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
        let rows: Vec<_> = section.lines().filter(|line| line.starts_with("| ") && line.contains(" ms")).collect();
        assert!(rows.len() >= 2, "{name}");
        for row in rows {
            let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
            let calls: Calls = cells[0]
                .split(", ")
                .map(|calls| {
                    let (n, at) = calls.trim_end_matches(" ms").split_once(" at ").unwrap();
                    (n.parse().unwrap(), at.parse().unwrap())
                })
                .collect();
            let both = [passed(&calls, rule()), ours(policy, &calls).await];
            assert_eq!(both, [cells[1], cells[2]], "{name}: {row}");
        }
    }
}
