//! Fields of a request's body as dimensions, and how a body is looked into before its handler gets it.
//!
//! Invariants: the handler gets every byte, error and trailer that there was; at most [`MAX_BODY_BYTES`] are held. A field
//! has a value only if every way of reading the body that makes sense gives the same one, so that a sender cannot be
//! counted as one and be served as another.

use bytes::Bytes;
use form_urlencoded::parse as parse_form;
use http::{HeaderMap, header};
use http_body::{Body, Frame, SizeHint};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use std::fmt;
use std::future::{Future, poll_fn, ready};
use std::pin::Pin;
use std::task::{Context, Poll};
use tollgate_policy::{Policy, Route, Source};

/// Most bytes of a body that are read for its fields: 64 KiB. In a larger one they have no value.
pub const MAX_BODY_BYTES: usize = 64 * 1024;

/// A request's body that can be looked into before it is passed on.
///
/// For other types than those here: [`read_ahead`], and put back what it returns.
pub trait Peek {
    /// The whole body, if it has at most `most` bytes. Whatever was read is still there for whoever reads next.
    fn peek(&mut self, most: usize) -> impl Future<Output = Option<Bytes>> + Send;
}

/// Reads a body up to `most` bytes; returns them if that was all, and the body as it was.
pub async fn read_ahead<B: Body<Data = Bytes> + Unpin>(mut body: B, most: usize) -> (Option<Bytes>, ReadAhead<B>) {
    let mut read = Vec::new();
    let mut next = None;
    // What a header announces need not be waited for.
    let mut fits = body.size_hint().lower() <= most as u64;
    while fits {
        match poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            None => break,
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) if read.len() + data.len() <= most => read.extend_from_slice(&data),
                Ok(data) => (fits, next) = (false, Some(Ok(Frame::data(data)))),
                // Trailers are the end.
                Err(trailers) => {
                    next = Some(Ok(trailers));
                    break;
                }
            },
            Some(Err(error)) => (fits, next) = (false, Some(Err(error))),
        }
    }
    let read = Bytes::from(read);
    (fits.then(|| read.clone()), ReadAhead { read, next, rest: body })
}

/// A body of which some has been read: that first, then the rest.
#[derive(Debug)]
pub struct ReadAhead<B: Body<Data = Bytes>> {
    read: Bytes,
    next: Option<Result<Frame<Bytes>, B::Error>>,
    rest: B,
}

impl<B: Body<Data = Bytes, Error: Unpin> + Unpin> Body for ReadAhead<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.get_mut();
        if !this.read.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut this.read)))));
        }
        match this.next.take() {
            Some(next) => Poll::Ready(Some(next)),
            None => Pin::new(&mut this.rest).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.read.is_empty() && self.next.is_none() && self.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let next = self.next.as_ref().and_then(|next| next.as_ref().ok()).and_then(Frame::data_ref);
        let held = (self.read.len() + next.map_or(0, Bytes::len)) as u64;
        let rest = self.rest.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower() + held);
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper + held);
        }
        hint
    }
}

fn held(bytes: &[u8], most: usize) -> impl Future<Output = Option<Bytes>> + Send + use<> {
    ready((bytes.len() <= most).then(|| Bytes::copy_from_slice(bytes)))
}

impl Peek for () {
    fn peek(&mut self, most: usize) -> impl Future<Output = Option<Bytes>> + Send {
        held(&[], most)
    }
}

impl Peek for Bytes {
    fn peek(&mut self, most: usize) -> impl Future<Output = Option<Bytes>> + Send {
        ready((self.len() <= most).then(|| self.clone()))
    }
}

impl Peek for Vec<u8> {
    fn peek(&mut self, most: usize) -> impl Future<Output = Option<Bytes>> + Send {
        held(self, most)
    }
}

impl Peek for String {
    fn peek(&mut self, most: usize) -> impl Future<Output = Option<Bytes>> + Send {
        held(self.as_bytes(), most)
    }
}

#[cfg(feature = "axum")]
impl Peek for axum_core::body::Body {
    async fn peek(&mut self, most: usize) -> Option<Bytes> {
        let (whole, body) = read_ahead(std::mem::take(self), most).await;
        *self = Self::new(body);
        whole
    }
}

#[cfg(feature = "lambda")]
impl Peek for lambda_http::Body {
    fn peek(&mut self, most: usize) -> impl Future<Output = Option<Bytes>> + Send {
        held(self, most)
    }
}

