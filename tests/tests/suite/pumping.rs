//! Defence against SMS pumping: on the table, over HTTP, and over a day of an attack.

use crate::dev::Dev;
use crate::harness::{PATIENCE, TABLE, connected, endpoint, repository};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;
use tollgate::testing::ManualClock;
use tollgate::{Counters, DynamoStore, KeySecrets, Policy, SystemClock};
use tollgate_cli::attack::pumping::report;
use tollgate_core::Clock;
use tollgate_dynamodb::{Items, Updated};
use tollgate_otp::pumping::{Change, CohortKey, Ladder, Marks, Tally, Window, storage};

async fn items(clock: &ManualClock) -> (Items, Arc<Counters>) {
    let connected = connected(&endpoint().await).await;
    let counters = Arc::new(Counters::default());
    let store = DynamoStore::with_trusted_clock(&connected, TABLE, Arc::new(clock.clone()), counters.clone());
    (Items::new(store).with_deadline(PATIENCE), counters)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_table_counts_messages_as_the_rules_say() {
    let (items, counters) = items(&ManualClock::new(SystemClock.now())).await;
    let mut random = fastrand::Rng::with_seed(7);
    // A window that nobody else counts in.
    let key = CohortKey { country: "XX".to_owned(), window: Window(random.u64(..1 << 30)), shard: 0 };
    let blocks = ["+4072100", "+4072101", "+4072102"];
    let mut told: BTreeMap<String, Tally> = BTreeMap::new();
    for n in 0..600 {
        let block = blocks[random.usize(..blocks.len())];
        let number = random.u32(..200);
        let change = match random.u8(..6) {
            0 => Change::SentOnly,
            1 => Change::Verified,
            2 => Change::Refused,
            _ => Change::Sent(Marks { number, next: number + 1 }),
        };
        let expected = change.apply(told.get(block));
        let updated = items.begin().update(&storage::partition_key(&key), &storage::render(&key, block, change)).await;
        let is_applied = matches!(updated.unwrap(), Updated::Applied(_));
        assert_eq!(is_applied, expected.is_some(), "{n}: {change:?} of {:?}", told.get(block));
        told.extend(expected.map(|tally| (block.to_owned(), tally)));
    }
    let found = items.begin().read(&storage::partition_key(&key)).await.unwrap().unwrap();
    assert_eq!(storage::to_tallies(&found).unwrap(), told);
    // That item, and others that are not there.
    let others = (1..250).map(|n| CohortKey { window: Window(key.window.0 + n), shard: 1, ..key.clone() });
    let keys: Vec<_> = others.chain([key.clone()]).map(|key| storage::partition_key(&key)).collect();
    let (call, before) = (items.begin(), counters.counts().round_trips);
    assert_eq!(call.read_all(keys).await.unwrap().len(), 1);
    assert_eq!(counters.counts().round_trips - before, 3, "a hundred items a request");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_who_judge_at_once_one_writes_the_ladder() {
    let (items, _) = items(&ManualClock::new(SystemClock.now())).await;
    // Not the ladder's own key, which other tests may use.
    let pk = format!("1/pumping/test-{}", fastrand::u64(..));
    let next = storage::render_ladder(&Ladder::default(), 0);
    let (first, second) =
        (items.begin().update(&pk, &next).await.unwrap(), items.begin().update(&pk, &next).await.unwrap());
    assert!(matches!(first, Updated::Applied(_)) && matches!(second, Updated::Refused(Some(_))));
    let stored = storage::to_ladder(items.begin().read(&pk).await.unwrap().as_ref()).unwrap();
    assert_eq!((stored.writes, stored.ladder), (1, Ladder::default()));
}

fn send(dev: &Dev, who: &str, from: &str) -> (u16, Value) {
    let headers = format!("x-dev-principal: {who}\r\nx-dev-source-ip: {from}\r\n");
    let (status, _, body) = dev.ask_with("POST", "/api/auth/otp/send", &headers, r#"{"purpose":"login"}"#);
    (status, body)
}

fn judge(dev: &Dev) -> Value {
    let (status, _, body) = dev.ask("POST", "/dev/sentinel", "");
    assert_eq!(status, 200, "{body}");
    body
}

#[test]
fn numbers_in_a_row_are_asked_for_captchas_until_it_is_over() {
    let mut profiles: serde_json::Map<String, Value> = (0..40)
        .map(|n| (format!("robot-{n}"), json!({ "phone": format!("+4072100{n:04}"), "verified": true })))
        .collect();
    profiles.insert("alice".to_owned(), json!({ "phone": "+40745123456", "verified": true }));
    let mut file = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
    file.write_all(Value::Object(profiles).to_string().as_bytes()).unwrap();
    let dev = Dev::start(&["--clock", "manual", "--profiles", file.path().to_str().unwrap()]);
    for n in 0..30 {
        assert_eq!(send(&dev, &format!("user=robot-{n}"), &format!("203.0.113.{n}")).0, 202);
    }
    assert_eq!(judge(&dev)["steps"][0]["why"], "consecutive");
    let sent = |dev: &Dev| dev.ask("GET", "/dev/outbox", "").2.as_array().unwrap().len();
    let before = (dev.stats()["write_units"].as_u64().unwrap(), sent(&dev));
    let (status, body) = send(&dev, "user=robot-30", "203.0.113.30");
    assert_eq!((status, &body["error"]), (403, &"captcha_required".into()));
    // What is refused costs the count of it.
    assert_eq!((dev.stats()["write_units"].as_u64().unwrap() - before.0, sent(&dev)), (1, before.1));
    assert_eq!(send(&dev, "user=robot-30,captcha=solved", "203.0.113.30").0, 202, "a human, as far as one can tell");
    assert_eq!(send(&dev, "user=alice", "198.51.100.7").0, 202, "somebody else");
    // Nobody attacks any more.
    for _ in 0..40 {
        dev.advance_ms(60_000);
        judge(&dev);
    }
    assert_eq!(send(&dev, "user=robot-31", "203.0.113.31").0, 202, "{}", judge(&dev));
}

fn sample() -> Policy {
    let policy = Policy::load(repository("infra/tollgate.toml")).unwrap().policy;
    policy.with_secrets(KeySecrets::development())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bill_of_forty_times_the_usual_is_stopped_whatever_the_attack_is_like() {
    // Four days that nothing was fitted to: other prefixes, volumes, runs, addresses and habits each.
    let report = report(sample(), 7_000, 4).await.unwrap();
    for played in &report.days {
        let (defended, none) = (&played.defended, &played.undefended);
        // The control: the same wishes, and nothing in the way.
        assert!(none.lost * 100 >= none.undefended * 90, "seed {}: {} of {}", none.seed, none.lost, none.undefended);
        assert!(none.lost >= 35 * none.usual, "seed {}: x{}", none.seed, none.lost / none.usual.max(1));
        assert!(defended.asked * 100 >= none.asked * 95, "the attack goes on: {}", defended.asked);
        assert!(defended.detected_after_min.is_some_and(|after| after <= 15.0), "{defended:?}");
        assert!(defended.lost * 50 < defended.undefended, "2%: {defended:?}");
        // People whose numbers are among the attacker's are restricted with him if he solves CAPTCHAs, and only then.
        assert!(defended.blocked * 100 < 3 * defended.people, "3%: {defended:?}");
        assert_eq!(defended.false_alarms, 0, "{defended:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_seed_is_the_same_day() {
    let (one, other) = (report(sample(), 11, 1).await.unwrap(), report(sample(), 11, 1).await.unwrap());
    assert_eq!(serde_json::to_value(&one.days).unwrap(), serde_json::to_value(&other.days).unwrap());
}
