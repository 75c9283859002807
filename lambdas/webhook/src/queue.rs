//! The queue: SQS, FIFO.
//!
//! Senders do not keep an order, so each event is a group of its own and nothing waits for anything else. What FIFO gives is that one event
//! that is delivered again within five minutes is queued once, also by requests at the same time; who takes a message later than that
//! has its identity as `MessageDeduplicationId`.

use crate::message::Message;
use aws_sdk_sqs::Client;
use aws_smithy_types::retry::RetryConfig;
use std::time::Duration;
use tollgate::tollgate_dynamodb::cause::told;
use tollgate::tollgate_dynamodb::connect::services;

/// Messages to one queue.
#[derive(Debug)]
pub(crate) struct Queue {
    client: Client,
    url: String,
}

impl Queue {
    pub(crate) async fn open(url: String) -> Self {
        // A message that is sent twice is there once.
        let retry = RetryConfig::standard().with_max_attempts(2).with_initial_backoff(Duration::from_millis(50));
        let config = aws_sdk_sqs::config::Builder::from(&services().await).retry_config(retry).build();
        Self { client: Client::from_conf(config), url }
    }

    /// Waits until the queue has it; the error is what is known of the failure.
    pub(crate) async fn put(&self, message: &Message<'_>) -> Result<(), String> {
        let request = self.client.send_message().queue_url(&self.url).message_body(message.body);
        let request = request.message_group_id(&message.identity).message_deduplication_id(&message.identity);
        request.send().await.map(drop).map_err(|error| told(&error))
    }
}
