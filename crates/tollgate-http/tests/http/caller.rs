//! Who is asking: events of Lambda functions, addresses, and dimensions without a value.

use crate::support::{App, SAMPLE, facts, request};
use lambda_http::tower::{Layer, ServiceExt};
use lambda_http::{Body, Request, Response, service_fn};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tollgate::http::{Facts, TollgateLayer};
use tollgate::testing::{ManualClock, MemoryStore};
use tollgate::{Limiter, Policy};
use tollgate_dynamodb::meter::Counts;
use tollgate_policy::KeySecrets;

/// The key that a policy's only limit charges an event on.
pub(crate) async fn charged(identity: &str, key: &str, event: &Value) -> String {
    charged_and_counted(identity, key, event).await.0
}

/// The same, and what was counted.
pub(crate) async fn charged_and_counted(identity: &str, key: &str, event: &Value) -> (String, Counts) {
    let text = format!(
        "version = 1\n[identity]\n{identity}\n[limits.a]\nkey = [\"{key}\"]\nrate = \"5/h\"\n\
         message = \"m\"\n[[routes]]\nmatch = \"* /api/items/{{id}}\"\ncharge = [{{ limit = \"a\", cost = 5 }}]\n"
    );
    let policy = Policy::parse(&text).expect(&text).policy.with_secrets(KeySecrets::development());
    let store = MemoryStore::new(ManualClock::default());
    let seen = Arc::new(std::sync::Mutex::new(None));
    let keys = Keys { store: store.clone(), seen: seen.clone() };
    let handler = service_fn(async |_: Request| Ok::<_, lambda_http::Error>(Response::new(Body::from("ok"))));
    // Nobody should fail for the slowness of a shared machine.
    let limiter = Limiter::new(keys).with_deadline(Duration::from_secs(60));
    let app = TollgateLayer::new(policy, Arc::new(limiter)).layer(handler);
    let request = lambda_http::request::from_str(&event.to_string()).expect("an event");
    let response = app.oneshot(request).await.expect("a response");
    assert_eq!(response.status(), 200);
    assert!(response.headers().contains_key("ratelimit"), "the route matches");
    let key = seen.lock().expect("a lock").take();
    (key.expect("a write"), store.counters().counts())
}

/// Notes the key of the last write.
#[derive(Debug)]
struct Keys {
    store: MemoryStore,
    seen: Arc<std::sync::Mutex<Option<String>>>,
}

impl tollgate::Store for Keys {
    fn moment(&self) -> tollgate_core::take::Moment {
        self.store.moment()
    }

    fn meter(&self) -> &dyn tollgate::Meter {
        self.store.meter()
    }

    async fn read(
        &self,
        key: &tollgate_core::ItemKey,
        limits: &[&tollgate_core::LimitName],
    ) -> tollgate_dynamodb::Result<Option<tollgate_core::Item>> {
        self.store.read(key, limits).await
    }

    async fn write(
        &self,
        key: &tollgate_core::ItemKey,
        write: &tollgate_core::Write,
    ) -> tollgate_dynamodb::Result<tollgate_dynamodb::Written> {
        *self.seen.lock().expect("a lock") = Some(key.key.to_string());
        self.store.write(key, write).await
    }

    async fn transact(
        &self,
        writes: &[(&tollgate_core::ItemKey, &tollgate_core::Write)],
    ) -> tollgate_dynamodb::Result<tollgate_dynamodb::Transacted> {
        self.store.transact(writes).await
    }
}

/// A REST API's event.
pub(crate) fn v1(authorizer: Value, stage: &str) -> Value {
    json!({
        "resource": "/api/items/{id}", "path": "/api/items/7", "httpMethod": "GET",
        "headers": { "Host": "api.example.com", "X-Forwarded-For": "6.6.6.6" },
        "multiValueHeaders": { "Host": ["api.example.com"] },
        "queryStringParameters": { "region": "eu" }, "multiValueQueryStringParameters": { "region": ["eu"] },
        "requestContext": {
            "accountId": "1", "stage": stage, "httpMethod": "GET", "path": format!("/{stage}/api/items/7"),
            "requestId": "r", "apiId": "a", "authorizer": authorizer,
            "identity": { "sourceIp": "192.0.2.1", "apiKey": "k-secret", "apiKeyId": "k-id" }
        }
    })
}

