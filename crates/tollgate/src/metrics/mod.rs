//! Metrics for CloudWatch, as lines of its embedded metric format on standard output (or wherever you send them).
//!
//! In a Lambda function `tollgate::lambda::Function` does all of this. A server keeps a [`Metrics`] as its meter and
//! writes them by the minute, to a log that CloudWatch gets:
//!
//! ```no_run
//! use std::sync::Arc;
//! use std::time::Duration;
//! use tollgate::metrics::Metrics;
//! use tollgate::{Connection, DynamoStore, Limiter, SystemClock, connect};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let metrics = Arc::new(Metrics::new("Tollgate", "orders-api")?);
//! let connected = connect(&Connection::from_environment()).await?;
//! let limiter = Limiter::new(DynamoStore::new(&connected, "tollgate", Arc::new(SystemClock), metrics.clone()));
//! tokio::spawn(async move { metrics.write_every(Duration::from_secs(60)).await });
//! # Ok(())
//! # }
//! ```
//!
//! | metric | dimensions | of |
//! | --- | --- | --- |
//! | `LimitDecisions` | `Service`, `Limit`, `Outcome`, `Source` | each limit of each decision: `allowed`, `denied`, `never_fits`, `shadow_denied`, `shadow_never_fits`; without the store, `open` if the call passed and `closed` if not |
//! | `RevisionConflict`, `PulledBack`, `Penalised`, `MissingDimension`, `TokensBeyondDebt` | `Service`, `Limit`; and `Service` alone | the limit |
//! | `StepUpRequired` | `Service`, `Route`, `Reason`; and `Service` alone | 401s of a route with `step_up`: `missing`, `from_future`, `revoked`, `too_old`, `insufficient` |
//! | `StepUpUnavailable` | `Service`, `Route`; and `Service` alone | 503s of such a route, since nobody knows |
//! | `DecisionLatency`, milliseconds | `Service` | decisions, answered or not |
//! | all [`Counters`] | `Service` | the process |
//!
//! Invariants: no dimension and no name has anything of a caller in it, only what the policy declares; what has happened is
//! written by [`Metrics::write`] in whole lines, once, and nothing waits for another task.

mod emf;
mod names;
mod window;

use std::fmt;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tollgate_core::Clock;
use tollgate_dynamodb::{Counters, Event, Meter, SystemClock};
use window::Window;

/// A name that CloudWatch would not take.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} cannot be {what}")]
pub struct BadName {
    /// The name.
    pub name: String,
    /// What it was to be, and what that looks like.
    pub what: &'static str,
}

/// Counts events, and writes them as metrics when told. A [`Meter`]; share it behind an [`Arc`].
pub struct Metrics {
    namespace: String,
    service: String,
    counters: Counters,
    window: Mutex<Window>,
    clock: Arc<dyn Clock>,
    output: Mutex<Box<dyn Write + Send>>,
}

impl Metrics {
    /// The namespace unless you choose another.
    pub const NAMESPACE: &str = "Tollgate";

    /// Metrics of `service` in `namespace`, written to standard output.
    ///
    /// # Errors
    ///
    /// [`BadName`] if CloudWatch would not take one of the two.
    pub fn new(namespace: &str, service: &str) -> Result<Self, BadName> {
        let check = |name: &str, ok: bool, what| {
            if ok { Ok(name.to_owned()) } else { Err(BadName { name: name.to_owned(), what }) }
        };
        let what = "a namespace of metrics: 1 to 255 of a-z A-Z 0-9 . - _ / # : and blanks, not AWS/...";
        let namespace = check(namespace, emf::is_namespace(namespace), what)?;
        let what = "the name of a service: 1 to 1024 printable ASCII characters, not a colon first";
        let service = check(service, emf::is_dimension_value(service), what)?;
        Ok(Self {
            namespace,
            service,
            counters: Counters::default(),
            window: Mutex::default(),
            clock: Arc::new(SystemClock),
            output: Mutex::new(Box::new(std::io::stdout())),
        })
    }

    /// Changes where the lines go.
    #[must_use]
    pub fn to(mut self, output: impl Write + Send + 'static) -> Self {
        self.output = Mutex::new(Box::new(output));
        self
    }

    /// Changes the clock that metrics are dated by.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// What was counted since the start.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Writes what has happened since the last time: nothing if nothing has, mostly one line, one more for each further
    /// combination of limit, outcome and source. An output that takes nothing loses them.
    pub fn write(&self) {
        let lines = {
            // A panic elsewhere leaves at most one event half counted.
            let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
            window.tell(self.counters.counts(), &self.namespace, &self.service, self.clock.now().as_millis())
        };
        if lines.is_empty() {
            return;
        }
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        // All at once, so that nothing else comes between the parts of a line.
        if let Err(error) = output.write_all(lines.as_bytes()).and_then(|()| output.flush()) {
            tracing::warn!(%error, "metrics could not be written");
        }
    }

    /// Writes every `interval`, for ever; for servers. Dropped, it has written all but what came since the last time:
    /// [`Self::write`] once more at the end.
    pub async fn write_every(&self, interval: Duration) {
        loop {
            tokio::time::sleep(interval).await;
            self.write();
        }
    }
}

impl Meter for Metrics {
    fn record(&self, event: Event<'_>) {
        self.counters.record(event);
        self.window.lock().unwrap_or_else(PoisonError::into_inner).record(event);
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics")
            .field("namespace", &self.namespace)
            .field("service", &self.service)
            .finish_non_exhaustive()
    }
}
