//! Email by SES.
//!
//! Invariant: a message is asked for once, and has one recipient.

use crate::failure::undelivered;
use aws_config::SdkConfig;
use aws_sdk_sesv2::Client;
use aws_sdk_sesv2::types::{Body, Content, Destination as Recipients, EmailContent, Message as Written};
use tollgate_otp::{Destination, Message, Notice, Undelivered};

/// Who email comes from.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct EmailOptions {
    /// A verified identity, like `Example <codes@example.com>`.
    pub from: String,
    /// The configuration set that its events are logged by.
    pub configuration_set: Option<String>,
}

impl EmailOptions {
    /// From this identity.
    #[must_use]
    pub fn from(from: impl Into<String>) -> Self {
        Self { from: from.into(), configuration_set: None }
    }
}

/// A sender of email.
#[derive(Debug)]
pub struct Email {
    client: Client,
    options: EmailOptions,
}

impl Email {
    /// A sender.
    #[must_use]
    pub fn new(config: &SdkConfig, options: EmailOptions) -> Self {
        Self { client: Client::new(config), options }
    }

    /// Sends a message, once.
    pub(crate) async fn send(&self, to: &Destination, message: &Message) -> Result<(), Undelivered> {
        self.put(to, &message.subject, &message.text).await
    }

    /// Sends a notice.
    pub(crate) async fn notify(&self, notice: &Notice) -> Result<(), Undelivered> {
        self.put(&notice.to, &notice.subject, &notice.text).await
    }

    async fn put(&self, to: &Destination, about: &str, body: &str) -> Result<(), Undelivered> {
        let unwritten = |error: aws_sdk_sesv2::error::BuildError| Undelivered::Refused(error.to_string());
        let text = |text: &str| Content::builder().charset("UTF-8").data(text).build();
        let body = Body::builder().text(text(body).map_err(unwritten)?).build();
        let written = Written::builder().subject(text(about).map_err(unwritten)?).body(body).build();
        let request = self.client.send_email().from_email_address(&self.options.from);
        let request = request.destination(Recipients::builder().to_addresses(to.address()).build());
        let request = request.content(EmailContent::builder().simple(written).build());
        let sent = request.set_configuration_set_name(self.options.configuration_set.clone()).send().await;
        sent.map(drop).map_err(|error| undelivered(&error))
    }
}
