//! A sample API behind the layer: the routes of the sample policy (`infra/tollgate.toml`) that are of no other function.
//!
//! | module | what it is |
//! | --- | --- |
//! | `login` | `POST /api/auth/login`, and the cookie of a known device |
//! | [`passwords`] | who has which password |
//!
//! The handlers know nothing of limits and step-up: who is asking, what it costs, whether he has proved who he is, and how a
//! refusal is spoken is all the layer's.
//! Invariant: what is served here is what the policy names; anything else is 404 or 405.

mod login;
pub mod passwords;

use crate::login::Login;
use crate::passwords::{OneForAll, Passwords};
use lambda_http::http::{Method, StatusCode, header};
use lambda_http::tower::{Layer, ServiceExt};
use lambda_http::{Body, Error, Request, Response, service_fn};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::sync::Arc;
use tollgate::http::{Facts, TollgateLayer, event};
use tollgate::lambda::Function;
use tollgate::mfa::Sessions;
use tollgate::{Limiter, LivePolicy, Store};

/// Runs the function until its sandbox ends.
pub fn main() -> ExitCode {
    tollgate::lambda::main(serve)
}

async fn serve(function: Function) -> Result<(), Error> {
    let passwords = OneForAll::from_environment().await?;
    let api = Api::new(function.live().clone(), Arc::clone(&function.limiter), passwords);
    let api = api.with_sessions(function.sessions());
    let (function, api) = (&function, &api);
    let answer = move |request: Request| async move {
        // Looks for a newer policy if it is time; the layer asks for the one in force.
        let _invocation = function.begin().await;
        api.call(request).await
    };
    event::run(answer).await
}

/// The handlers behind the layer.
#[derive(Debug)]
pub struct Api<S> {
    layer: TollgateLayer<S>,
    handlers: Arc<Handlers<S>>,
}

#[derive(Debug)]
struct Handlers<S> {
    policy: LivePolicy,
    limiter: Arc<Limiter<S>>,
    login: Login,
}

impl<S: Store + 'static> Api<S> {
    /// The API, limited by `policy` on `limiter`, for whoever has a password of `passwords`.
    #[must_use]
    pub fn new(policy: LivePolicy, limiter: Arc<Limiter<S>>, passwords: impl Passwords + 'static) -> Self {
        let login = Login::new(Box::new(passwords));
        let layer = TollgateLayer::new(policy.clone(), Arc::clone(&limiter));
        Self { layer, handlers: Arc::new(Handlers { policy, limiter, login }) }
    }

    /// The same, with what is known of how callers have proved who they are; nobody passes a route with `step_up` without.
    #[must_use]
    pub fn with_sessions(self, sessions: Arc<Sessions>) -> Self {
        Self { layer: self.layer.with_sessions(sessions), ..self }
    }

    /// How many passwords were compared.
    #[must_use]
    pub fn passwords_tried(&self) -> u64 {
        self.handlers.login.tried()
    }

    /// Answers one request.
    ///
    /// # Errors
    ///
    /// A response that cannot be built.
    pub async fn call(&self, mut request: Request) -> Result<Response<Body>, Error> {
        // Read once, for the layer and for the handlers.
        let facts = Facts::of(request.extensions()).into_owned();
        request.extensions_mut().insert(facts);
        let handlers = Arc::clone(&self.handlers);
        let handle = service_fn(move |request: Request| {
            let handlers = Arc::clone(&handlers);
            async move { handlers.handle(&request) }
        });
        // Boxed, since the SDK's futures nest deeper than the compiler follows by itself.
        Box::pin(self.layer.layer(handle).oneshot(request)).await
    }
}

impl<S: Store> Handlers<S> {
    fn handle(&self, request: &Request) -> Result<Response<Body>, Error> {
        // The path without the stage that API Gateway puts in front of it.
        let facts = Facts::of(request.extensions());
        let (method, path) = (request.method(), facts.path().unwrap_or(request.uri().path()));
        let (status, body) = match (method, path) {
            (&Method::POST, "/api/auth/login") => {
                return self.login.answer(request, &self.policy.current(), self.limiter.store().moment().now);
            }
            (&Method::POST, "/api/orders") => (StatusCode::CREATED, json!({ "status": "accepted" })),
            (&Method::GET, "/api/partner/items") => (StatusCode::OK, json!({ "items": [] })),
            (&Method::GET, "/api/search") => (StatusCode::OK, json!({ "results": [] })),
            (&Method::PUT, "/api/payout-account") => (StatusCode::OK, json!({ "status": "changed" })),
            (&Method::POST, "/api/keys") => (StatusCode::CREATED, json!({ "status": "created" })),
            (&Method::POST, "/api/export") => (StatusCode::ACCEPTED, json!({ "export": "started" })),
            (&Method::GET, "/api/export") => (StatusCode::OK, json!({ "export": "ready" })),
            (&Method::POST, "/webhooks/payments") => (StatusCode::OK, json!({ "received": true })),
            (&Method::GET, "/healthz") => (StatusCode::OK, json!({ "status": "ok" })),
            (method, path) => match allowed(path) {
                Some(allow) if *method == Method::OPTIONS => return preflight(allow),
                Some(allow) => return refused(allow),
                None => (StatusCode::NOT_FOUND, json!({ "error": "not_found", "message": "there is nothing here" })),
            },
        };
        respond(status, &body)
    }
}

/// The methods that a path takes.
fn allowed(path: &str) -> Option<&'static str> {
    match path {
        "/api/auth/login" | "/api/keys" | "/api/orders" | "/webhooks/payments" => Some("POST"),
        "/api/partner/items" | "/api/search" | "/healthz" => Some("GET"),
        "/api/export" => Some("GET, POST"),
        "/api/payout-account" => Some("PUT"),
        _ => None,
    }
}

/// What a browser asks before it sends a request from another origin.
fn preflight(allow: &str) -> Result<Response<Body>, Error> {
    let response = Response::builder().status(StatusCode::NO_CONTENT).header(header::ALLOW, allow);
    Ok(response.header(header::ACCESS_CONTROL_ALLOW_METHODS, allow).body(Body::Empty)?)
}

fn refused(allow: &str) -> Result<Response<Body>, Error> {
    let body = json!({ "error": "method_not_allowed", "message": format!("this path takes {allow}") });
    let mut response = respond(StatusCode::METHOD_NOT_ALLOWED, &body)?;
    response.headers_mut().insert(header::ALLOW, allow.parse()?);
    Ok(response)
}

fn respond(status: StatusCode, body: &Value) -> Result<Response<Body>, Error> {
    let response = Response::builder().status(status).header(header::CONTENT_TYPE, "application/json");
    Ok(response.body(Body::from(body.to_string()))?)
}