/// The event of an HTTP API or a function URL.
pub(crate) fn v2(authorizer: Value, stage: &str, source: &str) -> Value {
    let path = if stage == "$default" { "/api/items/7".to_owned() } else { format!("/{stage}/api/items/7") };
    let mut event = json!({
        "version": "2.0", "routeKey": "GET /api/items/{id}", "rawPath": path, "rawQueryString": "region=eu&region=us",
        "headers": { "host": "api.example.com", "x-forwarded-for": "6.6.6.6" },
        "requestContext": {
            "accountId": "1", "apiId": "a", "domainName": "api.example.com", "requestId": "r", "stage": stage,
            "http": { "method": "GET", "path": path, "protocol": "HTTP/1.1", "sourceIp": source, "userAgent": "u" },
            "timeEpoch": 1
        },
        "isBase64Encoded": false
    });
    if !authorizer.is_null() {
        event["requestContext"]["authorizer"] = authorizer;
    }
    event
}

#[tokio::test]
async fn a_number_of_a_claim_has_the_spelling_that_it_has_in_a_body() {
    let numbers = [
        (json!(7), "7"),
        (json!(7.0), "7"),
        (json!(-0.0), "0"),
        (json!(1.5), "1.5"),
        // Whoever vouches for it does not round it.
        (json!(9_007_199_254_740_993_u64), "9007199254740993"),
        (json!(u64::MAX), "18446744073709551615"),
        (json!(true), "true"),
    ];
    for (number, text) in numbers {
        let event = v2(json!({ "lambda": { "id": number } }), "$default", "192.0.2.1");
        assert_eq!(charged("user = \"claims.id\"", "user", &event).await, format!("user:{text}"));
    }
}

#[tokio::test]
async fn claims_come_from_whatever_authorizer_the_gateway_has() {
    let user = "user = \"claims.sub\"";
    let cognito = json!({ "claims": { "sub": "alice", "custom:tenant": "acme" } });
    assert_eq!(charged(user, "user", &v1(cognito.clone(), "prod")).await, "user:alice");
    assert_eq!(charged("tenant = \"claims.custom:tenant\"", "tenant", &v1(cognito, "prod")).await, "tenant:acme");
    let lambda = json!({ "principalId": "p1", "sub": "alice", "level": 3 });
    assert_eq!(charged(user, "user", &v1(lambda.clone(), "prod")).await, "user:alice");
    assert_eq!(charged("user = \"claims.level\"", "user", &v1(lambda, "prod")).await, "user:3");
    let jwt = json!({ "jwt": { "claims": { "sub": "alice", "https://example.com/t.x": "acme" }, "scopes": null } });
    assert_eq!(charged(user, "user", &v2(jwt.clone(), "$default", "192.0.2.1")).await, "user:alice");
    let dotted = "tenant = \"claims.https://example.com/t.x\"";
    assert_eq!(charged(dotted, "tenant", &v2(jwt, "prod", "192.0.2.1")).await, "tenant:acme");
    let lambda = json!({ "lambda": { "sub": "alice", "org": { "unit": "u7" }, "api_key": "k1" } });
    assert_eq!(charged("user = \"claims.org.unit\"", "user", &v2(lambda.clone(), "$default", "")).await, "user:u7");
    assert_eq!(charged("", "api_key", &v2(lambda, "$default", "")).await, "api_key:k1");
    let iam = json!({ "iam": { "userArn": "arn:aws:iam::1:user/a", "userId": "AIDA", "cognitoIdentity": null } });
    assert_eq!(charged("user = \"claims.userId\"", "user", &v2(iam, "$default", "")).await, "user:AIDA");
}

/// Amazon API Gateway Developer Guide, "Input format of a Lambda function for proxy integration" and "Use Amazon Cognito user
/// pool as authorizer for a REST API": a REST API writes lists of claims with commas.
#[tokio::test]
async fn a_cognito_token_on_a_rest_api() {
    let event = v1(
        json!({
            "claims": {
                "sub": "5b7ddd5c-d3e5-4a58-b7d4-a2a9a0b4e6d1", "cognito:groups": "admin,users", "email_verified": "true",
                "iss": "https://cognito-idp.us-east-1.amazonaws.com/us-east-1_example", "cognito:username": "alice",
                "auth_time": "1700000000", "token_use": "id", "custom:tenant": "acme", "email": "Alice@Example.com"
            }
        }),
        "prod",
    );
    for (source, value) in [
        ("claims.sub", "5b7ddd5c-d3e5-4a58-b7d4-a2a9a0b4e6d1"),
        ("claims.cognito:groups", "admin%2Cusers"),
        ("claims.cognito:username", "alice"),
        ("claims.custom:tenant", "acme"),
        ("claims.auth_time", "1700000000"),
    ] {
        assert_eq!(charged(&format!("who = \"{source}\""), "who", &event).await, format!("who:{value}"));
    }
    let hashed = charged("who = { from = \"claims.email\", fold = \"email\" }", "who", &event).await;
    assert!(hashed.starts_with("who:dev.") && !hashed.to_lowercase().contains("alice"), "{hashed}");
    assert_eq!(
        charged("who = \"claims.nothing\"", "who ?? user", &event).await,
        "user:5b7ddd5c-d3e5-4a58-b7d4-a2a9a0b4e6d1"
    );
}

