//! One spelling for one caller, and personal values as keyed hashes.

use crate::{FULL, policy};
use proptest::prelude::*;
use tollgate_policy::{Error, Fold, IfMissing, KeySecrets, LivePolicy, Policy, ResolvedKey, RouteCharge, Wanted};

const K1: &str = "k1=AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";
const K2: &str = "k2=__79_Pv6-fj39vX08_Lx8O_u7ezr6uno5-bl5OPi4eA";

fn by(dimension: &str) -> Policy {
    policy(&format!("{FULL}[limits.personal]\nkey = [\"{dimension}\"]\nrate = \"5/h\"\n"))
}

fn with(policy: Policy, secrets: &str) -> Policy {
    policy.with_secrets(secrets.parse().expect(secrets))
}

/// The keys that a value of a dimension is charged on.
fn charged(policy: &Policy, dimension: &str, value: &str) -> Vec<String> {
    let key = [(dimension, value)];
    let wanted = Wanted { limit: "personal", key: &key, plan: None, cost: 1 };
    policy.charges(&[wanted]).expect(value).iter().map(|charges| charges.key().to_string()).collect()
}

/// The same, where the value is looked up in a request.
fn resolved(policy: &Policy, value: &str) -> Vec<String> {
    let charge = [RouteCharge::new(policy.limit("personal").expect("known").name().clone(), 1)];
    let found = policy.resolve(&charge, |_| Some(value.to_owned()), None, IfMissing::Share).expect(value);
    found.charges.iter().map(|charges| charges.key().to_string()).collect()
}

#[test]
fn spellings_are_one_key_whoever_gives_them() {
    let mails = with(by("account"), K1);
    let admin = charged(&mails, "account", "admin@x.org");
    assert!(admin.len() == 1 && admin[0].starts_with("account:k1.") && !admin[0].contains("admin"), "{admin:?}");
    for spelling in ["ADMIN@x.org", " Admin@X.ORG "] {
        assert_eq!(charged(&mails, "account", spelling), admin);
        assert_eq!(resolved(&mails, spelling), admin);
    }
    assert_ne!(charged(&mails, "account", "admin+1@x.org"), admin);
    let numbers = with(by("mobile"), K1);
    let number = charged(&numbers, "mobile", "+919876543210");
    for spelling in ["9876543210", " 98765 43210 ", "00919876543210"] {
        assert_eq!(charged(&numbers, "mobile", spelling), number);
        assert_eq!(resolved(&numbers, spelling), number);
    }
    let addresses = by("client_ip");
    for spelling in ["192.0.2.1", "192.0.2.1:5123", "::ffff:192.0.2.1", "[::ffff:192.0.2.1]:80"] {
        assert_eq!(charged(&addresses, "client_ip", spelling), ["client_ip:192.0.2.1"]);
        assert_eq!(resolved(&addresses, spelling), ["client_ip:192.0.2.1"]);
    }
    for spelling in ["2001:db8::1", "2001:db8:0:ff::9", "2001:db8::/56", "2001:db8::1/64"] {
        assert_eq!(charged(&addresses, "client_ip", spelling), ["client_ip:2001%3Adb8%3A%3A/56"]);
    }
    for text in ["2001:db8::/32", "here", "192.0.2.0/24"] {
        assert_eq!(charged(&addresses, "client_ip", text).len(), 1, "stays what it is: {text}");
    }
}

#[test]
fn without_secrets_nothing_personal_is_counted_and_the_error_says_what_to_set() {
    for (dimension, requires) in
        [("account", true), ("mobile", true), ("staff", true), ("user", false), ("plan", false)]
    {
        let policy = by(dimension);
        assert_eq!(policy.requires_secrets(), requires, "{dimension}");
        assert_eq!(policy.check_secrets().is_err(), requires);
        assert!(with(policy, K1).check_secrets().is_ok());
    }
    assert!(!policy(FULL).requires_secrets(), "declared, and no limit is counted by it");
    let key = [("account", "a@x.org")];
    let error = by("account").charges(&[Wanted { limit: "personal", key: &key, plan: None, cost: 1 }]);
    let error = error.expect_err("no secrets");
    assert!(matches!(error, Error::NoSecrets { .. }));
    let told = error.to_string();
    assert!(told.contains("`account`") && told.contains("TOLLGATE_KEY_SECRETS") && !told.contains("a@x.org"), "{told}");
    let uncounted = policy(FULL).keys_of_operator(&"account:a@x.org".parse().expect("a key"));
    assert!(
        matches!(uncounted, Err(Error::NoSecrets { .. })),
        "nor is it a key if no limit is counted by it: {uncounted:?}"
    );
}

