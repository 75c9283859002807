//! The authorizer's executable, asked as REST and HTTP APIs ask it; and the sample API behind it.

use crate::emf;
use crate::harness::{AUTHORIZER, Function, SAMPLE_API, SECRETS, TABLE, TaskRoot, endpoint, store, unique};
use crate::init::failure_of;
use crate::issuer::{AUDIENCE, Issuer, Signer};
use crate::printed::sum;
use serde_json::{Value, json};
use std::time::Duration;
use tollgate::{Clock, ItemKey, Key, SystemClock};
use tollgate_core::{LimitName, Override, TokenBucket};
use tollgate_dynamodb::admin::{self, Order};

async fn start(issuer: &Issuer) -> Function {
    start_with(issuer, TaskRoot::with_sample_policy()).await
}

async fn start_with(issuer: &Issuer, root: TaskRoot) -> Function {
    let variables =
        [("TOLLGATE_ISSUER", issuer.url()), ("TOLLGATE_AUDIENCE", AUDIENCE), ("TOLLGATE_ALGORITHMS", "ES256")];
    Function::start_with(AUTHORIZER, root, &variables).await
}

fn now() -> u64 {
    SystemClock.now().as_secs()
}

/// What a REST API asks (`REQUEST` authorizer, payload 1.0).
fn rest(method: &str, path: &str, token: &str) -> Value {
    json!({
        "type": "REQUEST",
        "methodArn": format!("arn:aws:execute-api:eu-central-1:123456789012:abc/live/{method}{path}"),
        "resource": "/api/{proxy+}",
        "path": path,
        "httpMethod": method,
        "headers": { "Authorization": format!("Bearer {token}") },
        "multiValueHeaders": { "Authorization": [format!("Bearer {token}")] },
        "queryStringParameters": null,
        "multiValueQueryStringParameters": null,
        "requestContext": { "requestId": "r", "stage": "live", "identity": { "sourceIp": "203.0.113.7" } },
    })
}

/// What the function behind is sent of a request that was let in.
fn behind(mut event: Value, context: &Value) -> Value {
    let (method, path) = (event["httpMethod"].clone(), event["path"].clone());
    let of_function = json!({
        "authorizer": context, "httpMethod": method, "path": path, "resourcePath": "/api/{proxy+}",
    });
    event["requestContext"].as_object_mut().unwrap().extend(of_function.as_object().unwrap().clone());
    (event["body"], event["isBase64Encoded"]) = (Value::Null, false.into());
    event
}

