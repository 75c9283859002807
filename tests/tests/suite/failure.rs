//! The table is slow or gone: who decides then, how soon, and when the table is asked again.

use crate::dev::Dev;
use crate::harness::{PATIENCE, SECOND, bucket, charge, key, remaining};
use crate::through::through;
use serde_json::json;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;
use tollgate::testing::{ManualClock, MemoryStore};
use tollgate::{Decision, Limiter, Outcome, Source, Store, Timestamp};
use tollgate_core::{Charges, Held, Hold, Item, ItemKey, LimitName, StoreFailure, Terms, Write};
use tollgate_dynamodb::meter::Counts;
use tollgate_dynamodb::{BreakerState, Error, Fate, Result, Transacted, Written};

const HOUR: u64 = 3600 * SECOND;
/// The longest that the breaker pauses.
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

/// What the table does.
#[derive(Clone, Copy)]
enum Does {
    Work,
    /// It takes requests and never answers.
    Pause,
    Fail(fn() -> Error),
    /// It fails one request, and then pauses.
    FailOnce(fn() -> Error),
}

/// A table in memory that can fail about all items or one; clones share it.
#[derive(Clone)]
struct Table {
    memory: MemoryStore,
    clock: ManualClock,
    does: Arc<Mutex<(Does, Option<ItemKey>)>>,
    requests: Arc<AtomicU64>,
}

impl Table {
    fn new() -> Self {
        let clock = ManualClock::new(Timestamp::from_secs(1_767_225_600));
        let does = Arc::new(Mutex::new((Does::Work, None)));
        Self { memory: MemoryStore::new(clock.clone()), clock, does, requests: Arc::default() }
    }

    fn does(&self, what: Does) {
        *self.does.lock().unwrap() = (what, None);
    }

    fn does_about(&self, what: Does, item: &ItemKey) {
        *self.does.lock().unwrap() = (what, Some(item.clone()));
    }

    fn requests(&self) -> u64 {
        self.requests.load(Ordering::SeqCst)
    }

    fn counts(&self) -> Counts {
        self.memory.counters().counts()
    }

    async fn answer<T>(&self, items: &[&ItemKey], answer: impl Future<Output = Result<T>>) -> Result<T> {
        self.requests.fetch_add(1, Ordering::SeqCst);
        let (does, about) = self.does.lock().unwrap().clone();
        match does {
            _ if about.is_some_and(|about| !items.contains(&&about)) => answer.await,
            Does::Work => answer.await,
            Does::Pause => std::future::pending().await,
            Does::Fail(error) => Err(error()),
            Does::FailOnce(error) => {
                self.does(Does::Pause);
                Err(error())
            }
        }
    }
}

impl Store for Table {
    through!(memory: moment, meter);

    async fn read(&self, item: &ItemKey, limits: &[&LimitName]) -> Result<Option<Item>> {
        self.answer(&[item], self.memory.read(item, limits)).await
    }

    async fn write(&self, item: &ItemKey, write: &Write) -> Result<Written> {
        self.answer(&[item], self.memory.write(item, write)).await
    }

    async fn transact(&self, writes: &[(&ItemKey, &Write)]) -> Result<Transacted> {
        let items: Vec<_> = writes.iter().map(|(item, _)| *item).collect();
        self.answer(&items, self.memory.transact(writes)).await
    }
}

const GONE: Does = Does::Fail(|| Error::Ambiguous("no answer".to_owned()));
const HOT: Does = Does::Fail(|| Error::HotKey(Fate::NotApplied));

fn of(item: &ItemKey, n: u64, rule: StoreFailure) -> Charges {
    let charges = vec![charge("limit", Terms::new(1, bucket(n, HOUR, n)), 1)];
    Charges::new(item.clone(), charges).unwrap().with_store_failure(rule)
}

fn local(n: u64) -> Charges {
    of(&key(), n, StoreFailure::Local)
}

