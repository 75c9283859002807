//! Step-up as clients see it: signed tokens, the authorizer and the functions of a running server.

use crate::dev::Dev;
use crate::harness::{json as printed, repository, run, run_at_root, stderr, stdout};
use crate::issuer::{AUDIENCE, Issuer, Signer};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tollgate::mfa::Action;
use tollgate::{Clock, SystemClock};
use totp_rs::Totp;

/// What must not be done with somebody's token alone.
const SENSITIVE: [(&str, &str, u16); 3] =
    [("PUT", "/api/payout-account", 200), ("POST", "/api/keys", 201), ("POST", "/api/export", 202)];

/// A server, the issuer that it believes, and the time.
struct Site {
    dev: Dev,
    issuer: Issuer,
}

impl Site {
    fn start() -> Self {
        Self::believing(Issuer::start())
    }

    fn believing(issuer: Issuer) -> Self {
        Self::with(issuer, &[])
    }

    fn with(issuer: Issuer, more: &[&str]) -> Self {
        let arguments = ["--clock", "manual", "--issuer", issuer.url(), "--audience", AUDIENCE, "--algorithm", "ES256"];
        Self { dev: Dev::start(&[&arguments, more].concat()), issuer }
    }

    /// The sample policy with something else in it.
    fn under(changes: &[(&str, &str)]) -> (Self, tempfile::NamedTempFile) {
        let mut policy = std::fs::read_to_string(repository("infra/tollgate.toml")).unwrap();
        for (from, to) in changes {
            assert!(policy.contains(from), "{from}");
            policy = policy.replacen(from, to, 1);
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), policy).unwrap();
        (Self::with(Issuer::start(), &["--policy", file.path().to_str().unwrap()]), file)
    }

    /// A command on the server's table, as an operator at the root of the repository has it.
    fn operate(&self, command: &[&str]) -> std::process::Output {
        let stats = self.dev.stats();
        let (endpoint, table) = (stats["dynamodb_endpoint"].as_str().unwrap(), stats["table"].as_str().unwrap());
        run_at_root(&[command, &["--endpoint-url", endpoint, "--table", table]].concat())
    }

    fn revoke(&self, key: &str, more: &[&str]) -> std::process::Output {
        self.operate(&[&["session", "revoke", key], more].concat())
    }

    fn now(&self) -> u64 {
        self.dev.stats()["now_ms"].as_u64().unwrap() / 1000
    }

    /// Alice's token in a sign-in, with more claims.
    fn token(&self, session: &str, more: &Value) -> String {
        let mut claims = json!({ "sub": "alice", "origin_jti": session });
        claims.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.issuer.token(self.now(), &claims)
    }

    fn ask(&self, token: &str, method: &str, path: &str, more: &str, body: &str) -> (u16, String, Value) {
        self.dev.ask_with(method, path, &format!("authorization: Bearer {token}\r\n{more}"), body)
    }

    fn payout(&self, token: &str) -> (u16, String, Value) {
        self.ask(token, "PUT", "/api/payout-account", "", "{}")
    }

    /// An authenticator app of Alice's, who has just signed in.
    fn enrol(&self, token: &str) {
        let (status, head, body) = self.ask(token, "POST", "/api/mfa/totp/enroll", "", "");
        assert_eq!(status, 200, "{head}");
        let app = Totp::from_url(body["otpauth_uri"].as_str().unwrap()).unwrap();
        let code = json!({ "code": app.generate(self.now()).to_string() });
        assert_eq!(self.ask(token, "POST", "/api/mfa/totp/confirm", "", &code.to_string()).0, 200);
    }

    /// What a right code is typed as.
    fn right_code(&self, token: &str) -> Value {
        let (status, head, sent) = self.ask(token, "POST", "/api/auth/otp/send", "", r#"{"purpose":"payout"}"#);
        assert_eq!(status, 202, "{head}");
        let outbox = self.dev.ask("GET", "/dev/outbox", "").2;
        let code = &outbox.as_array().unwrap().last().unwrap()["code"];
        json!({ "challenge": sent["challenge"], "purpose": "payout", "code": code })
    }

    fn typed(&self, token: &str, code: &Value) -> (u16, String, Value) {
        self.ask(token, "POST", "/api/auth/otp/verify", "", &code.to_string())
    }

    /// A right code for the session, or for one action.
    fn verify(&self, token: &str, action: Option<&str>) -> Value {
        let mut code = self.right_code(token);
        code["action"] = action.into();
        let (status, head, body) = self.typed(token, &code);
        assert_eq!(status, 200, "{head}");
        body
    }
}

