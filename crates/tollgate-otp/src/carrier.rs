//! Who delivers messages: a provider of text messages, of email, or whoever takes an event.
//!
//! Invariant: a carrier asks its provider once, and says that nothing was sent only where that is known.

use crate::courier::{Message, Notice};
use crate::delivery::Receipt;
use crate::destination::Destination;
use std::future::Future;
use std::time::Duration;

/// Why a message is not known to be on its way. No text has a code, a number or an address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Undelivered {
    /// It was not sent, and may be later.
    #[error("the provider takes no message now, and nothing was sent: {0}")]
    NotNow(String),
    /// It was not sent, and will not be.
    #[error("the provider does not take this message: {0}")]
    Refused(String),
    /// The request has no answer that says. It may have been sent.
    #[error("the provider gave no usable answer, and the message may have been sent: {0}")]
    Unknown(String),
}

/// Delivers messages.
pub trait Carrier: Send + Sync {
    /// Sends `message` to `to`; of no use after `good_for`. A receipt if the provider wants to be told that it was read.
    fn deliver(
        &self,
        to: &Destination,
        message: &Message,
        good_for: Duration,
    ) -> impl Future<Output = Result<Option<Receipt>, Undelivered>> + Send;

    /// Sends `notice`. What its provider may have sent is asked for again only where nobody knows.
    fn notify(&self, notice: &Notice) -> impl Future<Output = Result<(), Undelivered>> + Send;

    /// Tells the provider that somebody has read that message: its code was right.
    fn arrived(&self, receipt: &Receipt) -> impl Future<Output = Result<(), Undelivered>> + Send;
}
