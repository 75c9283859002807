//! Messages that would have been sent, and verified codes that are still to be counted.
//!
//! Invariant: what is kept is bounded, the newest.

use serde::Serialize;
use std::collections::VecDeque;
use std::fmt;
use std::future::{Future, ready};
use std::sync::{Mutex, PoisonError};
use tollgate_otp::pumping::Credits;
use tollgate_otp::{Courier, CourierError, Errand, Message};

/// Most messages that are kept, and most different credits.
const MOST: usize = 1000;

/// A message.
#[derive(Clone, Serialize)]
pub(super) struct Entry {
    to: String,
    channel: String,
    body: String,
    /// Of a message with a code.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    purpose: Option<String>,
    /// Of a notice.
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
}

/// Takes messages along to where a developer looks.
#[derive(Default)]
pub(super) struct Outbox {
    messages: Mutex<VecDeque<Entry>>,
    credits: Mutex<Credits>,
}

impl Outbox {
    /// The messages, oldest first.
    pub(super) fn messages(&self) -> Vec<Entry> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// What is to be counted since this was last asked.
    pub(super) fn take_credits(&self) -> Credits {
        std::mem::take(&mut self.credits.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Keeps what is to be counted until that is asked for.
    pub(super) fn give(&self, credits: &Credits) {
        let mut kept = self.credits.lock().unwrap_or_else(PoisonError::into_inner);
        credits.iter().for_each(|(credit, n)| kept.add(credit.clone(), n));
        kept.keep(MOST);
    }

    fn keep(&self, message: &Message) {
        let Some(to) = &message.to else { return };
        let entry = Entry {
            to: to.address().to_owned(),
            channel: to.channel().to_string(),
            body: message.text.to_string(),
            code: Some(message.code.digits().to_owned()),
            purpose: Some(message.purpose.to_string()),
            subject: None,
        };
        self.put(entry);
    }

    fn put(&self, entry: Entry) {
        let mut kept = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_back(entry);
        let surplus = kept.len().saturating_sub(MOST);
        kept.drain(..surplus);
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
        match &errand {
            Errand::Deliver(message) => self.keep(message),
            Errand::Notify(notice) => self.put(Entry {
                to: notice.to.address().to_owned(),
                channel: notice.to.channel().to_string(),
                body: notice.text.to_string(),
                code: None,
                purpose: None,
                subject: Some(notice.subject.clone()),
            }),
            Errand::Verified { .. } => self.give(&Credits::of([&errand])),
        }
        ready(Ok(()))
    }
}