fn sources(decision: &Decision) -> Vec<Source> {
    let unasked = decision.unasked.iter().map(|u| u.source);
    decision.limits.iter().map(|l| l.source).chain(unasked).collect()
}

fn left(table: &Table, charges: &Charges) -> u64 {
    remaining(&table.memory, charges)
}

/// A limiter whose breaker has just opened, by calls of another key.
async fn opened(table: &Table) -> Limiter<Table> {
    let limiter = Limiter::new(table.clone());
    for _ in 0..5 {
        assert_eq!(limiter.breaker(), BreakerState::Closed);
        assert!(limiter.take(&[local(10)]).await.unwrap().is_allowed());
    }
    assert_eq!((limiter.breaker(), table.counts().breaker_opened), (BreakerState::Open, 1));
    limiter
}

#[tokio::test(start_paused = true)]
async fn with_the_table_paused_a_bucket_of_ten_admits_thirteen_of_fourteen_and_a_closed_one_none() {
    let table = Table::new();
    table.does(Does::Pause);
    let limiter = Limiter::new(table.clone());
    let ten = Charges::new(key(), vec![charge("products", Terms::new(1, bucket(10, SECOND, 10)), 1)]).unwrap();
    let mut denied = Vec::new();
    for call in 0..14 {
        let decision = limiter.take(std::slice::from_ref(&ten)).await.unwrap();
        assert_eq!(sources(&decision), [Source::Local]);
        if !decision.is_allowed() {
            denied.push((call, decision.outcome(), decision.retry_after()));
        }
        table.clock.advance(Duration::from_millis(25));
    }
    assert_eq!(denied, [(13, Outcome::Denied, Some(Duration::from_millis(75)))]);
    let error = limiter.take(&[of(&key(), 10, StoreFailure::Closed)]).await.unwrap_err();
    assert!(error.is_outage(), "{error:?}");
    let counts = table.counts();
    assert_eq!((counts.local, counts.local_denied, counts.degraded), (14, 1, 15));
    assert_eq!((table.requests(), counts.store_failures, counts.suspended), (5, 5, 10), "five calls found out");
}

/// No request, and no deadline either: not a nanosecond of the paused clock goes by.
#[tokio::test(start_paused = true)]
async fn while_the_breaker_is_open_a_decision_takes_no_time_and_no_request() {
    let table = Table::new();
    table.does(Does::Pause);
    let before = Instant::now();
    let limiter = opened(&table).await;
    assert_eq!(before.elapsed(), Limiter::<Table>::DEADLINE * 5);
    let (now, sent) = (Instant::now(), table.requests());
    for rule in [StoreFailure::Open, StoreFailure::Local, StoreFailure::Closed] {
        for atomic in [false, true] {
            let both = [(); 2].map(|()| of(&key(), 10, rule).atomically(atomic));
            let answer = limiter.take(&both).await;
            assert_eq!(answer.is_ok(), rule != StoreFailure::Closed);
            assert!(answer.map_or_else(|error| matches!(error, Error::Suspended), |d| d.is_allowed()));
        }
    }
    assert_eq!((now.elapsed(), table.requests()), (Duration::ZERO, sent));
}

/// An item that was not asked, since the first one refuses the call, is no answer of the table.
#[tokio::test(start_paused = true)]
async fn an_outage_that_is_met_by_the_first_item_opens_the_breaker_and_keeps_it_open() {
    let table = Table::new();
    table.does(Does::Pause);
    let limiter = Limiter::new(table.clone());
    let both = [true, false].map(|first| of(&key(), 10, StoreFailure::Closed).asked_first(first));
    for _ in 0..5 {
        assert_eq!(limiter.breaker(), BreakerState::Closed);
        limiter.take(&both).await.unwrap_err();
    }
    for _ in 0..3 {
        assert_eq!(limiter.breaker(), BreakerState::Open);
        tokio::time::advance(LONGEST_PAUSE).await;
        limiter.take(&both).await.unwrap_err();
    }
    table.does(Does::Work);
    tokio::time::advance(LONGEST_PAUSE).await;
    assert!(limiter.take(&both).await.unwrap().is_allowed());
    assert_eq!(limiter.breaker(), BreakerState::Closed);
}

