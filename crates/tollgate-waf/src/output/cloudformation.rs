//! A template of CloudFormation, whose resources SAM's templates take as they are.

use super::logical_ids;
use crate::model::WebAcl;
use crate::shape::{self, Spelling};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use tollgate_policy::EdgeScope;

/// The logical ID of the ACL.
pub(super) const ACL: &str = "EdgeWebAcl";

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

/// The template: IP sets, the ACL, its logging, and for a Region the association with the resource that a parameter names.
#[must_use]
pub fn template(acl: &WebAcl) -> Value {
    let ids = logical_ids(acl);
    let mut resources = Map::new();
    for set in &acl.ip_sets {
        let id = ids.get(set.name.as_str()).cloned().unwrap_or_default();
        resources.insert(id, resource("IPSet", shape::ip_set(acl, set)));
    }
    resources.insert(ACL.to_owned(), resource("WebACL", shape::new_acl(acl, &CloudFormation(&ids)).into()));
    if let Some(logging) = &acl.logging {
        let mut properties = shape::logging(logging);
        properties.insert("ResourceArn".to_owned(), json!({ "Fn::GetAtt": [ACL, "Arn"] }));
        resources.insert("EdgeLogging".to_owned(), resource("LoggingConfiguration", properties.into()));
    }
    let mut template = Map::new();
    template.insert("AWSTemplateFormatVersion".to_owned(), "2010-09-09".into());
    template.insert("Description".to_owned(), description(acl).into());
    if acl.scope != EdgeScope::CloudFront {
        let parameter = json!({
            "Type": "String",
            "Default": "",
            "Description": "ARN of the REST API's stage or load balancer that the ACL is put on; none if it is empty.",
        });
        template.insert("Parameters".to_owned(), json!({ "EdgeResourceArn": parameter }));
        let is_given = json!({ "Fn::Not": [{ "Fn::Equals": [{ "Ref": "EdgeResourceArn" }, ""] }] });
        template.insert("Conditions".to_owned(), json!({ "HasEdgeResource": is_given }));
        let properties =
            json!({ "ResourceArn": { "Ref": "EdgeResourceArn" }, "WebACLArn": { "Fn::GetAtt": [ACL, "Arn"] } });
        let mut association = resource("WebACLAssociation", properties);
        association["Condition"] = "HasEdgeResource".into();
        resources.insert("EdgeAssociation".to_owned(), association);
    }
    template.insert("Resources".to_owned(), resources.into());
    let arn = json!({ "Description": "ARN of the web ACL.", "Value": { "Fn::GetAtt": [ACL, "Arn"] } });
    template.insert("Outputs".to_owned(), json!({ "EdgeWebAclArn": arn }));
    template.into()
}

fn description(acl: &WebAcl) -> &'static str {
    match acl.scope {
        EdgeScope::CloudFront => "Rules of AWS WAF, made by tollgate from a policy. Deploy it in us-east-1.",
        _ => "Rules of AWS WAF, made by tollgate from a policy.",
    }
}

fn resource(kind: &str, properties: Value) -> Value {
    json!({ "Type": format!("AWS::WAFv2::{kind}"), "Properties": properties })
}
