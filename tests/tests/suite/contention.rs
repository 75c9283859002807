//! Many at once: exactly what the key has is admitted, whoever shares what.

use crate::harness::{Client, SECOND, json, key, one, run, stderr, stdout};
use std::sync::Arc;
use tollgate::testing::ManualClock;
use tollgate::{Clock, SystemClock};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn forty_callers_at_once_on_a_new_key_of_ten_are_ten_and_then_none() {
    // ddb-token-bucket: 40, then 40.
    let clock = ManualClock::new(SystemClock.now());
    let charges = one(&key(), 1, 86_400 * SECOND, 10);
    for expected in [10, 0] {
        let mut clients = Vec::new();
        for _ in 0..40 {
            clients.push(Client::at(clock.clone()).await);
        }
        let callers = clients.into_iter().map(|client| {
            let charges = charges.clone();
            tokio::spawn(async move {
                let (decision, round_trips, write_units) = client.measured(&charges).await;
                assert_eq!((round_trips, write_units), (1, 1));
                decision.is_allowed()
            })
        });
        let mut allowed = 0;
        for caller in callers.collect::<Vec<_>>() {
            allowed += u32::from(caller.await.unwrap());
        }
        assert_eq!(allowed, expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn callers_of_a_bucket_that_refills_faster_than_they_write_do_not_overtake_each_other_without_end() {
    let client = Arc::new(running_client().await);
    // A token each microsecond: by the time of a second write the bucket looks idle again.
    let charges = one(&key(), 1_000_000, SECOND, 1_000_000);
    let callers = (0..16).map(|_| {
        let (client, charges) = (client.clone(), charges.clone());
        tokio::spawn(async move {
            for _ in 0..50 {
                assert!(client.take(std::slice::from_ref(&charges)).await.unwrap().is_allowed());
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
}

/// A client on the system's clock.
async fn running_client() -> tollgate::Limiter<tollgate::DynamoStore> {
    use crate::harness::{PATIENCE, TABLE, connected, endpoint};
    let connected = connected(&endpoint().await).await;
    let store =
        tollgate::DynamoStore::new(&connected, TABLE, Arc::new(SystemClock), Arc::<tollgate::Counters>::default());
    store.warm_up().await.unwrap();
    tollgate::Limiter::new(store).with_deadline(PATIENCE)
}

#[test]
fn a_race_is_exact_ten_times_in_a_row() {
    for _ in 0..10 {
        let output = run(&["race", "--clients", "40", "--capacity", "10"]);
        assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
        let text = stdout(&output);
        let line = |name: &str| {
            text.lines().find(|l| l.starts_with(name)).and_then(|l| l.split_whitespace().nth(1)).unwrap().to_owned()
        };
        assert_eq!((line("allowed"), line("round_trips")), ("10".to_owned(), "40".to_owned()));
    }
}

#[test]
fn a_race_of_processes_is_exact() {
    let report = json(&run(&["race", "--processes", "4", "--json"]));
    assert_eq!((&report["allowed"], &report["round_trips"], &report["charged"]), (&10.into(), &40.into(), &10.into()));
}

#[test]
fn a_race_of_processes_for_several_keys_is_exact_on_each_of_them() {
    for _ in 0..3 {
        let report = json(&run(&["race", "--processes", "4", "--keys", "3", "--json"]));
        let lost = report["refunds_lost"].as_u64().unwrap();
        assert_eq!((&report["allowed"], &report["charged"]), (&10.into(), &10.into()));
        // A charge that could not be given back stays; nothing else does.
        let elsewhere: Vec<_> =
            report["charged_elsewhere"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
        assert_eq!(elsewhere.iter().sum::<u64>(), 20 + lost, "{report}");
        assert!(elsewhere.iter().all(|charged| *charged >= 10), "{report}");
    }
}

#[test]
fn a_race_for_several_keys_tells_which_figure_is_whose() {
    let text = stdout(&run(&["race", "--clients", "4", "--capacity", "1", "--keys", "2"]));
    for line in [
        "clients      4 in 1 process, each asking once for a token of all 2 keys",
        "capacity     1 of key 1, 4 of each other key",
        "charged      1 of 1 of key 1, by the table's account",
        "             1 of 4 of key 2",
        "refunds_lost 0  charges of denied clients that could not be given back",
    ] {
        assert!(text.lines().any(|told| told == line), "{line}: {text}");
    }
}

#[test]
fn running_clocks_cost_at_most_a_second_write_for_the_last_token() {
    let report = json(&run(&["race", "--processes", "4", "--running-clocks", "--json"]));
    assert_eq!((&report["allowed"], &report["charged"]), (&10.into(), &10.into()));
    assert!((40..=80).contains(&report["round_trips"].as_u64().unwrap()), "{report}");
}

#[test]
fn a_process_killed_in_the_middle_takes_at_most_its_own_tokens_with_it() {
    let mut took_tokens = 0;
    for _ in 0..5 {
        let output = run(&["race", "--clients", "200", "--capacity", "150", "--processes", "4", "--kill", "--json"]);
        assert!(output.status.success(), "{}", stderr(&output));
        let report = json(&output);
        let figure = |name: &str| report[name].as_u64().unwrap();
        assert!(figure("allowed") <= figure("charged") && figure("charged") <= 150, "{report}");
        assert!(figure("charged") - figure("allowed") <= figure("lost") + figure("failed"), "{report}");
        assert_eq!(figure("allowed") + figure("denied") + figure("lost") + figure("failed"), 200, "{report}");
        took_tokens += u32::from(figure("charged") > figure("allowed"));
    }
    assert!(took_tokens > 0, "in none of five races was a process killed between its charges and its answers");
}