/// The body of a request, if a dimension that `route` is charged by is in it.
pub(crate) async fn wanted<B: Peek>(policy: &Policy, route: &Route, body: &mut B) -> Option<Bytes> {
    let in_body = |dimension: &str| matches!(policy.identity().source(dimension), Some(Source::Body(_)));
    let limits = route.charges().iter().filter_map(|charge| policy.limit(charge.limit.as_str()).ok());
    let mut dimensions = limits.flat_map(|limit| limit.key()).flat_map(|part| part.alternatives());
    if !(in_body("plan") || dimensions.any(in_body)) {
        return None;
    }
    body.peek(MAX_BODY_BYTES).await
}

/// The value of a top-level field; `None` if there is none, or none that is certain.
///
/// A body is read as JSON and as a form, whatever its `Content-Type` says, since handlers differ in how much they ask
/// for that. In either, a name that is given again with another value has none, also if only case tells the two apart.
pub(crate) fn field(body: &[u8], headers: &HeaderMap, name: &str) -> Option<String> {
    if is_coded(headers) {
        return None;
    }
    let text = std::str::from_utf8(body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body)).ok()?;
    let mut found = Sightings::default();
    if !in_json(text, name, &mut found) && may_be_json(text) {
        return None;
    }
    for (known, value) in parse_form(body) {
        found.add(name, &known, Some(value.into_owned()));
    }
    found.value()
}

/// Whether somebody may take for JSON what is not all of it: parsers that stop after the first document, that know comments or
/// single quotes, or that tell UTF-16 by its zeros. A form with the same bytes could say anything.
fn may_be_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '/', '#', ')']) || text.contains('\0')
}

/// Whether the bytes stand for others: compressed, or in another character set than UTF-8.
fn is_coded(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let coding = text(header::CONTENT_ENCODING).trim();
    let mut parameters =
        text(header::CONTENT_TYPE).split(';').skip(1).filter_map(|parameter| parameter.split_once('='));
    let charset = parameters.find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"));
    let charset = charset.map_or("utf-8", |(_, value)| value.trim().trim_matches('"'));
    let is_utf8 = ["utf-8", "utf8", "us-ascii"].iter().any(|known| charset.eq_ignore_ascii_case(known));
    !(coding.is_empty() || coding.eq_ignore_ascii_case("identity")) || !is_utf8
}

/// Values that a field was seen with.
#[derive(Default)]
struct Sightings {
    exact: bool,
    /// The inner `None` is a value that is no text, number or boolean.
    values: Vec<Option<String>>,
}

impl Sightings {
    fn add(&mut self, wanted: &str, name: &str, value: Option<String>) {
        // Some parsers match names without regard to case, by Unicode's folding.
        let folded = |name: &str| name.to_uppercase().to_lowercase();
        if name != wanted && folded(name) != folded(wanted) {
            return;
        }
        self.exact |= name == wanted;
        // Two are as uncertain as any number of them.
        if self.values.len() < 2 && !self.values.contains(&value) {
            self.values.push(value);
        }
    }

    fn value(self) -> Option<String> {
        match <[Option<String>; 1]>::try_from(self.values) {
            Ok([value]) if self.exact => value,
            _ => None,
        }
    }
}

/// Reads `text` as one JSON object; whether it is one.
fn in_json(text: &str, name: &str, found: &mut Sightings) -> bool {
    struct Fields<'a> {
        wanted: &'a str,
        seen: Vec<(String, Option<String>)>,
    }

    impl<'de> Visitor<'de> for &mut Fields<'_> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
            while let Some(name) = map.next_key::<String>()? {
                if name.len() > 4 * self.wanted.len() {
                    map.next_value::<IgnoredAny>()?;
                } else {
                    let value = scalar(&map.next_value::<Value>()?);
                    self.seen.push((name, value));
                }
            }
            Ok(())
        }
    }

    impl<'de> DeserializeSeed<'de> for &mut Fields<'_> {
        type Value = ();

        fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
            deserializer.deserialize_map(self)
        }
    }

    let mut fields = Fields { wanted: name, seen: Vec::new() };
    let mut json = serde_json::Deserializer::from_str(text);
    let is_json = (&mut fields).deserialize(&mut json).and_then(|()| json.end()).is_ok();
    if is_json {
        for (known, value) in fields.seen {
            found.add(name, &known, value);
        }
    }
    is_json
}

/// Text, a number or a boolean as text. Numbers that are one to JavaScript are one: `1`, `1.0`, and those beyond 53 bits
/// that round to the same.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(value) => Some(value.to_string()),
        // Adding 0 makes a zero of a negative one.
        Value::Number(number) => Some((number.as_f64()? + 0.0).to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
