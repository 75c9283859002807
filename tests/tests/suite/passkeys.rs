//! Passkeys as clients see them: the routes below `/api/mfa/passkeys` of running servers, and a browser and authenticators in software.

use crate::authenticator::{Device, decoded, encoded};
use crate::dev::Dev;
use crate::mfa::{Alice, Answer, is, is_challenged, place, servers};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::io::Write;
use std::sync::LazyLock;
use std::thread;
use tollgate::{Policy, Timestamp};
use tollgate_mfa::factors::passkey::relying_party::{Handle, Owner};
use tollgate_mfa::factors::{Passkey, RelyingParty};

/// Where pages of a server are.
fn origin(dev: &Dev) -> String {
    format!("http://localhost:{}", dev.addr().rsplit(':').next().unwrap())
}

fn manual() -> Dev {
    Dev::start(&["--clock", "manual"])
}

/// What somebody does with his devices.
trait WithPasskeys {
    /// Options and challenge of a registration by a sign-in just now.
    fn begins(self) -> Value;
    /// The answer to a registration.
    fn registers(self, asked: &Value, credential: &Value) -> Answer;
    /// A passkey on `device`, from beginning to end; the session is fresh after it.
    fn enrols_on(self, device: &mut Device);
    /// Options and challenge of an assertion.
    fn gets_asked(self) -> Value;
    /// The answer to an assertion.
    fn proves(self, asked: &Value, credential: &Value) -> Answer;
    /// The passkeys of the account.
    fn passkeys(self) -> Vec<Value>;
}

impl WithPasskeys for Alice<'_> {
    fn begins(self) -> Value {
        let (status, head, body) = self.signed_in("POST", "/api/mfa/passkeys/register");
        assert_eq!(status, 200, "{head} {body}");
        body
    }

    fn registers(self, asked: &Value, credential: &Value) -> Answer {
        let body = json!({ "challenge": asked["challenge"], "credential": credential, "name": "laptop" });
        self.asks("POST", "/api/mfa/passkeys/confirm", &body)
    }

    fn enrols_on(self, device: &mut Device) {
        let (status, _, asked) = self.stepped_up("POST", "/api/mfa/passkeys/register");
        assert_eq!(status, 200, "{asked}");
        let made = device.creates(&origin(self.dev), &asked["publicKey"]);
        let (status, _, body) = self.registers(&asked, &made);
        assert!(status == 200 && body["verified"] == true, "{body}");
    }

    fn gets_asked(self) -> Value {
        let (status, head, body) = self.asks("POST", "/api/mfa/passkeys/challenge", &Value::Null);
        assert_eq!(status, 200, "{head} {body}");
        body
    }

    fn proves(self, asked: &Value, credential: &Value) -> Answer {
        let body = json!({ "factor": "passkey", "challenge": asked["challenge"], "credential": credential });
        self.asks("POST", "/api/mfa/verify", &body)
    }

    fn passkeys(self) -> Vec<Value> {
        let all = self.factors();
        all.as_array().unwrap().iter().filter(|one| one["factor"] == "passkey").cloned().collect()
    }
}

