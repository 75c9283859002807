//! Clocks that step back: nobody is locked out for longer than an empty bucket would, and nothing is farmed from it.

use crate::store::{HOUR, MS, SECOND, Store, at, bucket, plan, single};
use tollgate_core::take::Moment;
use tollgate_core::{Terms, Timestamp};

fn terms() -> Terms {
    plan(1, "", bucket(1, SECOND, 5))
}

/// An item that was emptied at an hour from now, by a clock that was that far ahead.
fn emptied_in_an_hour() -> Store {
    let mut store = Store::default();
    assert!(store.allows(&terms(), 5, at(HOUR)));
    store
}

/// How long a caller waits that asks every 10 ms from `now` on, in milliseconds.
fn wait(store: &mut Store, now: Timestamp, clock_agrees: bool) -> u64 {
    let mut asks = (0..600).map(|i| {
        let moment = Moment { now: Timestamp::from_nanos(now.as_nanos() + 10 * i * MS), clock_agrees };
        (10 * i, store.ask_knowing(None, &single(&terms(), 1), moment).decision.is_allowed())
    });
    asks.find_map(|(ms, allowed)| allowed.then_some(ms)).unwrap_or(u64::MAX)
}

/// MediaWiki-MCP#557.
#[test]
fn a_clock_that_steps_back_locks_nobody_out_beyond_an_interval_from_empty() {
    for step in [0, 500 * MS, 1_999 * MS, 2 * SECOND, 2 * SECOND + 1, 11 * SECOND, HOUR] {
        let waited = wait(&mut emptied_in_an_hour(), at(HOUR - step), true);
        let interval = 1_000;
        assert!(waited <= interval + 2_000, "a step of {step} ns locks for {waited} ms");
        if step > 2 * SECOND {
            assert!((interval - 10..=interval).contains(&waited), "pulled back to empty: {waited} ms");
        }
    }
}

#[test]
fn a_clock_that_is_not_known_to_agree_pulls_nothing_back() {
    let mut store = emptied_in_an_hour();
    let before = store.item.clone();
    assert_eq!(wait(&mut store, at(0), false), u64::MAX);
    assert_eq!(store.item, before);
}

#[test]
fn a_pull_back_renews_the_busy_period_and_is_counted_once() {
    let mut store = emptied_in_an_hour();
    let before = store.bucket("l").busy_period;
    let told = store.ask(&single(&terms(), 1), at(0));
    assert!(told.pulled_back() && !told.decision.is_allowed());
    assert_eq!(
        store.bucket("l").tat,
        terms().figures.token_bucket().unwrap().at(at(0)) + terms().figures.token_bucket().unwrap().window()
    );
    assert_ne!(store.bucket("l").busy_period, before);
    assert!(!store.ask(&single(&terms(), 1), at(0)).pulled_back());
}

/// What agreeing clocks leave is never pulled back, so two of them cannot take turns at emptying the bucket.
#[test]
fn agreeing_clocks_pull_nothing_back() {
    let mut store = Store::default();
    let mut admitted = 0;
    for _ in 0..20 {
        for now in [at(2 * SECOND), at(0)] {
            let told = store.ask(&single(&terms(), 1), now);
            assert!(!told.pulled_back());
            admitted += u32::from(told.decision.is_allowed());
        }
    }
    assert_eq!(admitted, 5, "at one instant, by clocks 2 s apart, the first of them ahead");
}