/// "Control access to HTTP APIs with JWT authorizers in API Gateway": every claim is text there, a list `[a b]`.
#[tokio::test]
async fn any_token_on_an_http_api() {
    let event = v2(
        json!({
            "jwt": {
                "claims": {
                    "sub": "auth0|123", "scope": "read write", "aud": "[https://api.example.com https://example.com/userinfo]",
                    "https://example.com/tenant": "acme", "exp": "1700000000", "admin": "true"
                },
                "scopes": ["read"]
            }
        }),
        "$default",
        "192.0.2.1",
    );
    for (source, value) in [
        ("claims.sub", "auth0|123"),
        ("claims.https://example.com/tenant", "acme"),
        ("claims.admin", "true"),
        ("claims.exp", "1700000000"),
    ] {
        assert_eq!(charged(&format!("who = \"{source}\""), "who", &event).await, format!("who:{value}"));
    }
    let list = charged("who = \"claims.aud\"", "who", &event).await;
    assert_eq!(list, "who:[https%3A//api.example.com https%3A//example.com/userinfo]");
}

/// "Use API Gateway Lambda authorizers": a REST API puts the context beside `principalId`, an HTTP API under `lambda`.
#[tokio::test]
async fn what_a_lambda_authorizer_says() {
    let rest = v1(
        json!({ "principalId": "user|a1b2", "plan": "pro", "level": 3, "admin": true, "integrationLatency": 7 }),
        "prod",
    );
    let http = v2(
        json!({ "lambda": { "principalId": "user|a1b2", "level": 3, "admin": true, "tags": ["a"] } }),
        "$default",
        "",
    );
    for event in [&rest, &http] {
        assert_eq!(charged("user = \"claims.principalId\"", "user", event).await, "user:user|a1b2");
        assert_eq!(charged("user = \"claims.level\"", "user", event).await, "user:3");
        assert_eq!(charged("user = \"claims.admin\"", "user", event).await, "user:true");
    }
    assert_eq!(charged("user = \"claims.tags\"", "user", &http).await, "?user:missing", "a list is no value");
    let without_context = v2(json!({ "lambda": null }), "$default", "192.0.2.1");
    assert_eq!(charged("", "user ?? client_ip", &without_context).await, "client_ip:192.0.2.1");
}

/// "API Gateway mapping template and access logging variable reference", `$context.identity`; "HTTP API: IAM authorization".
#[tokio::test]
async fn who_signed_with_iam_is_found_by_the_same_names_on_every_gateway() {
    let arn = "arn:aws:sts::123456789012:assumed-role/caller/session";
    let mut rest = v1(Value::Null, "prod");
    rest["requestContext"].as_object_mut().expect("an object").remove("authorizer");
    let identity = json!({
        "sourceIp": "192.0.2.1", "userAgent": "curl/8", "apiKey": null, "accountId": "123456789012", "userArn": arn,
        "caller": "AROAEXAMPLE:session", "user": "AROAEXAMPLE:session", "accessKey": "ASIAEXAMPLE",
        "cognitoIdentityId": "us-east-1:1111", "cognitoIdentityPoolId": "us-east-1:2222", "cognitoAuthenticationType": "authenticated"
    });
    rest["requestContext"]["identity"] = identity;
    let iam = json!({
        "iam": {
            "accessKey": "ASIAEXAMPLE", "accountId": "123456789012", "callerId": "AROAEXAMPLE:session", "userArn": arn,
            "userId": "AROAEXAMPLE:session", "principalOrgId": "o-1",
            "cognitoIdentity": { "amr": ["authenticated"], "identityId": "us-east-1:1111", "identityPoolId": "us-east-1:2222" }
        }
    });
    for event in [rest.clone(), v2(iam, "$default", "192.0.2.1")] {
        let who = async |claim: &str| charged(&format!("user = \"claims.{claim}\""), "user", &event).await;
        assert_eq!(who("userArn").await, format!("user:{}", arn.replace(':', "%3A")));
        assert_eq!(who("accountId").await, "user:123456789012");
        assert_eq!(who("callerId").await, "user:AROAEXAMPLE%3Asession");
        assert_eq!(who("userId").await, "user:AROAEXAMPLE%3Asession");
        assert_eq!(who("cognitoIdentity.identityId").await, "user:us-east-1%3A1111");
        assert_eq!(who("userAgent").await, "?user:missing", "what the client says of itself is no claim");
    }
    assert_eq!(charged("user = \"claims.caller\"", "user", &rest).await, "user:AROAEXAMPLE%3Asession");
    rest["requestContext"]["identity"]["userArn"] = Value::Null;
    assert_eq!(charged("user = \"claims.accountId\"", "user", &rest).await, "?user:missing", "nobody signed it");
}