#[tokio::test(start_paused = true)]
async fn of_fifty_calls_at_once_one_probes_and_its_answer_closes_the_breaker() {
    let table = Table::new();
    table.does(Does::Pause);
    let limiter = Arc::new(opened(&table).await);
    let fifty = async || {
        let calls = (0..50).map(|_| {
            let limiter = Arc::clone(&limiter);
            tokio::spawn(async move { limiter.take(&[local(10)]).await.unwrap() })
        });
        let mut by_table = 0;
        for call in calls.collect::<Vec<_>>() {
            by_table += u32::from(sources(&call.await.unwrap()) == [Source::Table]);
        }
        by_table
    };
    for _ in 0..4 {
        tokio::time::advance(LONGEST_PAUSE).await;
        let sent = table.requests();
        assert_eq!((fifty().await, table.requests() - sent), (0, 1));
        assert_eq!(limiter.breaker(), BreakerState::Open, "the probe found nothing");
    }
    tokio::time::advance(LONGEST_PAUSE).await;
    table.does(Does::Work);
    assert_eq!(fifty().await, 50, "the probe is the first to be answered, at once, and the others follow");
    assert_eq!(
        (limiter.breaker(), table.counts().breaker_opened, table.counts().breaker_closed),
        (BreakerState::Closed, 1, 1)
    );
}

/// A client that hangs up must not keep the breaker half open for ever.
#[tokio::test(start_paused = true)]
async fn a_probe_that_is_dropped_leaves_the_next_call_to_probe() {
    let table = Table::new();
    table.does(Does::Pause);
    let limiter = opened(&table).await;
    tokio::time::advance(LONGEST_PAUSE).await;
    let charges = [local(10)];
    assert!(tokio::time::timeout(Duration::from_millis(1), limiter.take(&charges)).await.is_err());
    table.does(Does::Work);
    assert_eq!(sources(&limiter.take(&charges).await.unwrap()), [Source::Table]);
}

#[tokio::test(start_paused = true)]
async fn only_outages_in_a_row_open_the_breaker() {
    let others: [fn() -> Error; 4] = [
        || Error::HotKey(Fate::NotApplied),
        || Error::Contended { writes: 16, fate: Fate::Unknown },
        || Error::Refused { action: "dynamodb:UpdateItem", message: "malformed".to_owned() },
        || Error::Core(tollgate_core::Error::NoCharges),
    ];
    for error in others {
        let table = Table::new();
        table.does(Does::Fail(error));
        let limiter = Limiter::new(table.clone());
        for _ in 0..20 {
            let _ = limiter.take(&[local(10)]).await;
        }
        assert_eq!((limiter.breaker(), table.counts().breaker_opened), (BreakerState::Closed, 0), "{}", error());
        assert!(table.requests() >= 20);
    }
    let table = Table::new();
    let limiter = Limiter::new(table.clone());
    for call in 0..40 {
        table.does(if call % 5 == 4 { Does::Work } else { GONE });
        let _ = limiter.take(&[local(10)]).await;
    }
    assert_eq!((limiter.breaker(), table.requests()), (BreakerState::Closed, 40), "never five in a row");
    let (known, dead) = (local(10), local(10));
    table.does_about(GONE, dead.item());
    for _ in 0..10 {
        assert!(limiter.take(&[known.clone(), dead.clone()]).await.unwrap().is_allowed());
    }
    assert_eq!(limiter.breaker(), BreakerState::Closed, "the table answers, but about one key");
}

