//! An application behind the layer, and a store that can be told to fail.

use axum::Router;
use axum::body::Body;
use axum::routing::{MethodRouter, any};
use http::{HeaderMap, Request, Response, StatusCode};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tollgate::http::{Facts, TollgateLayer};
use tollgate::testing::{ManualClock, MemoryStore};
use tollgate::{KeySecrets, Limiter, Meter, Policy, Store, Timestamp};
use tollgate_core::take::Moment;
use tollgate_core::{Item, ItemKey, Write};
use tollgate_dynamodb::{Error, Result, Transacted, Written};
use tower::ServiceExt;

pub(crate) const SAMPLE: &str = include_str!("../../../../infra/tollgate.toml");

/// Makes the error of a failing store.
pub(crate) type Failure = fn() -> Error;

/// The store in memory, unless it is told to fail.
#[derive(Debug, Clone)]
pub(crate) struct Faulty {
    pub(crate) memory: MemoryStore,
    pub(crate) failure: Arc<Mutex<Option<Failure>>>,
    written: Arc<Mutex<Vec<String>>>,
}

impl Faulty {
    /// The keys that were written, each as often as it was.
    pub(crate) fn keys(&self) -> Vec<String> {
        self.written.lock().expect("a lock").clone()
    }

    fn check(&self) -> Result<()> {
        self.failure.lock().expect("a lock").map_or(Ok(()), |error| Err(error()))
    }
}

impl Store for Faulty {
    fn moment(&self) -> Moment {
        self.memory.moment()
    }

    fn meter(&self) -> &dyn Meter {
        self.memory.meter()
    }

    async fn read(&self, key: &ItemKey, limits: &[&tollgate_core::LimitName]) -> Result<Option<Item>> {
        self.check()?;
        self.memory.read(key, limits).await
    }

    async fn write(&self, key: &ItemKey, write: &Write) -> Result<Written> {
        self.check()?;
        self.written.lock().expect("a lock").push(key.key.to_string());
        self.memory.write(key, write).await
    }

    async fn transact(&self, writes: &[(&ItemKey, &Write)]) -> Result<Transacted> {
        self.check()?;
        self.memory.transact(writes).await
    }
}

/// An application of one handler, which answers 201 with what it knows of the decision.
pub(crate) struct App {
    pub(crate) policy: Policy,
    pub(crate) router: Router,
    pub(crate) store: Faulty,
    pub(crate) clock: ManualClock,
}

impl App {
    pub(crate) fn new(policy: &str) -> Self {
        Self::under(policy, KeySecrets::default())
    }

    /// The same with secrets.
    pub(crate) fn under(policy: &str, secrets: KeySecrets) -> Self {
        let handler = any(async |request: Request<Body>| {
            let decided = request.extensions().get::<tollgate::Decision>().is_some();
            (StatusCode::CREATED, format!("decided: {decided}"))
        });
        Self::of(policy, secrets, handler)
    }

    pub(crate) fn with_handler(policy: &str, handler: MethodRouter) -> Self {
        Self::of(policy, KeySecrets::default(), handler)
    }

    fn of(policy: &str, secrets: KeySecrets, handler: MethodRouter) -> Self {
        let policy = match Policy::parse(policy) {
            Ok(parsed) => parsed.policy.with_secrets(secrets),
            Err(findings) => panic!("{}", findings.render("policy")),
        };
        let clock = ManualClock::new(Timestamp::from_secs(1_767_225_600));
        let store =
            Faulty { memory: MemoryStore::new(clock.clone()), failure: Arc::default(), written: Arc::default() };
        let limiter = Limiter::new(store.clone()).with_deadline(Duration::from_secs(5));
        let router = Router::new().fallback(handler).layer(TollgateLayer::new(policy.clone(), Arc::new(limiter)));
        Self { policy, router, store, clock }
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Answered {
        let response = self.router.clone().oneshot(request).await.expect("infallible");
        Answered::of(response).await
    }

    /// A request of `user` on the default plan.
    pub(crate) async fn ask(&self, method: &str, path: &str, user: &str, headers: &[(&str, &str)]) -> Answered {
        self.send(request(method, path, &facts(&json!({ "sub": user })), headers)).await
    }

    /// A request once the user's tokens are spent.
    pub(crate) async fn ask_exhausted(&self, user: &str, headers: &[(&str, &str)]) -> Answered {
        for _ in 0..1000 {
            let answered = self.ask("POST", "/api/orders", user, headers).await;
            if answered.status != 201 {
                return answered;
            }
        }
        panic!("never denied")
    }

    pub(crate) fn fail_with(&self, error: Failure) {
        *self.store.failure.lock().expect("a lock") = Some(error);
    }
}

pub(crate) fn facts(claims: &Value) -> Facts {
    Facts::default().with_claims(claims.as_object().cloned().unwrap_or_default())
}

pub(crate) fn request(method: &str, path: &str, facts: &Facts, headers: &[(&str, &str)]) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.extension(facts.clone()).body(Body::empty()).expect("a request")
}

/// A response with its body read.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
    pub(crate) bytes: Vec<u8>,
}

impl Answered {
    async fn of(response: Response<Body>) -> Self {
        let (parts, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, 1 << 20).await.expect("a body").to_vec();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Self { status: parts.status.as_u16(), headers: parts.headers, text, bytes }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("text"))
    }

    /// All lines of a header.
    pub(crate) fn list(&self, name: &str) -> String {
        let lines = self.headers.get_all(name).iter().map(|value| value.to_str().expect("text"));
        lines.collect::<Vec<_>>().join(", ")
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).expect("JSON")
    }
}
