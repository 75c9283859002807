//! Logs, and charges that are settled when it is known what a call has come to: in writes, by callers that share nothing, when
//! answers are lost, when nobody settles, when the window has moved on.

use crate::harness::{Client, SECOND, bucket, charge, key};
use crate::through::through;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tollgate::testing::{ManualClock, MemoryStore};
use tollgate::{Clock, Limiter, Outcome, Store, SystemClock};
use tollgate_core::{Actual, Charge, Charges, Figures, ItemKey, LimitName, Log, Span, Terms, Timestamp, Window, Write};
use tollgate_dynamodb::{Error, Result, Settled, Written};

const QUARTER: u64 = 15 * 60 * SECOND;

fn on(item: &ItemKey, figures: impl Into<Figures>, cost: u64) -> Charges {
    Charges::new(item.clone(), vec![charge("limit", Terms::new(1, figures), cost)]).unwrap()
}

/// A charge that can be settled for a minute.
fn reserving(item: &ItemKey, figures: impl Into<Figures>, cost: u64) -> Charges {
    let charge = charge("limit", Terms::new(1, figures), cost);
    let settled_within = Some(Duration::from_secs(60));
    Charges::new(item.clone(), vec![Charge { settled_within, ..charge }]).unwrap()
}

fn five() -> Log {
    Log::new(5, QUARTER).unwrap()
}

async fn left<S: Store>(limiter: &Limiter<S>, item: &ItemKey, figures: impl Into<Figures>) -> u64 {
    limiter.take(&[on(item, figures, 0)]).await.unwrap().limits[0].remaining
}

async fn spend<S: Store>(limiter: &Limiter<S>, charges: Charges, actual: u64) -> Settled {
    let charges = [charges];
    let (decision, taken) = limiter.take_unsettled(&charges).await.unwrap();
    assert!(decision.is_allowed(), "{decision:?}");
    limiter.settle(&charges, taken, |_| Some(Actual::Cost(actual))).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_takes_one_write_if_the_process_has_seen_the_key_and_two_if_not() {
    let client = Client::new().await;
    let attempt = on(&key(), five(), 1);
    for call in 0..20 {
        let (decision, round_trips, write_units) = client.measured(&attempt).await;
        assert_eq!((decision.is_allowed(), round_trips, write_units), (true, 1, 1), "call {call}");
        // Five fit any quarter of an hour; from the sixth on the log is full of what is no longer live.
        client.advance_ms(200_000);
    }
    let stranger = Client::at(client.clock.clone()).await;
    let (decision, round_trips, _) = stranger.measured(&attempt).await;
    assert_eq!((decision.is_allowed(), round_trips), (true, 2), "it has to learn what is no longer live");
    let wait = loop {
        let decision = client.take(&attempt).await;
        if let Some(wait) = decision.retry_after() {
            break wait;
        }
    };
    client.clock.advance(wait - Duration::from_nanos(1));
    assert_eq!(client.take(&attempt).await.retry_after(), Some(Duration::from_nanos(1)));
    client.clock.advance(Duration::from_nanos(1));
    assert!(client.take(&attempt).await.is_allowed());
}

/// better-auth#8067 in a limiter: what is under way counts, whoever tries.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fifty_callers_that_share_nothing_try_five_times_in_one_write_each() {
    let (item, clock) = (key(), ManualClock::new(SystemClock.now()));
    let mut callers = Vec::new();
    for _ in 0..50 {
        let (client, attempt) = (Client::at(clock.clone()).await, on(&item, five(), 1));
        callers.push(tokio::spawn(async move {
            let (decision, round_trips, _) = client.measured(&attempt).await;
            (u64::from(decision.is_allowed()), round_trips)
        }));
    }
    let (mut tried, mut round_trips) = (0, 0);
    for caller in callers {
        let (allowed, trips) = caller.await.unwrap();
        (tried, round_trips) = (tried + allowed, round_trips + trips);
    }
    assert_eq!((tried, round_trips), (5, 50));
}

/// A store in memory that applies so many writes and says that it does not know.
#[derive(Debug, Clone)]
struct Deaf {
    memory: MemoryStore,
    losses: Arc<AtomicU32>,
}

impl Deaf {
    fn new(clock: &ManualClock) -> Self {
        Self { memory: MemoryStore::new(clock.clone()), losses: Arc::default() }
    }
}

impl Store for Deaf {
    through!(memory: moment, meter, read, transact);

