//! Second factors as clients see them: the routes below `/api/mfa` of running servers.

use crate::dev::Dev;
use crate::harness::{raw, repository, tollgate};
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};
use std::io::Write;
use std::process::Stdio;
use std::thread;
use totp_rs::Totp;

pub const OLD: &str = "k1=AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";
const NEW: &str = "k2=__79_Pv6-fj39vX08_Lx8O_u7ezr6uno5-bl5OPi4eA";

/// After it what was added beside another factor proves something.
pub(crate) const COOLDOWN_MS: u64 = 86_402_000;

/// The partition key of Alice's factors.
const ITEM: &str = "1/mfa/factors/tenant:acme,user:alice";

pub(crate) type Answer = (u16, String, Value);

/// Alice, at a server; or somebody else.
#[derive(Clone, Copy)]
pub(crate) struct Alice<'d> {
    pub(crate) dev: &'d Dev,
    user: &'d str,
    session: &'d str,
}

impl<'d> Alice<'d> {
    pub(crate) fn at(dev: &'d Dev) -> Self {
        Self { dev, user: "alice", session: "s1" }
    }

    /// Somebody else.
    pub(crate) fn called(self, user: &'d str) -> Self {
        Self { user, ..self }
    }

    /// In another session.
    pub(crate) fn in_session(self, session: &'d str) -> Self {
        Self { session, ..self }
    }

    pub(crate) fn asks_with(self, claims: &str, method: &str, path: &str, more: &str, body: &Value) -> Answer {
        let principal =
            format!("x-dev-principal: user={},tenant=acme,origin_jti={}{claims}\r\n", self.user, self.session);
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.dev.ask_with(method, path, &format!("{principal}{more}"), &body)
    }

    /// By a token of a sign-in that was long ago.
    pub(crate) fn asks(self, method: &str, path: &str, body: &Value) -> Answer {
        self.asks_with("", method, path, "", body)
    }

    pub(crate) fn now(self) -> u64 {
        self.dev.stats()["now_ms"].as_u64().unwrap() / 1000
    }

    /// By a token of a sign-in just now, as `amr` says by a password.
    pub(crate) fn signed_in(self, method: &str, path: &str) -> Answer {
        self.asks_with(&format!(",auth_time={}", self.now()), method, path, "", &Value::Null)
    }

    /// By a token that says that she has stepped up just now.
    pub(crate) fn stepped_up(self, method: &str, path: &str) -> Answer {
        self.asks_with(&format!(",auth_time={},acr=mfa", self.now()), method, path, "", &Value::Null)
    }

    pub(crate) fn confirms(self, code: &str) -> Answer {
        self.asks("POST", "/api/mfa/totp/confirm", &json!({ "code": code }))
    }

    pub(crate) fn verifies(self, factor: &str, code: &str) -> Answer {
        self.asks("POST", "/api/mfa/verify", &json!({ "factor": factor, "code": code }))
    }

    pub(crate) fn factors(self) -> Value {
        let (status, head, body) = self.asks("GET", "/api/mfa/factors", &Value::Null);
        assert_eq!(status, 200, "{head}");
        body["factors"].clone()
    }

    /// What an app makes of what it is set up by.
    pub(crate) fn sets_an_app_up(self) -> App {
        let (status, head, body) = self.signed_in("POST", "/api/mfa/totp/enroll");
        assert_eq!(status, 200, "{head} {body}");
        App(Totp::from_url(body["otpauth_uri"].as_str().unwrap()).unwrap())
    }

    /// A confirmed app, whose present step is used.
    pub(crate) fn enrols(self) -> App {
        let app = self.sets_an_app_up();
        let (status, _, body) = self.confirms(&app.code(self.now()));
        assert_eq!((status, body), (200, json!({ "verified": true })));
        app
    }

