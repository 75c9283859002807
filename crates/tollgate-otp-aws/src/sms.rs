//! Text messages by AWS End User Messaging.
//!
//! Invariant: a message is asked for once. `SendTextMessage` has no idempotency token (API Reference).

use crate::failure::{undelivered, undone};
use aws_config::SdkConfig;
use aws_sdk_pinpointsmsvoicev2::Client;
use aws_sdk_pinpointsmsvoicev2::operation::send_text_message::builders::SendTextMessageFluentBuilder;
use aws_sdk_pinpointsmsvoicev2::types::{MessageFeedbackStatus, MessageType};
use std::time::Duration;
use tollgate_otp::{Destination, Message, Notice, Receipt, Undelivered};

/// The shortest time to live, seconds (API Reference, `SendTextMessage`).
const SHORTEST_TTL: u64 = 5;

/// How messages are sent.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SmsOptions {
    /// The number, sender id or pool that they come from.
    pub origination_identity: String,
    /// The configuration set that their events are logged by.
    pub configuration_set: Option<String>,
    /// The protect configuration that says which countries they go to, and filters those that are judged to be pumped.
    pub protect_configuration: Option<String>,
}

impl SmsOptions {
    /// From this number, sender id or pool, by id or ARN.
    #[must_use]
    pub fn from(origination_identity: impl Into<String>) -> Self {
        let origination_identity = origination_identity.into();
        Self { origination_identity, configuration_set: None, protect_configuration: None }
    }
}

/// A sender of text messages.
#[derive(Debug)]
pub struct Sms {
    client: Client,
    options: SmsOptions,
}

impl Sms {
    /// A sender.
    #[must_use]
    pub fn new(config: &SdkConfig, options: SmsOptions) -> Self {
        Self { client: Client::new(config), options }
    }

    /// Sends a message, once. With feedback: AWS learns which messages led to a right code, and counts the others as failed after an
    /// hour, which its protection goes by.
    pub(crate) async fn send(
        &self,
        to: &Destination,
        message: &Message,
        good_for: Duration,
    ) -> Result<Receipt, Undelivered> {
        let seconds = i32::try_from(good_for.as_secs().max(SHORTEST_TTL)).unwrap_or(i32::MAX);
        let request = self.request(to, &message.text).time_to_live(seconds).message_feedback_enabled(true);
        let sent = request.send().await.map_err(|error| undelivered(&error))?;
        Ok(Receipt::new(sent.message_id.unwrap_or_default()))
    }

    /// Sends a notice. Nobody answers it, so that there is no feedback to give.
    pub(crate) async fn notify(&self, notice: &Notice) -> Result<(), Undelivered> {
        let sent = self.request(&notice.to, &notice.text).send().await;
        sent.map(drop).map_err(|error| undelivered(&error))
    }

    fn request(&self, to: &Destination, text: &str) -> SendTextMessageFluentBuilder {
        let SmsOptions { origination_identity, configuration_set, protect_configuration } = self.options.clone();
        let request = self.client.send_text_message().destination_phone_number(to.address());
        let request = request.message_body(text).message_type(MessageType::Transactional);
        let request = request.origination_identity(origination_identity).set_configuration_set_name(configuration_set);
        request.set_protect_configuration_id(protect_configuration)
    }

    /// Tells AWS that a message was read (`PutMessageFeedback`).
    pub(crate) async fn was_read(&self, receipt: &Receipt) -> Result<(), Undelivered> {
        let request = self.client.put_message_feedback().message_id(receipt.as_str());
        let told = request.message_feedback_status(MessageFeedbackStatus::Received).send().await;
        told.map(drop).map_err(|error| undone(&error))
    }
}
