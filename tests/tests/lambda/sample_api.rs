//! The sample API behind the layer, as Lambda runs it: who is charged, what a refusal says, what is never counted.

use crate::events::{Sender, load_balancer, unsigned};
use crate::harness::{Function, Response, SAMPLE_API, TaskRoot, unique};
use serde_json::{Value, json};

async fn api() -> Function {
    Function::start(SAMPLE_API, TaskRoot::with_sample_policy()).await
}

/// A request whose caller the gateway's authorizer vouches for.
pub fn by(sender: Sender, method: &str, path: &str, claims: &Value) -> Value {
    let mut event = unsigned(sender, method, path, "");
    event["requestContext"]["authorizer"] = match sender {
        Sender::RestApi => json!({ "claims": claims }),
        Sender::HttpApi | Sender::FunctionUrl => json!({ "jwt": { "claims": claims, "scopes": null } }),
    };
    event
}

fn order(sender: Sender, user: &str) -> Value {
    by(sender, "POST", "/api/orders", &json!({ "sub": user, "plan": "free" }))
}

fn is_the_denial(denied: &Response) {
    assert_eq!(denied.status, 429, "{denied:?}");
    let wait: u64 = denied.header("retry-after").unwrap().parse().unwrap();
    // The system's clock runs on meanwhile.
    assert!((1..=72).contains(&wait), "{denied:?}");
    let policy = "\"orders\";q=50;w=3600, \"tenant-orders\";q=1000;w=3600";
    assert_eq!(denied.header("ratelimit-policy"), Some(policy));
    let left = denied.header("ratelimit").unwrap();
    assert!(left.starts_with(&format!("\"orders\";r=0;t={wait}, \"tenant-orders\";r=15")), "{left}");
    assert_eq!(denied.header("content-type"), Some("application/problem+json"));
    assert_eq!(denied.header("cache-control"), Some("no-store"));
    let body = &denied.body;
    assert_eq!(
        (&body["error"], &body["limit"], &body["retryAfter"]),
        (&"rate_limited".into(), &"orders".into(), &wait.into())
    );
    assert_eq!(body["scope"], json!(["user"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_orders_pass_and_the_fifty_first_is_a_429_that_names_the_limit() {
    let mut api = api().await;
    for sender in [Sender::RestApi, Sender::HttpApi, Sender::FunctionUrl] {
        let user = unique("alice");
        for left in (0..50).rev() {
            let response = api.respond(&order(sender, &user)).await;
            assert_eq!(response.status, 201, "{sender:?}, {left} left: {response:?}");
            let fields = response.header("ratelimit").unwrap_or_default();
            assert!(fields.starts_with(&format!("\"orders\";r={left};")), "{fields}");
        }
        is_the_denial(&api.respond(&order(sender, &user)).await);
        assert_eq!(api.respond(&order(sender, &unique("bob"))).await.status, 201, "another user is untouched");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn exempt_paths_and_preflights_never_count() {
    let mut api = api().await;
    let caller = json!({ "sub": unique("alice") });
    for _ in 0..120 {
        for (method, path) in [("GET", "/healthz"), ("POST", "/webhooks/payments")] {
            let response = api.respond(&by(Sender::HttpApi, method, path, &caller)).await;
            assert_eq!((response.status, response.header("ratelimit")), (200, None), "{path}");
        }
    }
    for _ in 0..60 {
        assert_eq!(api.respond(&by(Sender::HttpApi, "OPTIONS", "/api/orders", &caller)).await.status, 204);
    }
    let first = api.respond(&by(Sender::HttpApi, "POST", "/api/orders", &caller)).await;
    assert!(first.header("ratelimit").unwrap().contains("r=49"), "{first:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_costs_five_and_an_export_fifty_of_one_bucket() {
    let mut api = api().await;
    let caller = json!({ "sub": unique("alice") });
    let mut left = Vec::new();
    for path in ["/api/search", "/api/export"] {
        let response = api.respond(&by(Sender::RestApi, "GET", path, &caller)).await;
        assert_eq!(response.status, 200, "{response:?}");
        let fields = response.header("ratelimit").unwrap().to_owned();
        left.push(fields.split("r=").nth(1).unwrap().split(';').next().unwrap().parse::<u64>().unwrap());
    }
    // 600 a minute come in meanwhile.
    assert!(left[0] == 95 && (45..95).contains(&left[1]), "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_request_of_the_api_is_answered_all_the_same() {
    let mut api = api().await;
    let caller = json!({ "sub": unique("alice") });
    assert_eq!(api.respond(&by(Sender::HttpApi, "GET", "/nowhere", &caller)).await.status, 404);
    let refused = api.respond(&by(Sender::HttpApi, "DELETE", "/api/orders", &caller)).await;
    assert_eq!((refused.status, refused.header("allow")), (405, Some("POST")));
    let balanced = api.respond(&load_balancer("POST", "/api/orders", "{}")).await;
    assert_eq!(balanced.status, 201, "no caller at all: the shared bucket, and no 500: {balanced:?}");
    for malformed in [json!({}), json!([]), json!("x"), json!({ "requestContext": 7 }), Value::Null] {
        let error = api.invoke(&malformed).await;
        assert!(error.is_err(), "{malformed}: {error:?}");
        assert_eq!(
            api.respond(&order(Sender::HttpApi, &unique("alice"))).await.status,
            201,
            "the next one is answered"
        );
    }
}

/// One client through CloudFront to each kind of gateway, which claims another address with every call.
#[tokio::test(flavor = "multi_thread")]
async fn behind_cloudfront_a_client_is_counted_by_its_own_address_on_every_gateway() {
    for sender in [Some(Sender::RestApi), Some(Sender::HttpApi), Some(Sender::FunctionUrl), None] {
        let header = if sender == Some(Sender::FunctionUrl) { ", header = \"CloudFront-Viewer-Address\"" } else { "" };
        let limit = unique("searches");
        let policy = format!(
            "version = 1\n[identity]\nclient_ip = {{ trusted_proxies = [\"130.176.0.0/16\"]{header} }}\n\
             [limits.{limit}]\nkey = [\"client_ip\"]\nrate = \"2/day\"\n\
             [[routes]]\nmatch = \"GET /api/search\"\ncharge = [\"{limit}\"]\n"
        );
        let mut api = Function::start(SAMPLE_API, TaskRoot::with_policy(&policy)).await;
        let mut statuses = Vec::new();
        for (n, client) in ["203.0.113.9", "203.0.113.9", "203.0.113.9", "203.0.113.10"].into_iter().enumerate() {
            let list = match sender {
                Some(Sender::FunctionUrl) => format!("6.6.6.{n}"),
                _ => format!("6.6.6.{n}, {client}, 130.176.1.1"),
            };
            let mut event = match sender {
                Some(sender) => unsigned(sender, "GET", "/api/search", ""),
                None => load_balancer("GET", "/api/search", ""),
            };
            event["headers"]["x-forwarded-for"] = list.into();
            event["headers"]["cloudfront-viewer-address"] = format!("{client}:46532").into();
            match sender {
                Some(Sender::RestApi) => event["requestContext"]["identity"]["sourceIp"] = "130.176.1.1".into(),
                Some(_) => event["requestContext"]["http"]["sourceIp"] = "130.176.1.1".into(),
                None => {}
            }
            if sender == Some(Sender::FunctionUrl) {
                event["requestContext"]["domainName"] = "abc.lambda-url.us-east-1.on.aws".into();
            }
            statuses.push(api.respond(&event).await.status);
        }
        assert_eq!(statuses, [200, 200, 429, 200], "{sender:?}");
    }
}

/// What a load balancer passes on of a client's own making: `lambda_http` would panic at it.
#[tokio::test(flavor = "multi_thread")]
async fn a_host_scheme_or_query_that_makes_no_address_is_no_error() {
    let mut api = api().await;
    for (name, value) in [
        ("host", "a b"),
        ("host", "[::1"),
        ("host", "x:99999999"),
        ("host", "<>"),
        ("x-forwarded-proto", "ht tp"),
        ("x-forwarded-proto", ""),
    ] {
        let mut balanced = load_balancer("GET", "/healthz", "");
        balanced["headers"][name] = value.into();
        assert_eq!(api.respond(&balanced).await.status, 200, "{name}: {value}");
        let mut event = unsigned(Sender::FunctionUrl, "GET", "/healthz", "");
        event["headers"][name] = value.into();
        assert_eq!(api.respond(&event).await.status, 200, "{name}: {value}");
    }
    for query in ["a b", "a=\0", "q=|^{}[]", "#", "\"<>"] {
        let mut event = unsigned(Sender::HttpApi, "GET", "/healthz", "");
        event["rawQueryString"] = query.into();
        assert_eq!(api.respond(&event).await.status, 200, "{query}");
    }
}