    pub(crate) fn generates(self) -> Vec<String> {
        let (status, head, body) = self.stepped_up("POST", "/api/mfa/recovery/generate");
        assert_eq!(status, 200, "{head}");
        serde_json::from_value(body["codes"].clone()).unwrap()
    }

    /// Whether what needs a fresh second factor may be done in this session.
    pub(crate) fn may_change_her_payout_account(self) -> bool {
        let (status, _, body) = self.asks("PUT", "/api/payout-account", &json!({}));
        assert!(status == 200 || is_challenged(&(status, String::new(), body.clone())), "{status} {body}");
        status == 200
    }

    /// Removes a factor by a code of one.
    pub(crate) fn removes(self, factor: &str, by: &str, code: &str) -> Answer {
        let path = format!("/api/mfa/factors/{factor}");
        let refused = self.asks("DELETE", &path, &Value::Null);
        assert!(is_challenged(&refused), "{refused:?}");
        let typed = json!({ "factor": by, "code": code, "action": refused.2["action"] });
        let (status, _, body) = self.asks("POST", "/api/mfa/verify", &typed);
        assert_eq!(status, 200, "{body}");
        let grant = format!("tollgate-grant: {}\r\n", body["grant"].as_str().unwrap());
        self.asks_with("", "DELETE", &path, &grant, &Value::Null)
    }
}

/// An authenticator app.
pub(crate) struct App(Totp);

impl App {
    pub(crate) fn code(&self, secs: u64) -> String {
        self.0.generate(secs).to_string()
    }

    /// A code of none of the steps around.
    pub(crate) fn wrong(&self, secs: u64) -> String {
        let near: Vec<_> = (0..9).map(|n| self.code(secs + n * 30 - 120)).collect();
        (0..).map(|n| format!("{n:06}")).find(|code| !near.contains(code)).unwrap()
    }
}

pub(crate) fn is_challenged(answer: &Answer) -> bool {
    answer.0 == 401 && answer.2["error"] == "insufficient_user_authentication"
}

pub(crate) fn is(answer: &Answer, status: u16, error: &str) -> bool {
    answer.0 == status && answer.2["error"] == error
}

fn manual() -> Dev {
    Dev::start(&["--clock", "manual"])
}

/// So many servers on one table, as sandboxes of one function, under these secrets each.
pub(crate) fn servers(secrets: &[&str]) -> Vec<Dev> {
    let first = Dev::start_under(secrets[0], &[]);
    let (endpoint, table) = place(&first);
    let others =
        secrets[1..].iter().map(|secrets| Dev::start_under(secrets, &["--endpoint-url", &endpoint, "--table", &table]));
    let others: Vec<_> = others.collect();
    std::iter::once(first).chain(others).collect()
}

pub(crate) fn place(dev: &Dev) -> (String, String) {
    let stats = dev.stats();
    let of = |name: &str| stats[name].as_str().unwrap().to_owned();
    (of("dynamodb_endpoint"), of("table"))
}

/// Alice's item, after `change`, if it is one.
fn item(dev: &Dev, change: Option<(&str, AttributeValue)>) -> std::collections::HashMap<String, AttributeValue> {
    let (endpoint, table) = place(dev);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = raw(&endpoint);
        let key = AttributeValue::S(ITEM.to_owned());
        let found = client.get_item().table_name(&table).key("pk", key).send().await.unwrap();
        let mut item = found.item.unwrap_or_default();
        if let Some((name, value)) = change {
            item.insert(name.to_owned(), value);
            client.put_item().table_name(&table).set_item(Some(item.clone())).send().await.unwrap();
        }
        item
    })
}

/// What the servers say to so many at once, spread over them.
fn at_once(servers: &[Dev], n: usize, factor: &str, code: &str) -> Vec<u16> {
    thread::scope(|scope| {
        let ask = |i: usize| move || Alice::at(&servers[i % servers.len()]).verifies(factor, code).0;
        let calls: Vec<_> = (0..n).map(|i| scope.spawn(ask(i))).collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    })
}

