//! From names and values to charges: keys, fallbacks, grouping, horizons, and errors that never show a value.

use crate::{FULL, policy};
use tollgate_core::Charges;
use tollgate_policy::{Error, IfMissing, Mode, Policy, ResolvedKey, RouteCharge, StoreFailure, Wanted};

fn wanted<'a>(limit: &'a str, key: &'a [(&'a str, &'a str)]) -> Wanted<'a> {
    Wanted { limit, key, plan: None, cost: 1 }
}

fn keys(charges: &[Charges]) -> Vec<String> {
    charges.iter().map(|charges| charges.key().to_string()).collect()
}

fn refused(policy: &Policy, limit: &str, key: &[(&str, &str)]) -> Error {
    policy.charges(&[wanted(limit, key)]).expect_err("refused")
}

#[test]
fn charges_on_one_key_are_one_item_in_order_of_first_appearance() {
    let policy = policy(FULL);
    let alice = [("user", "alice")];
    let order = [("order", "o1"), ("tenant", "acme")];
    let charges = policy.charges(&[wanted("orders", &alice), wanted("by-order", &order), wanted("burst", &alice)]);
    let charges = charges.expect("valid");
    assert_eq!(keys(&charges), ["user:alice", "order:o1,tenant:acme"]);
    let limits: Vec<_> = charges[0].charges().iter().map(|charge| charge.limit.as_str()).collect();
    assert_eq!(limits, ["orders", "burst"]);
    assert_eq!(charges[0].charges()[0].terms.revision, 7);
}

#[test]
fn the_first_alternative_that_is_given_counts() {
    let policy = policy(FULL);
    let both = [("client_ip", "192.0.2.1"), ("user", "alice")];
    assert_eq!(keys(&policy.charges(&[wanted("units", &both)]).expect("valid")), ["user:alice"]);
    assert_eq!(keys(&policy.charges(&[wanted("units", &both[..1])]).expect("valid")), ["client_ip:192.0.2.1"]);
}

#[test]
fn the_horizon_covers_every_limit_and_plan_that_can_share_the_item() {
    let policy = policy(FULL);
    let horizon = |limit, key: &[(&str, &str)]| policy.charges(&[wanted(limit, key)]).expect("valid")[0].horizon();
    let longest = |limit: &str| {
        let limit = policy.limit(limit).expect("known");
        let plans = limit.plans().map(|(_, figures)| figures.core().horizon_secs());
        plans.chain([limit.figures(None).core().horizon_secs()]).max().expect("figures")
    };
    // `burst` fills in 2 s, but `orders` remembers an hour in the same item.
    assert!(longest("burst") < 370 && longest("orders") > 3600);
    assert_eq!(horizon("burst", &[("user", "alice")]), longest("orders"));
    assert_eq!(horizon("units", &[("user", "alice")]), longest("orders"));
    assert_eq!(horizon("units", &[("client_ip", "192.0.2.1")]), longest("units"));
    assert_eq!(horizon("by-order", &[("tenant", "t"), ("order", "o")]), longest("by-order"));
    // A plan's longer memory counts, too, even if nobody on it is charged now.
    let slow =
        FULL.replace("plans.pro   = { rate = \"500/h\"", "plans.pro   = { rate = \"500/day\", burst = 500 }\n# {");
    let slow = crate::policy(&slow);
    let charges = slow.charges(&[wanted("burst", &[("user", "alice")])]).expect("valid");
    assert!(charges[0].horizon() > 86_400, "{}", charges[0].horizon());
}

#[test]
fn plans_select_figures() {
    let policy = policy(FULL);
    let key = [("user", "alice")];
    let burst = |plan| {
        let wanted = Wanted { plan, ..wanted("orders", &key) };
        policy.charges(&[wanted]).map(|charges| charges[0].charges()[0].terms.figures.most())
    };
    assert_eq!(burst(None).expect("default"), 50);
    assert_eq!(burst(Some("team")).expect("known"), 50);
    assert_eq!(burst(Some("pro")).expect("known"), 100);
    assert!(matches!(burst(Some("gold")), Err(Error::UnknownPlan { .. })));
}