#[test]
fn a_passkey_is_registered_and_freshens_its_session() {
    let dev = manual();
    let alice = Alice::at(&dev);
    assert!(is_challenged(&alice.asks("POST", "/api/mfa/passkeys/register", &Value::Null)), "the sign-in is too old");
    assert!(is(&alice.asks("POST", "/api/mfa/passkeys/challenge", &Value::Null), 409, "not_enrolled"));
    let asked = alice.begins();
    let options = &asked["publicKey"];
    assert_eq!((&asked["challenge"], &asked["expires_in"]), (&options["challenge"], &300.into()));
    assert_eq!((&options["rp"]["id"], &options["timeout"]), (&"localhost".into(), &300_000.into()));
    assert_eq!(options["authenticatorSelection"]["userVerification"], "required");
    let handle = decoded(&options["user"]["id"]);
    assert!(
        handle.len() == 32 && !String::from_utf8_lossy(&handle).contains("alice"),
        "authenticators show it to anybody"
    );
    let mut device = Device::new();
    let made = device.creates(&origin(&dev), options);
    assert_eq!(alice.registers(&asked, &made).0, 200);
    assert!(alice.may_change_her_payout_account(), "it was proved by registering it");
    assert!(is(&alice.registers(&asked, &made), 410, "no_active_challenge"), "a challenge is answered once");

    let later = alice.in_session("s2");
    assert!(!later.may_change_her_payout_account());
    dev.advance_ms(1000);
    let asked = later.gets_asked();
    let allowed = asked["publicKey"]["allowCredentials"].as_array().unwrap();
    assert!(allowed.len() == 1 && allowed[0]["id"] == made["id"], "{asked}");
    let signed = device.gets(&origin(&dev), &asked["publicKey"]);
    assert_eq!(later.proves(&asked, &signed).0, 200);
    assert!(later.may_change_her_payout_account() && !alice.in_session("s3").may_change_her_payout_account());
    let passkeys = alice.passkeys();
    let [passkey] = &passkeys[..] else { panic!("{passkeys:?}") };
    assert_eq!((&passkey["name"], &passkey["backed_up"]), (&"laptop".into(), &Value::Bool(true)));
    assert!(passkey["last_used"].as_u64() > passkey["since"].as_u64(), "{passkey}");
}

#[test]
fn what_a_passkey_proves_is_as_old_as_its_challenge() {
    let dev = manual();
    let (alice, mut device) = (Alice::at(&dev), Device::new());
    alice.enrols_on(&mut device);
    let later = alice.in_session("s2");
    let asked = later.gets_asked();
    let signed = device.gets(&origin(&dev), &asked["publicKey"]);
    dev.advance_ms(299_000);
    assert_eq!(later.proves(&asked, &signed).0, 200);
    assert!(later.may_change_her_payout_account());
    dev.advance_ms(2_000);
    assert!(!later.may_change_her_payout_account(), "five minutes after it was asked for");
    let asked = later.gets_asked();
    let signed = device.gets(&origin(&dev), &asked["publicKey"]);
    dev.advance_ms(300_000);
    assert!(is(&later.proves(&asked, &signed), 410, "no_active_challenge"), "it is over");
}

#[test]
fn a_challenge_is_good_for_the_account_session_ceremony_and_action_that_it_was_made_for() {
    let dev = manual();
    let (alice, bob) = (Alice::at(&dev), Alice::at(&dev).called("bob"));
    let (mut hers, mut his) = (Device::new(), Device::new());
    alice.enrols_on(&mut hers);
    bob.enrols_on(&mut his);
    let asked = alice.gets_asked();
    let signed = hers.gets(&origin(&dev), &asked["publicKey"]);
    let gone = |answer: &Answer| is(answer, 410, "no_active_challenge");
    assert!(gone(&bob.proves(&asked, &signed)), "another account's");
    assert!(gone(&alice.in_session("s2").proves(&asked, &signed)), "another session's");
    assert!(gone(&alice.registers(&asked, &signed_as_made(&signed))), "another ceremony's");
    let action = alice.asks("DELETE", "/api/mfa/factors/totp", &Value::Null).2["action"].clone();
    let body = json!({ "factor": "passkey", "challenge": asked["challenge"], "credential": signed, "action": action });
    assert!(gone(&alice.asks("POST", "/api/mfa/verify", &body)), "of no action");
    assert_eq!(alice.proves(&asked, &signed).0, 200, "none of that has used it up");
    assert!(gone(&alice.proves(&asked, &signed)), "an answer that is sent again");

    let asked = alice.asks("POST", "/api/mfa/passkeys/challenge", &json!({ "action": action })).2;
    let signed = hers.gets(&origin(&dev), &asked["publicKey"]);
    assert!(gone(&alice.proves(&asked, &signed)), "of an action");
    let mut body =
        json!({ "factor": "passkey", "challenge": asked["challenge"], "credential": signed, "action": action });
    body["action"] = alice.asks("DELETE", "/api/mfa/factors/recovery", &Value::Null).2["action"].clone();
    assert!(gone(&alice.asks("POST", "/api/mfa/verify", &body)), "of another action");
    body["action"] = action;
    let (status, _, body) = alice.asks("POST", "/api/mfa/verify", &body);
    assert!(status == 200 && body["grant"].is_string(), "{body}");

    let asked = alice.gets_asked();
    let signed = his.gets(&origin(&dev), &bob.gets_asked()["publicKey"]);
    assert!(is(&alice.proves(&asked, &signed), 401, "wrong_passkey"), "bob's passkey, and a challenge of his");
    let asked = alice.gets_asked();
    let mut options = asked["publicKey"].clone();
    options["allowCredentials"] = bob.gets_asked()["publicKey"]["allowCredentials"].clone();
    let signed = his.gets(&origin(&dev), &options);
    assert!(is(&alice.proves(&asked, &signed), 401, "wrong_passkey"), "bob's passkey under her challenge");
}