#[test]
fn a_stored_key_tells_what_it_is_hashed_under_and_how_long_that_is_to_be_kept() {
    let policy = with(by("account"), &format!("{K2},{K1}"));
    let of = |text: &str| {
        let key = text.parse().expect(text);
        policy.secrets_of(&key).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let known = charged(&policy, "account", "a@x.org");
    assert_eq!((of(&known[0]), of(&known[1])), (vec!["k2".to_owned()], vec!["k1".to_owned()]));
    assert_eq!(of("account:gone.AAAAAAAAAAAAAAAAAAAAAA"), ["gone"], "known here or not");
    assert!(of("user:k1.AAAAAAAAAAAAAAAAAAAAAA").is_empty() && of("account:a@x.org").is_empty());
    assert_eq!(policy.plain_personal(&"account:a@x.org,user:u".parse().expect("a key")), Some("account"));
    assert_eq!(policy.plain_personal(&known[0].parse().expect("a key")), None);
    assert!((3600..4200).contains(&policy.personal_horizon_secs()), "of 5/h");
    assert_eq!(by("user").personal_horizon_secs(), 0);
}

#[test]
fn a_new_secret_gives_nobody_a_fresh_bucket() {
    let old = charged(&with(by("account"), K1), "account", "a@x.org");
    let both = with(by("account"), &format!("{K2},{K1}"));
    let keys = charged(&both, "account", "a@x.org");
    assert!(keys.len() == 2 && keys[0].starts_with("account:k2.") && keys[1..] == old, "{keys:?}");
    assert_eq!(resolved(&both, "a@x.org"), keys);
    let new = charged(&with(by("account"), K2), "account", "a@x.org");
    assert_eq!(new, keys[..1], "once the old one is removed, the charges made meanwhile are there");
    let charge = [RouteCharge::new(both.limit("personal").expect("known").name().clone(), 1)];
    let found = both.resolve(&charge, |_| Some("a@x.org".to_owned()), None, IfMissing::LeaveOut).expect("valid");
    let ResolvedKey::Found { key, retiring, .. } = &found.resolved[0].key else { panic!("{found:?}") };
    assert_eq!((key.to_string(), retiring.len()), (keys[0].clone(), 1));
    let others = with(by("user"), &format!("{K2},{K1}"));
    assert_eq!(charged(&others, "user", "alice"), ["user:alice"], "what is not personal is one key as ever");
}

#[test]
fn a_reload_keeps_the_secrets() {
    let live = LivePolicy::new(with(by("account"), K1));
    live.replace(by("mobile").with_revision(9));
    assert!(live.current().check_secrets().is_ok() && live.current().revision() == 9);
    live.replace(with(by("mobile"), K2));
    assert_eq!(live.current().secrets().ids().collect::<Vec<_>>(), ["k2"]);
}

#[test]
fn an_operator_names_a_key_by_any_spelling_or_as_it_was_shown_and_a_client_cannot() {
    let policy = with(by("account"), &format!("{K2},{K1}"));
    let keys = |text: &str| {
        let keys = policy.keys_of_operator(&text.parse().expect(text)).expect(text);
        keys.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let known = charged(&policy, "account", "admin@x.org");
    assert_eq!(keys("account:Admin@X.org"), known);
    assert_eq!(keys(&known[1]), known[1..]);
    assert_eq!(keys("user:alice"), ["user:alice"]);
    assert_eq!(keys("client_ip:2001%3Adb8%3A%3A1"), ["client_ip:2001%3Adb8%3A%3A/56"]);
    // One that does not fold, so that what a client sends is taken as it is.
    let policy = with(by("staff"), K1);
    let known = charged(&policy, "staff", "E123");
    let shown = known[0].strip_prefix("staff:").expect("a key");
    assert!(charged(&policy, "staff", shown) != known && resolved(&policy, shown) != known, "it would choose a bucket");
    assert_eq!(policy.keys_of_operator(&known[0].parse().expect("a key")).expect("shown")[0].to_string(), known[0]);
}

#[test]
fn nothing_left_of_a_value_is_no_value_and_too_long_is_an_error_before_it_is_hashed() {
    let policy = with(by("account"), K1);
    assert_eq!(resolved(&policy, " \u{200b}"), ["?account:missing"]);
    assert_eq!(resolved(&policy, &"x".repeat(3000)), ["?account:missing"]);
    let wanted = |value: &str| {
        let key = [("account", value)];
        policy.charges(&[Wanted { limit: "personal", key: &key, plan: None, cost: 1 }])
    };
    assert!(matches!(wanted("  "), Err(Error::EmptyDimension { .. })));
    assert!(matches!(wanted(&"x".repeat(3000)), Err(Error::Core(tollgate_core::Error::KeyTooLong { bytes: 3000 }))));
}

#[test]
fn the_secrets_are_in_no_debug_text() {
    let policy = with(by("account"), K1);
    let shown = format!("{policy:?}");
    assert!(shown.contains("KeySecrets([\"k1\"])") && !shown.contains("AAECAw") && !shown.contains("[0, 1, 2"));
    assert_ne!(policy, with(by("account"), K2));
    assert_eq!(KeySecrets::development().ids().collect::<Vec<_>>(), ["dev"]);
}

fn folds() -> [Fold; 5] {
    let policy = policy(FULL);
    let phone = policy.identity().dimension("mobile").expect("declared").fold;
    [Fold::None, Fold::Lower, Fold::Email, Fold::Mailbox, phone]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_folds_and_folding_again_changes_nothing(
        value in prop_oneof![any::<String>(), "\\PC{0,30}", "[+0-9 ()٠-٩０-９-]{0,20}", "[a-zA-Z.+İıſßς ]{1,12}@[a-zA-Zü.。-]{1,12}"]
    ) {
        for fold in folds() {
            let once = fold.apply(&value);
            prop_assert_eq!(&fold.apply(&once), &once, "{:?} of {:?}", fold, value);
        }
    }
}

#[test]
fn lines_have_who_buys_where_the_policy_says_so_and_nothing_that_is_secret_or_personal() {
    let saying = |more: &str| policy(&FULL.replace("[identity]\n", &format!("[identity]\n{more}\n")));
    let said = saying("tenant = { from = 'claims.t', log = 'plain' }\napi_key = { from = 'api_key', log = 'plain' }");
    let hashing = with(said.clone(), K1);
    let told =
        |policy: &Policy, name, value, is_secret| policy.logged(name, value, is_secret).map(|told| told.into_owned());
    let reference = |name, value| {
        K1.parse::<KeySecrets>().expect("secrets").reference(&tollgate_core::Key::new([(name, value)]).expect("a key"))
    };
    assert_eq!(told(&hashing, "tenant", "acme", false).as_deref(), Some("acme"));
    assert_eq!(told(&hashing, "user", "alice", false), None, "the policy says nothing of users");
    assert_eq!(told(&hashing, "api_key", "s3cret", true), reference("api_key", "s3cret"));
    let long = "x".repeat(129);
    assert_eq!(told(&hashing, "tenant", &long, false), reference("tenant", long.as_str()));
    assert_eq!(
        (told(&said, "api_key", "s3cret", true), told(&said, "tenant", &long, false)),
        (None, None),
        "nothing to hash under"
    );
    let quiet = with(policy(FULL), K1);
    assert_eq!((told(&quiet, "tenant", "acme", false), told(&quiet, "api_key", "k", false)), (None, None));
    let hashed = with(saying("tenant = { from = 'claims.t', log = 'hashed' }"), K1);
    assert_eq!(told(&hashed, "tenant", "acme", false), reference("tenant", "acme"));
}
