//! The receiver of webhooks as it is deployed: what is signed is queued, and 202 says that it is.

use crate::aws::{Aws, Fault};
use crate::events::{Sender, unsigned};
use crate::harness::{Function, Response, TaskRoot, WEBHOOK};
use crate::init::failure_of;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use serde_json::{Value, json};
use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

const OLD: &str = "whsec_old_0123456789";
const NEW: &str = "whsec_new_0123456789";
const EVENT: &str = r#"{"id":"evt_1","type":"payment.succeeded"}"#;

/// The function, and the queue that it writes to.
struct Receiver {
    aws: Aws,
    function: Function,
}

impl Receiver {
    /// While one secret takes the other's place.
    async fn start() -> Self {
        let (aws, root) = (Aws::start().await, TaskRoot::empty());
        let secrets = root.path().join("secrets");
        std::fs::write(&secrets, format!("{NEW},{OLD}\n")).unwrap();
        let variables = [
            ("AWS_ENDPOINT_URL", aws.url.as_str()),
            ("AWS_ACCESS_KEY_ID", "test"),
            ("AWS_SECRET_ACCESS_KEY", "test"),
            ("TOLLGATE_WEBHOOK_SECRET", secrets.to_str().unwrap()),
            ("TOLLGATE_WEBHOOK_QUEUE_URL", "https://sqs.us-east-1.amazonaws.com/123456789012/webhooks.fifo"),
        ];
        let function = Function::printing(WEBHOOK, root, &variables).await;
        Self { aws, function }
    }

    async fn post(&mut self, signature: Option<&str>, body: &str) -> Response {
        let mut event = unsigned(Sender::HttpApi, "POST", "/webhooks/payments", body);
        if let Some(signature) = signature {
            event["headers"]["stripe-signature"] = signature.into();
        }
        self.function.respond(&event).await
    }