fn count(statuses: &[u16], status: u16) -> usize {
    statuses.iter().filter(|found| **found == status).count()
}

#[test]
fn an_app_is_set_up_confirmed_and_freshens_its_session() {
    let dev = manual();
    let alice = Alice::at(&dev);
    assert_eq!(dev.ask("POST", "/api/mfa/totp/enroll", "").0, 401, "nobody vouches for who asks");
    let (status, head, body) = alice.asks("POST", "/api/mfa/totp/enroll", &Value::Null);
    assert!(
        is_challenged(&(status, head.clone(), body))
            && head.contains("max_age=\"300\"")
            && !head.contains("acr_values")
    );
    let (status, head, body) = alice.signed_in("POST", "/api/mfa/totp/enroll");
    assert!(status == 200 && head.contains("cache-control: no-store"), "{head}");
    let uri = body["otpauth_uri"].as_str().unwrap();
    assert!(uri.starts_with("otpauth://totp/tollgate%20sample:alice?secret="), "{uri}");
    assert!(body["qr_svg"].as_str().unwrap().contains("<svg"));
    assert_eq!(alice.factors(), json!([]), "what is not confirmed is none");
    // Another wish takes its place.
    let (first, app) = (App(Totp::from_url(uri).unwrap()), alice.sets_an_app_up());
    let wrong = alice.confirms(&first.code(alice.now()));
    assert!(is(&wrong, 401, "wrong_code") && wrong.2["attempts_left"] == 99, "{wrong:?}");
    assert!(!alice.may_change_her_payout_account());
    assert_eq!(alice.confirms(&app.code(alice.now())).0, 200);
    assert!(alice.may_change_her_payout_account() && !alice.in_session("s2").may_change_her_payout_account());
    assert_eq!(alice.factors(), json!([{ "factor": "totp", "since": alice.now() }]));
    // It is not replaced by another one.
    assert!(is(&alice.stepped_up("POST", "/api/mfa/totp/enroll"), 409, "already_enrolled"));
    assert!(is(&alice.confirms(&app.code(alice.now() + 30)), 409, "not_enrolled"));
    // Later, and elsewhere.
    dev.advance_ms(301_000);
    assert!(!alice.may_change_her_payout_account());
    assert_eq!(alice.in_session("s2").verifies("totp", &app.code(alice.now())).0, 200);
    assert!(alice.in_session("s2").may_change_her_payout_account() && !alice.may_change_her_payout_account());
}

#[test]
fn case_49_a_code_is_accepted_once_and_none_of_its_step_or_before() {
    // keycloak#13607, keycloak#37762
    let dev = manual();
    let alice = Alice::at(&dev);
    let app = alice.enrols();
    assert!(is(&alice.verifies("totp", &app.code(alice.now())), 401, "wrong_code"), "confirming has used its step");
    dev.advance_ms(30_000);
    let code = app.code(alice.now());
    assert_eq!(alice.verifies("totp", &code).0, 200);
    for _ in 0..2 {
        assert!(is(&alice.verifies("totp", &code), 401, "wrong_code"));
    }
    // The code of the step before, once; then neither it nor one before it.
    dev.advance_ms(90_000);
    let (before, present, next) = (alice.now() - 30, alice.now(), alice.now() + 30);
    assert_eq!(alice.verifies("totp", &app.code(before)).0, 200);
    assert_eq!(alice.verifies("totp", &app.code(before)).0, 401);
    assert_eq!(alice.verifies("totp", &app.code(next)).0, 200, "a clock that is ahead");
    assert_eq!(alice.verifies("totp", &app.code(present)).0, 401, "before the last that was accepted");
    assert_eq!(alice.verifies("totp", &app.code(next + 30)).0, 401, "two steps ahead");
    dev.advance_ms(600_000);
    assert_eq!(alice.verifies("totp", &app.code(alice.now() - 60)).0, 401, "two steps ago");
}