fn effect(answer: &Value) -> &str {
    answer["policyDocument"]["Statement"][0]["Effect"].as_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_rest_api_it_authenticates_and_charges_and_a_denial_says_when_to_come_back() {
    let issuer = Issuer::start();
    let mut authorizer = start(&issuer).await;
    let user = unique("user");
    let claims = json!({ "sub": user, "auth_time": now(), "amr": ["pwd", "otp"], "address": { "country": "RO" }, "tollgateCharged": "x" });
    let token = issuer.token(now(), &claims);
    let event = rest("GET", "/api/search", &token);
    // 100 units at once, 5 for each search.
    for _ in 0..20 {
        let answer = authorizer.invoke(&event).await.unwrap();
        assert_eq!((effect(&answer), &answer["principalId"]), ("Allow", &json!(user)));
        let context = &answer["context"];
        assert_eq!((&context["tollgateCharged"], &context["amr"]), (&json!("true"), &json!("pwd otp")));
        assert_eq!(context["auth_time"], claims["auth_time"].to_string());
        assert!(context["address"].is_null());
    }
    // Some may have come back meanwhile.
    let mut denied = Value::Null;
    for _ in 0..200 {
        denied = authorizer.invoke(&event).await.unwrap();
        if effect(&denied) == "Deny" {
            break;
        }
    }
    assert_eq!((effect(&denied), &denied["context"]["retryAfter"]), ("Deny", &json!("1")));
    // What it does not charge is left to the layer, and no claim says otherwise.
    for (method, path) in [("PUT", "/api/payout-account"), ("GET", "/nowhere"), ("POST", "/api/auth/login")] {
        let answer = authorizer.invoke(&rest(method, path, &token)).await.unwrap();
        assert_eq!((effect(&answer), &answer["context"]["tollgateCharged"]), ("Allow", &Value::Null), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_not_signed_in_is_unauthorized_on_a_rest_api_and_kept_out_of_an_http_api() {
    let issuer = Issuer::start();
    let mut authorizer = start(&issuer).await;
    let claims = json!({ "sub": "alice" });
    let forged = Signer::new("first").sign(&issuer.claims(now(), &claims));
    let expired = issuer.token(now() - 3700, &claims);
    for token in ["", "x", &forged, &expired] {
        let refused = authorizer.invoke(&rest("GET", "/api/search", token)).await.unwrap_err();
        assert_eq!(refused.1, "Unauthorized", "{token}");
    }
    let http = |token: &str| {
        json!({
            "version": "2.0", "type": "REQUEST", "routeArn": "arn:aws:execute-api:eu-central-1:123456789012:abc/$default/GET/api/search",
            "headers": { "authorization": format!("Bearer {token}") },
        })
    };
    assert_eq!(authorizer.invoke(&http(&forged)).await.unwrap(), json!({ "isAuthorized": false }));
    let token = issuer.token(now(), &claims);
    let answer = authorizer.invoke(&http(&token)).await.unwrap();
    assert_eq!((&answer["isAuthorized"], &answer["context"]["sub"]), (&json!(true), &json!("alice")));
    // Two of them: the function behind could take the other one.
    let mut twice = rest("GET", "/api/search", &token);
    twice["multiValueHeaders"]["Authorization"] = json!([format!("Bearer {token}"), format!("Bearer {forged}")]);
    assert_eq!(authorizer.invoke(&twice).await.unwrap_err().1, "Unauthorized");
    twice["multiValueHeaders"]["Authorization"] = json!([format!("Bearer {token}"), "Bearer é"]);
    assert_eq!(authorizer.invoke(&twice).await.unwrap_err().1, "Unauthorized");
    // An HTTP API that asks in the format of REST APIs would be charged by its function again.
    let mut old = rest("GET", "/api/search", &token);
    old["version"] = "1.0".into();
    for other in [old, json!({ "x": 1 })] {
        assert!(authorizer.invoke(&other).await.unwrap_err().1.contains("payload format 2.0"));
    }
    // Its keys were there before the first token, and nobody had them asked for again.
    assert_eq!(issuer.asked(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn unless_others_are_pinned_tokens_are_signed_with_rs256_and_with_nothing_else() {
    let issuer = Issuer::start();
    let (rsa, claims) = (Signer::rsa("rsa"), issuer.claims(now(), &json!({ "sub": "alice" })));
    let (good, other) = (rsa.sign(&claims), Signer::new("first"));
    issuer.rotate(rsa);
    let variables = [("TOLLGATE_ISSUER", issuer.url()), ("TOLLGATE_AUDIENCE", AUDIENCE)];
    let mut authorizer = Function::start_with(AUTHORIZER, TaskRoot::with_sample_policy(), &variables).await;
    let answer = authorizer.invoke(&rest("GET", "/api/search", &good)).await.unwrap();
    assert_eq!((effect(&answer), &answer["principalId"]), ("Allow", &json!("alice")));
    let (message, signature) = good.rsplit_once('.').unwrap();
    let forged = issuer.token(now(), &json!({ "sub": "mallory" }));
    let mixed = format!("{}.{signature}", forged.rsplit_once('.').unwrap().0);
    for token in [&mixed, &format!("{message}.{}", &signature[..signature.len() - 4]), &other.sign(&claims)] {
        assert_eq!(authorizer.invoke(&rest("GET", "/api/search", token)).await.unwrap_err().1, "Unauthorized");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sample_api_charges_no_request_twice_and_asks_for_step_up_behind_either() {
    let issuer = Issuer::start();
    let mut authorizer = start(&issuer).await;
    let mut api = Function::start(SAMPLE_API, TaskRoot::with_sample_policy()).await;
    let (user, session) = (unique("user"), unique("session"));
    let token = |more: Value| {
        let mut claims = json!({ "sub": user, "origin_jti": session });
        claims.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        issuer.token(now(), &claims)
    };
    let ask = async |authorizer: &mut Function, api: &mut Function, method: &str, path: &str, token: &str| {
        let answer = authorizer.invoke(&rest(method, path, token)).await.unwrap();
        api.respond(&behind(rest(method, path, token), &answer["context"])).await
    };
    let searched = ask(&mut authorizer, &mut api, "GET", "/api/search", &token(json!({}))).await;
    assert_eq!((searched.status, searched.header("ratelimit")), (200, None));
    let stale = ask(&mut authorizer, &mut api, "PUT", "/api/payout-account", &token(json!({ "acr": "mfa" }))).await;
    assert_eq!(stale.status, 401);
    assert!(stale.header("www-authenticate").unwrap().contains("insufficient_user_authentication"));
    let fresh = token(json!({ "acr": "mfa", "auth_time": now() }));
    assert_eq!(ask(&mut authorizer, &mut api, "PUT", "/api/payout-account", &fresh).await.status, 200);
}

/// A policy of one call an hour, by whatever `by` comes from, in buckets of its own.
fn one_by(by: &str) -> String {
    let limit = unique("one");
    format!(
        "version = 1
[identity]
by = {by}
[plans]
names = ['free']
default = 'free'
[limits.{limit}]
key = ['by']
rate = '1/h'
[[routes]]
match = 'GET /api/search'
charge = ['{limit}']
"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn what_it_charges_is_counted_as_the_layer_behind_counts_it() {
    let issuer = Issuer::start();
    let name = unique("group");
    for (by, group) in [
        ("'claims.group'", json!(name)),
        ("'claims.group'", json!([name, "b"])),
        ("'claims.group'", json!({ "in": name })),
        ("'claims.group.in'", json!({ "in": name })),
        ("'claims.principalId'", json!("x")),
        ("'header.x-group'", json!("x")),
    ] {
        let policy = one_by(by);
        let mut authorizer = start_with(&issuer, TaskRoot::with_policy(&policy)).await;
        let mut api = Function::start(SAMPLE_API, TaskRoot::with_policy(&policy)).await;
        let mut event = rest("GET", "/api/search", &issuer.token(now(), &json!({ "sub": name, "group": group })));
        event["multiValueHeaders"]["X-Group"] = json!([format!("é-{name}")]);
        event["headers"]["X-Group"] = format!("é-{name}").into();
        let mut answer = authorizer.invoke(&event).await.unwrap();
        assert_eq!((effect(&answer), &answer["context"]["tollgateCharged"]), ("Allow", &json!("true")), "{by} {group}");
        answer["context"]["tollgateCharged"] = Value::Null;
        answer["context"]["principalId"] = answer["principalId"].clone();
        assert_eq!(api.respond(&behind(event, &answer["context"])).await.status, 429, "{by} {group}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cost_that_never_fits_is_the_layers_to_refuse_since_no_waiting_helps() {
    let issuer = Issuer::start();
    let (mut authorizer, user) = (start(&issuer).await, unique("user"));
    let mut api = Function::start(SAMPLE_API, TaskRoot::with_sample_policy()).await;
    // An operator's word: a search costs 5.
    let figures = TokenBucket::new(1, 1_000_000_000, 2).unwrap().into();
    let over = Override { figures, until: SystemClock.now() + Duration::from_secs(3600) };
    let order = Order::Override(LimitName::new("units").unwrap(), over);
    let item = ItemKey::shared(Key::new([("user", user.as_str())]).unwrap());
    admin::order(&store().await, &[item], &order).await.unwrap();
    let event = rest("GET", "/api/search", &issuer.token(now(), &json!({ "sub": user })));
    let answer = authorizer.invoke(&event).await.unwrap();
    assert_eq!((effect(&answer), &answer["context"]["tollgateCharged"]), ("Allow", &Value::Null), "{answer}");
    let refused = api.respond(&behind(event, &answer["context"])).await;
    assert_eq!((refused.status, &refused.body["error"]), (403, &json!("cost_never_fits")));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_it_cannot_see_yet_is_left_to_the_layer() {
    let issuer = Issuer::start();
    let claims = json!({ "sub": "alice", "api_key": unique("key") });
    for by in ["'api_key'", "{ body = 'x' }", "'context.partner'", "'context.authorizer.api_key'"] {
        let mut authorizer = start_with(&issuer, TaskRoot::with_policy(&one_by(by))).await;
        let answer = authorizer.invoke(&rest("GET", "/api/search", &issuer.token(now(), &claims))).await.unwrap();
        assert_eq!((effect(&answer), &answer["context"]["tollgateCharged"]), ("Allow", &Value::Null), "{by}");
    }
    // A handler waits for its slot.
    let pacer = "version = 1\n[limits.slots]\nkey = ['user']\nalgorithm = 'pacer'\nrate = '1/s'\nburst = 5\n\
        [[routes]]\nmatch = 'GET /api/search'\ncharge = ['slots']\n";
    let mut authorizer = start_with(&issuer, TaskRoot::with_policy(pacer)).await;
    let answer = authorizer.invoke(&rest("GET", "/api/search", &issuer.token(now(), &claims))).await.unwrap();
    assert_eq!(answer["context"]["tollgateCharged"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_odd_about_a_request_that_it_charges_is_a_metric_as_the_layers_is() {
    let (issuer, url) = (Issuer::start(), endpoint().await);
    let believed =
        [("TOLLGATE_ISSUER", issuer.url()), ("TOLLGATE_AUDIENCE", AUDIENCE), ("TOLLGATE_ALGORITHMS", "ES256")];
    let table = [("TOLLGATE_TABLE", TABLE), ("TOLLGATE_ENDPOINT_URL", url.as_str())];
    let root = TaskRoot::with_policy(&one_by("'claims.group'"));
    let mut authorizer = Function::printing(AUTHORIZER, root, &[&believed[..], &table].concat()).await;
    let token = issuer.token(now(), &json!({ "sub": "alice", "plan": "gold" }));
    authorizer.invoke(&rest("GET", "/api/search", &token)).await.unwrap();
    let sums = emf::sums(&authorizer.printed());
    assert_eq!(["MissingDimension", "UnknownPlan"].map(|name| sum(&sums, name, &[])), [1, 1], "{sums:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_no_uri_can_have_is_no_failure() {
    let issuer = Issuer::start();
    let mut authorizer = start(&issuer).await;
    let token = issuer.token(now(), &json!({ "sub": "alice" }));
    for path in ["/api/a b", "/api/é", "/api/%zz", "/api/\\<>", "/api/search?x", ""] {
        let answer = authorizer.invoke(&rest("GET", path, &token)).await;
        assert_eq!(answer.as_ref().map(effect), Ok("Allow"), "{path}: {answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_authorizer_without_an_issuer_fails_init_and_says_what_is_missing() {
    let endpoint = endpoint().await;
    let variables = [("TOLLGATE_TABLE", TABLE), ("TOLLGATE_ENDPOINT_URL", endpoint.as_str()), SECRETS];
    let (kind, message) = failure_of(AUTHORIZER, TaskRoot::with_sample_policy(), &variables).await;
    assert_eq!(kind, "Tollgate.Environment");
    assert!(message.contains("TOLLGATE_ISSUER is not set"), "{message}");
}
