//! Logins as Lambda runs them: nobody gets in without a configured password, and a known device's cookie comes back in the
//! way of each gateway.

use crate::events::{SENDERS, Sender, load_balancer, unsigned};
use crate::harness::{Function, Response, SAMPLE_API, TaskRoot, unique};
use axum::Router;
use axum::routing::post;
use serde_json::{Value, json};

const PATH: &str = "/api/auth/login";

/// An SSM that has one parameter; the address of it.
async fn ssm(name: &'static str, value: &'static str) -> String {
    let answer = async move |body: String| {
        let asked: Value = serde_json::from_str(&body).unwrap();
        assert_eq!((&asked["Name"], &asked["WithDecryption"]), (&name.into(), &true.into()));
        json!({ "Parameter": { "Name": name, "Type": "SecureString", "Value": value, "Version": 1 } }).to_string()
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let app = Router::new().route("/", post(answer));
    tokio::spawn(async { axum::serve(listener, app).await });
    address
}

async fn with_a_password() -> Function {
    let ssm = ssm("/sample/password", "correct horse\n").await;
    let variables = [
        ("SAMPLE_API_PASSWORD_PARAMETER", "/sample/password"),
        ("AWS_ENDPOINT_URL_SSM", &ssm),
        ("AWS_ACCESS_KEY_ID", "a"),
        ("AWS_SECRET_ACCESS_KEY", "b"),
        ("AWS_REGION", "us-east-1"),
    ];
    Function::start_with(SAMPLE_API, TaskRoot::with_sample_policy(), &variables).await
}

fn body(account: &str, password: &str) -> String {
    json!({ "username": account, "password": password }).to_string()
}

/// An address that no other test guesses from.
fn address() -> String {
    let n: u64 = u64::from_str_radix(&unique("")[1..], 16).unwrap();
    format!("10.{}.{}.{}", n & 255, n >> 8 & 255, n >> 16 & 255)
}

/// A login through `sender`, or a load balancer, with cookies as each hands them over.
fn login(sender: Option<Sender>, from: &str, body: &str, cookies: &[&str]) -> Value {
    let mut event =
        sender.map_or_else(|| load_balancer("POST", PATH, body), |sender| unsigned(sender, "POST", PATH, body));
    match sender {
        Some(Sender::RestApi) => {
            event["requestContext"]["identity"]["sourceIp"] = from.into();
            event["headers"]["Cookie"] = cookies.join("; ").into();
            event["multiValueHeaders"]["Cookie"] = json!([cookies.join("; ")]);
        }
        Some(Sender::HttpApi | Sender::FunctionUrl) => {
            event["requestContext"]["http"]["sourceIp"] = from.into();
            event["cookies"] = cookies.into();
        }
        None => {
            event["headers"]["x-forwarded-for"] = from.into();
            event["headers"]["cookie"] = cookies.join("; ").into();
        }
    }
    event
}

fn is_wrong(answer: &Response) {
    assert_eq!((answer.status, &answer.body["error"]), (401, &"wrong_credentials".into()), "{answer:?}");
    assert!(answer.cookies().is_empty(), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_configured_password_nobody_gets_in() {
    let mut api = Function::start(SAMPLE_API, TaskRoot::with_sample_policy()).await;
    for password in ["correct horse", "", "password"] {
        let from = address();
        is_wrong(&api.respond(&login(Some(Sender::HttpApi), &from, &body(&unique("a@x.org"), password), &[])).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn on_every_gateway_the_owner_of_a_locked_account_gets_in_by_his_device() {
    let mut api = with_a_password().await;
    for sender in SENDERS.into_iter().map(Some).chain([None]) {
        let (account, eve) = (unique("Admin@x.org"), unique("eve@x.org"));
        let right = body(&account, "correct horse");
        let mut cookies = Vec::new();
        for body in [&right, &body(&eve, "correct horse")] {
            let entered = api.respond(&login(sender, &address(), body, &[])).await;
            assert_eq!((entered.status, &entered.body), (200, &json!({ "authenticated": true })), "{sender:?}");
            let [set] = entered.cookies()[..] else { panic!("one cookie: {entered:?}") };
            assert!(
                set.starts_with("tollgate-device=k1.") && set.ends_with("; Secure; HttpOnly; SameSite=Strict"),
                "{set}"
            );
            cookies.push(set.split(';').next().unwrap().to_owned());
        }
        let mut statuses = Vec::new();
        for _ in 0..6 {
            let guess = login(sender, &address(), &body(&account.to_lowercase(), "battery staple"), &[]);
            statuses.push(api.respond(&guess).await.status);
        }
        assert_eq!(statuses, [401, 401, 401, 401, 401, 429], "{sender:?}: the owner's own login is none of the five");
        let (mine, eves) = (cookies[0].as_str(), cookies[1].as_str());
        let forged = format!("{mine}A");
        for cookies in [&[][..], &[eves], &[&forged]] {
            assert_eq!(
                api.respond(&login(sender, &address(), &right, cookies)).await.status,
                429,
                "{sender:?} {cookies:?}"
            );
        }
        for cookies in [&[mine][..], &["a=b", eves, mine]] {
            assert_eq!(
                api.respond(&login(sender, &address(), &right, cookies)).await.status,
                200,
                "{sender:?} {cookies:?}"
            );
        }
        if matches!(sender, Some(Sender::HttpApi | Sender::FunctionUrl)) {
            let planted = login(sender, &address(), &right, &["x=\u{e9}", mine]);
            assert_eq!(api.respond(&planted).await.status, 200, "a cookie that no header can carry");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_no_login_is_400() {
    let mut api = with_a_password().await;
    let account = unique("a@x.org");
    for body in ["{}", "[]", &json!({ "username": account }).to_string()] {
        let answer = api.respond(&login(Some(Sender::RestApi), &address(), body, &[])).await;
        // Others of these tests name no account either, and all who do not share a bucket.
        assert!(matches!(answer.status, 400 | 429), "{body}: {answer:?}");
    }
    let form = format!("username={account}&password=correct+horse");
    assert_eq!(api.respond(&login(Some(Sender::FunctionUrl), &address(), &form, &[])).await.status, 200);
}