/// An assertion in the form of a registration.
fn signed_as_made(signed: &Value) -> Value {
    let mut made = signed.clone();
    made["response"]["attestationObject"] = signed["response"]["authenticatorData"].clone();
    made
}

#[test]
fn a_revocation_ends_a_challenge() {
    let dev = Dev::start(&[]);
    let (alice, mut device) = (Alice::at(&dev), Device::new());
    alice.enrols_on(&mut device);
    let asked = alice.gets_asked();
    let signed = device.gets(&origin(&dev), &asked["publicKey"]);
    let (endpoint, table) = place(&dev);
    let revoke = ["session", "revoke", "tenant:acme,user:alice", "--endpoint-url", &endpoint, "--table", &table];
    assert!(crate::harness::run_at_root(&revoke).status.success());
    assert!(is(&alice.proves(&asked, &signed), 410, "no_active_challenge"));
}

#[test]
fn what_was_signed_elsewhere_or_by_nobody_known_proves_nothing() {
    let dev = manual();
    let (alice, mut device) = (Alice::at(&dev), Device::new());
    alice.enrols_on(&mut device);
    let here = origin(&dev);
    let refused = |device: &mut Device, make: &dyn Fn(&mut Device, &Value) -> Value, why: &str| {
        let asked = alice.gets_asked();
        let signed = make(device, &asked["publicKey"]);
        assert!(is(&alice.proves(&asked, &signed), 401, "wrong_passkey"), "{why}");
        // Whatever was wrong, the challenge is used up.
        assert!(is(&alice.proves(&asked, &signed), 410, "no_active_challenge"), "{why}");
    };
    let client = Device::client_data;
    refused(&mut device, &|device, options| device.gets("http://localhost:1", options), "another port of localhost");
    let evil = "https://login.example.com";
    refused(
        &mut device,
        &|device, options| device.signs("localhost", &client(evil, options), options),
        "another origin",
    );
    refused(
        &mut device,
        &|device, options| device.signs("example.com", &client(&here, options), options),
        "another domain",
    );
    let framed = |device: &mut Device, options: &Value| {
        let mut data = client(&here, options);
        data["crossOrigin"] = true.into();
        device.signs("localhost", &data, options)
    };
    refused(&mut device, &framed, "a frame of another origin");
    let created = |device: &mut Device, options: &Value| {
        let mut data = client(&here, options);
        data["type"] = "webauthn.create".into();
        device.signs("localhost", &data, options)
    };
    refused(&mut device, &created, "another ceremony");
    let stale = alice.gets_asked()["publicKey"].clone();
    refused(&mut device, &|device, _| device.gets(&here, &stale), "another challenge of hers");
    let forged = |device: &mut Device, options: &Value| {
        let mut signed = device.gets(&here, options);
        let mut signature = decoded(&signed["response"]["signature"]);
        *signature.last_mut().unwrap() ^= 1;
        signed["response"]["signature"] = encoded(&signature).into();
        signed
    };
    refused(&mut device, &forged, "a signature that is none");
    let handled = |device: &mut Device, options: &Value| {
        let mut signed = device.gets(&here, options);
        signed["response"]["userHandle"] = encoded(b"bob").into();
        signed
    };
    refused(&mut device, &handled, "another account's, by its own word");
    let mut stolen = Device::anybodys();
    stolen.take_keys_of(&device);
    let untouched = |device: &mut Device, options: &Value| {
        let mut options = options.clone();
        options["userVerification"] = "discouraged".into();
        device.gets(&here, &options)
    };
    refused(&mut stolen, &untouched, "an authenticator that does not know its owner");
    let asked = alice.gets_asked();
    let right = device.signs("localhost", &client(&here, &asked["publicKey"]), &asked["publicKey"]);
    assert_eq!(alice.proves(&asked, &right).0, 200, "what is refused above is refused for the reason that it tells");
}

