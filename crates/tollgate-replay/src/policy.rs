//! A policy file's rules, applied to a log. Invariant: charges come from the policy's own resolution, the one that serves
//! requests.

use crate::rules::{Lookup, Matched, Place, Resolved, Rules};
use std::collections::{BTreeMap, BTreeSet};
use tollgate_core::{Actual, LimitName};
use tollgate_policy::{IfMissing, KeyPart, Limit, Policy, RouteCharge, Source};

/// A policy as it serves requests, and where a log tells who is asking.
///
/// A dimension is looked for where the policy has it from: a claim in fields like `claims.sub`, `authorizer.claims.sub` or
/// `sub`, a header, a parameter of query or path, and else in a field with the dimension's own name. A device is known by
/// a secret that no log should have, so it has no value unless a field is named for it.
///
/// A policy without routes charges each of its limits, at a cost of 1, on every request that is not exempt and has a
/// value for the limit's key: enough to try figures on a log before there are routes.
#[derive(Debug, Clone)]
pub struct Applied<'p> {
    policy: &'p Policy,
    fields: BTreeMap<String, String>,
    plan: Option<String>,
}

impl<'p> Applied<'p> {
    /// The policy, every value where it is looked for by itself, every caller on the plan that the log tells, else on the
    /// default plan.
    #[must_use]
    pub fn new(policy: &'p Policy) -> Self {
        Self { policy, fields: BTreeMap::new(), plan: None }
    }

    /// A dimension has its value from this field of the log, and from nowhere else.
    #[must_use]
    pub fn with_field(mut self, dimension: impl Into<String>, field: impl Into<String>) -> Self {
        self.fields.insert(dimension.into(), field.into());
        self
    }

    /// Callers of whom the log does not tell a plan are on this one.
    #[must_use]
    pub fn with_plan(mut self, plan: impl Into<String>) -> Self {
        self.plan = Some(plan.into());
        self
    }

    fn places(&self, dimension: &str, source: &Source) -> Vec<Place> {
        let is_address = matches!(source, Source::ClientIp(_));
        if let Some(field) = self.fields.get(dimension) {
            return vec![if is_address { Place::AddressIn(field.clone()) } else { Place::Field(field.clone()) }];
        }
        let field = |name: String| Place::Field(name);
        let mut places = match source {
            Source::ClientIp(_) => return vec![Place::ClientIp],
            Source::Everyone | Source::Device(_) => return Vec::new(),
            Source::Claim(name) => {
                let within = ["claims.", "authorizer.claims.", "authorizer.jwt.claims.", "authorizer.", ""];
                within.iter().map(|within| field(format!("{within}{name}"))).collect()
            }
            Source::ApiKey => {
                ["apiKey", "apiKeyId", "identity.apiKey", "identity.apiKeyId"].map(str::to_owned).map(field).to_vec()
            }
            Source::Header(name) => vec![Place::Header(name.clone())],
            Source::Query(name) => vec![Place::Query(name.clone())],
            Source::Path(name) => vec![Place::Path(name.clone())],
            Source::Context(name) => vec![field(format!("context.{name}")), field(name.clone())],
            _ => Vec::new(),
        };
        places.push(field(dimension.to_owned()));
        if dimension == "user" {
            places.push(Place::User);
        }
        places
    }
}

/// A parameter as it counts when it is served: without its percent-encoding.
fn decoded(value: &str) -> String {
    percent_encoding::percent_decode_str(value).decode_utf8_lossy().into_owned()
}

impl Rules for Applied<'_> {
    fn limits(&self) -> Vec<LimitName> {
        self.policy.limits().iter().map(|limit| limit.name().clone()).collect()
    }

    fn ipv6_prefix(&self) -> u8 {
        self.policy.identity().client_ip().ipv6_prefix
    }

    fn lookups(&self) -> Vec<Lookup> {
        let (policy, identity) = (self.policy, self.policy.identity());
        let of_limits = policy.limits().iter().flat_map(Limit::key).flat_map(KeyPart::alternatives);
        let mut wanted: BTreeSet<&str> = of_limits.collect();
        if policy.limits().iter().any(|limit| limit.plans().next().is_some()) {
            wanted.insert("plan");
        }
        let known = wanted.into_iter().filter_map(|name| Some((name, identity.dimension(name)?)));
        let lookups = known.map(|(name, dimension)| Lookup {
            names_clients: !dimension.personal && name != "plan",
            ..Lookup::new(name, self.places(name, &dimension.source))
        });
        lookups.filter(|lookup| !lookup.places.is_empty()).collect()
    }

    fn matched(&self, method: &str, path: &str) -> Matched {
        let policy = self.policy;
        if let Some(found) = policy.route(method, path) {
            let place = policy.routes().iter().position(|route| std::ptr::eq(route, found.route));
            return place.map_or(Matched::Unmatched, Matched::Route);
        }
        if policy.exemption(method, path).is_some() {
            Matched::Exempt
        } else if policy.routes().is_empty() {
            Matched::Route(0)
        } else {
            Matched::Unmatched
        }
    }

    fn path_parameter(&self, method: &str, path: &str, name: &str) -> Option<String> {
        self.policy.route(method, path)?.param(name).map(decoded)
    }

    fn resolve(&self, route: usize, value: &dyn Fn(&str) -> Option<String>) -> Resolved {
        let policy = self.policy;
        let every_limit = || policy.limits().iter().map(|limit| RouteCharge::new(limit.name().clone(), 1)).collect();
        let charges = policy.routes().get(route).map_or_else(every_limit, |route| route.charges().to_vec());
        // A plan that the policy does not know is the default one, as it is when it serves.
        let told = value("plan").filter(|plan| policy.plans().accepts(plan));
        let plan = told.or_else(|| self.plan.clone());
        // One by one, so that a value that no key can carry (over 2 KB) takes no other limit with it.
        charges.iter().fold(Resolved::default(), |resolved, charge| {
            let one = std::slice::from_ref(charge);
            match policy.resolve(one, value, plan.as_deref(), IfMissing::LeaveOut) {
                Ok(found) if !found.charges.is_empty() => found.charges.into_iter().fold(resolved, Resolved::charged),
                Ok(found) => {
                    let entry = found.missing().next().map_or_else(String::new, |(_, part)| part.to_string());
                    resolved.missing(charge.limit.clone(), entry)
                }
                Err(error) => resolved.missing(charge.limit.clone(), error.to_string()),
            }
        })
    }

    fn counts_by_answer(&self, limit: &LimitName) -> bool {
        self.policy.limit(limit.as_str()).is_ok_and(Limit::counts_by_answer)
    }

    fn answered(&self, limit: &LimitName, status: u16) -> Option<Actual> {
        self.policy.limit(limit.as_str()).ok()?.answered(status)
    }
}
