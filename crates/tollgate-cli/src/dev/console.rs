//! What the console asks for besides the routes that everybody has: figures, news, and what the table remembers of a key.
//!
//! Invariant: nothing here is counted: looking at the server changes no figure of it.

use super::Dev;
use super::feed::Told;
use super::routes::{Shared, problem};
use crate::error::CliError;
use crate::inspect;
use crate::key::Subject;
use axum::Json;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream::{Stream, unfold};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tollgate::Store;

/// How long is waited for news before the figures are told anyway: clock and breaker move by themselves.
const QUIET: Duration = Duration::from_secs(1);

/// How long is waited after news, so that much of it is told at once.
const PAUSE: Duration = Duration::from_millis(100);

/// What the table has to show an item; longer than that, and it is as good as gone.
const PATIENCE: Duration = Duration::from_secs(1);

/// `GET /dev/stats`.
pub(super) async fn stats(State(dev): Shared) -> Response {
    Json(figures(&dev)).into_response()
}

/// What was counted since the server started, and how it stands now.
fn figures(dev: &Dev) -> Value {
    let store = dev.limiter.store();
    let mut figures = json!({
        "dynamodb_endpoint": dev.endpoint,
        "table": store.table(),
        "clock": if dev.manual.is_some() { "manual" } else { "system" },
        "now_ms": store.moment().now.as_millis(),
        "passwords_tried": dev.api.passwords_tried(),
        "breaker": dev.limiter.breaker().as_str(),
        "fault": dev.faults.current(),
    });
    let parts = [serde_json::to_value(dev.counters.counts()), serde_json::to_value(dev.feed.sums())];
    if let Value::Object(figures) = &mut figures {
        figures.extend(
            parts
                .into_iter()
                .flatten()
                .filter_map(|part| match part {
                    Value::Object(part) => Some(part),
                    _ => None,
                })
                .flatten(),
        );
    }
    figures
}

/// Where somebody left off.
#[derive(Debug, Deserialize)]
pub(super) struct From {
    #[serde(default)]
    after: u64,
}

/// What is told at once.
#[derive(Serialize)]
struct Message<'m> {
    stats: &'m Value,
    missed: u64,
    requests: &'m [Told],
}

/// `GET /dev/events`: news and figures as server-sent events, from `?after=` on, or where a browser that connects again left off.
pub(super) async fn events(State(dev): Shared, Query(from): Query<From>, headers: HeaderMap) -> Response {
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok());
    Sse::new(told(dev, last.unwrap_or(from.after))).into_response()
}

fn told(dev: Arc<Dev>, cursor: u64) -> impl Stream<Item = Result<Event, Infallible>> {
    let heard = dev.feed.listen();
    unfold((dev, heard, cursor, true), async |(dev, mut heard, cursor, is_first)| {
        if !is_first {
            wait(&mut heard, cursor).await;
        }
        let news = dev.feed.since(cursor);
        let message = Message { stats: &figures(&dev), missed: news.missed, requests: &news.requests };
        let event = Event::default().id(news.cursor.to_string()).json_data(message).ok()?;
        Some((Ok(event), (dev, heard, news.cursor, false)))
    })
}

/// Waits for a request after `cursor`, or until it has been quiet for long enough.
async fn wait(heard: &mut watch::Receiver<u64>, cursor: u64) {
    if timeout(QUIET, heard.wait_for(|last| *last > cursor)).await.is_ok() {
        sleep(PAUSE).await;
    }
}

/// Whose items.
#[derive(Debug, Deserialize)]
pub(super) struct Whose {
    key: String,
}

/// `GET /dev/items?key=user:alice`: what `tollgate inspect` tells.
pub(super) async fn items(State(dev): Shared, Query(whose): Query<Whose>) -> Response {
    let policy = dev.policy.current();
    let subject = whose.key.parse().map_err(CliError::from);
    let subject = match subject.and_then(|key| Subject::under((*policy).clone(), key)) {
        Ok(subject) => subject,
        Err(error) => return problem(StatusCode::BAD_REQUEST, &error.to_string()),
    };
    match timeout(PATIENCE, inspect::of(&subject, &dev.looking, policy.secrets())).await {
        Ok(Ok(inspected)) => Json(inspected).into_response(),
        Ok(Err(error)) => problem(StatusCode::SERVICE_UNAVAILABLE, &error.to_string()),
        Err(_) => problem(StatusCode::SERVICE_UNAVAILABLE, "the table gives no answer"),
    }
}
