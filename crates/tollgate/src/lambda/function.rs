//! A function's parts, ready for invocations.

use super::error::Result;
use super::settings::Settings;
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
    /// The policy; whoever reloads it replaces it here.
    pub policy: LivePolicy,
    /// The limiter, on the table.
    pub limiter: Limiter<DynamoStore>,
    /// What the limiter counts.
    pub counters: Arc<Counters>,
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
        let policy = load(settings)?;
        let mut connection = Connection::from_environment();
        connection.endpoint_url.clone_from(&settings.endpoint_url);
        let connected = connect(&connection).await?;
        let counters = Arc::new(Counters::default());
        let store = DynamoStore::new(&connected, &settings.table, Arc::new(SystemClock), counters.clone());
        warm_up(&store).await;
        let limiter = Limiter::new(store).with_deadline(settings.deadline);
        Ok(Self { policy: policy.into(), limiter, counters })
    }

    /// The policy that an invocation decides by; called once, at its start. A policy that can change while the function
    /// runs is looked after here.
    #[must_use]
    pub fn policy_in_force(&self) -> Arc<Policy> {
        self.policy.current()
    }
}

fn load(settings: &Settings) -> Result<Policy> {
    let parsed = Policy::load(&settings.policy)?;
    let name = settings.policy.display().to_string();
    for warning in parsed.warnings.iter() {
        tracing::warn!("{}", warning.render(&name).trim_end());
    }
    Ok(parsed.policy)
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
