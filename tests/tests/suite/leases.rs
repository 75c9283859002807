//! A leased limit: how often the table is asked, what all processes admit together, and what becomes of what is not spent.

use crate::harness::{Client, SECOND, bucket, charge, costing, key};
use futures_util::future::join_all;
use std::time::Duration;
use tollgate::{Outcome, Source};
use tollgate_core::{Actual, Charges, ItemKey, Terms};
use tollgate_dynamodb::admin::{Order, order};

fn leased(key: &ItemKey, (n, period_ns, burst): (u64, u64, u64), most: u64) -> Charges {
    let terms = Terms::new(1, bucket(n, period_ns, burst));
    Charges::new(key.clone(), vec![charge("limit", terms, 1).leased(most)]).unwrap()
}

/// Calls at a steady rate; how many were admitted.
async fn call(client: &Client, charges: &Charges, calls: u64, every_ms: u64) -> u64 {
    let mut allowed = 0;
    for _ in 0..calls {
        allowed += u64::from(client.take(charges).await.is_allowed());
        client.advance_ms(every_ms);
    }
    allowed
}

#[tokio::test]
async fn a_busy_key_is_written_about_twice_a_second() {
    let client = Client::new().await;
    let charges = leased(&key(), (1_000, SECOND, 1_000), 500);
    let admitted = call(&client, &charges, 5_000, 10).await;
    let counts = client.counts();
    assert_eq!(admitted, 5_000);
    // Fifty seconds at 100 a second; half of the bucket lasts for half a second.
    assert!(counts.write_units <= 110, "{} write units", counts.write_units);
    assert!(counts.leased >= 4_890, "{} by what was taken ahead", counts.leased);
}

#[tokio::test]
async fn a_key_that_is_seldom_asked_for_takes_nothing_ahead() {
    let client = Client::new().await;
    let charges = leased(&key(), (10, SECOND, 1_000), 500);
    assert_eq!(call(&client, &charges, 10, 1_500).await, 10);
    let counts = client.counts();
    assert_eq!((counts.write_units, counts.tokens_ahead, counts.leased), (10, 0, 0));
}

/// However they take ahead and spend, from the same second on: never more than burst and refill.
#[tokio::test]
async fn processes_that_lease_admit_no_more_than_the_limit_and_nearly_all_of_it() {
    let clock = Client::new().await.clock;
    let clients = join_all((0..3).map(|_| Client::at(clock.clone()))).await;
    let charges = leased(&key(), (100, SECOND, 300), 100);
    let mut admitted = 0;
    for _ in 0..400 {
        for client in &clients {
            admitted += u64::from(client.take(&charges).await.is_allowed());
        }
        clock.advance(Duration::from_millis(5));
    }
    // Two seconds: 300 and 200; 1,200 calls were made.
    let bound = 300 + 200;
    let outstanding = 2 * 100;
    assert!((bound - outstanding..=bound).contains(&admitted), "{admitted} of {bound}");
    let (asked, leased) = clients
        .iter()
        .fold((0, 0), |(asked, leased), client| (asked + client.counts().round_trips, leased + client.counts().leased));
    assert!(leased > 300, "{leased} of {admitted} were leased, in {asked} writes");
}

/// Paid for is not enough: ten seconds later the bucket is full again, and what was leased would come on top.
#[tokio::test]
async fn what_is_not_spent_in_time_is_not_spent_on_top_of_a_full_bucket() {
    let client = Client::new().await;
    let (one, all) = (leased(&key(), (10, SECOND, 100), 50), 100);
    assert_eq!(call(&client, &one, 20, 0).await, 20);
    assert!(client.counts().tokens_ahead > 10);
    client.advance_ms(20_000);
    assert_eq!(call(&client, &one, 150, 0).await, all);
}

