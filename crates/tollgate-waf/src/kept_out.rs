//! Who of those that limits have locked once too often is kept out in front. Pure.
//!
//! Invariant: no more than the policy says, none whose lock is over, none that others share.

use std::collections::BTreeMap;
use std::net::IpAddr;
use tollgate_core::Timestamp;
use tollgate_policy::{Cidr, Policy};

/// The blocks that are to be kept out at `now`, of addresses with the ends of their locks; nobody if the policy keeps nobody out. What
/// is no address is passed over: whoever calls with such a key is none that WAF knows.
#[must_use]
pub fn choose<'a>(
    policy: &Policy,
    listed: impl IntoIterator<Item = (&'a str, Timestamp)>,
    now: Timestamp,
) -> Vec<Cidr> {
    let Some(keeps_out) = policy.edge().and_then(|edge| edge.keeps_out.as_ref()) else { return Vec::new() };
    let mut until: BTreeMap<(IpAddr, u8), (Cidr, Timestamp)> = BTreeMap::new();
    for (address, end) in listed.into_iter().filter(|(_, end)| *end > now) {
        if let Some(block) = Cidr::of_client(address).filter(|block| !policy.is_never_kept_out(block)) {
            let known = until.entry((block.addr(), block.prefix())).or_insert((block, end));
            known.1 = known.1.max(end);
        }
    }
    let mut all: Vec<_> = until.into_values().collect();
    all.sort_by_key(|(_, end)| std::cmp::Reverse(*end));
    all.truncate(keeps_out.most);
    all.into_iter().map(|(block, _)| block).collect()
}
