//! A request as a log tells it, whatever the log's format, and what can be wrong with a line.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use tollgate_core::Timestamp;

/// A request as the log tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry<'a> {
    /// When: as exactly as the format tells it, which is to the second, millisecond or microsecond.
    pub time: Timestamp,
    /// From which address; `None` if the server wrote a host name.
    pub client_ip: Option<IpAddr>,
    /// The user; `None` if nobody authenticated (`-`), or the log does not tell.
    pub user: Option<Cow<'a, str>>,
    /// What was asked; `None` if no HTTP request arrived (`-` of a connection timed out, bytes of another protocol).
    pub request: Option<Request<'a>>,
    /// The status that was answered, 0 to 999; 0 if there was no answer (nginx writes 000) or the log does not tell.
    pub status: u16,
    /// Bytes of the answer's body; `None` if there were none (`-`), or the log does not tell.
    pub size: Option<u64>,
    /// What else the log tells, by the names that the format has for it.
    pub fields: Fields<'a>,
    /// What AWS WAF did; `None` in the logs of all others.
    pub waf: Option<Waf<'a>>,
}

/// A request line.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request<'a> {
    /// The method, as written.
    pub method: Cow<'a, str>,
    /// The target, as written, without the log's escapes: `/a?b=c`, `http://host/a?b=c`, `*` or `host:443`.
    pub target: Cow<'a, str>,
}

impl Request<'_> {
    /// The target's path without scheme, host, query and fragment; `/` if a URL has none. Not decoded or normalised.
    #[must_use]
    pub fn path(&self) -> &str {
        let target = &*self.target;
        let end = |text: &str| text.find(['?', '#']).unwrap_or(text.len());
        // A `://` behind a slash belongs to the path or the query of an origin-form target.
        let Some((_, rest)) = target.split_once("://").filter(|(scheme, _)| !scheme.contains(['/', '?'])) else {
            return &target[..end(target)];
        };
        let rest = &rest[..end(rest)];
        rest.find('/').map_or("/", |at| &rest[at..])
    }

    /// The target's query without `?`, as written; empty if there is none.
    #[must_use]
    pub fn query(&self) -> &str {
        let target = self.target.split('#').next().unwrap_or_default();
        target.split_once('?').map_or("", |(_, query)| query)
    }
}

/// Names and values of a log's fields. A field that the log leaves empty (`-`) is none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fields<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Fields<'a> {
    /// The value of the first field of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }

    /// As [`Self::get`], in any case of letters.
    #[must_use]
    pub fn get_any_case(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| &**value)
    }

    /// Takes the value of a field out.
    pub(crate) fn take(&mut self, name: &str) -> Option<Cow<'a, str>> {
        let place = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.swap_remove(place).1)
    }

    pub(crate) fn push(&mut self, name: impl Into<Cow<'a, str>>, value: impl Into<Cow<'a, str>>) {
        let value = value.into();
        if !value.is_empty() && value != "-" {
            self.0.push((name.into(), value));
        }
    }
}

/// What AWS WAF did with a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Waf<'a> {
    /// The action that ended it: `ALLOW`, `BLOCK`, `CAPTCHA` or `CHALLENGE`.
    pub action: Cow<'a, str>,
    /// The rule that ended it; `Default_Action` if none did.
    pub rule: Cow<'a, str>,
    /// Rules that matched and only counted.
    pub counted: Vec<Cow<'a, str>>,
}

impl Waf<'_> {
    /// Whether the request went no further.
    #[must_use]
    pub fn stopped(&self) -> bool {
        self.action != "ALLOW"
    }
}

/// What is wrong with a line, and where.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{flaw}")]
pub struct LineError {
    /// The byte at which it shows, counted from 1.
    pub column: usize,
    /// What it is.
    pub flaw: Flaw,
}

impl LineError {
    /// At the start of the line, for flaws of the whole.
    pub(crate) fn whole(flaw: Flaw) -> Self {
        Self { column: 1, flaw }
    }
}

/// What can be wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Flaw {
    /// The line ends before this field.
    Ends(&'static str),
    /// This field does not begin with the character that opens it.
    Opening(&'static str, char),
    /// The character that closes this field never comes.
    Closing(&'static str, char),
    /// There are more fields before the time than client, identity and user.
    ExtraField,
    /// The time is not like `17/May/2015:10:05:03 +0000`, or there is no such time.
    Time,
    /// The field, named, is no time as this format writes it.
    TimeOf(&'static str),
    /// The status is not three digits.
    Status,
    /// The size is neither digits nor `-`, or above 2^64.
    Size,
    /// This is not JSON; why not.
    Json(String),
    /// The JSON object, or the list of fields, has none of these.
    Lacks(&'static str),
    /// There are fewer values than fields.
    Fields {
        /// Values that the line has.
        has: usize,
        /// Fields that the file says there are.
        wants: usize,
    },
    /// The line is longer than this many bytes.
    TooLong(usize),
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ends(field) => write!(f, "the line ends where the {field} should be"),
            Self::Opening(field, c) => write!(f, "the {field} should begin with `{c}`"),
            Self::Closing(field, c) => write!(f, "the {field} is not closed with `{c}`"),
            Self::ExtraField => f.write_str("only client, identity and user should stand before the time"),
            Self::Time => f.write_str("the time should be a date like 17/May/2015:10:05:03 +0000"),
            Self::TimeOf(field) => write!(f, "`{field}` is no time as this format writes it"),
            Self::Status => f.write_str("the status should be three digits"),
            Self::Size => f.write_str("the size should be digits or `-`"),
            Self::Json(why) => write!(f, "not a JSON object: {why}"),
            Self::Lacks(what) => write!(f, "there is no {what}"),
            Self::Fields { has, wants } => write!(f, "{has} values for {wants} fields"),
            Self::TooLong(most) => write!(f, "the line is longer than {most} bytes"),
        }
    }
}
