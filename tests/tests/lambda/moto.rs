//! What the functions of codes ask of AWS, on an emulator that others wrote (`TOLLGATE_MOTO_ENDPOINT`; CI starts one): Cognito, SQS, SES
//! and EventBridge; and the sentinel of AWS WAF. It has no text messages.

use crate::events::{Sender, unsigned};
use crate::harness::{COURIER, Function, LIMITER, OTP, SENTINEL, TABLE, TaskRoot, endpoint, unique};
use crate::wire::Wire;
use serde_json::{Value, json};
use tokio::net::TcpStream;

const POLICY: &str = "version = 1\n[otp]\npurposes = ['login']\ncountries = ['RO']\nchannels = ['CHANNEL']\n\
    [limits.sends]\nkey = ['user']\nrate = '20/h'\n\
    [[routes]]\nmatch = 'POST /api/auth/otp/send'\ncharge = ['sends']\non_store_failure = 'closed'\n";

struct Moto(String);

impl Moto {
    fn named() -> Option<Self> {
        let url = std::env::var("TOLLGATE_MOTO_ENDPOINT").ok();
        if url.is_none() {
            println!("skipped: TOLLGATE_MOTO_ENDPOINT names no moto server (pip install 'moto[server]'; moto_server)");
        }
        url.map(Self)
    }

    /// Asks for what is not under test, with an authorization that names the service and is not checked.
    async fn ask(&self, service: &str, path: &str, target: &str, body: &Value) -> Value {
        let (address, body) = (self.0.strip_prefix("http://").unwrap(), body.to_string());
        let mut wire = Wire::new(TcpStream::connect(address).await.unwrap());
        let scope = format!(
            "AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/{service}/aws4_request, SignedHeaders=, Signature=x"
        );
        // REST services tell operations by path, the others by target.
        let kind = if target.is_empty() {
            "json\r\n".to_owned()
        } else {
            format!("x-amz-json-1.0\r\nx-amz-target: {target}\r\n")
        };
        let fields = format!("host: {address}\r\nauthorization: {scope}\r\ncontent-length: {}\r\n", body.len());
        let request = format!("POST {path} HTTP/1.1\r\n{fields}content-type: application/{kind}\r\n{body}");
        assert!(wire.send(request.as_bytes()).await);
        let answer = wire.message().await.unwrap();
        assert_eq!(answer.status(), 200, "{target}: {}", answer.json());
        answer.json()
    }

    async fn queue(&self) -> String {
        let made = self.ask("sqs", "/", "AmazonSQS.CreateQueue", &json!({ "QueueName": unique("queue") })).await;
        made["QueueUrl"].as_str().unwrap().to_owned()
    }

    /// The next message of a queue.
    async fn receive(&self, queue: &str) -> String {
        let body = json!({ "QueueUrl": queue, "VisibilityTimeout": 3600 });
        let received = self.ask("sqs", "/", "AmazonSQS.ReceiveMessage", &body).await;
        received["Messages"][0]["Body"].as_str().unwrap_or_else(|| panic!("{received}")).to_owned()
    }

    /// A user pool with one user, whose number and address are verified.
    async fn pool(&self, user: &str) -> String {
        let target = |operation| format!("AWSCognitoIdentityProviderService.{operation}");
        let made = self.ask("cognito-idp", "/", &target("CreateUserPool"), &json!({ "PoolName": "people" })).await;
        let pool = made["UserPool"]["Id"].as_str().unwrap().to_owned();
        let attribute = |(name, value): (&str, &str)| json!({ "Name": name, "Value": value });
        let phone = [("phone_number", "+40721234567"), ("phone_number_verified", "true")];
        let email = [("email", "alice@x.org"), ("email_verified", "true")];
        let attributes: Vec<_> = phone.into_iter().chain(email).map(attribute).collect();
        let body = json!({ "UserPoolId": pool, "Username": user, "UserAttributes": attributes });
        self.ask("cognito-idp", "/", &target("AdminCreateUser"), &body).await;
        pool
    }