    async fn refused(&mut self, signature: Option<&str>, body: &str) -> (u64, String) {
        let response = self.post(signature, body).await;
        (response.status, response.body["error"].as_str().unwrap_or_default().to_owned())
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

fn signed(secret: &str, time: u64, body: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let tag = hmac::sign(&key, format!("{time}.{body}").as_bytes());
    let digits = tag.as_ref().iter().fold(String::new(), |mut digits, byte| {
        write!(digits, "{byte:02x}").unwrap();
        digits
    });
    format!("t={time},v1={digits}")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_either_secret_has_signed_is_queued_as_it_was_sent_and_once_an_event() {
    let mut receiver = Receiver::start().await;
    let again = format!(" {EVENT}");
    for (secret, body) in [(OLD, EVENT), (NEW, again.as_str())] {
        let response = receiver.post(Some(&signed(secret, now(), body)), body).await;
        assert_eq!((response.status, &response.body), (202, &json!({ "received": true })));
        assert_eq!(response.header("cache-control"), Some("no-store"));
    }
    let sent = receiver.aws.asked("SendMessage");
    assert_eq!(receiver.aws.queued(), [EVENT, &again]);
    let field = |place: usize, name: &str| sent[place][name].as_str().map(str::to_owned);
    for name in ["MessageDeduplicationId", "MessageGroupId"] {
        assert!(field(0, name).is_some_and(|id| id.len() == 64), "{sent:?}");
        assert_eq!(field(0, name), field(1, name), "two deliveries of one event are one message");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_the_gateway_has_encoded_is_verified_as_its_bytes() {
    let mut receiver = Receiver::start().await;
    let body = r#"{"id":"evt_é"}"#;
    let mut event = unsigned(Sender::HttpApi, "POST", "/webhooks/payments", &STANDARD.encode(body));
    event["isBase64Encoded"] = true.into();
    event["headers"]["stripe-signature"] = signed(NEW, now(), body).into();
    assert_eq!(receiver.function.respond(&event).await.status, 202);
    assert_eq!(receiver.aws.queued(), [body]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_signed_or_not_of_now_or_no_event_is_never_queued() {
    let mut receiver = Receiver::start().await;
    let refusal = |status: u64, error: &str| (status, error.to_owned());
    let wrong = refusal(401, "wrong_signature");
    assert_eq!(receiver.refused(None, EVENT).await, wrong);
    assert_eq!(receiver.refused(Some(&signed("whsec_somebody_elses", now(), EVENT)), EVENT).await, wrong);
    assert_eq!(receiver.refused(Some(&signed(NEW, now(), EVENT)), &EVENT.replace('1', "2")).await, wrong);
    assert_eq!(receiver.refused(Some("sha256=0123"), EVENT).await, refusal(400, "malformed"));
    assert_eq!(receiver.refused(Some(&signed(NEW, now() - 400, EVENT)), EVENT).await, refusal(400, "stale"));
    assert_eq!(receiver.refused(Some(&signed(NEW, now() + 400, EVENT)), EVENT).await, refusal(400, "stale"));
    assert_eq!(receiver.refused(Some(&signed(NEW, now(), "[]")), "[]").await, refusal(400, "malformed"));
    let large = format!(r#"{{"id":"{}"}}"#, "x".repeat(webhook::MAX_BYTES));
    assert_eq!(receiver.refused(Some(&signed(NEW, now(), &large)), &large).await, refusal(413, "too_large"));
    let get = unsigned(Sender::HttpApi, "GET", "/webhooks/payments", "");
    assert_eq!(receiver.function.respond(&get).await.status, 405);
    assert_eq!(receiver.aws.queued(), Vec::<String>::new());
}

/// The lines that the template's metric filters count, by the fields that they go by.
fn counted(printed: &str, level: &str) -> usize {
    let lines = printed.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let by = |line: &Value| line["target"] == "webhook" && line["level"] == level && line["service"].is_string();
    lines.filter(by).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_is_not_queued_is_503_and_told_for_the_alarm_and_the_next_one_is_taken() {
    let mut receiver = Receiver::start().await;
    for fault in [Fault::Status(400, "com.amazonaws.sqs#QueueDoesNotExist"), Fault::Lost] {
        receiver.aws.fail("SendMessage", Some(fault));
        let response = receiver.post(Some(&signed(NEW, now(), EVENT)), EVENT).await;
        assert_eq!((response.status, response.header("retry-after")), (503, Some("1")), "{fault:?}");
    }
    receiver.aws.fail("SendMessage", None);
    assert_eq!(receiver.post(Some(&signed(NEW, now(), EVENT)), EVENT).await.status, 202);
    assert_eq!(receiver.refused(None, EVENT).await.0, 401);
    let printed = receiver.function.printed();
    assert_eq!((counted(&printed, "ERROR"), counted(&printed, "WARN")), (2, 1), "{printed}");
    assert!(
        !printed.contains(NEW) && !printed.contains("evt_1"),
        "nothing of a webhook or a secret is logged: {printed}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_without_a_secret_says_so_instead_of_starting() {
    let root = TaskRoot::empty();
    let missing = root.path().join("none");
    let place = missing.to_str().unwrap().to_owned();
    for (variables, says) in [
        (vec![("TOLLGATE_WEBHOOK_QUEUE_URL", "https://q")], "TOLLGATE_WEBHOOK_SECRET"),
        (vec![("TOLLGATE_WEBHOOK_SECRET", place.as_str())], "TOLLGATE_WEBHOOK_QUEUE_URL"),
        (
            vec![("TOLLGATE_WEBHOOK_SECRET", place.as_str()), ("TOLLGATE_WEBHOOK_QUEUE_URL", "https://q")],
            "TOLLGATE_WEBHOOK_SECRET",
        ),
    ] {
        let report = failure_of(WEBHOOK, TaskRoot::empty(), &variables).await.1;
        assert!(report.contains(says), "{report}");
    }
}