#[tokio::test]
async fn keys_context_query_path_and_headers_are_dimensions() {
    let event = v1(Value::Null, "prod");
    assert_eq!(charged("", "api_key", &event).await, "api_key:k-id");
    assert_eq!(charged("where = \"context.stage\"", "where", &event).await, "where:prod");
    assert_eq!(charged("where = \"query.region\"", "where", &event).await, "where:eu");
    assert_eq!(charged("item = \"path.id\"", "item", &event).await, "item:7");
    let event = v2(Value::Null, "$default", "192.0.2.1");
    let twice = charged("where = \"query.region\"", "where", &event).await;
    assert_eq!(twice, "?where:missing", "given twice, and a handler may take the other one");
    assert_eq!(charged("where = \"context.http.userAgent\"", "where", &event).await, "where:u");
    assert_eq!(charged("where = \"header.X-Forwarded-For\"", "where", &event).await, "where:6.6.6.6");
    assert_eq!(charged("item = { body = \"id\" }", "item", &event).await, "?item:missing");
}

#[tokio::test]
async fn the_address_is_the_gateways_and_never_the_senders() {
    let ip = async |source: &str| charged("", "client_ip", &v2(Value::Null, "$default", source)).await;
    assert_eq!(charged("", "client_ip", &v1(Value::Null, "prod")).await, "client_ip:192.0.2.1");
    assert_eq!(ip("192.0.2.1").await, "client_ip:192.0.2.1");
    assert_eq!(ip("::ffff:192.0.2.1").await, "client_ip:192.0.2.1");
    assert_eq!(ip("2001:DB8::5:1").await, ip("2001:db8:0:0:ffff::").await, "one /64 is one client");
    assert_eq!(ip("2001:db8::5:1").await, "client_ip:2001%3Adb8%3A%3A/64");
    for garbage in ["", "'{${print(1)}}'", "unknown", &"1".repeat(65_536)] {
        assert_eq!(ip(garbage).await, "?client_ip:missing");
    }
    assert_eq!(ip("fe80::1%eth0.100").await, "client_ip:fe80%3A%3A/64");
}

#[tokio::test]
async fn calls_without_a_value_share_one_bucket_and_are_counted() {
    let app = App::new(SAMPLE);
    let nobody = async |method: &str, path: &str| app.send(request(method, path, &Facts::default(), &[])).await;
    for _ in 0..50 {
        assert_eq!(nobody("POST", "/api/orders").await.status, 201);
    }
    let denied = nobody("POST", "/api/orders").await;
    assert_eq!((denied.status, &denied.json()["scope"]), (429, &json!(["user"])));
    assert_eq!(app.ask("POST", "/api/orders", "alice", &[]).await.status, 201);
    assert_eq!(nobody("GET", "/api/export").await.status, 201);
    assert_eq!(
        app.store.memory.counters().counts().missing_dimensions,
        51 * 2 + 1,
        "an order lacks a value for both of its limits"
    );
    let long = "x".repeat(65_536);
    let answered = app.send(request("POST", "/api/orders", &facts(&json!({ "sub": long })), &[])).await;
    assert_eq!(answered.status, 429, "a value that is too long is none");
}

#[tokio::test]
async fn two_spellings_of_a_path_parameter_are_one_key_and_header_lines_one_value() {
    let text = "version = 1\n[identity]\nitem = \"path.id\"\ntag = \"header.x-tag\"\n[limits.a]\nkey = [\"item\", \"tag\"]\n\
                rate = \"2/h\"\n[[routes]]\nmatch = \"GET /items/{id}\"\ncharge = [\"a\"]\n";
    let app = App::new(text);
    let ask = async |path: &str, headers: &[(&str, &str)]| {
        app.send(request("GET", path, &Facts::default(), headers)).await.status
    };
    assert_eq!(ask("/items/a", &[("x-tag", "1"), ("x-tag", "2")]).await, 201);
    assert_eq!(ask("/items/%61", &[("x-tag", "1, 2")]).await, 201);
    assert_eq!(ask("/items/a?x", &[("x-tag", "1, 2")]).await, 429);
    assert_eq!(ask("/items/a", &[("x-tag", "2, 1")]).await, 201);
}