/// zae-limiter: a name that no limit has is an error.
#[test]
fn wrong_names_and_keys_are_errors_that_say_what_is_wanted() {
    let policy = policy(FULL);
    let error = refused(&policy, "order", &[("user", "alice")]);
    assert!(matches!(&error, Error::UnknownLimit { .. }) && error.to_string().contains("`orders`"), "{error}");
    let error = refused(&policy, "by-order", &[("tenant", "acme")]);
    assert_eq!(error.to_string(), "limit \"by-order\" needs a value for `order`; its key is: tenant, order");
    let error = refused(&policy, "units", &[]);
    assert!(error.to_string().contains("`user ?? client_ip`"), "{error}");
    let error = refused(&policy, "orders", &[("user", "alice"), ("tenant", "acme")]);
    assert_eq!(error.to_string(), "limit \"orders\" is not counted by \"tenant\"; its key is: user");
    assert!(matches!(refused(&policy, "orders", &[("user", "")]), Error::EmptyDimension { .. }));
    assert!(matches!(refused(&policy, "units", &[("user", ""), ("client_ip", "a")]), Error::EmptyDimension { .. }));
    let twice = refused(&policy, "orders", &[("user", "a"), ("user", "b")]);
    assert!(matches!(twice, Error::Core(tollgate_core::Error::DuplicateDimension(_))));
    assert!(matches!(policy.charges(&[]), Err(Error::Core(tollgate_core::Error::NoCharges))));
    let key = [("user", "alice")];
    let twice = policy.charges(&[wanted("orders", &key), wanted("orders", &key)]);
    assert!(matches!(twice, Err(Error::Core(tollgate_core::Error::DuplicateCharge(_)))));
    let dear = policy.charges(&[Wanted { cost: u64::MAX, ..wanted("orders", &key) }]);
    assert!(matches!(dear, Err(Error::Core(tollgate_core::Error::Cost(_)))));
}

#[test]
fn any_value_up_to_2_kb_works_and_no_error_shows_a_value() {
    let policy = policy(FULL);
    for value in ["bob+x@example.com", "Ünïcödé", &"x".repeat(300)] {
        policy.charges(&[wanted("orders", &[("user", value)])]).expect(value);
    }
    let secret = "sekret".repeat(500);
    for key in
        [vec![("user", secret.as_str())], vec![("user", "sekret"), ("tenant", "sekret")], vec![("tenant", "sekret")]]
    {
        let error = refused(&policy, "orders", &key);
        assert!(!format!("{error} {error:?}").contains("sekret"), "{error:?}");
    }
}

fn on(policy: &Policy, limit: &str) -> RouteCharge {
    RouteCharge::new(policy.limit(limit).expect("known").name().clone(), 1)
}

/// A tenant's limits: one in an item of its own, one that only reports, one in the shared item.
const SEVERAL: &str = r#"version = 1
[limits.user]
key = ["user"]
rate = "10/h"
on_store_failure = "closed"
[limits.tenant]
key = ["tenant"]
rate = "3/h"
[limits.month]
key = ["tenant"]
rate = "1000/day"
own_item = true
atomic = true
[limits.trial]
key = ["tenant"]
rate = "1/min"
mode = "shadow"
[[routes]]
match = "POST /a"
charge = ["user", "tenant", "month", "trial"]
[[routes]]
match = "POST /b"
charge = ["user", "tenant"]
on_store_failure = "open"
atomic = true
"#;

fn resolved(policy: &Policy, path: &str) -> Vec<Charges> {
    let route = policy.route("POST", path).expect("a route").route;
    let lookup = |dimension: &str| Some(format!("my-{dimension}"));
    policy.resolve(route.charges(), lookup, None, IfMissing::Share).expect("valid").on(route).charges
}

