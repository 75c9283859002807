//! Advice on layers that get in each other's way: rules in front that leave a limit behind them nothing to deny, or that stop an office
//! behind one address, and costly routes that let everybody pass while the table is gone.
//!
//! Invariant: warned is only of what the figures alone decide, whatever the traffic is like.

use super::limits::LimitEntry;
use super::routes::Matched;
use crate::edge::{Edge, EdgeRule, Stage};
use crate::identity::{ClientIp, Identity, Source, Trust};
use crate::limit::{Figures, KeyPart, Limit};
use crate::pattern::{PathPart, Pattern};
use crate::report::{Report, Span};
use crate::route::{Route, RouteCharge};
use std::num::NonZeroU64;
use tollgate_core::StoreFailure;

/// All callers together.
const EVERYONE: &str = "everyone";

/// What the rules in front have behind them.
#[derive(Clone, Copy)]
pub(super) struct Behind<'a> {
    pub(super) identity: &'a Identity,
    pub(super) limits: &'a [LimitEntry],
    pub(super) routes: &'a [Matched<Route>],
}

impl<'a> Behind<'a> {
    /// The limits that a route charges, with what a call costs.
    fn charged(self, route: &'a Route) -> impl Iterator<Item = (&'a Limit, &'a RouteCharge, &'a Span)> {
        route.charges().iter().filter_map(move |charge| {
            let entry = self.limits.iter().find(|entry| entry.name == charge.limit.as_str())?;
            Some((entry.limit.as_ref()?, charge, &entry.at))
        })
    }

    fn is_address(self, dimension: &str) -> bool {
        matches!(self.identity.origin(dimension), Some(Source::ClientIp(_)))
    }

    /// Whether keys of the limit have an address each: whoever has one has no more calls than his address.
    fn counts_by_address(self, limit: &Limit) -> bool {
        limit.key().iter().any(|part| part.alternatives().all(|dimension| self.is_address(dimension)))
    }

    /// Whether everybody behind one address may have a key of his own.
    fn counts_by_caller(self, limit: &Limit) -> bool {
        let is_shared = |dimension: &str| dimension == EVERYONE || self.is_address(dimension);
        limit.key().iter().any(|part| !part.alternatives().all(is_shared))
    }
}

/// Warns of what the rules in front make of the limits behind them; `at` is where each rule is.
pub(super) fn advise(report: &mut Report<'_>, edge: &Edge, at: &[Span], behind: Behind<'_>) {
    for (rule, at) in edge.rules.iter().zip(at) {
        if edge.forwarded.is_none() {
            warn_if_idle(report, rule, behind);
        }
        if let Some(users) = edge.users_per_address {
            warn_if_crowded(report, (rule, at), users, behind);
        }
    }
}

/// Locks that keep an address out in front, where nobody does so or the key is none.
pub(super) fn check_kept_out(report: &mut Report<'_>, has_edge: bool, edge: Option<&Edge>, behind: Behind<'_>) {
    // What is wrong in [edge] has been told.
    let is_wrong = has_edge && edge.is_none();
    let keeps_out = edge.and_then(|edge| edge.keeps_out.as_ref());
    let mut any = false;
    for entry in behind.limits {
        let Some(limit) = &entry.limit else { continue };
        if limit.penalty().and_then(|rule| rule.edge_after()).is_none() {
            continue;
        }
        any = true;
        let name = limit.name();
        let mut parts = limit.key().iter().flat_map(KeyPart::alternatives);
        if !matches!((parts.next(), parts.next()), (Some(dimension), None) if behind.is_address(dimension)) {
            let message = format!("limit `{name}` has `edge_after`, and its key is not the address alone");
            report.error(&entry.at, message, "write `key = [\"client_ip\"]`, or remove `edge_after`");
        }
        let mut dimensions = limit.key().iter().flat_map(KeyPart::alternatives);
        if dimensions.any(|dimension| behind.identity.dimension(dimension).is_some_and(|of| of.personal)) {
            let message = format!("limit `{name}` has `edge_after`, and its address is a personal value");
            report.error(
                &entry.at,
                message,
                "keys have a hash in its place, which WAF cannot keep out: remove `edge_after`",
            );
        }
        warn_if_forgeable(report, entry, limit, behind);
        if keeps_out.is_none() && !is_wrong {
            let message = format!("limit `{name}` has `edge_after`, and nobody in front keeps addresses out");
            report.error(&entry.at, message, "write `keep_out = {}` in [edge], or remove `edge_after`");
        }
    }
    if let (Some(_), false) = (keeps_out, any) {
        let help = "write `edge_after = 3` in the `penalty` of a limit whose key is the address, or remove `keep_out`";
        report.warning(&(0..0), "`keep_out` of [edge] keeps nobody out, since no limit hands an address over", help);
    }
}

/// Warns of addresses that proxies tell who are known by their number alone: whoever gets past them says who he is, and by that who is kept
/// out.
fn warn_if_forgeable(report: &mut Report<'_>, entry: &LimitEntry, limit: &Limit, behind: Behind<'_>) {
    let hops = |dimension: &str| match behind.identity.origin(dimension) {
        Some(Source::ClientIp(ClientIp { trust: Trust::Hops(hops), .. })) => *hops,
        _ => 0,
    };
    let mut dimensions = limit.key().iter().flat_map(KeyPart::alternatives);
    if let Some(dimension) = dimensions.find(|dimension| hops(dimension) > 0) {
        let message = format!(
            "limit `{}` has `edge_after`, and `{dimension}` goes by `trusted_hops = {}`: whoever reaches the gateway past them has \
             anybody kept out",
            limit.name(),
            hops(dimension)
        );
        let help = "name the proxies, `trusted_proxies = [\"192.0.2.0/24\"]`; it is fine if the gateway takes requests of theirs only";
        report.warning(&entry.at, message, help);
    }
}

