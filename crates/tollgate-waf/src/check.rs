//! What WAF would refuse, found before anything is sent: in an ACL as the API has it, with everybody's rules in it.
//!
//! Figures are those of the API Reference (`RateBasedStatement`, `CustomResponse`, `RegexMatchStatement`) and of the Developer Guide,
//! "AWS WAF quotas".

use crate::capacity;
use crate::model::{CLOUDFRONT_REGION, WebAcl};
use crate::shape::{self, Api};
use serde_json::Value;
use std::collections::BTreeMap;
use tollgate_policy::{Edge, EdgeScope};

/// Characters of a regular expression.
const MOST_EXPRESSION: usize = 512;
/// Bytes of all bodies of an ACL.
const MOST_BODIES_BYTES: usize = 50 * 1024;
/// Rules in a list that a statement has.
const LEAST_NESTED: usize = 2;

/// Everything that WAF would refuse, each in a sentence; empty if there is nothing.
#[must_use]
pub fn acl(acl: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let rules = list(acl, "Rules");
    twice(rules, "Name", &mut found);
    twice(rules, "Priority", &mut found);
    let rate_based = rules.iter().filter(|rule| rule["Statement"]["RateBasedStatement"].is_object()).count();
    if rate_based > Edge::MOST_RULES {
        found.push(format!("{rate_based} rate-based rules, and an ACL has {} at most", Edge::MOST_RULES));
    }
    bodies(&acl["CustomResponseBodies"], &mut found);
    for rule in rules {
        let mut of_rule = Vec::new();
        action(&rule["Action"], &acl["CustomResponseBodies"], &mut of_rule);
        statement(&rule["Statement"], &mut of_rule);
        found.extend(of_rule.into_iter().map(|what| format!("rule {}: {what}", rule["Name"])));
    }
    found
}

/// What of a policy's rules alone WAF would refuse.
#[must_use]
pub fn rendered(of: &WebAcl) -> Vec<String> {
    let arn = |name: &str| name.to_owned();
    acl(&shape::new_acl(of, &Api(arn)).into())
        .into_iter()
        .chain(names(of))
        .chain(capacity(of))
        .chain(logging(of))
        .collect()
}

/// Whether the policy's rules alone take more than an ACL has.
fn capacity(of: &WebAcl) -> Option<String> {
    let units = capacity::of(&of.rules);
    (units > capacity::MOST)
        .then(|| format!("its rules take about {units} capacity units, and an ACL has {} at most", capacity::MOST))
}

/// Names that are longer than WAF takes, with the prefix before them.
fn names(of: &WebAcl) -> Vec<String> {
    let rules = of.rules.iter().map(|rule| ("rule", &rule.name));
    let sets = of.ip_sets.iter().map(|set| ("IP set", &set.name));
    let bodies = of.bodies.keys().map(|key| ("body", key));
    let all = rules.chain(sets).chain(bodies).filter(|(_, name)| name.len() > Edge::MOST_NAME);
    let most = Edge::MOST_NAME;
    all.map(|(what, name)| format!("the name of {what} {name} has {} characters, {most} at most", name.len())).collect()
}

/// Whether requests of CloudFront would be logged to where WAF does not log them (Developer Guide, "Logging destinations"). Buckets, whose
/// ARNs have no Region, may be anywhere.
fn logging(of: &WebAcl) -> Option<String> {
    let destination = &of.logging.as_ref().filter(|_| of.scope == EdgeScope::CloudFront)?.destination;
    let region = destination.split(':').nth(3).filter(|region| !region.is_empty() && *region != CLOUDFRONT_REGION)?;
    Some(format!("requests of CloudFront are logged in {CLOUDFRONT_REGION}, and {destination} is in {region}"))
}

/// Why no ACL can be put on a resource, or not this one: `None` if it can.
#[must_use]
pub fn resource(arn: &str, is_cloudfront: bool) -> Option<&'static str> {
    let service = arn.split(':').nth(2).unwrap_or_default();
    match service {
        "apigateway" if arn.contains("/apis/") => Some(
            "AWS WAF does not take HTTP APIs; put a CloudFront distribution in front (scope = \"cloudfront\"), or use a REST API",
        ),
        "lambda" => {
            Some("AWS WAF does not take function URLs; put a CloudFront distribution in front (scope = \"cloudfront\")")
        }
        // The one that is associated, and global all the same (API Reference, `CreateWebACL`, "Scope").
        "amplify" => (!is_cloudfront).then_some("an Amplify app takes an ACL of scope = \"cloudfront\""),
        _ if is_cloudfront => Some(
            "an ACL of scope = \"cloudfront\" is for distributions, which name it themselves (WebACLId of their configuration), and Amplify apps",
        ),
        "cloudfront" => Some(
            "a distribution takes an ACL of scope = \"cloudfront\", and names it itself (WebACLId of its configuration)",
        ),
        "apigateway" | "elasticloadbalancing" | "appsync" | "cognito-idp" | "apprunner" | "ec2" => None,
        _ => Some("it is not the ARN of a REST API's stage, a load balancer or another resource that AWS WAF takes"),
    }
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