#[test]
fn case_49_of_thirty_at_four_processes_with_one_code_of_an_app_one_is_verified() {
    let servers = servers(&[OLD; 4]);
    let alice = Alice::at(&servers[0]);
    let app = alice.enrols();
    let statuses = at_once(&servers, 30, "totp", &app.code(alice.now() + 30));
    assert_eq!(count(&statuses, 200), 1, "{statuses:?}");
    assert_eq!(count(&statuses, 401) + count(&statuses, 429), 29, "{statuses:?}");
}

#[test]
fn case_50_of_thirty_at_four_processes_with_one_recovery_code_one_wins() {
    // artifact-keeper#1822
    let servers = servers(&[OLD; 4]);
    let alice = Alice::at(&servers[0]);
    let codes = alice.generates();
    let statuses = at_once(&servers, 30, "recovery", &codes[3]);
    assert_eq!(count(&statuses, 200), 1, "{statuses:?}");
    assert_eq!(count(&statuses, 401) + count(&statuses, 429), 29, "{statuses:?}");
    assert_eq!(alice.factors()[0]["codes_left"], 9);
}

#[test]
fn recovery_codes_are_ten_each_good_once_however_it_is_typed_until_new_ones_are_made() {
    let dev = manual();
    let alice = Alice::at(&dev);
    let old = alice.generates();
    assert_eq!(old.iter().collect::<std::collections::BTreeSet<_>>().len(), 10);
    assert!(!alice.may_change_her_payout_account());
    assert_eq!(alice.verifies("recovery", &old[0].to_lowercase().replace('-', " ")).0, 200);
    assert!(alice.may_change_her_payout_account());
    assert!(is(&alice.verifies("recovery", &old[0]), 401, "wrong_code"));
    assert_eq!(alice.factors(), json!([{ "factor": "recovery", "since": alice.now(), "codes_left": 9 }]));
    let new = alice.generates();
    assert!(is(&alice.verifies("recovery", &old[1]), 401, "wrong_code"), "new ones have taken its place");
    for (n, code) in new.iter().enumerate() {
        assert_eq!(alice.verifies("recovery", code).0, 200, "{n}");
    }
    assert!(is(&alice.verifies("recovery", &new[0]), 409, "not_enrolled"), "there are none left");
}

#[test]
fn what_a_change_of_factors_needs_is_told_by_the_account() {
    let dev = manual();
    let alice = Alice::at(&dev);
    // Codes need a second factor, whatever there is.
    let refused = alice.signed_in("POST", "/api/mfa/recovery/generate");
    assert!(is_challenged(&refused) && refused.1.contains("acr_values=\"mfa\""), "{refused:?}");
    let codes = alice.generates();
    // With codes an app is no first factor.
    let refused = alice.signed_in("POST", "/api/mfa/totp/enroll");
    assert!(is_challenged(&refused) && refused.1.contains("acr_values=\"mfa mfa-enrol\""), "{refused:?}");
    assert_eq!(alice.verifies("recovery", &codes[0]).0, 200);
    assert_eq!(alice.signed_in("POST", "/api/mfa/totp/enroll").0, 200);
    // What somebody has set up with less to prove ends with the first factor that there is.
    let (mallory, bob) = (alice.in_session("m"), "x-dev-principal: user=bob,origin_jti=s1,auth_time=");
    let bobs = |more: &str, path: &str| dev.ask_with("POST", path, &format!("{bob}{}{more}\r\n", mallory.now()), "");
    let app = App(Totp::from_url(bobs("", "/api/mfa/totp/enroll").2["otpauth_uri"].as_str().unwrap()).unwrap());
    assert_eq!(bobs(",acr=mfa", "/api/mfa/recovery/generate").0, 200);
    let confirm = json!({ "code": app.code(mallory.now()) }).to_string();
    let said = dev.ask_with("POST", "/api/mfa/totp/confirm", &format!("{bob}0\r\n"), &confirm);
    assert!(is(&said, 409, "not_enrolled"), "{said:?}");
}

