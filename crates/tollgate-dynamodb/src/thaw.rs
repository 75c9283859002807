//! A process that was frozen, as a function is between its invocations, finds out what has become of its connections before it uses one.
//!
//! Invariant: after a rest, whatever the operating system has to say about a connection has been taken in before a request goes
//! out: on one that the server has closed meanwhile a write would be lost, nobody would know whether it was applied, and it would not
//! be sent again.

use crate::since::Since;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// When a client was last used.
#[derive(Debug)]
pub(crate) struct Rest(Mutex<Since>);

impl Rest {
    /// Shorter rests are part of the work: servers close no connection that is in use.
    const SHORT: Duration = Duration::from_millis(100);
    /// Times that others get their turn: the driver that hears of it, the connection, and whoever waits for that.
    const TURNS: u32 = 3;

    pub(crate) fn new() -> Self {
        Self(Mutex::new(Since::now()))
    }

    /// Ends the rest; called before a request.
    pub(crate) async fn end(&self) {
        let last = std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), Since::now());
        if last.is_within(Self::SHORT) {
            return;
        }
        for _ in 0..Self::TURNS {
            tokio::task::yield_now().await;
        }
    }
}
