//! Takes messages from the queue to their carrier, each once.
//!
//! Invariant: a carrier is asked only after the write that claims the message is known to have been applied, and a message is pending
//! again only where the carrier knows that nothing was sent ([`delivery`]). A notice has none, and may be sent twice. A verified code whose errand is handed out again may be counted
//! twice: the condition bounds what that comes to, and the other way round people look as if they had never typed theirs.

use crate::carrier::{Carrier, Undelivered};
use crate::courier::{Errand, Message, Notice};
use crate::delivery::{self, Delivery, Receipt};
use crate::destination::Destination;
use crate::error::{Error, Result};
use crate::item::Item;
use crate::otp::{self, Met};
use crate::pumping::{Credits, guard};
use futures_util::future::{join, join_all};
use std::time::Duration;
use tollgate_core::Timestamp;
use tollgate_dynamodb::Items;

/// What became of an errand that need not be tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dispatched {
    /// The carrier has taken it.
    Sent,
    /// The carrier has nothing to do with it.
    Counted,
    /// It goes nowhere: the account has nothing that codes are sent to.
    Nowhere,
    /// Its code is good no longer, or somebody else has or had the message.
    Stale,
    /// The provider will not take it.
    Refused,
    /// Whether it was sent is not known. It is not sent again.
    Unknown,
}

/// Delivers what was queued. One a process.
#[derive(Debug)]
pub struct Dispatcher<C> {
    items: Items,
    carrier: C,
}

impl<C: Carrier> Dispatcher<C> {
    /// Delivers by `carrier` what these items say.
    #[must_use]
    pub fn new(items: Items, carrier: C) -> Self {
        Self { items, carrier }
    }

    /// Runs errands at once, however often the queue hands them out; what they have counted alike is one write. What became of each, in
    /// order.
    ///
    /// # Errors
    ///
    /// Of an errand, [`Error::Store`] and [`Error::Undelivered`]: it was not run, and handing it out again is safe and of use.
    pub async fn run(&self, errands: &[Errand]) -> Vec<Result<Dispatched>> {
        let credits = Credits::of(errands);
        let each = join_all(errands.iter().map(|errand| self.run_one(errand)));
        let (each, uncounted) = join(each, guard::credit(&self.items, &credits)).await;
        let both = each.into_iter().zip(errands).map(|(told, errand)| {
            let error = errand.credit().and_then(|credit| uncounted.get(credit));
            error.map_or(told, |error| Err(error.clone().into()))
        });
        both.collect()
    }

    async fn run_one(&self, errand: &Errand) -> Result<Dispatched> {
        match errand {
            Errand::Deliver(message) => match &message.to {
                Some(to) => self.deliver(to, message).await,
                None => Ok(Dispatched::Nowhere),
            },
            Errand::Notify(notice) => self.notify(notice).await,
            Errand::Verified { receipt: Some(receipt), .. } => self.tell(receipt).await,
            Errand::Verified { receipt: None, .. } => Ok(Dispatched::Counted),
        }
    }

    async fn tell(&self, receipt: &Receipt) -> Result<Dispatched> {
        match self.carrier.arrived(receipt).await {
            Ok(()) => Ok(Dispatched::Sent),
            Err(error @ Undelivered::NotNow(_)) => Err(error.into()),
            Err(error) => {
                tracing::warn!(%error, "the provider is not told of a read message");
                Ok(Dispatched::Refused)
            }
        }
    }

    /// Nobody claims a notice: it has no code that somebody else could use, and one too many is better than none.
    async fn notify(&self, notice: &Notice) -> Result<Dispatched> {
        match self.carrier.notify(notice).await {
            Ok(()) => Ok(Dispatched::Sent),
            Err(error @ Undelivered::Refused(_)) => {
                tracing::error!(%error, "a notice is not sent");
                Ok(Dispatched::Refused)
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn deliver(&self, to: &Destination, message: &Message) -> Result<Dispatched> {
        let call = self.items.begin();
        let now = self.items.now();
        let claimed = match otp::send(&call, &message.item, &delivery::claim(message.challenge, now)).await? {
            Met::Applied(item) => item,
            Met::Refused(_) => return Ok(Dispatched::Stale),
        };
        let told = told(self.carrier.deliver(to, message, rest(&claimed, now)).await);
        let (delivery, receipt) = match &told {
            Ok((_, delivery, receipt)) => (*delivery, receipt.clone()),
            Err(_) => (Delivery::Pending, None),
        };
        if delivery != Delivery::Sending {
            self.mark(message, delivery, receipt).await;
        }
        told.map(|(dispatched, ..)| dispatched)
    }

    /// Says what became of a claimed message. If that is lost it stays `sending`, which sends nothing twice.
    async fn mark(&self, message: &Message, delivery: Delivery, receipt: Option<Receipt>) {
        let write = delivery::mark(message.challenge, delivery, receipt);
        if let Err(error) = otp::send(&self.items.begin(), &message.item, &write).await {
            tracing::warn!(%error, %delivery, "the table was not told what became of a message");
        }
    }
}

fn rest(item: &Item, now: Timestamp) -> Duration {
    Duration::from_nanos(item.valid_until.as_nanos().saturating_sub(now.as_nanos()))
}

/// What a carrier's answer means for the errand and the item; an error if it is to be handed out again.
fn told(answer: std::result::Result<Option<Receipt>, Undelivered>) -> Result<(Dispatched, Delivery, Option<Receipt>)> {
    match answer {
        Ok(receipt) => Ok((Dispatched::Sent, Delivery::Sent, receipt)),
        Err(error @ Undelivered::NotNow(_)) => Err(Error::Undelivered(error)),
        Err(error @ Undelivered::Refused(_)) => {
            tracing::error!(%error, "a message is not sent");
            Ok((Dispatched::Refused, Delivery::Refused, None))
        }
        Err(error @ Undelivered::Unknown(_)) => {
            tracing::warn!(%error, "a message is not sent again");
            Ok((Dispatched::Unknown, Delivery::Sending, None))
        }
    }
}
