//! A policy file's rules, applied to a log. Invariant: charges come from the policy's own resolution, the one that serves
//! requests.

use crate::rules::{Matched, Resolved, Rules};
use tollgate_core::{Actual, LimitName};
use tollgate_policy::{IfMissing, Limit, Policy, RouteCharge};

/// The policy as it serves requests, every caller on its default plan, since a log does not tell plans.
///
/// A policy without routes charges each of its limits, at a cost of 1, on every request that is not exempt and has a
/// value for the limit's key: enough to try figures on a log before there are routes.
impl Rules for Policy {
    fn limits(&self) -> Vec<LimitName> {
        self.limits().iter().map(|limit| limit.name().clone()).collect()
    }

    fn ipv6_prefix(&self) -> u8 {
        self.identity().client_ip().ipv6_prefix
    }

    fn matched(&self, method: &str, path: &str) -> Matched {
        if let Some(found) = self.route(method, path) {
            let place = self.routes().iter().position(|route| std::ptr::eq(route, found.route));
            return place.map_or(Matched::Unmatched, Matched::Route);
        }
        if self.exemption(method, path).is_some() {
            Matched::Exempt
        } else if self.routes().is_empty() {
            Matched::Route(0)
        } else {
            Matched::Unmatched
        }
    }

    fn resolve(&self, route: usize, value: &dyn Fn(&str) -> Option<String>) -> Resolved {
        let every_limit = || self.limits().iter().map(|limit| RouteCharge::new(limit.name().clone(), 1)).collect();
        let charges = self.routes().get(route).map_or_else(every_limit, |route| route.charges().to_vec());
        // One by one, so that a value that no key can carry (over 2 KB) takes no other limit with it.
        charges.iter().fold(Resolved::default(), |resolved, charge| {
            match self.resolve(std::slice::from_ref(charge), value, None, IfMissing::LeaveOut) {
                Ok(found) if !found.charges.is_empty() => found.charges.into_iter().fold(resolved, Resolved::charged),
                Ok(_) | Err(_) => resolved.missing(charge.limit.clone()),
            }
        })
    }

    fn counts_by_answer(&self, limit: &LimitName) -> bool {
        self.limit(limit.as_str()).is_ok_and(Limit::counts_by_answer)
    }

    fn answered(&self, limit: &LimitName, status: u16) -> Option<Actual> {
        self.limit(limit.as_str()).ok()?.answered(status)
    }
}
