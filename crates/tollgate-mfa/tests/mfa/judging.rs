//! One authentication, one requirement.

use proptest::prelude::*;
use std::time::Duration;
use tollgate_core::Timestamp;
use tollgate_mfa::{Authentication, Evidence, LEEWAY, Session, Shortcoming, Subject, Verified};
use tollgate_policy::StepUp;

const NOW: u64 = 1_767_225_599;

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_secs(seconds)
}

fn authentication(seconds: u64, acr: Option<&str>, amr: &[&str]) -> Authentication {
    Authentication {
        at: at(seconds),
        acr: acr.map(str::to_owned),
        amr: amr.iter().map(|method| (*method).to_owned()).collect(),
    }
}

fn required(acr: &[&str], amr: &[&str]) -> StepUp {
    let mut required = StepUp::within(Duration::from_secs(300));
    required.acr = acr.iter().map(|acr| (*acr).to_owned()).collect();
    required.amr = amr.iter().map(|method| (*method).to_owned()).collect();
    required
}

#[test]
fn it_is_fresh_up_to_its_age_and_not_a_nanosecond_longer() {
    let meets = |at: u64, now: Timestamp| authentication(at, None, &[]).meets(&required(&[], &[]), now);
    assert_eq!(meets(NOW - 300, at(NOW)), Ok(()));
    assert_eq!(meets(NOW - 300, Timestamp::from_nanos(at(NOW).as_nanos() + 1)), Err(Shortcoming::TooOld));
    assert_eq!(meets(NOW + LEEWAY.as_secs(), at(NOW)), Ok(()));
    assert_eq!(meets(NOW + LEEWAY.as_secs() + 1, at(NOW)), Err(Shortcoming::FromFuture));
}

#[test]
fn one_of_the_classes_and_one_of_the_methods_are_enough_and_both_are_needed() {
    let meets = |acr, amr: &[&str]| {
        authentication(NOW, acr, amr).meets(&required(&["mfa", "phr"], &["hwk", "otp"]), at(NOW)).is_ok()
    };
    assert!(meets(Some("phr"), &["pwd", "otp"]));
    assert!(!meets(Some("phr"), &["pwd"]) && !meets(Some("pwd"), &["otp"]) && !meets(None, &["otp"]));
    // A class is compared as a whole.
    assert!(!meets(Some("mfa phr"), &["otp"]) && !meets(Some("MFA"), &["otp"]) && !meets(Some(""), &["otp"]));
}

#[test]
fn a_record_of_another_epoch_and_a_token_from_before_the_revocation_are_revoked() {
    let verified = |epoch| Verified { authentication: authentication(NOW, Some("mfa"), &[]), epoch };
    let session = |epoch| Some(Session { verified: Some(verified(epoch)), ..Session::default() });
    let subject = Subject { epoch: 3, revoked: Some(at(NOW - 60)), spared: None };
    let judge = |token, session| Evidence { token, subject, session }.judge(&required(&["mfa"], &[]), at(NOW));
    assert!(judge(None, session(3)).is_ok());
    assert_eq!(judge(None, session(2)), Err(Shortcoming::Revoked));
    assert_eq!(judge(None, session(4)), Err(Shortcoming::Revoked));
    let token = |seconds| Some(authentication(seconds, Some("mfa"), &[]));
    assert_eq!(judge(token(NOW - 60 + LEEWAY.as_secs()), None), Err(Shortcoming::Revoked));
    assert!(judge(token(NOW - 60 + LEEWAY.as_secs() + 1), None).is_ok());
}

#[test]
fn an_auth_time_that_moves_within_a_sign_in_counts_as_the_first() {
    let judge = |signed_in: u64, token: u64| {
        let session = Some(Session { signed_in: Some(at(signed_in)), ..Session::default() });
        let evidence = Evidence { token: Some(authentication(token, None, &[])), session, ..Evidence::default() };
        evidence.judge(&required(&[], &[]), at(NOW))
    };
    assert_eq!(judge(NOW - 301, NOW), Err(Shortcoming::TooOld));
    assert!(judge(NOW - 300, NOW).is_ok());
    // One from the future is none, whatever is known of its session.
    assert_eq!(judge(NOW, NOW + LEEWAY.as_secs() + 1), Err(Shortcoming::FromFuture));
    // An older one is no fresher for that.
    assert_eq!(judge(NOW, NOW - 301), Err(Shortcoming::TooOld));
}

#[test]
fn what_a_session_was_opened_by_is_no_second_factor_in_it_whichever_came_first() {
    let judge = |codes: &[&str], token: &[&str], record: &[&str]| {
        let verified = Some(Verified { authentication: authentication(NOW, Some("mfa"), record), epoch: 0 });
        let codes = codes.iter().map(|code| (*code).to_owned()).collect();
        let session = Some(Session { verified, codes, ..Session::default() });
        let token = Some(authentication(NOW - 1, None, token));
        Evidence { token, session, ..Evidence::default() }.judge(&required(&["mfa"], &[]), at(NOW))
    };
    assert_eq!(judge(&["email"], &[], &["mfa", "email"]), Err(Shortcoming::Insufficient));
    assert_eq!(judge(&["email"], &[], &["mfa", "sms"]), Ok(()));
    assert_eq!(judge(&["email"], &[], &["mfa", "otp"]), Ok(()));
    assert_eq!(judge(&["email"], &["pwd"], &["mfa", "email"]), Ok(()), "a password and a code");
    assert_eq!(judge(&["email", "sms"], &[], &["mfa", "sms"]), Ok(()), "two channels");
    // Without a code nothing is known but what its verification knew.
    assert_eq!(judge(&[], &[], &["mfa", "email"]), Ok(()));
}

proptest! {
    #[test]
    fn older_fewer_and_other_are_never_better(
        age in 0_u64..700, older in 0_u64..700, max_age in 1_u64..600, acr in prop::option::of("[ab]"),
        amr in prop::collection::vec("[xyz]", 0..3), classes in prop::collection::vec("[ab]", 0..2),
        methods in prop::collection::vec("[xyz]", 0..2),
    ) {
        let mut required = StepUp::within(Duration::from_secs(max_age));
        (required.acr, required.amr) = (classes, methods);
        let one = Authentication { at: at(NOW - age), acr, amr };
        let fewer = Authentication { amr: one.amr.iter().skip(1).cloned().collect(), ..one.clone() };
        let aged = Authentication { at: at(NOW - age - older), ..one.clone() };
        let met = one.meets(&required, at(NOW));
        prop_assert!(met.is_ok() || fewer.meets(&required, at(NOW)).is_err());
        prop_assert!(met.is_ok() || aged.meets(&required, at(NOW)).is_err());
        prop_assert_eq!(met.is_ok() && age > max_age, false);
    }
}
