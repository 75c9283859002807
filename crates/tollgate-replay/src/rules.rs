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

/// Where a log has the value of a dimension.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// The client's address, cut to its network.
    ClientIp,
    /// The same of an address in a field; of a list, its last.
    AddressIn(String),
    /// The user that the format knows.
    User,
    /// A field, by the name that the format has for it.
    Field(String),
    /// A request header: `header.NAME` of AWS WAF, `cs(NAME)` of CloudFront.
    Header(String),
    /// A parameter of the query, decoded.
    Query(String),
    /// A parameter of the route's path.
    Path(String),
}

/// A dimension, and where in a log to look for it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lookup {
    /// Its name.
    pub dimension: String,
    /// The first of these that has a value gives it.
    pub places: Vec<Place>,
    /// Whether a report may name a client by it.
    pub names_clients: bool,
}

impl Lookup {
    /// A dimension that a client may be named by.
    #[must_use]
    pub fn new(dimension: impl Into<String>, places: Vec<Place>) -> Self {
        Self { dimension: dimension.into(), places, names_clients: true }
    }
}

/// What one caller is charged for one request of a route.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Resolved {
    /// What is charged, all or nothing.
    pub charges: Vec<Charges>,
    /// Limits of the route that are not charged, with the entry of their key that the log has no value for.
    pub missing: Vec<(LimitName, String)>,
}

impl Resolved {
    /// With more charges.
    #[must_use]
    pub fn charged(mut self, charges: Charges) -> Self {
        self.charges.push(charges);
        self
    }

    /// With one more limit that is not charged, since nothing gives this entry of its key.
    #[must_use]
    pub fn missing(mut self, limit: LimitName, entry: impl Into<String>) -> Self {
        self.missing.push((limit, entry.into()));
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

    /// The dimensions that [`Rules::resolve`] asks for. Callers that are equal in all of them are one.
    fn lookups(&self) -> Vec<Lookup> {
        vec![Lookup::new("client_ip", vec![Place::ClientIp]), Lookup::new("user", vec![Place::User])]
    }

    /// The route of a request; `path` is without the query, as it stood on the request line.
    fn matched(&self, method: &str, path: &str) -> Matched;

    /// The value of a parameter of the path, decoded.
    fn path_parameter(&self, _method: &str, _path: &str, _name: &str) -> Option<String> {
        None
    }

    /// The charges of a request on `route`, a number that [`Rules::matched`] gave. `value` looks a dimension of
    /// [`Rules::lookups`] up.
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
