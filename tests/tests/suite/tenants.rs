//! What a tenant asks of second factors, and codes by SMS and email as a fallback, as clients see them at running servers.

use crate::dev::Dev;
use crate::harness::{PATIENCE, TABLE, connected, costs, endpoint, key, repository};
use crate::mfa::{OLD, servers};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use std::sync::Arc;
use std::thread;
use tempfile::NamedTempFile;
use tollgate::{Counters, DynamoStore, SystemClock, Timestamp};
use tollgate_core::Key;
use tollgate_dynamodb::Items;
use tollgate_mfa::audit::{Actor, Author};
use tollgate_mfa::tenant::{self, Next, Tenant};
use tollgate_policy::{FactorKind, FactorRules, MfaRules};
use totp_rs::Totp;

const DAY: u64 = 86_400;

type Answer = (u16, String, Value);

/// Somebody in a session at a server.
#[derive(Clone)]
struct Person<'d> {
    dev: &'d Dev,
    claims: String,
}

fn alice(dev: &Dev) -> Person<'_> {
    Person { dev, claims: "user=alice,tenant=acme,origin_jti=s1".to_owned() }
}

/// Who may change what Alice's tenant asks for, and has just signed in.
fn admin(dev: &Dev) -> Person<'_> {
    let now = now(dev);
    let claims = format!("user=root,tenant=acme,origin_jti=s{now},role=admin,acr=mfa,auth_time={now}");
    Person { dev, claims }
}

fn now(dev: &Dev) -> u64 {
    dev.stats()["now_ms"].as_u64().unwrap() / 1000
}

fn is(answer: &Answer, status: u16, error: &str) -> bool {
    answer.0 == status && answer.2["error"] == error
}

impl Person<'_> {
    /// The same with other claims beside.
    fn with(&self, more: &str) -> Self {
        Self { dev: self.dev, claims: format!("{},{more}", self.claims) }
    }

    fn signed_in(&self) -> Self {
        self.with(&format!("auth_time={}", now(self.dev)))
    }

    fn asks_with(&self, method: &str, path: &str, more: &str, body: &Value) -> Answer {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.dev.ask_with(method, path, &format!("x-dev-principal: {}\r\n{more}", self.claims), &body)
    }

    fn asks(&self, method: &str, path: &str, body: &Value) -> Answer {
        self.asks_with(method, path, "", body)
    }

    fn puts(&self, version: u64, rules: &Value) -> Answer {
        self.asks_with("PUT", "/api/mfa/tenant", &format!("if-match: \"{version}\"\r\n"), rules)
    }

    fn enrols(&self) -> Totp {
        let (status, head, body) = self.signed_in().asks("POST", "/api/mfa/totp/enroll", &Value::Null);
        assert_eq!(status, 200, "{head} {body}");
        let app = Totp::from_url(body["otpauth_uri"].as_str().unwrap()).unwrap();
        let code = json!({ "code": app.generate(now(self.dev)).to_string() });
        assert_eq!(self.asks("POST", "/api/mfa/totp/confirm", &code).0, 200);
        app
    }

    fn verifies(&self, factor: &str, code: &str) -> Answer {
        self.asks("POST", "/api/mfa/verify", &json!({ "factor": factor, "code": code }))
    }

    /// A right code of the app in the next step.
    fn verifies_by(&self, app: &Totp) -> Answer {
        self.dev.advance_ms(30_000);
        self.verifies("totp", &app.generate(now(self.dev)).to_string())
    }

    fn generates(&self) -> Vec<String> {
        let stepped_up = self.with(&format!("acr=mfa,auth_time={}", now(self.dev)));
        let (status, head, body) = stepped_up.asks("POST", "/api/mfa/recovery/generate", &Value::Null);
        assert_eq!(status, 200, "{head}");
        serde_json::from_value(body["codes"].clone()).unwrap()
    }

    fn sends(&self, purpose: &str) -> Answer {
        self.asks("POST", "/api/auth/otp/send", &json!({ "purpose": purpose }))
    }

    /// What is to be typed of a code that is sent now.
    fn code_for(&self, purpose: &str) -> Value {
        let (status, head, sent) = self.sends(purpose);
        assert_eq!(status, 202, "{head} {sent}");
        let outbox = self.dev.ask("GET", "/dev/outbox", "").2;
        json!({ "challenge": sent["challenge"], "purpose": purpose, "code": outbox.as_array().unwrap().last().unwrap()["code"] })
    }

    fn types(&self, code: &Value) -> Answer {
        self.asks("POST", "/api/auth/otp/verify", code)
    }

    /// A right code, sent and typed.
    fn has_a_code(&self, purpose: &str) -> Answer {
        self.types(&self.code_for(purpose))
    }

    fn may_change_the_payout_account(&self) -> bool {
        let (status, _, body) = self.asks("PUT", "/api/payout-account", &json!({}));
        assert!(status == 200 || body["error"] == "insufficient_user_authentication", "{status} {body}");
        status == 200
    }

    fn factors(&self) -> Value {
        self.asks("GET", "/api/mfa/factors", &Value::Null).2
    }
}

