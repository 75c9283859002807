//! Our rules among those of others.

use super::{meaning, observe::Found};
use crate::model::WebAcl;
use crate::shape::{self, Api};
use serde_json::{Map, Value};

/// What `GetWebACL` tells and `UpdateWebACL` does not take (API Reference, both). Whatever else was read is sent back: what is not in
/// the request would be taken away.
const READ_ONLY: [&str; 9] = [
    "ARN",
    "Id",
    "Capacity",
    "LabelNamespace",
    "LockToken",
    "ManagedByFirewallManager",
    "RetrofittedByFirewallManager",
    "PreProcessFirewallManagerRuleGroups",
    "PostProcessFirewallManagerRuleGroups",
];

/// An ACL as it was read, with our rules and bodies as they are to be and everybody else's as they are.
pub(super) fn with_ours(read: &Value, acl: &WebAcl, arn_of: impl Fn(&str) -> String) -> Value {
    let rules: Vec<Value> = acl.rules.iter().map(|rule| shape::rule(rule, &Api(&arn_of))).collect();
    let bodies = shape::bodies(acl);
    with(read, &acl.prefix, rules, bodies.as_object().cloned().unwrap_or_default())
}

/// The same without ours.
pub(super) fn without_ours(read: &Value, prefix: &str) -> Value {
    with(read, prefix, Vec::new(), Map::new())
}

fn with(read: &Value, prefix: &str, ours: Vec<Value>, our_bodies: Map<String, Value>) -> Value {
    let theirs: Vec<Value> = rules(read).iter().filter(|rule| !is_ours(rule, prefix)).cloned().collect();
    let mut merged = read.clone();
    let kept = read["CustomResponseBodies"].as_object().into_iter().flatten();
    // One of ours that a rule of somebody else answers with stays.
    let kept = kept.filter(|(key, _)| !key.starts_with(prefix) || theirs.iter().any(|rule| answers_with(rule, key)));
    let mut bodies: Map<String, Value> = kept.map(|(key, body)| (key.clone(), body.clone())).collect();
    bodies.extend(our_bodies);
    merged["Rules"] = theirs.into_iter().chain(ours).collect();
    merged["CustomResponseBodies"] = bodies.into();
    merged
}

/// What `UpdateWebACL` takes to make the ACL that.
pub(super) fn update(read: &Found, merged: &Value, scope: &str) -> Value {
    let fields = merged.as_object().into_iter().flatten();
    let mut input: Map<String, Value> = fields
        .filter(|(key, value)| !READ_ONLY.contains(&key.as_str()) && !is_nothing(value))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    // An empty list takes away what was there.
    input.insert("Rules".to_owned(), merged["Rules"].clone());
    input.insert("Scope".to_owned(), scope.into());
    input.insert("Id".to_owned(), read.value["Id"].clone());
    input.insert("LockToken".to_owned(), read.lock_token.clone().into());
    input.into()
}

/// Whether nothing is to be written: both ACLs have rules and bodies that mean the same.
pub(super) fn is_same(read: &Value, merged: &Value) -> bool {
    let sorted = |acl: &Value| {
        let mut rules: Vec<Value> = rules(acl).iter().map(meaning::of).collect();
        rules.sort_by_key(|rule| rule["Name"].to_string());
        rules
    };
    let bodies = |acl: &Value| meaning::of(&acl["CustomResponseBodies"]).as_object().cloned().unwrap_or_default();
    sorted(read) == sorted(merged) && bodies(read) == bodies(merged)
}

pub(super) fn rules(acl: &Value) -> &[Value] {
    acl["Rules"].as_array().map_or(&[], Vec::as_slice)
}

/// Whether a rule is the policy's.
pub(super) fn is_ours(rule: &Value, prefix: &str) -> bool {
    rule["Name"].as_str().is_some_and(|name| name.starts_with(prefix))
}

fn answers_with(rule: &Value, body: &str) -> bool {
    rule["Action"]["Block"]["CustomResponse"]["CustomResponseBodyKey"] == body
}

/// What the API answers where there is nothing, and takes in no request.
fn is_nothing(value: &Value) -> bool {
    value.is_null() || value == "" || value.as_object().is_some_and(Map::is_empty)
}
