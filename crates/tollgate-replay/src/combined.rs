//! One line of the combined log format (and the common one, its first seven fields), as Apache httpd and nginx write it.
//!
//! ```text
//! client identity user [time] "request" status size "referrer" "agent"
//! ```
//!
//! Invariant: any bytes are either an [`Entry`] or a [`LineError`] that says what is wrong and where; a line is never
//! guessed at. Fields after the agent are not read, since servers are configured to append all kinds.
//! Format: <https://httpd.apache.org/docs/2.4/logs.html#accesslog>.

use crate::date;
use crate::escape::text;
use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use tollgate_core::Timestamp;

/// A request as the log tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry<'a> {
    /// When, to the second.
    pub time: Timestamp,
    /// From which address; `None` if the server wrote a host name.
    pub client_ip: Option<IpAddr>,
    /// The remote user; `None` if nobody authenticated (`-`).
    pub user: Option<Cow<'a, str>>,
    /// What was asked; `None` if no HTTP request arrived (`-` of a connection timed out, bytes of another protocol).
    pub request: Option<Request<'a>>,
    /// The status that was answered, 0 to 999 (nginx writes 000 when there was no answer).
    pub status: u16,
    /// Bytes of the answer's body; `None` if there were none (`-`).
    pub size: Option<u64>,
}

/// A request line.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Request<'a> {
    /// The method, as written.
    pub method: &'a str,
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
}

/// What is wrong with a line, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{flaw}")]
pub struct LineError {
    /// The byte at which it shows, counted from 1.
    pub column: usize,
    /// What it is.
    pub flaw: Flaw,
}

/// What can be wrong with a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
    /// The status is not three digits.
    Status,
    /// The size is neither digits nor `-`, or above 2^64.
    Size,
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
            Self::Status => f.write_str("the status should be three digits"),
            Self::Size => f.write_str("the size should be digits or `-`"),
            Self::TooLong(most) => write!(f, "the line is longer than {most} bytes"),
        }
    }
}

impl<'a> Entry<'a> {
    /// Reads one line, with or without its line end.
    ///
    /// # Errors
    ///
    /// [`LineError`] with the first thing that is wrong.
    pub fn parse(line: &'a [u8]) -> Result<Self, LineError> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let mut rest = Cursor { line: line.strip_suffix(b"\r").unwrap_or(line), at: 0 };
        let client = rest.word("client")?;
        rest.word("identity")?;
        let user = rest.user()?;
        let time = rest.time()?;
        let request = rest.quoted("request")?;
        let status = rest.status()?;
        let size = rest.size()?;
        for field in ["referrer", "agent"] {
            if rest.line.get(rest.at) == Some(&b'"') {
                rest.quoted(field)?;
            }
        }
        let client_ip = std::str::from_utf8(client).ok().and_then(|text| IpAddr::from_str(text).ok());
        Ok(Self { time, client_ip, user, request: request_line(request), status, size })
    }
}

/// The unread rest of a line. Every field's reader leaves it at the start of the next field.
struct Cursor<'a> {
    line: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn rest(&self) -> &'a [u8] {
        self.line.get(self.at..).unwrap_or_default()
    }

    fn error(&self, at: usize, flaw: Flaw) -> LineError {
        // The end of the line is the last place to point at.
        LineError { column: at.min(self.line.len()) + 1, flaw }
    }

    /// The bytes up to the next space, or to the end; not none.
    fn word(&mut self, field: &'static str) -> Result<&'a [u8], LineError> {
        let rest = self.rest();
        let word = &rest[..rest.iter().position(|b| *b == b' ').unwrap_or(rest.len())];
        if word.is_empty() {
            return Err(self.error(self.at, Flaw::Ends(field)));
        }
        self.at += word.len() + 1;
        Ok(word)
    }

    /// The user: all up to the `[` that opens the time, since a user name may have spaces.
    fn user(&mut self) -> Result<Option<Cow<'a, str>>, LineError> {
        let rest = self.rest();
        let Some(end) = rest.windows(2).position(|pair| pair == b" [") else {
            self.word("user")?;
            let flaw = if self.rest().is_empty() { Flaw::Ends("time") } else { Flaw::Opening("time", '[') };
            return Err(self.error(self.at, flaw));
        };
        let user = &rest[..end];
        // A virtual host in front of the client moves every field by one, and an address would become the identity.
        if user.starts_with(b"- ") {
            return Err(self.error(self.at, Flaw::ExtraField));
        }
        self.at += end + 1;
        // Apache httpd writes an empty user name as `""`.
        let nobody = matches!(user, b"" | b"-" | b"\"\"");
        Ok((!nobody).then(|| text(user)))
    }

    fn time(&mut self) -> Result<Timestamp, LineError> {
        let start = self.at + 1;
        let rest = self.line.get(start..).unwrap_or_default();
        let Some(end) = rest.iter().position(|b| *b == b']') else {
            return Err(self.error(self.line.len(), Flaw::Closing("time", ']')));
        };
        let time = date::parse(&rest[..end]).ok_or_else(|| self.error(start, Flaw::Time))?;
        self.at = start + end + 1;
        self.space();
        Ok(time)
    }

    /// What stands between quotes, still escaped.
    fn quoted(&mut self, field: &'static str) -> Result<&'a [u8], LineError> {
        match self.rest() {
            [] => return Err(self.error(self.at, Flaw::Ends(field))),
            [b'"', ..] => (),
            _ => return Err(self.error(self.at, Flaw::Opening(field, '"'))),
        }
        let start = self.at + 1;
        let mut end = start;
        loop {
            match self.line.get(end) {
                Some(b'"') => break,
                // The escaped character cannot close the field.
                Some(b'\\') => end += 2,
                Some(_) => end += 1,
                None => return Err(self.error(self.line.len(), Flaw::Closing(field, '"'))),
            }
        }
        self.at = end + 1;
        self.space();
        Ok(&self.line[start..end])
    }

    fn status(&mut self) -> Result<u16, LineError> {
        let start = self.at;
        let word = self.word("status")?;
        number(word)
            .filter(|_| word.len() == 3)
            .and_then(|status| u16::try_from(status).ok())
            .ok_or_else(|| self.error(start, Flaw::Status))
    }

    fn size(&mut self) -> Result<Option<u64>, LineError> {
        let start = self.at;
        match self.word("size")? {
            b"-" => Ok(None),
            word => number(word).map(Some).ok_or_else(|| self.error(start, Flaw::Size)),
        }
    }

    fn space(&mut self) {
        if self.line.get(self.at) == Some(&b' ') {
            self.at += 1;
        }
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0_u64, |value, d| {
        let d = d.is_ascii_digit().then(|| u64::from(d - b'0'))?;
        value.checked_mul(10)?.checked_add(d)
    })
}

/// Method and target of a request line, if it is one: HTTP/0.9 has no version, and a target may have (wrong) spaces.
fn request_line(line: &[u8]) -> Option<Request<'_>> {
    let space = line.iter().position(|b| *b == b' ')?;
    let (method, rest) = (&line[..space], &line[space + 1..]);
    let target = match rest.iter().rposition(|b| *b == b' ') {
        Some(space) if rest[space + 1..].starts_with(b"HTTP/") => &rest[..space],
        _ => rest,
    };
    // RFC 9110, section 5.6.2: the characters of a token.
    let token = |b: &u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(b);
    if method.is_empty() || target.is_empty() || !method.iter().all(token) {
        return None;
    }
    Some(Request { method: std::str::from_utf8(method).ok()?, target: text(target) })
}
