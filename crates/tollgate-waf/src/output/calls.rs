//! The calls that make it all anew, for who has other tools. What one call answers and another needs is `${NAME.ARN}`.

use crate::model::WebAcl;
use crate::shape::{self, Api};
use serde_json::{Value, json};

/// A list of `{ "operation", "input" }`, in order.
#[must_use]
pub fn calls(acl: &WebAcl) -> Value {
    let call = |operation: &str, input: Value| json!({ "operation": operation, "input": input });
    let mut calls: Vec<Value> = acl.ip_sets.iter().map(|set| call("CreateIPSet", shape::ip_set(acl, set))).collect();
    let arn = |name: &str| format!("${{{name}.ARN}}");
    calls.push(call("CreateWebACL", shape::new_acl(acl, &Api(arn)).into()));
    if let Some(logging) = &acl.logging {
        let mut of = shape::logging(logging);
        of.insert("ResourceArn".to_owned(), arn(&acl.name).into());
        calls.push(call("PutLoggingConfiguration", json!({ "LoggingConfiguration": of })));
    }
    calls.into()
}
