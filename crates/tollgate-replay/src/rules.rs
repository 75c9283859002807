//! What a replay asks of a policy, so that the engine knows limits and keys but no policy file.
//!
//! Invariant: the answers depend on nothing but the arguments. The engine asks [`Rules::resolve`] once for each route
//! and caller that it meets and uses the answer for every later request of that caller.

use tollgate_core::{Actual, Charges, LimitName};
use tollgate_policy::ClientIp;

/// Where a request belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Matched {
    /// On no route: nothing is charged.
    Unmatched,
    /// Never limited: nothing is charged.
    Exempt,
    /// On the route of this number; what it costs is asked by [`Rules::resolve`].
    Route(usize),
}

/// What one caller is charged for one request of a route.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Resolved {
    /// What is charged, all or nothing.
    pub charges: Vec<Charges>,
    /// Limits of the route that are not charged since the log has no value for a dimension of their key.
    pub missing: Vec<LimitName>,
}

impl Resolved {
    /// With more charges.
    #[must_use]
    pub fn charged(mut self, charges: Charges) -> Self {
        self.charges.push(charges);
        self
    }

    /// With one more limit whose key has no value.
    #[must_use]
    pub fn missing(mut self, limit: LimitName) -> Self {
        self.missing.push(limit);
        self
    }
}

/// A policy, as far as a log can be decided by it.
pub trait Rules {
    /// Every limit, so that one that no request met is reported with zeros.
    fn limits(&self) -> Vec<LimitName>;

    /// Bits that IPv6 addresses are cut to before they are looked up as `client_ip`.
    fn ipv6_prefix(&self) -> u8 {
        ClientIp::DEFAULT_IPV6_PREFIX
    }

    /// The route of a request; `path` is without the query, as it stood on the request line.
    fn matched(&self, method: &str, path: &str) -> Matched;

    /// The charges of a request on `route`, a number that [`Rules::matched`] gave. `value` looks a key dimension up; a
    /// log has values for `client_ip` and `user` and for no other.
    fn resolve(&self, route: usize, value: &dyn Fn(&str) -> Option<String>) -> Resolved;

    /// Whether what a request counts as on `limit` can depend on its status. Asked once for each route and caller.
    fn counts_by_answer(&self, _limit: &LimitName) -> bool {
        false
    }

    /// What a request that was answered with `status` counts as on `limit`; `None`: as what it was charged.
    fn answered(&self, _limit: &LimitName, _status: u16) -> Option<Actual> {
        None
    }
}
