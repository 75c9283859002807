//! JSON values as the text of a dimension. Invariant: one number has one text, however it is written, and two integers
//! of 64 bits have two.

use serde_json::{Number, Value};

/// Integers from here on are several to whoever reads numbers as JavaScript does (2^53, RFC 8259 section 6).
const BEYOND_FLOATS: u64 = 1 << 53;

/// Text, a number or a boolean as text: `1`, `1.0` and `1e0` are `1`.
pub(crate) fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Number(number) if number.is_u64() || number.is_i64() => Some(number.to_string()),
        // Adding 0 makes a zero of a negative one.
        Value::Number(number) => Some((number.as_f64()? + 0.0).to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Whether a value is the same to whoever reads it. Beyond 53 bits the integers that one parser tells apart are one to
/// another.
pub(crate) fn is_one_to_all(value: &Value) -> bool {
    let is_small = |number: &Number| number.as_f64().is_some_and(|number| number.abs() < BEYOND_FLOATS as f64);
    value.as_number().is_none_or(is_small)
}
