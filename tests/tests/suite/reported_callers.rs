//! Faults that users of other limiters reported about who is asking, each as the event that a function gets, on the table.

use crate::harness::{PATIENCE, TABLE, connected, endpoint, key};
use lambda_http::tower::{Layer, ServiceExt};
use lambda_http::{Body, Request, Response, service_fn};
use serde_json::{Value, json};
use std::sync::Arc;
use tollgate::http::TollgateLayer;
use tollgate::{Counters, DynamoStore, KeySecrets, Limiter, Policy, SystemClock, Wanted};

/// A function behind a policy with one limit of two calls a day that nobody else is charged on.
struct Door {
    policy: Policy,
    limit: String,
    layer: TollgateLayer<DynamoStore>,
    counters: Arc<Counters>,
}

impl Door {
    async fn new(identity: &str, by: &str) -> Self {
        let (_, unique) =
            key().key.dimensions().next().map(|(name, value)| (name.to_owned(), value.to_owned())).unwrap();
        let limit = format!("limit-{unique}");
        let text = format!(
            "version = 1\n[identity]\n{identity}\n[limits.{limit}]\nkey = [\"{by}\"]\nrate = \"2/day\"\n\
             [[routes]]\nmatch = \"POST /login\"\ncharge = [\"{limit}\"]\n"
        );
        let policy = Policy::parse(&text).unwrap().policy.with_secrets(KeySecrets::development());
        let counters = Arc::new(Counters::default());
        let connected = connected(&endpoint().await).await;
        let store = DynamoStore::new(&connected, TABLE, Arc::new(SystemClock), counters.clone());
        let limiter = Arc::new(Limiter::new(store).with_deadline(PATIENCE));
        Self { layer: TollgateLayer::new(policy.clone(), limiter), policy, limit, counters }
    }

    async fn status(&self, event: &Value) -> u16 {
        let request = lambda_http::request::from_str(&event.to_string()).unwrap();
        let handler = service_fn(async |_: Request| Ok::<_, lambda_http::Error>(Response::new(Body::from("in"))));
        Box::pin(self.layer.layer(handler).oneshot(request)).await.unwrap().status().as_u16()
    }

    /// Whether all of these calls are charged on one bucket that nobody has used.
    async fn are_one(&self, events: &[Value]) {
        let mut statuses = Vec::new();
        for event in events.iter().cycle().take(events.len().max(3)) {
            statuses.push(self.status(event).await);
        }
        let expected = [&[200, 200][..], &vec![429; statuses.len() - 2]].concat();
        assert_eq!(statuses, expected, "{events:?}");
    }

    /// The keys of a value that a caller of the JSON API gives.
    fn keys(&self, dimension: &str, value: &str) -> Vec<String> {
        let key = [(dimension, value)];
        let wanted = Wanted { limit: &self.limit, key: &key, plan: None, cost: 1 };
        self.policy.charges(&[wanted]).unwrap().iter().map(|charges| charges.key().to_string()).collect()
    }
}

fn http_api(source_ip: &str, forwarded_for: &str, body: &Value) -> Value {
    json!({
        "version": "2.0", "routeKey": "$default", "rawPath": "/login", "rawQueryString": "",
        "headers": { "host": "api.example", "content-type": "application/json", "x-forwarded-for": forwarded_for },
        "requestContext": {
            "accountId": "1", "apiId": "a", "domainName": "api.example", "requestId": "r", "stage": "$default", "timeEpoch": 1,
            "http": { "method": "POST", "path": "/login", "protocol": "HTTP/1.1", "sourceIp": source_ip, "userAgent": "u" }
        },
        "body": body.to_string(), "isBase64Encoded": false
    })
}

fn balanced(forwarded_for: &str) -> Value {
    json!({
        "requestContext": { "elb": { "targetGroupArn": "arn" } }, "httpMethod": "POST", "path": "/login",
        "queryStringParameters": {}, "headers": { "host": "lb", "x-forwarded-for": forwarded_for }, "body": "{}",
        "isBase64Encoded": false
    })
}

fn from(source_ip: &str) -> Value {
    http_api(source_ip, source_ip, &json!({}))
}

fn login(username: &str) -> Value {
    http_api("192.0.2.1", "192.0.2.1", &json!({ "username": username, "password": "x" }))
}

/// express-rate-limit#234, powertools-python#7288.
#[tokio::test(flavor = "multi_thread")]
async fn two_ports_are_one_client_and_two_clients_behind_a_proxy_are_two() {
    let door = Door::new("", "client_ip").await;
    door.are_one(&[from("198.51.100.4:5123"), from("198.51.100.4:6001"), from("198.51.100.4")]).await;
    let door = Door::new("client_ip = { trusted_hops = 1 }", "client_ip").await;
    let behind = |client: &str| http_api("10.0.0.1", &format!("{client}, 10.0.0.1"), &json!({}));
    door.are_one(&[behind("198.51.100.5:1"), behind("198.51.100.5:2"), behind("198.51.100.5")]).await;
    assert_eq!(door.status(&behind("198.51.100.6")).await, 200);
}

/// serverless-wsgi#36, everruns#2643.
#[tokio::test(flavor = "multi_thread")]
async fn the_address_that_the_load_balancer_appends_counts_and_not_the_one_that_is_claimed() {
    let claims = |n: u8, real: &str| balanced(&format!("6.6.6.{n}, {real}"));
    let door = Door::new("", "client_ip").await;
    door.are_one(&[claims(1, "198.51.100.7"), claims(2, "198.51.100.7"), claims(3, "198.51.100.7")]).await;
    assert_eq!(door.status(&claims(1, "198.51.100.8")).await, 200);
}