/// The key's own affair: not open, whatever the others are.
#[tokio::test(start_paused = true)]
async fn a_hot_key_is_local_where_it_is_not_closed() {
    for atomic in [false, true] {
        let table = Table::new();
        let limiter = Limiter::new(table.clone());
        let [hot, other] = [3, 30].map(|n| of(&key(), n, StoreFailure::Open).atomically(atomic));
        table.does_about(HOT, hot.item());
        let both = [hot.clone(), other];
        for _ in 0..3 {
            let decision = limiter.take(&both).await.unwrap();
            assert!(decision.is_allowed() && sources(&decision)[0] == Source::Local, "{decision:?}");
        }
        let denied = limiter.take(&both).await.unwrap();
        assert_eq!((denied.outcome(), denied.limits[0].source), (Outcome::Denied, Source::Local));
        let error = limiter.take(&[hot.with_store_failure(StoreFailure::Closed)]).await.unwrap_err();
        assert!(matches!(error, Error::HotKey(_)), "{error:?}");
        assert!((table.counts().hot_keys, table.counts().store_failures) == (5, 0));
    }
}

/// Sent again, since the partition may take it a moment later; the time that this costs is the key's, too.
#[tokio::test(start_paused = true)]
async fn time_that_runs_out_over_a_hot_key_is_no_outage() {
    let table = Table::new();
    let limiter = Limiter::new(table.clone());
    for call in 1..=10 {
        table.does(Does::FailOnce(|| Error::HotKey(Fate::NotApplied)));
        let decision = limiter.take(&[of(&key(), 3, StoreFailure::Open)]).await.unwrap();
        assert_eq!((sources(&decision), table.requests()), (vec![Source::Local], 2 * call));
    }
    assert_eq!((limiter.breaker(), table.counts().hot_keys), (BreakerState::Closed, 10));
}

/// rate-limiter-flexible#337: insurance does not run on exhaustion, nor exhaustion on outage.
#[tokio::test(start_paused = true)]
async fn what_the_table_denies_is_not_asked_here_and_an_outage_is_not_a_denial() {
    let table = Table::new();
    let limiter = Limiter::new(table.clone());
    let [user, tenant] = [of(&key(), 2, StoreFailure::Local), of(&key(), 9, StoreFailure::Local)];
    table.does_about(GONE, tenant.item());
    let both = [user.clone(), tenant.clone()];
    for _ in 0..2 {
        assert_eq!(sources(&limiter.take(&both).await.unwrap()), [Source::Table, Source::Local]);
    }
    for _ in 0..20 {
        let denied = limiter.take(&both).await.unwrap();
        assert_eq!((denied.outcome(), denied.limits[0].limit.as_str()), (Outcome::Denied, "limit"));
        table.clock.advance(Duration::from_millis(1));
    }
    let here = limiter.take(std::slice::from_ref(&tenant)).await.unwrap();
    assert_eq!(here.limits[0].remaining, 6, "denied calls were not charged here");
    table.does(GONE);
    let fresh = limiter.take(&[local(1)]).await.unwrap();
    assert!(fresh.is_allowed(), "nobody is limited by the outage alone");
}

