//! Who is kept out in front: addresses that limits have locked once too often, until their locks end.
//!
//! Invariants: an IP set is written once a run at most; no address is kept out whose lock is over, or that others share; an address is
//! off the list only when it is out of the set.

use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::OnceCell;
use tollgate::Policy;
use tollgate::tollgate_dynamodb::kept_out::{self, KeptOut};
use tollgate::tollgate_dynamodb::{Connection, Items};
use tollgate_policy::EdgeScope;
use tollgate_waf::aws::AwsWaf;
use tollgate_waf::converge::{self, Kept, Patience, Waf};
use tollgate_waf::kept_out::choose;
use tollgate_waf::{CLOUDFRONT_REGION, render};

/// What a run may take: the next one is a minute later.
const LONGEST: Duration = Duration::from_secs(5);

/// Where AWS WAF is, if not where the Region has it.
const ENDPOINT: &str = "TOLLGATE_WAF_ENDPOINT_URL";

/// AWS WAF, reached when the first policy keeps addresses out. A newer policy may have another scope, which is in another Region.
#[derive(Debug, Default)]
pub(crate) struct Edge {
    regional: OnceCell<AwsWaf>,
    cloudfront: OnceCell<AwsWaf>,
}

impl Edge {
    /// Keeps out who is listed; `None` if the policy keeps nobody out.
    pub(crate) async fn keep_out(&self, items: &Items, policy: &Policy) -> Result<Option<Kept>, Error> {
        let Some(edge) = policy.edge().filter(|edge| edge.keeps_out.is_some()) else { return Ok(None) };
        let scope = edge.scope;
        let waf = self.of(scope).get_or_try_init(|| connect(scope)).await?;
        keep_out(items, policy, waf).await
    }

    fn of(&self, scope: EdgeScope) -> &OnceCell<AwsWaf> {
        match scope {
            EdgeScope::CloudFront => &self.cloudfront,
            _ => &self.regional,
        }
    }
}

/// Why nobody could be kept out, or let in.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The table does not say who is listed.
    #[error(transparent)]
    Table(#[from] tollgate::tollgate_dynamodb::Error),
    /// AWS WAF does not take it.
    #[error(transparent)]
    Waf(#[from] converge::Error),
}

async fn connect(scope: EdgeScope) -> Result<AwsWaf, Error> {
    let mut connection = Connection::from_environment();
    connection.endpoint_url = std::env::var(ENDPOINT).ok().filter(|url| !url.is_empty());
    if scope == EdgeScope::CloudFront {
        connection.region = Some(CLOUDFRONT_REGION.to_owned());
    }
    Ok(AwsWaf::connect(&connection).await?)
}

/// Keeps out who is listed in the table, and nobody else; `None` if the policy keeps nobody out.
///
/// # Errors
///
/// The table or AWS WAF gives no answer; who is kept out stays so.
pub async fn keep_out<W: Waf>(items: &Items, policy: &Policy, waf: &W) -> Result<Option<Kept>, Error> {
    let Some(acl) = render::web_acl(policy).filter(|_| policy.edge().is_some_and(|edge| edge.keeps_out.is_some()))
    else {
        return Ok(None);
    };
    let (listed, now) = (kept_out::listed(items).await?, items.now());
    let blocks = choose(policy, listed.iter().map(|of| (of.address.as_str(), of.until)), now);
    let mut patience = Patience::default();
    (patience.longest, patience.tries) = (LONGEST, 3);
    let kept = converge::keep_out(waf, &acl, &blocks, patience, &|line| tracing::info!("{line}")).await?;
    let over: Vec<KeptOut> = listed.into_iter().filter(|of| of.until <= now).collect();
    kept_out::remove(items, &over).await?;
    for address in &kept.added {
        tracing::warn!(address, "is kept out in front");
    }
    for address in &kept.removed {
        tracing::info!(address, "is let in again");
    }
    Ok(Some(kept))
}

/// Who came and went, for people.
pub(crate) fn told(kept: &Kept) -> Value {
    json!({ "added": kept.added, "removed": kept.removed, "writes": kept.writes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_of_another_scope_is_not_kept_in_the_region_of_the_one_before() {
        let edge = Edge::default();
        let [regional, cloudfront] = [EdgeScope::Regional, EdgeScope::CloudFront].map(|scope| edge.of(scope));
        assert!(!std::ptr::eq(regional, cloudfront));
    }
}
