//! Limits that are divided among several items: what they admit together, what that costs, when a call is denied though there is room,
//! and what operators do to all shards at once.

use crate::dev::Dev;
use crate::harness::{Client, SECOND, bucket, charge, json, key, run, stderr, stdout};
use crate::through::through;
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::num::NonZeroU16;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tollgate::testing::{ManualClock, MemoryStore};
use tollgate::{Decision, Limiter, Outcome, Source, Store, Timestamp};
use tollgate_core::{
    Actual, Charge, Charges, Figures, Held, ItemKey, LimitName, Mode, Override, Shard, Span, StoreFailure, Terms,
    Window, Write,
};
use tollgate_dynamodb::admin::{self, Order};
use tollgate_dynamodb::{Error, Result, Written, partition_key};

const DAY: u64 = 86_400 * SECOND;

fn limit() -> LimitName {
    LimitName::new("limit").unwrap()
}

/// A charge on a limit of a key that nobody else has, divided among so many shards.
fn on(figures: impl Into<Figures>, shards: u16, cost: u64) -> Charges {
    let own = ItemKey::own(key().key, limit());
    let charges = Charges::new(own, vec![charge("limit", Terms::new(1, figures), cost)]).unwrap();
    charges.sharded(NonZeroU16::new(shards))
}

/// So many tokens that are not refilled while a test runs.
fn tokens(burst: u64, shards: u16) -> Charges {
    on(bucket(1, DAY, burst), shards, 1)
}

/// The same charges at another cost.
fn costing(charges: &Charges, cost: u64) -> Charges {
    let all = charges.charges().iter().map(|charge| Charge { cost, ..charge.clone() }).collect();
    Charges::new(charges.item().clone(), all).unwrap().sharded(charges.shards())
}

/// One shard as a limit by itself, as which its item is to be read and spent.
fn alone(charges: &Charges, index: u16, cost: u64) -> Charges {
    let shard = Shard::new(index, charges.shards().unwrap()).unwrap();
    let part = |charge: &Charge| {
        let terms = Terms { figures: charge.terms.figures.shard(shard), ..charge.terms.clone() };
        Charge { terms, cost, ..charge.clone() }
    };
    Charges::new(charges.on_shard(index).item().clone(), charges.charges().iter().map(part).collect()).unwrap()
}

fn indices(charges: &Charges) -> impl Iterator<Item = u16> {
    0..charges.shards().unwrap().get()
}

/// What is left on each shard.
async fn left<S: Store>(limiter: &Limiter<S>, charges: &Charges) -> Vec<u64> {
    let look = |index| async move { limiter.take(&[alone(charges, index, 0)]).await.unwrap().limits[0].remaining };
    join_all(indices(charges).map(look)).await
}

async fn left_in_all<S: Store>(limiter: &Limiter<S>, charges: &Charges) -> u64 {
    left(limiter, charges).await.into_iter().sum()
}

fn in_memory() -> Limiter<MemoryStore> {
    let clock = ManualClock::new(Timestamp::from_secs(1_767_225_600));
    Limiter::new(MemoryStore::new(clock)).with_deadline(Duration::from_secs(60))
}