/// CVE-2026-27695: one entity's many limits need not pile on one partition.
#[test]
fn a_limit_with_an_item_of_its_own_is_charged_apart() {
    let policy = policy(SEVERAL);
    let charges = resolved(&policy, "/a");
    let items: Vec<_> = charges.iter().map(|c| (c.key().to_string(), c.item().own.as_ref())).collect();
    let month = policy.limit("month").expect("known").name();
    assert_eq!(
        items,
        [("user:my-user".into(), None), ("tenant:my-tenant".into(), None), ("tenant:my-tenant".into(), Some(month))]
    );
    let modes: Vec<_> = charges[1].charges().iter().map(|c| (c.limit.as_str(), c.mode)).collect();
    assert_eq!(modes, [("tenant", Mode::Enforce), ("trial", Mode::Shadow)]);
    // Neither item has to remember the other's limits.
    assert!(charges[1].horizon() < 7200 && charges[2].horizon() > 80_000);
    let all: Vec<_> = policy.items(charges[1].key()).iter().map(|item| item.own.clone()).collect();
    assert_eq!(all, [None, Some(month.clone())]);
}

/// CVE-2026-27695: nor need one limit.
#[test]
fn a_limit_with_shards_is_charged_apart_and_kept_in_all_of_them() {
    let text = SEVERAL.replace("own_item = true\natomic = true", "shards = 4").replace("1000/day", "1001/day");
    let policy = policy(&text);
    let charges = resolved(&policy, "/a");
    let shards: Vec<_> = charges.iter().map(|c| (c.shards().map(u16::from), c.item().shard())).collect();
    assert_eq!(shards, [(None, None), (None, None), (Some(4), None)]);
    let [on_shard, other] = [0, 3].map(|index| charges[2].on_shard(index));
    assert_eq!((on_shard.item().shard(), other.item().shard()), (Some(0), Some(3)));
    let limit = policy.limit("month").expect("known");
    let key = charges[2].key().clone();
    assert_eq!(limit.items(key.clone()), [0, 1, 2, 3].map(|index| charges[2].item().on_shard(index)));
    let all: Vec<_> = policy.items(&key).iter().map(|item| (item.own.clone(), item.shard())).collect();
    let month = |index| (Some(limit.name().clone()), Some(index));
    assert_eq!(all, [(None, None), month(0), month(1), month(2), month(3)]);
    // The first has one more than a quarter of the burst, at a quarter of the rate: it takes longer to fill.
    assert!(charges[2].horizon() > 86_400, "{}", charges[2].horizon());
}

#[test]
fn what_is_switched_off_is_so_for_that_limit() {
    let text = SEVERAL.replace("rate = \"3/h\"", "rate = \"3/h\"\ncoalesce = false\ndeny_cache = false");
    let charges = resolved(&policy(&text), "/b");
    let switches: Vec<_> = charges.iter().flat_map(|c| c.charges()).map(|c| (c.coalesce, c.deny_cache)).collect();
    assert_eq!(switches, [(true, true), (false, false)]);
}

#[test]
fn the_route_decides_on_store_failure_then_the_strictest_limit_of_the_item() {
    let policy = policy(SEVERAL);
    let rules: Vec<_> = resolved(&policy, "/a").iter().map(Charges::on_store_failure).collect();
    assert_eq!(rules, [StoreFailure::Closed, StoreFailure::Local, StoreFailure::Local]);
    let rules: Vec<_> = resolved(&policy, "/b").iter().map(Charges::on_store_failure).collect();
    assert_eq!(rules, [StoreFailure::Open, StoreFailure::Open]);
}