#[tokio::test(start_paused = true)]
async fn of_several_items_each_follows_its_rule_and_the_strictest_goes_first() {
    use StoreFailure::{Closed, Local, Open};
    for atomic in [false, true] {
        let table = Table::new();
        table.does(GONE);
        let take = async |rules: &[StoreFailure]| {
            let limiter = Limiter::new(table.clone());
            let charges: Vec<_> = rules.iter().map(|rule| of(&key(), 1, *rule).atomically(atomic)).collect();
            let mut answers = Vec::new();
            for _ in 0..2 {
                answers.push(limiter.take(&charges).await.map(|d| (d.is_allowed(), sources(&d))).ok());
            }
            answers
        };
        assert_eq!(take(&[Open, Closed, Local]).await, [None, None]);
        let both = vec![Source::Local, Source::Open];
        assert_eq!(take(&[Open, Local]).await, [Some((true, both.clone())), Some((false, both))]);
        let open = Some((true, vec![Source::Open, Source::Open]));
        assert_eq!(take(&[Open, Open]).await, [open.clone(), open]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_denial_here_gives_back_what_the_table_has_charged_and_charges_nothing_here() {
    let table = Table::new();
    let limiter = Limiter::new(table.clone());
    let [user, scarce, plenty] = [of(&key(), 10, StoreFailure::Local), local(1), local(5)];
    table.does_about(GONE, scarce.item());
    assert!(limiter.take(&[user.clone(), scarce.clone()]).await.unwrap().is_allowed());
    let denied = limiter.take(&[user.clone(), scarce.clone()]).await.unwrap();
    assert_eq!((denied.outcome(), left(&table, &user)), (Outcome::Denied, 9));
    table.does(GONE);
    let denied = limiter.take(&[plenty.clone(), scarce.clone()]).await.unwrap();
    assert_eq!((denied.outcome(), denied.limits[0].remaining), (Outcome::Denied, 5));
    assert_eq!(limiter.take(&[plenty]).await.unwrap().limits[0].remaining, 4);
}

#[tokio::test(start_paused = true)]
async fn a_ban_that_this_process_has_seen_binds_without_the_table() {
    let table = Table::new();
    let limiter = Limiter::new(table.clone());
    let charges = [local(10)];
    let now = table.moment().now;
    let until = now + Duration::from_secs(3600);
    let ban = Hold { id: 1, banned_until: Some(until), ..Hold::default() };
    let set = table.memory.write(charges[0].item(), &Write::set_hold(now, 3600, None, Some(ban))).await.unwrap();
    assert!(matches!(set, Written::Applied(_)));
    assert!(!limiter.take(&charges).await.unwrap().is_allowed());
    table.does(GONE);
    table.clock.advance(Duration::from_secs(3599));
    let denied = limiter.denying_from_memory_for(Duration::ZERO);
    let banned = denied.take(&charges).await.unwrap().limits[0].clone();
    assert_eq!((banned.source, banned.held), (Source::Local, Some(Held::Ban { until })));
    table.clock.advance(Duration::from_secs(1));
    assert!(denied.take(&charges).await.unwrap().is_allowed());
}

#[tokio::test(start_paused = true)]
async fn the_share_follows_the_charges_or_who_knows_better() {
    let table = Table::new();
    table.does(GONE);
    let admitted = async |limiter: &Limiter<Table>, instances: u64| {
        let charges = [local(12).among(NonZeroU64::new(instances).unwrap())];
        let mut admitted = 0;
        while limiter.take(&charges).await.unwrap().is_allowed() {
            admitted += 1;
        }
        admitted
    };
    let limiter = Limiter::new(table.clone());
    assert_eq!((admitted(&limiter, 1).await, admitted(&limiter, 5).await), (12, 2));
    limiter.set_instances(NonZeroU64::new(4));
    assert_eq!((admitted(&limiter, 1).await, admitted(&limiter, 5).await), (3, 3));
    limiter.set_instances(None);
    assert_eq!(admitted(&limiter, 5).await, 2);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_charged_here_and_does_not_take_place_is_given_back_here() {
    let table = Table::new();
    table.does(GONE);
    let (limiter, charges) = (Limiter::new(table.clone()), [local(2)]);
    for _ in 0..5 {
        let (decision, taken) = limiter.take_unsettled(&charges).await.unwrap();
        assert!(decision.is_allowed());
        limiter.cancel(&charges, taken).await;
    }
    assert_eq!((table.requests(), table.counts().refunded), (5, 5), "none of them asked the table");
}

/// Nobody waits for a settlement that cannot be written.
#[tokio::test(start_paused = true)]
async fn while_the_breaker_is_open_what_the_table_has_charged_is_not_settled() {
    let table = Table::new();
    let charges = [local(2)];
    let early = Limiter::new(table.clone()).take_unsettled(&charges).await.unwrap().1;
    table.does(Does::Pause);
    let limiter = opened(&table).await;
    let (now, sent) = (Instant::now(), table.requests());
    limiter.cancel(&charges, early).await;
    assert_eq!((now.elapsed(), table.requests(), table.counts().refunds_lost), (Duration::ZERO, sent, 1));
}

/// The real handlers, SDK and table, as anybody can try it: faults between the limiter and the embedded table.
#[test]
fn the_development_server_meets_a_table_that_pauses_fails_or_is_slow() {
    let dir = tempfile::tempdir().unwrap();
    let policy = dir.path().join("policy.toml");
    let text = "version = 1\n\
        [limits.items]\nkey = ['user']\nrate = '10/s'\n\
        [limits.units]\nkey = ['user']\nrate = '600/min'\nburst = 100\n\
        [[routes]]\nmatch = 'GET /api/partner/items'\ncharge = ['items']\n\
        [[routes]]\nmatch = 'GET /api/export'\ncharge = ['units']\non_store_failure = 'closed'\n\
        [[routes]]\nmatch = 'GET /api/search'\ncharge = ['units']\non_store_failure = 'open'\n";
    std::fs::write(&policy, text).unwrap();
    let dev = Dev::start(&["--clock", "manual", "--policy", policy.to_str().unwrap()]);
    let set = |fault: serde_json::Value| dev.ask("POST", "/dev/faults", &fault.to_string());
    let get = |path: &str, user: &str| dev.ask_with("GET", path, &format!("x-dev-principal: user={user}\r\n"), "");
    assert_eq!(get("/api/export", "alice").0, 200);

    let (status, _, body) = set(json!({ "store": "pause" }));
    assert_eq!((status, body), (200, json!({ "store": "pause", "ms": 200 })));
    let answers: Vec<_> = (0..14)
        .map(|_| {
            let (status, head, _) = get("/api/partner/items", "alice");
            dev.advance_ms(25);
            (status, head)
        })
        .collect();
    let statuses: Vec<_> = answers.iter().map(|(status, _)| *status).collect();
    assert_eq!(statuses, [vec![200; 13], vec![429]].concat());
    assert!(answers[13].1.contains("retry-after: 1\r\n"), "{}", answers[13].1);
    let (status, head, body) = get("/api/export", "alice");
    assert!(status == 503 && head.contains("retry-after: ") && body["error"] == "limiter_unavailable", "{head} {body}");
    assert_eq!(get("/api/search", "alice").0, 200, "open");
    let decision = dev.decide(&json!({ "limit": "items", "key": { "user": "bob" } })).1;
    assert_eq!((&decision["source"], &decision["remaining"]), (&"local".into(), &9.into()));
    let stats = dev.stats();
    assert!(stats["breaker"] != "closed" && stats["breaker_opened"] == 1, "{stats}");
    assert_eq!((&stats["local"], &stats["local_denied"]), (&15.into(), &1.into()));

    let table_answers = || {
        let until = std::time::Instant::now() + PATIENCE;
        loop {
            let user = format!("user-{}", std::time::Instant::now().duration_since(until - PATIENCE).as_nanos());
            let decision = dev.decide(&json!({ "limit": "items", "key": { "user": user } })).1;
            if decision["source"] == "table" {
                return;
            }
            assert!(std::time::Instant::now() < until, "{decision}");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    assert_eq!(set(json!({ "store": "ok" })).0, 200);
    table_answers();
    assert_eq!((&dev.stats()["breaker"], get("/api/export", "alice").0), (&"closed".into(), 200));

    for fault in [json!({ "store": "error" }), json!({ "store": "slow", "ms": 5_000 })] {
        assert_eq!(set(fault.clone()).0, 200);
        assert_eq!(get("/api/export", "carol").0, 503, "{fault}");
        assert_eq!(get("/api/partner/items", "carol").0, 200, "{fault}");
        assert_eq!(set(json!({ "store": "ok" })).0, 200);
        table_answers();
    }
    for bad in ["{}", r#"{"store":"gone"}"#, r#"{"store":"slow","ms":-1}"#, r#"{"store":"ok","fast":true}"#] {
        let (status, _, body) = dev.ask("POST", "/dev/faults", bad);
        assert!(status == 400 && body["message"].as_str().unwrap().contains(r#"{"store":"pause"}"#), "{bad}: {body}");
    }
}