async fn take<S: Store>(limiter: &Limiter<S>, charges: &Charges) -> Decision {
    limiter.take(std::slice::from_ref(charges)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn all_shards_together_admit_the_limit_and_no_more() {
    for figures in [bucket(1, DAY, 21).into(), Figures::from(Window::new(21, Span::Every(DAY), true).unwrap())] {
        let charges = on(figures, 4, 1);
        let clients = [Client::new().await, Client::new().await.forgetting()];
        let calls = (0..40).map(|i| clients[i % 2].take(&charges));
        let admitted = join_all(calls).await.iter().filter(|decision| decision.is_allowed()).count();
        assert!((10..=21).contains(&admitted), "{admitted}");
        // A call finds room on any shard in the end, and then there is none.
        let mut more = 0;
        while left_in_all(&clients[1].limiter, &charges).await > 0 {
            more += usize::from(clients[1].take(&charges).await.is_allowed());
        }
        assert_eq!(admitted + more, 21);
        for client in &clients {
            assert!(!client.take(&charges).await.is_allowed());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_allowed_call_is_one_write_a_denied_one_two_at_most_and_a_known_denial_none() {
    let client = Client::new().await;
    let charges = tokens(1000, 8);
    for _ in 0..200 {
        let (decision, round_trips, write_units) = client.measured(&charges).await;
        assert_eq!((decision.is_allowed(), round_trips, write_units), (true, 1, 1));
    }
    let spent: Vec<_> = left(&client.limiter, &charges).await.iter().map(|left| 125 - left).collect();
    assert!(spent.iter().all(|n| *n > 0) && spent.iter().sum::<u64>() == 200, "each is asked: {spent:?}");

    let eight = tokens(8, 8);
    for index in indices(&eight) {
        assert!(client.take(&alone(&eight, index, 1)).await.is_allowed());
    }
    let stranger = Client::at(client.clock.clone()).await;
    for denied in 0..4 {
        let (decision, round_trips, write_units) = stranger.measured(&eight).await;
        assert_eq!((decision.is_allowed(), round_trips, write_units), (false, 2, 2), "call {denied}");
    }
    // It has seen all eight.
    let (decision, round_trips, _) = stranger.measured(&eight).await;
    assert_eq!((decision.outcome(), round_trips, decision.limits[0].source), (Outcome::Denied, 0, Source::Cache));
}

/// With one shard of `n` full a process asks two others each time, so its `n / 2`th call finds it.
#[tokio::test]
async fn a_call_can_be_denied_while_others_have_room_and_half_as_many_as_shards_in_a_row_cannot() {
    let mut most = 0;
    for full in 0..20 {
        let (limiter, charges) = (in_memory(), tokens(16, 7));
        let full = full % 7;
        for index in indices(&charges).filter(|index| *index != full) {
            let whole = alone(&charges, index, if index < 2 { 3 } else { 2 });
            assert!(take(&limiter, &whole).await.is_allowed());
        }
        let process = Limiter::new(limiter.store().clone()).with_deadline(Duration::from_secs(60));
        let denied = loop {
            let denied = process.store().counters().counts().denied;
            if take(&process, &charges).await.is_allowed() {
                break denied;
            }
        };
        most = most.max(denied);
    }
    assert!((1..=3).contains(&most), "{most} in a row");
}

/// A shard has less than the call costs: no more than that can be left on each.
#[tokio::test]
async fn what_calls_of_a_cost_leave_on_all_shards_is_less_than_that_on_each() {
    let (limiter, charges) = (in_memory(), tokens(21, 4));
    let dear = costing(&charges, 3);
    let mut denied = 0;
    while denied < 4 {
        denied += u32::from(!take(&limiter, &dear).await.is_allowed());
    }
    assert_eq!(left(&limiter, &charges).await, [0, 2, 2, 2], "six, five, five, five, less three each time");
}

/// The largest shard says what never fits, whichever is asked first.
#[tokio::test]
async fn a_cost_never_fits_if_it_does_not_fit_the_largest_shard() {
    let (limiter, charges) = (in_memory(), tokens(9, 2));
    for _ in 0..20 {
        assert_eq!(take(&limiter, &costing(&charges, 6)).await.outcome(), Outcome::NeverFits);
    }
    assert!(take(&limiter, &costing(&charges, 5)).await.is_allowed(), "whichever was asked first");
    for _ in 0..20 {
        let decision = take(&limiter, &costing(&charges, 5)).await;
        assert_eq!(decision.outcome(), Outcome::Denied, "it will fit when the largest is full");
        assert_eq!(decision.retry_after(), Some(Duration::from_secs(5 * 2 * 86_400)));
    }
    assert_eq!(left(&limiter, &charges).await, [0, 4]);
}

#[tokio::test]
async fn what_is_given_back_or_settled_goes_to_the_shard_that_was_charged() {
    let limiter = in_memory();
    let tenant = Charges::new(key(), vec![charge("tenant", Terms::new(1, bucket(1, DAY, 1)), 1)]).unwrap();
    let charges = on(bucket(1, DAY, 8).with_debt(8).unwrap(), 4, 2);
    assert!(limiter.take(&[charges.clone(), tenant.clone()]).await.unwrap().is_allowed());
    let asking = in_memory_beside(&limiter);
    for _ in 0..10 {
        let decision = asking.take(&[charges.clone(), tenant.clone()]).await.unwrap();
        assert!(!decision.is_allowed());
        assert_eq!(left_in_all(&limiter, &charges).await, 6, "the tenant denies");
    }
    for (actual, is_left) in [(1, 5), (2, 3), (4, 1)] {
        let (decision, taken) = loop {
            let (decision, taken) = limiter.take_unsettled(std::slice::from_ref(&charges)).await.unwrap();
            if decision.is_allowed() {
                break (decision, taken);
            }
        };
        let settled = limiter.settle(std::slice::from_ref(&charges), taken, |_| Some(Actual::Cost(actual))).await;
        assert_eq!((settled.lost, settled.beyond.len()), (0, 0), "{decision:?}");
        assert_eq!(left_in_all(&limiter, &charges).await, is_left, "after a call of {actual}");
    }
}

/// Another process on the same table.
fn in_memory_beside(limiter: &Limiter<MemoryStore>) -> Limiter<MemoryStore> {
    let other = Limiter::new(limiter.store().clone()).with_deadline(Duration::from_secs(60));
    other.denying_from_memory_for(Duration::ZERO)
}

#[tokio::test]
async fn a_shadow_that_is_divided_denies_nobody_and_is_charged_once() {
    let limiter = in_memory();
    let shadow = |charge: &Charge| Charge { mode: Mode::Shadow, ..charge.clone() };
    let four = tokens(4, 4);
    let shadow = Charges::new(four.item().clone(), four.charges().iter().map(shadow).collect()).unwrap();
    let shadow = shadow.sharded(four.shards());
    let mut denied = 0;
    for _ in 0..30 {
        let decision = take(&limiter, &shadow).await;
        assert!(decision.is_allowed());
        denied += u64::from(decision.limits[0].outcome == Outcome::Denied);
    }
    assert_eq!((30 - denied, left_in_all(&limiter, &four).await), (4, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn beside_a_transaction_it_is_charged_apart_and_given_back() {
    let client = Client::new().await.forgetting();
    let hourly = |n| Charges::new(key(), vec![charge("l", Terms::new(1, bucket(1, DAY, n)), 1)]).unwrap();
    let (user, tenant, charges) = (hourly(10).atomically(true), hourly(3), tokens(8, 4));
    let all = [user, charges.clone(), tenant];
    let mut admitted = 0;
    for _ in 0..8 {
        let decision = client.take_all(&all).await;
        admitted += u64::from(decision.is_allowed());
        let told: Vec<_> = decision.limits.iter().map(|l| l.key.to_string()).collect();
        assert_eq!(told, all.each_ref().map(|c| c.key().to_string()), "in their order");
        assert_eq!(left_in_all(&client.limiter, &charges).await, 8 - admitted);
    }
    assert_eq!(admitted, 3);
}

/// A table in memory that fails about some items; it tells which were asked.
#[derive(Clone)]
struct Failing {
    memory: MemoryStore,
    about: Arc<Mutex<Vec<ItemKey>>>,
}

impl Store for Failing {
    through!(memory: moment, meter, read, transact);

    async fn write(&self, key: &ItemKey, write: &Write) -> Result<Written> {
        if self.about.lock().unwrap().contains(key) {
            return Err(Error::Ambiguous("the table is gone".to_owned()));
        }
        self.memory.write(key, write).await
    }
}

#[tokio::test]
async fn a_shard_without_answer_is_a_failure_only_if_no_other_has_denied() {
    for full in [0, 1] {
        let memory = in_memory();
        let charges = tokens(2, 2).with_store_failure(StoreFailure::Closed);
        let store = Failing { memory: memory.store().clone(), about: Arc::default() };
        assert!(take(&memory, &alone(&charges, full, 1)).await.is_allowed());
        store.about.lock().unwrap().push(charges.on_shard(1 - full).item().clone());
        // Which is asked first is random.
        let (mut denied, mut failed) = (0, 0);
        for _ in 0..200 {
            let process = Limiter::new(store.clone());
            match process.take(std::slice::from_ref(&charges)).await {
                Ok(decision) => {
                    assert_eq!(decision.outcome(), Outcome::Denied);
                    denied += 1;
                }
                Err(error) => {
                    assert!(error.is_outage());
                    failed += 1;
                }
            }
        }
        assert!(denied > 0 && failed > 0, "{denied} {failed}");
        assert_eq!(store.memory.counters().counts().store_failures, 200, "each is counted");
    }
}

#[tokio::test]
async fn without_the_table_a_process_decides_by_its_share_of_the_whole_limit() {
    let memory = in_memory();
    let charges = tokens(8, 4).with_store_failure(StoreFailure::Local);
    let about = indices(&charges).map(|index| charges.on_shard(index).item().clone()).collect();
    let process = Limiter::new(Failing { memory: memory.store().clone(), about: Arc::new(Mutex::new(about)) });
    let mut admitted = 0;
    for _ in 0..20 {
        let decision = process.take(std::slice::from_ref(&charges)).await.unwrap();
        admitted += u64::from(decision.is_allowed());
        assert_eq!(decision.limits[0].source, Source::Local);
    }
    assert_eq!(admitted, 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_operator_sets_is_in_force_on_every_shard() {
    let operator = Client::new().await;
    let charges = tokens(8, 4);
    let items: Vec<_> = indices(&charges).map(|index| charges.on_shard(index).item().clone()).collect();
    let store = operator.limiter.store();
    let until = operator.clock_now() + Duration::from_secs(600);
    let process = Client::at(operator.clock.clone()).await;
    assert!(process.take(&charges).await.is_allowed());
    admin::order(store, &items, &Order::Ban(until)).await.unwrap();
    for _ in 0..10 {
        let stranger = Client::at(operator.clock.clone()).await;
        let (decision, round_trips, _) = stranger.measured(&charges).await;
        assert_eq!((decision.outcome(), round_trips), (Outcome::Denied, 1), "no other shard is asked under a ban");
        assert_eq!(decision.limits[0].held, Some(Held::Ban { until }));
        let left = decision.limits[0].remaining;
        let (decision, round_trips, _) = stranger.measured(&charges).await;
        assert_eq!((decision.limits[0].remaining, round_trips), (left, 0), "one tells of all");
    }
    admin::order(store, &items, &Order::Allow(None)).await.unwrap();
    let figures = bucket(1, DAY, 22).into();
    admin::order(store, &items, &Order::Override(limit(), Override { figures, until })).await.unwrap();
    let process = Client::at(operator.clock.clone()).await.forgetting();
    let mut admitted = 0;
    let mut denied = 0;
    while denied < 40 {
        let decision = process.take(&charges).await;
        assert_eq!(decision.limits[0].terms.figures, figures, "the whole is told");
        match decision.is_allowed() {
            true => admitted += 1,
            false => denied += 1,
        }
    }
    assert_eq!(admitted, 21, "with the debt of one");
}

const POLICY: &str = "
version = 1
[limits.orders]
key = ['user']
rate = '11/day'
shards = 4
[limits.other]
key = ['user']
rate = '5/h'
[[routes]]
match = 'POST /orders'
charge = ['orders', 'other']
";

/// A server on a table of its own, and the commands on that.
struct Served {
    policy: tempfile::NamedTempFile,
    dev: Dev,
    at: [String; 4],
}

impl Served {
    fn start() -> Self {
        let mut policy = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
        policy.write_all(POLICY.as_bytes()).unwrap();
        let dev = Dev::start(&["--policy", policy.path().to_str().unwrap()]);
        let stats = dev.stats();
        let of = |name: &str| stats[name].as_str().unwrap().to_owned();
        let at = ["--endpoint-url".to_owned(), of("dynamodb_endpoint"), "--table".to_owned(), of("table")];
        Self { policy, dev, at }
    }

    fn call(&self) -> Value {
        let (status, body) = self.dev.decide(&json!({ "limit": "orders", "key": { "user": "alice" }, "cost": 1 }));
        assert_eq!(status, 200);
        body
    }

    fn tool(&self, args: &[&str]) -> std::process::Output {
        let at: Vec<_> = self.at.iter().map(String::as_str).collect();
        run(&[args, &at, &["--policy", self.policy.path().to_str().unwrap()]].concat())
    }

    fn does(&self, args: &[&str]) -> Value {
        let output = self.tool(&[args, &["--json"]].concat());
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        json(&output)
    }
}

fn pks() -> Vec<String> {
    (0..4).map(|index| format!("1/own/orders.{index}/user:alice")).collect()
}

#[test]
fn the_commands_reach_all_shards() {
    let served = Served::start();
    for _ in 0..4 {
        assert_eq!(served.call()["allowed"], true);
    }
    let inspected = served.does(&["inspect", "user:alice"]);
    let told: Vec<_> = inspected["own_items"].as_array().unwrap().iter().map(|item| item["pk"].clone()).collect();
    assert_eq!(json!(told), json!(pks()));
    assert_eq!(inspected["sharded"], json!([{ "limit": "orders", "shards": 4, "remaining": 7 }]));
    let text = stdout(&served.tool(&["inspect", "user:alice"]));
    assert!(text.contains("orders") && text.contains("7 of 11 left on 4 shards together"), "{text}");

    assert_eq!(served.does(&["reset", "user:alice", "--limit", "orders"])["reset"], json!(["orders"]));
    assert_eq!(served.does(&["inspect", "user:alice"])["sharded"][0]["remaining"], 11);

    let banned = served.does(&["ban", "user:alice", "--for", "1h"]);
    let items: Vec<_> = banned["items"].as_array().unwrap().iter().map(|item| item["pk"].clone()).collect();
    assert_eq!(json!(items[1..]), json!(pks()), "beside the item that is shared");
    assert_eq!((served.call()["allowed"].clone(), served.call()["allowed"].clone()), (json!(false), json!(false)));
    assert_eq!(served.does(&["holds"])["holds"].as_array().unwrap().len(), 5);
    served.does(&["allow", "user:alice"]);

    let few = served.tool(&["override", "user:alice", "--limit", "orders", "--rate", "3/day", "--for", "1h"]);
    assert!(!few.status.success() && stderr(&few).contains("limit orders has 4 shards"), "{}", stderr(&few));
    served.does(&["override", "user:alice", "--limit", "orders", "--rate", "21/day", "--for", "1h"]);
    let inspected = served.does(&["inspect", "user:alice"]);
    assert_eq!(inspected["sharded"][0]["remaining"], 21);
    let told = &inspected["own_items"][0]["hold"]["overrides"]["orders"];
    assert_eq!((&told["rate"], &told["burst"]), (&json!("21/day"), &json!(21)), "what was set");
    served.does(&["allow", "user:alice"]);

    let forgotten = served.does(&["forget", "user:alice"]);
    let kept: BTreeSet<_> = forgotten["pks"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(pks().iter().all(|pk| kept.contains(pk.as_str())), "{forgotten}");
}

#[test]
fn explain_tells_the_shards() {
    let served = Served::start();
    let path = served.policy.path().to_str().unwrap();
    let args = ["explain", "--policy", path, "--method", "POST", "--path", "/orders", "--user", "alice"];
    let charge = &json(&run(&[&args[..], &["--json"]].concat()))["charges"][0];
    assert_eq!((&charge["shards"], &charge["partition_keys"]), (&json!(4), &json!(pks())));
    let text = stdout(&run(&args));
    assert!(text.contains("on one of 4 items of its own"), "{text}");
    assert!(text.contains("item pk = \"1/own/orders.0/user:alice\" to .3\n"), "{text}");
    assert_eq!(partition_key::parse(&pks()[3]).and_then(|item| item.shard()), Some(3));
}