#[test]
fn a_registration_that_was_made_elsewhere_is_none() {
    let dev = manual();
    let alice = Alice::at(&dev);
    for elsewhere in ["http://localhost:1", "https://localhost"] {
        let asked = alice.begins();
        let made = Device::new().creates(elsewhere, &asked["publicKey"]);
        assert!(is(&alice.registers(&asked, &made), 401, "wrong_passkey"), "{elsewhere}");
    }
    let asked = alice.begins();
    let made = Device::new().creates(&origin(&dev), &alice.begins()["publicKey"]);
    assert!(is(&alice.registers(&asked, &made), 401, "wrong_passkey"), "another challenge");
    let asked = alice.begins();
    let mut options = asked["publicKey"].clone();
    options["authenticatorSelection"]["userVerification"] = "discouraged".into();
    let made = Device::anybodys().creates(&origin(&dev), &options);
    assert!(is(&alice.registers(&asked, &made), 401, "wrong_passkey"), "its owner is not known to it");
    assert!(alice.passkeys().is_empty());
}

#[test]
fn a_counter_that_goes_back_is_told() {
    let dev = manual();
    let (alice, mut device) = (Alice::at(&dev), Device::counting());
    alice.enrols_on(&mut device);
    let mut copy = device.clone();
    let proves = |device: &mut Device| {
        let asked = alice.gets_asked();
        let signed = device.gets(&origin(&dev), &asked["publicKey"]);
        alice.proves(&asked, &signed)
    };
    assert_eq!(proves(&mut device).0, 200);
    assert!(is(&proves(&mut copy), 403, "passkey_cloned"), "as far as the other has counted");
    assert_eq!(proves(&mut copy).0, 200, "it has counted further by now");
    assert!(is(&proves(&mut device), 403, "passkey_cloned"), "and so the other one is told of");
}

#[test]
fn one_challenge_answered_by_four_processes_at_once_is_looked_at_once() {
    let servers = servers(&["k1=AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"; 4]);
    let mut device = Device::new();
    Alice::at(&servers[0]).enrols_on(&mut device);
    for round in 0..3 {
        let asked = Alice::at(&servers[round]).gets_asked();
        // The origin that the policy names: each server's own is of its port.
        let signed = device.gets("http://localhost:8787", &asked["publicKey"]);
        let statuses = thread::scope(|scope| {
            let (servers, asked, signed) = (&servers, &asked, &signed);
            let calls: Vec<_> =
                (0..12).map(|n| scope.spawn(move || Alice::at(&servers[n % 4]).proves(asked, signed).0)).collect();
            calls.into_iter().map(|call| call.join().unwrap()).collect::<Vec<_>>()
        });
        let of = |status: u16| statuses.iter().filter(|found| **found == status).count();
        assert!(of(200) == 1 && of(410) == 11, "{round}: {statuses:?}");
    }
}

