//! Errands on SQS.
//!
//! Invariant: what is in a message is sealed, and one that is there twice sends nothing twice: whoever takes it claims the code first.

use crate::failure::told;
use crate::once_more;
use aws_config::SdkConfig;
use aws_sdk_sqs::Client;
use tollgate_otp::{Courier, CourierError, Errand};
use tollgate_policy::KeySecrets;

/// A queue of errands.
#[derive(Debug)]
pub struct Queue {
    client: Client,
    url: String,
    secrets: KeySecrets,
}

impl Queue {
    /// The queue at `url`, whose messages are sealed under `secrets`.
    #[must_use]
    pub fn new(config: &SdkConfig, url: impl Into<String>, secrets: KeySecrets) -> Self {
        let config = aws_sdk_sqs::config::Builder::from(config).retry_config(once_more()).build();
        Self { client: Client::from_conf(config), url: url.into(), secrets }
    }
}

impl Courier for Queue {
    async fn take(&self, errand: Errand) -> Result<(), CourierError> {
        let sealed = errand.seal(&self.secrets).map_err(|error| CourierError(error.to_string()))?;
        let sent = self.client.send_message().queue_url(&self.url).message_body(sealed).send().await;
        sent.map(drop).map_err(|error| CourierError(told(&error)))
    }
}
