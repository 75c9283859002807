//! The values of key dimensions in one request. Invariant: whatever a request holds, a dimension has a value or none;
//! two spellings of one path parameter or query value are one value.

use crate::facts::Facts;
use http::request::Parts;
use percent_encoding::percent_decode_str;
use tollgate_policy::{Network, Policy, RouteMatch, Source};

/// A request on a route, asked for dimensions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) matched: &'a RouteMatch<'a>,
    pub(crate) parts: &'a Parts,
    pub(crate) facts: &'a Facts,
}

impl Asked<'_> {
    /// The value of a dimension; `None` if there is none, or it is empty.
    pub(crate) fn value(&self, dimension: &str) -> Option<String> {
        let value = match self.policy.identity().source(dimension)? {
            Source::Claim(name) => self.facts.claim(name),
            Source::Context(name) => self.facts.context(name),
            Source::Header(name) => self.header(name),
            Source::Query(name) => self.query(name),
            Source::Path(name) => {
                self.matched.param(name).map(|value| percent_decode_str(value).decode_utf8_lossy().into_owned())
            }
            Source::ApiKey => self.facts.api_key().map(str::to_owned),
            Source::ClientIp(rule) => {
                self.facts.source_address().map(|address| Network::of(address, rule.ipv6_prefix).to_string())
            }
            // The body is not read in this version.
            _ => None,
        };
        value.filter(|value| !value.is_empty())
    }

    /// All lines of a header as one (RFC 9110 section 5.3).
    fn header(&self, name: &str) -> Option<String> {
        let lines = self.parts.headers.get_all(name).iter().map(|line| String::from_utf8_lossy(line.as_bytes()));
        lines.map(String::from).reduce(|all, line| all + ", " + &line)
    }

    /// The first parameter of that name.
    fn query(&self, name: &str) -> Option<String> {
        let query = self.parts.uri.query()?;
        form_urlencoded::parse(query.as_bytes()).find(|(known, _)| known == name).map(|(_, value)| value.into_owned())
    }
}
