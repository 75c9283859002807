//! Faults that users of other limiters reported, each as a small input with the right outcome.

use crate::harness::{Client, SECOND, TABLE, bucket, charge, connected, costing, endpoint, key, one, raw};
use std::sync::Arc;
use std::time::Duration;
use tollgate::testing::ManualClock;
use tollgate::{Clock, Counters, DynamoStore, Key, Outcome, Store, SystemClock};
use tollgate_cli::embedded::Embedded;
use tollgate_core::{Charges, ItemKey, Terms};
use tollgate_dynamodb::admin;
use tollgate_dynamodb::table::{CreateOptions, create};

/// Rounded nanosecond intervals lose a token of every burst; redis-cell#80: 1500/s was refused.
#[tokio::test(flavor = "multi_thread")]
async fn at_one_instant_a_full_bucket_is_exactly_its_burst() {
    let client = Client::new().await;
    for (n, period, burst) in [(7, 60 * SECOND, 7), (3, SECOND, 3), (1500, SECOND, 15), (1000, 60 * SECOND, 15)] {
        let charges = one(&key(), n, period, burst);
        let mut allowed = 0;
        for _ in 0..burst + 3 {
            allowed += u64::from(client.take(&charges).await.is_allowed());
        }
        assert_eq!(allowed, burst, "{n} per {period} ns");
    }
}

/// bucket4j#220, zae-limiter 0.17, redis-gcra#6.
#[tokio::test(flavor = "multi_thread")]
async fn a_cost_above_the_burst_never_fits_and_changes_nothing() {
    let client = Client::new().await;
    let key = key();
    let huge = client.take(&costing(&key, 10, SECOND, 10, 11)).await;
    assert_eq!((huge.outcome(), huge.retry_after()), (Outcome::NeverFits, None));
    assert!(client.limiter.store().read(&key, &[]).await.unwrap().is_none());
    let next = client.take(&one(&key, 10, SECOND, 10)).await;
    assert_eq!((next.is_allowed(), next.limits[0].remaining), (true, 9));
    assert_eq!(client.take(&costing(&key, 10, SECOND, 10, 11)).await.outcome(), Outcome::NeverFits);
    assert_eq!(client.take(&costing(&key, 10, SECOND, 10, 0)).await.limits[0].remaining, 9);
}

/// upstash#156.
#[tokio::test(flavor = "multi_thread")]
async fn a_denied_huge_cost_leaves_no_debt() {
    let client = Client::new().await;
    let key = key();
    assert!(client.take(&one(&key, 1, SECOND, 100)).await.is_allowed());
    for _ in 0..5 {
        assert!(!client.take(&costing(&key, 1, SECOND, 100, 100)).await.is_allowed());
    }
    assert_eq!(client.take(&one(&key, 1, SECOND, 100)).await.limits[0].remaining, 98);
}

