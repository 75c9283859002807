//! Conditions (API Reference, `Statement`).

use super::address::{self, Told};
use super::{Assumptions, Request, Truth};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use regex_lite::Regex;
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// A request, and what its judgement takes.
pub(super) struct Judge<'a> {
    pub(super) request: &'a Request,
    pub(super) ip_sets: &'a BTreeMap<String, Vec<String>>,
    pub(super) expressions: &'a BTreeMap<String, Regex>,
    pub(super) assumptions: Assumptions,
}

/// Collects the expressions of a statement and all within it.
pub(super) fn collect(of: &Value, into: &mut BTreeMap<String, Regex>) {
    match of {
        Value::Object(map) => {
            if let Some(text) = map.get("RegexString").and_then(Value::as_str)
                && let Ok(expression) = Regex::new(text)
            {
                into.insert(text.to_owned(), expression);
            }
            map.values().for_each(|of| collect(of, into));
        }
        Value::Array(list) => list.iter().for_each(|of| collect(of, into)),
        _ => {}
    }
}

impl Judge<'_> {
    /// Whether a statement holds. It has one kind; keys without a value are those that it has not.
    pub(super) fn judge(&self, statement: &Value) -> Truth {
        let kinds = statement.as_object().into_iter().flatten();
        let mut kinds = kinds.filter(|(_, of)| !of.is_null());
        let (Some((kind, of)), None) = (kinds.next(), kinds.next()) else { return Truth::Unknown };
        let nested = |of: &'_ Value| -> Vec<Truth> {
            of["Statements"].as_array().into_iter().flatten().map(|of| self.judge(of)).collect()
        };
        match kind.as_str() {
            "AndStatement" => nested(of).into_iter().min().unwrap_or(Truth::Unknown),
            "OrStatement" => nested(of).into_iter().max().unwrap_or(Truth::Unknown),
            "NotStatement" => self.judge(&of["Statement"]).not(),
            "ByteMatchStatement" => self.bytes(of).unwrap_or(Truth::Unknown),
            "RegexMatchStatement" => self.regex(of).unwrap_or(Truth::Unknown),
            "IPSetReferenceStatement" => self.ip_set(of).unwrap_or(Truth::Unknown),
            _ => Truth::Unknown,
        }
    }

    fn bytes(&self, of: &Value) -> Option<Truth> {
        let wanted = STANDARD.decode(of["SearchString"].as_str()?).ok()?;
        let found = self.field(of)?;
        Some(Truth::of(match of["PositionalConstraint"].as_str()? {
            "EXACTLY" => found == wanted,
            "STARTS_WITH" => found.starts_with(&wanted),
            "ENDS_WITH" => found.ends_with(&wanted),
            "CONTAINS" => found.windows(wanted.len().max(1)).any(|window| window == wanted),
            _ => return None,
        }))
    }

    fn regex(&self, of: &Value) -> Option<Truth> {
        let expression = self.expressions.get(of["RegexString"].as_str()?)?;
        // Each byte is a character: a path need not be UTF-8, and what is looked for is ASCII.
        let text: String = self.field(of)?.into_iter().map(char::from).collect();
        Some(Truth::of(expression.is_match(&text)))
    }

    fn ip_set(&self, of: &Value) -> Option<Truth> {
        let blocks = self.ip_sets.get(of["ARN"].as_str()?)?;
        let config = &of["IPSetForwardedIPConfig"];
        if !config.is_object() {
            return is_in_any(self.request.source?, blocks);
        }
        let addresses = match address::told(self.request, config["HeaderName"].as_str()?) {
            Told::Absent => return Some(Truth::No),
            Told::Invalid => return Some(Truth::of(config["FallbackBehavior"] == "MATCH")),
            Told::Addresses(addresses) => addresses,
        };
        let looked_at = match config["Position"].as_str()? {
            "FIRST" => addresses.first().into_iter().copied().collect(),
            "LAST" => addresses.last().into_iter().copied().collect(),
            "ANY" => addresses,
            _ => return None,
        };
        looked_at.into_iter().map(|address| is_in_any(address, blocks)).collect::<Option<Vec<_>>>()?.into_iter().max()
    }

    /// The part of the request that a statement looks at, transformed; `None` if that is not known here.
    fn field(&self, of: &Value) -> Option<Vec<u8>> {
        let fields = of["FieldToMatch"].as_object()?;
        let (field, of_field) = fields.iter().find(|(_, of)| !of.is_null())?;
        let request = self.request;
        let text = match field.as_str() {
            "UriPath" => &request.path,
            "Method" => &request.method,
            "QueryString" => &request.query,
            "SingleHeader" => request.values(of_field["Name"].as_str()?).next()?,
            _ => return None,
        };
        let mut transforms: Vec<&Value> = of["TextTransformations"].as_array()?.iter().collect();
        transforms.sort_by_key(|transform| transform["Priority"].as_i64());
        let apply = |text, transform: &Value| self.assumptions.apply(transform["Type"].as_str()?, text);
        transforms.into_iter().try_fold(text.as_bytes().to_vec(), apply)
    }
}

fn is_in_any(address: IpAddr, blocks: &[String]) -> Option<Truth> {
    let found = blocks.iter().map(|block| address::is_in(address, block)).collect::<Option<Vec<_>>>()?;
    Some(Truth::of(found.contains(&true)))
}
