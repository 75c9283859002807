//! An HTTP answer as somebody has pasted it: what `curl -i` prints, or only a part of that.
//!
//! Invariant: any text has a reading, and reading it takes time and memory in proportion to its length.

use serde_json::Value;

/// Fields that nearly every answer has one of: what tells fields without a status line from a body with a colon in it.
const USUAL: [&str; 14] = [
    ":status",
    "alt-svc",
    "apigw-requestid",
    "cache-control",
    "cf-ray",
    "connection",
    "content-length",
    "content-type",
    "date",
    "retry-after",
    "server",
    "transfer-encoding",
    "vary",
    "via",
];

/// Families of such fields.
const FAMILIES: [&str; 4] = ["access-control-", "ratelimit", "x-amz", "x-ratelimit"];

/// The body of an answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Body {
    /// None.
    Empty,
    /// JSON.
    Json(Value),
    /// Anything else: HTML, XML, plain text.
    Text(String),
}

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Message {
    /// The status, unless only header fields or a body were pasted.
    pub(super) status: Option<u16>,
    /// The body.
    pub(super) body: Body,
    /// How many answers there were before this one: interim ones (100, 103), redirects, a proxy's to CONNECT.
    pub(super) before: usize,
    fields: Vec<(String, String)>,
}

impl Message {
    /// Reads what was pasted: of several answers in a row the last (RFC 9112 section 2, or as HTTP/2 and 3 are printed).
    pub(super) fn read(text: &str) -> Self {
        let text = text.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']);
        if status_line(line(text).0).is_none() {
            return Self::part(text);
        }
        let (mut before, mut rest) = (0, text);
        loop {
            let (first, after) = line(rest);
            let (fields, after) = fields(after);
            match next_answer(after, &fields) {
                Some(next) => (before, rest) = (before + 1, next),
                None => {
                    let body = body(after, &fields);
                    return Self { status: status_line(first), body, before, fields };
                }
            }
        }
    }

    /// Only header fields, only a body, or both without the status line.
    fn part(text: &str) -> Self {
        let (mut fields, after) = fields(text);
        let is_usual = |name: &str| USUAL.contains(&name) || FAMILIES.iter().any(|family| name.starts_with(family));
        if !fields.iter().any(|(name, _)| is_usual(name)) {
            return Self { status: None, body: body(text, &[]), before: 0, fields: Vec::new() };
        }
        // HTTP/2 and 3 have the status among the fields (RFC 9113 section 8.3.2), and some tools print it so.
        let status = fields.iter().find(|(name, _)| name == ":status").and_then(|(_, value)| value.parse().ok());
        let body = body(after, &fields);
        fields.retain(|(name, _)| name != ":status");
        Self { status, body, before: 0, fields }
    }

