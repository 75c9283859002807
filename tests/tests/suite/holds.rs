//! What an operator sets for a key: in force with the next decision of processes that share nothing, at no cost to those
//! that follow; and what the commands say of it.

use crate::dev::Dev;
use crate::harness::{
    Client, SECOND, TABLE, bucket, charge, costing, endpoint, json, key, one, raw, run, run_at_root, stderr, stdout,
};
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};
use std::io::Write;
use std::time::Duration;
use tollgate::{Outcome, Source, Store};
use tollgate_core::{Charges, Held, Hold, Item, ItemKey, Key, LimitName, Override, Terms};
use tollgate_dynamodb::admin::{self, Order};
use tollgate_dynamodb::{Error, partition_key};

const HOUR: u64 = 3600 * SECOND;

fn limit(name: &str) -> LimitName {
    LimitName::new(name).unwrap()
}

/// Other figures for the harness's limit, `n` an hour, for so many seconds.
fn figures(client: &Client, n: u64, secs: u64) -> Order {
    let until = client.clock_now() + Duration::from_secs(secs);
    Order::Override(limit("limit"), Override { figures: (bucket(n, HOUR, n)).into(), until })
}

fn ban(client: &Client, secs: u64) -> Order {
    Order::Ban(client.clock_now() + Duration::from_secs(secs))
}

impl Client {
    /// Another process, by the same clock.
    async fn beside(&self) -> Self {
        Self::at(self.clock.clone()).await
    }
}

async fn order(client: &Client, item: &ItemKey, order: &Order) -> Option<Hold> {
    admin::order(client.limiter.store(), std::slice::from_ref(item), order).await.unwrap().after
}

async fn stored(client: &Client, item: &ItemKey) -> Item {
    client.limiter.store().read(item, &[]).await.unwrap().unwrap_or_default()
}

