//! A line that is a JSON object, with the fields of the objects in it under dotted names.

use crate::entry::{Fields, Flaw, LineError};
use serde_json::Value;
use std::borrow::Cow;

/// Objects in objects beyond this depth are not looked into.
const DEPTH: usize = 4;

/// A JSON object.
#[derive(Debug)]
pub(super) struct Object<'a>(Fields<'a>, Value);

impl<'a> Object<'a> {
    pub(super) fn parse(line: &[u8]) -> Result<Self, LineError> {
        let value: Value = serde_json::from_slice(line)
            .map_err(|e| LineError { column: e.column().clamp(1, line.len() + 1), flaw: Flaw::Json(plain(&e)) })?;
        if !value.is_object() {
            return Err(LineError::whole(Flaw::Json("it is another value".to_owned())));
        }
        let mut fields = Fields::default();
        flatten("", &value, DEPTH, &mut fields);
        Ok(Self(fields, value))
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name)
    }

    /// The first of these fields that has a value, with its name.
    pub(super) fn first<'n>(&self, names: &[&'n str]) -> Option<(&'n str, &str)> {
        names.iter().find_map(|name| Some((*name, self.0.get(name)?)))
    }

    pub(super) fn value(&self) -> &Value {
        &self.1
    }

    pub(super) fn into_fields(self) -> Fields<'a> {
        self.0
    }
}

/// What is wrong, without the place, which is told apart.
fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or_default().to_owned()
}

fn flatten(prefix: &str, value: &Value, depth: usize, fields: &mut Fields<'_>) {
    let Some(object) = value.as_object().filter(|_| depth > 0) else { return };
    for (name, value) in object {
        let name = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match value {
            Value::String(text) => fields.push(name, Cow::Owned(text.clone())),
            Value::Number(number) => fields.push(name, number.to_string()),
            Value::Bool(value) => fields.push(name, value.to_string()),
            Value::Object(_) => flatten(&name, value, depth - 1, fields),
            Value::Null | Value::Array(_) => {}
        }
    }
}
