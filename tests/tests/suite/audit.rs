//! The audit log of second factors, as operators see it: `tollgate audit` on the table of running servers.

use crate::dev::Dev;
use crate::harness::{json, raw, run_at_root, stderr, stdout};
use crate::mfa::{Alice, OLD, place, servers};
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};
use std::process::Output;
use std::thread;

const ALICE: &str = "tenant:acme,user:alice";

fn command(dev: &Dev, words: &[&str]) -> Output {
    let (endpoint, table) = place(dev);
    run_at_root(&[words, &["--endpoint-url", &endpoint, "--table", &table]].concat())
}

/// The log of a key, which is unbroken.
pub(crate) fn log(dev: &Dev, key: &str) -> Vec<Value> {
    let output = command(dev, &["audit", key, "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let log = json(&output)[0].clone();
    assert_eq!((&log["key"], &log["breaks"]), (&json!(key), &json!([])));
    log["entries"].as_array().unwrap().clone()
}

fn told(entries: &[Value]) -> Vec<(u64, &str, &str)> {
    entries
        .iter()
        .map(|e| (e["seq"].as_u64().unwrap(), e["event"].as_str().unwrap(), e["factor"].as_str().unwrap_or_default()))
        .collect()
}

#[test]
fn what_was_done_to_factors_rules_and_sessions_is_in_the_log_and_nothing_else() {
    let servers = servers(&[OLD]);
    let (dev, alice) = (&servers[0], Alice::at(&servers[0]));
    assert_eq!(log(dev, ALICE), Vec::<Value>::new());
    // Codes first: what is added beside them proves nothing for a day.
    let codes = alice.generates();
    assert_eq!(alice.verifies("recovery", "x").0, 401);
    assert_eq!(alice.verifies("recovery", &codes[0]).0, 200);
    let app = alice.sets_an_app_up();
    assert_eq!(alice.confirms(&app.code(alice.now())).0, 200);
    assert_eq!(alice.removes("totp", "recovery", &codes[1]).0, 200);
    for _ in 0..6 {
        alice.verifies("recovery", "x");
    }
    assert_eq!(command(dev, &["session", "revoke", ALICE]).status.code(), Some(0));
    let entries = log(dev, ALICE);
    let expected = [
        (1, "codes_generated", "recovery"),
        (2, "recovery_code_used", "recovery"),
        (3, "factor_enrolled", "totp"),
        (4, "recovery_code_used", "recovery"),
        (5, "factor_removed", "totp"),
        (6, "factor_locked", "recovery"),
        (7, "sessions_revoked", ""),
    ];
    assert_eq!(told(&entries), expected);
    let actors: Vec<_> = entries.iter().map(|entry| entry["actor"].as_str().unwrap()).collect();
    assert_eq!(actors, ["user", "user", "user", "user", "user", "user", "operator"]);
    assert_eq!(entries[5]["details"], json!({ "wrong_codes": "5" }));
    let (whole, now) = (stdout(&command(dev, &["audit", ALICE])), alice.now());
    assert!(!whole.contains("=s1") && !codes.iter().any(|code| whole.contains(code)), "{whole}");
    let since = |when: &str| json(&command(dev, &["audit", ALICE, "--json", "--since", when]))[0]["entries"].clone();
    assert_eq!(since("1h").as_array().unwrap().len(), 7);
    assert_eq!(since("9999-01-01"), json!([]));
    for wrong in [&["audit", "client_ip:192.0.2.1"][..], &["audit", ALICE, "--since", "yesterday"]] {
        let output = command(dev, wrong);
        assert_eq!(output.status.code(), Some(1), "{wrong:?}: {}", stderr(&output));
    }
    let root = format!("x-dev-principal: user=root,tenant=acme,origin_jti=r,role=admin,acr=mfa,auth_time={now}\r\n");
    let rules = json!({ "allowed": ["totp", "passkey", "recovery"], "required": [], "minimum": 0 }).to_string();
    let put = |version: u64| {
        let head = format!("{root}if-match: \"{version}\"\r\n");
        dev.ask_with("PUT", "/api/mfa/tenant", &head, &rules).0
    };
    assert_eq!((put(0), put(0)), (200, 412));
    let entries = log(dev, "tenant:acme");
    assert_eq!(told(&entries), [(1, "tenant_policy_changed", "")]);
    assert_eq!(entries[0]["actor"], "admin tenant:acme,user:root");
    assert_eq!(entries[0]["details"], json!({ "version_after": "1", "version_before": "0" }));
}

#[test]
fn four_processes_at_once_leave_one_whole_chain_with_an_entry_for_each_change() {
    let servers = servers(&[OLD, OLD, OLD, OLD]);
    Alice::at(&servers[0]).enrols();
    let made: usize = thread::scope(|scope| {
        let generates = |dev| {
            let alice = Alice::at(dev);
            let done =
                move || (0..8).filter(|_| alice.stepped_up("POST", "/api/mfa/recovery/generate").0 == 200).count();
            scope.spawn(done)
        };
        let revokes = |_| {
            let dev = &servers[0];
            scope.spawn(move || {
                let revoked = command(dev, &["session", "revoke", ALICE]);
                assert_eq!(revoked.status.code(), Some(0), "{}", stderr(&revoked));
                0
            })
        };
        let all: Vec<_> = servers.iter().map(generates).chain((0..4).map(revokes)).collect();
        all.into_iter().map(|one| one.join().unwrap()).sum()
    });
    let entries = log(&servers[0], ALICE);
    let count = |event: &str| entries.iter().filter(|entry| entry["event"] == event).count();
    assert!(made > 0);
    assert_eq!((count("codes_generated"), count("sessions_revoked")), (made, 4));
    let numbers: Vec<_> = entries.iter().map(|entry| entry["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=made as u64 + 5).collect::<Vec<_>>());
}

/// Alice's entry of that number after a change, or without it.
fn tampers(dev: &Dev, what: &str, change: Option<(&str, &str)>) {
    let (endpoint, table) = place(dev);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (client, key) = (raw(&endpoint), AttributeValue::S(format!("1/audit/{what}/{ALICE}")));
        match change {
            Some((name, value)) => {
                let update = client.update_item().table_name(&table).key("pk", key).update_expression("SET #n = :v");
                let update = update.expression_attribute_names("#n", name);
                update.expression_attribute_values(":v", AttributeValue::S(value.to_owned())).send().await.unwrap();
            }
            None => drop(client.delete_item().table_name(&table).key("pk", key).send().await.unwrap()),
        }
    });
}

#[test]
fn an_entry_that_was_edited_or_taken_away_shows() {
    for (what, change, why) in [
        ("2", Some(("event", "factor_removed")), "entry 2, or what tells of it, was changed"),
        ("2", Some(("more", "x")), "entry 2, or what tells of it, was changed"),
        ("4", Some(("actor", "operator")), "entry 4, or what tells of it, was changed"),
        ("1", None, "entry 1 is missing"),
        ("3", None, "entry 3 is missing"),
        ("4", None, "entry 4 is missing"),
    ] {
        let servers = servers(&[OLD]);
        let (dev, alice) = (&servers[0], Alice::at(&servers[0]));
        alice.enrols();
        (0..3).for_each(|_| drop(alice.generates()));
        assert_eq!(log(dev, ALICE).len(), 4);
        tampers(dev, what, change);
        let output = command(dev, &["audit", ALICE]);
        assert_eq!(output.status.code(), Some(1), "{what} {change:?}");
        assert!(stderr(&output).contains(why) && stdout(&output).contains(why), "{}", stderr(&output));
    }
}

#[test]
fn a_head_that_was_left_behind_is_no_break_and_the_next_entry_goes_on_after_the_last() {
    let servers = servers(&[OLD]);
    let (dev, alice) = (&servers[0], Alice::at(&servers[0]));
    alice.enrols();
    alice.generates();
    tampers(dev, "head", None);
    assert_eq!(log(dev, ALICE).len(), 2);
    alice.generates();
    assert_eq!(log(dev, ALICE).len(), 3);
}

#[test]
fn a_change_whose_entry_cannot_be_written_is_not_made() {
    // A head that tells nothing, and an item that is no entry where the entry is to be: only the second one is found by the transaction.
    for (what, attribute) in [("head", "digest"), ("1", "seq")] {
        let servers = servers(&[OLD]);
        let (dev, alice) = (&servers[0], Alice::at(&servers[0]));
        let app = alice.sets_an_app_up();
        tampers(dev, what, Some((attribute, "x")));
        let (status, head, body) = alice.confirms(&app.code(alice.now()));
        assert_eq!(status, 503, "{what}: {head} {body}");
        assert_eq!(alice.factors(), json!([]), "{what}");
        tampers(dev, what, None);
        assert_eq!(alice.confirms(&app.code(alice.now())).0, 200, "{what}");
        assert_eq!(told(&log(dev, ALICE)), [(1, "factor_enrolled", "totp")]);
    }
}

#[test]
fn forgetting_an_account_erases_its_log_and_only_that() {
    let servers = servers(&[OLD]);
    let (dev, alice) = (&servers[0], Alice::at(&servers[0]));
    alice.enrols();
    alice.called("bob").enrols();
    assert_eq!(command(dev, &["forget", ALICE, "--literal-key"]).status.code(), Some(0));
    assert_eq!(log(dev, ALICE), Vec::<Value>::new());
    assert_eq!(log(dev, "tenant:acme,user:bob").len(), 1);
}
