//! Lines of a log as they were pasted: one object of JSON a line, or as a console lays them out over several.
//!
//! Invariant: whatever stands around the objects is skipped, and reading takes time in proportion to the length.

use serde_json::{Deserializer, Map, Value};

/// The target of denials.
pub(super) const DENIALS: &str = "tollgate::denials";

/// What is in a log.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Line {
    /// A denial.
    Denial(Map<String, Value>),
    /// Another line of ours, with the level that it has.
    Ours(Map<String, Value>),
    /// Metrics, in CloudWatch's embedded format.
    Metrics(Map<String, Value>),
    /// Another object.
    Other,
}

/// Whether an object is a line that a function of ours has logged.
pub(super) fn is_of_ours(object: &Map<String, Value>) -> bool {
    !matches!(kind(object.clone()), Line::Other)
}

/// All objects of a text, in their order. CloudWatch's own answers (`filter-log-events`) have the lines in `events[].message`.
pub(super) fn read(text: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(begin) = rest.find('{') {
        rest = &rest[begin..];
        let mut objects = Deserializer::from_str(rest).into_iter::<Value>();
        match objects.next() {
            Some(Ok(value)) => {
                let end = objects.byte_offset();
                lines.extend(within(value));
                rest = rest.get(end..).unwrap_or_default();
            }
            _ => rest = rest.split_once('\n').map_or("", |(_, rest)| rest),
        }
    }
    lines
}

fn within(value: Value) -> Vec<Line> {
    let Value::Object(mut object) = value else { return Vec::new() };
    match object.remove("events") {
        Some(Value::Array(events)) => {
            events.iter().filter_map(|event| event["message"].as_str()).flat_map(one).collect()
        }
        Some(events) => {
            object.insert("events".to_owned(), events);
            vec![kind(object)]
        }
        None => vec![kind(object)],
    }
}

/// The object of one event; not of events within it.
fn one(text: &str) -> Option<Line> {
    match serde_json::from_str(text.trim()) {
        Ok(Value::Object(object)) => Some(kind(object)),
        _ => None,
    }
}

fn kind(object: Map<String, Value>) -> Line {
    let text = |name: &str| object.get(name).and_then(Value::as_str);
    if object.get("_aws").is_some_and(|aws| aws.get("CloudWatchMetrics").is_some()) {
        return Line::Metrics(object);
    }
    let is_line = text("level").is_some() && text("message").is_some();
    match text("target") {
        Some(DENIALS) => Line::Denial(object),
        Some(_) if is_line => Line::Ours(object),
        _ => Line::Other,
    }
}
