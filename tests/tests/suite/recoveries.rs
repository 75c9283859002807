//! Recovery as clients see it: whoever has lost every factor asks, waits, and needs two admins; whoever has the link of a notice ends it.

use crate::audit::log;
use crate::dev::Dev;
use crate::factor_changes::{cancels, notices, token};
use crate::factors::{Process, author, changing};
use crate::harness::{costs, key};
use crate::mfa::{Alice, Answer, COOLDOWN_MS, OLD, is, is_challenged, place};
use serde_json::{Value, json};
use std::thread;
use std::time::Duration;
use tollgate_core::Key;
use tollgate_mfa::audit::Event;
use tollgate_mfa::factors::{Approval, Completion, NotRequested};
use tollgate_policy::MfaRules;

const DAY_MS: u64 = 86_400_000;

fn manual() -> Dev {
    Dev::start(&["--clock", "manual"])
}

fn signed_in(who: Alice<'_>, path: &str, body: &Value) -> Answer {
    who.asks_with(&format!(",auth_time={}", who.now()), "POST", path, "", body)
}

fn requests(alice: Alice<'_>) -> (String, String) {
    let (status, head, body) = signed_in(alice, "/api/mfa/recovery/request", &Value::Null);
    assert!(status == 200 && head.contains("cache-control: no-store"), "{head} {body}");
    (body["request"].as_str().unwrap().to_owned(), body["secret"].as_str().unwrap().to_owned())
}

fn completes(alice: Alice<'_>, secret: &str) -> Answer {
    signed_in(alice, "/api/mfa/recovery/complete", &json!({ "secret": secret }))
}

fn open(alice: Alice<'_>) -> Value {
    alice.asks("GET", "/api/mfa/recovery", &Value::Null).2
}

/// An admin who has stepped up just now, `approve`s or `refuse`s.
fn decides(admin: Alice<'_>, what: &str, user: &str, request: &str) -> Answer {
    let claims = format!(",role=admin,acr=mfa,auth_time={}", admin.now());
    let body = json!({ "user": user, "request": request });
    admin.asks_with(&claims, "POST", &format!("/api/mfa/recovery/{what}"), "", &body)
}

#[test]
fn whoever_has_lost_every_factor_has_them_removed_after_a_wait_by_two_admins() {
    let dev = manual();
    let alice = Alice::at(&dev);
    let none = signed_in(alice, "/api/mfa/recovery/request", &Value::Null);
    assert!(is(&none, 409, "nothing_to_recover"), "{none:?}");
    let app = alice.enrols();
    assert!(alice.may_change_her_payout_account());
    let lost = alice.in_session("s2");
    assert!(
        is_challenged(&lost.asks("POST", "/api/mfa/recovery/request", &Value::Null)),
        "she has not signed in of late"
    );
    assert_eq!(open(lost), json!({ "open": false }));
    let (id, secret) = requests(lost);
    assert!(alice.may_change_her_payout_account(), "whoever only asks ends nobody's session");
    let shown = open(lost);
    assert!(shown["request"] == *id && shown["approvals"] == 0 && shown["secret"].is_null(), "{shown}");
    assert_eq!(shown["ready_at"].as_u64(), Some(lost.now() + 86_401));
    assert!(is(&signed_in(lost, "/api/mfa/recovery/request", &Value::Null), 409, "recovery_open"));
    let not_yet = completes(lost, &secret);
    assert!(is(&not_yet, 409, "not_yet") && not_yet.2["approvals"] == 0 && not_yet.2["needed"] == 2, "{not_yet:?}");

    let admin = |name| alice.called(name).in_session(name);
    let told = [1, 2].map(|_| {
        let (status, _, body) = decides(admin("carol"), "approve", "alice", &id);
        assert_eq!((status, &body["approvals"]), (200, &json!(1)), "one who approves twice counts once");
        dev.ask("GET", "/dev/outbox", "").2.as_array().unwrap().len()
    });
    assert_eq!(told[0], told[1], "and alice, whom each message costs something, is told of it once");
    assert!(is(&decides(alice, "approve", "alice", &id), 403, "own_account"));
    dev.advance_ms(DAY_MS + 2000);
    // A sign-in of now is a session of its own.
    let lost = alice.in_session("s3");
    let alone = completes(lost, &secret);
    assert!(is(&alone, 409, "not_yet") && alone.2["approvals"] == 1, "one admin is not enough: {alone:?}");
    assert_eq!(decides(admin("dave"), "approve", "alice", &id).2["approvals"], 2);
    assert!(is(&decides(admin("erin"), "approve", "alice", &id), 409, "enough_approvals"));
    for wrong in ["x", &"A".repeat(43)] {
        assert!(is(&completes(lost, wrong), 410, "no_such_request"), "whoever has the password only");
    }
    let path = "/api/mfa/recovery/complete";
    assert!(is_challenged(&lost.asks("POST", path, &json!({ "secret": secret }))), "she has not signed in of late");
    let (status, _, body) = completes(lost, &secret);
    assert_eq!((status, body), (200, json!({ "status": "recovered" })));
    let cancel = token(&dev);
    assert_eq!((lost.factors(), open(lost)), (json!([]), json!({ "open": false })));
    assert!(is(&completes(lost, &secret), 410, "no_such_request"), "once");

    let events: Vec<_> =
        log(&dev, "tenant:acme,user:alice").into_iter().map(|e| (e["event"].clone(), e["actor"].clone())).collect();
    let admin = |name: &str| json!(format!("admin tenant:acme,user:{name}"));
    let expected = [
        ("factor_enrolled", json!("user")),
        ("recovery_requested", json!("user")),
        ("recovery_approved", admin("carol")),
        ("recovery_approved", admin("dave")),
        ("account_recovered", json!("user")),
    ];
    assert_eq!(events, expected.map(|(event, actor)| (json!(event), actor)));

    // What she enrols is cooling, and it all can be cancelled as any change.
    let new = lost.sets_an_app_up();
    assert_eq!(lost.confirms(&new.code(lost.now())).2["enrol_only"], true);
    assert!(!lost.may_change_her_payout_account());
    assert_eq!(cancels(&dev, &cancel).2["change"], "recovered");
    dev.advance_ms(30_000);
    assert_eq!(alice.verifies("totp", &app.code(alice.now())).0, 200, "what was removed is back");
}

