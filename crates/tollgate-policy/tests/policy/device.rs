//! Devices that are known by a token, and the dimension that everyone has.

use crate::policy;
use proptest::prelude::*;
use std::time::Duration;
use tollgate_core::Timestamp;
use tollgate_policy::{Device, DeviceCookie, Error, Identity, IfMissing, Policy, RouteCharge, Source, Wanted};

const K1: &str = "k1=AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";
const K2: &str = "k2=__79_Pv6-fj39vX08_Lx8O_u7ezr6uno5-bl5OPi4eA";

const LOGINS: &str = "version = 1\n[identity]\naccount = { body = 'username', fold = 'email' }\n\
    device = { cookie = 'd', bound_to = 'account', max_age = '2h' }\n\
    other = { cookie = 'o', bound_to = 'account' }\nnumber = { cookie = 'n', bound_to = 'user' }\n\
    [limits.login]\nkey = ['device ?? account']\nrate = '5/h'\n[limits.all]\nkey = ['device ?? everyone']\nrate = '9/h'\n\
    [[routes]]\nmatch = 'POST /login'\ncharge = ['login', 'all']\n";

const NOW: Timestamp = Timestamp::from_secs(1_767_225_600);

fn under(secrets: &str) -> Policy {
    policy(LOGINS).with_secrets(secrets.parse().expect(secrets))
}

fn minted(policy: &Policy, account: &str) -> DeviceCookie {
    policy.device_cookie("device", account, NOW).expect("a cookie")
}

fn later(secs: u64) -> Timestamp {
    NOW + Duration::from_secs(secs)
}

#[test]
fn a_token_is_good_for_its_account_in_any_spelling_and_for_no_other() {
    let policy = under(K1);
    let cookie = minted(&policy, "Admin@x.org");
    let known = |account: &str| policy.known_device("device", account, [cookie.token()], NOW);
    let device = known("admin@x.org").expect("known");
    assert!(device.id.len() == 22 && known(" ADMIN@X.org").as_ref() == Some(&device), "{device:?}");
    for stranger in ["eve@x.org", "admin@x.org.eve", "", " "] {
        assert_eq!(known(stranger), None, "{stranger:?}");
    }
    for dimension in ["other", "number", "account", "nobody"] {
        assert_eq!(policy.known_device(dimension, "admin@x.org", [cookie.token()], NOW), None, "{dimension}");
    }
    assert_ne!(minted(&policy, "admin@x.org").token(), cookie.token(), "another device");
}

#[test]
fn a_token_tells_neither_account_nor_anything_that_is_the_same_for_it_twice() {
    let policy = under(K1);
    let tokens = [minted(&policy, "admin@x.org"), minted(&policy, "admin@x.org")];
    let [one, two] = tokens.each_ref().map(|cookie| cookie.token().split_once('.').expect("two parts"));
    assert_eq!((one.0, two.0), ("k1", "k1"));
    // Eight bytes of the instant are 10 characters and some bits.
    assert_eq!(one.1[..10], two.1[..10]);
    assert!(one.1[11..].bytes().zip(two.1[11..].bytes()).filter(|(a, b)| a == b).count() < 20);
    let shown = format!("{:?}", tokens[0]);
    assert!(!shown.contains(one.1) && shown.contains("name: \"d\""), "{shown}");
}

#[test]
fn a_token_is_good_for_as_long_as_the_policy_says_and_not_much_before_it_was_issued() {
    let policy = under(K1);
    let cookie = minted(&policy, "a@x.org");
    let known = |at| policy.known_device("device", "a@x.org", [cookie.token()], at).is_some();
    assert!(known(NOW) && known(later(7199)) && !known(later(7200)) && !known(later(1 << 32)));
    let issued = |at| policy.known_device("device", "a@x.org", [cookie.token()], at).map(|device| device.issued);
    assert_eq!((issued(NOW), issued(later(7199))), (Some(NOW), Some(NOW)), "it tells when, and goes on to");
    let before = |secs: u64| Timestamp::from_secs(NOW.as_secs() - secs);
    assert!(known(before(3600)) && !known(before(3601)) && !known(Timestamp::default()));
}