#[test]
fn of_an_items_limits_the_strictest_counts_and_one_that_says_nothing_is_local() {
    let rule = |of_one: &str, of_other: &str| {
        let limits = [of_one, of_other]
            .map(|said| if said.is_empty() { String::new() } else { format!("on_store_failure = '{said}'") });
        let [one, other] = limits;
        let policy = policy(&format!(
            "version = 1\ninstances = 20\n[limits.a]\nkey = ['user']\nrate = '1/s'\n{one}\n[limits.b]\nkey = ['user']\nrate = '1/s'\n{other}\n"
        ));
        let wanted = |limit| Wanted { limit, key: &[("user", "alice")], plan: None, cost: 1 };
        let charges = policy.charges(&[wanted("a"), wanted("b")]).expect("valid");
        assert_eq!((charges.len(), charges[0].instances().get()), (1, 20));
        charges[0].on_store_failure()
    };
    assert_eq!(rule("", ""), StoreFailure::Local);
    assert_eq!(rule("open", "open"), StoreFailure::Open);
    assert_eq!(rule("open", ""), StoreFailure::Local);
    assert_eq!(rule("local", "open"), StoreFailure::Local);
    assert_eq!(rule("", "closed"), StoreFailure::Closed);
}

#[test]
fn a_limit_or_a_route_wants_a_transaction() {
    let policy = policy(SEVERAL);
    assert!(resolved(&policy, "/a")[2].is_atomic() && !resolved(&policy, "/a")[0].is_atomic());
    assert!(resolved(&policy, "/b").iter().all(Charges::is_atomic));
}

#[test]
fn a_route_is_resolved_with_the_dimensions_that_gave_the_values() {
    let policy = policy(FULL);
    let lookup = |dimension: &str| match dimension {
        "client_ip" => Some("192.0.2.1".to_owned()),
        "tenant" => Some("acme".to_owned()),
        "user" => Some(String::new()),
        _ => None,
    };
    let charges = [on(&policy, "units"), on(&policy, "orders"), on(&policy, "by-order")];
    let resolution = policy.resolve(&charges, lookup, None, IfMissing::LeaveOut).expect("valid");
    assert_eq!(keys(&resolution.charges), ["client_ip:192.0.2.1"]);
    assert!(
        matches!(&resolution.resolved[0].key, ResolvedKey::Found { dimensions, .. } if dimensions == &["client_ip"])
    );
    let missing: Vec<_> = resolution.missing().map(|(limit, part)| format!("{limit} {part}")).collect();
    assert_eq!(missing, ["orders user", "by-order order"]);
    assert!(matches!(
        policy.resolve(&charges, lookup, Some("gold"), IfMissing::LeaveOut),
        Err(Error::UnknownPlan { .. })
    ));

    let found = policy.route("POST", "/api/orders").expect("a route");
    let resolution = policy
        .resolve(found.route.charges(), |d| Some(format!("{d}-1")), Some("pro"), IfMissing::LeaveOut)
        .expect("valid");
    assert_eq!(keys(&resolution.charges), ["user:user-1"]);
    let costs: Vec<_> = resolution.charges[0].charges().iter().map(|charge| charge.cost).collect();
    assert_eq!(costs, [1, 2]);
    assert_eq!(resolution.missing().count(), 0);
}

#[test]
fn calls_without_a_value_share_one_bucket_a_limit() {
    let text = format!("{FULL}[limits.monthly]\nkey = [\"order\", \"tenant\"]\nrate = \"100/30day\"\n");
    let policy = policy(&text);
    let share = |limits: &[&str], lookup: &dyn Fn(&str) -> Option<String>| {
        let charges: Vec<_> = limits.iter().map(|limit| on(&policy, limit)).collect();
        policy.resolve(&charges, lookup, None, IfMissing::Share).expect("valid")
    };
    let nothing = share(&["units", "orders"], &|_| None);
    assert_eq!(keys(&nothing.charges), ["?user ?? client_ip:missing", "?user:missing"]);
    assert_eq!(nothing.missing().count(), 2);

    // The same entries in another order are one item, whichever of them is missing, and it lives as long as both need.
    let half = share(&["by-order", "monthly"], &|d| (d == "tenant").then(|| "acme".to_owned()));
    assert_eq!(keys(&half.charges), ["?order:missing,?tenant:missing"]);
    let alone = share(&["by-order"], &|_| None);
    assert_eq!(alone.charges[0].horizon(), half.charges[0].horizon());
    assert!(alone.charges[0].horizon() > 30 * 86_400);
}

