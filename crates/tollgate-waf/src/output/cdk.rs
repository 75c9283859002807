//! Properties for the constructs of the CDK's module `aws-wafv2`: `CfnWebACL`, `CfnIPSet` by logical ID, `CfnLoggingConfiguration`.
//!
//! A reference to an IP set is text for `Fn.sub`, like `${TollgateHqIpv4.Arn}`: the constructs check that it is text.

use super::cloudformation::CloudFormation;
use super::logical_ids;
use crate::model::WebAcl;
use crate::shape::{self, Spelling};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

struct Cdk<'a>(&'a BTreeMap<&'a str, String>);

impl Spelling for Cdk<'_> {
    fn ip_set(&self, name: &str) -> (&'static str, Value) {
        let id = self.0.get(name).map(String::as_str).unwrap_or_default();
        ("Arn", format!("${{{id}.Arn}}").into())
    }

    fn search_string(&self, text: &str) -> String {
        CloudFormation(self.0).search_string(text)
    }
}

/// `{ "webAcl", "ipSets", "logging" }`; `logging` is `null` if there is none.
#[must_use]
pub fn props(acl: &WebAcl) -> Value {
    let ids = logical_ids(acl);
    let set = |set| camel(shape::ip_set(acl, set));
    let sets = acl.ip_sets.iter().map(|of| (ids.get(of.name.as_str()).cloned().unwrap_or_default(), set(of)));
    json!({
        "webAcl": camel(shape::new_acl(acl, &Cdk(&ids)).into()),
        "ipSets": sets.collect::<Map<_, _>>(),
        "logging": acl.logging.as_ref().map(|logging| camel(shape::logging(logging).into())),
    })
}

/// Keys as the CDK spells them. Names that somebody has chosen stay: those of bodies. What the constructs take as any JSON goes into the
/// template as it is, so it has CloudFormation's keys.
fn camel(value: Value) -> Value {
    match value {
        Value::Array(list) => list.into_iter().map(camel).collect(),
        Value::Object(map) => map
            .into_iter()
            .map(|(key, value)| match key.as_str() {
                "CustomResponseBodies" => ("customResponseBodies".to_owned(), named(value)),
                "SingleHeader" | "LoggingFilter" => (camel_key(&key), value),
                "Key" | "Value" => (key.to_ascii_lowercase(), value),
                _ => (camel_key(&key), camel(value)),
            })
            .collect::<Map<_, _>>()
            .into(),
        other => other,
    }
}

fn named(value: Value) -> Value {
    match value {
        Value::Object(map) => map.into_iter().map(|(key, value)| (key, camel(value))).collect::<Map<_, _>>().into(),
        other => other,
    }
}

/// `IPSetForwardedIPConfig` is `ipSetForwardedIpConfig`.
fn camel_key(key: &str) -> String {
    let key = key.replace("IP", "Ip").replace("ACL", "Acl");
    let mut chars = key.chars();
    chars.next().map(|first| first.to_ascii_lowercase().to_string() + chars.as_str()).unwrap_or_default()
}
