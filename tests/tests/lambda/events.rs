//! Events as AWS documents them, cut to what tells the kinds apart.

use serde_json::{Value, json};

const ARN: &str = "arn:aws:iam::123456789012:user/caller";

/// Where an HTTP event comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sender {
    RestApi,
    HttpApi,
    FunctionUrl,
}

pub const SENDERS: [Sender; 3] = [Sender::RestApi, Sender::HttpApi, Sender::FunctionUrl];

/// A request signed by an IAM identity.
pub fn signed(sender: Sender, method: &str, path: &str, body: &str) -> Value {
    match sender {
        Sender::RestApi => json!({
            "resource": "/{proxy+}", "path": path, "httpMethod": method,
            "headers": { "Host": "api.example", "Content-Type": "application/json" },
            "multiValueHeaders": { "Host": ["api.example"], "Content-Type": ["application/json"] },
            "queryStringParameters": null, "pathParameters": { "proxy": path },
            "requestContext": {
                "stage": "prod", "path": format!("/prod{path}"), "httpMethod": method, "protocol": "HTTP/1.1",
                "identity": { "accessKey": "ASIAEXAMPLE", "userArn": ARN, "sourceIp": "192.0.2.1", "apiKey": null }
            },
            "body": body, "isBase64Encoded": false
        }),
        Sender::HttpApi => version_2(method, &format!("/prod{path}"), body, "prod"),
        Sender::FunctionUrl => version_2(method, path, body, "$default"),
    }
}

fn version_2(method: &str, path: &str, body: &str, stage: &str) -> Value {
    json!({
        "version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": "",
        "headers": { "host": "api.example", "content-type": "application/json" },
        "requestContext": {
            "accountId": "123456789012", "stage": stage, "routeKey": "$default",
            "authorizer": { "iam": { "accessKey": "ASIAEXAMPLE", "accountId": "123456789012", "userArn": ARN } },
            "http": { "method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1" }
        },
        "body": body, "isBase64Encoded": false
    })
}

/// The same request as AWS passes it on where the route asks for no IAM signature.
pub fn unsigned(sender: Sender, method: &str, path: &str, body: &str) -> Value {
    let mut event = signed(sender, method, path, body);
    let context = event["requestContext"].as_object_mut().unwrap();
    match sender {
        Sender::RestApi => {
            context["identity"] = json!({ "accessKey": null, "userArn": null, "sourceIp": "192.0.2.1" });
        }
        Sender::HttpApi | Sender::FunctionUrl => drop(context.remove("authorizer")),
    }
    event
}

/// A request through a load balancer.
pub fn load_balancer(method: &str, path: &str, body: &str) -> Value {
    json!({
        "requestContext": { "elb": { "targetGroupArn": "arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/t/1" } },
        "httpMethod": method, "path": path, "queryStringParameters": {},
        "headers": { "host": "lb.example", "content-type": "application/json", "x-forwarded-for": "192.0.2.1" },
        "body": body, "isBase64Encoded": false
    })
}