#[test]
fn a_recovery_code_does_not_skip_a_passkey_that_is_demanded() {
    let sample = std::fs::read_to_string(crate::harness::repository("infra/tollgate.toml")).unwrap();
    let demanding = sample.replacen(
        "step_up          = { max_age = \"5min\", acr = [\"mfa\"] }",
        "step_up          = { max_age = \"5min\", acr = [\"mfa\"], amr = [\"pop\"] }",
        1,
    );
    assert_ne!(demanding, sample);
    let mut policy = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    policy.write_all(demanding.as_bytes()).unwrap();
    let dev = Dev::start(&["--clock", "manual", "--policy", policy.path().to_str().unwrap()]);
    let (alice, mut device) = (Alice::at(&dev), Device::new());
    alice.enrols_on(&mut device);
    let codes = alice.generates();
    dev.advance_ms(86_402_000);
    let later = alice.in_session("s2");
    assert_eq!(later.verifies("recovery", &codes[0]).0, 200);
    assert!(!later.may_change_her_payout_account(), "a recovery code is no passkey");
    let asked = later.gets_asked();
    let signed = device.gets(&origin(&dev), &asked["publicKey"]);
    assert_eq!(later.proves(&asked, &signed).0, 200);
    assert!(later.may_change_her_payout_account());
    dev.advance_ms(1000);
    assert_eq!(later.verifies("recovery", &codes[1]).0, 200);
    assert!(!later.may_change_her_payout_account(), "nor does it stand on one that was before it");
}

#[test]
fn a_first_passkey_is_none_where_another_factor_was_faster() {
    let dev = manual();
    let (alice, mut device) = (Alice::at(&dev), Device::new());
    let asked = alice.begins();
    alice.in_session("s2").enrols();
    let made = device.creates(&origin(&dev), &asked["publicKey"]);
    assert!(is(&alice.registers(&asked, &made), 409, "factors_changed"));
    assert!(alice.passkeys().is_empty());
    assert!(is_challenged(&alice.signed_in("POST", "/api/mfa/passkeys/register")), "a further one takes a factor");

    // And the other way round: an app that is being set up by a sign-in ends with the first passkey.
    let bob = alice.called("bob");
    let app = bob.sets_an_app_up();
    bob.in_session("s2").enrols_on(&mut device);
    assert!(is(&bob.confirms(&app.code(bob.now())), 409, "not_enrolled"));
}

#[test]
fn an_account_has_ten_passkeys_at_most_each_once_and_removes_them_by_a_grant() {
    let dev = manual();
    let alice = Alice::at(&dev);
    let mut devices: Vec<_> = (0..10).map(|_| Device::new()).collect();
    for device in &mut devices[..9] {
        alice.enrols_on(device);
    }
    let begun = alice.stepped_up("POST", "/api/mfa/passkeys/register").2;
    let early = Device::new().creates(&origin(&dev), &begun["publicKey"]);
    alice.enrols_on(&mut devices[9]);
    let full = alice.stepped_up("POST", "/api/mfa/passkeys/register");
    assert!(is(&full, 409, "too_many_passkeys"), "{full:?}");
    let late = alice.registers(&begun, &early);
    assert!(is(&late, 410, "no_active_challenge"), "begun before a change, which ends what is under way: {late:?}");
    let passkeys = alice.passkeys();
    assert_eq!(passkeys.len(), 10);
    let path = format!("/api/mfa/factors/passkey/{}", passkeys[0]["id"].as_str().unwrap());
    let remove = |path: &str, device: &mut Device| {
        let refused = alice.asks("DELETE", path, &Value::Null);
        assert!(is_challenged(&refused), "{refused:?}");
        let asked = alice.asks("POST", "/api/mfa/passkeys/challenge", &json!({ "action": refused.2["action"] })).2;
        let signed = device.gets(&origin(&dev), &asked["publicKey"]);
        let proof = json!({ "factor": "passkey", "challenge": asked["challenge"], "credential": signed,
            "action": refused.2["action"] });
        let (status, _, body) = alice.asks("POST", "/api/mfa/verify", &proof);
        assert_eq!(status, 200, "{body}");
        let grant = format!("tollgate-grant: {}\r\n", body["grant"].as_str().unwrap());
        alice.asks_with("", "DELETE", path, &grant, &Value::Null)
    };
    let is_of = |device: &Device, id: &Value| device.ids().iter().any(|of| *of == *id);
    let (mut removed, mut left): (Vec<_>, Vec<_>) =
        devices.into_iter().partition(|device| is_of(device, &passkeys[0]["id"]));
    dev.advance_ms(86_402_000);
    assert_eq!(remove(&path, &mut left[0]).0, 200);
    assert!(is(&remove(&path, &mut left[0]), 404, "not_enrolled"), "it is not there any more");
    assert_eq!(alice.passkeys().len(), 9);
    let asked = alice.gets_asked();
    let mut options = asked["publicKey"].clone();
    options["allowCredentials"] = json!([]);
    let signed = removed[0].signs_with_all(&origin(&dev), &options);
    assert!(is(&alice.proves(&asked, &signed), 401, "wrong_passkey"), "what was removed proves nothing");
    dev.advance_ms(10_000);
    let again = alice.in_session("s2").stepped_up("POST", "/api/mfa/passkeys/register").2;
    let excluded = again["publicKey"]["excludeCredentials"].as_array().unwrap();
    assert_eq!(excluded.len(), 9, "those are not to be registered twice");
    assert_eq!(remove("/api/mfa/factors/passkey", &mut left[0]).0, 200);
    assert!(alice.passkeys().is_empty(), "all of them");
}

