//! The HTTP side of the Runtime API.
//!
//! Invariant: an event is handed out once, and an answer is taken only for an event that was handed out.

use super::{Init, Outcome};
use crate::error::{CliError, Result};
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::net::TcpListener;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;
use tollgate::{Clock, SystemClock};

/// What a function may take to answer, as it is told: longer than anyone waits here.
const TIMEOUT_MS: u64 = 900_000;
/// The largest answer of a synchronous invocation (Lambda quotas).
const LARGEST_ANSWER: usize = 6 * 1024 * 1024;

/// An error that a function reported.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Reported {
    /// `errorType` of the report.
    pub error_type: String,
    /// `errorMessage` of the report.
    pub error_message: String,
}

/// A running API; it stops when dropped.
#[derive(Debug)]
pub(super) struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<Progress>,
    /// Something was queued, or init came to an end.
    changed: Notify,
}

#[derive(Debug, Default)]
struct Progress {
    submitted: u64,
    queue: VecDeque<(String, Vec<u8>)>,
    waiting: HashMap<String, oneshot::Sender<Outcome>>,
    ready: Option<Instant>,
    failed: Option<Reported>,
}

impl Progress {
    /// How init went, once it has come to an end.
    fn init(&self) -> Option<Init> {
        match &self.failed {
            Some(report) => Some(Init::Failed(report.clone())),
            None => self.ready.map(|_| Init::Ready),
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, Progress> {
        // A panic elsewhere leaves no update half done: each is one call on a collection.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, id: &str, outcome: Outcome) -> StatusCode {
        match self.state().waiting.remove(id) {
            // Whoever asked may be gone; the function has answered all the same.
            Some(asked) => {
                let _ = asked.send(outcome);
                StatusCode::ACCEPTED
            }
            None => StatusCode::BAD_REQUEST,
        }
    }
}

impl Server {
    pub(super) async fn start() -> Result<Self> {
        let failed = |e: std::io::Error| CliError::System(format!("cannot start a Lambda Runtime API: {e}"));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let shared = Arc::<Shared>::default();
        let router = Router::new()
            .route("/2018-06-01/runtime/invocation/next", get(next))
            .route("/2018-06-01/runtime/invocation/{id}/response", post(response))
            .route("/2018-06-01/runtime/invocation/{id}/error", post(error))
            .route("/2018-06-01/runtime/init/error", post(init_error))
            .layer(axum::extract::DefaultBodyLimit::max(LARGEST_ANSWER))
            .with_state(shared.clone());
        let task = tokio::spawn(async move {
            // Ends with an error only if the listener does, and then nobody gets answers, which is seen there.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { address, shared, task })
    }

    /// Host and port, as `AWS_LAMBDA_RUNTIME_API` has them.
    pub(super) fn address(&self) -> String {
        self.address.to_string()
    }

    pub(super) fn ready(&self) -> Option<Instant> {
        self.shared.state().ready
    }

    /// Queues an event; the future tells what became of it.
    pub(super) fn submit(&self, event: Vec<u8>) -> impl Future<Output = Result<Outcome>> + use<> {
        let (asked, outcome) = oneshot::channel();
        let mut state = self.shared.state();
        state.submitted += 1;
        let id = format!("00000000-0000-0000-0000-{:012}", state.submitted);
        state.waiting.insert(id.clone(), asked);
        state.queue.push_back((id, event));
        drop(state);
        self.shared.changed.notify_waiters();
        async move { outcome.await.map_err(|_| CliError::System("the Runtime API stopped".to_owned())) }
    }

    pub(super) async fn init(&self) -> Init {
        loop {
            let changed = self.shared.changed.notified();
            if let Some(init) = self.shared.state().init() {
                return init;
            }
            changed.await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The next event; waits for it as long as it takes.
async fn next(State(shared): State<Arc<Shared>>) -> Response {
    shared.state().ready.get_or_insert_with(Instant::now);
    shared.changed.notify_waiters();
    let (id, event) = loop {
        let changed = shared.changed.notified();
        let next = shared.state().queue.pop_front();
        if let Some(next) = next {
            break next;
        }
        changed.await;
    };
    let deadline = SystemClock.now().as_millis().saturating_add(TIMEOUT_MS).to_string();
    let headers = [
        ("content-type", "application/json"),
        ("lambda-runtime-aws-request-id", id.as_str()),
        ("lambda-runtime-deadline-ms", deadline.as_str()),
        ("lambda-runtime-invoked-function-arn", "arn:aws:lambda:us-east-1:123456789012:function:function"),
        ("lambda-runtime-trace-id", "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=0"),
    ];
    (headers, event).into_response()
}

async fn response(State(shared): State<Arc<Shared>>, Path(id): Path<String>, body: Bytes) -> StatusCode {
    shared.answer(&id, Outcome::Response(body.to_vec()))
}

async fn error(
    State(shared): State<Arc<Shared>>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> StatusCode {
    shared.answer(&id, Outcome::Error(reported(&headers, &body)))
}

async fn init_error(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> StatusCode {
    shared.state().failed = Some(reported(&headers, &body));
    shared.changed.notify_waiters();
    StatusCode::ACCEPTED
}

/// What a report says; its header speaks for a body that does not.
fn reported(headers: &HeaderMap, body: &[u8]) -> Reported {
    let mut report: Reported = serde_json::from_slice(body).unwrap_or_default();
    if report.error_type.is_empty() {
        let header = headers.get("lambda-runtime-function-error-type").and_then(|value| value.to_str().ok());
        report.error_type = header.unwrap_or_default().to_owned();
    }
    report
}
