//! What a tenant asks for, what a factor proves by it, and how one set of rules takes the place of another: over all of them.

use proptest::prelude::*;
use std::collections::BTreeSet;
use std::time::Duration;
use tollgate_core::Timestamp;
use tollgate_mfa::tenant::{Held, Proves, Refusal, Refused, Tenant, Wish, judge, missing};
use tollgate_mfa::{distinct, first_factor};
use tollgate_policy::{FactorKind, FactorRules, Policy, TenantRules};

use FactorKind::{Email, Passkey, Recovery, Sms, Totp};

const NOW: u64 = 1_767_225_600;
const DAY: u64 = 86_400;

fn set(kinds: &[FactorKind]) -> BTreeSet<FactorKind> {
    kinds.iter().copied().collect()
}

fn rules(allowed: &[FactorKind], required: &[FactorKind], minimum: u32) -> FactorRules {
    FactorRules { allowed: set(allowed), required: set(required), minimum }
}

fn held(kinds: &[FactorKind], locked: &[FactorKind]) -> Held {
    Held { kinds: set(kinds), locked: set(locked), ..Held::default() }
}

fn methods(kind: FactorKind) -> &'static [&'static str] {
    match kind {
        Totp => &["mfa", "otp"],
        Passkey => &["mfa", "hwk", "user"],
        Sms => &["mfa", "sms"],
        Email => &["mfa", "email"],
        _ => &["mfa"],
    }
}

fn by(rules: &FactorRules, held: &Held, kind: FactorKind) -> Result<Proves, Refused> {
    judge(rules, held, kind, &["pwd"], methods(kind))
}

/// What the file says where it says nothing but a grace period of a day.
fn file() -> TenantRules {
    let text = "version = 1\n[mfa]\nissuer = 'x'\n[mfa.tenants]\ngrace = '1day'";
    Policy::parse(text).unwrap().policy.mfa().unwrap().tenants.clone()
}

fn kinds() -> impl Strategy<Value = BTreeSet<FactorKind>> {
    prop::sample::subsequence(FactorKind::ALL.to_vec(), 0..=5).prop_map(|kinds| kinds.into_iter().collect())
}

/// Rules that can be kept.
fn some_rules() -> impl Strategy<Value = FactorRules> {
    (kinds(), kinds(), 0_u32..3)
        .prop_map(|(allowed, required, minimum)| {
            let allowed = if allowed.iter().any(|kind| kind.is_enrolled()) { allowed } else { set(&[Totp, Recovery]) };
            let required = required.into_iter().filter(|kind| kind.is_enrolled() && allowed.contains(kind)).collect();
            let most = u32::try_from(allowed.iter().filter(|kind| kind.is_enrolled()).count()).unwrap();
            FactorRules { allowed, required, minimum: minimum.min(most) }
        })
        .prop_filter("they can be kept", |rules| rules.check().is_ok())
}

fn some_held() -> impl Strategy<Value = Held> {
    (kinds(), kinds()).prop_map(|(kinds, locked)| {
        let kinds: BTreeSet<_> = kinds.into_iter().filter(|kind| !kind.is_sent()).collect();
        Held { locked: kinds.intersection(&locked).copied().collect(), kinds, ..Held::default() }
    })
}

fn kind() -> impl Strategy<Value = FactorKind> {
    prop::sample::select(FactorKind::ALL.to_vec())
}

fn amr() -> impl Strategy<Value = Vec<&'static str>> {
    let known = vec!["pwd", "pin", "otp", "sms", "tel", "email", "hwk", "swk", "face", "mfa", "user", "xyz"];
    prop::sample::subsequence(known, 0..=4)
}

