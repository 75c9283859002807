//! One-time codes as they are deployed: the function that answers, the queue, and the function that delivers.

use crate::aws::{Aws, Fault};
use crate::emf;
use crate::events::{Sender, unsigned};
use crate::harness::{COURIER, Function, OTP, Response, TABLE, TaskRoot, endpoint, unique};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;
use tollgate::{Clock, Connection, Counters, DynamoStore, SystemClock};
use tollgate_dynamodb::Items;
use tollgate_otp::pumping::{CohortKey, Tally, Window, storage};

const POLICY: &str = "version = 1\n[identity]\nuser = 'claims.sub'\n\
    [otp]\npurposes = ['login']\ncountries = ['RO']\nchannels = ['sms', 'email']\ncooldown = { first = '1s', factor = 1 }\n\
    message = { en = '{code} is your code.', ro = 'Codul tau: {code}' }\nsubject = 'Your code'\ndomain = 'example.com'\n\
    [limits.sends]\nkey = ['user']\nrate = '20/h'\n\
    [[routes]]\nmatch = 'POST /api/auth/otp/send'\ncharge = ['sends']\non_store_failure = 'closed'\n";

const NUMBER: &str = "+40721234567";

/// Both functions, and the services that they ask.
struct Codes {
    aws: Aws,
    policy: String,
    otp: Function,
    courier: Function,
    user: String,
    /// What AWS WAF has inserted.
    inserted: Option<&'static str>,
}

impl Codes {
    async fn start() -> Self {
        Self::by(POLICY).await
    }

    async fn by(policy: &str) -> Self {
        Self::with(Aws::start().await, policy, &[], "off").await
    }

    async fn with(aws: Aws, policy: &str, more: &[(&str, &str)], log: &str) -> Self {
        let user = unique("alice");
        aws.add(&user, &[("sub", &user), ("phone_number", NUMBER), ("phone_number_verified", "true")]);
        let otp = function(OTP, &aws, policy, more, log).await;
        let courier = function(COURIER, &aws, policy, more, log).await;
        Self { aws, policy: policy.to_owned(), otp, courier, user, inserted: None }
    }

    async fn post(&mut self, path: &str, user: &str, body: &Value) -> Response {
        let mut event = unsigned(Sender::HttpApi, "POST", path, &body.to_string());
        event["requestContext"]["authorizer"] = json!({ "jwt": { "claims": { "sub": user }, "scopes": null } });
        event["headers"]["accept-language"] = "ro-RO, en;q=0.5".into();
        if let Some(inserted) = self.inserted {
            event["headers"]["x-amzn-waf-captcha"] = inserted.into();
        }
        self.otp.respond(&event).await
    }

    async fn send(&mut self) -> Response {
        let user = self.user.clone();
        self.post("/api/auth/otp/send", &user, &json!({ "purpose": "login" })).await
    }

    /// The challenge of a code that was sent, and the message that was queued.
    async fn queued(&mut self) -> (String, String) {
        let response = self.send().await;
        assert_eq!(response.status, 202, "{response:?}");
        (response.body["challenge"].as_str().unwrap().to_owned(), self.aws.queued().last().unwrap().clone())
    }

    async fn verify(&mut self, challenge: &str, code: &str) -> Response {
        let user = self.user.clone();
        let body = json!({ "challenge": challenge, "purpose": "login", "code": code });
        self.post("/api/auth/otp/verify", &user, &body).await
    }

    /// Hands messages out; those that are to be handed out again.
    async fn deliver(&mut self, messages: &[&str]) -> Vec<String> {
        deliver(&mut self.courier, messages).await
    }

    fn sms(&self) -> Vec<Value> {
        self.aws.asked("SendTextMessage")
    }
}

async fn function(program: &str, aws: &Aws, policy: &str, more: &[(&str, &str)], log: &str) -> Function {
    let table = endpoint().await;
    let variables = [
        ("AWS_ENDPOINT_URL", aws.url.as_str()),
        ("TOLLGATE_ENDPOINT_URL", table.as_str()),
        ("TOLLGATE_TABLE", TABLE),
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
        ("TOLLGATE_OTP_QUEUE_URL", "https://sqs.us-east-1.amazonaws.com/123456789012/codes"),
        ("TOLLGATE_USER_POOL_ID", "us-east-1_pool"),
        ("TOLLGATE_SMS_PROTECT_CONFIGURATION", "protect-1"),
        ("TOLLGATE_SMS_ORIGINATION_IDENTITY", "pool-1"),
        ("TOLLGATE_EMAIL_FROM", "codes@example.com"),
        ("TOLLGATE_EVENT_BUS", "codes"),
        ("RUST_LOG", log),
    ];
    Function::printing(program, TaskRoot::with_policy(policy), &[&variables, more].concat()).await
}