/// bucket4j#51, glide-mq PR#281.
#[tokio::test(flavor = "multi_thread")]
async fn after_twelve_idle_hours_there_is_one_burst_and_no_more() {
    let client = Client::new().await;
    let charges = one(&key(), 1, SECOND, 10);
    assert!(client.take(&charges).await.is_allowed());
    client.advance_ms(12 * 3_600_000);
    let mut left = Vec::new();
    while let Some(decision) = Some(client.take(&charges).await).filter(tollgate::Decision::is_allowed) {
        left.push(decision.limits[0].remaining);
    }
    assert_eq!(left, [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
}

/// redis-cell#54.
#[tokio::test(flavor = "multi_thread")]
async fn a_raised_rate_admits_within_its_own_terms() {
    let client = Client::new().await;
    let key = key();
    let at = |revision, n| {
        Charges::new(key.clone(), vec![charge("limit", Terms::new(revision, bucket(n, SECOND, n)), 1)]).unwrap()
    };
    for _ in 0..10 {
        assert!(client.take(&at(1, 10)).await.is_allowed());
    }
    let denied = client.take(&at(2, 1000)).await;
    assert_eq!(denied.retry_after(), Some(Duration::from_millis(1)));
    client.advance_ms(1);
    assert!(client.take(&at(2, 1000)).await.is_allowed());
}

/// rate-limiter-flexible#310; TTL deletes late, up to days.
#[tokio::test(flavor = "multi_thread")]
async fn an_item_past_its_expiry_reads_as_absent_and_decides_as_absent() {
    let client = Client::new().await;
    let key = key();
    assert!(client.take(&costing(&key, 1, SECOND, 3, 3)).await.is_allowed());
    client.advance_ms(3_600_000);
    let inspection = admin::inspect(client.limiter.store(), &key).await.unwrap();
    assert!(inspection.item.is_none() && inspection.raw.is_some(), "not deleted, and yet not there");
    let stranger = Client::at(client.clock.clone()).await;
    assert_eq!(stranger.take(&one(&key, 1, SECOND, 3)).await.limits[0].remaining, 2);
}

/// gchq/sleeper#450, misk PR#3240: milliseconds; ddb-token-bucket: capacity/rate over 100 s.
#[tokio::test(flavor = "multi_thread")]
async fn expiry_is_in_seconds_and_covers_the_longest_memory() {
    let client = Client::new().await;
    let key = key();
    client.take(&one(&key, 1, 60 * SECOND, 500)).await;
    let item = client.limiter.store().read(&key, &[]).await.unwrap().unwrap();
    let now = client.clock.now().as_secs();
    let kept = item.expires_at.unwrap() - now;
    assert!((30_000..30_370).contains(&kept), "kept for {kept} s, memory is 500 min");
}

/// parse-server#10624.
#[tokio::test(flavor = "multi_thread")]
async fn using_the_short_limit_never_lets_the_long_one_expire() {
    let client = Client::new().await;
    let key = key();
    let short = charge("short", Terms::new(1, bucket(10, SECOND, 100)), 1);
    let long = charge("long", Terms::new(1, bucket(1, 3600 * SECOND, 1)), 1);
    let both = Charges::new(key.clone(), vec![short.clone(), long.clone()]).unwrap();
    assert!(client.take(&both).await.is_allowed());
    // Another process that knows only the short limit.
    let other = Client::at(client.clock.clone()).await;
    let only_short = Charges::new(key.clone(), vec![short]).unwrap();
    for _ in 0..5 {
        other.advance_ms(600_000);
        assert!(other.take(&only_short).await.is_allowed());
        let item = other.limiter.store().read(&key, &[]).await.unwrap().unwrap();
        let until = item.expires_at.unwrap();
        assert!(until >= client.clock.now().as_secs() + 3600, "expires at {until}");
    }
    let only_long = Charges::new(key, vec![long]).unwrap();
    assert!(!client.take(&only_long).await.is_allowed(), "50 minutes into its hour");
}

/// The same, with a table that deletes on the second.
#[tokio::test(flavor = "multi_thread")]
async fn ttl_never_deletes_what_a_decision_needs() {
    let clock = ManualClock::new(SystemClock.now());
    let embedded = Embedded::start(Some(clock.clone())).await.unwrap();
    let connected = connected(embedded.endpoint()).await;
    create(&connected, TABLE, CreateOptions::default()).await.unwrap();
    let store = DynamoStore::with_trusted_clock(&connected, TABLE, Arc::new(clock.clone()), Arc::<Counters>::default());
    let limiter = tollgate::Limiter::new(store).with_deadline(crate::harness::PATIENCE);
    let key = key();
    let charges = costing(&key, 1, SECOND, 10, 10);
    assert!(limiter.take(std::slice::from_ref(&charges)).await.unwrap().is_allowed());
    for second in 1..10 {
        clock.advance(Duration::from_secs(1));
        assert_eq!(embedded.sweep().unwrap(), 0, "at {second} s");
        assert_eq!(limiter.take(&[costing(&key, 1, SECOND, 10, 0)]).await.unwrap().limits[0].remaining, second);
        assert!(!limiter.take(std::slice::from_ref(&charges)).await.unwrap().is_allowed(), "at {second} s");
    }
    clock.advance(Duration::from_secs(600));
    assert_eq!(embedded.sweep().unwrap(), 1, "and then it is deleted");
    assert!(limiter.store().read(&key, &[]).await.unwrap().is_none());
    assert!(limiter.take(std::slice::from_ref(&charges)).await.unwrap().is_allowed());
}

/// zae-limiter: keys with `#`, `+`, other alphabets; better-auth#7300: `a:b`+`c` and `a`+`b:c`.
#[tokio::test(flavor = "multi_thread")]
async fn any_key_works_and_no_two_share_a_bucket() {
    let client = Client::new().await;
    let long = "k".repeat(300);
    let unique = key().key.to_string();
    let values = ["bob+x@example.com", "Ünïcödé", "a,b:c%d#e/f", "日本", long.as_str(), "a:b", "a"];
    for value in values {
        let key = Key::new([("test", unique.as_str()), ("who", value)]).unwrap();
        let charges = one(&ItemKey::shared(key), 1, SECOND, 2);
        let left = [client.take(&charges).await.limits[0].remaining, client.take(&charges).await.limits[0].remaining];
        assert_eq!(left, [1, 0], "{value}");
    }
    let pair = |a: &str, b: &str| Key::new([("a", a), ("b", b), ("test", unique.as_str())]).unwrap();
    for key in [pair("a:b", "c"), pair("a", "b:c"), pair("a", "b,c"), pair("a%3Ab", "c")] {
        assert_eq!(
            client.take(&one(&ItemKey::shared(key.clone()), 1, SECOND, 2)).await.limits[0].remaining,
            1,
            "{key}"
        );
    }
    let trips = client.counts().round_trips;
    assert!(Key::new([("who", "")]).is_err());
    assert!(Key::new([("who", "k".repeat(3000))]).is_err());
    assert_eq!(client.counts().round_trips, trips, "refused before any I/O");
}

/// An attribute that somebody else left in the item is that limit's trouble, not that of all that share the item.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_of_one_limit_does_not_keep_others_from_deciding() {
    use aws_sdk_dynamodb::types::AttributeValue;
    let client = Client::new().await;
    let key = key();
    assert!(client.take(&one(&key, 1, SECOND, 5)).await.is_allowed());
    let request = raw(&endpoint().await).update_item().table_name(TABLE);
    let request = request.key("pk", AttributeValue::S(tollgate_dynamodb::partition_key::of(&key)));
    let request = request.update_expression("SET #z = :z").expression_attribute_names("#z", "zzz.tat");
    request.expression_attribute_values(":z", AttributeValue::N("5".to_owned())).send().await.unwrap();
    assert_eq!(client.take(&one(&key, 1, SECOND, 5)).await.limits[0].remaining, 3);
    let unreadable = Charges::new(key.clone(), vec![charge("zzz", Terms::new(1, bucket(1, SECOND, 5)), 1)]).unwrap();
    let error = client.limiter.take(&[unreadable]).await.unwrap_err();
    assert!(!error.is_outage() && error.to_string().contains("zzz.f"), "{error}");
    let inspection = admin::inspect(client.limiter.store(), &key).await.unwrap();
    assert_eq!((inspection.item.unwrap().buckets.len(), inspection.raw.unwrap()["zzz.tat"].as_str()), (1, "5"));
    assert_eq!(admin::reset(client.limiter.store(), &key, None).await.unwrap().len(), 1);
}

/// MediaWiki-MCP#557.
#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_steps_back_locks_nobody_out() {
    for back_ms in [11_000, 3_600_000] {
        let client = Client::new().await;
        let charges = one(&key(), 1, SECOND, 5);
        assert!(client.take(&charges).await.is_allowed());
        client.clock.set(tollgate::Timestamp::from_millis(client.clock.now().as_millis() - back_ms));
        let mut waited = Duration::ZERO;
        while let Some(wait) = client.take(&charges).await.retry_after() {
            waited += wait;
            client.clock.advance(wait);
        }
        assert!(waited <= Duration::from_secs(3), "one emission interval and the tolerance: {waited:?}");
    }
}