#[test]
fn what_is_enrolled_after_a_recovery_proves_everything_once_its_cooldown_is_over() {
    let dev = manual();
    let alice = Alice::at(&dev);
    alice.enrols();
    let (id, secret) = requests(alice);
    for name in ["carol", "dave"] {
        assert_eq!(decides(alice.called(name), "approve", "alice", &id).0, 200);
    }
    dev.advance_ms(DAY_MS + 2000);
    let alice = alice.in_session("s3");
    assert_eq!(completes(alice, &secret).0, 200);
    let new = alice.sets_an_app_up();
    assert_eq!(alice.confirms(&new.code(alice.now())).0, 200);
    dev.advance_ms(COOLDOWN_MS);
    assert_eq!(alice.verifies("totp", &new.code(alice.now())).0, 200);
    assert!(alice.may_change_her_payout_account());
}

#[test]
fn whoever_owns_the_account_ends_what_a_thief_has_requested() {
    let dev = manual();
    let alice = Alice::at(&dev);
    let app = alice.enrols();
    let thief = alice.in_session("stolen");
    // By the link of the notice, which every channel had before.
    let (id, secret) = requests(thief);
    assert!(notices(&dev)[0]["body"].as_str().unwrap().contains("asks for all second factors to be removed"));
    let cancel = token(&dev);
    for name in ["carol", "dave"] {
        assert_eq!(decides(alice.called(name), "approve", "alice", &id).0, 200, "they were deceived");
    }
    dev.advance_ms(DAY_MS + 2000);
    let (status, _, body) = cancels(&dev, &cancel);
    assert_eq!((status, &body["change"], &body["factor"]), (200, &json!("requested"), &Value::Null));
    dev.advance_ms(60_000);
    let (thief, carol, dave) =
        (alice.in_session("stolen-2"), alice.called("carol").in_session("c2"), alice.called("dave"));
    assert!(is(&completes(thief, &secret), 410, "no_such_request"));
    assert!(is(&cancels(&dev, &cancel), 410, "no_such_change"), "a link is good once");
    assert!(is(&decides(carol, "approve", "alice", &id), 410, "no_such_request"));
    // By a factor, which the password is not.
    requests(thief);
    assert!(is_challenged(&thief.signed_in("DELETE", "/api/mfa/recovery")));
    dev.advance_ms(30_000);
    assert_eq!(alice.verifies("totp", &app.code(alice.now())).0, 200);
    assert_eq!(alice.asks("DELETE", "/api/mfa/recovery", &Value::Null).2, json!({ "status": "cancelled" }));
    assert!(is(&alice.asks("DELETE", "/api/mfa/recovery", &Value::Null), 410, "no_such_request"));
    // By one admin.
    let (id, secret) = requests(thief);
    assert_eq!(decides(carol, "refuse", "alice", &id).2, json!({ "status": "refused" }));
    assert!(is(&decides(dave.in_session("d2"), "refuse", "alice", &id), 410, "no_such_request"));
    assert!(is(&completes(thief, &secret), 410, "no_such_request"));
    // By time.
    let (id, _) = requests(thief);
    dev.advance_ms(8 * DAY_MS + 2000);
    assert_eq!(open(thief), json!({ "open": false }));
    assert!(is(&decides(carol.in_session("c3"), "approve", "alice", &id), 410, "no_such_request"));
    requests(alice.in_session("stolen-3"));
    let ends: Vec<_> = log(&dev, "tenant:acme,user:alice").into_iter().map(|entry| entry["event"].clone()).collect();
    for (event, times) in [("recovery_requested", 5), ("recovery_cancelled", 2), ("recovery_refused", 1)] {
        assert_eq!(ends.iter().filter(|found| **found == event).count(), times, "{event}");
    }
    assert_eq!(alice.factors().as_array().unwrap().len(), 1);
}

