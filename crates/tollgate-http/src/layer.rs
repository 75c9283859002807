//! The tower layer: a handler behind it sees only requests that are admitted, with their bodies whole.
//!
//! Invariants: what was charged is settled before the response goes out; readiness is the inner service's, and it is asked again right before the inner call, so that nothing is
//! called that is not ready.

use crate::body::Peek;
use crate::gate::{Admitted, Gate, Verdict};
use http::{Request, Response, StatusCode};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tollgate_dynamodb::{Limiter, Store};
use tollgate_mfa::Sessions;
use tollgate_policy::LivePolicy;
use tower_layer::Layer;
use tower_service::Service;

/// Puts a policy in front of a service.
#[derive(Debug)]
pub struct TollgateLayer<S>(Gate<S>);

impl<S: Store> TollgateLayer<S> {
    /// A layer that decides by the policy in force, on `limiter` and within its deadline.
    #[must_use]
    pub fn new(policy: impl Into<LivePolicy>, limiter: Arc<Limiter<S>>) -> Self {
        Self(Gate { policy: policy.into(), limiter, sessions: None })
    }

    /// The same, with what is known of how callers have proved who they are: for routes with `step_up`, which nobody passes without.
    #[must_use]
    pub fn with_sessions(mut self, sessions: Arc<Sessions>) -> Self {
        self.0.sessions = Some(sessions);
        self
    }
}

impl<S> Clone for TollgateLayer<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<I, S> Layer<I> for TollgateLayer<S> {
    type Service = Tollgate<I, S>;

    fn layer(&self, inner: I) -> Self::Service {
        Tollgate { inner, gate: self.0.clone() }
    }
}

/// A service behind a policy: see [`TollgateLayer`].
///
/// The handler finds the [`Decision`](tollgate_core::Decision) in the request's extensions; limits that the call passed
/// because the store gave no answer are in its `unasked`. It is not there where the request is not limited. Where the route says
/// `settle_within`, it finds [`Costs`](crate::Costs), too. What the answer changes (`count`, `refund_on`) is settled before it goes
/// out: one more write for each key, of those limits alone.
#[derive(Debug)]
pub struct Tollgate<I, S> {
    inner: I,
    gate: Gate<S>,
}

impl<I: Clone, S> Clone for Tollgate<I, S> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), gate: self.gate.clone() }
    }
}

impl<I, S, B, R> Service<Request<B>> for Tollgate<I, S>
where
    I: Service<Request<B>, Response = Response<R>> + Clone + Send + 'static,
    I::Future: Send,
    I::Error: Send,
    S: Store + 'static,
    B: Peek + Send + 'static,
    R: From<String> + Send + 'static,
{
    type Response = Response<R>;
    type Error = I::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // The one that was polled goes with the request; a clone, which was not, takes its place.
        let next = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, next);
        Box::pin(respond(self.gate.clone(), inner, request))
    }
}

async fn respond<I, S, B, R>(gate: Gate<S>, mut inner: I, request: Request<B>) -> Result<Response<R>, I::Error>
where
    I: Service<Request<B>, Response = Response<R>>,
    S: Store,
    B: Peek,
    R: From<String>,
{
    let (mut parts, mut body) = request.into_parts();
    let (additions, unsettled) = match gate.ask(&parts, &mut body).await {
        Verdict::Refused(answer) => return Ok(answer.into_response()),
        Verdict::Unlimited => (None, None),
        Verdict::Admitted(admitted) => {
            let Admitted { decision, additions, unsettled } = *admitted;
            parts.extensions.insert(decision);
            if let Some(costs) = unsettled.as_ref().and_then(|unsettled| unsettled.costs.clone()) {
                parts.extensions.insert(costs);
            }
            (Some(additions), unsettled)
        }
    };
    let mut answer = match poll_fn(|cx| inner.poll_ready(cx)).await {
        Ok(()) => inner.call(Request::from_parts(parts, body)).await,
        Err(error) => Err(error),
    };
    let additions = match (unsettled, additions) {
        (Some(unsettled), Some(told)) => {
            // Whoever gets no response sees a server that failed.
            let status = answer.as_ref().map_or(StatusCode::INTERNAL_SERVER_ERROR, Response::status);
            Some(unsettled.settle(&gate.limiter, status, told).await)
        }
        (_, additions) => additions,
    };
    if let (Ok(response), Some(additions)) = (&mut answer, additions) {
        additions.add_to(response.headers_mut());
    }
    answer
}
