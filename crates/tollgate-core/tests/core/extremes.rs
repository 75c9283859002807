//! Figures at the ends of their ranges: no wrap, no lost token, and a plain refusal of what has no meaning.

use crate::store::{HOUR, SECOND, Store, at, bucket, single};
use std::time::Duration;
use tollgate_core::{Error, Terms, Ticks, Timestamp, TokenBucket, Verdict};

const YEAR: u64 = 365 * 24 * HOUR;

fn admitted(b: TokenBucket, calls: u64) -> u64 {
    let mut tat = None;
    let mut n = 0;
    for _ in 0..calls {
        if let Verdict::Allowed { tat: next } = b.take(tat, at(0), 1) {
            (tat, n) = (Some(next), n + 1);
        }
    }
    n
}

/// governor 0.10.4: 415 and 4.
#[test]
fn one_a_year_with_burst_1000_and_one_a_century_with_burst_10_admit_their_burst() {
    assert_eq!(admitted(bucket(1, YEAR, 1000), 1100), 1000);
    assert_eq!(admitted(bucket(1, 100 * YEAR, 10), 20), 10);
}

/// throttlecrab 0.4.40: all 100,000.
#[test]
fn five_billion_a_second_with_burst_10_admits_10_of_100_000_at_one_instant() {
    assert_eq!(admitted(bucket(5_000_000_000, SECOND, 10), 100_000), 10);
}

/// redis/redis#14826 (review): the product wrapped.
#[test]
fn a_day_times_200_000_000_does_not_wrap() {
    let b = bucket(1, 86_400 * SECOND, 3_000_000);
    assert_eq!(b.take(None, at(0), 200_000_000), Verdict::NeverFits);
    let b = bucket(1000, 86_400 * SECOND, 200_000_000);
    let Verdict::Allowed { tat } = b.take(None, at(0), 200_000_000) else { panic!("the burst fits") };
    assert_eq!(b.reset_after(Some(tat), at(0)), Duration::from_secs(86_400 * 200_000));
}

/// express-rate-limit#546, rate-limiter-flexible#71: long windows reset early, timers overflowed.
#[test]
fn windows_of_30_and_365_days_do_not_reset_early() {
    for days in [30, 365] {
        let (mut store, terms) = (Store::default(), Terms::new(1, bucket(1, days * 24 * HOUR, 1)));
        assert!(store.allows(&terms, 1, at(0)));
        assert!(!store.allows(&terms, 1, at(days * 24 * HOUR - 1)));
        assert!(store.allows(&terms, 1, at(days * 24 * HOUR)));
    }
}

/// redis-cell#41 (crash), rate-limiter-flexible's Dynamo store (a duration of 0 lets everything pass).
#[test]
fn a_figure_of_0_or_above_its_maximum_is_refused() {
    let max = TokenBucket::MAX_TOKENS;
    let cases = [
        ((0, 1, 1), "rate"),
        ((1, 0, 1), "period"),
        ((1, 1, 0), "burst"),
        ((max + 1, 1, 1), "rate"),
        ((1, TokenBucket::MAX_PERIOD_NS + 1, 1), "period"),
        ((1, 1, max + 1), "burst"),
    ];
    for ((n, period, burst), name) in cases {
        let error = TokenBucket::new(n, period, burst).unwrap_err();
        assert!(matches!(error, Error::Figure { figure, .. } if figure == name), "{name}: {error}");
    }
}

#[test]
fn a_bucket_that_takes_more_than_ten_thousand_years_to_fill_is_refused() {
    assert_eq!(TokenBucket::new(1, 100 * YEAR, 101), Err(Error::RefillTooLong));
    assert!(TokenBucket::new(1, 100 * YEAR, 100).is_ok());
    assert_eq!(TokenBucket::new(1, 200 * YEAR, TokenBucket::MAX_TOKENS), Err(Error::RefillTooLong));
}

/// Stored numbers have up to 38 digits, whoever wrote them.
#[test]
fn no_figure_clock_or_stored_number_overflows() {
    let (max, slow) = (TokenBucket::MAX_TOKENS, TokenBucket::MAX_PERIOD_NS);
    let digits = 10_i128.pow(38) - 1;
    let buckets: Vec<_> = [1, 7, max - 1, max]
        .iter()
        .flat_map(|n| [1, 11, slow - 1, slow].map(|period| (*n, period)))
        .flat_map(|(n, period)| [1, 50, max].map(|burst| TokenBucket::new(n, period, burst)))
        .flatten()
        .collect();
    assert!(buckets.len() > 30, "only {}", buckets.len());
    for (b, other) in buckets.iter().flat_map(|b| buckets.iter().map(move |other| (b, other))) {
        for now in [0, 1, u64::MAX].map(Timestamp::from_nanos) {
            let emptied = b.at(now) + b.window();
            for tat in [Ticks(-digits), Ticks(0), b.at(now), emptied, Ticks(digits)] {
                let left = b.remaining(Some(tat), now);
                assert!(left <= b.burst());
                for cost in [1, b.burst(), max] {
                    let _ = b.take(Some(tat), now, cost);
                }
                let _ = (b.reset_after(Some(tat), now), b.next_token_after(Some(tat), now), b.horizon_of(tat));
                let (old, new) = (Terms::new(1, *b), Terms::new(2, *other));
                for rule in [tollgate_core::OnChange::Proportional, tollgate_core::OnChange::Keep] {
                    let carried = new.carry(&old, tat, now, rule).tat;
                    assert!(carried >= other.at(now));
                    // Debts times windows pass 128 bits: an empty bucket stays exactly empty.
                    if tat == emptied && rule == tollgate_core::OnChange::Proportional {
                        assert_eq!(carried, other.at(now) + other.window());
                    }
                }
            }
        }
    }
}

/// bucket4j#220, zae-limiter 0.17, redis-gcra#6.
#[test]
fn a_cost_above_the_burst_never_fits_and_leaves_no_trace() {
    let (mut store, terms) = (Store::default(), Terms::new(1, bucket(1, SECOND, 10)));
    let told = store.ask(&single(&terms, 11), at(0));
    assert_eq!(told.decision.outcome(), tollgate_core::Outcome::NeverFits);
    assert_eq!((told.decision.retry_after(), told.applied), (None, 0));
    assert_eq!(store.item, None);
    let next = store.ask(&single(&terms, 1), at(0)).decision;
    assert!(next.is_allowed());
    assert_eq!(next.limits[0].remaining, 9);
}

/// upstash#156.
#[test]
fn a_denied_huge_cost_leaves_no_debt() {
    let (mut store, terms) = (Store::default(), Terms::new(1, bucket(1, SECOND, 1_000_000)));
    assert!(store.allows(&terms, 1, at(0)));
    let before = store.item.clone();
    assert!(!store.allows(&terms, 1_000_000, at(0)));
    assert_eq!(before, store.item);
    assert!(store.allows(&terms, 999_999, at(0)));
}

/// flask-limiter#62, kubevuln PR#755: 0, truncated or negative waits.
#[test]
fn a_wait_is_never_0() {
    let b = bucket(5_000_000_000, SECOND, 10);
    let Verdict::Denied { retry_after } = b.take(Some(b.at(at(0)) + b.window()), at(0), 1) else { panic!() };
    assert_eq!(retry_after, Duration::from_nanos(1));
}
