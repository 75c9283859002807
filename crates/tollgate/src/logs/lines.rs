//! Events of `tracing` as lines of JSON. Fields of the event and of the spans around it stand side by side, so that a query names
//! them alike wherever they come from: `filter route = "POST /api/orders" and limit = "orders"`.
//!
//! Invariant: a line is one write, ends with its newline, and has `timestamp` (RFC 3339, UTC), `level`, `target` and `message`; a
//! field of an inner span goes before one of the same name further out, and the event's own before both.

use super::bound::Bound;
use aws_smithy_types::DateTime;
use aws_smithy_types::date_time::Format;
use serde_json::{Map, Value};
use std::fmt;
use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

/// A layer of `tracing_subscriber` that writes lines, at most [`LINES_PER_SECOND`](super::LINES_PER_SECOND) of a kind.
#[derive(Debug)]
pub struct JsonLines<W> {
    output: Mutex<W>,
    bound: Bound,
}

impl<W: Write> JsonLines<W> {
    /// Writes to `output`.
    pub fn new(output: W) -> Self {
        Self { output: Mutex::new(output), bound: Bound::default() }
    }
}

/// What is known of a span or an event.
#[derive(Debug, Default)]
struct Fields(Map<String, Value>);

impl Fields {
    fn set(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.set(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field, value);
    }
}

impl<S, W> Layer<S> for JsonLines<W>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: Write + 'static,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let metadata = event.metadata();
        let Some(kept_back) = self.bound.admit(metadata.callsite(), Instant::now()) else { return };
        let mut line = Fields::default();
        for span in context.event_scope(event).into_iter().flat_map(|scope| scope.from_root()) {
            if let Some(fields) = span.extensions().get::<Fields>() {
                line.0.extend(fields.0.iter().map(|(name, value)| (name.clone(), value.clone())));
            }
        }
        event.record(&mut line);
        if kept_back > 0 {
            line.0.insert("kept_back".to_owned(), kept_back.into());
        }
        // No time of a machine is beyond what the format has.
        let timestamp = DateTime::from(SystemTime::now()).fmt(Format::DateTime).unwrap_or_default();
        line.0.insert("timestamp".to_owned(), timestamp.into());
        line.0.insert("level".to_owned(), metadata.level().as_str().into());
        line.0.insert("target".to_owned(), metadata.target().into());
        let text = format!("{}\n", Value::Object(line.0));
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        // A log that cannot be written cannot say so.
        let _ = output.write_all(text.as_bytes()).and_then(|()| output.flush());
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::logs::LINES_PER_SECOND;
    use serde_json::json;
    use std::sync::Arc;
    use tracing_subscriber::layer::SubscriberExt;

    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// The lines that `what` logs.
    fn logged(what: impl FnOnce()) -> Vec<Value> {
        let log = Log::default();
        let subscriber = tracing_subscriber::registry().with(JsonLines::new(log.clone()));
        tracing::subscriber::with_default(subscriber, what);
        let bytes = log.0.lock().unwrap();
        std::str::from_utf8(&bytes).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn fields_of_spans_stand_beside_the_events_own_which_go_first() {
        let lines = logged(|| {
            let _outer = tracing::info_span!("outer", requestId = "r-1", limit = "outer").entered();
            let inner = tracing::info_span!("inner", route = tracing::field::Empty, n = 1u64).entered();
            inner.record("route", "GET /a\nb");
            tracing::warn!(limit = "orders", cost = -1i64, fits = false, none = None::<u64>, "denied {}", 7);
        });
        let [line] = &lines[..] else { unreachable!("{lines:?}") };
        let of = |name: &str| line[name].clone();
        assert_eq!([of("requestId"), of("route"), of("n")], [json!("r-1"), json!("GET /a\nb"), json!(1)]);
        assert_eq!([of("limit"), of("cost"), of("fits")], [json!("orders"), json!(-1), json!(false)]);
        assert_eq!([of("message"), of("level"), of("none")], [json!("denied 7"), json!("WARN"), json!(null)]);
        let time = DateTime::from_str(line["timestamp"].as_str().unwrap(), Format::DateTime).unwrap();
        assert!(time.secs() > 1_700_000_000 && line["target"].as_str().unwrap().starts_with("tollgate::logs"));
    }

    #[test]
    fn of_a_flood_a_second_has_its_bound_and_the_next_line_says_how_many_were_kept_back() {
        static PLACES: [Place; 2] = [Place(0), Place(1)];
        let kinds = PLACES.each_ref().map(|place| tracing::callsite::Identifier(place));
        let (bound, start) = (Bound::default(), Instant::now());
        let at = |kind: usize, ms| bound.admit(kinds[kind].clone(), start + std::time::Duration::from_millis(ms));
        for n in 0..100 {
            assert_eq!(at(0, n), (n < u64::from(LINES_PER_SECOND)).then_some(0), "{n}");
        }
        assert_eq!(at(1, 99), Some(0), "another kind has its own");
        assert_eq!((at(0, 1_000), at(0, 1_001)), (Some(90), Some(0)));
    }

    /// Somewhere that logs. Of some size, so that each has an address of its own.
    struct Place(#[allow(dead_code)] u8);

    impl tracing::callsite::Callsite for Place {
        fn set_interest(&self, _: tracing::subscriber::Interest) {}

        fn metadata(&self) -> &tracing::Metadata<'_> {
            unreachable!("nobody asks")
        }
    }
}
