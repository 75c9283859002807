//! Exactly the burst, exactly the retry time, never above the bound: over arbitrary figures and histories.

use crate::store::{MS, SECOND, START, Store, at, bucket, over_bound, single};
use proptest::prelude::*;
use std::time::Duration;
use tollgate_core::{Terms, Ticks, Timestamp, TokenBucket, Verdict};

/// How many calls of cost 1 pass at one instant, and the `tat` that they leave.
fn admitted_at_once(b: &TokenBucket, calls: u64) -> (u64, Option<Ticks>) {
    (0..calls).fold((0, None), |(n, tat), _| match b.take(tat, at(0), 1) {
        Verdict::Allowed { tat } => (n + 1, Some(tat)),
        _ => (n, tat),
    })
}

/// Rounded nanosecond intervals lose a token of every burst that the rate does not divide.
#[test]
fn a_full_bucket_admits_exactly_its_burst_when_the_rate_does_not_divide_a_second() {
    for (n, period, burst) in [(7, 60 * SECOND, 7), (3, SECOND, 3), (1500, SECOND, 1500), (1000, 60 * SECOND, 1000)] {
        assert_eq!(admitted_at_once(&bucket(n, period, burst), 2 * burst).0, burst, "{n} per {period} ns");
    }
}

/// redis-cell#50: at 60 ms a token a key was forgotten at once.
#[test]
fn a_key_of_a_thousand_a_minute_is_remembered_from_the_first_call_on() {
    let (mut store, terms) = (Store::default(), Terms::new(1, bucket(1000, 60 * SECOND, 1000)));
    for left in (0..1000).rev() {
        let decision = store.ask(&single(&terms, 1), at(0)).decision;
        assert_eq!((decision.is_allowed(), decision.limits[0].remaining), (true, left));
        let item = store.item.as_ref().unwrap();
        let full = at(0) + decision.limits[0].reset_after;
        assert!(!item.is_expired(full) && item.expires_at.unwrap() > at(0).as_secs(), "{left} left");
    }
    assert!(!store.allows(&terms, 1, at(0)));
}

/// firecracker PR#3370, polaris PR#3433: fractions of a token were lost at each call.
#[test]
fn a_call_each_900_ms_at_1_per_second_loses_no_fraction() {
    let b = bucket(1, SECOND, 10);
    let mut tat = Some(b.at(at(0)) + b.window());
    let mut admitted = 0;
    for i in 1..=100 {
        if let Verdict::Allowed { tat: next } = b.take(tat, at(i * 900 * MS), 1) {
            (tat, admitted) = (Some(next), admitted + 1);
        }
    }
    assert_eq!(admitted, 90);
}

#[test]
fn a_hundred_a_minute_with_burst_20_admits_20_at_once_and_then_a_hundred_a_minute() {
    let (mut store, terms) = (Store::default(), Terms::new(1, bucket(100, 60 * SECOND, 20)));
    let at_once: Vec<_> = (0..25).map(|_| store.ask(&single(&terms, 1), at(0)).decision).collect();
    assert_eq!(at_once.iter().filter(|d| d.is_allowed()).count(), 20);
    assert!(at_once[20..].iter().all(|d| d.retry_after() == Some(Duration::from_millis(600))));
    let later = (1..=600).filter(|i| store.allows(&terms, 1, at(i * 100 * MS))).count();
    assert_eq!(later, 100);
}

#[test]
fn twelve_calls_10_ms_apart_on_capacity_10_at_5_per_second() {
    let (mut store, terms) = (Store::default(), Terms::new(1, bucket(5, SECOND, 10)));
    let mut ask = |ms| store.ask(&single(&terms, 1), at(ms * MS)).decision;
    for i in 0..10 {
        let decision = ask(10 * i);
        assert!(decision.is_allowed());
        assert_eq!(decision.limits[0].remaining, 9 - i);
    }
    assert_eq!(ask(100).retry_after(), Some(Duration::from_millis(100)));
    assert_eq!(ask(110).retry_after(), Some(Duration::from_millis(90)));
    let last = ask(1110);
    assert!(last.is_allowed());
    assert_eq!(last.limits[0].remaining, 4);
}

/// bucket4j#51, glide-mq PR#281: idle time counted as capacity, or made it negative.
#[test]
fn idle_for_twelve_hours_is_full_and_no_more() {
    let (mut store, terms) = (Store::default(), Terms::new(1, bucket(5, SECOND, 10)));
    assert!(store.allows(&terms, 3, at(0)));
    let later = at(12 * 3600 * SECOND);
    assert_eq!((0..20).filter(|_| store.allows(&terms, 1, later)).count(), 10);
}

/// Figures of every size whose refill time is allowed.
fn any_bucket() -> impl Strategy<Value = TokenBucket> {
    let n = prop_oneof![1..=20u64, Just(1500), Just(5_000_000_000), 1..=TokenBucket::MAX_TOKENS];
    let period = prop_oneof![
        Just(SECOND),
        Just(60 * SECOND),
        Just(86_400 * SECOND),
        Just(7 * SECOND + 1),
        1..=1_000_000_000_000u64,
        1..=TokenBucket::MAX_PERIOD_NS
    ];
    let burst = prop_oneof![1..=20u64, 1..=TokenBucket::MAX_TOKENS];
    (n, period, burst).prop_filter_map("refills too slowly", |(n, p, b)| TokenBucket::new(n, p, b).ok())
}