    async fn write(&self, key: &ItemKey, write: &Write) -> Result<Written> {
        let written = self.memory.write(key, write).await?;
        let is_lost = self.losses.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        if is_lost { Err(Error::Ambiguous("the answer is lost".to_owned())) } else { Ok(written) }
    }
}

fn every_algorithm() -> [Figures; 3] {
    let window = Window::new(10, Span::Every(3600 * SECOND), true).unwrap().with_debt(10).unwrap();
    let bucket = bucket(10, 3600 * SECOND, 10).with_debt(10).unwrap();
    [bucket.into(), window.into(), Log::new(10, 3600 * SECOND).unwrap().into()]
}

#[tokio::test]
async fn a_settlement_whose_answer_is_lost_is_sent_again_and_counts_once() {
    for figures in every_algorithm() {
        for (actual, expected) in [(1, 7), (6, 2), (4, 4)] {
            let clock = ManualClock::new(Timestamp::from_secs(1_767_225_600));
            let (store, item) = (Deaf::new(&clock), key());
            let limiter = Limiter::new(store.clone());
            // Of ten, two by others, and four by the estimate.
            limiter.take(&[on(&item, figures, 2)]).await.unwrap();
            let charges = [reserving(&item, figures, 4)];
            let (_, taken) = limiter.take_unsettled(&charges).await.unwrap();
            store.losses.store(1, Ordering::SeqCst);
            let settled = limiter.settle(&charges, taken, |_| Some(Actual::Cost(actual))).await;
            assert_eq!(settled.lost, 0, "{figures}");
            assert_eq!(left(&Limiter::new(store), &item, figures).await, expected, "{figures}, {actual}");
        }
    }
}

/// What has no entry cannot be told from what was not applied: it is settled once or lost, and never twice.
#[tokio::test]
async fn without_a_reservation_a_lost_answer_is_a_lost_settlement() {
    let clock = ManualClock::new(Timestamp::from_secs(1_767_225_600));
    let (store, item, hourly) = (Deaf::new(&clock), key(), bucket(10, 3600 * SECOND, 10));
    let limiter = Limiter::new(store.clone());
    let charges = [on(&item, hourly, 4)];
    let (_, taken) = limiter.take_unsettled(&charges).await.unwrap();
    store.losses.store(1, Ordering::SeqCst);
    let settled = limiter.settle(&charges, taken, |_| Some(Actual::Cost(1))).await;
    assert_eq!((settled.lost, left(&limiter, &item, hourly).await), (1, 9), "it had been applied");
}

#[tokio::test(flavor = "multi_thread")]
async fn reservations_that_nobody_settles_make_room_when_their_time_is_over() {
    let client = Client::new().await;
    let (item, many) = (key(), bucket(1000, 3600 * SECOND, 1000));
    let reserved = async |item: &ItemKey| {
        let found = client.limiter.store().read(item, &[]).await.unwrap().unwrap();
        found.buckets["limit"].entries.len()
    };
    for _ in 0..40 {
        assert!(client.take(&reserving(&item, many, 1)).await.is_allowed(), "beyond 32 it is charged all the same");
    }
    assert_eq!(reserved(&item).await, 32);
    // One beyond is settled, too, if its answer arrives.
    let settled = spend(&client.limiter, reserving(&item, many, 5), 0).await;
    assert_eq!((settled.lost, settled.late.len(), left(&client.limiter, &item, many).await), (0, 0, 960));
    client.advance_ms(60_000);
    let (decision, round_trips, _) = client.measured(&reserving(&item, many, 1)).await;
    assert_eq!((decision.is_allowed(), round_trips, reserved(&item).await), (true, 1, 1));
}

/// PostHog PR#83938, express-rate-limit PR#647: what was charged to one window is not credited to the next.
#[tokio::test(flavor = "multi_thread")]
async fn a_settlement_after_the_window_moved_on_credits_nothing() {
    for figures in every_algorithm() {
        let client =
            Client::at(ManualClock::new(Timestamp::from_secs(SystemClock.now().as_secs() / 3600 * 3600 + 7200))).await;
        let item = key();
        let charges = [reserving(&item, figures, 8)];
        let (_, taken) = client.limiter.take_unsettled(&charges).await.unwrap();
        client.clock.advance(Duration::from_secs(2 * 3600));
        assert!(client.take(&on(&item, figures, 10)).await.is_allowed(), "all is there again");
        client.limiter.settle(&charges, taken, |_| Some(Actual::Cost(0))).await;
        let stranger = Client::at(client.clock.clone()).await;
        let decision = stranger.take(&on(&item, figures, 1)).await;
        assert_eq!(decision.outcome(), Outcome::Denied, "{figures}: {decision:?}");
    }
}

