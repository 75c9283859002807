//! Standard access logs of CloudFront: tab-separated values with the fields' names in a header line, and the JSON of version 2.
//!
//! ```text
//! #Version: 1.0
//! #Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) …
//! ```
//!
//! Invariant: a field is known by its name, not by its place, except in a part of a log that lost its header: that has the
//! fields of the legacy format. Values are percent-encoded by CloudFront ([which
//! characters](https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/standard-logs-reference.html)); a path is
//! as the viewer sent it and left so, since a path's own encoding is not undone before it is matched either.

use super::cursor::number;
use super::json::Object;
use crate::date;
use crate::entry::{Entry, Fields, Flaw, LineError, Request};
use percent_encoding::percent_decode;
use std::borrow::Cow;
use tollgate_core::Timestamp;

/// The fields of the legacy format, in order.
const LEGACY: &str = "date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) \
    cs(User-Agent) cs-uri-query cs(Cookie) x-edge-result-type x-edge-request-id x-host-header cs-protocol cs-bytes \
    time-taken x-forwarded-for ssl-protocol ssl-cipher x-edge-response-result-type cs-protocol-version fle-status \
    fle-encrypted-fields c-port time-to-first-byte x-edge-detailed-result-type sc-content-type sc-content-len \
    sc-range-start sc-range-end";

/// The names of a file's fields.
#[derive(Debug, Clone)]
pub(super) struct Columns(Vec<Box<str>>);

impl Default for Columns {
    fn default() -> Self {
        Self(LEGACY.split(' ').map(Into::into).collect())
    }
}

impl Columns {
    /// Takes a line that begins with `#`.
    pub(super) fn header(&mut self, line: &[u8]) {
        if let Some(names) = line.strip_prefix(b"#Fields:") {
            let names = String::from_utf8_lossy(names);
            self.0 = names.split_whitespace().map(Into::into).collect();
        }
    }

    pub(super) fn parse<'a>(&'a self, line: &'a [u8]) -> Result<Entry<'a>, LineError> {
        let mut fields = Fields::default();
        let mut values = 0;
        for (name, value) in self.0.iter().zip(line.split(|b| *b == b'\t')) {
            values += 1;
            let is_target = matches!(&**name, "cs-uri-stem" | "cs-uri-query");
            fields.push(&**name, if is_target { String::from_utf8_lossy(value) } else { decoded(value) });
        }
        if values < self.0.len() {
            return Err(LineError { column: line.len() + 1, flaw: Flaw::Fields { has: values, wants: self.0.len() } });
        }
        entry(fields)
    }
}

/// Whether a line is one of a log, with or without the header above it.
pub(super) fn looks_like(line: &[u8]) -> bool {
    line.starts_with(b"#Version:") || line.starts_with(b"#Fields:") || {
        line.get(10) == Some(&b'\t') && line.get(..19).is_some_and(|start| date::iso(start).is_some())
    }
}

/// Whether a JSON line is CloudFront's.
pub(super) fn is_json(object: &Object<'_>) -> bool {
    object.get("cs-uri-stem").is_some() && object.get("c-ip").is_some()
}

pub(super) fn parse_json(object: Object<'_>) -> Result<Entry<'_>, LineError> {
    entry(object.into_fields())
}

fn entry(mut fields: Fields<'_>) -> Result<Entry<'_>, LineError> {
    let time = time(&fields)?;
    let method = fields.take("cs-method");
    let request = match (method, fields.take("cs-uri-stem")) {
        (Some(method), Some(path)) => {
            let query = fields.get("cs-uri-query").map(|query| format!("{path}?{query}"));
            Some(Request { method, target: query.map_or(path, Cow::Owned) })
        }
        _ => None,
    };
    let client_ip = fields.get("c-ip").and_then(|address| address.parse().ok());
    // 000 if the viewer closed the connection before there was an answer.
    let status = match fields.get("sc-status") {
        None => 0,
        Some(status) => {
            let status = number(status.as_bytes()).and_then(|status| u16::try_from(status).ok());
            status.filter(|status| *status < 1000).ok_or(LineError::whole(Flaw::Status))?
        }
    };
    let size = fields.get("sc-bytes").and_then(|size| number(size.as_bytes()));
    Ok(Entry { time, client_ip, user: None, request, status, size, fields, waf: None })
}

/// `timestamp(ms)` and `timestamp` are epoch times of version 2; `date` and `time` are in UTC.
fn time(fields: &Fields<'_>) -> Result<Timestamp, LineError> {
    let flaw = |name| LineError::whole(Flaw::TimeOf(name));
    for (name, unit) in [("timestamp(ms)", 1_000_000), ("timestamp", 1_000_000_000)] {
        if let Some(value) = fields.get(name) {
            let nanos = number(value.as_bytes()).and_then(|value| value.checked_mul(unit));
            return nanos.map(Timestamp::from_nanos).ok_or_else(|| flaw(name));
        }
    }
    let (Some(day), Some(clock)) = (fields.get("date"), fields.get("time")) else {
        return Err(LineError::whole(Flaw::Lacks("`date` and `time`")));
    };
    date::iso(format!("{day}T{clock}").as_bytes()).ok_or_else(|| flaw("date"))
}

/// A value without its percent-encoding.
fn decoded(value: &[u8]) -> Cow<'_, str> {
    if value.contains(&b'%') { percent_decode(value).decode_utf8_lossy() } else { String::from_utf8_lossy(value) }
}
