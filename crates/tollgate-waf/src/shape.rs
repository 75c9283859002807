//! The rules as JSON, as each of those who take them spells it.
//!
//! Invariant: what all of them get is the same but for spelling: names of keys, how an IP set is referred to, and whether a text that
//! is compared with is base64.

use crate::model::{Action, Body, Catches, Field, IpSet, Logging, Position, Rate, Rule, Statement, Transform, WebAcl};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use tollgate_policy::{BodyKind, EdgeScope};

/// The tag of what a policy owns. Its value is the policy's prefix.
pub const TAG: &str = "tollgate";

/// The tag that says whose ACL it is for: two ACLs of one account may go by one prefix. Its value is the ACL's name.
pub const ACL_TAG: &str = "tollgate-acl";

/// Who takes it.
pub(crate) trait Spelling {
    /// The key and value of the reference to an IP set.
    fn ip_set(&self, name: &str) -> (&'static str, Value);
    /// The value of `SearchString`.
    fn search_string(&self, text: &str) -> String;
}

/// The API (API Reference, "Data types"), where IP sets are told by ARN.
pub(crate) struct Api<F>(pub(crate) F);

impl<F: Fn(&str) -> String> Spelling for Api<F> {
    fn ip_set(&self, name: &str) -> (&'static str, Value) {
        ("ARN", self.0(name).into())
    }

    fn search_string(&self, text: &str) -> String {
        STANDARD.encode(text)
    }
}

/// The scope's word.
pub(crate) fn scope(scope: EdgeScope) -> &'static str {
    match scope {
        EdgeScope::CloudFront => "CLOUDFRONT",
        _ => "REGIONAL",
    }
}

/// The tags of what a policy owns.
pub(crate) fn tags(acl: &WebAcl) -> Value {
    json!([{ "Key": TAG, "Value": acl.prefix }, { "Key": ACL_TAG, "Value": acl.name }])
}

/// Whether what has these tags is the policy's. Versions before this one have not said for which ACL.
pub(crate) fn is_tagged(acl: &WebAcl, tags: &[Value]) -> bool {
    let of = |key: &str| tags.iter().find(|tag| tag["Key"] == key).map(|tag| &tag["Value"]);
    of(TAG).is_some_and(|prefix| *prefix == acl.prefix) && of(ACL_TAG).is_none_or(|name| *name == acl.name)
}

/// What an ACL has that we make: requests that no rule stops pass.
pub(crate) fn new_acl(acl: &WebAcl, spelling: &dyn Spelling) -> Map<String, Value> {
    let mut made = Map::new();
    made.insert("Name".to_owned(), acl.name.clone().into());
    made.insert("Scope".to_owned(), scope(acl.scope).into());
    made.insert("Description".to_owned(), "Rate limits by address, made by tollgate from a policy".into());
    made.insert("DefaultAction".to_owned(), json!({ "Allow": {} }));
    made.insert("VisibilityConfig".to_owned(), visibility(&acl.name));
    made.insert("Rules".to_owned(), acl.rules.iter().map(|of| rule(of, spelling)).collect());
    if !acl.bodies.is_empty() {
        made.insert("CustomResponseBodies".to_owned(), bodies(acl));
    }
    made.insert("Tags".to_owned(), tags(acl));
    made
}

pub(crate) fn ip_set(acl: &WebAcl, set: &IpSet) -> Value {
    json!({
        "Name": set.name,
        "Scope": scope(acl.scope),
        "IPAddressVersion": if set.is_v6 { "IPV6" } else { "IPV4" },
        "Addresses": set.blocks.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "Tags": tags(acl),
    })
}

pub(crate) fn bodies(acl: &WebAcl) -> Value {
    let body = |Body { kind, content }: &Body| {
        let kind = match kind {
            BodyKind::Json => "APPLICATION_JSON",
            BodyKind::Html => "TEXT_HTML",
            _ => "TEXT_PLAIN",
        };
        json!({ "ContentType": kind, "Content": content })
    };
    acl.bodies.iter().map(|(key, of)| (key.clone(), body(of))).collect::<Map<_, _>>().into()
}

/// What goes with logging, but for the ACL that it is about. Secrets of callers are left out: who reads logs is no one to have them.
pub(crate) fn logging(logging: &Logging) -> Map<String, Value> {
    let header = |name: &str| json!({ "SingleHeader": { "Name": name } });
    let mut made = Map::new();
    made.insert("LogDestinationConfigs".to_owned(), json!([logging.destination]));
    // `x-api-key` is where API Gateway looks for a key.
    let redacted = json!([header("authorization"), header("cookie"), header("x-api-key"), { "QueryString": {} }]);
    made.insert("RedactedFields".to_owned(), redacted);
    if !logging.keeps_all {
        let caught =
            ["BLOCK", "COUNT", "CAPTCHA", "CHALLENGE"].map(|action| json!({ "ActionCondition": { "Action": action } }));
        let filter = json!({ "Behavior": "KEEP", "Requirement": "MEETS_ANY", "Conditions": caught });
        made.insert("LoggingFilter".to_owned(), json!({ "DefaultBehavior": "DROP", "Filters": [filter] }));
    }
    made
}

