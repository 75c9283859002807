//! The `RateLimit` and `RateLimit-Policy` fields. Invariant: this is the only place that knows their syntax, which still
//! moves: draft-ietf-httpapi-ratelimit-headers-11, on structured fields (RFC 9651).

use crate::quota::Quota;
use http::{HeaderName, HeaderValue};

/// What a client may use the service for.
pub(crate) const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
/// What is left of it.
pub(crate) const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");

/// Both fields, a list member for each limit; none if there is no limit. Names of limits have no character that a
/// structured string would escape, and no figure is over the 15 digits of a structured integer.
pub(crate) fn fields(quotas: &[Quota<'_>]) -> Vec<(HeaderName, HeaderValue)> {
    let list = |item: &dyn Fn(&Quota<'_>) -> String| quotas.iter().map(item).collect::<Vec<_>>().join(", ");
    let policy = list(&|quota| format!("\"{}\";q={};w={}", quota.name(), quota.quota(), quota.window()));
    let limit = list(&|quota| format!("\"{}\";r={};t={}", quota.name(), quota.remaining(), quota.next()));
    let field = |(name, value): (HeaderName, String)| {
        HeaderValue::try_from(value).ok().filter(|value| !value.is_empty()).map(|value| (name, value))
    };
    [(POLICY, policy), (RATE_LIMIT, limit)].into_iter().filter_map(field).collect()
}