fn is_challenged(answer: &(u16, String, Value)) -> bool {
    let challenge = "www-authenticate: bearer error=\"insufficient_user_authentication\"";
    answer.0 == 401 && answer.1.contains(challenge)
}

#[test]
fn a_fresh_sufficient_authentication_passes_and_the_challenge_says_what_one_is() {
    let site = Site::start();
    let fresh = site.token("s1", &json!({ "auth_time": site.now(), "acr": "mfa" }));
    for (method, path, status) in SENSITIVE {
        assert_eq!(site.ask(&fresh, method, path, "", "{}").0, status, "{path}");
    }
    let (status, head, body) = site.payout(&site.token("s2", &json!({ "auth_time": site.now() })));
    assert_eq!((status, body["error"].as_str()), (401, Some("insufficient_user_authentication")));
    assert!(
        head.contains(
            "error_description=\"a different authentication level is required.\", acr_values=\"mfa\", max_age=\"300\""
        ),
        "{head}"
    );
    assert!(head.contains("content-type: application/problem+json") && head.contains("cache-control: no-store"));
    assert_eq!((&body["max_age"], &body["acr_values"], &body["status"]), (&json!(300), &json!(["mfa"]), &json!(401)));
    // A second more than five minutes later it is old.
    site.dev.advance_ms(301_000);
    let (_, head, _) = site.payout(&fresh);
    assert!(head.contains("more recent authentication is required") && head.contains("max_age=\"300\""), "{head}");
}

#[test]
fn case_52_an_auth_time_that_is_missing_in_milliseconds_in_the_future_or_merely_refreshed_is_challenged() {
    // [jellyfin-plugin-sso#961], [goiabada#125]
    let site = Site::start();
    let now = site.now();
    let wrong = [
        ("missing", json!({ "acr": "mfa" })),
        ("milliseconds", json!({ "acr": "mfa", "auth_time": now * 1000 })),
        ("milliseconds as text", json!({ "acr": "mfa", "auth_time": (now * 1000).to_string() })),
        ("future", json!({ "acr": "mfa", "auth_time": now + 3600 })),
        ("null", json!({ "acr": "mfa", "auth_time": null })),
        ("a date", json!({ "acr": "mfa", "auth_time": "2026-01-01T00:00:00Z" })),
        ("negative", json!({ "acr": "mfa", "auth_time": -1 })),
        ("zero", json!({ "acr": "mfa", "auth_time": 0 })),
        ("old, in a new token", json!({ "acr": "mfa", "auth_time": now - 301 })),
    ];
    for (what, claims) in wrong {
        for (method, path, _) in SENSITIVE {
            let answer = site.ask(&site.token("s1", &claims), method, path, "", "{}");
            assert!(is_challenged(&answer), "{what}: {path}: {answer:?}");
        }
    }
    // Within a sign-in it never moves, whatever a refresh makes of it.
    let fresh = |at: u64| site.token("s2", &json!({ "acr": "mfa", "auth_time": at }));
    assert_eq!(site.payout(&fresh(now)).0, 200);
    site.dev.advance_ms(301_000);
    assert!(is_challenged(&site.payout(&fresh(now))));
    assert!(is_challenged(&site.payout(&fresh(site.now()))));
    // One that was too old when it was first seen, too.
    let stale = site.token("s4", &json!({ "acr": "mfa", "auth_time": now }));
    assert!(is_challenged(&site.payout(&stale)));
    let refreshed = site.token("s4", &json!({ "acr": "mfa", "auth_time": site.now() }));
    assert!(is_challenged(&site.payout(&refreshed)));
    // A new sign-in does.
    assert_eq!(site.payout(&site.token("s3", &json!({ "acr": "mfa", "auth_time": site.now() }))).0, 200);
}