    /// A bus whose events end in a queue.
    async fn bus(&self, queue: &str) -> String {
        let bus = unique("bus");
        self.ask("events", "/", "AWSEvents.CreateEventBus", &json!({ "Name": bus })).await;
        let rule = json!({ "Name": bus, "EventBusName": bus, "EventPattern": r#"{"source":["tollgate.otp"]}"# });
        self.ask("events", "/", "AWSEvents.PutRule", &rule).await;
        let arn = format!("arn:aws:sqs:us-east-1:123456789012:{}", queue.rsplit('/').next().unwrap());
        let targets = json!({ "Rule": bus, "EventBusName": bus, "Targets": [{ "Id": "queue", "Arn": arn }] });
        self.ask("events", "/", "AWSEvents.PutTargets", &targets).await;
        bus
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn codes_go_from_a_user_pool_through_a_queue_to_email_and_to_a_bus() {
    let Some(moto) = Moto::named() else { return };
    let (user, queue, events) = (unique("alice"), moto.queue().await, moto.queue().await);
    let (pool, bus) = (moto.pool(&user).await, moto.bus(&events).await);
    moto.ask("ses", "/v2/email/identities", "", &json!({ "EmailIdentity": "codes@example.com" })).await;
    let table = endpoint().await;
    let variables = [
        ("AWS_ENDPOINT_URL", moto.0.as_str()),
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
        ("TOLLGATE_ENDPOINT_URL", table.as_str()),
        ("TOLLGATE_TABLE", TABLE),
        ("TOLLGATE_OTP_QUEUE_URL", queue.as_str()),
        ("TOLLGATE_USER_POOL_ID", pool.as_str()),
        ("TOLLGATE_EMAIL_FROM", "codes@example.com"),
        ("TOLLGATE_EVENT_BUS", bus.as_str()),
    ];
    for channel in ["email", "event"] {
        let policy = POLICY.replace("CHANNEL", channel);
        let mut otp = Function::printing(OTP, TaskRoot::with_policy(&policy), &variables).await;
        let mut courier = Function::printing(COURIER, TaskRoot::with_policy(&policy), &variables).await;
        // An account of its own each, or the second one waits for the first.
        let claims = json!({ "jwt": { "claims": { "sub": user, "tenant": channel }, "scopes": null } });
        let event = |path: &str, body: Value| {
            let mut event = unsigned(Sender::HttpApi, "POST", path, &body.to_string());
            event["requestContext"]["authorizer"] = claims.clone();
            event
        };
        let sent = otp.respond(&event("/api/auth/otp/send", json!({ "purpose": "login" }))).await;
        assert_eq!(sent.status, 202, "{}", otp.printed());
        let record = json!({ "messageId": "m", "body": moto.receive(&queue).await });
        let report = courier.invoke(&json!({ "Records": [record] })).await.unwrap();
        assert_eq!(report, json!({ "batchItemFailures": [] }), "{}", courier.printed());
        assert!(!courier.printed().contains("\"ERROR\""), "{}", courier.printed());
        if channel == "event" {
            let event_on_bus: Value = serde_json::from_str(&moto.receive(&events).await).unwrap();
            assert_eq!(event_on_bus["detail"]["to"], "+40721234567");
            let typed = json!({ "challenge": sent.body["challenge"], "purpose": "login", "code": event_on_bus["detail"]["code"] });
            assert_eq!(otp.respond(&event("/api/auth/otp/verify", typed)).await.status, 200);
        }
    }
}

/// A limit whose second lock keeps an address out.
fn keeping_out(name: &str) -> String {
    format!(
        "version = 1\n[limits.hits]\nkey = ['client_ip']\nrate = '30/min'\nburst = 1\n\
         penalty = {{ first = '2s', factor = 10, most = '1h', edge_after = 1 }}\n\
         [edge]\nweb_acl = '{name}'\nprefix = '{name}-'\nstage = 'block'\nkeep_out = {{}}\n\
         egress = {{ hq = ['198.51.100.0/24'] }}\nrules = [{{ name = 'rate-all', rate = '2000/5min' }}]\n"
    )
}

/// The addresses are locked, wait as they are told, and are locked again.
async fn go_on(limiter: &mut Function, addresses: &[&str]) {
    for _ in 0..2 {
        let mut waits = Vec::new();
        for address in addresses {
            let call = json!({ "limit": "hits", "key": { "client_ip": address } });
            waits.push(loop {
                let answer = limiter.invoke(&call).await.unwrap();
                if answer["allowed"] == false {
                    break answer["retry_after_ms"].as_u64().unwrap();
                }
            });
        }
        // Not for as long as the second lock, which is for whoever has to be kept out.
        let wait = waits.into_iter().max().filter(|wait| *wait < 5_000).unwrap_or_default();
        tokio::time::sleep(std::time::Duration::from_millis(wait)).await;
    }
}

fn waf(policy: &std::path::Path, args: &[&str]) -> Value {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tollgate-under-test"));
    let command = command.arg("waf").args(args).arg("--json").env("TOLLGATE_POLICY", policy);
    let output = command.output().expect("the command runs");
    assert!(output.status.success(), "{args:?}: {output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_goes_on_after_its_locks_is_kept_out_in_front_until_it_is_let_in() {
    let Some(moto) = Moto::named() else { return };
    let text = keeping_out(&unique("acl"));
    let root = TaskRoot::with_policy(&text);
    let policy = root.path().join("tollgate.toml");
    let table = endpoint().await;
    waf(&policy, &["apply", "--yes", "--endpoint-url", &moto.0]);
    let mut limiter = Function::start(LIMITER, TaskRoot::with_policy(&text)).await;
    let mut sentinel =
        Function::start_with(SENTINEL, TaskRoot::with_policy(&text), &[("TOLLGATE_WAF_ENDPOINT_URL", &moto.0)]).await;
    go_on(&mut limiter, &["192.0.2.7", "2001:db8:9::/64", "198.51.100.9"]).await;
    let event = json!({ "source": "aws.events", "detail-type": "Scheduled Event" });
    let kept = sentinel.invoke(&event).await.unwrap();
    // Not the office.
    assert_eq!(kept["kept_out"]["added"], json!(["192.0.2.7/32", "2001:db8:9::/64"]), "{kept}");
    assert_eq!(sentinel.invoke(&event).await.unwrap()["kept_out"]["writes"], 0);
    let at_table = ["--endpoint-url", &table, "--table", TABLE];
    let listed = waf(&policy, &[&["kept-out"], &at_table[..]].concat());
    let of = |address: &str| {
        listed["listed"].as_array().unwrap().iter().find(|of| of["address"] == address).unwrap()["kept_out"].clone()
    };
    assert_eq!((of("192.0.2.7"), of("198.51.100.9")), (true.into(), false.into()), "{listed}");
    waf(&policy, &[&["kept-out", "--release", "192.0.2.7"], &at_table[..]].concat());
    let kept = sentinel.invoke(&event).await.unwrap();
    assert_eq!((&kept["kept_out"]["removed"], &kept["kept_out"]["writes"]), (&json!(["192.0.2.7/32"]), &json!(1)));
}
