//! The fields from before the draft's lists: `RateLimit-Limit` and its kin, with and without `X-`. Invariant: they have
//! room for one limit, and it is the one that a client runs into first.

use crate::quota::Quota;
use http::{HeaderName, HeaderValue};
use tollgate_policy::LegacyHeaders;

/// Limit, remaining and reset.
fn names(family: LegacyHeaders) -> Option<[&'static str; 3]> {
    match family {
        LegacyHeaders::RateLimit => Some(["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"]),
        LegacyHeaders::XRateLimit => Some(["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"]),
        _ => None,
    }
}

/// The names of all fields of these families.
pub(crate) fn all_names(families: &[LegacyHeaders]) -> impl Iterator<Item = &'static str> {
    families.iter().filter_map(|family| names(*family)).flatten()
}

/// The fields of these families, for the limit with the fewest tokens left; of those the one that takes longest to
/// refill. The reset is in seconds from now.
pub(crate) fn fields(families: &[LegacyHeaders], quotas: &[Quota<'_>]) -> Vec<(HeaderName, HeaderValue)> {
    let tightest = quotas.iter().min_by_key(|quota| (quota.remaining(), std::cmp::Reverse(quota.reset())));
    let Some(quota) = tightest else { return Vec::new() };
    let values = [quota.quota(), quota.remaining(), quota.reset()];
    let of = |names: [&'static str; 3]| {
        names.into_iter().zip(values).map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from(value)))
    };
    families.iter().filter_map(|family| names(*family)).flat_map(of).collect()
}