#[test]
fn a_right_code_freshens_its_session_alone_and_for_five_minutes() {
    let site = Site::start();
    let old = json!({ "auth_time": site.now() - 86_400 });
    let (mine, other) = (site.token("s1", &old), site.token("s2", &old));
    assert!(is_challenged(&site.payout(&mine)));
    assert_eq!(site.verify(&mine, None), json!({ "verified": true }));
    assert_eq!(site.payout(&mine).0, 200);
    // Neither another sign-in of hers, nor somebody else in a session of that name.
    assert!(is_challenged(&site.payout(&other)));
    let claims = json!({ "sub": "bob", "origin_jti": "s1", "auth_time": site.now() - 86_400 });
    assert!(is_challenged(&site.payout(&site.issuer.token(site.now(), &claims))));
    site.dev.advance_ms(299_000);
    assert_eq!(site.payout(&mine).0, 200);
    site.dev.advance_ms(2_000);
    assert!(is_challenged(&site.payout(&mine)));
}

#[test]
fn a_grant_is_good_for_its_action_and_once() {
    let site = Site::start();
    let token = site.token("s1", &json!({ "auth_time": site.now(), "acr": "mfa" }));
    let remove = |token: &str, path: &str, grant: &str| {
        site.ask(token, "DELETE", path, &format!("tollgate-grant: {grant}\r\n"), "")
    };
    let app = "/api/mfa/factors/totp";
    site.enrol(&token);
    // However fresh the session is.
    let refused = site.ask(&token, "DELETE", app, "", "");
    assert!(is_challenged(&refused), "{refused:?}");
    let action = refused.2["action"].as_str().unwrap();
    let grant = site.verify(&token, Some(action))["grant"].as_str().unwrap().to_owned();
    // Not for another path, query, session or user.
    assert!(is_challenged(&remove(&token, "/api/mfa/factors/recovery", &grant)));
    assert!(is_challenged(&remove(&token, "/api/mfa/factors/totp?force=1", &grant)));
    assert!(is_challenged(&remove(&site.token("s2", &json!({})), app, &grant)));
    let bob = site.issuer.token(site.now(), &json!({ "sub": "bob", "origin_jti": "s1" }));
    assert!(is_challenged(&remove(&bob, app, &grant)));
    // Of thirty at once, one.
    let all: Vec<u16> = std::thread::scope(|scope| {
        let one = || scope.spawn(|| remove(&token, app, &grant).0);
        let asked: Vec<_> = (0..30).map(|_| one()).collect();
        asked.into_iter().map(|asked| asked.join().unwrap()).collect()
    });
    let of = |status| all.iter().filter(|found| **found == status).count();
    // Those that were charged and came too late are told the same as those that found nothing.
    assert_eq!(of(200), 1, "{all:?}");
    assert_eq!(of(401) + of(429), 29, "{all:?}");
    assert!(is_challenged(&remove(&token, app, &grant)));
}

#[test]
fn where_codes_prove_nothing_none_is_used_up_for_a_grant() {
    let (site, _policy) = Site::under(&[("acr       = \"mfa\" #", "#")]);
    let token = site.token("s1", &json!({}));
    let action = &site.ask(&token, "DELETE", "/api/mfa/factors/phone", "", "").2["action"];
    let code = site.right_code(&token);
    let mut for_action = code.clone();
    for_action["action"] = action.clone();
    let (status, head, body) = site.typed(&token, &for_action);
    assert_eq!((status, &body["error"]), (400, &json!("bad_request")), "{head}");
    assert_eq!(site.typed(&token, &code).2, json!({ "verified": true }));
}

#[test]
fn a_grant_is_no_key_to_a_route_that_asks_for_a_fresh_session() {
    let site = Site::start();
    let token = site.token("s1", &json!({}));
    // Even one for that very request.
    let action = Action::new("PUT", "/api/payout-account", Vec::new(), &[]).to_string();
    let grant = site.verify(&token, Some(&action))["grant"].as_str().unwrap().to_owned();
    let granted = format!("tollgate-grant: {grant}\r\n");
    assert!(is_challenged(&site.ask(&token, "PUT", "/api/payout-account", &granted, "{}")));
}

#[test]
fn nobody_is_let_in_by_a_token_that_is_not_the_issuers() {
    let site = Site::start();
    let claims = json!({ "sub": "alice", "origin_jti": "s1", "auth_time": site.now(), "acr": "mfa" });
    let forged = Signer::new("first").sign(&site.issuer.claims(site.now(), &claims));
    let expired = site.issuer.token(site.now() - 3700, &claims);
    for token in [&forged, &expired, "", "x", "a.b.c"] {
        let (status, _, _) = site.payout(token);
        assert_eq!(status, 403, "{token}");
    }
    // Whoever brings nothing is challenged by the layer.
    assert!(is_challenged(&site.dev.ask("PUT", "/api/payout-account", "{}")));
}