/// tower_governor.
#[tokio::test(flavor = "multi_thread")]
async fn two_forwarding_lines_are_one_list() {
    let door = Door::new("client_ip = { trusted_hops = 1 }", "client_ip").await;
    let lines = |forged: &str| {
        let mut event = balanced("");
        event["headers"].as_object_mut().unwrap().remove("x-forwarded-for");
        event["multiValueHeaders"] = json!({ "host": ["lb"], "x-forwarded-for": [forged, "198.51.100.9", "10.0.0.1"] });
        event["headers"] = json!({});
        event
    };
    door.are_one(&[lines("6.6.6.1"), lines("6.6.6.2"), lines("6.6.6.3, 7.7.7.7")]).await;
}

/// express-rate-limit#667, meshmonitor#2001.
#[tokio::test(flavor = "multi_thread")]
async fn a_mapped_address_is_the_ipv4_address_and_no_two_of_those_share_a_bucket() {
    let door = Door::new("client_ip = { ipv6_prefix = 56 }", "client_ip").await;
    door.are_one(&[from("::ffff:198.51.100.10"), from("198.51.100.10"), from("::ffff:c633:640a")]).await;
    assert_eq!(door.status(&from("::ffff:198.51.100.11")).await, 200);
}

/// open-artifacts#26.
#[tokio::test(flavor = "multi_thread")]
async fn rotating_within_one_ipv6_network_is_one_client() {
    let door = Door::new("", "client_ip").await;
    door.are_one(&[from("2001:db8:7::1"), from("2001:db8:7::ffff:2"), from("2001:db8:7:0:1:2:3:4")]).await;
    assert_eq!(door.status(&from("2001:db8:7:1::1")).await, 200);
}

/// floe#469, AspNetCoreRateLimit#415.
#[tokio::test(flavor = "multi_thread")]
async fn zones_code_and_64_kb_of_header_are_no_error() {
    let door = Door::new("client_ip = { trusted_hops = 1 }", "client_ip").await;
    for junk in ["fe80::1%eth0.100", "'{${print(1)}}'", &"1,".repeat(32_768), &"x".repeat(65_536), "", ",,,"] {
        for event in
            [from(junk), http_api("10.0.0.1", junk, &json!({})), balanced(junk), balanced(&format!("{junk}, 10.0.0.1"))]
        {
            let status = door.status(&event).await;
            assert!(status == 200 || status == 429, "{status}: {}", &junk[..junk.len().min(40)]);
        }
    }
}

/// status-list-server PR#216.
#[tokio::test(flavor = "multi_thread")]
async fn no_address_at_all_is_one_bucket_and_counted() {
    let door = Door::new("", "client_ip").await;
    let mut nobody = balanced("");
    nobody["headers"].as_object_mut().unwrap().remove("x-forwarded-for");
    door.are_one(&[nobody.clone(), from(""), from("unknown")]).await;
    assert_eq!(door.counters.counts().missing_dimensions, 3);
}

/// Truxify#1253.
#[tokio::test(flavor = "multi_thread")]
async fn a_number_has_one_budget_whatever_its_spelling() {
    let door = Door::new("phone = { body = \"username\", fold = \"phone\", region = \"IN\" }", "phone").await;
    let spellings = ["9876543210", " 98765 43210 ", "+919876543210", "00919876543210", "９８７６５４３２１０"];
    door.are_one(&spellings.map(login)).await;
    let keys: Vec<_> = spellings.iter().map(|spelling| door.keys("phone", spelling)).collect();
    assert!(keys.windows(2).all(|pair| pair[0] == pair[1]) && !keys[0][0].contains("98765"), "{keys:?}");
    assert_eq!(door.status(&login("9876543211")).await, 200);
}

/// Paymenter#1230.
#[tokio::test(flavor = "multi_thread")]
async fn an_account_has_one_budget_whatever_the_case_of_its_address() {
    let door = Door::new("account = { body = \"username\", fold = \"email\" }", "account").await;
    door.are_one(&["ADMIN@x.org", "admin@x.org", " Admin@X.Org "].map(login)).await;
    assert_eq!(door.keys("account", "ADMIN@x.org"), door.keys("account", "admin@x.org"));
    assert_eq!(door.status(&login("admin@x.net")).await, 200);
}

/// zae-limiter, through a dimension that folds: what folds to nothing is no value.
#[tokio::test(flavor = "multi_thread")]
async fn any_account_works_and_an_empty_or_huge_one_shares_a_bucket() {
    let door = Door::new("account = { body = \"username\", fold = \"email\" }", "account").await;
    for account in ["bob+x@example.com", "Ünïcödé", &"k".repeat(300)] {
        assert_eq!(door.status(&login(account)).await, 200, "{account}");
        assert!(door.keys("account", account)[0].starts_with("account:dev."));
    }
    door.are_one(&["", "   ", &"k".repeat(3000)].map(login)).await;
}

/// A comparison of phone crates: one reads an international network's number as American.
#[test]
fn a_number_of_no_country_stays_what_it_is() {
    let policy = "version = 1\nidentity.phone = { body = \"n\", fold = \"phone\", region = \"IN\" }\n[limits]\n";
    let policy = Policy::parse(policy).unwrap().policy;
    for spelling in ["+882 16 1234567", "+882161234567", "00882161234567"] {
        assert_eq!(policy.identity().canonical("phone", spelling), "+882161234567");
    }
}