/// rate-limiter-flexible PR#278: nothing is asked about the table on each cold start.
#[tokio::test(flavor = "multi_thread")]
async fn starting_takes_one_read_and_nothing_else() {
    let connected = connected(&endpoint().await).await;
    let counters = Arc::new(Counters::default());
    let store = DynamoStore::new(&connected, TABLE, Arc::new(SystemClock), counters.clone());
    assert_eq!(counters.counts().round_trips, 0);
    store.warm_up().await.unwrap();
    assert_eq!((counters.counts().round_trips, counters.counts().write_units), (1, 0));
}

/// An operator gives tokens back; the item is rewritten, not deleted.
#[tokio::test(flavor = "multi_thread")]
async fn a_reset_fills_the_bucket_at_once_for_everybody() {
    let client = Client::new().await.forgetting();
    let key = key();
    let charges = costing(&key, 1, 3600 * SECOND, 3, 3);
    assert!(client.take(&charges).await.is_allowed());
    let other = Client::at(client.clock.clone()).await;
    let before = other.limiter.store().read(&key, &[]).await.unwrap().unwrap();
    let limits = admin::reset(other.limiter.store(), &key, None).await.unwrap();
    assert_eq!(limits.len(), 1);
    let after = other.limiter.store().read(&key, &[]).await.unwrap().unwrap();
    assert_ne!(before.buckets[&limits[0]].busy_period, after.buckets[&limits[0]].busy_period);
    assert!(client.take(&charges).await.is_allowed());
    client.advance_ms(3 * 3_600_000 + 1);
    assert!(admin::reset(other.limiter.store(), &key, None).await.unwrap().is_empty(), "nothing to do");
}
