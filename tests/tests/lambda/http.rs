//! The limiter over HTTP: decisions, who may ask for them, and what is wrong with a request.

use crate::events::{SENDERS, Sender, load_balancer, signed, unsigned};
use crate::harness::{Function, LIMITER, TaskRoot, unique};
use base64::prelude::{BASE64_STANDARD, Engine};
use serde_json::{Value, json};

async fn limiter() -> Function {
    Function::start(LIMITER, TaskRoot::with_sample_policy()).await
}

fn order(user: &str) -> String {
    json!({ "limit": "orders", "key": { "user": user }, "plan": "free" }).to_string()
}

fn decision(sender: Sender, body: &str) -> Value {
    signed(sender, "POST", "/v1/decisions", body)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_sender_gets_decisions_in_its_own_shape() {
    let mut limiter = limiter().await;
    for sender in SENDERS {
        let user = unique("alice");
        let response = limiter.respond(&decision(sender, &order(&user))).await;
        let expected = json!({ "allowed": true, "limit": "orders", "remaining": 49, "retry_after_ms": 0, "reset_ms": 72_000, "source": "table" });
        assert_eq!((response.status, &response.body), (200, &expected), "{sender:?}");
        assert_eq!(response.header("content-type"), Some("application/json"));
        assert_eq!(response.header("cache-control"), Some("no-store"));
        let both = json!([{ "limit": "orders", "key": { "user": user } }, { "limit": "units", "key": { "user": user }, "cost": 5 }]);
        let mut event = decision(sender, &BASE64_STANDARD.encode(both.to_string()));
        event["isBase64Encoded"] = true.into();
        let response = limiter.respond(&event).await;
        assert_eq!(
            (response.status, &response.body[0]["remaining"], &response.body[1]["remaining"]),
            (200, &48.into(), &95.into()),
            "{sender:?}: {response:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_orders_and_the_fifty_first_is_denied() {
    let mut limiter = limiter().await;
    let user = unique("alice");
    for left in (0..50).rev() {
        let response = limiter.respond(&decision(Sender::HttpApi, &order(&user))).await;
        assert_eq!((&response.body["allowed"], &response.body["remaining"]), (&true.into(), &left.into()));
    }
    let denied = limiter.respond(&decision(Sender::HttpApi, &order(&user))).await;
    assert_eq!((denied.status, &denied.body["allowed"]), (200, &false.into()), "a denial is an answer");
    let wait = denied.body["retry_after_ms"].as_u64().unwrap();
    assert!(wait > 0 && wait <= 72_000, "{denied:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_an_iam_signature_is_refused_and_charged_nowhere() {
    let mut limiter = limiter().await;
    let user = unique("alice");
    let mut events: Vec<_> =
        SENDERS.iter().map(|sender| unsigned(*sender, "POST", "/v1/decisions", &order(&user))).collect();
    // What a caller or another authorizer can put into an event is no signature.
    let mut other = unsigned(Sender::HttpApi, "POST", "/v1/decisions", &order(&user));
    other["requestContext"]["authorizer"] = json!({ "jwt": { "claims": { "iam": "x" } }, "lambda": { "iam": "x" } });
    events.push(other.clone());
    for iam in
        [json!(null), json!({}), json!("x"), json!({ "userArn": "", "accessKey": null }), json!({ "userArn": 7 })]
    {
        other["requestContext"]["authorizer"] = json!({ "iam": iam });
        events.push(other.clone());
    }
    other["requestContext"]["identity"] = json!({ "userArn": "arn:aws:iam::1:user/x" });
    events.push(other);
    let mut custom = unsigned(Sender::RestApi, "POST", "/v1/decisions", &order(&user));
    custom["requestContext"]["authorizer"] = json!({ "iam": { "userArn": "arn:aws:iam::1:user/x" } });
    events.push(custom);
    for event in events {
        let response = limiter.respond(&event).await;
        assert_eq!((response.status, &response.body["error"]), (403, &"forbidden".into()), "{event}");
        assert!(response.body["message"].as_str().unwrap().contains("AWS_IAM"), "{response:?}");
    }
    let first = limiter.respond(&decision(Sender::FunctionUrl, &order(&user))).await;
    assert_eq!(first.body["remaining"], 49, "the refused ones were not charged");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_load_balancer_is_always_refused_in_its_own_shape() {
    let mut limiter = limiter().await;
    let mut event = load_balancer("POST", "/v1/decisions", &order(&unique("alice")));
    // Fields of the other senders do not make it one.
    event["requestContext"]["authorizer"] = json!({ "iam": { "userArn": "arn:aws:iam::1:user/x" } });
    event["requestContext"]["identity"] = json!({ "userArn": "arn:aws:iam::1:user/x" });
    event["requestContext"]["http"] = json!({ "method": "POST" });
    let response = limiter.respond(&event).await;
    assert_eq!((response.status, response.has_lists()), (403, false));
    assert!(response.body["message"].as_str().unwrap().contains("load balancer"), "{response:?}");
    let headers = event.as_object_mut().unwrap().remove("headers").unwrap();
    event["multiValueHeaders"] = headers.as_object().unwrap().iter().map(|(k, v)| (k.clone(), json!([v]))).collect();
    let response = limiter.respond(&event).await;
    assert_eq!((response.status, response.has_lists()), (403, true), "{response:?}");
    assert_eq!(response.header("content-type"), Some("application/json"));
}

#[tokio::test(flavor = "multi_thread")]
async fn other_paths_are_404_and_other_methods_405_with_allow() {
    let mut limiter = limiter().await;
    for sender in SENDERS {
        for path in ["/", "/v1/decisions/", "/v1/decision", "//v1/decisions", "/V1/decisions", "/x/v1/decisions"] {
            let response = limiter.respond(&signed(sender, "POST", path, "{}")).await;
            assert_eq!((response.status, &response.body["error"]), (404, &"not_found".into()), "{sender:?} {path}");
        }
        for method in ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "post", ""] {
            let response = limiter.respond(&signed(sender, method, "/v1/decisions", "{}")).await;
            assert_eq!((response.status, response.header("allow")), (405, Some("POST")), "{sender:?} {method}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_cannot_be_used_is_400_or_413_and_the_next_one_is_decided() {
    let mut limiter = limiter().await;
    let encoded = |text: &str| {
        let mut event = decision(Sender::HttpApi, text);
        event["isBase64Encoded"] = true.into();
        event
    };
    let body = |body: Value| {
        let mut event = decision(Sender::HttpApi, "");
        event["body"] = body;
        event
    };
    let large = |bytes: usize| " ".repeat(bytes);
    let cases = [
        (body(Value::Null), 400, "not JSON"),
        (body(json!(7)), 400, "not text"),
        (body(json!({ "limit": "orders" })), 400, "not text"),
        (decision(Sender::HttpApi, "null"), 400, "write {"),
        (decision(Sender::HttpApi, "[]"), 400, "empty"),
        (decision(Sender::HttpApi, &"[".repeat(60_000)), 400, "write {"),
        (decision(Sender::HttpApi, r#"{"limit":"nothing","key":{"user":"a"}}"#), 400, "unknown limit"),
        (encoded("%%%"), 400, "not base64"),
        (encoded("e30"), 400, "not base64"),
        (encoded(&BASE64_STANDARD.encode([0xff, 0xfe])), 400, "not JSON"),
        (decision(Sender::HttpApi, &large(64 * 1024)), 400, "not JSON"),
        (decision(Sender::HttpApi, &large(64 * 1024 + 1)), 413, "65536 bytes"),
        (encoded(&BASE64_STANDARD.encode(large(64 * 1024))), 400, "not JSON"),
        (encoded(&BASE64_STANDARD.encode(large(64 * 1024 + 1))), 413, "65536 bytes"),
        (encoded(&"A".repeat(5_000_000)), 413, "65536 bytes"),
    ];
    for (event, status, says) in cases {
        let response = limiter.respond(&event).await;
        let message = response.body["message"].as_str().unwrap();
        assert!(response.status == status && message.contains(says), "{says}: {response:?}");
    }
    assert_eq!(limiter.respond(&decision(Sender::HttpApi, &order(&unique("alice")))).await.body["remaining"], 49);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_event_is_answered_and_the_next_one_is_decided() {
    let mut limiter = limiter().await;
    let fields = ["requestContext", "httpMethod", "rawPath", "routeKey", "headers", "multiValueHeaders"];
    let junk =
        [Value::Null, json!(7), json!("x"), json!([]), json!({}), json!({ "http": 7 }), json!({ "identity": [] })];
    for field in fields {
        for junk in &junk {
            let mut event = serde_json::from_str::<Value>(&order("alice")).unwrap();
            event[field] = junk.clone();
            assert_eq!(limiter.respond(&event).await.status, 403, "{event}");
        }
    }
    for sender in SENDERS {
        let mut event = decision(sender, &order(&unique("alice")));
        for (name, value) in [("path", json!(7)), ("rawPath", json!({})), ("stage", json!([]))] {
            event[name] = value;
        }
        assert_eq!(limiter.respond(&event).await.status, 404, "{event}");
        event.as_object_mut().unwrap().remove("requestContext");
        assert_eq!(limiter.respond(&event).await.status, 403, "{event}");
        assert_eq!(limiter.respond(&decision(sender, &order(&unique("alice")))).await.body["remaining"], 49);
    }
}
