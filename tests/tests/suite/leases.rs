//! A leased limit: how often the table is asked, what all processes admit together, and what becomes of what is not spent.

use crate::harness::{self, Client, SECOND, bucket, charge, costing};
use crate::through::through;
use futures_util::future::join_all;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tollgate::testing::{ManualClock, MemoryStore};
use tollgate::{Decision, Limiter, Outcome, Source, Store, Timestamp};
use tollgate_core::take::Moment;
use tollgate_core::{Actual, Charges, Figures, ItemKey, LimitName, Override, Span, Terms, Window, Write};
use tollgate_dynamodb::admin::{self, Order};
use tollgate_dynamodb::{Result, Written};

const HOUR: u64 = 3_600 * SECOND;
const DAY: u64 = 24 * HOUR;

/// The item of the limit of a key that nobody else has.
pub fn key() -> ItemKey {
    ItemKey::own(harness::key().key, LimitName::new("limit").unwrap())
}

pub fn leased(key: &ItemKey, (n, period_ns, burst): (u64, u64, u64), most: u64) -> Charges {
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

/// CVE-2026-27695: so a busy key does not throttle its partition.
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
        admin::order(client.limiter.store(), &[charges.item().clone()], &ban).await.unwrap();
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

fn clock() -> ManualClock {
    ManualClock::new(Timestamp::from_secs(1_767_225_600))
}
fn process<S: Store + Clone>(store: &S) -> Limiter<S> {
    Limiter::new(store.clone()).with_deadline(Duration::from_secs(60)).denying_from_memory_for(Duration::ZERO)
}
fn of(item: &ItemKey, terms: &Terms, cost: u64, lease: u64) -> Charges {
    let charge = charge("limit", terms.clone(), cost);
    let charge = if lease > 0 { charge.leased(lease) } else { charge };
    Charges::new(item.clone(), vec![charge]).unwrap()
}
async fn take<S: Store>(l: &Limiter<S>, c: &Charges) -> Decision {
    l.take(std::slice::from_ref(c)).await.unwrap()
}
async fn admitted<S: Store>(l: &Limiter<S>, c: &Charges, calls: u64) -> u64 {
    let mut n = 0;
    for _ in 0..calls {
        n += u64::from(take(l, c).await.is_allowed());
    }
    n
}

/// A newer revision that does not lease gives back to the table.
#[tokio::test]
async fn nobody_leases_of_a_bucket_that_a_revision_without_leases_has_charged() {
    let clock = clock();
    let store = MemoryStore::new(clock.clone());
    let (item, figures) = (key(), bucket(1, SECOND, 20));
    let (old, new) = (process(&store), process(&store));
    let newer = of(&item, &Terms::new(2, figures), 5, 0);
    let older = of(&item, &Terms::new(1, figures), 1, 10);
    let (_, taken) = new.take_unsettled(std::slice::from_ref(&newer)).await.unwrap();
    assert_eq!(admitted(&old, &older, 4).await, 4);
    new.cancel(std::slice::from_ref(&newer), taken).await;
    clock.advance(Duration::from_secs(7));
    let all = of(&item, &Terms::new(2, figures), 20, 0);
    let at_once = 20 * admitted(&new, &all, 1).await + admitted(&old, &older, 20).await;
    assert!(at_once <= 20, "{at_once} at one instant of a burst of 20");
}

#[tokio::test]
async fn nobody_leases_under_an_operators_figures() {
    let clock = clock();
    let store = MemoryStore::new(clock.clone());
    let (item, figures) = (key(), bucket(1, SECOND, 20));
    let (old, new) = (process(&store), process(&store));
    let older = of(&item, &Terms::new(1, figures), 5, 0);
    let newer = of(&item, &Terms::new(2, figures), 1, 10);
    assert!(take(&old, &of(&item, &Terms::new(1, figures), 1, 0)).await.is_allowed());
    clock.advance(Duration::from_secs(2));
    let over = Override { figures: figures.into(), until: Timestamp::from_secs(1_767_225_600 + 3_600) };
    let order = Order::Override(LimitName::new("limit").unwrap(), over);
    admin::order(&store, std::slice::from_ref(&item), &order).await.unwrap();
    let (_, taken) = old.take_unsettled(std::slice::from_ref(&older)).await.unwrap();
    assert_eq!(admitted(&new, &newer, 4).await, 4);
    old.cancel(std::slice::from_ref(&older), taken).await;
    clock.advance(Duration::from_secs(7));
    let all = of(&item, &Terms::new(1, figures), 20, 0);
    let at_once = 20 * admitted(&old, &all, 1).await + admitted(&new, &newer, 20).await;
    assert!(at_once <= 20, "{at_once} at one instant of a burst of 20");
}

/// Debt under slow figures moves in tokens when they end.
#[tokio::test]
async fn a_key_is_not_locked_after_an_override_has_ended() {
    for lease in [0, 5] {
        let clock = clock();
        let store = MemoryStore::new(clock.clone());
        let item = key();
        let l = process(&store);
        let fast = of(&item, &Terms::new(1, bucket(1_000, SECOND, 1_000)), 1, lease);
        assert!(take(&l, &fast).await.is_allowed());
        let name = LimitName::new("limit").unwrap();
        let until = Timestamp::from_secs(1_767_225_600 + 60);
        let over = Override { figures: bucket(10, HOUR, 10).into(), until };
        admin::order(&store, std::slice::from_ref(&item), &Order::Override(name, over)).await.unwrap();
        admitted(&l, &fast, 40).await;
        clock.advance(Duration::from_secs(120));
        let told = take(&l, &fast).await;
        assert!(told.is_allowed(), "lease {lease}: wait {:?}", told.retry_after());
    }
}

/// Calls in bursts of ten every 20 s: how many are admitted until one is denied.
async fn until_denied(figures: impl Into<Figures>, lease: u64) -> u64 {
    let clock = clock();
    let store = MemoryStore::new(clock.clone());
    let l = process(&store);
    let one = of(&key(), &Terms::new(1, figures), 1, lease);
    let mut all = 0;
    loop {
        for _ in 0..10 {
            if !take(&l, &one).await.is_allowed() {
                return all;
            }
            all += 1;
        }
        clock.advance(Duration::from_secs(20));
    }
}

#[tokio::test]
async fn what_is_not_spent_of_a_window_is_not_lost_for_its_whole_length() {
    let month = || Window::new(1_000, Span::Every(30 * DAY), false).unwrap();
    let (without, with) = (until_denied(month(), 0).await, until_denied(month(), 100).await);
    assert_eq!(without, 1_000);
    assert!(with >= 900, "{with} of 1,000, at most 100 may be held");
}

#[tokio::test]
async fn what_is_not_spent_of_a_slow_bucket_is_not_lost_for_a_day() {
    let daily = || bucket(1_000, DAY, 1_000);
    let (without, with) = (until_denied(daily(), 0).await, until_denied(daily(), 100).await);
    assert!(without >= 1_000);
    assert!(with >= without - 100, "{with} of {without}, at most 100 may be held");
}

#[tokio::test]
async fn a_process_holds_no_more_than_its_lease() {
    let store = MemoryStore::new(clock());
    let l = process(&store);
    let (item, terms) = (key(), Terms::new(1, bucket(1, HOUR, 100_000)));
    let mut spent = 0;
    let mut worst = 0;
    for _ in 0..4_000_u64 {
        let cost = [1, 7, 30, 45, 49][usize::try_from(fastrand::u64(0..5)).unwrap()];
        if take(&l, &of(&item, &terms, cost, 50)).await.is_allowed() {
            spent += cost;
        }
        let left = store.item(&item).unwrap().buckets.values().next().unwrap().clone();
        let charged = u64::try_from((left.tat.0 - i128::from(1_767_225_600 * SECOND)) / i128::from(HOUR)).unwrap();
        worst = worst.max(charged - spent);
    }
    assert!(worst <= 50, "{worst} taken and not spent, lease 50");
}

/// It could be spent without asking the table, and a transaction keeps the others waiting.
#[tokio::test]
async fn a_leased_limit_is_in_no_transaction() {
    let store = MemoryStore::new(clock());
    let l = process(&store);
    let terms = Terms::new(1, bucket(1, HOUR, 1_000));
    let leased = of(&key(), &terms, 1, 50);
    let atomic = Charges::new(key(), vec![charge("other", terms.clone(), 1)]).unwrap().atomically(true);
    admitted(&l, &leased, 4).await;
    let all = [leased.clone(), atomic];
    let told = l.take(&all).await.unwrap();
    assert_eq!(told.limits[0].source, Source::Lease);
}

/// A store that hangs when it is told to.
#[derive(Debug, Clone)]
struct Odd {
    memory: MemoryStore,
    hangs: Arc<AtomicBool>,
}

impl Odd {
    fn new(clock: ManualClock) -> Self {
        Self { memory: MemoryStore::new(clock), hangs: Arc::default() }
    }
}

impl Store for Odd {
    through!(memory: moment, meter, read, transact);

    async fn write(&self, key: &ItemKey, write: &Write) -> Result<Written> {
        if self.hangs.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        self.memory.write(key, write).await
    }
}

#[tokio::test]
async fn a_leased_call_that_cost_what_was_thought_is_not_lost_in_an_outage() {
    let store = Odd::new(clock());
    let l = Limiter::new(store.clone()).with_deadline(Duration::from_millis(5));
    let terms = Terms::new(1, bucket(1, HOUR, 1_000));
    let one = of(&key(), &terms, 1, 50);
    admitted(&l, &one, 4).await;
    store.hangs.store(true, Ordering::SeqCst);
    let other = of(&key(), &terms, 1, 0);
    for _ in 0..6 {
        let _ = l.take(std::slice::from_ref(&other)).await;
    }
    let (decision, taken) = l.take_unsettled(std::slice::from_ref(&one)).await.unwrap();
    assert_eq!(decision.limits[0].source, Source::Lease);
    let settled = l.settle(std::slice::from_ref(&one), taken, |_| Some(Actual::Cost(1))).await;
    assert_eq!(settled.lost, 0);
}

#[tokio::test]
async fn nothing_is_lost_under_steady_load() {
    for (rate, burst, lease) in [(100, 300, 100), (100, 100, 100), (1_000, 1_000, 500), (1_000, 100, 500)] {
        let clock = clock();
        let store = MemoryStore::new(clock.clone());
        let all: Vec<_> = (0..3).map(|_| process(&store)).collect();
        let one = of(&key(), &Terms::new(1, bucket(rate, SECOND, burst)), 1, lease);
        let mut passed = 0;
        // Each calls twice as often as the limit is; 20 s.
        for _ in 0..(20 * 2 * rate) {
            for l in &all {
                passed += admitted(l, &one, 1).await;
            }
            clock.advance(Duration::from_nanos(SECOND / (2 * rate)));
        }
        let bound = burst + 20 * rate;
        assert!(passed <= bound && passed * 100 >= bound * 95, "{passed} of {bound}");
    }
}

/// The same table by a clock that is so many nanoseconds ahead.
#[derive(Debug, Clone)]
struct Skewed(MemoryStore, i64);

impl Store for Skewed {
    through!(0: meter, read, transact);

    fn moment(&self) -> Moment {
        let m = self.0.moment();
        Moment { now: m.now.offset_by(self.1), ..m }
    }
    async fn write(&self, key: &ItemKey, write: &Write) -> Result<Written> {
        // Others are in between.
        if fastrand::u8(0..3) == 0 {
            tokio::task::yield_now().await;
        }
        let written = self.0.write(key, write).await;
        if fastrand::u8(0..3) == 0 {
            tokio::task::yield_now().await;
        }
        written
    }
}

/// Calls at once, costs, plans, refusals elsewhere, settlements, bans, expiry, restarts, clocks apart.
#[tokio::test]
async fn whatever_processes_do_at_once_they_admit_no_more_than_the_limit() {
    for seed in 0..400_u64 {
        fastrand::seed(seed);
        let apart = seed % 2 == 1;
        let clock = clock();
        let store = MemoryStore::new(clock.clone());
        let offsets: [i64; 3] = if apart { [-1_000_000_000, 0, 1_000_000_000] } else { [0; 3] };
        let mut all: Vec<_> = offsets.iter().map(|o| process(&Skewed(store.clone(), *o))).collect();
        let item = key();
        let plans = 1 + usize::from(seed % 4 > 1);
        let figs: Vec<_> =
            (0..plans).map(|_| bucket([1, 2, 4, 50][fastrand::usize(0..4)], SECOND, fastrand::u64(2..30))).collect();
        let terms: Vec<_> = figs.iter().zip(["a", "b"]).map(|(f, n)| Terms::new(1, *f).on_plan(n)).collect();
        let full = Charges::new(key(), vec![charge("full", Terms::new(1, bucket(1, DAY, 1)), 1)]).unwrap();
        for l in &all {
            let _ = l.take(std::slice::from_ref(&full)).await;
        }
        let mut admitted: Vec<(u64, u64)> = Vec::new();
        let mut banned_at: Option<u64> = None;
        for _ in 0..40 {
            let ns = [0, 0, 0, SECOND / 4, SECOND, 3 * SECOND, 12 * SECOND, 400 * SECOND]
                [fastrand::usize(0..if seed % 3 == 0 { 8 } else { 6 })];
            clock.advance(Duration::from_nanos(ns));
            let now = tollgate_core::Clock::now(&clock).as_nanos();
            if fastrand::u8(0..20) == 0 {
                store.delete_expired();
            }
            if fastrand::u8(0..30) == 0 {
                let p = fastrand::usize(0..3);
                all[p] = process(&Skewed(store.clone(), offsets[p]));
            }
            if seed % 5 == 0 && fastrand::u8(0..25) == 0 {
                let o = if banned_at.is_none() {
                    banned_at = Some(now);
                    Order::Ban(Timestamp::from_nanos(now + 1_000 * SECOND))
                } else {
                    banned_at = None;
                    Order::Allow(None)
                };
                admin::order(&store, std::slice::from_ref(&item), &o).await.unwrap();
            }
            let (p, t) = (fastrand::usize(0..3), fastrand::usize(0..plans));
            let calls = fastrand::usize(1..6);
            let l = &all[p];
            let mixed = fastrand::bool();
            let cost0 = fastrand::u64(1..4);
            let one = async |i: usize| {
                let c = of(&item, &terms[t], if mixed { 1 + (i as u64 % 3) } else { cost0 }, 20);
                let cost = c.charges()[0].cost;
                match fastrand::u8(0..6) {
                    0 => {
                        let d = l.take(&[c, full.clone()]).await.unwrap();
                        assert!(!d.is_allowed());
                        0
                    }
                    1 => {
                        let (_, taken) = l.take_unsettled(std::slice::from_ref(&c)).await.unwrap();
                        l.cancel(std::slice::from_ref(&c), taken).await;
                        0
                    }
                    2 => {
                        let (d, taken) = l.take_unsettled(std::slice::from_ref(&c)).await.unwrap();
                        if !d.is_allowed() {
                            return 0;
                        }
                        let kept = fastrand::u64(0..=cost);
                        l.settle(std::slice::from_ref(&c), taken, |_| Some(Actual::Cost(kept))).await;
                        kept
                    }
                    _ => {
                        if l.take(std::slice::from_ref(&c)).await.unwrap().is_allowed() {
                            cost
                        } else {
                            0
                        }
                    }
                }
            };
            for cost in join_all((0..calls).map(one)).await {
                if cost > 0 {
                    if let Some(b) = banned_at.filter(|b| now < b + 990 * SECOND) {
                        assert!(now < b + 12 * SECOND, "seed {seed}: banned for {} s", (now - b) / SECOND);
                    }
                    admitted.push((now, cost));
                }
            }
        }
        let burst: u64 = figs.iter().map(|f| f.burst()).sum();
        let rate = figs.iter().map(|f| (f.n() * SECOND).div_ceil(f.period())).max().unwrap();
        let slack = if apart { 2 * rate } else { 0 };
        for i in 0..admitted.len() {
            let mut sum = 0;
            for (at, cost) in &admitted[i..] {
                sum += cost;
                let bound =
                    u128::from(burst + slack) + u128::from(rate) * u128::from(at - admitted[i].0) / u128::from(SECOND);
                assert!(u128::from(sum) <= bound, "seed {seed}: {sum} of {bound}");
            }
        }
    }
}
