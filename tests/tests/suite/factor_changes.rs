//! Changes of factors as clients see them: told on every channel, cancelled by the link, and worth nothing beside what was there before.

use crate::dev::Dev;
use crate::mfa::{Alice, Answer, COOLDOWN_MS, OLD, is, is_challenged, servers};
use serde_json::{Value, json};
use std::thread;

fn manual() -> Dev {
    Dev::start(&["--clock", "manual"])
}

/// The notices that were sent, the last ones first.
pub(crate) fn notices(dev: &Dev) -> Vec<Value> {
    let outbox = dev.ask("GET", "/dev/outbox", "").2;
    outbox.as_array().unwrap().iter().rev().filter(|entry| entry["subject"].is_string()).cloned().collect()
}

/// The token in the link of the last notice.
pub(crate) fn token(dev: &Dev) -> String {
    let body = notices(dev)[0]["body"].as_str().unwrap().to_owned();
    body.split("#cancel=").nth(1).unwrap().to_owned()
}

/// Nobody vouches for whoever has the link.
pub(crate) fn cancels(dev: &Dev, token: &str) -> Answer {
    dev.ask_with("POST", "/api/mfa/changes/cancel", "", &json!({ "token": token }).to_string())
}

#[test]
fn what_a_thief_adds_proves_nothing_beside_what_was_there_and_goes_with_the_link() {
    let profiles = tempfile::NamedTempFile::new().unwrap();
    let both = r#"{"alice":{"phone":"+40721234567","email":"alice@x.org","verified":true}}"#;
    std::fs::write(profiles.path(), both).unwrap();
    let dev = Dev::start(&["--clock", "manual", "--profiles", profiles.path().to_str().unwrap()]);
    let (alice, thief) = (Alice::at(&dev), Alice::at(&dev).in_session("stolen"));
    let app = alice.enrols();
    dev.advance_ms(60_000);
    let told = notices(&dev).len();
    let codes = thief.generates();
    let both: Vec<_> = notices(&dev)[..notices(&dev).len() - told].to_vec();
    let channels: Vec<_> = both.iter().map(|notice| notice["channel"].as_str().unwrap()).collect();
    assert!(channels.contains(&"sms") && channels.contains(&"email") && channels.len() == 2, "{channels:?}");
    let cancel = token(&dev);
    let refused = thief.verifies("recovery", &codes[0]);
    assert!(is(&refused, 403, "cooldown") && refused.2["until"].as_u64() > Some(thief.now()), "{refused:?}");
    assert!(!thief.may_change_her_payout_account());
    assert!(alice.factors()[1]["cooldown_until"].is_u64(), "{}", alice.factors());
    // Nor does it let him remove what keeps him out, and she goes on.
    let removal = thief.asks("DELETE", "/api/mfa/factors/totp", &Value::Null);
    let typed = json!({ "factor": "recovery", "code": codes[0], "action": removal.2["action"] });
    assert!(is(&thief.asks("POST", "/api/mfa/verify", &typed), 403, "cooldown"));
    assert_eq!(alice.verifies("totp", &app.code(alice.now())).0, 200);
    assert!(alice.may_change_her_payout_account());

    let (status, _, body) = cancels(&dev, &cancel);
    assert_eq!((status, body), (200, json!({ "status": "cancelled", "change": "added", "factor": "recovery" })));
    assert!(!alice.may_change_her_payout_account(), "all sessions have ended");
    assert_eq!(alice.factors().as_array().unwrap().len(), 1);
    assert!(is(&cancels(&dev, &cancel), 410, "no_such_change"), "a link is good once");
    dev.advance_ms(30_000);
    assert_eq!(alice.verifies("totp", &app.code(alice.now())).0, 200);
}

