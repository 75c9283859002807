//! Limits that lock whoever they deny again and again: on the table, by processes that share nothing, and what operators see.

use crate::harness::{
    Client, PATIENCE, SECOND, TABLE, bucket, charge, connected, endpoint, json, key, run, stderr, stdout,
};
use crate::through::through;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tollgate::testing::{ManualClock, MemoryStore};
use tollgate::{Limiter, Outcome, Source, Store};
use tollgate_core::take::Moment;
use tollgate_core::{
    Charge, Charges, Held, ItemKey, Key, LimitName, Mode, Penalty, PenaltyRule, StoreFailure, Terms, Write,
};
use tollgate_dynamodb::admin::{self, Order};
use tollgate_dynamodb::{Counters, DynamoStore, Error, Result, Written};

fn rule() -> PenaltyRule {
    let secs = Duration::from_secs;
    PenaltyRule::new(secs(60), 2, secs(3600), secs(86_400)).unwrap()
}

/// A call in ten seconds, with locks.
fn penalised(item: &ItemKey, rule: PenaltyRule) -> Charges {
    let charge = charge("login", Terms::new(1, bucket(1, 10 * SECOND, 1)), 1);
    Charges::new(item.clone(), vec![Charge { penalty: Some(rule), ..charge }]).unwrap()
}

async fn lock(store: &impl Store, item: &ItemKey) -> Option<Penalty> {
    let item = store.read(item, &[]).await.unwrap().unwrap_or_default();
    item.penalties.get(&LimitName::new("login").unwrap()).copied()
}

