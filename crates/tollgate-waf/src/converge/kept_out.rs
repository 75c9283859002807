//! Who is kept out, in the IP sets that `apply` has made for it.
//!
//! Invariant: a set that has these addresses is not written; one is written once, however many come and go.

use super::apply::put_addresses;
use super::pace::Paced;
use super::plan::{foreign, told_addresses};
use super::{Error, Patience, Progress, Result, Waf, observe};
use crate::model::WebAcl;
use std::collections::BTreeSet;
use tollgate_policy::Cidr;

/// Who came and went.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Kept {
    /// Who is kept out from now on.
    pub added: Vec<String>,
    /// Who is no longer.
    pub removed: Vec<String>,
    /// How many writes it took.
    pub writes: u64,
}

/// Keeps out these, and nobody else.
///
/// # Errors
///
/// [`Error::Missing`] if `apply` has not made the sets, [`Error::Foreign`] if they are somebody else's, [`Error::Contended`] or
/// [`Error::Call`].
pub async fn keep_out<W: Waf>(
    waf: &W,
    acl: &WebAcl,
    blocks: &[Cidr],
    patience: Patience,
    progress: Progress<'_>,
) -> Result<Kept> {
    let waf = Paced::new(waf, patience, progress);
    let sets: Vec<_> = acl.ip_sets.iter().filter(|set| set.is_kept_by_others).collect();
    let mut observed = observe::ip_sets(&waf, acl, |name| sets.iter().any(|set| set.name == name)).await?;
    let mut kept = Kept::default();
    for set in sets {
        let mut found = observed.remove(&set.name).ok_or_else(|| Error::Missing(set.name.clone()))?;
        if !found.is_ours {
            return Err(foreign(acl, &set.name));
        }
        let wanted = blocks.iter().filter(|block| block.addr().is_ipv6() == set.is_v6);
        let wanted: BTreeSet<String> = wanted.map(ToString::to_string).collect();
        let there = told_addresses(&found.value);
        if put_addresses(&waf, acl, &set.name, &wanted, &mut found).await? {
            kept.added.extend(wanted.difference(&there).cloned());
            kept.removed.extend(there.difference(&wanted).cloned());
        }
    }
    kept.writes = waf.writes();
    Ok(kept)
}
