//! Policies, and services that answer as AWS documents.

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tollgate::source::ReaderOptions;

/// A policy with one limit.
pub fn policy(revision: u64, rate: &str) -> String {
    format!("version = 1\nrevision = {revision}\n[limits.orders]\nkey = ['user']\nrate = '{rate}'\nburst = 5\n")
}

/// What a service is asked.
#[derive(Debug, Clone)]
pub struct Asked {
    pub method: Method,
    pub uri: Uri,
    pub headers: HeaderMap,
    pub body: Bytes,
}

type Answers = Arc<Mutex<VecDeque<Response>>>;
type Requests = Arc<Mutex<Vec<Asked>>>;

/// A service that gives the answers it was given, in order, and remembers what it was asked.
pub struct Service {
    pub url: String,
    answers: Answers,
    requests: Requests,
}

impl Service {
    pub async fn start() -> Self {
        async fn answer(State((answers, requests)): State<(Answers, Requests)>, asked: Asked) -> Response {
            requests.lock().unwrap().push(asked);
            let next = answers.lock().unwrap().pop_front();
            next.unwrap_or_else(|| (StatusCode::IM_A_TEAPOT, "the test did not expect this request").into_response())
        }
        let (answers, requests) = (Answers::default(), Requests::default());
        let state = (answers.clone(), requests.clone());
        let router = Router::new().fallback(move |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| {
            answer(State(state.clone()), Asked { method, uri, headers, body })
        });
        Self { url: serve(router).await, answers, requests }
    }

    pub fn then(&self, answer: impl IntoResponse) -> &Self {
        self.answers.lock().unwrap().push_back(answer.into_response());
        self
    }

    /// What was asked since the last call.
    pub fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.requests.lock().unwrap())
    }
}

pub async fn serve(router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

/// Nobody should fail for the slowness of a shared machine.
pub fn at(url: &str) -> ReaderOptions {
    ReaderOptions::default().endpoint_url(url).timeout(Duration::from_secs(60))
}

/// An answer of `GetParameter`.
pub fn parameter(value: &str, version: u64) -> String {
    serde_json::json!({ "Parameter": { "Name": "/tollgate/policy", "Type": "String", "Value": value,
        "Version": version, "LastModifiedDate": 1.369e9, "ARN": "arn", "DataType": "text" } })
    .to_string()
}