#[test]
fn retired_secrets_verify_until_they_are_removed_and_the_active_one_signs() {
    let old = minted(&under(K1), "a@x.org");
    let both = under(&format!("{K2},{K1}"));
    let known = |policy: &Policy, cookie: &DeviceCookie| {
        policy.known_device("device", "a@x.org", [cookie.token()], NOW).is_some()
    };
    assert!(known(&both, &old) && minted(&both, "a@x.org").token().starts_with("k2."));
    assert!(known(&under(K2), &minted(&both, "a@x.org")) && !known(&under(K2), &old));
    // Another secret of the same name is another secret.
    assert!(!known(&under(&K2.replace("k2", "k1")), &old));
    let renamed = old.token().replace("k1.", "k2.");
    assert_eq!(both.known_device("device", "a@x.org", [renamed.as_str()], NOW), None);
}

#[test]
fn the_first_genuine_token_of_several_counts() {
    let policy = under(K1);
    let (mine, eves) = (minted(&policy, "a@x.org"), minted(&policy, "eve@x.org"));
    let alone = policy.known_device("device", "a@x.org", [mine.token()], NOW);
    let planted = ["", ".", "k1.", "x", eves.token(), mine.token(), eves.token()];
    assert!(alone.is_some());
    assert_eq!(policy.known_device("device", "a@x.org", planted, NOW), alone);
}

#[test]
fn what_stands_for_a_value_in_keys_is_no_token_and_no_token_is_that() {
    let policy = under(K1);
    let wanted = Wanted { limit: "login", key: &[("account", "a@x.org")], plan: None, cost: 1 };
    let key = policy.charges(&[wanted]).expect("valid")[0].key().to_string();
    let pseudonym = key.strip_prefix("account:").expect("an account");
    assert_eq!(policy.known_device("device", "a@x.org", [pseudonym], NOW), None);
}

#[test]
fn the_cookie_is_kept_from_scripts_plain_http_and_other_sites_for_as_long_as_the_token_is_good() {
    let policy = under(K1);
    let cookie = minted(&policy, "a@x.org");
    let expected = format!("d={}; Max-Age=7200; Path=/; Secure; HttpOnly; SameSite=Strict", cookie.token());
    assert_eq!(cookie.set_cookie(), expected);
    let usual = policy.device_cookie("other", "a@x.org", NOW).expect("a cookie").set_cookie();
    assert!(usual.starts_with("o=k1.") && usual.contains("Max-Age=7776000;"), "{usual}");
}

#[test]
fn a_device_needs_a_name_a_value_to_be_bound_to_and_a_secret() {
    let policy = under(K1);
    let refused = |policy: &Policy, dimension: &str, bound: &str| {
        policy.device_cookie(dimension, bound, NOW).expect_err("refused").to_string()
    };
    assert!(refused(&policy, "devise", "a@x.org").contains("did you mean `device`?"));
    assert!(refused(&policy, "account", "a@x.org").contains("no device of the policy"));
    assert!(refused(&policy, "device", "\u{200b}").contains("`account`"));
    assert!(matches!(policy.device_cookie("device", &"x".repeat(3000), NOW), Err(Error::Core(_))));
    let without = crate::policy(LOGINS);
    for error in [refused(&without, "device", "a@x.org"), without.check_secrets().expect_err("none").to_string()] {
        assert!(error.contains("`device`") && error.contains("TOLLGATE_KEY_SECRETS"), "{error}");
    }
    assert_eq!(without.known_device("device", "a@x.org", [minted(&policy, "a@x.org").token()], NOW), None);
}

#[test]
fn a_policy_that_counts_by_devices_needs_secrets_as_one_does_that_counts_by_personal_values() {
    let by = |key: &str| {
        policy(&format!(
            "version = 1\nidentity.d = {{ cookie = 'd', bound_to = 'user' }}\n[limits.a]\nkey = ['{key}']\nrate = '5/h'\n"
        ))
    };
    assert!(by("d").requires_secrets() && by("d ?? everyone").requires_secrets() && !by("user").requires_secrets());
    let charge = [RouteCharge::new(by("d").limits()[0].name().clone(), 1)];
    let resolve = |policy: Policy| policy.resolve(&charge, |_| None, None, IfMissing::Share);
    assert!(matches!(resolve(by("d ?? user")), Err(Error::NoSecrets { .. })), "not a fresh bucket for everyone");
    assert!(resolve(by("user")).is_ok());
    assert_eq!(by("d").personal_horizon_secs(), 0, "a device is nobody's name");
}

