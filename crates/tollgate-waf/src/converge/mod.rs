//! Bringing an ACL to what a policy says, and telling how far it is from that.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`Waf`] (`edge`) | the API, as a call that takes JSON and gives JSON |
//! | `pace` | how fast it is asked, and how long is waited for it |
//! | `observe` | what is there |
//! | `meaning` | whether two spellings of a rule are one |
//! | `merge` | our rules among those of others |
//! | `plan` | what differs |
//! | `apply` | making it so |
//! | `destroy` | taking it away |
//! | `status` | what the rules have caught |
//! | `kept_out` | addresses that are kept out for a while |
//!
//! Invariants: rules, bodies and IP sets whose names do not begin with the policy's prefix are sent back byte by byte as they were
//! read; what means the same is not written, since a changed rule loses its counts; every write of an ACL carries the lock token of
//! the reading that it was made from.

mod apply;
mod destroy;
mod edge;
mod kept_out;
mod meaning;
mod merge;
mod observe;
mod pace;
mod plan;
mod status;

pub use apply::{Applied, apply};
pub use destroy::destroy;
pub use edge::{Error, Failure, Operation, Result, Waf};
pub use kept_out::{Kept, keep_out};
pub use observe::Observed;
pub use pace::{Patience, Progress};
pub use plan::{Change, plan};
pub use status::{RuleStatus, status};

use crate::model::WebAcl;

/// What is to be: a policy's rules, and the resources that they are to stand in front of.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Wanted {
    /// The rules.
    pub acl: WebAcl,
    /// ARNs of resources that the ACL is to be put on, of a Region only; the others are left as they are.
    pub resources: Vec<String>,
}

impl Wanted {
    /// These rules, on these resources.
    #[must_use]
    pub fn new(acl: WebAcl, resources: Vec<String>) -> Self {
        Self { acl, resources }
    }
}