fn twice(rules: &[Value], key: &str, found: &mut Vec<String>) {
    let mut first: BTreeMap<String, &Value> = BTreeMap::new();
    for rule in rules {
        if let Some(earlier) = first.insert(rule[key].to_string(), &rule["Name"]) {
            let what = key.to_ascii_lowercase();
            found.push(format!("rules {earlier} and {} have the same {what}, {}", rule["Name"], rule[key]));
        }
    }
}

fn bodies(bodies: &Value, found: &mut Vec<String>) {
    let sizes = bodies.as_object().into_iter().flatten();
    let sizes: Vec<(&String, usize)> =
        sizes.map(|(key, body)| (key, body["Content"].as_str().map_or(0, str::len))).collect();
    for (key, size) in &sizes {
        if !(1..=Edge::MOST_BODY_BYTES).contains(size) {
            found.push(format!("body {key:?} has {size} bytes, not 1 to {}", Edge::MOST_BODY_BYTES));
        }
    }
    let all: usize = sizes.iter().map(|(_, size)| size).sum();
    if sizes.len() > Edge::MOST_BODIES || all > MOST_BODIES_BYTES {
        let (most, bytes) = (Edge::MOST_BODIES, MOST_BODIES_BYTES);
        found.push(format!("{} bodies with {all} bytes, and an ACL has {most} with {bytes} at most", sizes.len()));
    }
}

fn action(action: &Value, bodies: &Value, found: &mut Vec<String>) {
    let response = &action["Block"]["CustomResponse"];
    if let Some(key) = response["CustomResponseBodyKey"].as_str().filter(|key| bodies[*key].is_null()) {
        found.push(format!("there is no body {key:?}"));
    }
    let headers = list(response, "ResponseHeaders");
    if headers.len() > Edge::MOST_HEADERS {
        found.push(format!("{} header fields, {} at most", headers.len(), Edge::MOST_HEADERS));
    }
    if headers
        .iter()
        .any(|header| header["Name"].as_str().is_some_and(|name| name.eq_ignore_ascii_case("content-type")))
    {
        found.push("the type of a body says `content-type`, a header field cannot".to_owned());
    }
}

fn statement(of: &Value, found: &mut Vec<String>) {
    for (kind, of) in of.as_object().into_iter().flatten().filter(|(_, of)| !of.is_null()) {
        match kind.as_str() {
            "RateBasedStatement" => rate(of, found),
            "AndStatement" | "OrStatement" => {
                let nested = list(of, "Statements");
                if nested.len() < LEAST_NESTED {
                    found.push(format!("{kind} has {} statements, {LEAST_NESTED} at least", nested.len()));
                }
                nested.iter().for_each(|of| statement(of, found));
            }
            "NotStatement" => statement(&of["Statement"], found),
            "RegexMatchStatement" => {
                let length = of["RegexString"].as_str().map_or(0, str::len);
                if !(1..=MOST_EXPRESSION).contains(&length) {
                    let most = MOST_EXPRESSION;
                    found.push(format!(
                        "an expression of {length} characters, {most} at most: name a path with fewer segments"
                    ));
                }
            }
            "ByteMatchStatement" => {
                // Base64 is a third longer than what it stands for.
                let bytes = of["SearchString"].as_str().map_or(0, |text| text.trim_end_matches('=').len() * 3 / 4);
                if !(1..=Edge::MOST_PATH_BYTES).contains(&bytes) {
                    found.push(format!("a text of {bytes} bytes is compared with, {} at most", Edge::MOST_PATH_BYTES));
                }
            }
            _ => {}
        }
    }
}

fn rate(of: &Value, found: &mut Vec<String>) {
    let (least, most) = (Edge::LIMITS.start(), Edge::LIMITS.end());
    if !of["Limit"].as_u64().is_some_and(|limit| Edge::LIMITS.contains(&limit)) {
        found.push(format!("a limit of {}, and WAF takes {least} to {most}", of["Limit"]));
    }
    let window = &of["EvaluationWindowSec"];
    if !window.is_null() && !window.as_u64().is_some_and(|secs| Edge::WINDOWS.contains(&secs)) {
        found.push(format!("a window of {window} s, and WAF takes 60, 120, 300 and 600"));
    }
    if of["AggregateKeyType"] == "FORWARDED_IP" && !of["ForwardedIPConfig"]["HeaderName"].is_string() {
        found.push("it counts by a forwarded address and names no header".to_owned());
    }
    if of["AggregateKeyType"] == "CONSTANT" && of["ScopeDownStatement"].is_null() {
        found.push("it counts all requests together and does not say which".to_owned());
    }
    statement(&serde_json::json!({ "NotStatement": { "Statement": of["ScopeDownStatement"] } }), found);
}
