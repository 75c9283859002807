//! Denials, the fields of admitted requests, and what is not counted.

use crate::support::{App, SAMPLE, facts, request};
use serde_json::json;
use sfv::{BareItem, List, ListEntry, Parser};
use std::time::Duration;

/// Members of a list of strings with integer parameters, as a parser of structured fields that is not ours reads them.
fn parsed(field: &str) -> Vec<(String, Vec<(String, i64)>)> {
    let list: List = Parser::new(field).parse().expect(field);
    let member = |entry: ListEntry| {
        let ListEntry::Item(item) = entry else { panic!("an inner list in {field}") };
        let BareItem::String(name) = item.bare_item else { panic!("no string in {field}") };
        let params = item.params.into_iter().map(|(key, value)| match value {
            BareItem::Integer(value) => (key.as_str().to_owned(), i64::from(value)),
            other => panic!("{other:?} in {field}"),
        });
        (name.as_str().to_owned(), params.collect())
    };
    list.into_iter().map(member).collect()
}

fn member(name: &str, params: &[(&str, i64)]) -> (String, Vec<(String, i64)>) {
    (name.to_owned(), params.iter().map(|(key, value)| ((*key).to_owned(), *value)).collect())
}

#[tokio::test]
async fn the_51st_order_is_denied_until_exactly_the_instant_that_was_named() {
    let app = App::new(SAMPLE);
    for i in 1..=50_i64 {
        let answered = app.ask("POST", "/api/orders?x=1", "alice", &[]).await;
        assert_eq!((answered.status, answered.text.as_str()), (201, "decided: true"), "{i}");
        let policy = "\"orders\";q=50;w=3600, \"tenant-orders\";q=1000;w=3600";
        assert_eq!(answered.header("ratelimit-policy"), Some(policy));
        let left =
            [member("orders", &[("r", 50 - i), ("t", 72)]), member("tenant-orders", &[("r", 200 - i), ("t", 4)])];
        assert_eq!(parsed(&answered.list("ratelimit")), left);
        assert_eq!(answered.header("retry-after"), None);
    }
    let denied = app.ask("POST", "/api/orders", "alice", &[]).await;
    assert_eq!(denied.status, 429);
    assert_eq!(denied.header("retry-after"), Some("72"));
    assert_eq!(denied.header("cache-control"), Some("no-store"));
    assert_eq!(denied.header("ratelimit"), Some("\"orders\";r=0;t=72, \"tenant-orders\";r=150;t=4"));
    let policies = [member("orders", &[("q", 50), ("w", 3600)]), member("tenant-orders", &[("q", 1000), ("w", 3600)])];
    assert_eq!(parsed(&denied.list("ratelimit-policy")), policies);
    assert_eq!(denied.header("content-type"), Some("application/problem+json"));
    let message = "Your plan allows 50/h. Try again in 72 s.";
    let expected = json!({
        "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
        "title": "Request cannot be satisfied as assigned quota has been exceeded",
        "status": 429, "detail": message, "violated-policies": ["orders"],
        "error": "rate_limited", "message": message, "limit": "orders", "scope": ["user"],
        "retryAfter": 72, "upgradeUrl": "/billing",
    });
    assert_eq!(denied.json(), expected);
    assert!(denied.headers.keys().all(|name| !name.as_str().starts_with("access-control")));

    assert_eq!(app.ask("POST", "/api/orders", "bob", &[]).await.status, 201, "another user is untouched");
    app.clock.advance(Duration::from_millis(71_999));
    let early = app.ask("POST", "/api/orders", "alice", &[]).await;
    assert_eq!((early.status, early.header("retry-after")), (429, Some("1")));
    app.clock.advance(Duration::from_millis(1));
    assert_eq!(app.ask("POST", "/api/orders", "alice", &[]).await.status, 201);
}

/// agentgateway#926: a preflight costs nothing.
#[tokio::test]
async fn exempt_unmatched_and_preflight_requests_pass_untouched() {
    let app = App::new(SAMPLE);
    let free = [("GET", "/healthz"), ("POST", "/webhooks/payments"), ("GET", "/elsewhere"), ("OPTIONS", "/api/orders")];
    for (method, path) in free {
        for _ in 0..60 {
            let answered = app.ask(method, path, "alice", &[("origin", "https://app.example.com")]).await;
            assert_eq!((answered.status, answered.text.as_str()), (201, "decided: false"), "{method} {path}");
            assert_eq!(answered.headers.len(), 2, "{:?}", answered.headers);
        }
    }
    let counts = app.store.memory.counters().counts();
    assert_eq!((counts.round_trips, counts.decisions), (0, 0));
    let first = app.ask("POST", "/api/orders", "alice", &[]).await;
    assert_eq!(first.header("ratelimit"), Some("\"orders\";r=49;t=72, \"tenant-orders\";r=199;t=4"));
}

