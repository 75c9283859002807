//! A template of CloudFormation, whose resources SAM's templates take as they are.

use super::{distribution, logical_ids};
use crate::model::{Logging, WebAcl};
use crate::shape::{self, Spelling};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use tollgate_policy::EdgeScope;

/// The logical ID of the ACL.
pub(super) const ACL: &str = "EdgeWebAcl";

/// Days that a log group can keep what is in it (CloudWatch Logs API Reference, `PutRetentionPolicy`).
const LOG_DAYS: [u16; 22] =
    [1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653];

/// CloudFormation, where IP sets are resources of the same template.
pub(super) struct CloudFormation<'a>(pub(super) &'a BTreeMap<&'a str, String>);

impl Spelling for CloudFormation<'_> {
    fn ip_set(&self, name: &str) -> (&'static str, Value) {
        ("Arn", json!({ "Fn::GetAtt": [self.0.get(name), "Arn"] }))
    }

    fn search_string(&self, text: &str) -> String {
        text.to_owned()
    }
}

/// The template: IP sets, the ACL, its logging; for a Region the association with the resource that a parameter names, for CloudFront a
/// distribution in front of the origin that a parameter names.
#[must_use]
pub fn template(acl: &WebAcl) -> Value {
    let ids = logical_ids(acl);
    let mut made = Template::default();
    for set in &acl.ip_sets {
        let id = ids.get(set.name.as_str()).cloned().unwrap_or_default();
        made.resource(&id, "AWS::WAFv2::IPSet", shape::ip_set(acl, set));
    }
    made.resource(ACL, "AWS::WAFv2::WebACL", shape::new_acl(acl, &CloudFormation(&ids)).into());
    made.output("EdgeWebAclArn", "ARN of the web ACL.", acl_arn());
    logs(acl, &mut made);
    if acl.scope == EdgeScope::CloudFront {
        distribution::add(&mut made);
    } else {
        let what = "ARN of the REST API's stage or load balancer that the ACL is put on; none if it is empty.";
        made.optional("EdgeResourceArn", what, "HasEdgeResource");
        let properties = json!({ "ResourceArn": { "Ref": "EdgeResourceArn" }, "WebACLArn": acl_arn() });
        made.resource_if("HasEdgeResource", "EdgeAssociation", "AWS::WAFv2::WebACLAssociation", properties);
    }
    made.finish(description(acl))
}

/// Where the policy says, or in a log group of the template's own if a parameter says so.
fn logs(acl: &WebAcl, made: &mut Template) {
    let id = "EdgeLogging";
    let kind = "AWS::WAFv2::LoggingConfiguration";
    let of = |logging: &Logging| {
        let mut properties = shape::logging(logging);
        properties.insert("ResourceArn".to_owned(), acl_arn());
        properties
    };
    if let Some(logging) = &acl.logging {
        made.resource(id, kind, of(logging).into());
        return;
    }
    let what = "Days that requests which a rule has caught are kept in a log group; none are if it is empty.";
    made.optional_of("EdgeLogDays", what, "KeepsEdgeLogs", &LOG_DAYS);
    // WAF takes no other names, and the ARN without `:*` at its end (Developer Guide, "Sending protection pack logs to CloudWatch Logs").
    let group = json!({ "LogGroupName": { "Fn::Sub": "aws-waf-logs-${AWS::StackName}" }, "RetentionInDays": { "Ref": "EdgeLogDays" } });
    made.resource_if("KeepsEdgeLogs", "EdgeLogs", "AWS::Logs::LogGroup", group);
    let arn = "arn:${AWS::Partition}:logs:${AWS::Region}:${AWS::AccountId}:log-group:${EdgeLogs}";
    let mut properties = of(&Logging { destination: String::new(), keeps_all: false });
    properties.insert("LogDestinationConfigs".to_owned(), json!([{ "Fn::Sub": arn }]));
    made.resource_if("KeepsEdgeLogs", id, kind, properties.into());
}

pub(super) fn acl_arn() -> Value {
    json!({ "Fn::GetAtt": [ACL, "Arn"] })
}

/// A template as it grows.
#[derive(Default)]
pub(super) struct Template {
    parameters: Map<String, Value>,
    conditions: Map<String, Value>,
    resources: Map<String, Value>,
    outputs: Map<String, Value>,
}

impl Template {
    /// A parameter that may be empty, and the condition that it is not.
    pub(super) fn optional(&mut self, name: &str, what: &str, condition: &str) {
        self.parameters.insert(name.to_owned(), json!({ "Type": "String", "Default": "", "Description": what }));
        let is_given = json!({ "Fn::Not": [{ "Fn::Equals": [{ "Ref": name }, ""] }] });
        self.conditions.insert(condition.to_owned(), is_given);
    }

    /// The same, with a value of these.
    fn optional_of(&mut self, name: &str, what: &str, condition: &str, values: &[u16]) {
        self.optional(name, what, condition);
        let values = std::iter::once(String::new()).chain(values.iter().map(ToString::to_string));
        self.parameters[name]["AllowedValues"] = values.collect::<Vec<_>>().into();
    }

    fn resource(&mut self, id: &str, kind: &str, properties: Value) {
        self.resources.insert(id.to_owned(), json!({ "Type": kind, "Properties": properties }));
    }

    pub(super) fn resource_if(&mut self, condition: &str, id: &str, kind: &str, properties: Value) {
        let resource = json!({ "Type": kind, "Condition": condition, "Properties": properties });
        self.resources.insert(id.to_owned(), resource);
    }

    fn output(&mut self, name: &str, what: &str, value: Value) {
        self.outputs.insert(name.to_owned(), json!({ "Description": what, "Value": value }));
    }

    pub(super) fn output_if(&mut self, condition: &str, name: &str, what: &str, value: Value) {
        let output = json!({ "Condition": condition, "Description": what, "Value": value });
        self.outputs.insert(name.to_owned(), output);
    }

    fn finish(self, description: &str) -> Value {
        json!({
            "AWSTemplateFormatVersion": "2010-09-09",
            "Description": description,
            "Parameters": self.parameters,
            "Conditions": self.conditions,
            "Resources": self.resources,
            "Outputs": self.outputs,
        })
    }
}

fn description(acl: &WebAcl) -> &'static str {
    match acl.scope {
        EdgeScope::CloudFront => "Rules of AWS WAF, made by tollgate from a policy. Deploy it in us-east-1.",
        _ => "Rules of AWS WAF, made by tollgate from a policy.",
    }
}