fn everything_but(kinds: &[&str]) -> Value {
    let all = FactorKind::ALL.map(FactorKind::as_str);
    all.into_iter().filter(|kind| !kinds.contains(kind)).collect::<Vec<_>>().into()
}

fn manual() -> Dev {
    Dev::start(&["--clock", "manual"])
}

/// A server whose codes go by email, to an address for each of these.
fn by_email() -> (Dev, NamedTempFile, NamedTempFile) {
    let sample = std::fs::read_to_string(repository("infra/tollgate.toml")).unwrap();
    let file = |text: &str| {
        let file = NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    };
    let policy = file(&sample.replacen("[otp]\n", "[otp]\nchannels = [\"email\"]\n", 1));
    let profiles = file(r#"{"alice":{"email":"alice@x.org","verified":true}}"#);
    let path = |file: &NamedTempFile| file.path().to_str().unwrap().to_owned();
    let dev = Dev::start(&["--clock", "manual", "--policy", &path(&policy), "--profiles", &path(&profiles)]);
    (dev, policy, profiles)
}

#[test]
fn case_51_an_email_code_for_recovery_then_an_email_code_as_second_factor_are_not_two_factors() {
    // kratos#4317
    let (dev, ..) = by_email();
    let alice = alice(&dev);
    assert_eq!(alice.has_a_code("login").2, json!({ "verified": true }), "she is back in by a code");
    assert!(is(&alice.sends("step-up"), 403, "not_a_second_factor"));
    assert!(!alice.may_change_the_payout_account());
    // Nor is one that was sent before, or typed before the code that she signs in by.
    let other = Person { claims: alice.claims.replace("s1", "s2"), ..alice.clone() };
    dev.advance_ms(3_600_000);
    let code = other.code_for("step-up");
    assert_eq!(other.has_a_code("login").0, 200);
    assert!(is(&other.types(&code), 403, "not_a_second_factor"));
    let third = Person { claims: alice.claims.replace("s1", "s3"), ..alice.clone() };
    assert_eq!(third.types(&code).0, 200, "the code was not looked at, and is good where a password was typed");
    assert!(third.may_change_the_payout_account());
    dev.advance_ms(3_600_000);
    assert_eq!(third.has_a_code("step-up").0, 200);
    assert!(third.may_change_the_payout_account());
    assert_eq!(third.has_a_code("login").0, 200);
    assert!(!third.may_change_the_payout_account());
    // Nor for one action.
    let refused = other.asks("DELETE", "/api/mfa/factors/totp", &Value::Null);
    dev.advance_ms(3_600_000);
    let mut code = third.with("origin_jti=s4").code_for("step-up");
    code["action"] = refused.2["action"].clone();
    assert!(is(&other.types(&code), 403, "not_a_second_factor"));
    // A second factor of another kind is one.
    let app = other.enrols();
    assert_eq!(other.verifies_by(&app).0, 200);
    assert!(other.may_change_the_payout_account());
}

#[test]
fn a_code_is_a_second_factor_after_what_the_token_says_of_the_first() {
    let (dev, ..) = by_email();
    let alice = alice(&dev).signed_in();
    for amr in ["email", "otp", "mfa", "user"] {
        assert!(is(&alice.with(&format!("amr={amr}")).sends("step-up"), 403, "not_a_second_factor"), "{amr}");
    }
    // In no session only the token tells, and there is nothing but an action to prove.
    let nowhere = Person { claims: alice.claims.replace(",origin_jti=s1", ""), ..alice.clone() };
    let mut code = nowhere.code_for("step-up");
    code["action"] = nowhere.asks("DELETE", "/api/mfa/factors/totp", &Value::Null).2["action"].clone();
    assert!(is(&nowhere.types(&code), 403, "not_a_second_factor"));
    let (status, _, body) = nowhere.with("amr=pwd").types(&code);
    assert!(status == 200 && body["grant"].is_string(), "{body}");
    dev.advance_ms(3_600_000);
    assert_eq!(alice.with("amr=[pwd email]").has_a_code("step-up").0, 200);
}

#[test]
fn a_code_by_sms_is_a_fallback_where_there_is_nothing_stronger_and_the_tenant_allows_it() {
    let dev = manual();
    let alice = alice(&dev);
    assert_eq!(alice.has_a_code("step-up").2, json!({ "verified": true }));
    assert!(alice.may_change_the_payout_account(), "she has nothing else");
    dev.advance_ms(3_600_000);
    let code = alice.code_for("step-up");
    alice.enrols();
    assert!(is(&alice.types(&code), 403, "use_stronger_factor"), "sent before she had an app");
    dev.advance_ms(3_600_000);
    assert!(is(&alice.sends("step-up"), 403, "use_stronger_factor"));
    assert_eq!(
        dev.ask("GET", "/dev/outbox", "").2.as_array().unwrap().iter().filter(|sent| sent["code"].is_string()).count(),
        2,
        "nothing was sent"
    );
    // Guesses that make it wait are no way to the weaker one; only when no code of it can be tried any more.
    while !is(&alice.verifies("totp", "000000"), 429, "locked") {}
    assert!(is(&alice.sends("step-up"), 403, "use_stronger_factor"));
    loop {
        match alice.verifies("totp", "x") {
            (429, _, body) => dev.advance_ms(body["retryAfter"].as_u64().unwrap() * 1000),
            (403, _, _) => break,
            _ => {}
        }
    }
    assert_eq!(alice.has_a_code("step-up").0, 200);
    assert!(alice.may_change_the_payout_account());
    // Forbidden, in force with the next request, for messages and for codes that are under way.
    dev.advance_ms(3_600_000);
    let code = alice.code_for("step-up");
    let rules = json!({ "allowed": everything_but(&["sms"]), "required": [], "minimum": 0 });
    assert_eq!(admin(&dev).puts(0, &rules).0, 200);
    assert!(is(&alice.types(&code), 403, "factor_not_allowed"));
    dev.advance_ms(3_600_000);
    assert!(is(&alice.sends("step-up"), 403, "factor_not_allowed"));
    assert_eq!(alice.has_a_code("login").0, 200, "a code that is no second factor is none of its business");
    let elsewhere = Person { claims: alice.claims.replace("acme", "other"), ..alice.clone() };
    assert_eq!(elsewhere.has_a_code("step-up").0, 200, "another tenant has its own rules");
}

#[test]
fn a_tenant_is_shown_to_its_people_and_changed_by_its_admins_who_have_stepped_up() {
    let dev = manual();
    let (alice, root) = (alice(&dev), admin(&dev));
    let (status, head, body) = alice.asks("GET", "/api/mfa/tenant", &Value::Null);
    assert!(status == 200 && head.contains("etag: \"0\"") && head.contains("cache-control: no-store"), "{head}");
    let all = everything_but(&[]);
    let same = json!({ "allowed": all, "required": [], "minimum": 0 });
    assert_eq!((&body["version"], &body["in_force"], &body["required_from"]), (&json!(0), &same, &Value::Null));
    let rules = json!({ "allowed": everything_but(&["sms", "email"]), "required": [], "minimum": 0 });
    let stepped_up = alice.with(&format!("acr=mfa,auth_time={}", now(&dev)));
    assert!(is(&stepped_up.puts(0, &rules), 403, "not_admin"));
    assert!(is(&alice.with("role=admin").puts(0, &rules), 401, "insufficient_user_authentication"));
    let groups = stepped_up.with("role=[user admin]");
    assert_eq!(groups.puts(0, &rules).0, 200, "one of several");
    assert!(is(&root.asks("PUT", "/api/mfa/tenant", &rules), 428, "version_required"));
    for version in [0, 2] {
        assert!(is(&root.puts(version, &rules), 412, "version_changed"), "{version}");
    }
    assert!(is(&root.asks_with("PUT", "/api/mfa/tenant", "if-match: *\r\n", &rules), 412, "version_changed"));
    // What is shown can be put.
    let shown = alice.asks("GET", "/api/mfa/tenant", &Value::Null).2;
    let (status, head, body) = root.puts(1, &shown);
    assert!(status == 200 && head.contains("etag: \"2\"") && body["version"] == 2, "{head} {body}");
    let nobody = Person { claims: "user=alice".to_owned(), ..alice.clone() };
    assert!(is(&nobody.asks("GET", "/api/mfa/tenant", &Value::Null), 404, "no_tenant"));
    let (status, head, _) = alice.asks("POST", "/api/mfa/tenant", &Value::Null);
    assert!(status == 405 && head.contains("allow: get, put"), "{head}");
    assert_eq!(alice.asks("OPTIONS", "/api/mfa/tenant", &Value::Null).0, 204);
    assert_eq!(dev.ask("GET", "/api/mfa/tenant", "").0, 401);
}

#[test]
fn what_cannot_be_put_is_told_by_its_field() {
    let dev = manual();
    let root = admin(&dev);
    let all = everything_but(&[]);
    let with = |field: &str, value: Value| {
        let mut rules = json!({ "allowed": all, "required": [], "minimum": 0 });
        rules[field] = value;
        rules
    };
    let wrong = [
        (json!([]), "body"),
        (with("x", json!(1)), "x"),
        (json!({ "required": [], "minimum": 0 }), "allowed"),
        (with("allowed", json!(["topt"])), "allowed"),
        (with("allowed", json!(["sms"])), "allowed"),
        (with("required", json!("totp")), "required"),
        (with("required", json!(["sms"])), "required"),
        (with("minimum", json!(-1)), "minimum"),
        (with("minimum", json!(3)), "minimum"),
        (with("required_from", json!("tomorrow")), "required_from"),
        (with("minimum", json!(1)), "required_from"),
    ];
    for (body, field) in wrong {
        let answer = root.puts(0, &body);
        assert!(is(&answer, 400, "bad_request") && answer.2["field"] == field, "{body}: {answer:?}");
        assert!(answer.2["message"].as_str().unwrap().contains(field), "{answer:?}");
    }
    let mut soon = with("minimum", json!(1));
    soon["required_from"] = (now(&dev) + 7 * DAY - 10).into();
    assert_eq!(root.puts(0, &soon).2["field"], "required_from");
    assert_eq!(root.asks("GET", "/api/mfa/tenant", &Value::Null).2["version"], 0, "nothing was put");
}

#[test]
fn what_is_required_is_asked_for_after_the_grace_period_and_a_recovery_code_does_not_skip_it() {
    let dev = manual();
    let alice = alice(&dev);
    let app = alice.enrols();
    let codes = alice.generates();
    dev.advance_ms(86_402_000);
    let from = now(&dev) + 7 * DAY + 60;
    let rules = json!({ "allowed": everything_but(&["sms", "email"]), "required": ["passkey"], "minimum": 1, "required_from": from });
    let (status, _, body) = admin(&dev).puts(0, &rules);
    assert_eq!(
        (status, &body["required_from"], &body["in_force"]["minimum"]),
        (200, &json!(from), &json!(0)),
        "{body}"
    );
    // Until then everything is as it was, and everybody is told.
    let told = alice.factors();
    assert_eq!(
        (&told["required"], &told["required_from"], &told["missing"]),
        (&json!(true), &json!(from), &json!(["passkey"]))
    );
    assert_eq!(alice.verifies("recovery", &codes[0]).2, json!({ "verified": true }));
    assert!(alice.may_change_the_payout_account());
    dev.advance_ms((from - now(&dev)) * 1000);
    let told = alice.factors();
    assert_eq!((&told["required_from"], &told["missing"]), (&Value::Null, &json!(["passkey"])), "{told}");
    // Then both are enough to enrol one, and no more.
    for answer in [alice.verifies("recovery", &codes[1]), alice.verifies_by(&app)] {
        assert_eq!((answer.0, &answer.2["enrol_only"], &answer.2["missing"]), (200, &json!(true), &json!(["passkey"])));
        assert!(!alice.may_change_the_payout_account());
    }
    assert!(is(
        &alice.asks("POST", "/api/mfa/recovery/generate", &Value::Null),
        401,
        "insufficient_user_authentication"
    ));
    assert!(
        is(&alice.asks("POST", "/api/mfa/totp/enroll", &Value::Null), 409, "already_enrolled"),
        "it is no challenge"
    );
    // The lost app goes, too, by a code for that.
    let action = alice.asks("DELETE", "/api/mfa/factors/totp", &Value::Null).2["action"].clone();
    let typed = json!({ "factor": "recovery", "code": codes[2], "action": action });
    let grant = alice.asks("POST", "/api/mfa/verify", &typed).2["grant"].as_str().unwrap().to_owned();
    let header = format!("tollgate-grant: {grant}\r\n");
    assert_eq!(alice.asks_with("DELETE", "/api/mfa/factors/totp", &header, &Value::Null).0, 200);
    // It is taken back at once.
    let looser = json!({ "allowed": everything_but(&[]), "required": [], "minimum": 0 });
    assert_eq!(admin(&dev).puts(1, &looser).0, 200);
    assert_eq!(alice.verifies("recovery", &codes[3]).2, json!({ "verified": true }));
    assert!(alice.may_change_the_payout_account());
}

#[test]
fn what_is_not_allowed_is_neither_enrolled_nor_good_though_it_is_enrolled() {
    let dev = manual();
    let alice = alice(&dev);
    let app = alice.enrols();
    let bob = Person { claims: "user=bob,tenant=acme,origin_jti=s1".to_owned(), ..alice.clone() };
    let from = now(&dev) + 8 * DAY;
    let rules = json!({ "allowed": ["passkey"], "required": [], "minimum": 0, "required_from": from });
    let locks_out = alice.with(&format!("role=admin,acr=mfa,auth_time={}", now(&dev))).puts(0, &rules);
    assert!(is(&locks_out, 409, "locks_you_out"), "{locks_out:?}");
    assert_eq!(admin(&dev).puts(0, &rules).0, 200);
    bob.enrols();
    dev.advance_ms((from - now(&dev)) * 1000);
    assert!(is(&alice.verifies_by(&app), 403, "factor_not_allowed"));
    assert!(!alice.may_change_the_payout_account());
    let carol = Person { claims: "user=carol,tenant=acme,origin_jti=s1".to_owned(), ..alice.clone() };
    assert!(is(&carol.signed_in().asks("POST", "/api/mfa/totp/enroll", &Value::Null), 403, "factor_not_allowed"));
    let stepped_up = carol.with(&format!("acr=mfa,auth_time={}", now(&dev)));
    assert!(is(&stepped_up.asks("POST", "/api/mfa/recovery/generate", &Value::Null), 403, "factor_not_allowed"));
    // What protects an account does so though it is not allowed: nobody enrols another by a sign-in alone.
    assert!(is(
        &alice.signed_in().asks("POST", "/api/mfa/totp/enroll", &Value::Null),
        401,
        "insufficient_user_authentication"
    ));
    assert_eq!(alice.factors()["allowed"], json!(["passkey"]));
}

#[test]
fn of_admins_who_put_one_version_at_four_processes_at_once_one_does() {
    let servers = servers(&[OLD; 4]);
    for version in 0..3 {
        let put = |n: usize| {
            let root = admin(&servers[n % servers.len()]);
            let kinds = [&["sms"][..], &["email"], &["sms", "email"], &[]][n % 4];
            root.puts(version, &json!({ "allowed": everything_but(kinds), "required": [], "minimum": 0 })).0
        };
        let statuses: Vec<u16> = thread::scope(|scope| {
            let calls: Vec<_> = (0..12).map(|n| scope.spawn(move || put(n))).collect();
            calls.into_iter().map(|call| call.join().unwrap()).collect()
        });
        let of = |status| statuses.iter().filter(|found| **found == status).count();
        assert_eq!((of(200), of(412)), (1, 11), "{version}: {statuses:?}");
    }
    let shown = alice(&servers[3]).asks("GET", "/api/mfa/tenant", &Value::Null).2;
    assert_eq!(shown["version"], 3);
}

#[test]
fn nothing_is_shown_put_or_accepted_while_the_table_is_gone() {
    let dev = Dev::start(&[]);
    let (alice, root) = (alice(&dev), admin(&dev));
    let code = alice.code_for("step-up");
    assert_eq!(dev.ask("POST", "/dev/faults", r#"{"store":"error"}"#).0, 200);
    let rules = json!({ "allowed": everything_but(&["sms"]), "required": [], "minimum": 0 });
    let answers = [
        alice.asks("GET", "/api/mfa/tenant", &Value::Null),
        root.puts(0, &rules),
        alice.asks("GET", "/api/mfa/factors", &Value::Null),
        alice.sends("step-up"),
        alice.types(&code),
    ];
    for (status, head, body) in answers {
        assert!(status == 503 && head.contains("retry-after: 1"), "{head} {body}");
    }
}

/// A process, with its counters.
async fn items() -> (Items, Arc<Counters>) {
    let connected = connected(&endpoint().await).await;
    let counters = Arc::new(Counters::default());
    let store = DynamoStore::with_trusted_clock(&connected, TABLE, Arc::new(SystemClock), counters.clone());
    store.warm_up().await.unwrap();
    (Items::new(store).with_deadline(PATIENCE), counters)
}

fn root() -> Author {
    Author { actor: Actor::System, session: None, retention: MfaRules::RETENTION }
}

/// One that nobody else has.
fn tenant_key() -> Key {
    Key::new([("tenant", key().key.to_string().as_str())]).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_cost_one_read_and_a_change_five_write_units() {
    let (items, counters) = items().await;
    let (tenant, file) = (tenant_key(), FactorRules::default());
    let (found, round_trips, units) = costs(&counters, tenant::find(&items, &tenant, &file)).await;
    assert_eq!((found.unwrap().version, round_trips, units), (0, 1, 0));
    let rules = FactorRules::default();
    let next = Some(Next { from: Timestamp::from_secs(2_000_000_000), rules: rules.clone() });
    let longest = Tenant { version: 1, rules, next };
    for (seen, is_put) in [(0, true), (0, false), (1, true)] {
        let next = Tenant { version: seen + 1, ..longest.clone() };
        let (put, round_trips, units) = costs(&counters, tenant::put(&items, &tenant, seen, &next, &root())).await;
        assert_eq!(
            (put.unwrap(), round_trips, units),
            (is_put, if is_put { 3 } else { 2 }, if is_put { 5 } else { 4 }),
            "of version {seen}"
        );
    }
    let account = Key::new([("user", "alice")]).unwrap();
    let tenants = tollgate_policy::Policy::parse("version = 1\n[mfa]\nissuer = 'x'").unwrap().policy;
    let asked = tenant::of_account(&items, &account, &tenants.mfa().unwrap().tenants);
    let (_, round_trips, _) = costs(&counters, asked).await;
    assert_eq!(round_trips, 0, "an account without a tenant");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_put_is_found_as_it_was() {
    let (items, _) = items().await;
    let file = FactorRules::default();
    let kinds = || proptest::sample::subsequence(FactorKind::ALL.to_vec(), 0..=5);
    let rules = || {
        (kinds(), kinds(), 0_u32..3).prop_map(|(allowed, required, minimum)| FactorRules {
            allowed: allowed.into_iter().collect(),
            required: required.into_iter().collect(),
            minimum,
        })
    };
    let next = proptest::option::of((rules(), 0_u64..u64::from(u32::MAX)))
        .prop_map(|next| next.map(|(rules, from)| Next { from: Timestamp::from_secs(from), rules }));
    let tenants = (rules(), next).prop_map(|(rules, next)| Tenant { version: 0, rules, next });
    let mut runner = TestRunner::default();
    for _ in 0..10 {
        let key = tenant_key();
        for version in 1..6 {
            let tenant = Tenant { version, ..tenants.new_tree(&mut runner).unwrap().current() };
            assert!(tenant::put(&items, &key, version - 1, &tenant, &root()).await.unwrap());
            let late = Tenant { version: 9, ..tenant.clone() };
            assert!(!tenant::put(&items, &key, version - 1, &late, &root()).await.unwrap());
            assert_eq!(tenant::find(&items, &key, &file).await.unwrap(), tenant);
        }
    }
}
