//! A function's parts, ready for invocations.

use super::error::Result;
use super::settings::Settings;
use crate::source::{ReaderOptions, RefreshOptions, Refresher};
use crate::{Connection, Counters, DynamoStore, Limiter, Policy, SystemClock, connect};
use std::sync::Arc;
use std::time::Duration;
use tollgate_policy::LivePolicy;

/// What the first request may take in init, in which DNS, TCP, TLS and credentials are paid for. Lambda gives init 10 s.
const WARM_UP: Duration = Duration::from_secs(2);

/// What every invocation of a function uses: one a process.
#[derive(Debug)]
#[non_exhaustive]
pub struct Function {
    /// The limiter, on the table.
    pub limiter: Arc<Limiter<DynamoStore>>,
    /// What is counted.
    pub counters: Arc<Counters>,
    refresher: Refresher,
}

impl Function {
    /// Starts as the environment says.
    ///
    /// # Errors
    ///
    /// See [`InitError`](super::InitError); a table that gives no answer is logged instead.
    pub async fn from_environment() -> Result<Self> {
        Self::start(&Settings::from_environment()?).await
    }

    /// Starts with `settings`.
    ///
    /// # Errors
    ///
    /// As [`Function::from_environment`].
    pub async fn start(settings: &Settings) -> Result<Self> {
        let counters = Arc::new(Counters::default());
        let secrets = settings.key_secrets.read(&ReaderOptions::default()).await?;
        let refresh = RefreshOptions::default().every(settings.policy_refresh).secrets(secrets);
        let refresher = Refresher::start(settings.policy.clone(), counters.clone(), refresh).await?;
        let mut connection = Connection::from_environment();
        connection.endpoint_url.clone_from(&settings.endpoint_url);
        let connected = connect(&connection).await?;
        let store = DynamoStore::new(&connected, &settings.table, Arc::new(SystemClock), counters.clone());
        warm_up(&store).await;
        let limiter = Arc::new(Limiter::new(store).with_deadline(settings.deadline));
        limiter.set_instances(settings.instances);
        Ok(Self { limiter, counters, refresher })
    }

    /// The policy that an invocation decides by; called once, at its start. If the one in force is old enough, a newer one
    /// is looked for first.
    pub async fn policy_in_force(&self) -> Arc<Policy> {
        self.refresher.refresh_if_due().await;
        self.live().current()
    }

    /// The policy in force, as it changes.
    #[must_use]
    pub fn live(&self) -> &LivePolicy {
        self.refresher.live()
    }
}

/// Opens the connection. A table without an answer is not the end: each decision is then made by `on_store_failure`.
async fn warm_up(store: &DynamoStore) {
    let result = tokio::time::timeout(WARM_UP, store.warm_up()).await;
    let error = match result {
        Ok(Ok(())) => return,
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer within {WARM_UP:?}"),
    };
    tracing::warn!(error, table = store.table(), "the table cannot be reached; decisions follow on_store_failure");
}