#[test]
fn a_passkey_that_is_registered_again_is_told() {
    let dev = manual();
    let (alice, mut device) = (Alice::at(&dev), Device::new());
    alice.enrols_on(&mut device);
    let asked = alice.stepped_up("POST", "/api/mfa/passkeys/register").2;
    // A device whose owner has it make the same id again.
    let made = device.creates_again(&origin(&dev), &asked["publicKey"]);
    assert!(is(&alice.registers(&asked, &made), 409, "already_enrolled"));
    assert_eq!(alice.passkeys().len(), 1);
}

#[test]
fn without_passkeys_in_the_policy_there_are_none() {
    let sample = std::fs::read_to_string(crate::harness::repository("infra/tollgate.toml")).unwrap();
    let (before, rest) = sample.split_once("[mfa.passkeys]").unwrap();
    let (_, after) = rest.split_once("\n\n").unwrap();
    let mut policy = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    policy.write_all(format!("{before}\n{after}").as_bytes()).unwrap();
    let dev = Dev::start(&["--policy", policy.path().to_str().unwrap()]);
    let alice = Alice::at(&dev);
    for route in ["register", "confirm", "challenge"] {
        let answer = alice.signed_in("POST", &format!("/api/mfa/passkeys/{route}"));
        assert!(is(&answer, 404, "not_found"), "{answer:?}");
    }
    let signed = json!({ "id": "AA", "rawId": "AA", "type": "public-key",
        "response": { "clientDataJSON": "AA", "authenticatorData": "AA", "signature": "AA" } });
    let proof = json!({ "factor": "passkey", "challenge": "A".repeat(43), "credential": signed });
    assert!(is(&alice.asks("POST", "/api/mfa/verify", &proof), 409, "not_enrolled"));
}

#[test]
fn what_cannot_be_a_passkeys_answer_is_told_what_to_write() {
    let dev = manual();
    let alice = Alice::at(&dev);
    for body in [json!({}), json!({ "challenge": "x", "credential": {} }), json!([]), json!({ "challenge": 1 })] {
        let answer = alice.asks("POST", "/api/mfa/passkeys/confirm", &body);
        assert!(is(&answer, 400, "bad_request"), "{body}: {answer:?}");
        let mut proof = body.clone();
        if let Some(proof) = proof.as_object_mut() {
            proof.insert("factor".to_owned(), "passkey".into());
        }
        assert!(is(&alice.asks("POST", "/api/mfa/verify", &proof), 400, "bad_request"), "{proof}");
    }
    let coded = json!({ "factor": "passkey", "code": "012345" });
    assert!(is(&alice.asks("POST", "/api/mfa/verify", &coded), 400, "bad_request"));
    let action = json!({ "action": "x" });
    assert!(is(&alice.asks("POST", "/api/mfa/passkeys/challenge", &action), 400, "bad_request"));
    for (method, path, status) in [
        ("GET", "/api/mfa/passkeys/register", 405),
        ("POST", "/api/mfa/factors/passkey/x", 405),
        ("POST", "/api/mfa/passkeys", 404),
        ("DELETE", "/api/mfa/factors/passkey/", 404),
    ] {
        assert_eq!(alice.asks(method, path, &Value::Null).0, status, "{method} {path}");
    }
}