#[test]
fn a_recovery_code_does_not_skip_a_required_passkey() {
    let all = FactorKind::ALL;
    let required = rules(&all, &[Passkey], 1);
    let lost = held(&[Recovery], &[]);
    assert_eq!(by(&required, &lost, Recovery), Ok(Proves::Enrolment));
    assert_eq!(missing(&required, &lost), set(&[Passkey]));
    // Nor where the account has one, or an app beside it.
    assert_eq!(by(&required, &held(&[Passkey, Totp, Recovery], &[]), Recovery), Ok(Proves::Enrolment));
    assert_eq!(by(&required, &held(&[Passkey, Totp], &[]), Totp), Ok(Proves::Enrolment));
    assert_eq!(by(&required, &held(&[Passkey], &[]), Passkey), Ok(Proves::Everything));
    let both = rules(&all, &[Totp, Passkey], 1);
    assert_eq!(
        by(&both, &held(&[Passkey, Totp], &[]), Totp),
        Ok(Proves::Enrolment),
        "an app beside it makes it no less"
    );
    // Where any will do, it is as good as an app for whoever has all that is asked of him.
    assert_eq!(by(&rules(&all, &[], 1), &held(&[Totp, Recovery], &[]), Recovery), Ok(Proves::Everything));
    assert_eq!(by(&rules(&all, &[], 1), &lost, Recovery), Ok(Proves::Enrolment));
    assert_eq!(by(&rules(&all, &[], 2), &held(&[Totp], &[]), Totp), Ok(Proves::Enrolment));
}

#[test]
fn a_code_that_is_sent_is_a_fallback_where_nothing_stronger_is_left() {
    let all = FactorRules::default();
    assert_eq!(by(&all, &held(&[], &[]), Sms), Ok(Proves::Everything));
    assert_eq!(by(&all, &held(&[Recovery], &[]), Email), Ok(Proves::Everything));
    assert_eq!(by(&all, &held(&[Totp], &[]), Sms), Err(Refused::Stronger(Totp)));
    assert_eq!(by(&all, &held(&[Totp], &[Totp]), Sms), Ok(Proves::Everything), "nobody can try its codes any more");
    assert_eq!(by(&all, &held(&[Totp, Passkey], &[Totp]), Sms), Err(Refused::Stronger(Passkey)));
    assert_eq!(by(&rules(&[Totp, Email], &[], 0), &held(&[], &[]), Sms), Err(Refused::NotAllowed));
    // One that is not allowed is none that could be used instead.
    assert_eq!(by(&rules(&[Passkey, Sms], &[], 0), &held(&[Totp], &[]), Sms), Ok(Proves::Everything));
}

#[test]
fn one_channel_twice_is_one_factor_and_two_are_two() {
    let two = |first: &[&str], second: FactorKind| distinct(first, methods(second));
    for (first, second) in [("email", Email), ("sms", Sms), ("tel", Sms), ("otp", Email), ("otp", Sms), ("otp", Totp)] {
        assert!(!two(&[first], second) && !two(&[first, "mfa", "user"], second), "{first} and {second}");
        assert!(two(&["pwd", first], second), "a password, {first} and {second}");
    }
    for (first, second) in [
        ("email", Sms),
        ("sms", Email),
        ("sms", Totp),
        ("pwd", Sms),
        ("otp", Recovery),
        ("hwk", Totp),
        ("hwk", Passkey),
    ] {
        assert!(two(&[first], second), "{first} and {second}");
    }
    assert!(!two(&[], Totp) && !two(&["mfa", "xyz"], Sms), "nobody knows what was signed in by");
    let assumed = ["pwd".to_owned()];
    assert_eq!(first_factor([], [], &assumed), ["pwd"]);
    assert_eq!(first_factor([], ["email"], &assumed), ["email"], "what is known takes the place of what is assumed");
    assert_eq!(first_factor(["pwd"], ["email"], &assumed), ["pwd", "email"]);
}

