//! One line of the combined log format (and the common one, its first seven fields), as Apache httpd and nginx write it.
//!
//! ```text
//! client identity user [time] "request" status size "referrer" "agent"
//! ```
//!
//! Invariant: any bytes are either an [`Entry`] or a [`LineError`] that says what is wrong and where; a line is never
//! guessed at. Fields after the agent are not read, since servers are configured to append all kinds.
//! Format: <https://httpd.apache.org/docs/2.4/logs.html#accesslog>.

use super::cursor::Cursor;
use super::request_line;
use crate::entry::{Entry, Fields, LineError};
use crate::escape::text;
use std::net::IpAddr;
use std::str::FromStr;

impl<'a> Entry<'a> {
    /// Reads one line of the combined or common format, with or without its line end.
    ///
    /// # Errors
    ///
    /// [`LineError`] with the first thing that is wrong.
    pub fn parse(line: &'a [u8]) -> Result<Self, LineError> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let mut rest = Cursor::new(line.strip_suffix(b"\r").unwrap_or(line));
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
        Ok(Self {
            time,
            client_ip,
            user: user.map(text),
            request: request_line(request),
            status,
            size,
            fields: Fields::default(),
            waf: None,
        })
    }
}
