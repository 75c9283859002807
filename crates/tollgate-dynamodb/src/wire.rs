//! What every request and reply on the wire tells: a round trip to count, and the table's clock.
//!
//! Invariant: the clock is read around the HTTP exchange alone, so that serialisation and queueing in this process do
//! not widen the interval that the offset lies in.

use crate::clock::Offset;
use crate::meter::{Event, Meter};
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::Intercept;
use aws_smithy_runtime_api::client::interceptors::context::{
    BeforeDeserializationInterceptorContextRef, BeforeTransmitInterceptorContextRef,
};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::config_bag::{ConfigBag, Storable, StoreReplace};
use aws_smithy_types::date_time::{DateTime, Format};
use std::sync::Arc;
use tollgate_core::{Clock, Timestamp};

/// Counts requests and learns the clock offset from replies.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) offset: Arc<Offset>,
    pub(crate) meter: Arc<dyn Meter>,
}

/// When this attempt was sent, by the local clock.
#[derive(Debug, Clone, Copy)]
struct Sent(Timestamp);

impl Storable for Sent {
    type Storer = StoreReplace<Self>;
}

impl Intercept for Wire {
    fn name(&self) -> &'static str {
        "tollgate wire"
    }

    fn read_before_transmit(
        &self,
        _context: &BeforeTransmitInterceptorContextRef<'_>,
        _components: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        config.interceptor_state().store_put(Sent(self.clock.now()));
        self.meter.record(Event::RoundTrip);
        Ok(())
    }

    fn read_after_transmit(
        &self,
        context: &BeforeDeserializationInterceptorContextRef<'_>,
        _components: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let date = context.response().headers().get("date");
        let date = date.and_then(|text| DateTime::from_str(text, Format::HttpDate).ok());
        let date = date.and_then(|date| u64::try_from(date.secs()).ok());
        let (Some(Sent(sent)), Some(date)) = (config.load::<Sent>(), date) else { return Ok(()) };
        if let Some(ns) = self.offset.observe(*sent, self.clock.now(), date) {
            let ms = ns / 1_000_000;
            tracing::warn!(offset_ms = ms, "the local clock and DynamoDB's differ by more than a second; correcting");
            self.meter.record(Event::ClockSkew(ms));
        }
        Ok(())
    }
}