async fn deliver(courier: &mut Function, messages: &[&str]) -> Vec<String> {
    let record =
        |(i, body): (usize, &&str)| json!({ "messageId": i.to_string(), "body": body, "eventSource": "aws:sqs" });
    let records: Vec<_> = messages.iter().enumerate().map(record).collect();
    let report = courier.invoke(&json!({ "Records": records })).await.unwrap();
    let failures = report["batchItemFailures"].as_array().unwrap_or_else(|| panic!("{report}"));
    // In whatever order.
    let mut failures: Vec<_> =
        failures.iter().map(|failure| failure["itemIdentifier"].as_str().unwrap().to_owned()).collect();
    failures.sort();
    failures
}

/// The code in a text that ends with the line for browsers.
fn code(sms: &Value) -> String {
    sms["MessageBody"].as_str().unwrap().rsplit_once('#').unwrap().1.to_owned()
}

const NOBODY: [String; 0] = [];

#[tokio::test(flavor = "multi_thread")]
async fn a_code_is_queued_sealed_then_delivered_once_and_its_provider_hears_that_it_was_right() {
    let mut codes = Codes::start().await;
    let (challenge, message) = codes.queued().await;
    assert!(codes.sms().is_empty(), "the answer has not waited for it");
    assert_eq!(codes.deliver(&[&message]).await, NOBODY);
    let sms = codes.sms();
    let [sent] = &sms[..] else { panic!("{sms:?}") };
    let code = code(sent);
    assert!(code.len() == 6 && code.bytes().all(|b| b.is_ascii_digit()), "{sent}");
    assert_eq!(sent["MessageBody"], format!("Codul tau: {code}\n\n@example.com #{code}"));
    assert_eq!((&sent["DestinationPhoneNumber"], &sent["MessageType"]), (&NUMBER.into(), &"TRANSACTIONAL".into()));
    assert_eq!((&sent["MessageFeedbackEnabled"], &sent["ProtectConfigurationId"]), (&true.into(), &"protect-1".into()));
    assert_eq!(sent["OriginationIdentity"], "pool-1");
    assert!((1..=300).contains(&sent["TimeToLive"].as_u64().unwrap()), "{sent}");
    // A queue hands a message out at least once.
    assert_eq!(codes.deliver(&[&message, &message]).await, NOBODY);
    assert_eq!(codes.sms().len(), 1);
    assert_eq!(codes.verify(&challenge, &code).await.status, 200);
    let told = codes.aws.queued().last().unwrap().clone();
    assert_ne!(told, message);
    assert!(codes.aws.asked("PutMessageFeedback").is_empty(), "nor has that answer");
    assert_eq!(codes.deliver(&[&told]).await, NOBODY);
    let feedback = codes.aws.asked("PutMessageFeedback");
    let [feedback] = &feedback[..] else { panic!("{feedback:?}") };
    assert_eq!(feedback["MessageFeedbackStatus"], "RECEIVED");
    assert!(feedback["MessageId"].as_str().unwrap().starts_with("sms-"), "{feedback}");
}

/// The policy where messages are watched.
fn watched() -> String {
    let identity = "user = 'claims.sub'\ncountry = 'context.otp.country'\nsuspect = 'context.otp.suspect'\n";
    let pumping = "[otp.pumping]\nprices = { RO = 480 }\nspend = ['spend']\nreduced = 'reduced'\n\
        [limits.spend]\nkey = ['country']\nrate = '900000000/h'\n[limits.reduced]\nkey = ['suspect']\nrate = '6/h'\n";
    let policy = POLICY
        .replace("user = 'claims.sub'\n", identity)
        .replace("[limits.sends]", &format!("{pumping}[limits.sends]"));
    policy.replace("charge = ['sends']", "charge = ['sends', 'spend', 'reduced']")
}

