//! AppConfig. The emulator that the other services are tested on lacks its data plane, so this is a server that keeps
//! its documented rules (AppConfig Data API 2021-11-11): a token is good for one call, and a session is sent a version
//! once.

use crate::harness::{at, policy, serve};
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tollgate::source::{PolicySource, Reader};

#[derive(Default)]
struct Deployed {
    text: String,
    version: u64,
    /// The token that is good for the next call, and the version that its session was sent.
    tokens: HashMap<String, u64>,
    issued: u64,
    sessions: Vec<Value>,
}

impl Deployed {
    fn issue(&mut self, sent: u64) -> String {
        self.issued += 1;
        // Tokens have characters that a query must not carry as they are.
        let token = format!("t+/={}&", self.issued);
        self.tokens.insert(token.clone(), sent);
        token
    }
}

type AppConfig = Arc<Mutex<Deployed>>;

async fn start_session(State(app): State<AppConfig>, Json(body): Json<Value>) -> Response {
    let mut app = app.lock().unwrap();
    app.sessions.push(body);
    let token = app.issue(0);
    (StatusCode::CREATED, Json(json!({ "InitialConfigurationToken": token }))).into_response()
}

async fn latest(State(app): State<AppConfig>, uri: Uri) -> Response {
    let mut app = app.lock().unwrap();
    let token = uri.query().unwrap().strip_prefix("configuration_token=").unwrap();
    let token = percent_encoding::percent_decode_str(token).decode_utf8().unwrap();
    let Some(sent) = app.tokens.remove(&*token) else {
        let error = [("x-amzn-errortype", "BadRequestException")];
        return (StatusCode::BAD_REQUEST, error, r#"{"Message":"Token has expired"}"#).into_response();
    };
    let version = app.version;
    let token = app.issue(version);
    let is_new = version != sent;
    let headers = [
        ("next-poll-configuration-token", token),
        ("next-poll-interval-in-seconds", "15".to_owned()),
        ("version-label", if is_new { format!("v{version}") } else { String::new() }),
        ("content-type", "application/octet-stream".to_owned()),
    ];
    (headers, if is_new { app.text.clone() } else { String::new() }).into_response()
}

async fn app_config() -> (AppConfig, Reader) {
    let app = AppConfig::default();
    let router =
        Router::new().route("/configurationsessions", post(start_session)).route("/configuration", get(latest));
    let url = serve(router.with_state(app.clone())).await;
    let source: PolicySource = "appconfig://app/prod/limits".parse().unwrap();
    (app, Reader::open(source, &at(&url)).await.unwrap())
}

fn deploy(app: &AppConfig, text: &str) {
    let mut app = app.lock().unwrap();
    app.text = text.to_owned();
    app.version += 1;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_sent_each_version_once() {
    let (app, mut reader) = app_config().await;
    deploy(&app, &policy(1, "5/s"));
    let first = reader.load().await.unwrap();
    assert_eq!((first.text, first.version.as_deref()), (Some(policy(1, "5/s")), Some("v1")));
    assert_eq!(first.poll_after, Some(Duration::from_secs(15)));
    assert_eq!(reader.load().await.unwrap().text, None);
    deploy(&app, &policy(2, "9/s"));
    assert_eq!(reader.load().await.unwrap().text, Some(policy(2, "9/s")));
    let sessions = app.lock().unwrap().sessions.clone();
    assert_eq!(
        sessions,
        [json!({ "ApplicationIdentifier": "app", "EnvironmentIdentifier": "prod",
            "ConfigurationProfileIdentifier": "limits", "RequiredMinimumPollIntervalInSeconds": 15 })]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_ended_is_begun_anew_at_the_next_load() {
    let (app, mut reader) = app_config().await;
    deploy(&app, &policy(1, "5/s"));
    reader.load().await.unwrap();
    app.lock().unwrap().tokens.clear();
    let error = reader.load().await.unwrap_err();
    assert!(error.to_string().contains("Token has expired"), "{error}");
    assert_eq!(reader.load().await.unwrap().text, Some(policy(1, "5/s")), "a new session is sent everything");
    assert_eq!(app.lock().unwrap().sessions.len(), 2);
}
