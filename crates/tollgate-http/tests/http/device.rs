//! Known devices: whoever has a genuine token is counted by his device, on every gateway; all others as strangers.

use crate::caller::{charged, v1, v2};
use crate::support::App;
use axum::body::Body;
use http::Request;
use serde_json::{Value, json};
use tollgate::http::Facts;
use tollgate::{KeySecrets, Policy, Timestamp};

const IDENTITY: &str = "device = { cookie = \"d\", bound_to = \"user\" }\nuser = \"query.region\"";
const KEY: &str = "device ?? everyone";
const STRANGER: &str = "everyone:all";

/// A token of `user`, by the secrets that `charged` has, at the time that its clock shows.
fn token(user: &str) -> String {
    let text = format!("version = 1\nlimits = {{}}\n[identity]\n{IDENTITY}\n");
    let policy = Policy::parse(&text).expect(&text).policy.with_secrets(KeySecrets::development());
    policy.device_cookie("device", user, Timestamp::default()).expect("a cookie").token().to_owned()
}

/// The events of a request with these cookies: of an HTTP API, of a REST API by either of its fields, of a load balancer by
/// either of its own.
fn events(cookies: &[String]) -> Vec<Value> {
    let joined: Value = cookies.join("; ").into();
    let mut http = v2(Value::Null, "$default", "192.0.2.1");
    (http["rawQueryString"], http["cookies"]) = ("region=eu".into(), cookies.into());
    let mut rest = v1(Value::Null, "prod");
    (rest["headers"]["Cookie"], rest["multiValueHeaders"]["Cookie"]) = (joined.clone(), json!([joined]));
    let mut single = v1(Value::Null, "prod");
    single["headers"]["cookie"] = joined.clone();
    single.as_object_mut().expect("an object").remove("multiValueHeaders");
    let balanced = |name: &str, headers: Value| {
        json!({
            "requestContext": { "elb": { "targetGroupArn": "arn:x" } }, "httpMethod": "GET", "path": "/api/items/7",
            "queryStringParameters": { "region": "eu" }, "multiValueQueryStringParameters": { "region": ["eu"] },
            name: headers, "body": "", "isBase64Encoded": false
        })
    };
    let one = balanced("headers", json!({ "host": "lb.example", "cookie": joined }));
    let lists = balanced("multiValueHeaders", json!({ "host": ["lb.example"], "cookie": cookies }));
    vec![http, rest, single, one, lists]
}

#[tokio::test]
async fn a_genuine_token_is_found_among_cookies_on_every_gateway() {
    let (mine, eves) = (token("eu"), token("us"));
    let planted = ["a=b".to_owned(), "d=".to_owned(), format!("d={eves}"), format!("d={mine}"), "d=dev.x".to_owned()];
    for event in events(&planted) {
        let counted = charged(IDENTITY, KEY, &event).await;
        assert!(counted.strip_prefix("device:").is_some_and(|id| id.len() == 22), "{counted}: {event}");
    }
}

#[tokio::test]
async fn whoever_has_no_genuine_token_is_a_stranger_on_every_gateway() {
    let later = token("eu").replacen("AAAAAAAAAA", "AAAAAAAAAB", 1);
    for cookies in [
        vec![],
        vec!["d=".to_owned()],
        vec![format!("d={}", token("us"))],
        vec![format!("d={later}")],
        vec![format!("D={}", token("eu"))],
        vec![format!("d={}x", token("eu"))],
    ] {
        for event in events(&cookies) {
            assert_eq!(charged(IDENTITY, KEY, &event).await, STRANGER, "{event}");
        }
    }
}

const LOGINS: &str = "version = 1\n[identity]\naccount = { body = 'username', fold = 'email' }\n\
    device = { cookie = 'd', bound_to = 'account' }\n[limits.login]\nkey = ['device ?? everyone']\nrate = '2/day'\n\
    [[routes]]\nmatch = 'POST /login'\ncharge = ['login']\n";

fn login(account: &str, cookies: &[String]) -> Request<Body> {
    let mut request = Request::post("/login").extension(Facts::default());
    for line in cookies {
        request = request.header("cookie", line);
    }
    request.body(Body::from(json!({ "username": account }).to_string())).expect("a request")
}

/// No limit of the route is counted by the account, and its body is read for the device all the same.
#[tokio::test]
async fn what_a_device_is_bound_to_is_read_from_the_body_and_its_lines_of_cookies_are_one_list() {
    let app = App::under(LOGINS, KeySecrets::development());
    let now = Timestamp::from_secs(1_767_225_600);
    let cookie = app.policy.device_cookie("device", "Admin@x.org", now).expect("a cookie");
    let mine = ["a=b; c=d".to_owned(), format!("x=y; d={}", cookie.token())];
    for status in [201, 201, 429] {
        assert_eq!(app.send(login("admin@x.org", &[])).await.status, status, "strangers share one bucket");
    }
    assert_eq!(app.send(login("ADMIN@x.org", &mine)).await.status, 201, "a lockout caused by others");
    assert_eq!(app.send(login("eve@x.org", &mine)).await.status, 429, "of another account it is no device");
    assert_eq!(app.send(login("", &mine)).await.status, 429, "nor without one");
    app.clock.set(now + std::time::Duration::from_secs(90 * 86_400 - 1));
    assert_eq!(app.send(login("admin@x.org", &mine)).await.status, 201);
    app.clock.advance(std::time::Duration::from_secs(1));
    assert_eq!(app.send(login("admin@x.org", &mine)).await.status, 201, "the strangers' bucket is full again");
    let keys = app.store.keys();
    assert_eq!(
        keys.iter().filter(|key| key.starts_with("device:")).count(),
        2,
        "by the store's clock it is expired: {keys:?}"
    );
}

#[tokio::test]
async fn without_secrets_a_device_is_no_stranger_but_a_limiter_that_cannot_decide() {
    let app = App::new(LOGINS);
    assert_eq!(app.send(login("admin@x.org", &[])).await.status, 503);
    assert!(app.store.keys().is_empty());
}
