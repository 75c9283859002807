//! The API as a call that takes JSON and gives JSON.
//!
//! JSON and not the SDK's types: what a newer console has put into somebody's rule is read and sent back, though this build has
//! never heard of it. The SDK's types would lose it.

use serde_json::Value;
use std::future::Future;

/// An operation of the API (API Reference, "Actions").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum Operation {
    ListWebAcls,
    GetWebAcl,
    CreateWebAcl,
    UpdateWebAcl,
    DeleteWebAcl,
    ListIpSets,
    GetIpSet,
    CreateIpSet,
    UpdateIpSet,
    DeleteIpSet,
    ListTags,
    GetLogging,
    PutLogging,
    DeleteLogging,
    GetAclOfResource,
    ListResources,
    Associate,
    Disassociate,
    GetLimitedKeys,
    GetSampledRequests,
}

impl Operation {
    /// Its name, as in an IAM action `wafv2:NAME`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ListWebAcls => "ListWebACLs",
            Self::GetWebAcl => "GetWebACL",
            Self::CreateWebAcl => "CreateWebACL",
            Self::UpdateWebAcl => "UpdateWebACL",
            Self::DeleteWebAcl => "DeleteWebACL",
            Self::ListIpSets => "ListIPSets",
            Self::GetIpSet => "GetIPSet",
            Self::CreateIpSet => "CreateIPSet",
            Self::UpdateIpSet => "UpdateIPSet",
            Self::DeleteIpSet => "DeleteIPSet",
            Self::ListTags => "ListTagsForResource",
            Self::GetLogging => "GetLoggingConfiguration",
            Self::PutLogging => "PutLoggingConfiguration",
            Self::DeleteLogging => "DeleteLoggingConfiguration",
            Self::GetAclOfResource => "GetWebACLForResource",
            Self::ListResources => "ListResourcesForWebACL",
            Self::Associate => "AssociateWebACL",
            Self::Disassociate => "DisassociateWebACL",
            Self::GetLimitedKeys => "GetRateBasedStatementManagedKeys",
            Self::GetSampledRequests => "GetSampledRequests",
        }
    }

    /// Whether it changes something.
    #[must_use]
    pub fn is_write(self) -> bool {
        !(self.name().starts_with("List") || self.name().starts_with("Get"))
    }
}

/// The API of AWS WAF.
pub trait Waf: Sync {
    /// Makes a call with the input that the API Reference describes, and gives its output.
    fn call(
        &self,
        operation: Operation,
        input: Value,
    ) -> impl Future<Output = std::result::Result<Value, Failure>> + Send;
}

/// A call that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("wafv2:{}: {}{message}", operation.name(), code.as_ref().map(|code| format!("{code}: ")).unwrap_or_default())]
pub struct Failure {
    /// Which call.
    pub operation: Operation,
    /// What the API calls it, like `WAFOptimisticLockException`; `None` if it did not answer, or not as documented.
    pub code: Option<String>,
    /// What it says, or what has happened to the call.
    pub message: String,
}

impl Failure {
    /// Whether the API calls it so.
    pub(crate) fn is(&self, code: &str) -> bool {
        self.code.as_deref() == Some(code)
    }
}

/// A result of bringing an ACL to what a policy says.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an ACL cannot be brought to what a policy says.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// WAF would refuse it; nothing was sent.
    #[error("WAF would refuse the ACL: {}; change [edge] of the policy (a `priority` or `prefix` of its own, fewer rules)", .0.join("; "))]
    Check(Vec<String>),
    /// Something of that name is somebody else's.
    #[error("{0}")]
    Foreign(String),
    /// An IP set is not there.
    #[error("there is no IP set {0}; `tollgate waf apply --yes` makes it")]
    Missing(String),
    /// A resource cannot have the ACL.
    #[error("cannot put the ACL on {arn}: {why}")]
    Resource {
        /// The resource.
        arn: String,
        /// Why.
        why: &'static str,
    },
    /// Others change the ACL all the time.
    #[error(
        "others keep changing {what}: tried {tries} times, each time from a new reading; try again when they are done"
    )]
    Contended {
        /// The ACL or IP set.
        what: String,
        /// How often.
        tries: u32,
    },
    /// A call failed.
    #[error(transparent)]
    Call(#[from] Failure),
}