/// Whether a call is allowed, what is left, and the round trips that it took.
async fn call(client: &Client, charges: &Charges) -> (bool, u64, u64) {
    let (decision, round_trips, _) = client.measured(charges).await;
    (decision.is_allowed(), decision.limits[0].remaining, round_trips)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_override_is_in_force_with_the_next_decision_of_another_process_and_then_costs_nothing() {
    let operator = Client::new().await;
    let process = operator.beside().await;
    let item = key();
    let fifty = one(&item, 50, HOUR, 50);
    for left in [49, 48, 47] {
        assert_eq!(call(&process, &fifty).await, (true, left, 1));
    }
    order(&operator, &item, &figures(&operator, 1000, 600)).await;
    assert_eq!(call(&process, &fifty).await, (true, 996, 2), "looser, with the debt of three");
    for left in [995, 994, 993] {
        assert_eq!(call(&process, &fifty).await, (true, left, 1));
    }
    let decision = process.take(&fifty).await;
    let until = operator.clock_now() + Duration::from_secs(600);
    assert_eq!(decision.limits[0].held, Some(Held::Override { until }));
    order(&operator, &item, &figures(&operator, 4, 600)).await;
    let (allowed, _, round_trips) = call(&process, &fifty).await;
    assert_eq!((allowed, round_trips), (false, 2), "tighter: refused, and moved to the new figures");
    assert_eq!(call(&process, &fifty).await, (false, 0, 0), "and known");
    // Of four an hour, eight are owed.
    process.advance_ms(3_600_000 + 900_000 - 1);
    order(&operator, &item, &figures(&operator, 4, 600)).await;
    assert!(!process.take(&fifty).await.is_allowed());
    process.advance_ms(1);
    assert!(process.take(&fifty).await.is_allowed());
}

#[tokio::test(flavor = "multi_thread")]
async fn loosening_shows_within_a_second_in_a_process_that_has_just_denied() {
    let operator = Client::new().await;
    let process = operator.beside().await;
    let item = key();
    let two = one(&item, 2, HOUR, 2);
    for _ in 0..2 {
        process.take(&two).await;
    }
    assert_eq!(call(&process, &two).await, (false, 0, 0));
    order(&operator, &item, &figures(&operator, 100, 600)).await;
    let stranger = operator.beside().await;
    assert_eq!(call(&stranger, &two).await, (true, 97, 2), "at once where nobody has just denied");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(call(&process, &two).await, (true, 96, 2));
    assert_eq!(call(&process, &two).await, (true, 95, 1));
    order(&operator, &item, &Order::Allow(Some(limit("limit")))).await;
    assert!(!process.take(&two).await.is_allowed(), "five are owed of two an hour");
    assert!(process.limiter.store().read(&item, &[]).await.unwrap().unwrap().hold.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_without_state_is_under_its_override_at_once() {
    let operator = Client::new().await;
    let process = operator.beside().await;
    for knows_the_item in [false, true] {
        let item = key();
        if knows_the_item {
            let other = charge("other", Terms::new(1, bucket(5, HOUR, 5)), 1);
            process.take(&Charges::new(item.clone(), vec![other]).unwrap()).await;
        }
        order(&operator, &item, &figures(&operator, 1, 600)).await;
        let fifty = one(&item, 50, HOUR, 50);
        assert_eq!(call(&process, &fifty).await, (true, 0, 2), "knows the item: {knows_the_item}");
        assert_eq!(call(&process, &fifty).await, (false, 0, 0));
        let never = process.take(&costing(&item, 50, HOUR, 50, 2)).await;
        assert_eq!(never.outcome(), Outcome::NeverFits, "of a burst of one");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ban_denies_the_next_decision_everywhere_until_it_is_lifted() {
    let operator = Client::new().await;
    let item = key();
    let fifty = one(&item, 50, HOUR, 50);
    let mut processes = Vec::new();
    for _ in 0..3 {
        let process = operator.beside().await;
        assert!(process.take(&fifty).await.is_allowed());
        processes.push(process);
    }
    order(&operator, &item, &ban(&operator, 600)).await;
    processes.push(operator.beside().await);
    operator.advance_ms(250);
    for process in &processes {
        let (decision, round_trips, _) = process.measured(&fifty).await;
        assert_eq!((decision.outcome(), round_trips), (Outcome::Denied, 1));
        assert_eq!(decision.retry_after(), Some(Duration::from_millis(599_750)));
        for cost in [1, 51] {
            let (decision, round_trips, write_units) = process.measured(&costing(&item, 50, HOUR, 50, cost)).await;
            assert_eq!((decision.outcome(), round_trips, write_units), (Outcome::Denied, 0, 0), "known");
            assert_eq!(decision.limits[0].source, Source::Cache);
        }
        assert_eq!(process.counts().banned, 3);
    }
    order(&operator, &item, &Order::Allow(None)).await;
    let stranger = operator.beside().await;
    assert_eq!(call(&stranger, &fifty).await, (true, 46, 1), "nothing was charged under the ban");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (never, _, write_units) = processes[0].measured(&costing(&item, 50, HOUR, 50, 51)).await;
    assert_eq!((never.outcome(), write_units), (Outcome::NeverFits, 0), "it has only seen the ban");
    assert!(call(&processes[1], &fifty).await.0);
    assert_eq!(stored(&operator, &item).await.hold, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_its_end_the_first_caller_goes_on_under_the_policy_and_removes_it() {
    let operator = Client::new().await;
    let item = key();
    let fifty = one(&item, 50, HOUR, 50);
    for _ in 0..10 {
        operator.take(&fifty).await;
    }
    order(&operator, &item, &figures(&operator, 1000, 9)).await;
    order(&operator, &item, &ban(&operator, 3)).await;
    assert!(!operator.beside().await.take(&fifty).await.is_allowed());
    operator.advance_ms(2_999);
    let process = operator.beside().await;
    assert_eq!(process.take(&fifty).await.retry_after(), Some(Duration::from_millis(1)));
    operator.advance_ms(1);
    // Ten are owed, less what the policy's 50 an hour gave back in 3 s, until a caller moves them.
    assert_eq!(call(&process, &fifty).await, (true, 989, 1), "the ban is over, the figures stay");
    let left = stored(&operator, &item).await.hold.unwrap();
    assert_eq!((left.banned_until, left.overrides.len()), (None, 1));
    operator.advance_ms(6_000);
    // 10.96 were owed, of which 1000 an hour gave 1.67 back in 6 s.
    assert_eq!(call(&process, &fifty).await, (true, 39, 1), "one write does all of it");
    let after = stored(&operator, &item).await;
    assert_eq!((after.hold, after.buckets[&limit("limit")].terms.revision), (None, 1));
    assert_eq!(call(&operator.beside().await, &fifty).await, (true, 38, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_under_a_ban_keeps_the_ban_and_fills_the_buckets() {
    let operator = Client::new().await;
    let item = key();
    let two = one(&item, 2, HOUR, 2);
    operator.take(&two).await;
    operator.take(&two).await;
    order(&operator, &item, &ban(&operator, 600)).await;
    let filled = admin::reset(operator.limiter.store(), &item, None).await.unwrap();
    assert_eq!(filled, [limit("limit")]);
    let process = operator.beside().await;
    assert_eq!(process.take(&two).await.retry_after(), Some(Duration::from_secs(600)));
    order(&operator, &item, &Order::Allow(None)).await;
    assert_eq!(call(&operator.beside().await, &two).await, (true, 1, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn revisions_and_plans_do_not_touch_an_override() {
    let operator = Client::new().await;
    let item = key();
    let under = |revision, plan: &str, n| {
        let terms = Terms::new(revision, bucket(n, HOUR, n)).on_plan(plan);
        Charges::new(item.clone(), vec![charge("limit", terms, 1)]).unwrap()
    };
    assert!(operator.take(&under(1, "free", 50)).await.is_allowed());
    order(&operator, &item, &figures(&operator, 10, 600)).await;
    let (old, new) = (operator.beside().await, operator.beside().await);
    assert_eq!(call(&old, &under(1, "free", 50)).await, (true, 8, 2));
    assert_eq!(call(&new, &under(2, "pro", 500)).await, (true, 7, 2));
    for (left, plan) in [(6, "free"), (5, "pro"), (4, "free"), (3, "pro")] {
        assert_eq!(call(&new, &under(2, plan, if plan == "pro" { 500 } else { 60 })).await, (true, left, 1), "{plan}");
    }
    assert_eq!((call(&old, &under(1, "free", 50)).await, old.counts().revision_conflicts), ((true, 2, 1), 0));
    order(&operator, &item, &Order::Allow(None)).await;
    assert_eq!(call(&new, &under(2, "pro", 500)).await, (true, 500 - 9, 2), "debt is carried in tokens");
    assert_eq!(stored(&operator, &item).await.buckets[&limit("limit")].terms.revision, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn sixteen_limits_can_have_figures_and_a_seventeenth_is_refused() {
    let operator = Client::new().await;
    let item = key();
    let until = operator.clock_now() + Duration::from_secs(60);
    let other =
        |i: u64| Order::Override(limit(&format!("l{i}")), Override { figures: (bucket(1, HOUR, 1)).into(), until });
    for i in 0..16 {
        order(&operator, &item, &other(i)).await;
    }
    let error = admin::order(operator.limiter.store(), std::slice::from_ref(&item), &other(16)).await.unwrap_err();
    assert!(error.to_string().contains("lift some with `tollgate allow`"), "{error}");
    let lifted = order(&operator, &item, &Order::Allow(Some(limit("l3")))).await.unwrap();
    assert_eq!(lifted.overrides.len(), 15);
    operator.advance_ms(60_000);
    assert_eq!(order(&operator, &item, &other(16)).await, None, "what ends at once is nothing");
    assert_eq!(stored(&operator, &item).await.hold, None, "and what has ended is removed");
}

/// A caller has a key under each secret, and other keys may have one of them among their dimensions.
#[tokio::test(flavor = "multi_thread")]
async fn all_keys_of_a_caller_and_those_that_contain_one_are_found_together() {
    let client = Client::new().await;
    let within = |item: &ItemKey| {
        let (_, name) = item.key.dimensions().next().unwrap();
        ItemKey::shared(Key::new([("tenant", "acme"), ("test", name)]).unwrap())
    };
    let (active, retiring, stranger) = (key(), key(), key());
    let theirs = [active.clone(), retiring.clone(), within(&active), within(&retiring)];
    for item in theirs.iter().chain([&stranger, &within(&stranger)]) {
        assert!(client.take(&one(item, 1, HOUR, 5)).await.is_allowed());
    }
    let keys = [active.key.clone(), retiring.key.clone()];
    let found = admin::remembered(client.limiter.store(), &keys, &theirs[..2]).await.unwrap();
    let mut expected: Vec<_> = theirs.iter().map(partition_key::of).collect();
    expected.sort();
    assert_eq!(found.items.iter().map(admin::Forgettable::pk).collect::<Vec<_>>(), expected);
}

/// On the item of a key that a test has for itself.
#[tokio::test(flavor = "multi_thread")]
async fn what_changes_while_it_is_being_forgotten_is_looked_at_again() {
    let operator = Client::new().await;
    let store = operator.limiter.store();
    let item = key();
    operator.take(&one(&item, 5, HOUR, 5)).await;
    let forgettable =
        || async { admin::remembered(store, std::slice::from_ref(&item.key), std::slice::from_ref(&item)).await };
    let seen = forgettable().await.unwrap().items;
    assert_eq!(seen.iter().map(admin::Forgettable::pk).collect::<Vec<_>>(), [partition_key::of(&item)]);
    order(&operator, &item, &ban(&operator, 60)).await;
    let refused = admin::forget(store, seen[0].clone()).await.unwrap_err();
    assert!(matches!(&refused, Error::Held { key } if *key == item.key.to_string()), "{refused}");
    assert!(matches!(forgettable().await, Err(Error::Held { .. })));
    // A ban that has ended, and is changed meanwhile, is no reason to keep the item.
    operator.advance_ms(60_000);
    let seen = forgettable().await.unwrap().items.remove(0);
    assert!(operator.beside().await.take(&one(&item, 5, HOUR, 5)).await.is_allowed());
    assert_eq!(stored(&operator, &item).await.hold, None);
    assert!(admin::forget(store, seen.clone()).await.unwrap());
    assert!(!admin::forget(store, seen).await.unwrap(), "it was gone");
    assert!(forgettable().await.unwrap().items.is_empty());
}

const POLICY: &str = "
version = 1
[identity]
device = 'context.device'
[limits.orders]
key = ['user']
rate = '50/h'
[limits.logins]
key = ['user']
rate = '5/h'
own_item = true
[limits.seats]
key = ['tenant', 'user']
rate = '100/h'
[limits.devices]
key = ['device']
rate = '9/h'
";

pub fn policy(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

/// A development server under a policy, and the command on its table.
pub struct Site {
    pub dev: Dev,
    policy: tempfile::NamedTempFile,
    at: [String; 4],
}

impl Site {
    fn start() -> Self {
        Self::under(POLICY)
    }

    pub fn under(text: &str) -> Self {
        let policy = policy(text);
        let dev = Dev::start(&["--clock", "manual", "--policy", policy.path().to_str().unwrap()]);
        let stats = dev.stats();
        let of = |name: &str| stats[name].as_str().unwrap().to_owned();
        let at = ["--endpoint-url".to_owned(), of("dynamodb_endpoint"), "--table".to_owned(), of("table")];
        Self { dev, policy, at }
    }

    pub fn on(&self, args: &[&str]) -> std::process::Output {
        let at = self.at.iter().map(String::as_str);
        let policy = ["--policy", self.policy.path().to_str().unwrap()];
        run(&args.iter().copied().chain(at).chain(policy).collect::<Vec<_>>())
    }

    pub fn json(&self, args: &[&str]) -> Value {
        let output = self.on(&[args, &["--json"]].concat());
        assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""), "{args:?}");
        json(&output)
    }

    /// Exit code 1 and one line.
    fn refuses(&self, args: &[&str], says: &str) {
        let output = self.on(args);
        let text = stderr(&output);
        assert_eq!((output.status.code(), text.lines().count(), stdout(&output).as_str()), (Some(1), 1, ""), "{text}");
        assert!(text.starts_with("error: ") && text.contains(says), "{args:?}: {text}");
    }

    pub fn ask(&self, limit: &str, key: &Value) -> Value {
        self.dev.decide(&json!({ "limit": limit, "key": key })).1
    }

    fn now_ms(&self) -> u64 {
        self.dev.ask("POST", "/dev/clock", r#"{"advance_ms":0}"#).2["now_ms"].as_u64().unwrap()
    }

    /// An instant that the command told is `ms` from now, to within the second that the table's clock is known to.
    fn is_in(&self, told: &Value, ms: u64) {
        let (told, expected) = (told.as_u64().unwrap(), self.now_ms() + ms);
        assert!(told.abs_diff(expected) <= 1_500, "{told} is not about {expected}");
    }
}

#[test]
fn the_commands_set_tell_and_lift_what_is_in_force_on_all_items_of_a_key() {
    let site = Site::start();
    let alice = json!({ "user": "alice" });
    assert_eq!(site.ask("orders", &alice)["remaining"], 49);
    assert_eq!(site.ask("logins", &alice)["remaining"], 4);
    let set = site.json(&["override", "user:alice", "--limit", "orders", "--rate", "100/h", "--for", "2h"]);
    assert_eq!((&set["key"], set["items"].as_array().unwrap().len()), (&"user:alice".into(), 1));
    let hold = &set["items"][0]["hold"];
    assert_eq!((&set["items"][0]["pk"], &hold["banned_until_ms"]), (&"1/key/user:alice".into(), &Value::Null));
    let figures = &hold["overrides"]["orders"];
    assert_eq!((&figures["rate"], &figures["burst"]), (&"100/h".into(), &100.into()));
    site.is_in(&figures["until_ms"], 7_200_000);
    let told = site.json(&["inspect", "user:alice"]);
    let orders = &told["limits"]["orders"];
    assert_eq!(
        (&orders["remaining"], &orders["rate"], &orders["held"]),
        (&99.into(), &"100/h".into(), &"override".into())
    );
    assert_eq!((&told["hold"], &orders["revision"]), (hold, &1.into()), "before the first decision under it");
    let answer = site.ask("orders", &alice);
    assert_eq!((&answer["remaining"], &answer["held"]), (&98.into(), &"override".into()));
    let own =
        site.json(&["override", "user:alice", "--limit", "logins", "--rate", "7/5h", "--burst", "3", "--for", "90s"]);
    assert_eq!(own["items"][0]["pk"], "1/own/logins/user:alice", "on the item of its limit");
    assert_eq!(own["items"][0]["hold"]["overrides"]["logins"]["rate"], "7/5h");
    assert_eq!(site.ask("logins", &alice)["remaining"], 1);
    // A ban goes on every item, and beside what is set.
    let banned = site.json(&["ban", "user:alice"]);
    let pks: Vec<_> = banned["items"].as_array().unwrap().iter().map(|item| item["pk"].clone()).collect();
    assert_eq!(pks, ["1/key/user:alice", "1/own/logins/user:alice"]);
    for item in banned["items"].as_array().unwrap() {
        site.is_in(&item["hold"]["banned_until_ms"], 86_400_000);
        assert_eq!(item["hold"]["overrides"].as_object().unwrap().len(), 1);
    }
    for limit in ["orders", "logins"] {
        let answer = site.ask(limit, &alice);
        assert_eq!((&answer["allowed"], &answer["held"]), (&false.into(), &"ban".into()), "{limit}");
        assert!(answer["retry_after_ms"].as_u64().unwrap() > 86_390_000, "{answer}");
    }
    assert_eq!(site.ask("seats", &json!({ "user": "alice", "tenant": "acme" }))["allowed"], true, "another key");
    let told = site.json(&["inspect", "user:alice"]);
    assert_eq!(told["hold"], banned["items"][0]["hold"]);
    let own = &told["own_items"][0];
    assert_eq!((&own["pk"], &own["hold"]), (&"1/own/logins/user:alice".into(), &banned["items"][1]["hold"]));
    assert_eq!((&own["limits"]["logins"]["held"], &own["limits"]["logins"]["burst"]), (&"ban".into(), &3.into()));
    assert_eq!(site.json(&["reset", "user:alice"])["reset"], json!(["orders", "logins"]));
    assert_eq!(site.ask("orders", &alice)["held"], "ban");
    // One override is lifted, and then all.
    let lifted = site.json(&["allow", "user:alice", "--limit", "orders"]);
    assert_eq!((&lifted["items"][0]["hold"]["overrides"], lifted["items"].as_array().unwrap().len()), (&json!({}), 1));
    site.is_in(&lifted["items"][0]["hold"]["banned_until_ms"], 86_400_000);
    let lifted = site.json(&["allow", "user:alice"]);
    assert_eq!(lifted["items"], json!([{ "pk": pks[0], "hold": null }, { "pk": pks[1], "hold": null }]));
    std::thread::sleep(Duration::from_secs(1));
    let answers = [site.ask("orders", &alice), site.ask("logins", &alice)];
    assert_eq!(
        answers.map(|a| (a["allowed"].clone(), a["remaining"].clone())),
        [(true.into(), 49.into()), (true.into(), 4.into())]
    );
    assert_eq!(site.json(&["inspect", "user:alice"])["hold"], Value::Null);
}

#[test]
fn the_commands_tell_people_until_when_and_when_it_shows() {
    let site = Site::start();
    site.dev.ask("POST", "/dev/clock", r#"{"set_ms":1767225599500}"#);
    let text = |args: &[&str]| stdout(&site.on(args));
    let banned = text(&["ban", "user:alice", "--for", "30min"]);
    assert!(
        banned.starts_with("user:alice\n  1/key/user:alice ") && banned.contains("banned until 2026-01-01T00:"),
        "{banned}"
    );
    assert!(
        banned.contains("1/own/logins/user:alice") && banned.ends_with("next decision, in every process\n"),
        "{banned}"
    );
    let set =
        text(&["override", "user:alice", "--limit", "orders", "--rate", "100/min", "--burst", "7", "--for", "7day"]);
    assert!(set.contains("orders 100/min burst 7 until 2026-01-0") && set.contains("within a second"), "{set}");
    let inspected = text(&["inspect", "user:alice"]);
    assert!(inspected.contains("7 of 7 left, 100/min, full in 0 ms, by ban"), "{inspected}");
    assert!(text(&["allow", "user:alice"]).contains("nothing is set"));
    assert!(text(&["inspect", "user:alice"]).contains("nothing remembered"));
    let again = text(&["allow", "user:alice"]);
    assert!(again.contains("nothing was set; nothing has changed") && !again.contains("in force"), "{again}");
    text(&["ban", "user:alice"]);
    let other = text(&["allow", "user:alice", "--limit", "orders"]);
    assert!(other.contains("banned until") && other.contains("nothing was set for this limit"), "{other}");
}

#[test]
fn what_cannot_be_set_is_refused_with_what_to_write() {
    let site = Site::start();
    let set = |limit: &str, rate: &str, lasting: &str, says: &str| {
        site.refuses(&["override", "user:alice", "--limit", limit, "--rate", rate, "--for", lasting], says);
    };
    set("order", "1/h", "2h", "did you mean `orders`?");
    set("seats", "1/h", "2h", "its key is: tenant, user; limits of such a key: `orders`, `logins`");
    set("orders", "1/fortnight", "2h", "unknown unit `fortnight`");
    set("orders", "0/h", "2h", "rate must be a whole number");
    set("orders", "1/h", "5m", "--for: duration \"5m\" has the unknown unit `m`; did you mean `min`?");
    for lasting in ["0s", "999ms", "11year"] {
        set("orders", "1/h", lasting, "must be from 1s to 10year");
    }
    site.refuses(
        &["override", "user:alice", "--limit", "orders", "--rate", "1/h", "--burst", "0", "--for", "2h"],
        "burst must be",
    );
    site.refuses(&["ban", "user:alice", "--for", "soon"], "has no number");
    site.refuses(&["ban", "usr:alice"], "no limit of the policy is counted by `usr`; keys of its limits: ");
    site.refuses(&["ban", "alice"], "write it like `user:alice`");
    site.refuses(&["allow", "user:alice", "--limit", "seats"], "is not counted by `user`");
    site.refuses(&["reset", "user:alice", "--limit", "logns"], "did you mean `logins`?");
    site.refuses(&["forget", "user:"], "empty");
    for args in
        [&["ban"][..], &["override", "user:a", "--limit", "orders", "--rate", "1/h"], &["ban", "user:a", "--fro", "1h"]]
    {
        assert_eq!(run(args).status.code(), Some(1), "{args:?}");
    }
    assert_eq!(site.json(&["inspect", "user:alice"])["exists"], false, "nothing was written");
}

const KEY_COMMANDS: [&[&str]; 6] = [
    &["ban"],
    &["override", "--limit", "orders", "--rate", "1/h", "--for", "1h"],
    &["allow"],
    &["inspect"],
    &["reset"],
    &["forget"],
];

#[tokio::test(flavor = "multi_thread")]
async fn without_a_policy_nothing_is_done_to_a_key_unless_it_is_said_to_be_literal() {
    let url = endpoint().await;
    let user = key().key.to_string();
    tokio::task::block_in_place(|| {
        let on = |args: &[&str]| run(&[args, &["--endpoint-url", &url, "--table", TABLE, "--json"]].concat());
        for command in KEY_COMMANDS {
            let output = on(&[command, &[&*user]].concat());
            let text = stderr(&output);
            assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(1), ""), "{command:?}: {text}");
            assert!(text.contains("no --policy is given") && text.contains("--literal-key"), "{text}");
        }
        for args in [&["inspect", &user][..], &["reset", &user], &["allow", &user]] {
            let output = on(&[args, &["--literal-key"]].concat());
            let note = stderr(&output);
            assert!(output.status.success() && note.lines().count() == 1, "{args:?}: {note}");
            assert!(note.contains("limits with an item of their own are left out"), "{note}");
            assert_eq!(json(&output)["key"], *user);
        }
        let forgotten = on(&["forget", &user, "--literal-key"]);
        assert_eq!((json(&forgotten)["deleted"].clone(), stderr(&forgotten).as_str()), (0.into(), ""));
        // What is set stays there, personal or not.
        let at = ["--endpoint-url", &url, "--table", TABLE];
        let personal = ["email:Someone@X.org", "--literal-key"];
        for command in &KEY_COMMANDS[..2] {
            let args = [command, &personal[..], &at].concat();
            for (output, says) in [
                (run(&args), "only a policy tells which values are personal"),
                (run_at_root(&args), "does not declare `email`"),
            ] {
                assert!(
                    output.status.code() == Some(1) && stderr(&output).contains(says),
                    "{args:?}: {}",
                    stderr(&output)
                );
            }
        }
        let set = run_at_root(&[&["holds"][..], &at].concat());
        assert!(set.status.success() && !stdout(&set).contains("X.org"), "{}", stderr(&set));
        // From the root of the repository, where the sample policy is found by itself.
        for (key, code, says) in [("user:nobody", 0, ""), (&user, 1, "no limit of the policy is counted by `test`")] {
            let output = run_at_root(&[&["inspect", key][..], &at].concat());
            assert!(output.status.code() == Some(code) && stderr(&output).contains(says), "{}", stderr(&output));
        }
    });
}

/// No call is ever counted by anything else, so a slip would be reported as done.
#[test]
fn a_client_address_is_an_address_or_a_network_as_a_key_shows_it() {
    let url = || ["--endpoint-url", "http://127.0.0.1:1"];
    for wrong in ["nonsense", "192.0.2", "192.0.2.0/24", "2001%3Adb8%3A%3A/32", "missing"] {
        for command in KEY_COMMANDS.iter().filter(|command| command[0] != "override") {
            let output = run_at_root(&[*command, &[&format!("client_ip:{wrong}")], &url()].concat());
            let text = stderr(&output);
            assert!(
                output.status.code() == Some(1) && text.contains("is not the IP address of a client"),
                "{wrong}: {text}"
            );
        }
    }
    let dev = Dev::start(&[]);
    let stats = dev.stats();
    let at = ["--endpoint-url", stats["dynamodb_endpoint"].as_str().unwrap(), "--table", "tollgate", "--json"];
    for (given, key) in [
        ("192.0.2.1", "client_ip:192.0.2.1"),
        ("2001%3Adb8%3A%3A1", "client_ip:2001%3Adb8%3A%3A/64"),
        ("2001%3Adb8%3A%3A/64", "client_ip:2001%3Adb8%3A%3A/64"),
    ] {
        let banned = json(&run_at_root(&[&["ban", &format!("client_ip:{given}")], &at[..]].concat()));
        assert_eq!(banned["key"], key, "{given}");
    }
    let shared = "?user ?? client_ip:missing";
    assert_eq!(json(&run_at_root(&[&["ban", shared], &at[..]].concat()))["key"], shared, "of all who have neither");
}

#[test]
fn a_key_that_nobody_counts_by_is_refused_by_every_command_unless_it_is_said_to_be_literal() {
    let site = Site::start();
    for command in KEY_COMMANDS {
        let says = "no limit of the policy is counted by `usr`; keys of its limits: `device`, `tenant, user`, `user`";
        site.refuses(&[command, &["usr:alice"]].concat(), says);
    }
    // To the letter, what a policy declares and counts by in no such key can be set, and is told to be in nobody's way.
    let banned = site.on(&["ban", "api_key:a", "--literal-key"]);
    assert!(banned.status.success() && stdout(&banned).contains("it denies nobody"), "{}", stdout(&banned));
    assert_eq!(json(&site.on(&["ban", "api_key:a", "--literal-key", "--json"]))["counted"], false);
    assert_eq!(site.json(&["ban", "user:a", "--literal-key"])["counted"], true);
    for key in ["usr:a", "?device:a", "api_key:a,?usr:missing"] {
        site.refuses(&["ban", key, "--literal-key"], "so it does not tell whether its values are personal");
    }
    // Somebody whom an earlier policy counted.
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let put = raw(&site.at[1]).put_item().table_name(&site.at[3]).set_item(Some(item("1/own/old/usr:alice", &[])));
    runtime.block_on(put.send()).unwrap();
    let forgotten = site.json(&["forget", "usr:alice", "--literal-key"]);
    assert_eq!(forgotten["pks"], json!(["1/own/old/usr:alice"]));
}

fn item(pk: &str, more: &[(&str, AttributeValue)]) -> std::collections::HashMap<String, AttributeValue> {
    let more = more.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    more.chain([("pk".to_owned(), AttributeValue::S(pk.to_owned()))]).collect()
}

#[test]
fn forget_erases_every_item_of_a_person_and_nothing_else() {
    let site = Site::start();
    let (alice, acme) = (json!({ "user": "alice" }), json!({ "user": "alice", "tenant": "acme" }));
    site.ask("orders", &alice);
    site.ask("logins", &alice);
    site.ask("seats", &acme);
    site.ask("seats", &json!({ "user": "alicette", "tenant": "user:alice" }));
    site.ask("orders", &json!({ "user": "alice2" }));
    site.ask("orders", &json!({ "user": "bob" }));
    site.ask("seats", &json!({ "user": "alice", "tenant": "t".repeat(300) }));
    // Enough for a scan of several pages, each item with a key that only looks like hers.
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let client = raw(&site.at[1]);
        let filler = AttributeValue::S("x".repeat(390_000));
        for i in 0..8 {
            let pk = format!("1/own/seats/tenant:{i},user:alice");
            let put = client.put_item().table_name(&site.at[3]);
            put.set_item(Some(item(&pk, &[("filler", filler.clone())]))).send().await.unwrap();
        }
        let put = client.put_item().table_name(&site.at[3]);
        put.set_item(Some(item("other:user:alice", &[]))).send().await.unwrap();
    });
    let before = site.json(&["inspect", "user:alice"]);
    site.json(&["ban", "tenant:acme,user:alice", "--for", "1h"]);
    site.refuses(&["forget", "user:alice"], "lift it first with `tollgate allow tenant:acme,user:alice`");
    assert_eq!(site.json(&["inspect", "user:alice"])["raw"], before["raw"], "nothing of it was done");
    site.json(&["allow", "tenant:acme,user:alice"]);
    let forgotten = site.json(&["forget", "user:alice"]);
    let mut pks = vec!["1/key/tenant:acme,user:alice".to_owned(), "1/key/user:alice".to_owned()];
    pks.push("1/own/logins/user:alice".to_owned());
    pks.extend((0..8).map(|i| format!("1/own/seats/tenant:{i},user:alice")));
    assert_eq!((&forgotten["pks"], &forgotten["deleted"]), (&json!(pks), &11.into()));
    assert_eq!(forgotten["digests"]["items"], 1);
    let expires = forgotten["digests"]["expire_at"].as_u64().unwrap() * 1000;
    assert!(expires.abs_diff(site.now_ms() + 3_600_000) < 600_000, "{forgotten}");
    for (key, exists) in
        [("user:alice", false), ("user:alice2", true), ("user:bob", true), ("tenant:acme,user:alice", false)]
    {
        assert_eq!(site.json(&["inspect", key])["exists"], exists, "{key}");
    }
    assert_eq!(site.json(&["inspect", "tenant:user%3Aalice,user:alicette"])["exists"], true);
    assert_eq!(site.ask("orders", &alice)["remaining"], 49, "and life goes on");
    let long = format!("tenant:{},user:alice", "t".repeat(300));
    let forgotten = site.json(&["forget", &long]);
    assert_eq!((&forgotten["deleted"], &forgotten["digests"]["items"]), (&1.into(), &0.into()), "{forgotten}");
    let text = stdout(&site.on(&["forget", "user:nobody"]));
    assert_eq!(text, "user:nobody: nothing was remembered\n");
}

#[test]
fn a_banned_caller_gets_429_with_a_wait_and_neither_limit_nor_figures() {
    let dev = Dev::start(&["--clock", "manual"]);
    let stats = dev.stats();
    let of = |name: &str| stats[name].as_str().unwrap();
    let at = ["--endpoint-url", of("dynamodb_endpoint"), "--table", of("table"), "--json"];
    // With a tenant, whose limit is on another key and has room, and is asked while the ban is not known yet.
    let of_tenant = |principal: &str| dev.ask_with("POST", "/api/orders", principal, "{}");
    let order = || of_tenant("x-dev-principal: user=alice,plan=free\r\n");
    let for_acme = || of_tenant("x-dev-principal: user=alice,tenant=acme,plan=free\r\n");
    assert_eq!(order().0, 201);
    assert!(run_at_root(&[&["ban", "user:alice", "--for", "1h"][..], &at].concat()).status.success());
    for (status, head, body) in [for_acme(), for_acme(), order(), order()] {
        assert_eq!((status, &body["error"], &body["limit"]), (429, &"rate_limited".into(), &Value::Null), "{body}");
        let wait = body["retryAfter"].as_u64().unwrap();
        assert!((3590..=3602).contains(&wait) && head.contains(&format!("retry-after: {wait}")), "{head} {body}");
        assert!(!head.contains("ratelimit") && !head.contains("orders"), "{head}");
        for word in ["orders", "50", "billing", "ban", "user"] {
            assert!(!body.to_string().contains(word), "{word}: {body}");
        }
    }
    let after = dev.stats();
    assert_eq!((&after["banned"], &after["denied"]), (&4.into(), &4.into()));
    assert!(run_at_root(&[&["allow", "user:alice"][..], &at].concat()).status.success());
    std::thread::sleep(Duration::from_secs(1));
    let (status, head, _) = order();
    assert!(status == 201 && head.contains("ratelimit: \"orders\";r=48;"), "{status} {head}");
}

/// Status and body for each request that does not get an item.
type Script = &'static [(u16, &'static str)];

/// A table that answers by scripts: one for reads of the command's items, which find nothing when it has ended, and one for the
/// rest.
async fn scripted(reads: Script, script: Script) -> String {
    use axum::http::{HeaderMap, StatusCode};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let next = std::sync::Arc::new(std::sync::Mutex::new((reads.iter(), script.iter())));
    let answer = move |headers: HeaderMap, asked: String| async move {
        let is_read = headers["x-amz-target"].to_str().unwrap().ends_with("GetItem");
        let (reads, rest) = &mut *next.lock().unwrap();
        let (status, body) = match is_read {
            true if asked.contains("1/warm-up") => (200, "{}"),
            true => reads.next().copied().unwrap_or((200, "{}")),
            false => *rest.next().unwrap(),
        };
        (StatusCode::from_u16(status).unwrap(), [("content-type", "application/x-amz-json-1.0")], body)
    };
    tokio::spawn(async move { axum::serve(listener, axum::Router::new().fallback(answer)).await });
    url
}

const DENIED: (u16, &str) = (400, r#"{"__type":"x#AccessDeniedException","message":"no"}"#);
const THROTTLED: (u16, &str) = (400, r#"{"__type":"x#ThrottlingException","message":"slower"}"#);

#[tokio::test(flavor = "multi_thread")]
async fn what_was_done_before_a_failure_is_told_and_the_permission_that_lacks_is_named() {
    let policy = policy(POLICY);
    let cases: [(&[&str], Script, &[&str]); 4] = [
        (
            &["ban", "user:alice"],
            &[(200, r#"{"Attributes":{"pk":{"S":"1/key/user:alice"}}}"#), DENIED],
            &["grant dynamodb:UpdateItem", "done before: 1/key/user:alice; not done: 1/own/logins/user:alice and"],
        ),
        (&["ban", "user:alice"], &[DENIED], &["grant dynamodb:UpdateItem on the table to this role\n"]),
        // A page that is throttled is asked for again.
        (&["forget", "user:alice"], &[THROTTLED, THROTTLED, DENIED], &["grant dynamodb:Scan"]),
        (
            &["forget", "user:alice"],
            &[
                (200, r#"{"Items":[{"pk":{"S":"1/key/user:alice"}}],"LastEvaluatedKey":{"pk":{"S":"x"}}}"#),
                (200, r#"{"Items":[{"pk":{"S":"1/key/tenant:b,user:alice"}}]}"#),
                (200, r#"{"Attributes":{"pk":{"S":"1/key/tenant:b,user:alice"}}}"#),
                DENIED,
            ],
            &["grant dynamodb:DeleteItem", "done before: 1/key/tenant:b,user:alice; not done: 1/key/user:alice and"],
        ),
    ];
    for (args, script, says) in cases {
        let url = scripted(&[], script).await;
        let at = ["--endpoint-url", &url, "--policy", policy.path().to_str().unwrap()];
        let output = tokio::task::block_in_place(|| run(&[args, &at].concat()));
        let text = stderr(&output);
        assert_eq!((output.status.code(), text.lines().count()), (Some(3), 1), "{args:?}: {text} {}", stdout(&output));
        assert!(says.iter().all(|says| text.contains(says)), "{args:?}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_is_not_bothered_with_a_throttled_request() {
    let policy = policy(POLICY);
    const WRITTEN: (u16, &str) = (200, r#"{"Attributes":{"pk":{"S":"1/key/user:alice"}}}"#);
    let commands: [(&str, Script); 3] =
        [("ban", &[THROTTLED, WRITTEN, THROTTLED, WRITTEN]), ("allow", &[]), ("reset", &[])];
    for (command, script) in commands {
        let url = scripted(&[THROTTLED, THROTTLED], script).await;
        let args = [command, "user:alice", "--endpoint-url", &url, "--policy", policy.path().to_str().unwrap()];
        let output = tokio::task::block_in_place(|| run(&args));
        assert!(output.status.success(), "{command}: {}", stderr(&output));
    }
}
