//! The embedded DynamoDB of `dev`, `race`, `bench` and the tests: the `dynoxide` emulator over HTTP, in this process.
//!
//! It is spoken to through the AWS SDK over a socket like any other endpoint, so nothing is tested that does not run in
//! production. Invariant: its TTL and its `Date` header follow one clock, the system's or a manual one.

mod faults;
mod front;

pub use faults::{Fault, Faults, Faulty};

use crate::error::{CliError, Result};
use dynoxide::Database;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tollgate_core::{Clock, ManualClock};

/// A running emulator; it stops when dropped.
pub struct Embedded {
    endpoint: String,
    database: Database,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Embedded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Embedded").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl Embedded {
    /// Starts an empty emulator on a free port of the loopback interface. With a manual clock, replies are dated and
    /// items expire by that clock.
    ///
    /// # Errors
    ///
    /// [`CliError::System`] if the database or the port cannot be had.
    pub async fn start(clock: Option<ManualClock>) -> Result<Self> {
        Self::start_with(clock, None).await
    }

    /// The same behind `faults`, if they are given.
    ///
    /// # Errors
    ///
    /// As [`Self::start`].
    pub async fn start_with(clock: Option<ManualClock>, faults: Option<Faults>) -> Result<Self> {
        let failed = |e: &dyn std::fmt::Display| CliError::System(format!("cannot start the embedded DynamoDB: {e}"));
        let database = match &clock {
            Some(clock) => Database::memory_with_clock(Arc::new(Follow(clock.clone()))),
            None => Database::memory(),
        }
        .map_err(|e| failed(&e))?;
        let (stop, stopped) = oneshot::channel();
        let (ready, started) = oneshot::channel();
        let served = database.clone();
        // A runtime of its own: the emulator blocks its threads on SQLite, and must not block its clients'.
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.map_err(|e| failed(&e))?;
        let thread = std::thread::Builder::new().name("embedded-dynamodb".to_owned());
        let thread = thread.spawn(move || runtime.block_on(serve(served, (clock, faults), ready, stopped)));
        let thread = thread.map_err(|e| failed(&e))?;
        let address = started.await.map_err(|e| failed(&e))?.map_err(|e| failed(&e))?;
        Ok(Self { endpoint: format!("http://{address}"), database, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens, like `http://127.0.0.1:34567`.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Deletes what is past its TTL now; returns how many items. Happens by itself every 10 s.
    ///
    /// # Errors
    ///
    /// [`CliError::System`] if the database fails.
    pub fn sweep(&self) -> Result<usize> {
        self.database.sweep_ttl().map_err(|e| CliError::System(format!("the embedded DynamoDB cannot sweep: {e}")))
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        // The thread ends at the signal without waiting for open connections, so this does not block for long.
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn serve(
    database: Database,
    front: (Option<ManualClock>, Option<Faults>),
    ready: oneshot::Sender<std::io::Result<SocketAddr>>,
    stopped: oneshot::Receiver<()>,
) {
    let bound = async {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let sweep = database.clone();
        tokio::spawn(dynoxide::server::serve_with_shutdown(listener, database, std::future::pending()));
        tokio::spawn(sweep_now_and_then(sweep));
        // Replies carry the system's date; for a manual clock they pass through a front that dates them anew, as they do for faults.
        match front {
            (None, None) => Ok(address),
            (clock, faults) => front::start(address, clock, faults.unwrap_or_default()).await,
        }
    };
    let bound: std::io::Result<SocketAddr> = bound.await;
    let _ = ready.send(bound);
    // Ends when told to, or when the owner is gone.
    let _ = stopped.await;
}

async fn sweep_now_and_then(database: Database) {
    let mut tick = tokio::time::interval(Duration::from_secs(10));
    loop {
        tick.tick().await;
        if let Err(error) = database.sweep_ttl() {
            tracing::warn!(%error, "the embedded DynamoDB cannot sweep");
        }
    }
}

/// Our clock as the emulator wants it.
struct Follow(ManualClock);

impl dynoxide::storage_backend::Clock for Follow {
    fn now_unix_secs(&self) -> u64 {
        self.0.now().as_secs()
    }

    #[allow(clippy::cast_precision_loss, reason = "the trait asks for floating seconds")]
    fn now_unix_secs_f64(&self) -> f64 {
        self.0.now().as_millis() as f64 / 1_000.0
    }
}
