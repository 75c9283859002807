//! Advice about what a sender chooses himself: his bucket, his plan, and his address, where the file shows that.
//!
//! Invariant: what a gateway or an authorizer vouches for is never warned of.

use super::identity::Declared;
use super::limits::LimitEntry;
use super::routes::Matched;
use crate::identity::{ClientIp, Identity, Source, Trust};
use crate::limit::{KeyPart, Limit};
use crate::policy::Plans;
use crate::report::{Report, Span};
use crate::route::Route;
use tollgate_core::Mode;

/// Fewer bits of an IPv6 address than registries give to a provider (RFC 6177, RIPE-738: a /32 or /29).
const PROVIDER_PREFIX: u8 = 32;

/// How the headers begin that only a proxy in front of the gateway writes.
const WRITTEN_BY_PROXIES: [(&str, &str); 8] = [
    ("cloudfront-", "CloudFront"),
    ("x-amz-cf-", "CloudFront"),
    ("cf-", "Cloudflare"),
    ("fastly-", "Fastly"),
    ("true-client-ip", "a content network"),
    ("x-real-ip", "a proxy"),
    ("x-forwarded-for", "a proxy"),
    ("forwarded", "a proxy"),
];

pub(super) fn advise(
    report: &mut Report<'_>,
    declared: &Declared,
    plans: &Plans,
    limits: &[LimitEntry],
    routes: &[Matched<Route>],
) {
    let identity = &declared.identity;
    for entry in limits {
        if let Some(limit) = &entry.limit {
            warn_of_bucket(report, &entry.at, identity, limit, || is_bounded(identity, limits, routes, &entry.name));
        }
    }
    if plans.names().next().is_some() {
        warn_of_plan(report, declared);
    }
    if limits.iter().filter_map(|entry| entry.limit.as_ref()).any(|limit| alternatives(limit).any(|d| d == "client_ip"))
    {
        warn_of_proxies(report, declared);
    }
}

/// Warns of a length of prefix that counts one client as many, or a provider's clients as one.
pub(super) fn warn_of_prefix(report: &mut Report<'_>, at: &Span, prefix: u8) {
    let usual = ClientIp::DEFAULT_IPV6_PREFIX;
    let message = if prefix > usual {
        format!(
            "ipv6_prefix {prefix} is over {usual}: a client has a /{usual} at least, and each part of it is a fresh bucket"
        )
    } else if prefix < PROVIDER_PREFIX {
        format!(
            "ipv6_prefix {prefix} is under {PROVIDER_PREFIX}: all clients of a provider, or of several, are counted as one"
        )
    } else {
        return;
    };
    report.warning(at, message, format!("write `ipv6_prefix = {usual}`, or 56 or 48 where sites are counted"));
}

/// Where a sender writes what a source takes.
fn written_by_sender(source: &Source) -> Option<String> {
    match source {
        Source::Header(name) => Some(format!("the header {name}")),
        Source::Query(name) => Some(format!("the query parameter {name}")),
        Source::Body(name) => Some(format!("the field {name} of the body")),
        Source::Path(name) => Some(format!("the part {name} of the path")),
        _ => None,
    }
}

fn alternatives(limit: &Limit) -> impl Iterator<Item = &str> {
    limit.key.iter().flat_map(KeyPart::alternatives)
}

/// Whether a sender can choose all that the limit is counted by.
fn is_chosen(identity: &Identity, limit: &Limit) -> bool {
    let chosen = |dimension: &str| identity.source(dimension).is_some_and(|source| written_by_sender(source).is_some());
    limit.key.iter().all(|part| part.alternatives().any(chosen))
}

/// Whether each route that charges the limit charges one that denies as well, and whose bucket nobody chooses.
fn is_bounded(identity: &Identity, limits: &[LimitEntry], routes: &[Matched<Route>], name: &str) -> bool {
    let bounds = |limit: &Limit| limit.mode == Mode::Enforce && !is_chosen(identity, limit);
    let of = |name: &str| limits.iter().find(|entry| entry.name == name).and_then(|entry| entry.limit.as_ref());
    let charges = |route: &Route| route.charges.iter().any(|charge| charge.limit.as_str() == name);
    let mut charging = routes.iter().map(|route| &route.value).filter(|route| charges(route)).peekable();
    charging.peek().is_some()
        && charging.all(|route| route.charges.iter().any(|charge| of(charge.limit.as_str()).is_some_and(bounds)))
}

/// A header is warned of wherever it is in a key. A field that a route is about (a login's account) is fine beside a limit
/// that holds the sender.
fn warn_of_bucket(
    report: &mut Report<'_>,
    at: &Span,
    identity: &Identity,
    limit: &Limit,
    is_bounded: impl FnOnce() -> bool,
) {
    let chosen = |dimension| Some((dimension, identity.source(dimension).and_then(written_by_sender)?));
    let is_header = |dimension: &str| matches!(identity.source(dimension), Some(Source::Header(_)));
    let (headers, others): (Vec<_>, Vec<_>) =
        alternatives(limit).filter_map(chosen).partition(|(dimension, _)| is_header(dimension));
    let name = &limit.name;
    for (dimension, from) in &headers {
        let message = format!(
            "limit `{name}` is counted by `{dimension}`, {from}, which callers choose: another value is a fresh bucket"
        );
        let help = "count by a claim, the API key or client_ip; it is fine if a proxy overwrites the header and nobody \
                    reaches the gateway past it";
        report.warning(at, message, help);
    }
    if headers.is_empty() && is_chosen(identity, limit) && !is_bounded() {
        let from: Vec<_> = others.into_iter().map(|(_, from)| from).collect();
        let message = format!(
            "limit `{name}` is counted by nothing but {}, which callers choose: another value is a fresh bucket",
            from.join(" and ")
        );
        let help = "charge the route by a second limit as well, on a claim, the API key or client_ip; or add one of these to \
                    the key";
        report.warning(at, message, help);
    }
}

fn warn_of_plan(report: &mut Report<'_>, declared: &Declared) {
    let Some(from) = declared.identity.source("plan").and_then(written_by_sender) else { return };
    let message = format!("`plan` is {from}, which callers choose: each picks the figures that it likes");
    report.warning(
        &declared.at("plan"),
        message,
        "take it from where it is vouched for, like `plan = \"claims.plan\"`",
    );
}

/// Warns of a header that says what stands in front, where nothing in front is believed.
fn warn_of_proxies(report: &mut Report<'_>, declared: &Declared) {
    if declared.identity.client_ip().trust != Trust::Hops(0) {
        return;
    }
    for (dimension, known) in declared.identity.dimensions() {
        let Source::Header(name) = &known.source else { continue };
        let Some((_, who)) = WRITTEN_BY_PROXIES.iter().find(|(start, _)| name.starts_with(start)) else { continue };
        let message = format!(
            "`{dimension}` is the header {name}, which {who} writes, and client_ip trusts no proxy: then {who}'s address is \
             that of all callers"
        );
        let help = format!(
            "write `client_ip = {{ trusted_hops = 1 }}` if it stands in front, or name its addresses in `trusted_proxies`; \
             else remove `{dimension}`"
        );
        report.warning(&declared.at(dimension), message, help);
    }
}