#[test]
fn keys_rotate_and_tokens_that_name_unknown_ones_are_no_flood() {
    let site = Site::start();
    let claims = json!({ "sub": "alice", "origin_jti": "s1", "auth_time": site.now(), "acr": "mfa" });
    assert_eq!(site.payout(&site.issuer.token(site.now(), &claims)).0, 200);
    assert_eq!(site.issuer.asked(), 1);
    let stranger = Signer::new("nobodys");
    for _ in 0..30 {
        assert_eq!(site.payout(&stranger.sign(&site.issuer.claims(site.now(), &claims))).0, 403);
    }
    assert_eq!(site.issuer.asked(), 1);
    // A server that starts after the rotation knows the new key, and not the old one.
    let old = site.issuer.token(site.now(), &claims);
    site.issuer.rotate(Signer::new("second"));
    let site = Site::believing(site.issuer);
    assert_eq!(site.payout(&site.issuer.token(site.now(), &claims)).0, 200);
    assert_eq!(site.payout(&old).0, 403);
}

#[test]
fn a_server_that_runs_learns_a_new_key_by_one_request_however_many_tokens_name_it() {
    let site = Site::with(Issuer::start(), &["--algorithm", "RS256"]);
    let claims = json!({ "sub": "alice", "origin_jti": "s1", "auth_time": site.now(), "acr": "mfa" });
    let old = site.issuer.token(site.now(), &claims);
    assert_eq!((site.payout(&old).0, site.issuer.asked()), (200, 1));
    site.issuer.rotate(Signer::rsa("second"));
    let new = site.issuer.token(site.now(), &claims);
    let rotated = Instant::now();
    while site.payout(&new).0 != 200 {
        assert!(rotated.elapsed() < Duration::from_secs(300), "the new key is not known after ten times the cooldown");
        std::thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(site.issuer.asked(), 2);
    assert_eq!(site.payout(&old).0, 403);
}

#[test]
fn a_grant_that_is_bound_to_fields_of_the_body_is_good_for_these_values_and_once() {
    let (all, bound) = ("step_up          = { max_age = \"5min\", acr = [\"mfa\"] }", "bind = [\"iban\", \"limit\"] }");
    let with_bind = all.replace('}', &format!(", {bound}"));
    let (site, _policy) = Site::under(&[(all, &with_bind)]);
    let token = site.token("s1", &json!({ "auth_time": site.now(), "acr": "mfa" }));
    let change = |grant: &str, body: &str| {
        site.ask(&token, "PUT", "/api/payout-account", &format!("tollgate-grant: {grant}\r\n"), body)
    };
    let mine = r#"{"iban":"RO1","limit":100,"note":"a"}"#;
    let refused = change("", mine);
    assert!(is_challenged(&refused), "{refused:?}");
    let action = refused.2["action"].as_str().unwrap();
    let others = [r#"{"iban":"RO2","limit":100}"#, r#"{"iban":"RO1","limit":1000}"#, r#"{"iban":"100","limit":"RO1"}"#];
    for other in others {
        assert_ne!(change("", other).2["action"], action, "{other}");
    }
    // What has no one value is no action.
    for none in
        ["", "{}", r#"{"iban":"RO1"}"#, r#"{"iban":"RO1","limit":{}}"#, r#"{"iban":"RO1","iban":"RO2","limit":1}"#]
    {
        let (status, head, body) = change("", none);
        assert_eq!((status, body["error"].as_str()), (400, Some("bad_request")), "{none}: {head}");
    }
    let grant = site.verify(&token, Some(action))["grant"].as_str().unwrap().to_owned();
    for other in others {
        assert!(is_challenged(&change(&grant, other)), "{other}");
    }
    // Whatever else is in the body, and however it is written.
    assert_eq!(change(&grant, r#"{ "limit": 100, "note": "b", "iban": "RO1" }"#).0, 200);
    assert!(is_challenged(&change(&grant, mine)));
}

#[test]
fn an_operator_ends_what_a_user_has_proved_from_the_next_request_on() {
    let site = Site::start();
    let fresh = json!({ "auth_time": site.now(), "acr": "mfa" });
    let token = site.token("s1", &fresh);
    assert_eq!(site.payout(&token).0, 200);
    let done = site.revoke("user:alice", &["--json"]);
    assert_eq!(printed(&done)["epoch"], 1);
    assert!(stderr(&done).contains("with a tenant is another subject"));
    assert!(is_challenged(&site.payout(&token)));
    assert_eq!(site.verify(&token, None), json!({ "verified": true }));
    assert_eq!(site.payout(&token).0, 200);
    // A user of a tenant is somebody else.
    let of_acme = site.token("s2", &json!({ "tenant": "acme", "auth_time": site.now(), "acr": "mfa" }));
    let text = stdout(&site.revoke("user:alice", &[]));
    assert!(text.starts_with("user:alice: revoked what was proved up to ") && text.contains("(epoch 2)"), "{text}");
    assert!(is_challenged(&site.payout(&token)));
    assert_eq!(site.payout(&of_acme).0, 200);
    let done = site.revoke("user:alice,tenant:acme", &[]);
    assert!(done.status.success() && stderr(&done).is_empty(), "{}", stderr(&done));
    assert!(is_challenged(&site.payout(&of_acme)));
}

#[test]
fn forgetting_a_person_is_no_way_out_of_a_revocation() {
    let site = Site::start();
    let token = site.token("s1", &json!({ "auth_time": site.now(), "acr": "mfa", "tenant": "acme" }));
    assert_eq!(site.payout(&token).0, 200);
    assert!(site.revoke("tenant:acme,user:alice", &[]).status.success());
    for key in ["user:alice", "tenant:acme,user:alice"] {
        let refused = site.operate(&["forget", key, "--literal-key"]);
        assert_eq!(refused.status.code(), Some(1), "{key}");
        assert!(
            stderr(&refused).contains("was revoked") && stderr(&refused).contains("forget it after"),
            "{}",
            stderr(&refused)
        );
        assert!(is_challenged(&site.payout(&token)), "{key}");
    }
    // The oldest that a route can let pass is a day old.
    site.dev.advance_ms(86_406_000);
    let forgotten = site.operate(&["forget", "user:alice", "--json"]);
    let pks = printed(&forgotten)["pks"].to_string();
    assert!(pks.contains("1/mfa/subject/tenant:acme,user:alice") && pks.contains("1/mfa/session."), "{pks}");
    let (status, head, _) = site.payout(&token);
    assert!(status == 403 || head.contains("more recent authentication"), "{head}");
}

#[test]
fn a_user_who_is_personal_is_revoked_by_name_and_never_written_in_plain() {
    // Second factors are of lasting accounts only.
    let without_factors = ("[mfa]\nissuer  = \"tollgate sample\"\nacr     = \"mfa\"\nmax_age = \"5min\"\n", "");
    let without_passkeys = (
        "[mfa.passkeys]\nrp_id             = \"localhost\"\norigins           = [\"http://localhost:8787\"]\nuser_verification = \"required\"\n",
        "",
    );
    let personal = ("= \"claims.sub\"", "= { from = \"claims.sub\", personal = true, fold = \"email\" }");
    let (site, policy) = Site::under(&[without_factors, without_passkeys, personal]);
    let claims = json!({ "sub": "Alice@x.org", "origin_jti": "s1", "auth_time": site.now(), "acr": "mfa" });
    let token = site.issuer.token(site.now(), &claims);
    assert_eq!(site.payout(&token).0, 200);
    let policy = ["--policy", policy.path().to_str().unwrap(), "--json"];
    let done = site.revoke("user:alice@X.org", &policy);
    let shown = printed(&done);
    assert!(!stdout(&done).to_lowercase().contains("alice"), "{shown}");
    assert!(is_challenged(&site.payout(&token)));
    let again = site.revoke(shown["key"].as_str().unwrap(), &policy);
    assert_eq!(printed(&again)["epoch"], 2, "as it was shown");
    let unknown = site.revoke("user:k9.AAAAAAAAAAAAAAAAAAAAAA", &policy);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(stderr(&unknown).contains("is not the active one; write the value instead"), "{}", stderr(&unknown));
}

#[test]
fn what_is_nobodys_session_is_not_revoked_and_the_error_says_what_to_write() {
    let sample = repository("infra/tollgate.toml");
    let sample = ["--policy", sample.to_str().unwrap(), "--endpoint-url", "http://127.0.0.1:1"];
    for key in ["tenant:acme", "device:d1", "user:alice,api_key:k1"] {
        let refused = run(&[&["session", "revoke", key][..], &sample].concat());
        assert_eq!((refused.status.code(), stdout(&refused).as_str()), (Some(1), ""), "{key}");
        assert!(stderr(&refused).contains("write user:NAME, or tenant:NAME,user:NAME"), "{}", stderr(&refused));
    }
    assert_eq!(run(&[&["session", "revoke", "user:alice"][..], &sample].concat()).status.code(), Some(3));
    let elsewhere = tempfile::tempdir().unwrap();
    let mut command = crate::harness::tollgate();
    let lost = command.args(["session", "revoke", "user:alice"]).current_dir(elsewhere.path()).output().unwrap();
    assert_eq!(lost.status.code(), Some(1));
    assert!(stderr(&lost).contains("no --policy is given"), "{}", stderr(&lost));
}

#[test]
fn refusals_are_counted_apart_from_what_nobody_knows() {
    let site = Site::start();
    site.payout(&site.token("s1", &json!({ "auth_time": site.now(), "acr": "mfa" })));
    assert_eq!(site.dev.stats()["step_ups_required"], 0);
    site.payout(&site.token("s1", &json!({})));
    site.dev.ask("PUT", "/api/payout-account", "{}");
    assert_eq!(
        (&site.dev.stats()["step_ups_required"], &site.dev.stats()["step_ups_unavailable"]),
        (&json!(2), &json!(0))
    );
    site.dev.ask("POST", "/dev/faults", r#"{"store":"error"}"#);
    site.payout(&site.token("s1", &json!({})));
    assert_eq!(site.dev.stats()["step_ups_unavailable"], 1);
}

#[test]
fn explain_tells_what_a_route_wants_and_what_a_token_lacks_of_it() {
    let explain = |method: &str, path: &str, claims: &[String]| {
        let claims: Vec<_> = claims.iter().flat_map(|claim| ["--claim", claim]).collect();
        run_at_root(&[&["explain", "--method", method, "--path", path][..], &claims].concat())
    };
    let now = SystemClock.now().as_secs();
    let token = |age: i64, acr: &str| {
        let at = now.checked_add_signed(-age).unwrap();
        ["sub=alice".to_owned(), format!("auth_time={at}"), format!("acr={acr}")]
    };
    let told = [
        (token(0, "mfa"), "which the token is enough for"),
        (token(0, "pwd"), "and the token is of another class or method"),
        (token(400, "mfa"), "and the token is from before that"),
        (token(-4000, "mfa"), "and the token says that its caller will"),
    ];
    for (claims, says) in told {
        let text = stdout(&explain("PUT", "/api/payout-account", &claims));
        let line = format!("step-up: the caller must have proved within 300000 ms who he is, acr mfa, {says}");
        assert!(text.contains(&line), "{text}");
    }
    for claims in [&token(0, "mfa")[..1], &token(0, "mfa")[1..]] {
        assert!(
            stdout(&explain("PUT", "/api/payout-account", claims)).contains("and no token says when its caller has")
        );
    }
    let bound = stdout(&explain("DELETE", "/api/mfa/factors/totp", &token(0, "mfa")));
    assert!(bound.contains("by a grant for this action alone, once"), "{bound}");
    let json_of = run_at_root(&["explain", "--method", "PUT", "--path", "/api/payout-account", "--json"]);
    let wanted = json!({ "max_age_ms": 300_000, "acr": ["mfa"], "amr": [], "token": "missing" });
    assert_eq!(printed(&json_of)["step_up"], wanted);
    assert!(
        printed(&run_at_root(&["explain", "--method", "GET", "--path", "/api/search", "--json"]))["step_up"].is_null()
    );
}

#[test]
fn while_the_table_is_gone_nobody_passes_and_nobody_is_told_to_sign_in() {
    let site = Site::start();
    let fresh = site.token("s1", &json!({ "auth_time": site.now(), "acr": "mfa" }));
    assert_eq!(site.payout(&fresh).0, 200);
    assert_eq!(site.dev.ask("POST", "/dev/faults", r#"{"store":"error"}"#).0, 200);
    let (status, head, body) = site.payout(&fresh);
    assert_eq!((status, body["error"].as_str()), (503, Some("step_up_unavailable")), "{head}");
    assert!(head.contains("retry-after: 1") && !head.contains("www-authenticate"));
}