#[test]
fn an_admin_who_would_be_shut_out_himself_puts_nothing() {
    let wish = Wish { rules: rules(&[Passkey], &[Passkey], 1), required_from: Some(Timestamp::from_secs(NOW + DAY)) };
    let (tenant, now) = (Tenant::of_file(&file().rules), Timestamp::from_secs(NOW));
    assert_eq!(tenant.put(&wish, &file(), &held(&[Totp], &[]), now), Err(Refusal::LocksOut));
    assert!(tenant.put(&wish, &file(), &held(&[Totp, Passkey], &[]), now).is_ok());
    assert!(tenant.put(&wish, &file(), &held(&[], &[]), now).is_ok(), "he enrols his first like anybody");
}

#[test]
fn codes_that_are_sent_are_forbidden_at_once_and_apps_after_the_grace_period() {
    let (tenant, now, none) = (Tenant::of_file(&file().rules), Timestamp::from_secs(NOW), held(&[], &[]));
    let put = |rules: FactorRules, from: Option<u64>| {
        tenant.put(&Wish { rules, required_from: from.map(Timestamp::from_secs) }, &file(), &none, now)
    };
    let without_sms = put(rules(&[Totp, Passkey, Recovery, Email], &[], 0), None).unwrap();
    assert!(!without_sms.at(now).allowed.contains(&Sms) && without_sms.next.is_none());
    let stricter = rules(&[Passkey], &[Passkey], 1);
    for from in [None, Some(NOW), Some(NOW + DAY - 1), Some(NOW + 400 * DAY)] {
        let refused = put(stricter.clone(), from);
        assert!(matches!(&refused, Err(Refusal::Unfit(unfit)) if unfit.field == "required_from"), "{refused:?}");
    }
    let coming = put(stricter.clone(), Some(NOW + DAY)).unwrap();
    assert_eq!(coming.at(now), &rules(&[Totp, Passkey, Recovery], &[], 0));
    assert_eq!(coming.at(Timestamp::from_secs(NOW + DAY)), &stricter);
    // What was announced can be put again as it is, and no sooner.
    let again = |from: u64, at: u64| {
        let wish = Wish { rules: stricter.clone(), required_from: Some(Timestamp::from_secs(from)) };
        coming.put(&wish, &file(), &none, Timestamp::from_secs(at))
    };
    assert_eq!(again(NOW + DAY, NOW + 5).map(|tenant| tenant.next), Ok(coming.next.clone()));
    assert!(again(NOW + DAY - 1, NOW + 5).is_err());
    assert_eq!(again(NOW + DAY, NOW + DAY).unwrap().next, None, "it is in force");
}

/// Everything that rules ask of people who could do without before.
fn demands(rules: &FactorRules) -> BTreeSet<String> {
    let shut_out = FactorKind::ALL.into_iter().filter(|kind| !kind.is_sent() && !rules.allowed.contains(kind));
    let required = rules.required.iter().map(|kind| format!("require {kind}"));
    let least = (1..=rules.minimum).map(|n| format!("at least {n}"));
    shut_out.map(|kind| format!("no {kind}")).chain(required).chain(least).collect()
}

