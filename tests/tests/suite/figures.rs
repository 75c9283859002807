//! The figures of the documents that the project grew from, on the store.

use crate::harness::{Client, SECOND, key, one};
use std::time::Duration;

#[tokio::test(flavor = "multi_thread")]
async fn one_request_each_900_ms_for_90_s_on_an_empty_bucket_of_1_per_second_passes_90_times() {
    let client = Client::new().await;
    let charges = one(&key(), 1, SECOND, 10);
    for _ in 0..10 {
        assert!(client.take(&charges).await.is_allowed());
    }
    let mut allowed = 0;
    for _ in 0..100 {
        client.advance_ms(900);
        allowed += u32::from(client.take(&charges).await.is_allowed());
    }
    assert_eq!(allowed, 90, "no fraction is lost");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_a_minute_with_burst_20() {
    let (client, key) = (Client::new().await, key());
    let charges = one(&key, 100, 60 * SECOND, 20);
    let mut allowed = 0;
    let mut wait = None;
    for _ in 0..25 {
        let decision = client.take(&charges).await;
        allowed += u32::from(decision.is_allowed());
        wait = decision.retry_after();
    }
    assert_eq!((allowed, wait), (20, Some(Duration::from_millis(600))));
    let mut allowed = 0;
    for _ in 0..600 {
        client.advance_ms(100);
        allowed += u32::from(client.take(&charges).await.is_allowed());
    }
    assert_eq!(allowed, 100);
}

#[tokio::test(flavor = "multi_thread")]
async fn twelve_requests_10_ms_apart_on_10_tokens_at_5_a_second() {
    let (client, key) = (Client::new().await, key());
    let charges = one(&key, 5, SECOND, 10);
    let mut left = Vec::new();
    let mut waits = Vec::new();
    for i in 0..12 {
        if i > 0 {
            client.advance_ms(10);
        }
        let decision = client.take(&charges).await;
        match decision.retry_after() {
            None => left.push(decision.limits[0].remaining),
            Some(wait) => waits.push(wait.as_millis()),
        }
    }
    assert_eq!(left, [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
    assert_eq!(waits, [100, 90]);
    client.advance_ms(1000);
    let decision = client.take(&charges).await;
    assert_eq!((decision.is_allowed(), decision.limits[0].remaining), (true, 4));
}
