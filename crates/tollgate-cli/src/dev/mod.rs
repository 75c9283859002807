//! `tollgate dev`: decisions over HTTP on this machine, on the embedded DynamoDB or the one that is named.
//!
//! Invariant: decisions run through the same limiter, store and SDK as in production; only where time and the table
//! come from differs.

mod routes;

use crate::args::{ClockKind, DevArgs};
use crate::embedded::Embedded;
use crate::error::{CliError, Result};
use crate::{open, output, table};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tollgate::testing::ManualClock;
use tollgate::{Counters, DynamoStore, Limiter, Policy, SystemClock};
use tollgate_core::Clock;

pub use routes::router;

/// Debug builds on small machines take their time; here an answer is worth more than a fast refusal.
const DEADLINE: Duration = Duration::from_secs(5);

/// A running development server's parts.
#[derive(Debug)]
pub struct Dev {
    policy: Policy,
    limiter: Limiter<DynamoStore>,
    counters: Arc<Counters>,
    manual: Option<ManualClock>,
    embedded: Option<Embedded>,
    endpoint: String,
}

impl Dev {
    /// Starts or reaches the table and builds the limiter.
    ///
    /// # Errors
    ///
    /// The policy has errors, or the table cannot be reached.
    pub async fn start(args: &DevArgs) -> Result<Self> {
        let policy = open::policy(&args.policy)?;
        let now = SystemClock.now();
        let manual = (args.clock == ClockKind::Manual).then(|| ManualClock::new(now));
        let mut target = args.target.clone();
        let embedded = match target.endpoint_url {
            Some(_) => None,
            None => Some(Embedded::start(manual.clone()).await?),
        };
        if let Some(embedded) = &embedded {
            target.endpoint_url = Some(embedded.endpoint().to_owned());
        }
        let connected = open::connection(&target).await?;
        table::ensure_on_loopback(&connected, &target, true).await?;
        if manual.is_some() && embedded.is_none() {
            // That table deletes by its own clock, which has nothing to do with ours.
            tollgate_dynamodb::table::disable_ttl(&connected, &target.table).await?;
        }
        let (store, counters) = open::store_at(&connected, &target.table, manual.as_ref()).await?;
        let limiter = Limiter::new(store).with_deadline(DEADLINE);
        Ok(Self { policy, limiter, counters, manual, embedded, endpoint: connected.endpoint().to_owned() })
    }
}

/// Serves until interrupted.
///
/// # Errors
///
/// The policy has errors, the table cannot be reached, or the address is taken.
pub async fn run(args: DevArgs) -> Result<()> {
    let dev = Dev::start(&args).await?;
    let taken = |e| CliError::System(format!("cannot listen on {}: {e}; choose another with --addr", args.addr));
    let listener = TcpListener::bind(args.addr).await.map_err(taken)?;
    let address = listener.local_addr().map_err(taken)?;
    output::say(format!(
        "tollgate dev is listening on http://{address} (DynamoDB at {}, table {})",
        dev.endpoint,
        dev.limiter.store().table()
    ));
    let served = axum::serve(listener, router(Arc::new(dev))).with_graceful_shutdown(interrupted());
    served.await.map_err(|e| CliError::System(format!("the server failed: {e}")))
}

async fn interrupted() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminated) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminated.recv() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}