/// What is counted of messages to the block of [`NUMBER`] in these windows.
async fn counted(windows: RangeInclusive<u64>) -> Vec<Tally> {
    let connected = tollgate::connect(&Connection::from_environment().endpoint_url(&endpoint().await)).await.unwrap();
    let store =
        DynamoStore::with_trusted_clock(&connected, TABLE, Arc::new(SystemClock), Arc::new(Counters::default()));
    let (items, block) = (Items::new(store).with_deadline(Duration::from_secs(60)), "+4072123");
    let mut tallies = Vec::new();
    for window in windows {
        let pk = storage::partition_key(&CohortKey::of("RO", block, Window(window)));
        let found = items.begin().read(&pk).await.unwrap();
        let found = found.map(|item| storage::to_tallies(&item).unwrap()).and_then(|mut all| all.remove(block));
        tallies.push(found.unwrap_or_default());
    }
    tallies
}

#[tokio::test(flavor = "multi_thread")]
async fn verified_codes_of_a_batch_are_counted_together_and_again_where_the_table_was_gone() {
    let mut codes = Codes::by(&watched()).await;
    let first = Window::of(SystemClock.now()).0;
    for n in 0..4 {
        codes.user = unique("alice");
        let number = format!("+4072123456{n}");
        codes.aws.add(&codes.user, &[("phone_number", &number), ("phone_number_verified", "true")]);
        let (challenge, message) = codes.queued().await;
        assert_eq!(codes.deliver(&[&message]).await, NOBODY);
        let code = code(codes.sms().last().unwrap());
        assert_eq!(codes.verify(&challenge, &code).await.status, 200);
    }
    let windows = first..=Window::of(SystemClock.now()).0;
    let queued = codes.aws.queued();
    assert_eq!(queued.len(), 8, "one for the message, and one for all that follows from its code");
    let told: Vec<_> = queued.iter().skip(1).step_by(2).map(String::as_str).collect();
    for text in &told {
        let bytes = URL_SAFE_NO_PAD.decode(text.split_once('.').unwrap().1).unwrap();
        let shown = String::from_utf8_lossy(&bytes);
        assert!(!["+4072123", "sms-", "arrived", "credit"].iter().any(|known| shown.contains(known)), "{shown}");
    }
    let verified = |tallies: &[Tally]| tallies.iter().map(|tally| tally.verified).sum::<u64>();
    let before = verified(&counted(windows.clone()).await);
    // Where nobody answers all are to be handed out again.
    let gone = [("TOLLGATE_ENDPOINT_URL", "http://127.0.0.1:9"), ("TOLLGATE_DEADLINE_MS", "200")];
    let mut blind = function(COURIER, &codes.aws, &codes.policy, &gone, "off").await;
    assert_eq!(deliver(&mut blind, &told).await, ["0", "1", "2", "3"]);
    let units = |printed: String| {
        let sums = emf::sums(&printed);
        let of = |(series, n): (&emf::Series, &f64)| (series.0 == "WriteUnits" && series.1.len() == 1).then_some(*n);
        sums.iter().filter_map(of).sum::<f64>()
    };
    let units_before = units(codes.courier.printed());
    assert_eq!(codes.deliver(&told).await, NOBODY);
    let found = counted(windows).await;
    assert_eq!(verified(&found) - before, 4);
    // One for each window, nearly always one.
    let windows = u32::try_from(found.iter().filter(|tally| tally.verified > 0).count()).unwrap();
    assert!((units(codes.courier.printed()) - units_before - f64::from(windows)).abs() < 0.5);
    assert_eq!(codes.aws.asked("PutMessageFeedback").len(), 8, "each provider hears of it, at worst twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_whose_answer_was_lost_is_never_sent_again() {
    for fault in [Fault::Lost, Fault::Status(500, "InternalServerException"), Fault::Status(503, "ServiceUnavailable")]
    {
        let mut codes = Codes::start().await;
        let (_, message) = codes.queued().await;
        codes.aws.fail("SendTextMessage", Some(fault));
        assert_eq!(codes.deliver(&[&message]).await, NOBODY, "{fault:?}");
        codes.aws.fail("SendTextMessage", None);
        // Another process, too.
        let mut other = function(COURIER, &codes.aws, &codes.policy, &[], "off").await;
        assert_eq!(codes.deliver(&[&message]).await, NOBODY);
        assert_eq!(deliver(&mut other, &[&message]).await, NOBODY);
        assert_eq!(codes.sms().len(), 1, "{fault:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_sent_for_certain_is_tried_again_if_that_is_of_use() {
    let mut codes = Codes::start().await;
    let (challenge, message) = codes.queued().await;
    codes.aws.fail("SendTextMessage", Some(Fault::Status(400, "ThrottlingException")));
    assert_eq!(codes.deliver(&[&message]).await, ["0"]);
    codes.aws.fail("SendTextMessage", None);
    assert_eq!(codes.deliver(&[&message]).await, NOBODY);
    let sms = codes.sms();
    assert_eq!(sms.len(), 2);
    assert_eq!(codes.verify(&challenge, &code(&sms[1])).await.status, 200);

    let mut codes = Codes::start().await;
    let (_, message) = codes.queued().await;
    codes.aws.fail("SendTextMessage", Some(Fault::Status(400, "ValidationException")));
    assert_eq!(codes.deliver(&[&message]).await, NOBODY);
    assert_eq!(codes.deliver(&[&message]).await, NOBODY);
    assert_eq!(codes.sms().len(), 1, "a provider that refuses is asked once");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_message_at_four_processes_at_once_is_sent_once() {
    let mut codes = Codes::start().await;
    let (_, message) = codes.queued().await;
    let mut processes = Vec::new();
    for _ in 0..4 {
        processes.push(function(COURIER, &codes.aws, &codes.policy, &[], "off").await);
    }
    let copies = vec![message.as_str(); 10];
    for failures in join_all(processes.iter_mut().map(|process| deliver(process, &copies))).await {
        assert_eq!(failures, NOBODY);
    }
    assert_eq!(codes.sms().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_that_another_one_followed_is_not_sent() {
    let mut codes = Codes::start().await;
    let (_, first) = codes.queued().await;
    while codes.send().await.status == 429 {}
    let second = codes.aws.queued().last().unwrap().clone();
    assert_ne!(first, second);
    assert_eq!(codes.deliver(&[&first, &second]).await, NOBODY);
    assert_eq!(codes.sms().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_can_open_is_reported_alone() {
    let mut codes = Codes::start().await;
    let (_, message) = codes.queued().await;
    let foreign = format!("k9{}", &message[2..]);
    assert_eq!(codes.deliver(&["", &foreign, &message, "k1.AAAA"]).await, ["0", "1", "3"]);
    assert_eq!(codes.sms().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_to_an_account_without_a_verified_number_is_queued_and_goes_nowhere() {
    let mut codes = Codes::start().await;
    let unverified = unique("bob");
    codes.aws.add(
        &unverified,
        &[("phone_number", "+40721234568"), ("phone_number_verified", "false"), ("email", "b@x.org")],
    );
    for user in [unverified, unique("nobody")] {
        codes.user = user;
        let (_, message) = codes.queued().await;
        assert_eq!(codes.deliver(&[&message]).await, NOBODY);
    }
    assert!(codes.sms().is_empty() && codes.aws.asked("/v2/email/outbound-emails").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn codes_go_by_email_and_as_events_where_the_policy_says_so() {
    let address = "Alice@x.org";
    let verified = [("email", address), ("email_verified", "true")];
    let mut codes = Codes::start().await;
    codes.user = unique("alice");
    codes.aws.add(&codes.user, &verified);
    let (_, message) = codes.queued().await;
    assert_eq!(codes.deliver(&[&message, &message]).await, NOBODY);
    let emails = codes.aws.asked("/v2/email/outbound-emails");
    let [email] = &emails[..] else { panic!("{emails:?}") };
    assert_eq!(email["Destination"], json!({ "ToAddresses": [address] }));
    assert_eq!(email["FromEmailAddress"], "codes@example.com");
    let content = &email["Content"]["Simple"];
    assert_eq!(content["Subject"]["Data"], "Your code");
    let text = content["Body"]["Text"]["Data"].as_str().unwrap();
    assert!(text.starts_with("Codul tau: ") && text.len() == "Codul tau: ".len() + 6, "{text}");

    let mut codes = Codes::by(&POLICY.replace("['sms', 'email']", "['event']")).await;
    let (challenge, message) = codes.queued().await;
    assert_eq!(codes.deliver(&[&message, &message]).await, NOBODY);
    let events = codes.aws.asked("PutEvents");
    let [event] = &events[..] else { panic!("{events:?}") };
    let entry = &event["Entries"][0];
    assert_eq!((&entry["EventBusName"], &entry["Source"]), (&"codes".into(), &"tollgate.otp".into()));
    let detail: Value = serde_json::from_str(entry["Detail"].as_str().unwrap()).unwrap();
    assert_eq!((&detail["to"], &detail["purpose"]), (&NUMBER.into(), &"login".into()));
    assert_eq!(codes.verify(&challenge, detail["code"].as_str().unwrap()).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_directory_or_the_queue_no_code_is_sent_and_none_is_called_wrong() {
    let mut codes = Codes::start().await;
    for operation in ["AdminGetUser", "SendMessage"] {
        for fault in
            [Fault::Lost, Fault::Status(400, "AccessDeniedException"), Fault::Status(500, "InternalErrorException")]
        {
            codes.user = unique("alice");
            codes.aws.add(&codes.user, &[("phone_number", NUMBER), ("phone_number_verified", "true")]);
            codes.aws.fail(operation, Some(fault));
            let response = codes.send().await;
            assert_eq!(
                (response.status, &response.body["error"]),
                (503, &"otp_unavailable".into()),
                "{operation} {fault:?}"
            );
            codes.aws.fail(operation, None);
        }
    }
    assert!(codes.sms().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn no_code_number_or_account_is_in_the_queue_or_in_any_log() {
    let mut codes = Codes::with(Aws::start().await, POLICY, &[], "debug").await;
    let (challenge, message) = codes.queued().await;
    codes.aws.fail("SendTextMessage", Some(Fault::Status(400, "ThrottlingException")));
    assert_eq!(codes.deliver(&[&message, "k1.AAAA"]).await, ["0", "1"]);
    codes.aws.fail("SendTextMessage", None);
    assert_eq!(codes.deliver(&[&message]).await, NOBODY);
    let code = code(&codes.sms()[1]);
    assert_eq!(codes.verify(&challenge, "000000").await.status, 401);
    assert_eq!(codes.verify(&challenge, &code).await.status, 200);
    let told = codes.aws.queued().last().unwrap().clone();
    codes.aws.fail("PutMessageFeedback", Some(Fault::Status(400, "ResourceNotFoundException")));
    assert_eq!(codes.deliver(&[&told]).await, NOBODY);
    let user = std::mem::replace(&mut codes.user, unique("bob"));
    codes.aws.fail("AdminGetUser", Some(Fault::Status(400, "InvalidParameterException")));
    assert_eq!(codes.send().await.status, 503);
    let logged = codes.otp.printed() + &codes.courier.printed();
    for known in ["an errand is to be tried again", "ThrottlingException", "InvalidParameterException"] {
        assert!(logged.contains(known), "{known}: {logged}");
    }
    let queued = codes.aws.queued().join("\n");
    for secret in [code.as_str(), "721234567", user.as_str(), codes.user.as_str()] {
        assert!(!logged.contains(secret), "{secret}: {logged}");
        assert!(!queued.contains(secret), "{secret}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_function_without_its_queue_or_directory_says_so_in_init() {
    for (missing, program) in [("TOLLGATE_OTP_QUEUE_URL", OTP), ("TOLLGATE_USER_POOL_ID", OTP)] {
        let aws = Aws::start().await;
        let mut function = function(program, &aws, POLICY, &[(missing, "")], "off").await;
        let init = function.sandbox().init().await.unwrap();
        let tollgate_cli::runtime_api::Init::Failed(reported) = init else { panic!("{init:?}") };
        assert_eq!(reported.error_type, "Tollgate.Environment");
        assert!(reported.error_message.starts_with(missing), "{reported:?}");
    }
}

/// A policy that demands a CAPTCHA of everybody.
fn with_captcha() -> String {
    POLICY.replace("[otp]", "[otp]\ncaptcha = true")
}

/// A file with a secret in it.
fn secret(text: &str) -> (tempfile::NamedTempFile, String) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let path = file.path().to_str().unwrap().to_owned();
    (file, path)
}

#[tokio::test(flavor = "multi_thread")]
async fn where_a_captcha_is_demanded_nothing_is_sent_without_turnstiles_yes() {
    let aws = Aws::start().await;
    let (_file, path) = secret("turnstile-secret\n");
    let url = format!("{}/turnstile/v0/siteverify", aws.url);
    let more = [("TOLLGATE_TURNSTILE_SECRET", path.as_str()), ("TOLLGATE_TURNSTILE_URL", url.as_str())];
    let mut codes = Codes::with(aws, &with_captcha(), &more, "off").await;
    let user = codes.user.clone();
    let wish = |token: Value| json!({ "purpose": "login", "captcha": token });
    for token in [Value::Null, "".into(), "unsolved".into(), "x".repeat(2049).into()] {
        let refused = codes.post("/api/auth/otp/send", &user, &wish(token.clone())).await;
        assert_eq!((refused.status, &refused.body["error"]), (403, &"captcha_required".into()), "{token}");
    }
    for fault in [Fault::Lost, Fault::Status(500, "internal-error")] {
        codes.aws.fail("/turnstile/v0/siteverify", Some(fault));
        let refused = codes.post("/api/auth/otp/send", &user, &wish("solved".into())).await;
        assert_eq!((refused.status, &refused.body["error"]), (503, &"otp_unavailable".into()), "{fault:?}");
    }
    codes.aws.fail("/turnstile/v0/siteverify", None);
    assert!(codes.aws.queued().is_empty());
    let sent = codes.post("/api/auth/otp/send", &user, &wish("solved".into())).await;
    assert_eq!((sent.status, codes.aws.queued().len()), (202, 1), "no cooldown was begun: {sent:?}");
    let asked = codes.aws.asked("/turnstile/v0/siteverify");
    assert_eq!(asked.last().unwrap(), &json!({ "secret": "turnstile-secret", "response": "solved" }));
    assert!(
        asked
            .iter()
            .all(|asked| asked["response"].as_str().is_some_and(|token| !token.is_empty() && token.len() < 2049))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_rule_of_waf_inserts_is_a_solved_captcha_and_no_other_value_is() {
    let (_file, path) = secret("s3cret");
    let more = [("TOLLGATE_WAF_CAPTCHA_SECRET", path.as_str())];
    let mut codes = Codes::with(Aws::start().await, &with_captcha(), &more, "off").await;
    for (inserted, status) in [(None, 403), (Some("passed"), 403), (Some("s3cret"), 202)] {
        codes.inserted = inserted;
        assert_eq!(codes.send().await.status, status, "{inserted:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_captcha_that_nobody_judges_lets_nobody_pass() {
    let mut codes = Codes::by(&with_captcha()).await;
    assert_eq!(codes.send().await.status, 503);
    assert!(codes.aws.queued().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_message_costs_is_reserved_before_it_and_given_back_where_the_queue_does_not_take_it() {
    let limits = "[otp.pumping]\nprices = { RO = 480 }\nspend = ['spend']\nreduced = 'few'\n\
        [limits.spend]\nkey = ['country']\nalgorithm = 'fixed-window'\nrate = '1000/30day'\nrefund_on = '5xx'\n\
        [limits.few]\nkey = ['suspect']\nrate = '6/h'\n[limits.sends]";
    let policy = POLICY.replace("[limits.sends]", limits).replace("['sends']", "['sends', 'spend', 'few']").replace(
        "user = 'claims.sub'",
        "user = 'claims.sub'\ncountry = 'context.otp.country'\nsuspect = 'context.otp.suspect'",
    );
    let mut codes = Codes::by(&policy).await;
    let mut send_as_another = async |fault: Option<Fault>| {
        codes.user = unique("alice");
        codes.aws.add(&codes.user, &[("phone_number", NUMBER), ("phone_number_verified", "true")]);
        codes.aws.fail("SendMessage", fault);
        codes.send().await.status
    };
    for _ in 0..3 {
        assert_eq!(send_as_another(Some(Fault::Status(400, "AccessDeniedException"))).await, 503);
    }
    // Of 1000 there are 480 for each of two.
    assert_eq!(send_as_another(None).await, 202);
    assert_eq!(send_as_another(None).await, 202);
    assert_eq!(send_as_another(None).await, 429);
}