const TWO: &str = r#"version = 1
[limits.second]
key = ["user"]
rate = "2/s"
burst = 5
[limits.month]
key = ["user"]
rate = "3/1500ms"
burst = 4
message = "{limit} {burst} {plan}"
[[routes]]
match = "POST /api/orders"
charge = ["second", "month"]
[http]
legacy_headers = ["RateLimit", "X-RateLimit"]
"#;

/// gubernator#87, upstash#61: what is left is never more than the limit.
#[tokio::test]
async fn several_limits_are_all_listed_and_the_longest_wait_wins() {
    let app = App::new(TWO);
    let first = app.ask("POST", "/api/orders", "alice", &[]).await;
    let policy = [member("second", &[("q", 2), ("w", 1)]), member("month", &[("q", 3), ("w", 2)])];
    assert_eq!(parsed(&first.list("ratelimit-policy")), policy);
    // Four are left of a burst of five, but never more than the quota is told.
    let left = [member("second", &[("r", 2), ("t", 1)]), member("month", &[("r", 3), ("t", 1)])];
    assert_eq!(parsed(&first.list("ratelimit")), left);
    for _ in 0..3 {
        assert_eq!(app.ask("POST", "/api/orders", "alice", &[]).await.status, 201);
    }
    let denied = app.ask("POST", "/api/orders", "alice", &[]).await;
    assert_eq!((denied.status, denied.header("retry-after")), (429, Some("1")));
    let body = denied.json();
    assert_eq!((&body["limit"], &body["violated-policies"]), (&json!("month"), &json!(["month"])));
    assert_eq!(body["message"], json!("month 4 "));
    assert_eq!(denied.header("content-language"), None, "a message in one language says nothing of it");
    assert_eq!(parsed(&denied.list("ratelimit")).len(), 2);
}

#[tokio::test]
async fn legacy_fields_are_those_of_the_tightest_limit() {
    let app = App::new(TWO);
    let answered = app.ask("POST", "/api/orders", "alice", &[]).await;
    for prefix in ["", "x-"] {
        let field = |name: &str| answered.header(&format!("{prefix}ratelimit-{name}")).map(str::to_owned);
        let all = [field("limit"), field("remaining"), field("reset")];
        assert_eq!(all, [Some("2".to_owned()), Some("2".to_owned()), Some("1".to_owned())], "{prefix}");
    }
    let without = App::new(SAMPLE).ask("POST", "/api/orders", "alice", &[]).await;
    assert_eq!(without.header("x-ratelimit-limit"), None);
}

#[tokio::test]
async fn a_hidden_limit_leaks_nothing() {
    let hidden = r#"version = 1
[limits.sekret]
key = ["user"]
rate = "7/1777s"
burst = 113
headers = "hidden"
message = "sekret {rate} {burst}"
upgrade_url = "/sekret"
[limits.open]
key = ["user"]
rate = "900/h"
[[routes]]
match = "POST /api/orders"
charge = ["sekret", "open"]
[http]
legacy_headers = ["X-RateLimit"]
"#;
    let app = App::new(hidden);
    let admitted = app.ask("POST", "/api/orders", "alice", &[]).await;
    let denied = app.ask_exhausted("alice", &[]).await;
    assert_eq!(denied.status, 429);
    for answered in [&admitted, &denied] {
        let mut everything = format!("{:?} {}", answered.headers, answered.text);
        everything = everything.replace("\"open\";q=900;w=3600", "");
        for leak in ["sekret", "1777", "7/", "113", "q=7"] {
            assert!(!everything.contains(leak), "{leak} in {everything}");
        }
        assert_eq!(answered.header("ratelimit-policy"), Some("\"open\";q=900;w=3600"));
    }
    let body = denied.json();
    assert_eq!(body["error"], json!("rate_limited"));
    assert_eq!(body["retryAfter"], json!(254), "1777 s / 7, rounded up");
    assert_eq!(denied.header("retry-after"), Some("254"));
    for absent in ["limit", "scope", "upgradeUrl", "violated-policies"] {
        assert_eq!(body.get(absent), None, "{absent}");
    }
    assert_eq!(body["message"], json!("Too many requests. Try again in 4 min 14 s."));
}

#[tokio::test]
async fn plans_have_their_figures_and_an_unknown_one_is_the_default() {
    let app = App::new(SAMPLE);
    let on = async |plan: &str, user: &str| {
        app.send(request("POST", "/api/orders", &facts(&json!({ "sub": user, "plan": plan })), &[])).await
    };
    assert_eq!(
        on("pro", "alice").await.header("ratelimit-policy"),
        Some("\"orders\";q=500;w=3600, \"tenant-orders\";q=1000;w=3600")
    );
    let unknown = on("platinum", "bob").await;
    let policy = "\"orders\";q=50;w=3600, \"tenant-orders\";q=1000;w=3600";
    assert_eq!((unknown.status, unknown.header("ratelimit-policy")), (201, Some(policy)));
    assert_eq!(app.store.memory.counters().counts().unknown_plans, 1);
}

