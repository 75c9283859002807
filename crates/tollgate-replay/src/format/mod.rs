//! The formats of logs, and which of them a file has.
//!
//! Invariant: a file has the format of the first of its lines that can be read, and keeps it: what cannot be read in that
//! format is malformed, never tried in another.

mod alb;
mod cloudfront;
mod combined;
mod cursor;
mod gateway;
mod json;
mod waf;

use crate::date;
use crate::entry::{Entry, Flaw, LineError, Request};
use crate::escape::text;
use cloudfront::Columns;
use json::Object;
use serde::Serialize;
use std::borrow::Cow;
use std::fmt;

/// A format of logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Format {
    /// The combined log format of Apache httpd and nginx, or the common one.
    Combined,
    /// An Application Load Balancer's.
    Alb,
    /// CloudFront's standard logs, tab-separated.
    Cloudfront,
    /// CloudFront's standard logs of version 2, in JSON.
    CloudfrontJson,
    /// API Gateway's, in JSON.
    ApiGateway,
    /// AWS WAF's.
    Waf,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Combined => "combined",
            Self::Alb => "ALB",
            Self::Cloudfront => "CloudFront",
            Self::CloudfrontJson => "CloudFront JSON",
            Self::ApiGateway => "API Gateway",
            Self::Waf => "AWS WAF",
        })
    }
}

/// Reads the lines of one file.
#[derive(Debug, Clone, Default)]
pub struct Reader {
    format: Option<Format>,
    columns: Option<Columns>,
}

impl Reader {
    /// The format, once a line could be read.
    #[must_use]
    pub fn format(&self) -> Option<Format> {
        self.format
    }

    /// Reads a line, with or without its end; `None` if it is blank or a header.
    ///
    /// # Errors
    ///
    /// [`LineError`] with the first thing that is wrong.
    pub fn line<'a>(&'a mut self, line: &'a [u8]) -> Result<Option<Entry<'a>>, LineError> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.trim_ascii().is_empty() {
            return Ok(None);
        }
        let format = self.format;
        match format {
            Some(Format::Combined) => Entry::parse(line).map(Some),
            Some(Format::Alb) => alb::parse(line).map(Some),
            Some(Format::Cloudfront) => self.tabbed(line),
            Some(Format::CloudfrontJson | Format::ApiGateway | Format::Waf) => self.object(line).map(Some),
            None if json_part(line).is_some() => self.object(line).map(Some),
            None if cloudfront::looks_like(line) => self.tabbed(line),
            None => {
                let (format, read) = if alb::looks_like(line) {
                    (Format::Alb, alb::parse(line))
                } else {
                    (Format::Combined, Entry::parse(line))
                };
                self.format = read.is_ok().then_some(format);
                read.map(Some)
            }
        }
    }

    fn tabbed<'a>(&'a mut self, line: &'a [u8]) -> Result<Option<Entry<'a>>, LineError> {
        let columns = self.columns.get_or_insert_default();
        if line.starts_with(b"#") {
            self.format = Some(Format::Cloudfront);
            columns.header(line);
            return Ok(None);
        }
        let entry = columns.parse(line)?;
        self.format = Some(Format::Cloudfront);
        Ok(Some(entry))
    }

    fn object<'a>(&mut self, line: &'a [u8]) -> Result<Entry<'a>, LineError> {
        let from = json_part(line).unwrap_or(0);
        let object = Object::parse(&line[from..])
            .map_err(|error| LineError { column: error.column + from, flaw: error.flaw })?;
        let format = match self.format {
            Some(format) => format,
            None if waf::is_one(&object) => Format::Waf,
            None if cloudfront::is_json(&object) => Format::CloudfrontJson,
            None if gateway::is_one(&object) => Format::ApiGateway,
            None => {
                let known = "field by which a log of AWS WAF, CloudFront or API Gateway is known";
                return Err(LineError::whole(Flaw::Lacks(known)));
            }
        };
        let entry = match format {
            Format::Waf => waf::parse(&object),
            Format::CloudfrontJson => cloudfront::parse_json(object),
            _ => gateway::parse(object),
        }?;
        self.format = Some(format);
        Ok(entry)
    }
}

/// Where the JSON of a line begins: at once, or behind the time that CloudWatch Logs puts before it when it exports to S3.
fn json_part(line: &[u8]) -> Option<usize> {
    if line.starts_with(b"{") {
        return Some(0);
    }
    let space = line.iter().take(40).position(|b| *b == b' ')?;
    (line.get(space + 1) == Some(&b'{') && date::iso(&line[..space]).is_some()).then_some(space + 1)
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
    Some(Request { method: Cow::Borrowed(std::str::from_utf8(method).ok()?), target: text(target) })
}