#[test]
fn an_admin_of_the_same_tenant_who_has_stepped_up_approves_and_nobody_else() {
    let dev = manual();
    let alice = Alice::at(&dev);
    alice.enrols();
    let (id, _) = requests(alice);
    let (path, body) = ("/api/mfa/recovery/approve", json!({ "user": "alice", "request": id }));
    let carol = alice.called("carol");
    let now = alice.now();
    let fresh = format!(",acr=mfa,auth_time={now}");
    assert!(is(&carol.asks_with(&fresh, "POST", path, "", &body), 403, "not_admin"));
    assert!(is_challenged(&carol.asks_with(",role=admin", "POST", path, "", &body)));
    let password = format!(",role=admin,auth_time={now}");
    assert!(is_challenged(&carol.asks_with(&password, "POST", path, "", &body)), "a sign-in is no second factor");
    // An admin elsewhere names an account of his own tenant, whatever he sends.
    let principal = format!("x-dev-principal: user=carol,tenant=other,role=admin,acr=mfa,auth_time={now}\r\n");
    assert!(is(&dev.ask_with("POST", path, &principal, &body.to_string()), 410, "no_such_request"));
    let elsewhere = dev.ask_with("GET", "/api/mfa/recovery?user=alice", &principal, "");
    assert_eq!((elsewhere.0, elsewhere.2), (200, json!({ "open": false })));
    assert!(is(&carol.asks("GET", "/api/mfa/recovery?user=alice", &Value::Null), 403, "not_admin"));
    let seen = carol.asks_with(",role=admin", "GET", "/api/mfa/recovery?user=alice", "", &Value::Null);
    assert!(seen.2["request"] == *id && seen.2["approvals"] == 0, "{seen:?}");
    for wrong in [json!({}), json!({ "user": "alice" }), json!({ "user": 7, "request": id }), Value::Null] {
        let claims = format!(",role=admin,{}", &fresh[1..]);
        assert!(is(&carol.asks_with(&claims, "POST", path, "", &wrong), 400, "bad_request"), "{wrong}");
    }
    assert!(is(&decides(carol, "approve", "", &id), 400, "bad_request"));
    assert!(is(&decides(carol, "approve", "alice", "x"), 410, "no_such_request"));
    // Nobody could approve it.
    let alone = format!("x-dev-principal: user=zoe,auth_time={now}\r\n");
    assert!(is(&dev.ask_with("POST", "/api/mfa/recovery/request", &alone, ""), 409, "no_admins"));
    assert_eq!(open(alice)["approvals"], 0);
}