#[tokio::test]
async fn a_cost_that_never_fits_is_403_and_invites_nobody_to_wait() {
    use tollgate::http::{Answer, Decided, Exchange};
    let policy = tollgate::Policy::parse(SAMPLE).expect("valid").policy;
    let wanted = tollgate::Wanted { limit: "orders", key: &[("user", "alice")], plan: None, cost: 51 };
    let charges = policy.charges(&[wanted]).expect("valid");
    let clock = tollgate::testing::ManualClock::default();
    let limiter = tollgate::Limiter::new(tollgate::testing::MemoryStore::new(clock));
    let decision = limiter.take(&charges).await.expect("a decision");
    let route = policy.route("POST", "/api/orders").expect("a route").route;
    let headers = http::HeaderMap::new();
    let exchange = Exchange { policy: &policy, route, headers: &headers };
    let decided = Decided { decision, plan: None };
    let response: http::Response<String> = Answer::refused(&decided, &exchange).into_response();
    assert_eq!((response.status().as_u16(), response.headers().get("retry-after")), (403, None));
    let body: serde_json::Value = serde_json::from_str(response.body()).expect("JSON");
    assert_eq!((&body["error"], body.get("retryAfter")), (&json!("cost_never_fits"), None));
    assert_eq!(body["limit"], json!("orders"));
}

/// The seed of several keys: a tenant of 3 an hour, its user of 10.
const TENANT: &str = r#"version = 1
[limits.user]
key = ["user"]
rate = "10/h"
[limits.tenant]
key = ["tenant"]
rate = "3/h"
message = "Your company has had its {rate}."
[limits.trial]
key = ["tenant"]
rate = "1/h"
mode = "shadow"
[[routes]]
match = "POST /orders"
charge = ["user", "tenant", "trial"]
"#;

#[tokio::test]
async fn a_denial_by_one_of_several_keys_names_its_limit_and_scope_and_the_others_keep_their_tokens() {
    let app = App::new(TENANT);
    let order = || request("POST", "/orders", &facts(&json!({ "sub": "alice", "tenant": "acme" })), &[]);
    let statuses = [
        app.send(order()).await.status,
        app.send(order()).await.status,
        app.send(order()).await.status,
        app.send(order()).await.status,
        app.send(order()).await.status,
    ];
    assert_eq!(statuses, [201, 201, 201, 429, 429]);
    let denied = app.send(order()).await;
    let body = denied.json();
    assert_eq!((&body["limit"], &body["scope"]), (&json!("tenant"), &json!(["tenant"])));
    assert_eq!(
        (&body["violated-policies"], &body["message"]),
        (&json!(["tenant"]), &json!("Your company has had its 3/h."))
    );
    assert_eq!(denied.header("retry-after"), Some("1200"));
    // The limit that only reports is nobody's to see.
    let left = parsed(&denied.list("ratelimit"));
    let user = member("user", &[("r", 7), ("t", 360)]);
    assert!(left.contains(&user) && left.iter().all(|(name, _)| name != "trial"), "{left:?}");
    assert_eq!(app.store.memory.counters().counts().shadow_denied, 5);
}

/// So many in a window are not half of them in half of it.
#[tokio::test]
async fn a_window_under_other_figures_is_told_by_its_own() {
    use tollgate::http::{Answer, Decided, Exchange};
    let policy = |revision: u64, rate: &str| {
        let text = format!(
            "version = 1\nrevision = {revision}\n[limits.l]\nkey = ['user']\nalgorithm = 'fixed-window'\nrate = '{rate}'\n\
             [[routes]]\nmatch = 'GET /l'\ncharge = ['l']\n"
        );
        tollgate::Policy::parse(&text).expect("valid").policy
    };
    let (old, new) = (policy(1, "60/min"), policy(2, "4/2min"));
    let limiter =
        tollgate::Limiter::new(tollgate::testing::MemoryStore::new(tollgate::testing::ManualClock::default()));
    let wanted = tollgate::Wanted { limit: "l", key: &[("user", "alice")], plan: None, cost: 4 };
    let mut last = None;
    for policy in [&new, &old] {
        last = Some(limiter.take(&policy.charges(&[wanted]).expect("valid")).await.expect("a decision"));
    }
    let decided = Decided { decision: last.expect("two"), plan: None };
    let headers = http::HeaderMap::new();
    let route = old.route("GET", "/l").expect("a route").route;
    let exchange = Exchange { policy: &old, route, headers: &headers };
    let response: http::Response<String> = Answer::refused(&decided, &exchange).into_response();
    let told =
        ["ratelimit-policy", "ratelimit", "retry-after"].map(|name| response.headers()[name].to_str().expect("text"));
    assert_eq!(told, ["\"l\";q=4;w=120", "\"l\";r=0;t=120", "120"]);
}