#[test]
fn an_app_is_confirmed_in_its_session_in_time_and_not_after_a_revocation() {
    let dev = manual();
    let alice = Alice::at(&dev);
    let app = alice.sets_an_app_up();
    assert!(is(&alice.in_session("s2").confirms(&app.code(alice.now())), 409, "not_enrolled"));
    dev.advance_ms(600_000);
    assert!(is(&alice.confirms(&app.code(alice.now())), 409, "not_enrolled"));
    let alice = alice.in_session("s3");
    let app = alice.sets_an_app_up();
    let (endpoint, table) = place(&dev);
    let revoked = tollgate()
        .current_dir(repository("."))
        .args(["session", "revoke", "tenant:acme,user:alice", "--endpoint-url", &endpoint, "--table", &table])
        .output()
        .unwrap();
    assert!(revoked.status.success(), "{revoked:?}");
    assert!(is(&alice.confirms(&app.code(alice.now())), 409, "not_enrolled"));
    dev.advance_ms(10_000);
    alice.in_session("s4").enrols();
}

#[test]
fn a_factor_is_removed_by_a_grant_for_that_and_enrolled_anew() {
    let dev = manual();
    let alice = Alice::at(&dev);
    alice.enrols();
    let codes = alice.generates();
    dev.advance_ms(COOLDOWN_MS);
    // However fresh the session is.
    assert!(is_challenged(&alice.stepped_up("DELETE", "/api/mfa/factors/totp")));
    let (status, _, body) = alice.removes("totp", "recovery", &codes[0]);
    assert_eq!((status, body), (200, json!({ "status": "removed" })));
    assert!(is(&alice.removes("totp", "recovery", &codes[1]), 404, "not_enrolled"));
    assert!(is(&alice.removes("phone", "recovery", &codes[2]), 404, "not_found"));
    assert_eq!(alice.factors()[0]["codes_left"], 7);
    // The session that she has stepped up in by a code.
    assert_eq!(alice.verifies("recovery", &codes[3]).0, 200);
    let app = alice.sets_an_app_up();
    let (status, _, body) = alice.confirms(&app.code(alice.now()));
    assert!(status == 200 && body["cooldown_until"].is_u64(), "{body}");
    dev.advance_ms(COOLDOWN_MS);
    assert_eq!(alice.removes("recovery", "totp", &app.code(alice.now())).0, 200);
    assert_eq!(alice.factors()[0]["factor"], "totp");
}