#[tokio::test]
async fn forty_callers_of_a_leased_limit_take_few_writes_and_are_exact() {
    let client = Client::new().await;
    let ten = leased(&key(), (1, 86_400 * SECOND, 10), 5);
    let decisions = join_all((0..40).map(|_| client.take(&ten))).await;
    assert_eq!(decisions.iter().filter(|decision| decision.is_allowed()).count(), 10);
    assert!(client.counts().write_units <= 4, "{}", client.counts().write_units);
    let mut left: Vec<_> = decisions.iter().filter(|d| d.is_allowed()).map(|d| d.limits[0].remaining).collect();
    left.sort_unstable();
    assert_eq!(left, (0..10).collect::<Vec<_>>(), "each is told what it left");
}

/// A call that another key refuses cost nobody else anything: the next is admitted by what it was charged.
#[tokio::test]
async fn what_a_refused_call_was_charged_is_spent_by_the_next() {
    let client = Client::new().await.forgetting();
    let leased = leased(&key(), (1, 3_600 * SECOND, 10), 5);
    let refusing = costing(&key(), 1, 3_600 * SECOND, 1, 1);
    assert!(client.take(&refusing).await.is_allowed());
    client.advance_ms(2_000);
    let denied = client.take_all(&[leased.clone(), refusing]).await;
    assert_eq!(denied.outcome(), Outcome::Denied);
    let (next, round_trips, _) = client.measured(&leased).await;
    assert_eq!((next.limits[0].source, next.limits[0].remaining, round_trips), (Source::Lease, 9, 0));
}

#[tokio::test]
async fn a_call_that_costs_less_gives_the_rest_to_the_next_and_one_that_costs_more_is_charged() {
    let client = Client::new().await;
    let item = key();
    let terms = Terms::new(1, bucket(1, 3_600 * SECOND, 100));
    let of = |cost| vec![Charges::new(item.clone(), vec![charge("limit", terms.clone(), cost).leased(50)]).unwrap()];
    let (_, taken) = client.limiter.take_unsettled(&of(10)).await.unwrap();
    let settled = client.limiter.settle(&of(10), taken, |_| Some(Actual::Cost(4))).await;
    assert_eq!((settled.limits[0].remaining, client.counts().write_units), (96, 1));
    let (decision, taken) = client.limiter.take_unsettled(&of(6)).await.unwrap();
    assert_eq!((decision.limits[0].source, client.counts().write_units), (Source::Lease, 1));
    let settled = client.limiter.settle(&of(6), taken, |_| Some(Actual::Cost(16))).await;
    assert_eq!((settled.limits[0].remaining, client.counts().write_units), (80, 2));
}

#[tokio::test]
async fn a_ban_is_seen_when_the_lease_is_used_up_or_ten_seconds_old() {
    for waits in [0, 10_000] {
        let client = Client::new().await;
        // So slow that a lease would last for minutes.
        let charges = leased(&key(), (1, 60 * SECOND, 100), 20);
        assert_eq!(call(&client, &charges, 5, 0).await, 5);
        let ban = Order::Ban(client.advance_ms(0) + Duration::from_secs(3_600));
        order(client.limiter.store(), &[charges.item().clone()], &ban).await.unwrap();
        client.advance_ms(waits);
        let passed = call(&client, &charges, 20, 0).await;
        if waits > 0 {
            assert_eq!(passed, 0);
        } else {
            assert!((1..5).contains(&passed), "{passed}");
        }
    }
}

#[tokio::test]
async fn another_revision_is_not_served_from_the_lease_of_an_older_one() {
    let client = Client::new().await;
    let item = key();
    let of = |revision, burst| {
        let terms = Terms::new(revision, bucket(1, 3_600 * SECOND, burst));
        Charges::new(item.clone(), vec![charge("limit", terms, 1).leased(50)]).unwrap()
    };
    for _ in 0..10 {
        client.take(&of(1, 100)).await;
    }
    let newer = client.take(&of(2, 100)).await;
    assert_eq!((newer.limits[0].source, newer.limits[0].terms.revision), (Source::Table, 2));
    // Whoever still has the old policy goes by the newer one.
    let older = client.take(&of(1, 100)).await;
    assert_eq!((older.limits[0].source, older.limits[0].terms.revision), (Source::Table, 2));
}
