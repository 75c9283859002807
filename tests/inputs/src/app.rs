//! A policy in front of a handler, and what a request is charged on.

use lambda_http::http::request::Parts;
use lambda_http::tower::{Layer, ServiceExt};
use lambda_http::{Body, Request, Response, service_fn};
use std::convert::Infallible;
use std::sync::Arc;
use tollgate::http::TollgateLayer;
use tollgate::testing::{ManualClock, MemoryStore};
use tollgate::{Decision, Key, Limiter, LivePolicy, Policy, Timestamp};

/// The outcome of a future that waits for nobody.
pub(crate) fn run<F: Future>(future: F) -> F::Output {
    thread_local! {
        static RUNTIME: tokio::runtime::Runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    }
    RUNTIME.with(|runtime| runtime.block_on(future))
}

/// A limiter on an empty table, and that table.
pub(crate) fn limiter() -> (Arc<Limiter<MemoryStore>>, MemoryStore) {
    let store = MemoryStore::new(ManualClock::new(Timestamp::from_secs(1_767_225_600)));
    (Arc::new(Limiter::new(store.clone())), store)
}

/// A policy whose only limit counts all requests by `dimension`, and never denies.
pub(crate) fn counting(identity: &str, dimension: &str) -> LivePolicy {
    let text = format!(
        "version = 1\n[identity]\n{identity}\n[limits.a]\nkey = [\"{dimension}\"]\nrate = \"1000/h\"\n\
         [[routes]]\nmatch = \"* /counted\"\ncharge = [\"a\"]\n"
    );
    Policy::parse(&text).expect(&text).policy.into()
}

/// The value that a request is counted by; `None` if it has none.
pub(crate) fn counted_by(policy: &LivePolicy, parts: Parts, body: Body) -> Option<String> {
    let handler = service_fn(async |request: Request| {
        let decision = request.extensions().get::<Decision>().expect("the route is charged");
        let key: Key = decision.limits.first().expect("one limit").key.clone();
        Ok::<_, Infallible>(Response::builder().extension(key).body(Body::Empty).expect("a response"))
    });
    let service = TollgateLayer::new(policy.clone(), limiter().0).layer(handler);
    let Ok(response) = run(service.oneshot(Request::from_parts(parts, body)));
    let key = response.extensions().get::<Key>().expect("the request was admitted");
    let (name, value) = key.dimensions().next().expect("a dimension");
    (!name.starts_with('?')).then(|| value.to_owned())
}