/// Limits by address that never deny, since the rule stops whoever would come near.
fn warn_if_idle(report: &mut Report<'_>, rule: &EdgeRule, behind: Behind<'_>) {
    if rule.stage != Stage::Block || !rule.egress.is_empty() {
        return;
    }
    for entry in behind.limits {
        let Some(limit) = entry.limit.as_ref().filter(|limit| behind.counts_by_address(limit)) else { continue };
        let mut routes = behind.routes.iter().map(|route| &route.value).peekable();
        let is_idle_on = |route: &Route| {
            let mut costs = behind.charged(route).filter(|(charged, ..)| charged.name() == limit.name());
            // A limit is one on all of its routes together, so all have to be behind the rule.
            costs.all(|(_, charge, _)| {
                covers(rule, route.pattern())
                    && limit.all_figures().all(|(_, figures)| never_denies(figures, charge.cost, rule))
            })
        };
        let is_charged = behind
            .routes
            .iter()
            .any(|route| behind.charged(&route.value).any(|(charged, ..)| charged.name() == limit.name()));
        if is_charged && routes.all(is_idle_on) {
            let message = format!(
                "limit `{}` never denies: rule `{}` of [edge] stops an address at {} requests in {} s",
                limit.name(),
                rule.name,
                rule.limit,
                rule.window.as_secs()
            );
            report.warning(&entry.at, message, "lower its rate, raise the rule's, or remove one of the two");
        }
    }
}

/// A rule that stops so many users of one address, each within his limits.
fn warn_if_crowded(report: &mut Report<'_>, (rule, at): (&EdgeRule, &Span), users: NonZeroU64, behind: Behind<'_>) {
    let each = |route: &Route| {
        let by_caller = behind.charged(route).filter(|(limit, ..)| behind.counts_by_caller(limit));
        let calls = by_caller
            .map(|(limit, charge, _)| (most_calls(limit.figures(None), charge.cost, rule), limit.name().clone()));
        calls.min_by_key(|(calls, _)| *calls)
    };
    let covered = behind.routes.iter().map(|route| &route.value).filter(|route| covers(rule, route.pattern()));
    let most = covered
        .filter_map(|route| each(route).map(|(calls, limit)| (calls, limit, route)))
        .max_by_key(|(calls, ..)| *calls);
    let Some((calls, limit, route)) = most else { return };
    let together = u128::from(calls) * u128::from(users.get());
    if together > u128::from(rule.limit) {
        let message = format!(
            "{users} users behind one address may make {together} calls of `{}` in {} s, each within limit `{limit}`, and rule `{}` stops \
             them at {}",
            route.pattern(),
            rule.window.as_secs(),
            rule.name,
            rule.limit
        );
        let help = "raise the rule's rate, or name their networks in `egress` and except them";
        report.warning(at, message, help);
    }
}

/// Warns of routes whose calls cost a lot and pass while the table gives no answer.
pub(super) fn warn_of_open(report: &mut Report<'_>, behind: Behind<'_>) {
    for route in behind.routes {
        let strictest =
            behind.charged(&route.value).map(|(limit, ..)| limit.on_store_failure().unwrap_or_default()).max();
        let rule = route.value.on_store_failure().or(strictest);
        // Ten such calls are all that there is at once.
        let is_costly =
            |limit: &Limit, cost: u64| cost > 1 && cost.saturating_mul(10) >= limit.figures(None).core().most();
        let costly = behind.charged(&route.value).find(|(limit, charge, _)| is_costly(limit, charge.cost));
        if let (Some(StoreFailure::Open), Some((limit, charge, _))) = (rule, costly) {
            let message = format!(
                "a call of `{}` takes {} of the {} that limit `{}` has at once, and all calls pass while the table gives no answer",
                route.value.pattern(),
                charge.cost,
                limit.figures(None).core().most(),
                limit.name()
            );
            report.warning(&route.at, message, "write `on_store_failure = \"closed\"`, or \"local\", for this route");
        }
    }
}

/// Whether every request of the route is counted by the rule.
fn covers(rule: &EdgeRule, pattern: &Pattern) -> bool {
    let Some(parts) = pattern.path() else { return rule.paths.is_empty() };
    let begins = |path: &String| {
        let mut limited = path.split('/').skip(1);
        let mut parts = parts.iter();
        limited
            .all(|segment| matches!(parts.next(), Some(PathPart::Literal(text)) if text.eq_ignore_ascii_case(segment)))
    };
    rule.paths.is_empty() || rule.paths.iter().any(begins)
}

/// Whether an address that the rule lets make all of its requests is never denied.
fn never_denies(figures: &Figures, cost: u64, rule: &EdgeRule) -> bool {
    let core = figures.core();
    let (n, period) = core.rate();
    let (window, period) = (rule.window.as_nanos(), u128::from(period).max(1));
    let passed = u128::from(rule.limit) * u128::from(cost);
    if core.has_slots() {
        return u128::from(core.most()) >= passed && u128::from(n) * window >= passed * period;
    }
    u128::from(n) >= passed * period.div_ceil(window)
}

/// The most calls that a key has within the rule's window.
fn most_calls(figures: &Figures, cost: u64, rule: &EdgeRule) -> u64 {
    let core = figures.core();
    let (n, period) = core.rate();
    let (window, period) = (rule.window.as_nanos(), u128::from(period).max(1));
    let tokens = if core.has_slots() {
        u128::from(core.most()) + u128::from(n) * window / period
    } else {
        u128::from(n) * window.div_ceil(period)
    };
    u64::try_from(tokens / u128::from(cost.max(1))).unwrap_or(u64::MAX)
}
