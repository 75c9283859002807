//! Each message by the carrier of its channel.

use crate::{Email, Events, Sms};
use std::time::Duration;
use tollgate_otp::{Carrier, Destination, Message, Notice, Receipt, Undelivered};
use tollgate_policy::Channel;

/// The carriers that there are.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Carriers {
    /// Of text messages.
    pub sms: Option<Sms>,
    /// Of email.
    pub email: Option<Email>,
    /// Of everything else.
    pub events: Option<Events>,
}

impl Carrier for Carriers {
    async fn deliver(
        &self,
        to: &Destination,
        message: &Message,
        good_for: Duration,
    ) -> Result<Option<Receipt>, Undelivered> {
        match (to.channel(), &self.sms, &self.email, &self.events) {
            (Channel::Sms, Some(sms), ..) => sms.send(to, message, good_for).await.map(Some),
            (Channel::Email, _, Some(email), _) => email.send(to, message).await.map(|()| None),
            (Channel::Event, _, _, Some(events)) => events.put(to, message, good_for).await.map(|()| None),
            (channel, ..) => {
                Err(Undelivered::Refused(format!("this function has no carrier for the channel `{channel}`")))
            }
        }
    }

    async fn notify(&self, notice: &Notice) -> Result<(), Undelivered> {
        match (notice.to.channel(), &self.sms, &self.email, &self.events) {
            (Channel::Sms, Some(sms), ..) => sms.notify(notice).await,
            (Channel::Email, _, Some(email), _) => email.notify(notice).await,
            (Channel::Event, _, _, Some(events)) => events.notify(notice).await,
            (channel, ..) => {
                Err(Undelivered::Refused(format!("this function has no carrier for the channel `{channel}`")))
            }
        }
    }

    async fn arrived(&self, receipt: &Receipt) -> Result<(), Undelivered> {
        match &self.sms {
            Some(sms) => sms.was_read(receipt).await,
            None => Err(Undelivered::Refused("this function has no carrier that gives receipts".to_owned())),
        }
    }
}
