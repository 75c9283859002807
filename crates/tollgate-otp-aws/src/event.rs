//! An event on EventBridge, for whoever delivers in another way: a call, a messenger.
//!
//! Invariant: an event is put once. It has the code in plain, so its bus is for that alone.

use crate::failure::undelivered;
use aws_config::SdkConfig;
use aws_sdk_eventbridge::Client;
use aws_sdk_eventbridge::types::PutEventsRequestEntry;
use serde_json::{Value, json};
use std::time::Duration;
use tollgate_otp::{Destination, Message, Notice, Undelivered};

/// The `source` of the events.
pub const SOURCE: &str = "tollgate.otp";

/// Their `detail-type`.
pub const DETAIL_TYPE: &str = "One-time code";

/// That of notices, which have no code.
pub const NOTICE_TYPE: &str = "Notice";

/// A bus that events with codes go to.
#[derive(Debug)]
pub struct Events {
    client: Client,
    bus: String,
}

impl Events {
    /// The bus of this name or ARN.
    #[must_use]
    pub fn new(config: &SdkConfig, bus: impl Into<String>) -> Self {
        Self { client: Client::new(config), bus: bus.into() }
    }

    /// Puts an event, once.
    pub(crate) async fn put(&self, to: &Destination, message: &Message, good_for: Duration) -> Result<(), Undelivered> {
        let detail = json!({
            "to": to.address(), "code": message.code.digits(), "text": message.text.as_str(), "subject": message.subject,
            "purpose": message.purpose.as_str(), "expires_in": good_for.as_secs(),
        });
        self.send(DETAIL_TYPE, &detail).await
    }

    /// Puts an event of a notice.
    pub(crate) async fn notify(&self, notice: &Notice) -> Result<(), Undelivered> {
        let detail = json!({ "to": notice.to.address(), "text": notice.text.as_str(), "subject": notice.subject });
        self.send(NOTICE_TYPE, &detail).await
    }

    async fn send(&self, of_type: &str, detail: &Value) -> Result<(), Undelivered> {
        let entry = PutEventsRequestEntry::builder().source(SOURCE).detail_type(of_type).event_bus_name(&self.bus);
        let put = self.client.put_events().entries(entry.detail(detail.to_string()).build()).send().await;
        let put = put.map_err(|error| undelivered(&error))?;
        let failed = put.entries().iter().find_map(|entry| entry.error_code());
        // The bus says of each event whether it has it.
        failed.map_or(Ok(()), |code| Err(Undelivered::NotNow(code.to_owned())))
    }
}