fn wait(decision: &tollgate::Decision) -> Duration {
    decision.retry_after().expect("a denial")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_lock_costs_and_how_it_grows_and_decays() {
    let client = Client::new().await;
    let (item, charges) = {
        let item = key();
        (item.clone(), penalised(&item, rule()))
    };
    let offend = async |minutes: u64| {
        assert!(client.take(&charges).await.is_allowed());
        let (denial, round_trips, write_units) = client.measured(&charges).await;
        assert_eq!((wait(&denial).as_secs(), denial.limits[0].remaining), (minutes * 60, 0));
        assert_eq!((round_trips, write_units), (2, 1), "a look and the lock");
        let until = lock(client.limiter.store(), &item).await.unwrap().until;
        assert_eq!(denial.limits[0].held, Some(Held::Penalty { until }));
        let (denial, round_trips, write_units) = client.measured(&charges).await;
        assert_eq!((denial.limits[0].source, round_trips, write_units), (Source::Cache, 0, 0));
        client.clock.advance(Duration::from_secs(minutes * 60));
    };
    for minutes in [1, 2, 4] {
        offend(minutes).await;
    }
    client.clock.advance(Duration::from_secs(2 * 86_400));
    offend(2).await;
    let stranger = Client::at(client.clock.clone()).await;
    assert!(stranger.take(&charges).await.is_allowed());
    let third = Client::at(client.clock.clone()).await;
    let (denial, round_trips, write_units) = third.measured(&charges).await;
    assert_eq!((wait(&denial).as_secs(), round_trips, write_units), (240, 2, 2), "a refused charge and the lock");
    let fourth = Client::at(client.clock.clone()).await;
    let (denial, round_trips, write_units) = fourth.measured(&charges).await;
    assert_eq!((wait(&denial).as_secs(), round_trips, write_units), (240, 1, 1), "whoever has not seen the key");
    let forgetting = fourth.forgetting();
    let (denial, round_trips, write_units) = forgetting.measured(&charges).await;
    assert_eq!((wait(&denial).as_secs(), round_trips, write_units), (240, 1, 0), "whoever has");
    assert_eq!((client.counts().penalised, third.counts().penalised, forgetting.counts().penalised), (4, 1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn forty_who_are_denied_at_once_raise_the_level_once() {
    let clock = Client::new().await.clock;
    for atomic in [false, true] {
        let (item, other) = (key(), key());
        let plenty = charge("tenant", Terms::new(1, bucket(1000, SECOND, 1000)), 1);
        let mut both = vec![penalised(&item, rule())];
        if atomic {
            both.push(Charges::new(other, vec![plenty]).unwrap());
            both = both.into_iter().map(|charges| charges.atomically(true)).collect();
        }
        assert!(Client::at(clock.clone()).await.take_all(&both).await.is_allowed());
        for round in 0..2_u8 {
            let mut calls = Vec::new();
            for _ in 0..40 {
                let (offender, both) = (Client::at(clock.clone()).await, both.clone());
                calls.push(async move {
                    let decision = offender.take_all(&both).await;
                    (offender, decision)
                });
            }
            let calls: Vec<_> = calls.into_iter().map(tokio::spawn).collect();
            let mut offenders = Vec::new();
            let expected = Duration::from_secs(60 << round);
            for call in calls {
                let (offender, decision) = call.await.unwrap();
                assert_eq!(wait(&decision), expected, "round {round}, atomic: {atomic}");
                offenders.push(offender);
            }
            assert_eq!(offenders.iter().map(|offender| offender.counts().penalised).sum::<u64>(), 1);
            let lock = lock(offenders[0].limiter.store(), &item).await.unwrap();
            assert_eq!(lock.level, round);
            clock.advance(expected);
            assert!(offenders[0].take_all(&both).await.is_allowed());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_is_extended_costs_one_write_by_whoever_asks_the_table() {
    let client = Client::new().await.forgetting();
    let item = key();
    let charges = penalised(&item, rule().extending(true));
    client.take(&charges).await;
    client.take(&charges).await;
    client.advance_ms(30_000);
    let (denial, round_trips, write_units) = client.measured(&charges).await;
    assert_eq!((wait(&denial).as_secs(), round_trips, write_units), (60, 1, 1));
    let (denial, _, write_units) = client.measured(&charges).await;
    assert_eq!((wait(&denial).as_secs(), write_units), (60, 0), "within a second nothing is gained");
    client.advance_ms(59_999);
    assert!(!client.take(&charges).await.is_allowed());
    client.advance_ms(60_000);
    assert!(client.take(&charges).await.is_allowed());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_atomic_denial_locks_and_takes_nothing_from_the_other_key() {
    let client = Client::new().await.forgetting();
    let (item, other) = (key(), key());
    let ten = Charges::new(other, vec![charge("tenant", Terms::new(1, bucket(10, 3600 * SECOND, 10)), 1)]).unwrap();
    let both = [penalised(&item, rule()), ten.clone()].map(|charges| charges.atomically(true));
    assert!(client.take_all(&both).await.is_allowed());
    for _ in 0..3 {
        let denial = client.take_all(&both).await;
        assert_eq!(wait(&denial).as_secs(), 60);
    }
    client.advance_ms(59_999);
    assert!(!client.take_all(&both).await.is_allowed());
    client.advance_ms(1);
    assert!(client.take_all(&both).await.is_allowed());
    assert_eq!(client.take(&ten).await.limits[0].remaining, 7);
}

/// A store in memory that fails, as it is told, on writes that lock.
#[derive(Debug)]
struct FailsToLock {
    inner: MemoryStore,
    fails: AtomicBool,
    applies: bool,
}

impl Store for FailsToLock {
    through!(inner: moment, meter, read, transact);

    async fn write(&self, item: &ItemKey, write: &Write) -> Result<Written> {
        let locks = write.penalties.iter().any(|part| part.next.is_some());
        if !(locks && self.fails.load(Ordering::SeqCst)) {
            return self.inner.write(item, write).await;
        }
        if self.applies {
            self.inner.write(item, write).await?;
            return Err(Error::Ambiguous("the reply is lost".to_owned()));
        }
        Err(Error::Unreachable { endpoint: String::new(), cause: String::new() })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denial_stands_where_the_lock_cannot_be_written_or_nobody_knows_whether_it_was() {
    for (applies, atomic) in [(false, false), (true, false), (false, true), (true, true)] {
        let clock = ManualClock::new(tollgate::Timestamp::from_secs(1_800_000_000));
        let fails = AtomicBool::new(true);
        let limiter = Limiter::new(FailsToLock { inner: MemoryStore::new(clock), fails, applies });
        let limiter = limiter.denying_from_memory_for(Duration::ZERO);
        let (item, other) = (key(), key());
        let ten = Charges::new(other, vec![charge("tenant", Terms::new(1, bucket(10, SECOND, 10)), 1)]).unwrap();
        let open = |c: Charges| c.with_store_failure(StoreFailure::Open).atomically(atomic);
        let both = [penalised(&item, rule()), ten].map(open);
        assert!(limiter.take(&both).await.unwrap().is_allowed());
        let denial = limiter.take(&both).await.unwrap();
        assert_eq!(denial.outcome(), Outcome::Denied, "never open: {applies} {atomic}");
        assert_eq!(wait(&denial).as_secs(), 10, "what the limit itself asks for");
        assert_eq!(lock(limiter.store(), &item).await.is_some(), applies);
        limiter.store().fails.store(false, Ordering::SeqCst);
        let denial = limiter.take(&both).await.unwrap();
        assert_eq!((wait(&denial).as_secs(), lock(limiter.store(), &item).await.unwrap().level), (60, 0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shadow_is_locked_and_only_reports() {
    let client = Client::new().await;
    let item = key();
    let list = penalised(&item, rule()).charges().iter().map(|c| Charge { mode: Mode::Shadow, ..c.clone() }).collect();
    let shadow = Charges::new(item.clone(), list).unwrap();
    for (call, outcome) in [Outcome::Allowed, Outcome::Denied, Outcome::Denied].into_iter().enumerate() {
        let decision = client.take(&shadow).await;
        assert_eq!((decision.is_allowed(), decision.limits[0].outcome), (true, outcome), "call {call}");
    }
    client.advance_ms(30_000);
    let decision = client.take(&shadow).await;
    assert_eq!(decision.limits[0].retry_after, Some(Duration::from_secs(30)), "though the bucket is full");
    assert!(decision.is_allowed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_whose_clock_is_far_ahead_locks_nobody_for_ages() {
    let client = Client::new().await;
    let item = key();
    let charges = penalised(&item, rule());
    // A server whose replies tell no time never corrects it.
    let ahead = ManualClock::new(client.clock_now() + Duration::from_secs(365 * 86_400));
    let counters = Arc::new(Counters::default());
    let connected = connected(&endpoint().await).await;
    let wrong = DynamoStore::new(&connected, TABLE, Arc::new(ahead), counters);
    let wrong = Limiter::new(Uncorrected(wrong)).with_deadline(PATIENCE).denying_from_memory_for(Duration::ZERO);
    assert!(wrong.take(std::slice::from_ref(&charges)).await.unwrap().is_allowed());
    assert!(!wrong.take(std::slice::from_ref(&charges)).await.unwrap().is_allowed());
    let denial = client.take(&charges).await;
    assert_eq!(wait(&denial).as_secs(), 60, "its length, from now");
    client.advance_ms(60_000);
    assert!(client.take(&charges).await.is_allowed());
}

/// A store whose clock stays as wrong as it is.
#[derive(Debug)]
struct Uncorrected(DynamoStore);

impl Store for Uncorrected {
    through!(0: meter, read, write, transact);

    fn moment(&self) -> Moment {
        let ahead = Duration::from_secs(365 * 86_400);
        Moment { now: tollgate::Clock::now(&tollgate::SystemClock) + ahead, clock_agrees: false }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_lifts_a_lock_and_its_levels_and_carrying_takes_them_along() {
    let client = Client::new().await.forgetting();
    let store = client.limiter.store();
    let (old, new) = (key(), key());
    let charges = penalised(&old, rule());
    client.take(&charges).await;
    client.take(&charges).await;
    let locked = lock(store, &old).await.unwrap();
    let both = [new.clone(), old.clone()];
    let ordered = admin::order(store, &both, &Order::Keep).await.unwrap();
    assert_eq!(ordered.locks.values().copied().collect::<Vec<_>>(), [locked]);
    assert_eq!((lock(store, &new).await, lock(store, &old).await), (Some(locked), Some(locked)));
    let expiry = async |item| store.read(item, &[]).await.unwrap().unwrap().expires_at;
    assert!(expiry(&new).await >= expiry(&old).await, "it is remembered for as long");
    assert!(!client.take(&penalised(&new, rule())).await.is_allowed());
    let reset = admin::reset(store, &old, None).await.unwrap();
    assert_eq!(reset.iter().map(LimitName::as_str).collect::<Vec<_>>(), ["login"]);
    assert_eq!(lock(store, &old).await, None);
    assert!(client.take(&charges).await.is_allowed());
    client.advance_ms(3_600_000);
    let other = LimitName::new("other").unwrap();
    assert!(admin::reset(store, &new, Some(&other)).await.unwrap().is_empty());
    assert_eq!(lock(store, &new).await, Some(locked), "a full bucket may have been locked before");
    admin::reset(store, &new, None).await.unwrap();
    assert_eq!(lock(store, &new).await, None);
    assert!(admin::reset(store, &new, None).await.unwrap().is_empty(), "and then there is nothing left");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_show_locks_and_lift_them() {
    let policy = tempfile::NamedTempFile::new().unwrap();
    let text = r#"
        version = 1
        [limits.login]
        key = ["user"]
        rate = "1/10s"
        penalty = { first = "1h", most = "10h" }
        retry_jitter = "10s"
        [[routes]]
        match = "POST /login"
        charge = ["login"]
    "#;
    std::fs::write(policy.path(), text).unwrap();
    let policy = policy.path().to_str().unwrap();
    let client = Client::new().await.forgetting();
    let user = format!("offender-{}", client.clock_now().as_nanos());
    let item = ItemKey::shared(Key::new([("user", user.clone())]).unwrap());
    let secs = Duration::from_secs;
    let rule = PenaltyRule::new(secs(3600), 2, secs(36_000), secs(86_400)).unwrap();
    client.take(&penalised(&item, rule)).await;
    client.take(&penalised(&item, rule)).await;
    let url = endpoint().await;
    let command = |name: &str, more: &[&str]| {
        let on = ["--endpoint-url", &url, "--table", TABLE, "--policy", policy];
        run(&[&[name], more, &on[..]].concat())
    };
    let subject = format!("user:{user}");
    let inspected = json(&command("inspect", &[&subject, "--json"]));
    let told = &inspected["limits"]["login"]["penalty"];
    let until = lock(client.limiter.store(), &item).await.unwrap().until;
    assert_eq!((&told["locked"], &told["level"]), (&true.into(), &0.into()), "{inspected}");
    assert_eq!(told["until_ms"], until.as_millis());
    let text = stdout(&command("inspect", &[&subject]));
    assert!(text.contains("locked until 2") && text.contains("(level 0)"), "{text}");
    let listed = json(&command("holds", &["--json"]));
    let lines = listed["locked"].as_array().expect("locks");
    let line = lines.iter().find(|line| line["pk"] == format!("1/key/{subject}")).expect("the key");
    assert_eq!(line["locks"]["login"]["locked"], true);
    let explained =
        stdout(&run(&["explain", "--method", "POST", "--path", "/login", "--user", "a", "--policy", policy]));
    assert!(
        explained.contains("locks for 3600000 ms, then 2 times as long each time up to 36000000 ms"),
        "{explained}"
    );
    assert!(explained.contains("up to 10000 ms more told"), "{explained}");
    let allowed = stderr(&command("allow", &[&subject]));
    assert!(allowed.contains("login locked until 2") && allowed.contains("`tollgate reset` lifts that"), "{allowed}");
    let reset = command("reset", &[&subject]);
    assert!(stdout(&reset).contains("login"), "{} {}", stdout(&reset), stderr(&reset));
    assert_eq!(lock(client.limiter.store(), &item).await, None);
    assert_eq!(stderr(&command("allow", &[&subject])), "");
    assert!(client.take(&penalised(&item, rule)).await.is_allowed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_that_another_version_wrote_is_an_error_and_no_guess() {
    let client = Client::new().await;
    let item = key();
    let charges = penalised(&item, rule());
    client.take(&charges).await;
    crate::harness::raw(&endpoint().await)
        .update_item()
        .table_name(TABLE)
        .key("pk", aws_sdk_dynamodb::types::AttributeValue::S(tollgate_dynamodb::partition_key::of(&item)))
        .update_expression("SET #p = :p")
        .expression_attribute_names("#p", "login.p")
        .expression_attribute_values(":p", aws_sdk_dynamodb::types::AttributeValue::S("later".to_owned()))
        .send()
        .await
        .unwrap();
    let error = client.forgetting().limiter.take(std::slice::from_ref(&charges)).await.unwrap_err();
    assert!(error.to_string().contains("login.p"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn json_decisions_say_that_a_lock_denied_and_tell_waits_with_jitter() {
    let text = r#"
        version = 1
        [limits.login]
        key = ["user"]
        rate = "1/10s"
        penalty = { first = "1min" }
        retry_jitter = "10s"
    "#;
    let policy = tollgate::Policy::parse(text).map_err(|findings| findings.render("policy")).unwrap().policy;
    let clock = ManualClock::new(tollgate::Timestamp::from_secs(1_800_000_000));
    let limiter = Limiter::new(MemoryStore::new(clock.clone()));
    let ask = async |user: u32, cost: u32| {
        let body = format!(r#"{{"limit":"login","key":{{"user":"u{user}"}},"cost":{cost}}}"#);
        tollgate::decisions::decide(&policy, &limiter, body.as_bytes()).await.body
    };
    let mut waits = std::collections::BTreeSet::new();
    for user in 0..50 {
        let allowed = ask(user, 1).await;
        assert_eq!((&allowed["allowed"], allowed.get("held")), (&true.into(), None), "{allowed}");
        let denied = ask(user, 1).await;
        let wait = denied["retry_after_ms"].as_u64().unwrap();
        assert_eq!(
            (&denied["allowed"], &denied["held"], &denied["remaining"]),
            (&false.into(), &"penalty".into(), &0.into())
        );
        assert!((60_000..=70_000).contains(&wait), "{denied}");
        waits.insert(wait);
    }
    assert!(waits.len() > 40, "{} different waits of 50", waits.len());
    clock.advance(Duration::from_secs(59));
    let observed = ask(0, 0).await;
    assert_eq!((&observed["allowed"], &observed["held"]), (&false.into(), &"penalty".into()), "{observed}");
    clock.advance(Duration::from_secs(1));
    assert_eq!(ask(0, 1).await["allowed"], true, "what is decided is the true wait");
}
