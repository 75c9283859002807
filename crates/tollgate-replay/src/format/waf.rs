//! One line of the logs of AWS WAF, in JSON: what was asked, and what WAF did.
//!
//! Fields: <https://docs.aws.amazon.com/waf/latest/developerguide/logging-fields.html>.

use super::cursor::number;
use super::json::Object;
use crate::entry::{Entry, Fields, Flaw, LineError, Request, Waf};
use serde_json::Value;
use std::borrow::Cow;
use tollgate_core::Timestamp;

/// Whether an object is one line of such a log.
pub(super) fn is_one(object: &Object<'_>) -> bool {
    object.value()["httpRequest"].is_object() && object.get("action").is_some()
}

pub(super) fn parse(object: &Object<'_>) -> Result<Entry<'static>, LineError> {
    let time = object.get("timestamp").and_then(|millis| number(millis.as_bytes())?.checked_mul(1_000_000));
    let time = time.map(Timestamp::from_nanos).ok_or(LineError::whole(Flaw::TimeOf("timestamp")))?;
    let text = |name: &str| object.get(name).map(|text| Cow::Owned(text.to_owned()));
    let (Some(method), Some(uri)) = (text("httpRequest.httpMethod"), text("httpRequest.uri")) else {
        return Err(LineError::whole(Flaw::Lacks("`httpMethod` and `uri` in `httpRequest`")));
    };
    let target = object.get("httpRequest.args").map(|args| format!("{uri}?{args}")).map_or(uri, Cow::Owned);
    let client_ip = object.get("httpRequest.clientIp").and_then(|address| address.parse().ok());
    let action = text("action").ok_or(LineError::whole(Flaw::Lacks("`action`")))?;
    let rule = text("terminatingRuleId").unwrap_or_default();
    let value = object.value();
    let mut fields = Fields::default();
    for (field, at) in [("country", "httpRequest.country"), ("ja3", "ja3Fingerprint"), ("ja4", "ja4Fingerprint")] {
        if let Some(value) = text(at) {
            fields.push(field, value);
        }
    }
    for header in list(&value["httpRequest"]["headers"]) {
        if let (Some(name), Some(value)) = (header["name"].as_str(), header["value"].as_str()) {
            fields.push(format!("header.{}", name.to_ascii_lowercase()), value.to_owned());
        }
    }
    // A code is logged where WAF answered itself.
    let status = value["responseCodeSent"].as_u64().and_then(|code| u16::try_from(code).ok());
    Ok(Entry {
        time,
        client_ip,
        user: None,
        request: Some(Request { method, target }),
        status: status.filter(|code| *code < 1000).unwrap_or(0),
        size: None,
        fields,
        waf: Some(Waf { action, rule, counted: counted(value) }),
    })
}

/// Rules that matched and let the next one look: of the ACL, and of its rule groups.
fn counted(value: &Value) -> Vec<Cow<'static, str>> {
    let groups = list(&value["ruleGroupList"]).flat_map(|group| list(&group["nonTerminatingMatchingRules"]));
    let rules = list(&value["nonTerminatingMatchingRules"]).chain(groups);
    rules.filter_map(|rule| Some(Cow::Owned(rule["ruleId"].as_str()?.to_owned()))).collect()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