pub(crate) fn rule(rule: &Rule, spelling: &dyn Spelling) -> Value {
    json!({
        "Name": rule.name,
        "Priority": rule.priority,
        "Statement": match &rule.catches {
            Catches::Over(limit) => json!({ "RateBasedStatement": rate(limit, spelling) }),
            Catches::Where(condition) => statement(condition, spelling),
        },
        "Action": action(&rule.action),
        "VisibilityConfig": visibility(&rule.name),
    })
}

fn rate(of: &Rate, spelling: &dyn Spelling) -> Map<String, Value> {
    let mut rate = Map::new();
    rate.insert("Limit".to_owned(), of.limit.into());
    rate.insert("EvaluationWindowSec".to_owned(), of.window_secs.into());
    let by = if of.forwarded.is_some() { "FORWARDED_IP" } else { "IP" };
    rate.insert("AggregateKeyType".to_owned(), by.into());
    if let Some(forwarded) = &of.forwarded {
        let fallback = if forwarded.counts_invalid { "MATCH" } else { "NO_MATCH" };
        let config = json!({ "HeaderName": forwarded.header, "FallbackBehavior": fallback });
        rate.insert("ForwardedIPConfig".to_owned(), config);
    }
    if let Some(scope_down) = &of.scope_down {
        rate.insert("ScopeDownStatement".to_owned(), statement(scope_down, spelling));
    }
    rate
}

fn action(action: &Action) -> Value {
    match action {
        Action::Count => json!({ "Count": {} }),
        Action::Captcha => json!({ "Captcha": {} }),
        Action::Challenge => json!({ "Challenge": {} }),
        Action::Block { body, headers } => {
            let headers: Vec<Value> =
                headers.iter().map(|(name, value)| json!({ "Name": name, "Value": value })).collect();
            let response = json!({ "ResponseCode": 429, "CustomResponseBodyKey": body, "ResponseHeaders": headers });
            json!({ "Block": { "CustomResponse": response } })
        }
    }
}

fn visibility(metric: &str) -> Value {
    json!({ "SampledRequestsEnabled": true, "CloudWatchMetricsEnabled": true, "MetricName": metric })
}

fn statement(of: &Statement, spelling: &dyn Spelling) -> Value {
    let nested = |of: &[Statement]| of.iter().map(|of| statement(of, spelling)).collect::<Vec<_>>();
    match of {
        Statement::Bytes { field: at, position, text, transforms: through } => json!({ "ByteMatchStatement": {
            "FieldToMatch": field(*at),
            "PositionalConstraint": if *position == Position::Exactly { "EXACTLY" } else { "STARTS_WITH" },
            "SearchString": spelling.search_string(text),
            "TextTransformations": transforms(through),
        } }),
        Statement::Regex { field: at, expression, transforms: through } => json!({ "RegexMatchStatement": {
            "FieldToMatch": field(*at),
            "RegexString": expression,
            "TextTransformations": transforms(through),
        } }),
        Statement::In { ip_set, header } => {
            let (key, value) = spelling.ip_set(ip_set);
            let mut set = Map::new();
            set.insert(key.to_owned(), value);
            if let Some(header) = header {
                // Whoever sends no valid address is in nobody's office.
                let config = json!({ "HeaderName": header, "FallbackBehavior": "NO_MATCH", "Position": "FIRST" });
                set.insert("IPSetForwardedIPConfig".to_owned(), config);
            }
            json!({ "IPSetReferenceStatement": set })
        }
        Statement::All(of) => json!({ "AndStatement": { "Statements": nested(of) } }),
        Statement::Any(of) => json!({ "OrStatement": { "Statements": nested(of) } }),
        Statement::Not(of) => json!({ "NotStatement": { "Statement": statement(of, spelling) } }),
    }
}

fn field(field: Field) -> Value {
    match field {
        Field::Method => json!({ "Method": {} }),
        Field::Path => json!({ "UriPath": {} }),
    }
}

/// WAF wants one at least; `NONE` does nothing.
fn transforms(of: &[Transform]) -> Vec<Value> {
    let word = |transform: &Transform| match transform {
        Transform::UrlDecode => "URL_DECODE",
        Transform::UrlDecodeUni => "URL_DECODE_UNI",
        Transform::NormalizePath => "NORMALIZE_PATH",
        Transform::Lowercase => "LOWERCASE",
    };
    let words: Vec<&str> = if of.is_empty() { vec!["NONE"] } else { of.iter().map(word).collect() };
    words.iter().enumerate().map(|(priority, word)| json!({ "Priority": priority, "Type": word })).collect()
}
