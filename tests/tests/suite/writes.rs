//! What a decision costs, counted on the wire, and what the forms leave behind.

use crate::harness::{Client, SECOND, bucket, charge, costing, key, one};
use std::num::NonZeroU16;
use std::time::Duration;
use tollgate::{Outcome, Source, Store};
use tollgate_core::{Charge, Charges, ItemKey, LimitName, OnChange, Terms, Timestamp};

#[tokio::test(flavor = "multi_thread")]
async fn new_steady_idle_and_denied_take_one_write_each_and_a_denial_that_is_known_none() {
    let client = Client::new().await;
    let charges = one(&key(), 10, SECOND, 10);
    for i in 0..10 {
        let (decision, round_trips, write_units) = client.measured(&charges).await;
        assert_eq!((decision.is_allowed(), round_trips, write_units), (true, 1, 1), "call {i}");
    }
    for _ in 0..3 {
        let (decision, round_trips, write_units) = client.measured(&charges).await;
        assert_eq!((decision.is_allowed(), round_trips, write_units), (false, 0, 0), "known to be empty");
        assert_eq!(decision.limits[0].source, Source::Cache);
    }
    let stranger = Client::at(client.clock.clone()).await.forgetting();
    for _ in 0..3 {
        let (decision, round_trips, write_units) = stranger.measured(&charges).await;
        assert_eq!((decision.is_allowed(), round_trips, write_units), (false, 1, 1), "denied by the table");
        assert_eq!(decision.limits[0].source, Source::Table);
    }
    client.advance_ms(60_000);
    let (decision, round_trips, write_units) = client.measured(&charges).await;
    assert_eq!((decision.is_allowed(), round_trips, write_units), (true, 1, 1), "idle");
    assert_eq!(decision.limits[0].remaining, 9);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_knows_nothing_of_an_idle_key_takes_two_writes_once() {
    let first = Client::new().await;
    let charges = one(&key(), 10, SECOND, 10);
    first.take(&charges).await;
    let second = Client::at(first.clock.clone()).await;
    second.advance_ms(60_000);
    let costs = [second.measured(&charges).await.1, second.measured(&charges).await.1];
    assert_eq!(costs, [2, 1]);
    assert_eq!(second.counts().mispredicted, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn three_limits_of_one_key_are_one_item_and_one_write_all_or_nothing() {
    let client = Client::new().await;
    let key = key();
    let three = |costs: [u64; 3]| {
        let terms = [bucket(10, SECOND, 10), bucket(1000, 3600 * SECOND, 1000), bucket(3, 86_400 * SECOND, 3)];
        let named = ["second", "hour", "day"].into_iter().zip(terms).zip(costs);
        Charges::new(key.clone(), named.map(|((n, t), c)| charge(n, Terms::new(1, t), c)).collect()).unwrap()
    };
    for left in [2, 1, 0] {
        let (decision, round_trips, write_units) = client.measured(&three([1, 1, 1])).await;
        assert_eq!((decision.is_allowed(), round_trips, write_units), (true, 1, 1));
        assert_eq!(decision.limits[2].remaining, left);
    }
    let client = client.forgetting();
    let (denied, round_trips, write_units) = client.measured(&three([1, 1, 1])).await;
    assert_eq!((round_trips, write_units), (1, 1));
    let outcomes: Vec<_> = denied.limits.iter().map(|l| l.outcome).collect();
    assert_eq!(outcomes, [Outcome::Allowed, Outcome::Allowed, Outcome::Denied]);
    assert_eq!(denied.retry_after(), Some(Duration::from_secs(28_800)));
    // What the others have is untouched, and every limit's state is told.
    let seen = client.take(&three([0, 0, 0])).await;
    assert_eq!(seen.limits.iter().map(|l| l.remaining).collect::<Vec<_>>(), [7, 997, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cost_of_0_observes_and_writes_nothing() {
    let client = Client::new().await;
    let key = key();
    let (seen, round_trips, write_units) = client.measured(&costing(&key, 5, SECOND, 5, 0)).await;
    assert_eq!((seen.is_allowed(), seen.limits[0].remaining, round_trips, write_units), (true, 5, 1, 0));
    assert!(client.limiter.store().read(&key, &[]).await.unwrap().is_none(), "no item came of it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_revision_carries_debt_over_and_an_older_one_follows() {
    let client = Client::new().await;
    let key = key();
    let at = |revision, n, burst| {
        Charges::new(key.clone(), vec![charge("limit", Terms::new(revision, bucket(n, 3600 * SECOND, burst)), 1)])
            .unwrap()
    };
    for _ in 0..10 {
        assert!(client.take(&at(1, 10, 10)).await.is_allowed());
    }
    // 10/h -> 1000/s: what was a wait of six minutes is one of a millisecond.
    let raised =
        Charges::new(key.clone(), vec![charge("limit", Terms::new(2, bucket(1000, SECOND, 1000)), 1)]).unwrap();
    let (denied, round_trips, _) = client.measured(&raised).await;
    assert_eq!((denied.retry_after(), round_trips), (Some(Duration::from_millis(1)), 1));
    client.advance_ms(1);
    assert!(client.take(&raised).await.is_allowed(), "the wait was true");
    client.advance_ms(500);
    let (old, round_trips, _) = client.measured(&at(1, 10, 10)).await;
    assert_eq!((old.is_allowed(), old.limits[0].remaining), (true, 499), "an older caller goes by the newer figures");
    assert_eq!(round_trips, 1, "and knows them from what it last saw");
    let stranger = Client::at(client.clock.clone()).await;
    let costs = [stranger.measured(&at(1, 10, 10)).await.1, stranger.measured(&at(1, 10, 10)).await.1];
    assert_eq!(costs, [2, 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_of_one_revision_share_one_debt_and_a_forgotten_bump_is_counted() {
    let client = Client::new().await;
    let key = key();
    let on = |plan: &str, n, burst| {
        let terms = Terms::new(1, bucket(n, 3600 * SECOND, burst)).on_plan(plan);
        Charges::new(key.clone(), vec![charge("limit", terms, 1)]).unwrap()
    };
    let mut allowed = 0;
    for i in 0..40 {
        let charges = if i % 2 == 0 { on("free", 5, 5) } else { on("pro", 10, 10) };
        allowed += u32::from(client.take(&charges).await.is_allowed());
    }
    assert_eq!(allowed, 10, "alternating a stale and a fresh token gains nothing");
    assert_eq!(client.counts().revision_conflicts, 0);
    client.take(&on("pro", 11, 11)).await;
    assert_eq!(client.counts().revision_conflicts, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn reset_and_keep_are_what_they_say() {
    for (on_change, expected) in [(OnChange::Reset, 19), (OnChange::Keep, 15), (OnChange::Proportional, 11)] {
        let client = Client::new().await;
        let key = key();
        assert!(client.take(&costing(&key, 10, 3600 * SECOND, 10, 4)).await.is_allowed());
        let charge = Charge { on_change, ..charge("limit", Terms::new(2, bucket(20, 3600 * SECOND, 20)), 1) };
        let decision = client.take(&Charges::new(key, vec![charge]).unwrap()).await;
        assert_eq!(decision.limits[0].remaining, expected, "{on_change:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_left_by_a_clock_that_was_ahead_is_pulled_back_and_one_left_by_an_agreeing_clock_is_not() {
    let client = Client::new().await;
    let (now, charges) = (client.clock_now(), one(&key(), 1, SECOND, 5));
    client.clock.set(Timestamp::from_millis(now.as_millis() + 3_600_000));
    assert!(client.take(&charges).await.is_allowed());
    client.clock.set(now);
    let denied = client.take(&charges).await;
    assert_eq!(denied.retry_after(), Some(Duration::from_secs(1)), "one emission interval from empty");
    assert_eq!(client.counts().pulled_back, 1);
    client.advance_ms(1000);
    assert!(client.take(&charges).await.is_allowed(), "the wait was true");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_that_gets_room_while_a_denial_settles_is_charged_or_not_allowed() {
    let client = Client::new().await.forgetting();
    let key = key();
    let plan = |plan: &str, n| Terms::new(1, bucket(n, 3600 * SECOND, n)).on_plan(plan);
    let both = |a: Terms| {
        let b = charge("b", Terms::new(1, bucket(1, 3600 * SECOND, 1)), 1);
        Charges::new(key.clone(), vec![charge("a", a, 1), b]).unwrap()
    };
    assert!(client.take(&both(plan("free", 50))).await.is_allowed());
    assert!(!client.take(&both(plan("free", 50))).await.is_allowed(), "b denies");
    // Its memory says that b denies and that a has to move to the other plan; meanwhile an operator gives b its token back.
    let b = tollgate_core::LimitName::new("b").unwrap();
    let other = Client::at(client.clock.clone()).await;
    tollgate_dynamodb::admin::reset(other.limiter.store(), &key, Some(&b)).await.unwrap();
    let decision = client.take(&both(plan("pro", 500))).await;
    let left: Vec<_> = decision.limits.iter().map(|l| l.remaining).collect();
    assert_eq!((decision.is_allowed(), left), (true, vec![498, 0]), "charged, on both");
    assert!(!client.take(&both(plan("pro", 500))).await.is_allowed());
}

#[tokio::test(flavor = "multi_thread")]
async fn as_many_limits_as_one_write_carries_and_one_more_is_refused_before_any_io() {
    let client = Client::new().await;
    let many = |count: usize| {
        let limit =
            |i| charge(&format!("limit-with-a-rather-long-name-{i}"), Terms::new(1, bucket(7, 3600 * SECOND, 7)), 1);
        Charges::new(key(), (0..count).map(limit).collect())
    };
    let most = many(Charges::MOST_LIMITS).unwrap();
    for left in (0..7).rev() {
        assert!(client.take(&most).await.limits.iter().all(|l| l.remaining == left));
    }
    assert!(!client.take(&most).await.is_allowed());
    client.advance_ms(24 * 3_600_000);
    assert!(client.take(&most).await.is_allowed(), "idle");
    assert!(many(Charges::MOST_LIMITS + 1).is_err());
}

impl Client {
    pub fn clock_now(&self) -> Timestamp {
        tollgate::Clock::now(&self.clock)
    }
}

/// Whole, or divided among shards: then a second one is asked, whatever is known of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_limit_that_does_not_deny_from_memory_asks_the_table_each_time() {
    let terms = Terms::new(1, bucket(2, 86_400 * SECOND, 2));
    let of = |item: ItemKey, shards, deny_cache| {
        let charge = Charge { deny_cache, ..charge("limit", terms.clone(), 1) };
        Charges::new(item, vec![charge]).unwrap().sharded(NonZeroU16::new(shards))
    };
    for (shards, asked) in [(0, 1), (2, 2)] {
        let (client, item) = (Client::new().await, ItemKey::own(key().key, LimitName::new("limit").unwrap()));
        let knowing = of(item.clone(), shards, true);
        while client.take(&knowing).await.is_allowed() {}
        assert_eq!(client.measured(&knowing).await.1, 0, "{shards}");
        for _ in 0..3 {
            let (decision, round_trips, _) = client.measured(&of(item.clone(), shards, false)).await;
            assert_eq!((decision.outcome(), round_trips), (Outcome::Denied, asked), "{shards}");
            assert_eq!(decision.limits[0].source, Source::Table);
        }
    }
}