    /// The value of a field by its name in small letters; of several lines all, with commas (RFC 9110 section 5.3).
    pub(super) fn field(&self, name: &str) -> Option<String> {
        let lines = self.fields.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str());
        lines.map(str::to_owned).reduce(|all, line| format!("{all}, {line}"))
    }

    /// Whether there is such a field.
    pub(super) fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|(known, _)| known == name)
    }

    /// The names of all fields, in small letters.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|(name, _)| name.as_str())
    }

    /// Whether nothing at all was pasted.
    pub(super) fn is_empty(&self) -> bool {
        self.status.is_none() && self.fields.is_empty() && self.body == Body::Empty
    }

    /// The body if it is a JSON object.
    pub(super) fn json(&self) -> Option<&serde_json::Map<String, Value>> {
        match &self.body {
            Body::Json(value) => value.as_object(),
            _ => None,
        }
    }

    /// The answers of `POST /v1/decisions`, if the body is that: one, or one for each limit that was asked about.
    pub(super) fn decisions(&self) -> Vec<&serde_json::Map<String, Value>> {
        let answers: Vec<&Value> = match &self.body {
            Body::Json(Value::Array(all)) => all.iter().collect(),
            Body::Json(one) => vec![one],
            _ => return Vec::new(),
        };
        let is_one = |of: &Value| of["allowed"].is_boolean() && of["limit"].is_string() && of["source"].is_string();
        if answers.iter().all(|of| is_one(of)) {
            answers.into_iter().filter_map(Value::as_object).collect()
        } else {
            Vec::new()
        }
    }

    /// Of these, the one that is most in the way: one that never fits, else the one with the longest wait.
    pub(super) fn decided(&self) -> Option<&serde_json::Map<String, Value>> {
        let number = |of: &serde_json::Map<String, Value>, name| of.get(name).and_then(Value::as_u64).unwrap_or(0);
        let is_refused = |of: &&serde_json::Map<String, Value>| of.get("allowed") == Some(&Value::Bool(false));
        let never = |of: &serde_json::Map<String, Value>| of.get("never_fits") == Some(&Value::Bool(true));
        self.decisions().into_iter().filter(is_refused).max_by_key(|of| (never(of), number(of, "retry_after_ms")))
    }

    /// A member of the body that is text.
    pub(super) fn text_of(&self, member: &str) -> Option<&str> {
        self.json()?.get(member)?.as_str()
    }

    /// Whether the body, as text, has `part` in it, in any case.
    pub(super) fn says(&self, part: &str) -> bool {
        let text = match &self.body {
            Body::Empty => return false,
            Body::Json(value) => value.to_string(),
            Body::Text(text) => text.clone(),
        };
        text.to_lowercase().contains(&part.to_lowercase())
    }
}

/// The first line without its end, and what follows.
fn line(text: &str) -> (&str, &str) {
    let (line, rest) = text.split_once('\n').unwrap_or((text, ""));
    (line.strip_suffix('\r').unwrap_or(line), rest)
}

/// The status of a status line: `HTTP/1.1 429 Too Many Requests`, `HTTP/2 429`.
fn status_line(line: &str) -> Option<u16> {
    let (version, rest) = line.strip_prefix("HTTP/")?.split_once(' ')?;
    let is_version = !version.is_empty() && version.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let (status, reason) = rest.trim_start().split_at_checked(3)?;
    let is_status = status.bytes().all(|b| b.is_ascii_digit()) && (reason.is_empty() || reason.starts_with(' '));
    status.parse().ok().filter(|_| is_version && is_status)
}

/// Header fields up to an empty line or one that is none, with names in small letters, and what follows. A line that begins with a
/// blank goes on with the one before (RFC 9112 section 5.2).
fn fields(text: &str) -> (Vec<(String, String)>, &str) {
    let mut fields: Vec<(String, String)> = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (first, after) = line(rest);
        if first.trim().is_empty() {
            return (fields, after);
        }
        match (first.starts_with([' ', '\t']), fields.last_mut(), named(first)) {
            (true, Some((_, value)), _) => {
                value.push(' ');
                value.push_str(first.trim());
            }
            (false, _, Some((name, value))) => fields.push((name.to_ascii_lowercase(), value.trim().to_owned())),
            _ => return (fields, rest),
        }
        rest = after;
    }
    (fields, "")
}

/// A field's name, a token (RFC 9110 section 5.6.2), and its value.
fn named(line: &str) -> Option<(&str, &str)> {
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if let Some(value) = line.strip_prefix(":status:") {
        return Some((":status", value));
    }
    let (name, value) = line.split_once(':')?;
    (!name.is_empty() && name.bytes().all(token)).then_some((name, value))
}

/// The answer after this one, where another follows: at once, or after a body of the length that it says.
fn next_answer<'t>(after: &'t str, fields: &[(String, String)]) -> Option<&'t str> {
    let begins = |text: &'t str| status_line(line(text).0).map(|_| text);
    let length = || fields.iter().find(|(name, _)| name == "content-length")?.1.parse::<usize>().ok();
    begins(after).or_else(|| begins(after.get(length()?..)?.trim_start_matches(['\r', '\n'])))
}

