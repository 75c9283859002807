//! How a request's body is looked into before its handler gets it: for its fields (`field`), as far as its headers let
//! these be read (`media`).
//!
//! Invariant: the handler gets every byte, error and trailer that there was; at most [`MAX_BODY_BYTES`] are held.

mod field;
mod media;

pub(crate) use field::field;

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
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

/// The value of a top-level field of a whole body, by the reading that dimensions have: `None` if there is none, none that is
/// certain, or if the body is larger than [`MAX_BODY_BYTES`]. For handlers that must not try, or serve, another than the one
/// who was counted.
///
/// ```
/// use http::HeaderMap;
/// use tollgate_http::body_field;
///
/// let none = HeaderMap::new();
/// assert_eq!(body_field(br#"{"username":"a"}"#, &none, "username").as_deref(), Some("a"));
/// assert_eq!(body_field(br#"{"username":"a","username":"b"}"#, &none, "username"), None);
/// ```
#[must_use]
pub fn body_field(body: &[u8], headers: &HeaderMap, name: &str) -> Option<String> {
    if body.len() > MAX_BODY_BYTES { None } else { field(body, headers, name) }
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

/// The body of a request, if a dimension that `route` is charged by is in it, or what a grant of it is bound to.
pub(crate) async fn wanted<B: Peek>(policy: &Policy, route: &Route, body: &mut B) -> Option<Bytes> {
    let in_body = |dimension: &str| matches!(policy.identity().origin(dimension), Some(Source::Body(_)));
    let limits = route.charges().iter().filter_map(|charge| policy.limit(charge.limit.as_str()).ok());
    let mut dimensions = limits.flat_map(|limit| limit.key()).flat_map(|part| part.alternatives());
    let binds = route.step_up().and_then(|required| required.bind.as_ref()).is_some_and(|fields| !fields.is_empty());
    if !(binds || in_body("plan") || dimensions.any(in_body)) {
        return None;
    }
    body.peek(MAX_BODY_BYTES).await
}