#[test]
fn a_value_that_no_key_can_carry_counts_as_missing_where_requests_are_served() {
    let policy = policy(FULL);
    let charges = [on(&policy, "orders")];
    let long = |_: &str| Some("x".repeat(65_536));
    assert!(policy.resolve(&charges, long, None, IfMissing::LeaveOut).is_err());
    let resolution = policy.resolve(&charges, long, None, IfMissing::Share).expect("valid");
    assert_eq!(keys(&resolution.charges), ["?user:missing"]);
    assert_eq!(resolution.missing().count(), 1);
}

#[test]
fn a_decision_on_more_than_25_items_is_an_error_however_it_is_asked_for() {
    let policy = policy(FULL);
    let names: Vec<_> = (0..26).map(|i| format!("u{i}")).collect();
    let values: Vec<_> = names.iter().map(|name| [("user", name.as_str())]).collect();
    let all: Vec<_> = values.iter().map(|key| wanted("orders", key)).collect();
    assert_eq!(policy.charges(&all[..Charges::MOST_ITEMS]).expect("fits").len(), 25);
    let error = policy.charges(&all).expect_err("too many");
    assert!(matches!(error, Error::Core(tollgate_core::Error::TooManyItems)), "{error}");
    assert!(error.to_string().contains(&Charges::MOST_ITEMS.to_string()), "{error}");
}

#[test]
fn a_route_that_can_be_too_many_items_under_four_secrets_is_refused_and_so_is_one_of_too_many_limits_of_an_item() {
    let text = |limits: usize, key: &str, more: &str| {
        let mut text = "version = 1\n[identity]\nstaff = { from = \"claims.staff\", personal = true }\n".to_owned();
        let names: Vec<_> = (0..limits).map(|i| format!("\"l{i}\"")).collect();
        for name in &names {
            text += &format!("[limits.{name}]\nkey = [\"{key}\"]\nrate = \"5/h\"\n{more}\n");
        }
        text + &format!("[[routes]]\nmatch = \"GET /x\"\ncharge = [{}]\n", names.join(", "))
    };
    let own = "own_item = true";
    for (limits, key, more, says) in [
        (25, "user", own, None),
        (26, "user", own, Some("can be 26 items, and a decision has 25 at most")),
        (6, "staff", own, None),
        (7, "staff", own, Some("can be 28 items")),
        (16, "staff", "", None),
        (17, "user", "", Some("17 limits of this route share an item")),
    ] {
        let text = text(limits, key, more);
        let parsed = Policy::parse(&text);
        let told = parsed.as_ref().err().map(ToString::to_string);
        let is_right = told.as_ref().map_or(says.is_none(), |told| says.is_some_and(|says| told.contains(says)));
        assert!(is_right, "{limits} by {key} {more}: {told:?}");
        // What is accepted can be charged under as many secrets as there can be.
        let Ok(parsed) = parsed else { continue };
        let secrets: Vec<_> = ["A", "B", "C", "D"].map(|c| format!("{c}={}", c.repeat(44))).into();
        let policy = parsed.policy.with_secrets(secrets.join(",").parse().expect("secrets"));
        let charges: Vec<_> = policy.routes()[0].charges().to_vec();
        let resolved = policy.resolve(&charges, |_| Some("v".to_owned()), None, IfMissing::Share).expect("fits");
        assert!(resolved.charges.len() <= Charges::MOST_ITEMS);
    }
}