proptest! {
    #[test]
    fn stricter_rules_and_fewer_factors_never_prove_more(
        looser in some_rules(), other in some_rules(), held in some_held(), kind in kind(), first in amr(),
    ) {
        let both = looser.and(&other);
        let judged = |rules: &FactorRules, held: &Held| judge(rules, held, kind, &first, methods(kind));
        // A stronger factor is asked for only where it is allowed, so a code that is sent may take its place; and what nobody can
        // have any more, since the file has taken it away, is not asked for.
        if both.check().is_ok() && !matches!(judged(&looser, &held), Err(Refused::Stronger(_))) {
            prop_assert!(judged(&both, &held).ok() <= judged(&looser, &held).ok());
        }
        if !kind.is_sent() {
            for one in &held.kinds {
                let mut fewer = held.clone();
                fewer.kinds.remove(one);
                prop_assert!(judged(&looser, &fewer).ok() <= judged(&looser, &held).ok());
            }
        }
    }

    #[test]
    fn everything_is_proved_by_what_is_allowed_strong_enough_and_second_to_another_alone(
        rules in some_rules(), held in some_held(), kind in kind(), first in amr(),
    ) {
        let judged = judge(&rules, &held, kind, &first, methods(kind));
        prop_assert_eq!(judged.is_ok(), judged.is_ok() && rules.allowed.contains(&kind) && distinct(&first, methods(kind)));
        if judged == Ok(Proves::Everything) {
            prop_assert!(rules.required.iter().all(|required| held.kinds.contains(required)));
            prop_assert!(rules.required.iter().all(|required| *required <= kind));
            let had = rules.enrollable().filter(|kind| held.kinds.contains(kind)).count();
            prop_assert!(had >= rules.minimum as usize, "{} of {}", had, rules.minimum);
            prop_assert!(rules.required.is_empty() || kind.is_enrolled(), "a recovery code, or one that was sent");
        }
        if kind.is_sent() && judged.is_ok() {
            prop_assert!(rules.enrollable().all(|kind| !held.kinds.contains(&kind) || held.locked.contains(&kind)));
        }
    }

    #[test]
    fn whoever_enrols_what_he_lacks_lacks_nothing(rules in some_rules(), held in some_held()) {
        let enrolled = missing(&rules, &held).into_iter().fold(held.clone(), Held::with);
        prop_assert!(missing(&rules, &enrolled).is_empty(), "{:?}", enrolled);
        prop_assert!(missing(&rules, &held).iter().all(|kind| rules.allowed.contains(kind) && !held.kinds.contains(kind)));
    }

    #[test]
    fn whoever_has_proved_more_is_never_worse_off_and_order_does_not_matter(
        first in amr(), more in amr(), kind in kind(),
    ) {
        let mut both = [first.clone(), more].concat();
        prop_assert!(distinct(&both, methods(kind)) || !distinct(&first, methods(kind)));
        let forward = distinct(&both, methods(kind));
        both.reverse();
        both.extend(both.clone());
        prop_assert_eq!(distinct(&both, methods(kind)), forward);
    }

    /// Of whatever sequence of rules, put whenever and by whomever: what is in force and shuts somebody out has been put a grace period
    /// before, and is still asked for; what forbids a code that is sent is in force at once; the version counts.
    #[test]
    fn what_shuts_people_out_was_announced_for_the_grace_period(
        steps in prop::collection::vec((0_u64..3 * DAY, some_rules(), prop::option::of(0_u64..4 * DAY)), 1..12),
    ) {
        let (file, none) = (file(), Held::default());
        let mut tenant = Tenant::of_file(&file.rules);
        let mut announced: Vec<(u64, BTreeSet<String>)> = Vec::new();
        let mut now = NOW;
        for (after, rules, from) in steps {
            for at in [now, now + after / 2, now + after] {
                let in_force = tenant.in_force(&file.rules, Timestamp::from_secs(at));
                for demand in demands(&in_force) {
                    let was = announced.iter().any(|(put, demands)| put + DAY <= at && demands.contains(&demand));
                    prop_assert!(was, "{demand} at {at}: {announced:?}");
                }
                prop_assert!(in_force.check().is_ok(), "{in_force:?}");
            }
            now += after;
            let wish = Wish { rules: rules.clone(), required_from: from.map(|from| Timestamp::from_secs(now + from)) };
            let at = Timestamp::from_secs(now);
            if let Ok(next) = tenant.put(&wish, &file, &none, at) {
                prop_assert_eq!(next.version, tenant.version + 1);
                prop_assert_eq!(next.put_last(), &rules);
                for kind in [Sms, Email] {
                    prop_assert_eq!(next.at(at).allowed.contains(&kind), rules.allowed.contains(&kind));
                }
                // Whatever he puts now, he can put again.
                let again = next.put(&wish, &file, &none, at + Duration::from_secs(1));
                prop_assert!(again.is_ok(), "{again:?}");
                announced.push((now, demands(&rules)));
                tenant = next;
            }
        }
    }
}
