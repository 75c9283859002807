//! An axum service behind a policy, in a container: App Runner, ECS, or whatever else sets `PORT` and sends SIGTERM.
//!
//! Invariant: it listens when its connection to the table is warm, and ends when what it has begun is answered.
//!
//! | variable | value | default |
//! | --- | --- | --- |
//! | `PORT` | where it listens | 8080 |
//! | `TOLLGATE_TABLE` | the DynamoDB table | `tollgate` |
//! | `TOLLGATE_POLICY` | a file, `ssm:`, `secretsmanager:`, `s3://` or `appconfig://` | `tollgate.toml` |
//! | `TOLLGATE_KEY_SECRETS`, or `…_PARAMETER`, or `…_SECRET` | what personal values are hashed under | none |
//! | `TOLLGATE_ENDPOINT_URL` | another DynamoDB endpoint than the Region's | none |

use axum::Router;
use axum::extract::Extension;
use axum::http::StatusCode;
use axum::routing::{get, post};
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{sleep, timeout};
use tollgate::denials::Denials;
use tollgate::http::TollgateLayer;
use tollgate::source::{PolicySource, ReaderOptions, RefreshOptions, Refresher, SecretsSource};
use tollgate::{Connection, Decision, DynamoStore, Limiter, SystemClock, connect};

/// What the first request to the table may take. Without an answer the service starts all the same, and each decision is made by
/// `on_store_failure`: an outage of the table must not keep new instances away.
const WARM_UP: Duration = Duration::from_secs(5);

/// How often it is looked whether the policy is old enough to ask for a newer one.
const LOOK: Duration = Duration::from_secs(5);

#[tokio::main]
async fn main() -> ExitCode {
    tollgate::logs::init();
    match serve().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(%error, "the service cannot run");
            ExitCode::FAILURE
        }
    }
}

async fn serve() -> Result<(), Box<dyn Error>> {
    let port = variable("PORT").unwrap_or_else(|| "8080".to_owned());
    let port: u16 = port.parse().map_err(|_| format!("PORT is {port:?}; give it a number from 0 to 65535"))?;
    let secrets = SecretsSource::from_lookup(variable)?.read(&ReaderOptions::default()).await?;
    let meter = Arc::new(Denials::new(secrets.clone())); // a line in the log for each denial
    let policy: PolicySource = variable("TOLLGATE_POLICY").unwrap_or_else(|| "tollgate.toml".to_owned()).parse()?;
    let refresher = Refresher::start(policy, meter.clone(), RefreshOptions::default().secrets(secrets)).await?;

    let mut connection = Connection::from_environment();
    connection.endpoint_url = variable("TOLLGATE_ENDPOINT_URL");
    let table = variable("TOLLGATE_TABLE").unwrap_or_else(|| "tollgate".to_owned());
    let store = DynamoStore::new(&connect(&connection).await?, &table, Arc::new(SystemClock), meter);
    match timeout(WARM_UP, store.warm_up()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, table, "the table cannot be reached"),
        Err(_) => tracing::warn!(table, "the table gives no answer"),
    }

    let layer = TollgateLayer::new(refresher.live().clone(), Arc::new(Limiter::new(store)));
    let app = Router::new().route("/healthz", get(async || "ok\n")).route("/api/orders", post(order)).layer(layer);

    let listener = TcpListener::bind(("0.0.0.0", port)).await?;
    tokio::spawn(refresh(refresher));
    let mut stop = signal(SignalKind::terminate())?;
    let stopped = async move {
        stop.recv().await;
    };
    Ok(axum::serve(listener, app).with_graceful_shutdown(stopped).await?)
}

/// The layer has charged the call; what is left is in the request's extensions.
async fn order(Extension(decision): Extension<Decision>, order: String) -> (StatusCode, String) {
    let left = decision.limits.first().map_or(0, |limit| limit.remaining);
    (StatusCode::CREATED, format!("{} bytes ordered, {left} orders left\n", order.len()))
}

/// Newer policies come into force without a deployment.
async fn refresh(refresher: Refresher) {
    loop {
        sleep(LOOK).await;
        refresher.refresh_if_due().await;
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
