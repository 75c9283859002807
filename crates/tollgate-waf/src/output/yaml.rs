//! JSON as YAML: blocks for objects and arrays, and JSON's own text for the rest, which is YAML, too (YAML 1.2, section 1.3).

use serde_json::Value;
use std::fmt::Write;

/// The value as a YAML document.
#[must_use]
pub fn yaml(value: &Value) -> String {
    let mut out = String::new();
    block(&mut out, value, 0, true);
    out
}

/// Writes a value that begins where a line has been begun, unless it `is_fresh`.
fn block(out: &mut String, value: &Value, depth: usize, is_fresh: bool) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (place, (key, value)) in map.iter().enumerate() {
                if place > 0 || !is_fresh {
                    indent(out, depth);
                }
                let _ = write!(out, "{}:", scalar_key(key));
                entry(out, value, depth + 1);
            }
        }
        Value::Array(list) if !list.is_empty() => {
            for (place, value) in list.iter().enumerate() {
                if place > 0 || !is_fresh {
                    indent(out, depth);
                }
                out.push('-');
                if is_block(value) {
                    out.push(' ');
                    block(out, value, depth + 1, true);
                } else {
                    let _ = writeln!(out, " {value}");
                }
            }
        }
        other => {
            let _ = writeln!(out, "{other}");
        }
    }
}

fn entry(out: &mut String, value: &Value, depth: usize) {
    if is_block(value) {
        out.push('\n');
        block(out, value, depth, false);
    } else {
        let _ = writeln!(out, " {value}");
    }
}

fn is_block(value: &Value) -> bool {
    value.as_object().is_some_and(|map| !map.is_empty()) || value.as_array().is_some_and(|list| !list.is_empty())
}

fn indent(out: &mut String, depth: usize) {
    out.push_str(&"  ".repeat(depth));
}

/// A key that is not a plain word is quoted.
fn scalar_key(key: &str) -> String {
    let is_plain = key.starts_with(|c: char| c.is_ascii_alphabetic()) && key.bytes().all(|b| b.is_ascii_alphanumeric());
    if is_plain { key.to_owned() } else { Value::from(key).to_string() }
}