fn body(text: &str, fields: &[(String, String)]) -> Body {
    let is_chunked = fields
        .iter()
        .any(|(name, value)| name == "transfer-encoding" && value.to_ascii_lowercase().contains("chunked"));
    // curl puts chunks together; what was taken off the wire has them.
    let whole = is_chunked.then(|| joined(text)).flatten();
    let text = whole.as_deref().unwrap_or(text).trim();
    match serde_json::from_str(text) {
        _ if text.is_empty() => Body::Empty,
        Ok(value @ (Value::Object(_) | Value::Array(_))) => Body::Json(value),
        _ => Body::Text(text.to_owned()),
    }
}

/// Chunks put together (RFC 9112 section 7.1); `None` if these are none.
fn joined(text: &str) -> Option<String> {
    let mut whole = String::new();
    let mut rest = text;
    loop {
        let (size, after) = line(rest);
        let size = usize::from_str_radix(size.split(';').next()?.trim(), 16).ok()?;
        if size == 0 {
            return Some(whole);
        }
        whole.push_str(after.get(..size)?);
        rest = after.get(size..)?.trim_start_matches(['\r', '\n']);
    }
}

#[cfg(test)]
mod tests {
    use super::{Body, Message};
    use serde_json::json;

    #[test]
    fn versions_line_ends_cases_and_folded_lines_are_one_answer() {
        let expected = Message::read("HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\nX-A: b c\r\n\r\n{\"a\":1}");
        assert_eq!((expected.status, expected.field("retry-after").as_deref()), (Some(429), Some("7")));
        assert_eq!(expected.body, Body::Json(json!({ "a": 1 })));
        for other in [
            "HTTP/2 429 \nretry-after: 7\nx-a: b c\n\n{\"a\":1}\n",
            "\u{feff}\n HTTP/3 429\nRETRY-AFTER:7\nX-a:   b\n   c\n\n{ \"a\": 1 }",
            ":status: 429\nretry-after: 7\nx-a: b c\n\n{\"a\":1}",
        ] {
            assert_eq!(Message::read(other), expected, "{other:?}");
        }
    }

    #[test]
    fn of_several_answers_the_last_counts() {
        let interim = "HTTP/1.1 100 Continue\r\n\r\n";
        let proxy = "HTTP/1.1 200 Connection established\r\nVia: p\r\n\r\n";
        let moved = "HTTP/1.1 301 Moved\r\nLocation: /b\r\nContent-Length: 5\r\n\r\nmoved";
        let last = "HTTP/1.1 429 Too Many Requests\r\nServer: s\r\n\r\nHTTP is a protocol";
        let read = Message::read(&format!("{proxy}{interim}{moved}{last}"));
        assert_eq!((read.status, read.before, read.has("via")), (Some(429), 3, false));
        assert_eq!(read.body, Body::Text("HTTP is a protocol".to_owned()));
    }

    #[test]
    fn fields_alone_and_bodies_alone_are_told_apart() {
        let fields = Message::read("Content-Type: text/html\nServer: nginx");
        assert_eq!((fields.status, fields.field("server").as_deref(), fields.body), (None, Some("nginx"), Body::Empty));
        for body in ["Error: too many requests", "error code: 1015", "<html>429</html>", "\"quoted\"", "7"] {
            let read = Message::read(body);
            assert_eq!((read.names().count(), read.body), (0, Body::Text(body.to_owned())));
        }
        assert_eq!(Message::read("{\"message\":\"x\"}").text_of("message"), Some("x"));
        assert!(Message::read(" \n\n").is_empty());
    }

    #[test]
    fn chunks_off_the_wire_are_put_together() {
        let head = "HTTP/1.1 429 x\r\nTransfer-Encoding: chunked\r\n\r\n";
        let read = Message::read(&format!("{head}4\r\n{{\"a\"\r\n3;x=y\r\n:1}}\r\n0\r\n\r\n"));
        assert_eq!(read.body, Body::Json(json!({ "a": 1 })));
        assert_eq!(Message::read(&format!("{head}{{\"a\":1}}")).body, Body::Json(json!({ "a": 1 })));
    }
}
