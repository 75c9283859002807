//! What the headers of a body let be read of it.
//!
//! Invariant: of what somebody may read by another rule than ours, nothing is read. A multipart body has fields that its
//! parts name, whatever else its text says.

use http::{HeaderMap, HeaderName, header};

/// How a body may be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Readable {
    /// As one JSON object, or as a form.
    JsonOrForm,
    /// As one JSON object: `text/plain`, in which forms are written in another way (HTML Standard, "text/plain form data").
    JsonOnly,
}

/// How a body with these headers may be read; `None` if not at all: its bytes stand for others (compressed, another
/// character set), its media type has a format of its own, or its headers can be read in two ways.
pub(super) fn readable(headers: &HeaderMap) -> Option<Readable> {
    let coding = only(headers, &header::CONTENT_ENCODING)?.trim();
    let content_type = only(headers, &header::CONTENT_TYPE)?;
    // Some gateways join the lines of a header by commas, and handlers differ in which part they take.
    if !(coding.is_empty() || coding.eq_ignore_ascii_case("identity")) || content_type.contains(',') {
        return None;
    }
    let mut parts = content_type.split(';');
    let essence = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
    let charsets = parts
        .filter_map(|parameter| parameter.split_once('='))
        .filter(|(name, _)| name.trim().eq_ignore_ascii_case("charset"));
    let is_utf8 = |charset: &str| ["utf-8", "utf8", "us-ascii"].iter().any(|known| charset.eq_ignore_ascii_case(known));
    // Of several, handlers differ in which they take.
    charsets.map(|(_, charset)| charset.trim().trim_matches('"')).all(is_utf8).then_some(())?;
    match essence.as_str() {
        "" | "application/x-www-form-urlencoded" | "application/json" | "text/json" => Some(Readable::JsonOrForm),
        "text/plain" => Some(Readable::JsonOnly),
        other => other.ends_with("+json").then_some(Readable::JsonOrForm),
    }
}

/// The text of a header, empty if there is none; `None` if it is given twice or is no text.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut lines = headers.get_all(name).iter();
    match (lines.next(), lines.next()) {
        (None, _) => Some(""),
        (Some(line), None) => line.to_str().ok(),
        (Some(_), Some(_)) => None,
    }
}
