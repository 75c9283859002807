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
use tollgate_core::{Clock, Timestamp};
use tollgate_dynamodb::{Items, Updated};
use tollgate_otp::pumping::{Change, CohortKey, Credit, Credits, Ladder, Marks, Tally, Window, guard, storage};

async fn items(clock: &ManualClock) -> (Items, Arc<Counters>) {
    items_of(&endpoint().await, TABLE, clock).await
}

async fn items_of(url: &str, table: &str, clock: &ManualClock) -> (Items, Arc<Counters>) {
    let (connected, counters) = (connected(url).await, Arc::new(Counters::default()));
    let store = DynamoStore::with_trusted_clock(&connected, table, Arc::new(clock.clone()), counters.clone());
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
            1 => Change::Verified(random.u64(1..4)),
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
    send_with(dev, who, from, "")
}

/// The same with a cookie's line.
fn send_with(dev: &Dev, who: &str, from: &str, cookie: &str) -> (u16, Value) {
    let headers = format!("x-dev-principal: {who}\r\nx-dev-source-ip: {from}\r\n{cookie}");
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

/// What somebody's verification costs, and whether he is verified.
fn verify(dev: &Dev, who: &str, challenge: &Value, code: &Value) -> (u16, u64) {
    let units = || dev.stats()["write_units"].as_u64().unwrap();
    let (before, headers) = (units(), format!("x-dev-principal: {who}\r\n"));
    let body = json!({ "challenge": challenge, "purpose": "login", "code": code }).to_string();
    let (status, ..) = dev.ask_with("POST", "/api/auth/otp/verify", &headers, &body);
    (status, units() - before)
}

fn last_code(dev: &Dev) -> Value {
    dev.ask("GET", "/dev/outbox", "").2.as_array().unwrap().last().unwrap()["code"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn where_messages_are_watched_a_wrong_code_costs_one_write_unit_and_the_right_one_two() {
    let people = ["alice", "bob", "carol"];
    let number = |n: usize| json!({ "phone": format!("+407451234{n}7"), "verified": true });
    let profiles: serde_json::Map<_, _> =
        people.iter().enumerate().map(|(n, who)| ((*who).to_owned(), number(n))).collect();
    let mut file = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
    file.write_all(Value::Object(profiles).to_string().as_bytes()).unwrap();
    let dev = Dev::start(&["--clock", "manual", "--profiles", file.path().to_str().unwrap()]);
    // Nobody's clock moves between messages of one window.
    let (stats, mut wrong) = (dev.stats(), 0);
    for who in people {
        let (status, sent) = send(&dev, &format!("user={who}"), "203.0.113.7");
        assert_eq!(status, 202, "{sent}");
        let code = last_code(&dev);
        if code != "000000" {
            wrong += 1;
            assert_eq!(verify(&dev, &format!("user={who}"), &sent["challenge"], &"000000".into()), (401, 1));
        }
        assert_eq!(verify(&dev, &format!("user={who}"), &sent["challenge"], &code), (200, 2));
    }
    assert!(wrong > 0);
    let at = Timestamp::from_millis(stats["now_ms"].as_u64().unwrap());
    let url = stats["dynamodb_endpoint"].as_str().unwrap();
    let (items, _) = items_of(url, stats["table"].as_str().unwrap(), &ManualClock::new(at)).await;
    let key = storage::partition_key(&CohortKey::of("RO", "+4074512", Window::of(at)));
    let tally =
        async || storage::to_tallies(&items.begin().read(&key).await.unwrap().unwrap()).unwrap().remove("+4074512");
    assert_eq!(tally().await.map(|tally| (tally.sent, tally.verified)), Some((3, 0)));
    // The ladder is one write, and what all three have counted alike is one; then only the ladder is left.
    for units in [2, 1] {
        let before = dev.stats()["write_units"].as_u64().unwrap();
        judge(&dev);
        assert_eq!(dev.stats()["write_units"].as_u64().unwrap() - before, units);
        assert_eq!(tally().await.map(|tally| (tally.sent, tally.verified)), Some((3, 3)));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn credits_that_are_alike_are_one_write_and_as_many_as_were_given() {
    let (items, counters) = items(&ManualClock::new(SystemClock.now())).await;
    let window = Window(fastrand::u64(..1 << 30));
    let credit = |n: u32| Credit { window, country: "XX".to_owned(), block: format!("+407{n:04}") };
    let tallies = async |n: u32| {
        let key = CohortKey::of("XX", &credit(n).block, window);
        storage::to_tallies(&items.begin().read(&storage::partition_key(&key)).await.unwrap().unwrap()).unwrap()
    };
    for n in 0..3 {
        let key = CohortKey::of("XX", &credit(n).block, window);
        for number in 0..8 {
            let sent = storage::render(&key, &credit(n).block, Change::Sent(Marks { number, next: number + 1 }));
            items.begin().update(&storage::partition_key(&key), &sent).await.unwrap();
        }
    }
    let mut credits = Credits::default();
    (0..18).for_each(|i| credits.add(credit(i % 3), 1));
    let before = counters.counts().write_units;
    assert!(guard::credit(&items, &credits).await.is_empty());
    assert_eq!(counters.counts().write_units - before, 3);
    // Handed out again, and again: bounded, and read as never more than were sent.
    for verified in [6, 12, 12] {
        for n in 0..3 {
            let tally = tallies(n).await.remove(&credit(n).block).unwrap();
            assert_eq!((tally.sent, tally.verified, tally.converted()), (8, verified, verified.min(8)));
        }
        assert!(guard::credit(&items, &credits).await.is_empty());
    }
}

/// Signs in; the line of the cookie that the device gets.
fn sign_in(dev: &Dev, who: &str, cookie: &str) -> Option<String> {
    let (status, sent) = send_with(dev, &format!("{who},captcha=solved"), "203.0.113.7", cookie);
    assert_eq!(status, 202, "{who}: {sent}");
    let body = json!({ "challenge": sent["challenge"], "purpose": "login", "code": last_code(dev) }).to_string();
    let answer = dev.answer("POST", "/api/auth/otp/verify", &format!("x-dev-principal: {who}\r\n{cookie}"), &body);
    assert!(answer.contains(" 200 "), "{answer}");
    crate::dev::cookie(&answer)
}

#[test]
fn who_was_known_before_his_numbers_were_suspected_is_asked_for_a_captcha_at_most_and_nobody_else() {
    let number = |n: usize| json!({ "phone": format!("+4072100{n:04}"), "verified": true });
    let mut profiles: serde_json::Map<_, _> = (0..160).map(|n| (format!("robot-{n}"), number(n))).collect();
    let people = ["alice", "dave", "erin", "frank", "grace"];
    profiles.extend(people.iter().enumerate().map(|(n, who)| ((*who).to_owned(), number(9001 + 2 * n))));
    profiles.insert("bob".to_owned(), json!({ "phone": "+40745123456", "verified": true }));
    let text = std::fs::read_to_string(repository("infra/tollgate.toml")).unwrap();
    let wide = text.replace("rate    = \"40/h\"", "rate    = \"4000/h\"");
    assert_ne!(text, wide, "the limit of a block is in the way of such an attack");
    let file = |suffix: &str, text: &str| {
        let mut file = tempfile::Builder::new().suffix(suffix).tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    };
    let (profiles, policy) = (file(".json", &Value::Object(profiles).to_string()), file(".toml", &wide));
    let path = |file: &tempfile::NamedTempFile| file.path().to_str().unwrap().to_owned();
    let dev = Dev::start(&["--clock", "manual", "--profiles", &path(&profiles), "--policy", &path(&policy)]);
    let robot = |n: usize| send(&dev, &format!("user=robot-{n},captcha=solved"), &format!("203.0.113.{n}"));
    let (before, bobs) = (sign_in(&dev, "user=alice", "").unwrap(), sign_in(&dev, "user=bob", "").unwrap());
    dev.advance_ms(1000);
    assert!((0..30).all(|n| robot(n).0 == 202));
    assert_eq!(judge(&dev)["steps"][0]["to"], "captcha");
    let late = sign_in(&dev, "user=dave", "").unwrap();
    // Those who solve CAPTCHAs type no codes.
    dev.advance_ms(300_000);
    assert!((30..130).all(|n| robot(n).0 == 202));
    let reduced = (0..15).any(|_| {
        dev.advance_ms(60_000);
        judge(&dev)["standings"][0]["rung"] == "reduced"
    });
    assert!(reduced, "{}", judge(&dev));
    assert!((130..145).any(|n| robot(n).0 == 429), "six an hour");
    let forged = before.replace("=dev.", "=dev.A");
    let (solved, refused) = (|who: &str| format!("user={who},captcha=solved"), (429, "rate_limited".into()));
    // Strangers; with another's device; with a token that was changed; and who was known too late.
    let cookies = [("erin", ""), ("frank", &*bobs), ("grace", &before), ("alice", &forged), ("dave", &late)];
    for (who, cookie) in cookies {
        let (status, body) = send_with(&dev, &solved(who), "198.51.100.7", cookie);
        assert_eq!((status, body["error"].clone()), refused, "{who}: {body}");
    }
    // The limit that denies leaves a cooldown.
    dev.advance_ms(61_000);
    let (status, body) = send_with(&dev, "user=alice", "198.51.100.7", &before);
    assert_eq!((status, &body["error"]), (403, &"captcha_required".into()));
    assert_eq!(sign_in(&dev, "user=alice", &before), None, "what tells since when is kept");
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
        // People whose numbers are among the attacker's are restricted with him if he solves CAPTCHAs, and only then; less who was known.
        assert!(defended.blocked * 100 < defended.people, "1%: {defended:?}");
        let strangers = &played.strangers;
        assert!(
            defended.blocked <= strangers.blocked && strangers.blocked * 100 < 3 * strangers.people,
            "{strangers:?}"
        );
        assert_eq!(strangers.detected_after_min, defended.detected_after_min, "who is known hides no attack");
        assert_eq!(defended.false_alarms, 0, "{defended:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_seed_is_the_same_day() {
    let (one, other) = (report(sample(), 11, 1).await.unwrap(), report(sample(), 11, 1).await.unwrap());
    assert_eq!(serde_json::to_value(&one.days).unwrap(), serde_json::to_value(&other.days).unwrap());
}
