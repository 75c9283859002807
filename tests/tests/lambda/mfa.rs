//! Second factors as they are deployed: the function, and KMS at the wire.

use crate::aws::{Aws, Fault};
use crate::events::{Sender, unsigned};
use crate::harness::{Function, MFA, Response, TABLE, TaskRoot, endpoint, unique};
use crate::init::failure_of;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tollgate::{Clock, SystemClock};
use totp_rs::Totp;

const POLICY: &str = "version = 1\n[identity]\nuser = 'claims.sub'\nsession = 'claims.origin_jti'\n[mfa]\nissuer = 'x'\n\
    [limits.factors]\nkey = ['user']\nrate = '1000/h'\n\
    [[routes]]\nmatch = 'POST /api/mfa/*'\ncharge = ['factors']\non_store_failure = 'closed'\n\
    [[routes]]\nmatch = 'GET /api/mfa/factors'\ncharge = ['factors']\non_store_failure = 'closed'\n";

const KEY: &str = "arn:aws:kms:us-east-1:123456789012:key/11111111-1111-1111-1111-111111111111";
const NEW: &str = "arn:aws:kms:us-east-1:123456789012:key/22222222-2222-2222-2222-222222222222";

/// A function whose new secrets are under that key.
async fn function(aws: &Aws, key: &str) -> Function {
    let table = endpoint().await;
    let variables = [
        ("AWS_ENDPOINT_URL", aws.url.as_str()),
        ("TOLLGATE_ENDPOINT_URL", table.as_str()),
        ("TOLLGATE_TABLE", TABLE),
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
        ("TOLLGATE_MFA_KEY_ARN", key),
        ("RUST_LOG", "debug"),
    ];
    Function::printing(MFA, TaskRoot::with_policy(POLICY), &variables).await
}

async fn post(function: &mut Function, user: &str, path: &str, body: &Value) -> Response {
    let mut event = unsigned(Sender::HttpApi, "POST", path, &body.to_string());
    let claims = json!({ "sub": user, "origin_jti": "s1", "auth_time": now().to_string() });
    event["requestContext"]["authorizer"] = json!({ "jwt": { "claims": claims, "scopes": null } });
    function.respond(&event).await
}

async fn verify(function: &mut Function, user: &str, code: &str) -> Response {
    post(function, user, "/api/mfa/verify", &json!({ "factor": "totp", "code": code })).await
}

fn now() -> u64 {
    SystemClock.now().as_secs()
}