#[test]
fn a_device_is_a_key_like_any_other_to_callers_of_json_and_operators() {
    let policy = under(&format!("{K2},{K1}"));
    let keys = |key: &[(&str, &str)]| {
        let charges = policy.charges(&[Wanted { limit: "login", key, plan: None, cost: 1 }]).expect("valid");
        charges.iter().map(|charges| charges.key().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(keys(&[("device", "AbC-_"), ("account", "a@x.org")]), ["device:AbC-_"], "in plain, and under no secret");
    assert_eq!(keys(&[("account", "a@x.org")]).len(), 2);
    let key = "device:AbC-_".parse().expect("a key");
    assert!(policy.counts_by(&key).is_ok() && !policy.hashes_some_of(&key) && policy.plain_personal(&key).is_none());
    assert_eq!(policy.keys_of_operator(&key).expect("a key"), [key]);
}

#[test]
fn everyone_is_one_whoever_asks_and_whatever_is_given() {
    let policy = policy("version = 1\n[limits.all]\nkey = ['user ?? everyone']\nrate = '5/h'\n");
    let limit = policy.limit("all").expect("known").name().clone();
    let key = |lookup: &dyn Fn(&str) -> Option<String>| {
        policy.resolve(&[RouteCharge::new(limit.clone(), 1)], lookup, None, IfMissing::Share).expect("valid").charges[0]
            .key()
            .to_string()
    };
    assert_eq!(key(&|_| None), "everyone:all");
    assert_eq!(key(&|name| (name == "everyone").then(|| "me".to_owned())), "everyone:all");
    assert_eq!(key(&|name| (name == "user").then(|| "alice".to_owned())), "user:alice");
    for given in ["all", "me", " ", "x".repeat(2000).as_str()] {
        let wanted = Wanted { limit: "all", key: &[("everyone", given)], plan: None, cost: 1 };
        assert_eq!(policy.charges(&[wanted]).expect("valid")[0].key().to_string(), "everyone:all");
        let key = tollgate_core::Key::new([("everyone", given)]).expect("a key");
        assert_eq!(policy.keys_of_operator(&key).expect("a key")[0].to_string(), "everyone:all");
    }
    assert_eq!(policy.identity().source("everyone"), Some(&Source::Everyone));
    assert_eq!(policy.identity().canonical("everyone", "x"), Identity::EVERYONE);
}

/// The sample's logins, under as many secrets as there can be.
#[test]
fn a_login_is_on_few_enough_items_under_every_secret() {
    let secrets: Vec<_> = (0..4)
        .map(|i| format!("{},", K1.replace("k1", &format!("k{i}")).replacen("AAEC", &format!("A{i}EC"), 1)))
        .collect();
    let policy = policy(crate::SAMPLE).with_secrets(secrets.concat().trim_end_matches(',').parse().expect("four"));
    let route = policy.route("POST", "/api/auth/login").expect("a route").route;
    let items = |device: Option<&str>| {
        let lookup = |name: &str| match name {
            "account" => Some("a@x.org".to_owned()),
            "client_ip" => Some("192.0.2.1".to_owned()),
            "device" => device.map(str::to_owned),
            _ => None,
        };
        policy.resolve(route.charges(), lookup, None, IfMissing::Share).expect("valid").charges.len()
    };
    assert_eq!((items(None), items(Some("d"))), (4 + 4 + 1 + 1, 1 + 4 + 4));
}

#[test]
fn what_a_device_depends_on_is_what_it_is_bound_to() {
    let policy = under(K1);
    assert_eq!(policy.identity().origin("device"), Some(&Source::Body("username".to_owned())));
    assert_eq!(policy.identity().origin("account"), policy.identity().source("account"));
    assert_eq!(policy.identity().origin("nobody"), None);
    let Some(Source::Device(device)) = policy.identity().source("other") else { panic!("a device") };
    assert_eq!(
        (device.cookie.as_str(), device.bound_to.as_str(), device.max_age),
        ("o", "account", Device::DEFAULT_AGE)
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_other_text_than_the_token_is_good(at in any::<prop::sample::Index>(), with in any::<char>(), cut in any::<bool>()) {
        let policy = under(K1);
        let cookie = minted(&policy, "a@x.org");
        let token = cookie.token();
        let at = at.index(token.len());
        let rest = &token[at + 1..];
        let other = if cut { token[..at].to_owned() } else { format!("{}{with}{rest}", &token[..at]) };
        let known = policy.known_device("device", "a@x.org", [other.as_str()], NOW);
        prop_assert_eq!(known.is_some(), other == token, "{}", other);
        let longer = format!("{token}{with}");
        prop_assert!(policy.known_device("device", "a@x.org", [longer.as_str()], NOW).is_none());
    }

    #[test]
    fn any_text_is_a_stranger(text in any::<String>(), account in any::<String>()) {
        prop_assert_eq!(under(K1).known_device("device", &account, [text.as_str()], NOW), None);
    }
}
