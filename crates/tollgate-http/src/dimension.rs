//! The values of key dimensions in one request.
//!
//! Invariant: whatever a request holds, a dimension has a value or none; two spellings of one path parameter or query
//! value are one value, and nothing that a sender can give twice is the first of several.

use crate::body;
use crate::client_address::{self, Doubt, Found};
use crate::device::known_device;
use crate::facts::Facts;
use bytes::Bytes;
use http::request::Parts;
use percent_encoding::percent_decode_str;
use std::sync::OnceLock;
use tollgate_core::Timestamp;
use tollgate_policy::{ClientIp, Network, Policy, RouteMatch, Source};

/// What goes before what a request says of a dimension.
pub(crate) type Given<'a> = &'a (dyn Fn(&str) -> Option<String> + Sync);

/// A request on a route, asked for dimensions.
pub(crate) struct Asked<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) matched: &'a RouteMatch<'a>,
    pub(crate) parts: &'a Parts,
    pub(crate) facts: &'a Facts,
    /// The whole body, if a dimension is in it and it is small enough.
    body: Option<Bytes>,
    /// When it is asked.
    now: Timestamp,
    given: Given<'a>,
    /// Set when it is asked for.
    client: OnceLock<Found>,
}

impl<'a> Asked<'a> {
    pub(crate) fn new(
        policy: &'a Policy,
        matched: &'a RouteMatch<'a>,
        parts: &'a Parts,
        facts: &'a Facts,
        body: Option<Bytes>,
        now: Timestamp,
    ) -> Self {
        Self { policy, matched, parts, facts, body, now, given: &|_| None, client: OnceLock::new() }
    }

    /// The same, where `given` goes before what the request says.
    pub(crate) fn given(mut self, given: Given<'a>) -> Self {
        self.given = given;
        self
    }

    /// What is odd about the client's address, if it was asked for.
    pub(crate) fn doubt(&self) -> Option<Doubt> {
        self.client.get()?.doubt
    }

    fn client(&self, rule: &ClientIp) -> Found {
        *self.client.get_or_init(|| client_address::find(rule, self.facts, &self.parts.headers))
    }

    /// The value of a dimension; `None` if there is none, or it is empty.
    pub(crate) fn value(&self, dimension: &str) -> Option<String> {
        let source = self.policy.identity().source(dimension)?;
        if let Some(given) = (self.given)(dimension) {
            return Some(given);
        }
        let value = match source {
            Source::Claim(name) => self.facts.claim(name),
            Source::Context(name) => self.facts.context(name),
            Source::Header(name) => self.header(name),
            Source::Query(name) => self.query(name),
            Source::Path(name) => {
                self.matched.param(name).map(|value| percent_decode_str(value).decode_utf8_lossy().into_owned())
            }
            Source::ApiKey => self.facts.api_key().map(str::to_owned),
            Source::ClientIp(rule) => {
                self.client(rule).address.map(|address| Network::of(address, rule.ipv6_prefix).to_string())
            }
            Source::Body(name) => self.body_field(name),
            Source::Device(device) => {
                let bound_value = self.value(&device.bound_to)?;
                known_device(self.policy, dimension, &bound_value, &self.parts.headers, self.now).map(|known| known.id)
            }
            _ => None,
        };
        value.filter(|value| !value.is_empty())
    }

    /// The value of a field of the body; `None` if it has no one value.
    pub(crate) fn body_field(&self, name: &str) -> Option<String> {
        body::field(self.body.as_ref()?, &self.parts.headers, name)
    }

    /// All lines of a header as one (RFC 9110 section 5.3).
    fn header(&self, name: &str) -> Option<String> {
        let lines = self.parts.headers.get_all(name).iter().map(|line| String::from_utf8_lossy(line.as_bytes()));
        lines.map(String::from).reduce(|all, line| all + ", " + &line)
    }

    /// The parameter of that name. Given again with another value it has none: handlers differ in which of them they take.
    fn query(&self, name: &str) -> Option<String> {
        let query = self.parts.uri.query()?;
        let mut values =
            form_urlencoded::parse(query.as_bytes()).filter(|(known, _)| known == name).map(|(_, value)| value);
        let first = values.next()?;
        values.all(|value| value == first).then(|| first.into_owned())
    }
}
