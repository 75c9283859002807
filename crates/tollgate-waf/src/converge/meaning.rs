//! Whether two spellings are one: what the API answers has other defaults, orders and empty places than what it was sent.

use serde_json::{Map, Value, json};

/// The value in a spelling that is the same for all that mean the same.
pub(super) fn of(value: &Value) -> Value {
    match value {
        Value::Object(map) => of_object(map),
        Value::Array(list) => list.iter().map(of).collect(),
        other => other.clone(),
    }
}

/// Whether both mean the same.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    of(a) == of(b)
}

fn of_object(map: &Map<String, Value>) -> Value {
    let mut meant = Map::new();
    for (key, value) in map {
        let value = of(value);
        let is_nothing = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
        if is_nothing || is_default(key, &value) {
            continue;
        }
        let value = match (key.as_str(), value) {
            ("TextTransformations", Value::Array(list)) => chain(list),
            // Order says nothing in any of these.
            (
                "Statements" | "ResponseHeaders" | "Addresses" | "Filters" | "Conditions" | "RedactedFields",
                Value::Array(list),
            ) => sorted(list),
            // Of header fields case says nothing.
            ("HeaderName", Value::String(name)) => name.to_ascii_lowercase().into(),
            (_, value) => value,
        };
        meant.insert(key.clone(), value);
    }
    meant.into()
}

/// What is not said and what is said are one (API Reference, `RateBasedStatement`).
fn is_default(key: &str, value: &Value) -> bool {
    key == "EvaluationWindowSec" && *value == 300
}

/// Transformations in their order; their numbers say nothing else.
fn chain(mut list: Vec<Value>) -> Value {
    list.sort_by_key(|transform| transform["Priority"].as_i64());
    list.iter().map(|transform| transform["Type"].clone()).collect::<Vec<_>>().into()
}

fn sorted(mut list: Vec<Value>) -> Value {
    list.sort_by_key(ToString::to_string);
    json!(list)
}