/// A window has no slots, so giving back conflicts with nobody.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_calls_that_succeed_at_once_give_a_window_back_in_one_write_each() {
    let (item, clock) = (key(), ManualClock::new(SystemClock.now()));
    let window = Window::new(1000, Span::Every(3600 * SECOND), true).unwrap();
    let mut callers = Vec::new();
    for _ in 0..40 {
        let (client, charges) = (Client::at(clock.clone()).await, [on(&item, window, 1)]);
        callers.push(tokio::spawn(async move {
            let before = client.counts();
            let (decision, taken) = client.limiter.take_unsettled(&charges).await.unwrap();
            assert!(decision.is_allowed());
            let settled = client.limiter.settle(&charges, taken, |_| Some(Actual::Cost(0))).await;
            (settled.lost, client.counts().round_trips - before.round_trips)
        }));
    }
    for caller in callers {
        assert_eq!(caller.await.unwrap(), (0, 2), "a charge, and giving it back");
    }
    assert_eq!(left(&Client::at(clock).await.limiter, &item, window).await, 1000);
}

/// Whoever settles after his time is told so, and nothing is charged to nobody.
#[tokio::test(flavor = "multi_thread")]
async fn a_settlement_that_finds_its_entry_gone_is_told_as_late() {
    let client = Client::new().await;
    let (item, fast) = (key(), bucket(10, SECOND, 10).with_debt(1000).unwrap());
    let charges = [reserving(&item, fast, 1)];
    let (_, taken) = client.limiter.take_unsettled(&charges).await.unwrap();
    let stored = client.limiter.store().read(&item, &[]).await.unwrap().unwrap();
    assert!(stored.expires_at.unwrap() >= client.clock.now().as_secs() + 60 + 360, "it is remembered until then");
    tollgate_dynamodb::admin::reset(client.limiter.store(), &item, None).await.unwrap();
    let settled =
        Client::at(client.clock.clone()).await.limiter.settle(&charges, taken, |_| Some(Actual::Cost(500))).await;
    assert_eq!((settled.late, settled.lost), (vec![LimitName::new("limit").unwrap()], 0));
}

/// A dear call goes into debt and no further, and the item is remembered until that is paid.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_call_costs_more_is_charged_up_to_the_debt_and_told_beyond_it() {
    let client = Client::new().await;
    let (item, hourly) = (key(), bucket(10, 3600 * SECOND, 10).with_debt(5).unwrap());
    let settled = spend(&client.limiter, reserving(&item, hourly, 4), 100).await;
    assert_eq!(settled.beyond, [(LimitName::new("limit").unwrap(), 85)], "ten and five are all there is");
    assert_eq!(client.counts().tokens_beyond_debt, 85);
    let decision = client.take(&on(&item, hourly, 1)).await;
    assert_eq!(decision.retry_after(), Some(Duration::from_secs(6 * 360)), "five of debt, and one");
    let stored = client.limiter.store().read(&item, &[]).await.unwrap().unwrap();
    let paid = client.clock.now() + Duration::from_secs(15 * 360);
    assert!(stored.expires_at.unwrap() >= paid.as_secs());
    assert!(stored.buckets["limit"].pulled_back(client.clock.now()).is_none(), "that is no clock that was wrong");
}

/// A success takes out what failed before it, and what is under way since stays.
#[tokio::test]
async fn a_success_clears_what_failed_before_it_and_leaves_what_was_entered_after() {
    let clock = ManualClock::new(Timestamp::from_secs(1_767_225_600));
    let (limiter, item) = (Limiter::new(MemoryStore::new(clock.clone())), key());
    let enter = async || {
        clock.advance(Duration::from_secs(1));
        let charges = [on(&item, five(), 1)];
        let (decision, taken) = limiter.take_unsettled(&charges).await.unwrap();
        assert!(decision.is_allowed());
        (charges, taken)
    };
    enter().await;
    enter().await;
    let right = enter().await;
    let later = enter().await;
    assert_eq!(left(&limiter, &item, five()).await, 1);
    limiter.settle(&right.0, right.1, |_| Some(Actual::Clear)).await;
    assert_eq!(left(&limiter, &item, five()).await, 4, "the one that is under way counts");
    limiter.settle(&later.0, later.1, |_| Some(Actual::Cost(0))).await;
    assert_eq!(left(&limiter, &item, five()).await, 5);
}
