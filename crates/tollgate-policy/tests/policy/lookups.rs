//! What a policy says about a request, a limit and a plan.

use crate::{FULL, SAMPLE, policy};
use std::time::Duration;
use tollgate_core::OnChange;
use tollgate_policy::{Error, LegacyHeaders, Messages, Policy, Source, Trust};

fn routed(policy: &Policy, method: &str, path: &str) -> Option<String> {
    policy.route(method, path).map(|found| found.route.pattern().to_string())
}

#[test]
fn the_most_specific_route_wins_whatever_the_order() {
    let patterns =
        ["* *", "* /api/*", "GET /api/{x}", "* /api/orders", "GET /api/orders", "GET,PUT /api/{x}/y", "* /api/a/{z}"];
    let expected = [
        ("GET", "/api/orders", "GET /api/orders"),
        ("POST", "/api/orders?x=1", "* /api/orders"),
        ("GET", "/api/other", "GET /api/{x}"),
        ("PUT", "/api/other", "* /api/*"),
        ("GET", "/api/", "* /api/*"),
        ("GET", "/api", "* *"),
        ("GET", "/api/b/y", "GET,PUT /api/{x}/y"),
        ("GET", "/api/a/y", "* /api/a/{z}"),
        ("GET", "/API/orders", "* *"),
        ("GET", "/api/%6frders", "GET /api/{x}"),
        ("OPTIONS", "*", "* *"),
        ("GET", "http://host/api/orders", "* *"),
    ];
    let text = |order: &mut dyn Iterator<Item = &&str>| {
        let head = "version = 1\n[limits.a]\nkey = [\"user\"]\nrate = \"50/h\"\n".to_owned();
        order.fold(head, |text, pattern| format!("{text}[[routes]]\nmatch = \"{pattern}\"\ncharge = [\"a\"]\n"))
    };
    let (forth, back) = (policy(&text(&mut patterns.iter())), policy(&text(&mut patterns.iter().rev())));
    for (method, path, pattern) in expected {
        assert_eq!(routed(&forth, method, path).as_deref(), Some(pattern), "{method} {path}");
        assert_eq!(routed(&back, method, path).as_deref(), Some(pattern), "{method} {path}");
    }
}

#[test]
fn parameters_come_with_the_route_and_exemptions_win() {
    let policy = policy(&FULL.replace("GET /healthz", "GET /api/orders/health"));
    let found = policy.route("HEAD", "/api/orders/o-1?full").expect("a route");
    assert_eq!((found.param("id"), found.param("other")), (Some("o-1"), None));
    assert_eq!(routed(&policy, "GET", "/api/orders/health"), None);
    assert_eq!(routed(&policy, "HEAD", "/api/orders/health").as_deref(), Some("GET,HEAD /api/orders/{id}"));
    let exemption = policy.exemption("GET", "/api/orders/health?verbose").expect("exempt");
    assert_eq!(exemption.why(), "a rate-limited health check lies");
    assert!(policy.exemption("GET", "/api/orders/health/").is_none());
    assert_eq!(routed(&policy, "GET", "/elsewhere"), None);
}

#[test]
fn limits_have_figures_by_plan_and_terms_only_for_plans_that_matter() {
    let policy = policy(FULL);
    let orders = policy.limit("orders").expect("known");
    let (base, pro) = (orders.figures(None), orders.figures(Some("pro")));
    assert_eq!((base.rate(), base.n(), base.period(), base.core().most()), ("50/h", 50, Duration::from_secs(3600), 50));
    assert_eq!((pro.rate(), pro.n(), pro.core().most()), ("500/h", 500, 100));
    assert_eq!(orders.terms(Some("pro"), 7).plan.as_ref(), "pro");
    assert_eq!(orders.terms(Some("team"), 7), orders.terms(Some("free"), 7));
    assert_eq!(orders.terms(Some("team"), 7).plan.as_ref(), "");
    assert_eq!(orders.terms(None, 7).to_string(), "7/1/72000000000/50/");
    assert_eq!((orders.on_change(), orders.upgrade_url()), (OnChange::Keep, Some("/billing")));
    let units = policy.limit("units").expect("known");
    assert_eq!(units.on_change(), OnChange::Proportional);
    assert_eq!(units.key()[0].alternatives().collect::<Vec<_>>(), ["user", "client_ip"]);
    let messages = units.messages().expect("a message");
    assert_eq!(messages.pick(&["vi"]).map(|(language, _)| language), Some(Messages::ANY_LANGUAGE));
    let names: Vec<_> = policy.limits().iter().map(|limit| limit.name().to_string()).collect();
    assert_eq!(names, ["orders", "burst", "units", "by-order"], "in file order");
}