#[test]
fn wrong_codes_wait_and_lock_their_own_factor_alone() {
    let dev = manual();
    let alice = Alice::at(&dev);
    let app = alice.enrols();
    let codes = alice.generates();
    dev.advance_ms(COOLDOWN_MS);
    for left in (95..100).rev() {
        let (status, _, body) = alice.verifies("totp", &app.wrong(alice.now()));
        assert_eq!((status, &body["attempts_left"]), (401, &left.into()));
        assert_eq!(body["retryAfter"], if left == 95 { json!(60) } else { Value::Null }, "{body}");
    }
    let locked = alice.verifies("totp", &app.code(alice.now() + 30));
    assert!(
        is(&locked, 429, "locked") && locked.2["retryAfter"] == 60 && locked.1.contains("retry-after: 60"),
        "{locked:?}"
    );
    assert_eq!(alice.verifies("recovery", &codes[0]).0, 200, "the other factor is as it was");
    dev.advance_ms(60_000);
    assert_eq!(alice.verifies("totp", &app.code(alice.now())).0, 200);
    let (_, _, body) = alice.verifies("totp", &app.wrong(alice.now()));
    assert_eq!(body["attempts_left"], 99, "a right one has cleared what was wrong before");
    // Somebody who has her password goes on for days.
    let mut compared = 1;
    loop {
        match alice.verifies("totp", &app.wrong(alice.now())) {
            (401, _, _) => compared += 1,
            (429, _, body) => dev.advance_ms(body["retryAfter"].as_u64().unwrap() * 1000),
            (403, _, body) if body["error"] == "locked" => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(compared, 100);
    assert!(is(&alice.verifies("totp", &app.code(alice.now())), 403, "locked"));
    // She gets in by a code, and has her app set up anew.
    assert_eq!(alice.removes("totp", "recovery", &codes[1]).0, 200);
    assert_eq!(alice.verifies("recovery", &codes[2]).0, 200);
    let app = alice.sets_an_app_up();
    assert_eq!(alice.confirms(&app.code(alice.now())).0, 200);
    dev.advance_ms(COOLDOWN_MS);
    assert_eq!(alice.verifies("totp", &app.code(alice.now())).0, 200);
}

#[test]
fn of_fifty_wrong_codes_at_once_at_four_processes_five_are_compared() {
    let servers = servers(&[OLD; 4]);
    let alice = Alice::at(&servers[0]);
    let app = alice.enrols();
    let statuses = at_once(&servers, 50, "totp", &app.wrong(alice.now()));
    assert_eq!((count(&statuses, 401), count(&statuses, 429)), (5, 45), "{statuses:?}");
}

#[test]
fn a_secret_that_cannot_be_opened_is_no_wrong_code_and_costs_no_try() {
    let dev = manual();
    let alice = Alice::at(&dev);
    let app = alice.enrols();
    dev.advance_ms(330_000);
    let sealed = item(&dev, None)["totp"].clone();
    let other = format!("{}A", &sealed.as_s().unwrap()[..sealed.as_s().unwrap().len() - 1]);
    for wrong in ["k9.AAAA", "", &other] {
        item(&dev, Some(("totp", AttributeValue::S(wrong.to_owned()))));
        let (status, head, body) = alice.verifies("totp", &app.code(alice.now()));
        assert_eq!((status, &body["error"]), (503, &"mfa_unavailable".into()), "{wrong} {body}");
        assert!(head.contains("retry-after: 1"), "{head}");
        assert!(!alice.may_change_her_payout_account(), "{wrong}");
    }
    assert!(!item(&dev, Some(("totp", sealed))).contains_key("totp_wrong"));
    assert_eq!(alice.verifies("totp", &app.code(alice.now())).0, 200);
}

#[test]
fn secrets_are_sealed_anew_while_their_key_is_being_retired() {
    let servers = servers(&[OLD, &format!("{NEW},{OLD}"), NEW]);
    let key = |dev: &Dev| item(dev, None)["totp"].as_s().unwrap().split_once('.').unwrap().0.to_owned();
    let [old, both, new] = [0, 1, 2].map(|n| Alice::at(&servers[n]));
    let app = old.enrols();
    assert_eq!(key(&servers[0]), "k1");
    let code = app.code(old.now() + 30);
    assert_eq!(new.verifies("totp", &code).0, 503, "its key is not there");
    assert_eq!(both.verifies("totp", &code).0, 200);
    assert_eq!(key(&servers[0]), "k2");
    assert_eq!(old.verifies("totp", &code).0, 503);
    assert_eq!(new.verifies("totp", &code).0, 401, "it was used, and the key is there");
}

#[test]
fn nothing_is_enrolled_or_proved_while_the_table_is_gone() {
    let dev = Dev::start(&[]);
    let alice = Alice::at(&dev);
    let app = alice.enrols();
    for store in ["error", "pause"] {
        assert_eq!(dev.ask("POST", "/dev/faults", &json!({ "store": store }).to_string()).0, 200);
        let (code, now) = (app.code(alice.now() + 30), alice.now());
        let answers = [
            alice.verifies("totp", &code),
            alice.confirms(&code),
            alice.signed_in("POST", "/api/mfa/totp/enroll"),
            alice.stepped_up("POST", "/api/mfa/recovery/generate"),
            alice.asks("GET", "/api/mfa/factors", &Value::Null),
        ];
        for (status, head, body) in answers {
            assert!(status == 503 && head.contains("retry-after: 1"), "{store} at {now}: {head} {body}");
        }
    }
}

#[test]
fn nothing_is_done_that_no_limit_counts() {
    let policy = |rest: &str| {
        let mut file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
        file.write_all(format!("version = 1\n{rest}").as_bytes()).unwrap();
        file
    };
    let answer = |rest: &str| {
        let file = policy(rest);
        let dev = Dev::start(&["--policy", file.path().to_str().unwrap()]);
        Alice::at(&dev).signed_in("POST", "/api/mfa/totp/enroll")
    };
    assert!(is(&answer("[mfa]\nissuer = 'x'\n"), 503, "mfa_unavailable"));
    assert!(is(&answer(""), 404, "not_found"), "a policy without factors has no such path");
}

#[test]
fn what_cannot_be_asked_is_told_what_to_write() {
    let dev = manual();
    let alice = Alice::at(&dev);
    for body in
        [json!(null), json!({}), json!({ "factor": "totp" }), json!({ "factor": "sms", "code": "1" }), json!([1])]
    {
        let answer = alice.asks("POST", "/api/mfa/verify", &body);
        assert!(is(&answer, 400, "bad_request"), "{body}: {answer:?}");
    }
    assert!(is(&alice.verifies("totp", "012345"), 409, "not_enrolled"));
    assert!(is(&alice.confirms("012345"), 409, "not_enrolled"));
    let (status, head, _) = alice.asks("GET", "/api/mfa/verify", &Value::Null);
    assert!(status == 405 && head.contains("allow: post"), "{head}");
    assert_eq!(alice.asks("OPTIONS", "/api/mfa/factors/totp", &Value::Null).0, 204);
    assert_eq!(alice.asks("POST", "/api/mfa/nothing", &Value::Null).0, 404);
}

#[test]
fn no_secret_is_in_any_log_or_in_the_table() {
    let mut command = tollgate();
    command.env("RUST_LOG", "debug");
    let log = tempfile::NamedTempFile::new().unwrap();
    command.stderr(Stdio::from(log.reopen().unwrap()));
    let dev = Dev::spawn(command, &["--clock", "manual"]);
    let alice = Alice::at(&dev);
    let (_, _, body) = alice.signed_in("POST", "/api/mfa/totp/enroll");
    let uri = body["otpauth_uri"].as_str().unwrap();
    let secret = uri.split_once("secret=").unwrap().1.split('&').next().unwrap();
    let app = App(Totp::from_url(uri).unwrap());
    let (right, wrong) = (app.code(alice.now()), app.wrong(alice.now()));
    assert_eq!(alice.confirms(&wrong).0, 401);
    assert_eq!(alice.confirms(&right).0, 200);
    let codes = alice.generates();
    dev.advance_ms(COOLDOWN_MS);
    assert_eq!(alice.verifies("recovery", &codes[0]).0, 200);
    let stored = format!("{:?}", item(&dev, None));
    item(&dev, Some(("totp", AttributeValue::S("k9.AAAA".to_owned()))));
    assert_eq!(alice.verifies("totp", &right).0, 503);
    let logged = std::fs::read_to_string(log.path()).unwrap();
    assert!(logged.contains("nothing is proved or changed") && stored.contains("totp_step"), "{logged}");
    let bytes = format!("{:?}", app.0.secret().as_bytes());
    let plain = codes[1].replace('-', "");
    for secret in [secret, &right, &codes[1], &plain, bytes.trim_matches(['[', ']'])] {
        assert!(!logged.contains(secret) && !stored.contains(secret), "{secret}");
    }
}
