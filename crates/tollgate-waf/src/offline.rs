//! The rules of a policy, for the evaluator: by way of the JSON that the API would be sent.

use crate::evaluate::Rules;
use crate::model::WebAcl;
use crate::shape::{self, Api};

/// What a policy's rules would say of requests, if they were in force.
#[must_use]
pub fn offline(acl: &WebAcl) -> Rules {
    let name = |name: &str| name.to_owned();
    let rules = Rules::of(&shape::new_acl(acl, &Api(name)).into());
    let blocks = |set: &crate::model::IpSet| set.blocks.iter().map(ToString::to_string).collect::<Vec<_>>();
    acl.ip_sets.iter().fold(rules, |rules, set| rules.with_ip_set(&set.name, blocks(set)))
}