#[test]
fn dimensions_have_sources_and_the_usual_ones_are_built_in() {
    let policy = policy(FULL);
    let source = |dimension| policy.identity().source(dimension).cloned();
    assert_eq!(source("user"), Some(Source::Claim("sub".to_owned())));
    assert_eq!(source("api_key"), Some(Source::ApiKey));
    assert_eq!(source("account"), Some(Source::Body("username".to_owned())));
    assert_eq!(source("order"), Some(Source::Path("id".to_owned())));
    assert_eq!(source("region"), Some(Source::Header("x-region".to_owned())));
    assert_eq!(source("nobody"), None);
    let client_ip = policy.identity().client_ip();
    assert_eq!(client_ip.ipv6_prefix, 56);
    assert!(matches!(client_ip.trust, Trust::Proxies(blocks) if blocks.len() == 2));
    let built_in = crate::policy("version = 1").identity().client_ip();
    assert_eq!((built_in.trust, built_in.ipv6_prefix), (Trust::Hops(0), 64));
}

#[test]
fn the_default_plan_stands_in_and_an_unknown_one_is_an_error() {
    let policy = policy(FULL);
    let plans = policy.plans();
    assert_eq!(plans.resolve(None).expect("default"), Some("free"));
    assert_eq!(plans.resolve(Some("team")).expect("known"), Some("team"));
    let error = plans.resolve(Some("pros")).expect_err("unknown");
    assert!(
        matches!(&error, Error::UnknownPlan { .. }) && error.to_string().contains("did you mean `pro`?"),
        "{error}"
    );
    assert!(plans.resolve(Some("platinum")).expect_err("unknown").to_string().contains("`free`, `pro`, `team`"));
    assert!(plans.accepts("team") && !plans.accepts("pros"));
    let without = crate::policy("version = 1");
    assert!(without.plans().accepts("any"));
    assert_eq!(without.plans().resolve(Some("any")).expect("ignored"), None);
}

#[test]
fn the_sample_has_the_routes_that_it_promises() {
    let policy = policy(SAMPLE);
    let charged = |method, path| {
        let found = policy.route(method, path).expect(path);
        let charges = found.route.charges().iter().map(|charge| format!("{} {}", charge.limit, charge.cost));
        charges.collect::<Vec<_>>().join(", ")
    };
    assert_eq!(charged("POST", "/api/orders"), "orders 1, tenant-orders 1");
    assert_eq!(charged("GET", "/api/partner/items"), "partner 1");
    assert_eq!(charged("GET", "/api/search?q=x"), "units 5");
    assert_eq!(charged("GET", "/api/export"), "units 50");
    let logins = "login-account 1, login-pair 1, login-address 1, login-known 1, login-everyone 1";
    assert_eq!(charged("POST", "/api/auth/login"), logins);
    assert!(policy.exemption("POST", "/webhooks/payments").is_some());
    assert!(policy.exemption("GET", "/healthz").is_some());
    assert!(policy.exemption("GET", "/webhooks/payments").is_none());
    let revised = policy.clone().with_revision(9);
    assert_eq!((policy.revision(), revised.revision()), (1, 9));
}

#[test]
fn answers_are_spoken_as_the_policy_says() {
    let policy = policy(FULL);
    let route = |method, path| policy.route(method, path).expect("a route").route;
    assert_eq!(policy.http().legacy_headers(), [LegacyHeaders::XRateLimit]);
    let cors = policy.cors(route("POST", "/api/orders")).expect("on unless the route opts out");
    assert!(cors.allows("https://app.example.com") && cors.allows("http://localhost:3000") && cors.credentials());
    for other in ["https://app.example.com.evil.org", "HTTPS://app.example.com", "https://app.example.com/", "null", ""]
    {
        assert!(!cors.allows(other), "{other}");
    }
    assert_eq!(policy.cors(route("HEAD", "/api/orders/1")), None);
    assert!(policy.limit("burst").expect("known").is_hidden());
    assert!(!policy.limit("orders").expect("known").is_hidden());
    let any = crate::policy("version = 1\n[http]\ncors = { origins = [\"*\"] }\n");
    assert!(any.http().cors().is_some_and(|cors| cors.allows_any() && cors.allows("null") && !cors.credentials()));
}