/// An app of a new user's, whose present step is used.
async fn enrolled(function: &mut Function) -> (String, Totp) {
    let user = unique("alice");
    let begun = post(function, &user, "/api/mfa/totp/enroll", &Value::Null).await;
    assert_eq!(begun.status, 200, "{begun:?}");
    let app = Totp::from_url(begun.body["otpauth_uri"].as_str().unwrap()).unwrap();
    let code = json!({ "code": app.generate(now()).to_string() });
    let confirmed = post(function, &user, "/api/mfa/totp/confirm", &code).await;
    assert_eq!(confirmed.status, 200, "{confirmed:?}");
    (user, app)
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_sealed_by_kms_for_their_account_and_opened_by_every_process() {
    let aws = Aws::start().await;
    let (mut one, mut other) = (function(&aws, KEY).await, function(&aws, KEY).await);
    let (user, app) = enrolled(&mut one).await;
    let sealed = aws.asked("Encrypt").pop().unwrap();
    assert_eq!(sealed["KeyId"], KEY);
    assert_eq!(sealed["EncryptionContext"]["tollgate:factor"], "totp");
    let account = sealed["EncryptionContext"]["tollgate:account"].as_str().unwrap();
    assert!(!account.contains(&user) && account.len() == 43, "{account}");
    assert_eq!(sealed["Plaintext"], STANDARD.encode(app.secret().as_bytes()));
    let code = app.generate(now() + 30).to_string();
    assert_eq!(verify(&mut other, &user, &code).await.status, 200);
    assert_eq!(verify(&mut one, &user, &code).await.status, 401);
    assert_eq!(aws.asked("Decrypt").pop().unwrap()["EncryptionContext"], sealed["EncryptionContext"]);
    for printed in [one.printed(), other.printed()] {
        let base32 = app.secret().to_base32();
        for secret in [base32.as_str(), sealed["Plaintext"].as_str().unwrap(), &code] {
            assert!(!printed.contains(secret), "{secret} in {printed}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn while_kms_gives_no_answer_nothing_is_proved_and_no_try_is_counted() {
    let aws = Aws::start().await;
    let mut function = function(&aws, KEY).await;
    let (user, app) = enrolled(&mut function).await;
    let faults = [Fault::Lost, Fault::Status(400, "AccessDeniedException"), Fault::Status(500, "KMSInternalException")];
    for fault in faults {
        aws.fail("Decrypt", Some(fault));
        for _ in 0..3 {
            let refused = verify(&mut function, &user, &app.generate(now() + 30).to_string()).await;
            assert_eq!((refused.status, &refused.body["error"]), (503, &"mfa_unavailable".into()), "{fault:?}");
        }
    }
    aws.fail("Decrypt", None);
    let wrong = verify(&mut function, &user, "x").await;
    assert_eq!((wrong.status, &wrong.body["attempts_left"]), (401, &99.into()));
    assert_eq!(verify(&mut function, &user, &app.generate(now() + 30).to_string()).await.status, 200);
    aws.fail("Encrypt", Some(Fault::Status(400, "DisabledException")));
    let refused = post(&mut function, &unique("bob"), "/api/mfa/totp/enroll", &Value::Null).await;
    assert_eq!(refused.status, 503, "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_key_takes_over_while_factors_are_in_use() {
    let aws = Aws::start().await;
    let (mut before, mut after) = (function(&aws, KEY).await, function(&aws, NEW).await);
    let (user, app) = enrolled(&mut before).await;
    assert_eq!(verify(&mut after, &user, &app.generate(now() + 30).to_string()).await.status, 200);
    assert_eq!(aws.asked("Encrypt").pop().unwrap()["KeyId"], NEW, "sealed anew with the code that was right");
    assert_eq!(verify(&mut before, &user, "x").await.status, 401);
    assert_eq!(aws.asked("Decrypt").pop().unwrap()["KeyId"], NEW, "by the key that its text names");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_key_init_fails() {
    let url = endpoint().await;
    let table = [("TOLLGATE_TABLE", TABLE), ("TOLLGATE_ENDPOINT_URL", url.as_str())];
    let alias = ("TOLLGATE_MFA_KEY_ARN", "arn:aws:kms:us-east-1:123456789012:alias/factors");
    for more in [&[][..], &[alias]] {
        let (kind, message) = failure_of(MFA, TaskRoot::with_policy(POLICY), &[&table, more].concat()).await;
        assert!(kind == "Tollgate.Environment" && message.contains("TOLLGATE_MFA_KEY_ARN"), "{kind}: {message}");
    }
}

/// The same with the queue of messages and the profiles.
async fn telling(aws: &Aws) -> Function {
    let table = endpoint().await;
    let policy = POLICY.replace(
        "[limits.factors]",
        "cancel_url = 'https://x.org/#{token}'\n[otp]\npurposes = ['login']\ncountries = ['RO']\n[limits.factors]",
    );
    let variables = [
        ("AWS_ENDPOINT_URL", aws.url.as_str()),
        ("TOLLGATE_ENDPOINT_URL", table.as_str()),
        ("TOLLGATE_TABLE", TABLE),
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
        ("TOLLGATE_MFA_KEY_ARN", KEY),
        ("TOLLGATE_KEY_SECRETS", "k1=AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"),
        ("TOLLGATE_OTP_QUEUE_URL", "http://127.0.0.1/queue"),
        ("TOLLGATE_USER_POOL_ID", "us-east-1_pool"),
        ("RUST_LOG", "debug"),
    ];
    Function::printing(MFA, TaskRoot::with_policy(&policy), &variables).await
}

#[tokio::test(flavor = "multi_thread")]
async fn no_factor_is_changed_while_the_queue_takes_no_notice_and_what_it_takes_is_sealed() {
    let aws = Aws::start().await;
    let mut function = telling(&aws).await;
    let user = unique("alice");
    let of_both = [
        ("phone_number", "+40721234567"),
        ("phone_number_verified", "true"),
        ("email", "alice@x.org"),
        ("email_verified", "true"),
    ];
    aws.add(&user, &[&[("sub", user.as_str())], &of_both[..]].concat());
    let begun = post(&mut function, &user, "/api/mfa/totp/enroll", &Value::Null).await;
    let app = Totp::from_url(begun.body["otpauth_uri"].as_str().unwrap()).unwrap();
    let code = |at: u64| json!({ "code": app.generate(at).to_string() });
    for (operation, fault) in [
        ("SendMessage", Fault::Status(500, "InternalError")),
        ("AdminGetUser", Fault::Status(400, "TooManyRequestsException")),
    ] {
        aws.fail(operation, Some(fault));
        let refused = post(&mut function, &user, "/api/mfa/totp/confirm", &code(now())).await;
        assert_eq!((refused.status, &refused.body["error"]), (503, &"mfa_unavailable".into()), "{operation}");
        let none = verify(&mut function, &user, &app.generate(now() + 30).to_string()).await;
        assert_eq!(
            (none.status, &none.body["error"]),
            (409, &"not_enrolled".into()),
            "{operation}: nothing is changed"
        );
        aws.fail(operation, None);
    }
    let before = aws.queued().len();
    assert_eq!(post(&mut function, &user, "/api/mfa/totp/confirm", &code(now())).await.status, 200);
    let notices = aws.queued().split_off(before);
    assert_eq!(notices.len(), 2, "his number and his address");
    let printed = function.printed();
    for secret in ["721234567", "alice@x.org", "https://x.org/#"] {
        assert!(!printed.contains(secret) && notices.iter().all(|notice| !notice.contains(secret)), "{secret}");
    }
}
