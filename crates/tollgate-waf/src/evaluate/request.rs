//! A request as WAF sees it.

use std::net::IpAddr;

/// A request. What it says is bytes, as they came.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request {
    /// The method.
    pub method: String,
    /// The path, as it was sent.
    pub path: String,
    /// The query without `?`, as it was sent.
    pub query: String,
    /// Header fields, in order.
    pub headers: Vec<(String, String)>,
    /// Who has opened the connection; `None` if that is not known.
    pub source: Option<IpAddr>,
}

impl Request {
    /// A request for `target`, a path with a query if it has one.
    #[must_use]
    pub fn new(method: &str, target: &str, source: impl Into<Option<IpAddr>>) -> Self {
        let target = target.split('#').next().unwrap_or(target);
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        Self {
            method: method.to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            headers: Vec::new(),
            source: source.into(),
        }
    }

    /// With a header field.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The values of a header, in order.
    pub(super) fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}
