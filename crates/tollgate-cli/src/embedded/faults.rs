//! What is made to go wrong between a client and the emulator, so that a limiter meets it where it would meet it in production.
//!
//! Invariant: a fault holds for every request that comes while it is set; a request that was held back goes on when it is lifted.

use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// What the table does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fault {
    /// It works.
    #[default]
    Ok,
    /// It takes requests and does nothing.
    Pause,
    /// It answers every request with a server error and does nothing.
    Error,
    /// It does what it is asked and answers late.
    Slow,
}

/// A fault, and by how much answers are late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Faulty {
    /// What the table does.
    pub store: Fault,
    /// Milliseconds by which [`Fault::Slow`] is late.
    #[serde(default = "Faulty::ms")]
    pub ms: u64,
}

impl Faulty {
    const fn ms() -> u64 {
        200
    }
}

/// What is set, and how many requests have met it. Clones share both.
#[derive(Debug, Clone)]
pub struct Faults {
    set: watch::Sender<Faulty>,
    requests: Arc<AtomicU64>,
}

impl Default for Faults {
    fn default() -> Self {
        Self { set: watch::Sender::new(Faulty { store: Fault::Ok, ms: Faulty::ms() }), requests: Arc::default() }
    }
}

impl Faults {
    /// Sets what goes wrong from now on.
    pub fn set(&self, faulty: Faulty) {
        self.set.send_replace(faulty);
    }

    /// What goes wrong now.
    #[must_use]
    pub fn current(&self) -> Faulty {
        *self.set.borrow()
    }

    /// Requests that have come so far, whatever became of them.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Waits for the end of a pause; what is to be done with the request then.
    pub(super) async fn met(&self) -> Faulty {
        self.requests.fetch_add(1, Ordering::Relaxed);
        let mut set = self.set.subscribe();
        // The sender is `self`, so it cannot be gone.
        match set.wait_for(|faulty| faulty.store != Fault::Pause).await {
            Ok(faulty) => *faulty,
            Err(_) => Faulty { store: Fault::Ok, ms: Faulty::ms() },
        }
    }
}

impl Faulty {
    /// How late an answer is.
    pub(super) fn lateness(&self) -> Duration {
        if self.store == Fault::Slow { Duration::from_millis(self.ms) } else { Duration::ZERO }
    }
}