#[test]
fn of_five_admins_at_four_processes_two_have_approved_and_of_twelve_who_complete_one() {
    let first = Dev::start_under(OLD, &["--clock", "manual"]);
    let (endpoint, table) = place(&first);
    let same = ["--clock", "manual", "--endpoint-url", &endpoint, "--table", &table];
    let servers: Vec<_> = std::iter::once(first).chain((0..3).map(|_| Dev::start_under(OLD, &same))).collect();
    let alice = Alice::at(&servers[0]);
    alice.enrols();
    let (id, secret) = requests(alice);
    let statuses = |n: usize, call: &(dyn Fn(usize) -> u16 + Sync)| {
        thread::scope(|scope| {
            let calls: Vec<_> = (0..n).map(|i| scope.spawn(move || call(i))).collect();
            calls.into_iter().map(|call| call.join().unwrap()).collect::<Vec<_>>()
        })
    };
    let of = |statuses: &[u16], status| statuses.iter().filter(|found| **found == status).count();
    let names = ["carol", "dave", "erin", "frank", "grace"];
    let said = statuses(5, &|i| decides(Alice::at(&servers[i % 4]).called(names[i]), "approve", "alice", &id).0);
    assert!(of(&said, 200) == 2 && of(&said, 409) == 3, "{said:?}");
    assert_eq!(open(alice)["approvals"], 2);
    for server in &servers {
        server.advance_ms(DAY_MS + 60_000);
    }
    let said = statuses(12, &|i| completes(Alice::at(&servers[i % 4]).in_session("s3"), &secret).0);
    assert_eq!(of(&said, 200), 1, "{said:?}");
    assert_eq!(of(&said, 410) + of(&said, 503) + of(&said, 401), 11, "{said:?}");
    let events: Vec<_> = log(&servers[0], "tenant:acme,user:alice").into_iter().map(|e| e["event"].clone()).collect();
    let times = |event: &str| events.iter().filter(|found| **found == event).count();
    assert_eq!((times("recovery_approved"), times("account_recovered")), (2, 1), "{events:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_costs_six_write_units_an_approval_and_an_end_five_and_a_completion_six() {
    let process = Process::new().await;
    let (factors, by, wait) = (&process.factors, author(), MfaRules::SHORTEST_RECOVERY_WAIT);
    let tenant = key().key.to_string();
    let account = |user: &str| Key::new([("tenant", tenant.as_str()), ("user", user)]).unwrap();
    let (owner, admins) = (account("alice"), [account("bob"), account("carol"), account("dave")]);
    let asking = factors.request_recovery(changing(&owner, &by), wait);
    let (said, round_trips, units) = costs(&process.counters, asking).await;
    assert_eq!((said.unwrap().unwrap_err(), round_trips, units), (NotRequested::NothingToRecover, 1, 0));
    factors.generate(changing(&owner, &by)).await.unwrap();
    for is_completed in [false, true] {
        let asking = factors.request_recovery(changing(&owner, &by), wait);
        let (said, round_trips, units) = costs(&process.counters, asking).await;
        let (request, secret) = said.unwrap().unwrap();
        assert_eq!((round_trips, units), (5, 6), "the link, and with its entry the account");
        let asking = factors.request_recovery(changing(&owner, &by), wait);
        let (said, round_trips, units) = costs(&process.counters, asking).await;
        assert!(matches!(said.unwrap().unwrap_err(), NotRequested::Open(open) if open == request));
        assert_eq!((round_trips, units), (1, 0), "one that is open");
        for (n, admin) in admins.iter().enumerate() {
            let approving = || factors.approve_recovery(&owner, request.id, admin, &by);
            let (said, round_trips, units) = costs(&process.counters, approving()).await;
            let expected = if n < 2 { (4, 5) } else { (1, 0) };
            assert_eq!((round_trips, units), expected, "{n}");
            assert_eq!(said.unwrap() == Approval::Enough, n == 2);
            let (_, round_trips, units) = costs(&process.counters, approving()).await;
            assert_eq!((round_trips, units), (1, 0), "again");
        }
        if is_completed {
            let completing = || factors.complete_recovery(changing(&owner, &by), &secret);
            let (said, round_trips, units) = costs(&process.counters, completing()).await;
            assert!(matches!(said.unwrap(), Completion::NotYet { approvals: 2, .. }));
            assert_eq!((round_trips, units), (1, 0), "too early");
            process.clock.advance(wait + Duration::from_secs(1));
            let (said, round_trips, units) = costs(&process.counters, completing()).await;
            assert_eq!((said.unwrap(), round_trips, units), (Completion::Completed, 6, 6));
        } else {
            let ending = factors.end_recovery(&owner, request.id, Event::RecoveryCancelled, &by);
            let (said, round_trips, units) = costs(&process.counters, ending).await;
            assert_eq!((said.unwrap(), round_trips, units), (true, 4, 5));
        }
    }
}
