//! The authorizer's executable, asked as REST and HTTP APIs ask it; and the sample API behind it.

use crate::harness::{AUTHORIZER, Function, SAMPLE_API, SECRETS, TABLE, TaskRoot, endpoint, unique};
use crate::init::failure_of;
use crate::issuer::{AUDIENCE, Issuer, Signer};
use serde_json::{Value, json};
use tollgate::{Clock, SystemClock};

async fn start(issuer: &Issuer) -> Function {
    let variables =
        [("TOLLGATE_ISSUER", issuer.url()), ("TOLLGATE_AUDIENCE", AUDIENCE), ("TOLLGATE_ALGORITHMS", "ES256")];
    Function::start_with(AUTHORIZER, TaskRoot::with_sample_policy(), &variables).await
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
    assert_ne!(authorizer.invoke(&json!({ "x": 1 })).await.unwrap_err().1, "Unauthorized");
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
        let mut event = rest(method, path, token);
        event["requestContext"]["authorizer"] = answer["context"].clone();
        event["requestContext"]["httpMethod"] = method.into();
        event["requestContext"]["path"] = path.into();
        event["requestContext"]["resourcePath"] = "/api/{proxy+}".into();
        event["body"] = Value::Null;
        event["isBase64Encoded"] = false.into();
        api.respond(&event).await
    };
    let searched = ask(&mut authorizer, &mut api, "GET", "/api/search", &token(json!({}))).await;
    assert_eq!((searched.status, searched.header("ratelimit")), (200, None));
    let stale = ask(&mut authorizer, &mut api, "PUT", "/api/payout-account", &token(json!({ "acr": "mfa" }))).await;
    assert_eq!(stale.status, 401);
    assert!(stale.header("www-authenticate").unwrap().contains("insufficient_user_authentication"));
    let fresh = token(json!({ "acr": "mfa", "auth_time": now() }));
    assert_eq!(ask(&mut authorizer, &mut api, "PUT", "/api/payout-account", &fresh).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_authorizer_without_an_issuer_fails_init_and_says_what_is_missing() {
    let endpoint = endpoint().await;
    let variables = [("TOLLGATE_TABLE", TABLE), ("TOLLGATE_ENDPOINT_URL", endpoint.as_str()), SECRETS];
    let (kind, message) = failure_of(AUTHORIZER, TaskRoot::with_sample_policy(), &variables).await;
    assert_eq!(kind, "Tollgate.Environment");
    assert!(message.contains("TOLLGATE_ISSUER is not set"), "{message}");
}