#[test]
fn a_change_revokes_every_session_but_the_one_that_has_made_it() {
    let dev = manual();
    let (alice, other) = (Alice::at(&dev), Alice::at(&dev).in_session("s2"));
    let app = alice.enrols();
    dev.advance_ms(30_000);
    assert_eq!(other.verifies("totp", &app.code(other.now())).0, 200);
    assert!(alice.may_change_her_payout_account() && other.may_change_her_payout_account());
    assert_eq!(alice.asks("POST", "/api/mfa/recovery/generate", &Value::Null).0, 200);
    assert!(alice.may_change_her_payout_account() && !other.may_change_her_payout_account());
}

#[test]
fn a_factor_that_was_removed_is_back_with_the_link_and_what_took_its_place_is_gone() {
    let dev = manual();
    let alice = Alice::at(&dev);
    let app = alice.enrols();
    dev.advance_ms(30_000);
    assert_eq!(alice.removes("totp", "totp", &app.code(alice.now())).0, 200);
    let cancel = token(&dev);
    dev.advance_ms(10_000);
    let thief = alice.in_session("stolen");
    let his = thief.sets_an_app_up();
    let (status, _, body) = thief.confirms(&his.code(thief.now()));
    assert!(status == 200 && body["enrol_only"] == true && body["cooldown_until"].is_u64(), "no first factor: {body}");
    assert!(!thief.may_change_her_payout_account());
    assert_eq!(cancels(&dev, &cancel).0, 200);
    dev.advance_ms(30_000);
    assert_eq!(alice.verifies("totp", &his.code(alice.now())).0, 401);
    assert_eq!(alice.verifies("totp", &app.code(alice.now())).0, 200);
    assert!(alice.may_change_her_payout_account());
}

#[test]
fn a_first_factor_needs_no_cooldown_and_can_be_cancelled() {
    let dev = manual();
    let alice = Alice::at(&dev);
    alice.enrols();
    assert!(alice.may_change_her_payout_account());
    assert_eq!(cancels(&dev, &token(&dev)).0, 200);
    assert_eq!(alice.factors(), json!([]));
    assert!(!alice.may_change_her_payout_account());
}

#[test]
fn what_was_added_proves_everything_once_its_cooldown_is_over_and_is_cancelled_no_more() {
    let dev = manual();
    let alice = Alice::at(&dev);
    alice.enrols();
    let codes = alice.generates();
    let cancel = token(&dev);
    dev.advance_ms(COOLDOWN_MS);
    assert!(is(&cancels(&dev, &cancel), 410, "no_such_change"));
    let later = alice.in_session("s2");
    assert_eq!(later.verifies("recovery", &codes[0]).0, 200);
    assert!(later.may_change_her_payout_account());
}

#[test]
fn what_is_no_token_cancels_nothing() {
    let dev = manual();
    for body in ["", "{}", r#"{"token":7}"#] {
        let answer = dev.ask_with("POST", "/api/mfa/changes/cancel", "", body);
        assert!(is(&answer, 400, "bad_request"), "{answer:?}");
    }
    for token in ["", "x", &"A".repeat(43), &"A".repeat(44)] {
        assert!(is(&cancels(&dev, token), 410, "no_such_change"), "{token}");
    }
    assert!(is_challenged(&Alice::at(&dev).asks("POST", "/api/mfa/recovery/generate", &Value::Null)));
}

#[test]
fn of_twelve_at_four_processes_with_one_link_one_cancels() {
    let servers = servers(&[OLD; 4]);
    let alice = Alice::at(&servers[0]);
    alice.enrols();
    let cancel = token(&servers[0]);
    let statuses = thread::scope(|scope| {
        let (servers, cancel) = (&servers, &cancel);
        let calls: Vec<_> = (0..12).map(|n| scope.spawn(move || cancels(&servers[n % 4], cancel).0)).collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect::<Vec<_>>()
    });
    let of = |status: u16| statuses.iter().filter(|found| **found == status).count();
    assert!(of(200) == 1 && of(410) == 11, "{statuses:?}");
    assert_eq!(alice.factors(), json!([]));
}
