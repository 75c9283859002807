//! A function's parts, ready for invocations.
//!
//! Invariant: what an invocation has counted is written before its answer goes out, however it ends; between two invocations
//! Lambda freezes the process, and nothing here waits for a time when it does not.

use super::error::Result;
use super::settings::Settings;
use crate::denials::Denials;
use crate::metrics::Metrics;
use crate::source::{ReaderOptions, RefreshOptions, Refresher};
use crate::{Connection, DynamoStore, Limiter, Policy, SystemClock, connect};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use tollgate_dynamodb::Meter;
use tollgate_policy::LivePolicy;

/// What the first request may take in init, in which DNS, TCP, TLS and credentials are paid for. Lambda gives init 10 s.
const WARM_UP: Duration = Duration::from_secs(2);

/// What every invocation of a function uses: one a process.
#[derive(Debug)]
#[non_exhaustive]
pub struct Function {
    /// The limiter, on the table.
    pub limiter: Arc<Limiter<DynamoStore>>,
    /// What is counted, unless metrics are off.
    pub metrics: Option<Arc<Metrics>>,
    refresher: Refresher,
    deadline: Duration,
}

/// An invocation, and the policy that it decides by. Dropped at its end, it writes the metrics.
#[derive(Debug)]
pub struct Invocation<'f> {
    function: &'f Function,
    policy: Arc<Policy>,
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
        let secrets = settings.key_secrets.read(&ReaderOptions::default()).await?;
        let metrics = settings.metrics.as_ref().map(|to| Metrics::new(&to.namespace, &to.service)).transpose()?;
        let metrics = metrics.map(Arc::new);
        let meter: Arc<dyn Meter> = Arc::new((metrics.clone(), Denials::new(secrets.clone())));
        let refresh = RefreshOptions::default().every(settings.policy_refresh).secrets(secrets);
        let refresher = Refresher::start(settings.policy.clone(), meter.clone(), refresh).await?;
        let mut connection = Connection::from_environment();
        connection.endpoint_url.clone_from(&settings.endpoint_url);
        let connected = connect(&connection).await?;
        let store = DynamoStore::new(&connected, &settings.table, Arc::new(SystemClock), meter);
        warm_up(&store).await;
        let limiter = Arc::new(Limiter::new(store).with_deadline(settings.deadline));
        limiter.set_instances(settings.instances);
        let function = Self { limiter, metrics, refresher, deadline: settings.deadline };
        function.write_metrics();
        Ok(function)
    }

    /// Called once at the start of each invocation: if the policy in force is old enough, a newer one is looked for first. Keep
    /// what this returns until the answer is there.
    pub async fn begin(&self) -> Invocation<'_> {
        self.refresher.refresh_if_due().await;
        Invocation { function: self, policy: self.live().current() }
    }

    /// What a decision may take.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        self.deadline
    }

    /// The policy in force, as it changes.
    #[must_use]
    pub fn live(&self) -> &LivePolicy {
        self.refresher.live()
    }

    /// What is remembered of how callers have proved who they are, on the limiter's table. It is waited for a second, or as long as
    /// for a decision if that is longer.
    #[cfg(feature = "http")]
    #[must_use]
    pub fn sessions(&self) -> Arc<tollgate_mfa::Sessions> {
        let items = tollgate_dynamodb::Items::new(self.limiter.store().clone());
        let deadline = tollgate_dynamodb::Items::DEADLINE.max(self.deadline);
        Arc::new(tollgate_mfa::Sessions::new(items.with_deadline(deadline)))
    }

    fn write_metrics(&self) {
        if let Some(metrics) = &self.metrics {
            metrics.write();
        }
    }
}

impl Deref for Invocation<'_> {
    type Target = Policy;

    fn deref(&self) -> &Policy {
        &self.policy
    }
}

impl Drop for Invocation<'_> {
    fn drop(&mut self) {
        self.function.write_metrics();
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
