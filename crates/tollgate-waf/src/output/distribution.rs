//! A distribution of CloudFront that has the ACL and caches nothing by itself.
//!
//! Invariant: what the application says to one is never repeated to another.

use super::cloudformation::{Template, acl_arn};
use serde_json::{Value, json};

/// Managed policies of CloudFront (Developer Guide, "Use managed cache policies" and "Use managed origin request policies"):
/// `CachingDisabled`, and `AllViewerExceptHostHeader`, since an API answers to its own name.
const CACHING_DISABLED: &str = "4135ea2d-6df8-44a3-9df3-4b5a84be39ad";
const ALL_BUT_HOST: &str = "b689b0a8-53d0-40ab-baf2-68738e2966ac";
/// Errors that CloudFront repeats for ten seconds by default, to others too (Developer Guide, "HTTP 4xx and 5xx status codes that CloudFront
/// caches"). 429 is not among them, and CloudFront takes no time for it; what we answer with it says `no-store` as well.
const CACHED_ERRORS: [u16; 10] = [400, 403, 404, 405, 414, 500, 501, 502, 503, 504];

pub(super) fn add(made: &mut Template) {
    let is_given = "HasEdgeOrigin";
    let what = "Domain name of the API that a distribution is put in front of; none is made if it is empty.";
    made.optional("EdgeOrigin", what, is_given);
    let errors: Vec<Value> =
        CACHED_ERRORS.iter().map(|code| json!({ "ErrorCode": code, "ErrorCachingMinTTL": 0 })).collect();
    let https = json!({ "OriginProtocolPolicy": "https-only", "OriginSSLProtocols": ["TLSv1.2"] });
    let origin = json!({ "Id": "api", "DomainName": { "Ref": "EdgeOrigin" }, "CustomOriginConfig": https });
    let behavior = json!({
        "TargetOriginId": "api",
        "ViewerProtocolPolicy": "https-only",
        "AllowedMethods": ["GET", "HEAD", "OPTIONS", "PUT", "PATCH", "POST", "DELETE"],
        "CachePolicyId": CACHING_DISABLED,
        "OriginRequestPolicyId": ALL_BUT_HOST,
        "Compress": true,
    });
    let config = json!({
        "Enabled": true,
        "Comment": "An API behind the limits of tollgate",
        "HttpVersion": "http2and3",
        "IPV6Enabled": true,
        "WebACLId": acl_arn(),
        "Origins": [origin],
        "DefaultCacheBehavior": behavior,
        "CustomErrorResponses": errors,
    });
    let properties = json!({ "DistributionConfig": config });
    made.resource_if(is_given, "EdgeDistribution", "AWS::CloudFront::Distribution", properties);
    let name = json!({ "Fn::GetAtt": ["EdgeDistribution", "DomainName"] });
    made.output_if(is_given, "EdgeDomainName", "Where the API is now reached.", name);
}
