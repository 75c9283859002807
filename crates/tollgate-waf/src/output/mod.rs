//! The rules for those who deploy by other means: a CloudFormation template (of SAM, too), properties for the CDK, the calls that the
//! API takes.

mod calls;
mod cdk;
mod cloudformation;
mod distribution;
mod yaml;

pub use calls::calls;
pub use cdk::props;
pub use cloudformation::template;
pub use yaml::yaml;

use crate::model::WebAcl;
use std::collections::BTreeMap;

/// Logical IDs of the IP sets by their names. A logical ID has only letters and digits, so that `a-b` and `ab` come to the same:
/// those of which there are several have a part of a hash of their names.
fn logical_ids(acl: &WebAcl) -> BTreeMap<&str, String> {
    let plain = |name: &str| name.split(|c: char| !c.is_ascii_alphanumeric()).map(capitalised).collect::<String>();
    let names = || acl.ip_sets.iter().map(|set| set.name.as_str());
    let id = |name: &str| {
        let id = plain(name);
        let is_alone = names().filter(|other| plain(other).eq_ignore_ascii_case(&id)).count() == 1;
        if is_alone { id } else { format!("{id}{:08x}", hash(name)) }
    };
    names().map(|name| (name, id(name))).collect()
}

fn capitalised(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|first| first.to_ascii_uppercase().to_string() + chars.as_str()).unwrap_or_default()
}

/// FNV-1a: the same in every version, which `std`'s is not.
fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