/// What a passkey has answered rightly.
struct Right {
    party: RelyingParty,
    owner: Handle,
    making: String,
    made: Value,
    passkey: Passkey,
    signing: String,
    signed: Value,
}

static RIGHT: LazyLock<Right> = LazyLock::new(|| {
    let policy = "version = 1\n[mfa]\nissuer = 'x'\n\
        [mfa.passkeys]\nrp_id = 'example.com'\norigins = ['https://example.com']\n";
    let policy = Policy::parse(policy).unwrap().policy;
    let party = RelyingParty::new("x", policy.mfa().unwrap().passkeys.as_ref().unwrap()).unwrap();
    let (owner, mut device) = (Handle::of("alice"), Device::counting());
    let asked = party.ask_to_register(Owner { handle: owner, label: "alice" }, &[]).unwrap();
    let made = device.creates("https://example.com", &asked.options);
    let passkey = registered(&party, &made, &asked.state).unwrap();
    let asks = party.ask_to_assert(std::slice::from_ref(&passkey)).unwrap();
    let signed = device.gets("https://example.com", &asks.options);
    Right { party, owner, making: asked.state, made, passkey, signing: asks.state, signed }
});

fn registered(party: &RelyingParty, made: &Value, state: &str) -> Option<Passkey> {
    let answer = serde_json::from_value(made.clone()).ok()?;
    party.registered(&answer, state, Timestamp::from_secs(0)).ok()
}

fn is_asserted(signed: &Value) -> bool {
    let Right { party, owner, passkey, signing, .. } = &*RIGHT;
    let Ok(answer) = serde_json::from_value(signed.clone()) else { return false };
    party.asserted(&answer, signing, passkey, *owner).is_ok()
}

/// A change of a field's bytes.
fn changed(field: &Value, at: usize, to: &[u8], cut: usize) -> Value {
    let mut bytes = decoded(field);
    let at = at % bytes.len();
    let end = (at + to.len() + cut).min(bytes.len());
    bytes.splice(at..end, to.iter().copied());
    encoded(&bytes).into()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn a_changed_answer_is_none_and_no_bytes_of_a_stranger_are_a_panic(
        field in 0_usize..3,
        at in any::<usize>(),
        to in prop::collection::vec(any::<u8>(), 0..6),
        cut in 0_usize..6,
    ) {
        prop_assert!(is_asserted(&RIGHT.signed), "as it is");
        let mut signed = RIGHT.signed.clone();
        let name = ["authenticatorData", "clientDataJSON", "signature"][field];
        signed["response"][name] = changed(&signed["response"][name], at, &to, cut);
        prop_assert!(!is_asserted(&signed) || signed == RIGHT.signed, "{name}");
        let mut made = RIGHT.made.clone();
        let name = ["attestationObject", "clientDataJSON"][field % 2];
        made["response"][name] = changed(&made["response"][name], at, &to, cut);
        registered(&RIGHT.party, &made, &RIGHT.making);
    }
}

#[test]
fn what_is_nested_without_end_is_refused() {
    for opening in [0x81, 0xa1, 0xc1, 0x9f, 0xbf, 0x5f] {
        let nested = vec![opening; 200_000];
        let mut made = RIGHT.made.clone();
        made["response"]["attestationObject"] = encoded(&nested).into();
        assert!(registered(&RIGHT.party, &made, &RIGHT.making).is_none(), "{opening:x}");
        let mut signed = RIGHT.signed.clone();
        // Behind a head that says that extensions follow.
        let mut data = decoded(&signed["response"]["authenticatorData"]);
        data[32] |= 0x80;
        data.extend(&nested);
        signed["response"]["authenticatorData"] = encoded(&data).into();
        assert!(!is_asserted(&signed), "{opening:x}");
        // And in the statement of an attestation that is otherwise as it should be.
        let mut attested = decoded(&RIGHT.made["response"]["attestationObject"]);
        let at = attested.windows(7).position(|bytes| bytes == b"attStmt").unwrap() + 7;
        attested.splice(at..=at, nested);
        made["response"]["attestationObject"] = encoded(&attested).into();
        assert!(registered(&RIGHT.party, &made, &RIGHT.making).is_none(), "{opening:x}");
    }
}
