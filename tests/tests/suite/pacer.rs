//! Pacing on the store: when each of many callers may go, what that costs, and how JSON and the commands tell it.

use crate::harness::{Client, SECOND, bucket, charge, key, run, stdout};
use crate::holds::{Site, policy};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tollgate::testing::ManualClock;
use tollgate::{Clock, Pacer, Policy, Reserved, SystemClock};
use tollgate_core::{Charge, Charges, ItemKey, Terms};

/// Ten a second, and nine that wait.
fn paced(key: &ItemKey, max_wait: Option<Duration>) -> Charges {
    let terms = Terms::new(1, bucket(10, SECOND, 10).paced(0));
    Charges::new(key.clone(), vec![Charge { max_wait, ..charge("limit", terms, 1) }]).unwrap()
}

/// What forty clients that share nothing are told at one instant: the waits of those that are admitted, in order, and the
/// waits before another try of those that are not.
async fn forty_at_once(clock: &ManualClock, charges: &Charges) -> (Vec<u128>, Vec<Option<u128>>) {
    let mut clients = Vec::new();
    for _ in 0..40 {
        clients.push(Client::at(clock.clone()).await);
    }
    let callers = clients.into_iter().map(|client| {
        let charges = charges.clone();
        tokio::spawn(async move {
            let (decision, round_trips, write_units) = client.measured(&charges).await;
            assert_eq!((round_trips, write_units), (1, 1), "one write a reservation");
            decision
        })
    });
    let (mut starts, mut retries) = (Vec::new(), Vec::new());
    for caller in callers.collect::<Vec<_>>() {
        let decision = caller.await.unwrap();
        match decision.is_allowed() {
            true => starts.push(decision.starts_after().as_millis()),
            false => retries.push(decision.retry_after().map(|wait| wait.as_millis())),
        }
    }
    starts.sort_unstable();
    (starts, retries)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn callers_at_once_get_slots_a_period_apart_and_as_many_as_the_burst_and_one() {
    let clock = ManualClock::new(SystemClock.now());
    let charges = paced(&key(), None);
    let (starts, retries) = forty_at_once(&clock, &charges).await;
    assert_eq!(starts, (0..10).map(|nth| nth * 100).collect::<Vec<_>>());
    assert_eq!(retries, vec![Some(100); 30]);
    // Half a second later five have gone.
    clock.advance(Duration::from_millis(500));
    let (starts, retries) = forty_at_once(&clock, &charges).await;
    assert_eq!((starts, retries.len()), (vec![500, 600, 700, 800, 900], 35));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_deadline_denies_exactly_those_that_would_wait_longer_and_charges_them_nothing() {
    let clock = ManualClock::new(SystemClock.now());
    let key = key();
    let (starts, retries) = forty_at_once(&clock, &paced(&key, Some(Duration::from_millis(350)))).await;
    assert_eq!((starts, retries), (vec![0, 100, 200, 300], vec![Some(50); 36]));
    let (starts, _) = forty_at_once(&clock, &paced(&key, None)).await;
    assert_eq!(starts, [400, 500, 600, 700, 800, 900], "the others have a place behind them");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reservation_is_one_write_and_a_denial_that_was_just_seen_is_none() {
    let client = Client::new().await;
    let charges = paced(&key(), Some(Duration::from_millis(100)));
    let mut costs = Vec::new();
    for _ in 0..4 {
        let (decision, round_trips, write_units) = client.measured(&charges).await;
        costs.push((decision.is_allowed(), round_trips, write_units));
    }
    client.advance_ms(10_000);
    let (decision, round_trips, write_units) = client.measured(&charges).await;
    costs.push((decision.is_allowed(), round_trips, write_units));
    assert_eq!(costs, [(true, 1, 1), (true, 1, 1), (false, 0, 0), (false, 0, 0), (true, 1, 1)]);
}

const POLICY: &str = "version = 1
[identity]
partner = 'context.partner'
[limits.partner]
algorithm = 'pacer'
key = ['partner']
rate = '10/s'
burst = 5
delay = 1
max_wait = '300ms'
[limits.trial]
algorithm = 'pacer'
key = ['partner']
rate = '1/s'
mode = 'shadow'
burst = 1
[limits.tenant]
key = ['tenant']
rate = '2/h'
";

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_is_cancelled_is_the_next_callers_unless_somebody_is_behind() {
    let client = Client::new().await;
    let Client { limiter, clock, counters } = client;
    let limiter = Arc::new(limiter);
    let partner = key().key.to_string();
    let (policy, partner) = (Policy::parse(POLICY).unwrap().policy, partner.as_str());
    let pacer = Pacer::new(policy, Arc::clone(&limiter), "partner");
    let key = [("partner", partner)];
    let reserve = async || match pacer.reserve(&key, 1).await.unwrap() {
        Reserved::Granted(reservation) => reservation,
        Reserved::Denied { retry_after } => panic!("come back in {retry_after:?}"),
    };
    let wait = |reserved: &tollgate::Reservation<_>| reserved.wait().as_millis();
    let (first, second, third, fourth) = (reserve().await, reserve().await, reserve().await, reserve().await);
    assert_eq!([&first, &second, &third, &fourth].map(wait), [0, 0, 100, 200]);
    third.cancel().await;
    assert_eq!(wait(&reserve().await), 300, "the fourth was told when to go");
    assert_eq!(counters.counts().refunded, 0);
    let short = pacer.clone().waiting_at_most(Duration::from_millis(250));
    let Reserved::Denied { retry_after } = short.reserve(&key, 1).await.unwrap() else { panic!("it is 400 ms") };
    assert_eq!(retry_after, Some(Duration::from_millis(150)));
    clock.advance(Duration::from_millis(100));
    let last = reserve().await;
    assert_eq!(wait(&last), 300);
    last.cancel().await;
    assert_eq!((counters.counts().refunded, wait(&reserve().await)), (1, 300));
    let Reserved::Denied { retry_after } = pacer.reserve(&key, 7).await.unwrap() else { panic!("never") };
    assert_eq!(retry_after, None);
    let other = Pacer::new(Policy::parse(POLICY).unwrap().policy, limiter, "tenant");
    let error = other.reserve(&[("tenant", "acme")], 1).await.map(drop).unwrap_err().to_string();
    assert!(error.contains("keeps nobody waiting"), "{error}");
}

#[test]
fn json_tells_the_wait_of_pacers_and_of_nothing_else() {
    let site = Site::under(POLICY);
    let acme = json!({ "partner": "acme" });
    let waits: Vec<_> = (0..5).map(|_| site.ask("partner", &acme)["wait_ms"].clone()).collect();
    assert_eq!(waits, [0, 0, 100, 200, 300]);
    let denied = site.ask("partner", &acme);
    assert_eq!(
        (&denied["allowed"], &denied["retry_after_ms"], &denied["wait_ms"]),
        (&false.into(), &100.into(), &0.into())
    );
    let observed = site.dev.decide(&json!({ "limit": "partner", "key": acme, "cost": 0 })).1;
    assert_eq!((&observed["allowed"], &observed["wait_ms"]), (&true.into(), &400.into()));
    let (partner, tenant) = (json!({ "partner": "emca" }), json!({ "tenant": "t" }));
    let all = ["partner", "trial"].map(|limit| json!({ "limit": limit, "key": partner }));
    let all: Vec<_> = all.into_iter().chain([json!({ "limit": "tenant", "key": tenant })]).collect();
    let answer = || site.dev.decide(&Value::Array(all.clone())).1;
    let told = |answer: &Value| {
        let of = |nth: usize, name: &str| answer[nth].get(name).cloned();
        [of(0, "wait_ms"), of(1, "wait_ms"), of(1, "shadow_wait_ms"), of(2, "wait_ms")]
    };
    let some = |ms: u64| Some(Value::from(ms));
    assert_eq!(told(&answer()), [some(0), some(0), some(0), None]);
    assert_eq!(told(&answer()), [some(0), some(0), some(1000), None], "what only reports keeps nobody waiting");
    // The tenant is over its limit: what the pacer was charged is given back.
    assert_eq!(answer()[0]["allowed"], false);
    assert_eq!(site.ask("partner", &partner)["wait_ms"], 100);
}

#[test]
fn the_commands_tell_and_set_the_figures_of_a_pacer() {
    let site = Site::under(POLICY);
    let acme = json!({ "partner": "acme" });
    for _ in 0..3 {
        site.ask("partner", &acme);
    }
    let told = site.json(&["inspect", "partner:acme"]);
    let limit = &told["limits"]["partner"];
    assert_eq!((&limit["burst"], &limit["rate"]), (&5.into(), &"10/s".into()));
    // To within a second, in which ten come back.
    assert!(limit["remaining"].as_u64().is_some_and(|left| (3..=6).contains(&left)), "{limit}");
    assert!(limit["wait_ms"].as_u64().is_some_and(|ms| ms <= 1200), "{limit}");
    let text = stdout(&site.on(&["inspect", "partner:acme"]));
    assert!(text.contains(" of 6 left, 10/s") && text.contains("1/1/100000000/6~1/"), "{text}");
    let routed = policy(&format!("{POLICY}[[routes]]\nmatch = 'GET /out'\ncharge = ['partner']\n"));
    let routed = ["explain", "--policy", routed.path().to_str().unwrap()];
    let request = ["--method", "GET", "--path", "/out", "--dimension", "partner=acme"];
    let text = stdout(&run(&[&routed[..], &request].concat()));
    assert!(text.contains("cost 1 of 10/s, burst 5, paced with delay 1, waits 300 ms at most,"), "{text}");
    let set = site.json(&["override", "partner:acme", "--limit", "partner", "--rate", "1/s", "--for", "2h"]);
    let figures = &set["items"][0]["hold"]["overrides"]["partner"];
    assert_eq!((&figures["rate"], &figures["burst"]), (&"1/s".into(), &0.into()), "nobody waits");
    let denied = site.ask("partner", &acme);
    assert_eq!((&denied["allowed"], &denied["retry_after_ms"]), (&false.into(), &300.into()), "behind those before");
    let other = json!({ "partner": "emca" });
    for _ in 0..3 {
        site.ask("partner", &other);
    }
    site.json(&["override", "partner:emca", "--limit", "partner", "--rate", "20/s", "--burst", "7", "--for", "2h"]);
    let allowed = site.ask("partner", &other);
    assert_eq!((&allowed["held"], &allowed["wait_ms"]), (&"override".into(), &250.into()));
    // The command's clock goes on while the server's stands: what nobody waits for any more by the former is not reset.
    let reset = site.json(&["reset", "partner:emca"]);
    let waits = if reset["reset"] == json!(["partner"]) { 0 } else { 300 };
    assert_eq!(site.ask("partner", &other)["wait_ms"], waits, "{reset}");
}