fn fits(b: &TokenBucket, tat: Option<Ticks>, now: Timestamp, cost: u64) -> bool {
    matches!(b.take(tat, now, cost), Verdict::Allowed { .. })
}

/// The instant `wait` after `now`, if the clock goes that far.
fn after(now: Timestamp, wait: Duration) -> Option<Timestamp> {
    let ns = u64::try_from(wait.as_nanos()).ok()?.checked_add(now.as_nanos())?;
    Some(Timestamp::from_nanos(ns))
}

fn one_ns_before(now: Timestamp) -> Timestamp {
    Timestamp::from_nanos(now.as_nanos() - 1)
}

/// A `tat` that charges at `now` can have left: up to an empty bucket.
fn reachable(b: &TokenBucket, now: Timestamp, share: u32) -> Ticks {
    Ticks(b.at(now).0 + b.window().0 / i128::from(u32::MAX) * i128::from(share))
}

proptest! {
    /// governor tests the same: allowed exactly when told, never before.
    #[test]
    fn a_full_bucket_admits_its_burst_and_then_a_token_exactly_when_told(b in any_bucket(), now in START..2 * START) {
        let now = Timestamp::from_nanos(now);
        let Verdict::Allowed { tat } = b.take(None, now, b.burst()) else { panic!("the burst does not fit") };
        prop_assert_eq!(b.remaining(Some(tat), now), 0);
        for cost in [1, b.burst()] {
            let Verdict::Denied { retry_after } = b.take(Some(tat), now, cost) else { panic!("more than the burst") };
            prop_assert!(retry_after >= Duration::from_nanos(1));
            if let Some(then) = after(now, retry_after) {
                prop_assert!(fits(&b, Some(tat), then, cost), "told {:?}", retry_after);
                prop_assert!(!fits(&b, Some(tat), one_ns_before(then), cost), "told {:?}", retry_after);
            }
        }
        let above = b.burst() + 1;
        prop_assert_eq!(b.take(None, now, above), Verdict::NeverFits);
    }

    #[test]
    fn bursts_of_cost_1_are_exact(n in 1..2000u64, period in 1..100 * SECOND, burst in 1..300u64) {
        let b = bucket(n, period, burst);
        let (admitted, tat) = admitted_at_once(&b, burst + 3);
        prop_assert_eq!(admitted, burst);
        let Verdict::Denied { retry_after } = b.take(tat, at(0), 1) else { panic!() };
        prop_assert!(fits(&b, tat, at(0) + retry_after, 1));
        prop_assert!(!fits(&b, tat, one_ns_before(at(0) + retry_after), 1));
    }

    #[test]
    fn what_is_told_of_tokens_is_what_can_be_taken(b in any_bucket(), share: u32) {
        let tat = Some(reachable(&b, at(0), share));
        let left = b.remaining(tat, at(0));
        prop_assert!(left <= b.burst());
        prop_assert!(left == 0 || fits(&b, tat, at(0), left));
        prop_assert!(!fits(&b, tat, at(0), left + 1));
        if tat > Some(b.at(at(0))) {
            if let Some(then) = after(at(0), b.next_token_after(tat, at(0))) {
                prop_assert!(b.remaining(tat, then) > left, "a token at the time told");
                prop_assert_eq!(b.remaining(tat, one_ns_before(then)), left, "and not before");
            }
            if let Some(then) = after(at(0), b.reset_after(tat, at(0))) {
                prop_assert!(tat <= Some(b.at(then)), "full at the time told");
                prop_assert!(tat > Some(b.at(one_ns_before(then))), "and not before");
            }
        } else {
            prop_assert_eq!((b.next_token_after(tat, at(0)), b.reset_after(tat, at(0))), (Duration::ZERO, Duration::ZERO));
        }
    }

    /// Any costs, any steps of time, by callers that know nothing: through the whole protocol.
    #[test]
    fn no_interval_admits_more_than_burst_and_rate(
        (n, period, burst) in (1..50u64, 1..20 * SECOND, 1..30u64),
        history in prop::collection::vec((prop_oneof![Just(0), Just(1), 0..SECOND, 0..100 * SECOND], 0..35u64), 1..60),
    ) {
        let b = bucket(n, period, burst);
        let (mut store, terms, mut now, mut admitted) = (Store::default(), Terms::new(1, b), at(0), Vec::new());
        for (step, cost) in history {
            now = now + Duration::from_nanos(step);
            let before = store.item.clone();
            let told = store.ask(&single(&terms, cost), now);
            if told.decision.is_allowed() {
                admitted.push((now, cost));
                prop_assert_eq!(told.applied, u32::from(cost > 0));
            } else {
                prop_assert_eq!(&before, &store.item, "a denial changes nothing");
            }
        }
        prop_assert_eq!(over_bound(&[b], &admitted), 0);
    }
}
