//! Messages that would have been sent.
//!
//! Invariant: what is kept is bounded, the newest messages.

use serde::Serialize;
use std::collections::VecDeque;
use std::fmt;
use std::future::{Future, ready};
use std::sync::{Mutex, PoisonError};
use tollgate_otp::{Courier, CourierError, Errand};

/// Most messages that are kept.
const MOST: usize = 1000;

/// A message.
#[derive(Clone, Serialize)]
pub(super) struct Entry {
    to: String,
    channel: String,
    body: String,
    code: String,
    purpose: String,
}

/// Takes messages along to where a developer looks.
#[derive(Default)]
pub(super) struct Outbox(Mutex<VecDeque<Entry>>);

impl Outbox {
    /// The messages, oldest first.
    pub(super) fn messages(&self) -> Vec<Entry> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

/// Without the messages.
impl fmt::Debug for Outbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbox").finish_non_exhaustive()
    }
}

impl Courier for Outbox {
    fn take(&self, errand: Errand) -> impl Future<Output = Result<(), CourierError>> + Send {
        if let Errand::Deliver(message) = &errand
            && let Some(to) = &message.to
        {
            let (to, channel) = (to.address().to_owned(), to.channel().to_string());
            let (code, purpose) = (message.code.digits().to_owned(), message.purpose.to_string());
            let body = message.text.to_string();
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            kept.push_back(Entry { to, channel, body, code, purpose });
            let surplus = kept.len().saturating_sub(MOST);
            kept.drain(..surplus);
        }
        ready(Ok(()))
    }
}
