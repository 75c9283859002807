//! What pages of other origins may read of an answer (Fetch Standard, "CORS protocol"). Invariant: an origin that the
//! policy does not name gets no field, and credentials never come with `*`.

use crate::legacy;
use http::{HeaderMap, HeaderValue, header};
use tollgate_policy::{Cors, Http};

/// Fields of our answers that a page cannot read unless they are named.
const EXPOSED: [&str; 4] = ["Retry-After", "RateLimit", "RateLimit-Policy", "WWW-Authenticate"];

/// An origin that the policy allows.
#[derive(Debug, Clone)]
pub(crate) struct Grant {
    /// The value of `Access-Control-Allow-Origin`.
    origin: HeaderValue,
    credentials: bool,
    exposed: Vec<&'static str>,
}

impl Grant {
    /// What the sender of `headers` is granted; `None` if that is nothing.
    pub(crate) fn of(cors: Option<&Cors>, http: &Http, headers: &HeaderMap) -> Option<Self> {
        let cors = cors?;
        let origin = headers.get(header::ORIGIN)?;
        if !cors.allows(origin.to_str().ok()?) {
            return None;
        }
        let origin = if cors.allows_any() { HeaderValue::from_static("*") } else { origin.clone() };
        let exposed = EXPOSED.into_iter().chain(legacy::all_names(http.legacy_headers())).collect();
        Some(Self { origin, credentials: cors.credentials(), exposed })
    }

    /// Adds the fields that let the page read an answer of ours.
    pub(crate) fn allow(&self, headers: &mut HeaderMap) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, self.origin.clone());
        if self.credentials {
            headers.insert(header::ACCESS_CONTROL_ALLOW_CREDENTIALS, HeaderValue::from_static("true"));
        }
        self.expose(headers);
    }

    /// Adds the names that `Access-Control-Expose-Headers` does not have yet.
    pub(crate) fn expose(&self, headers: &mut HeaderMap) {
        let lines = headers.get_all(header::ACCESS_CONTROL_EXPOSE_HEADERS).iter();
        let known: Vec<String> = lines
            .filter_map(|line| line.to_str().ok())
            .flat_map(|line| line.split(',').map(|name| name.trim().to_ascii_lowercase()))
            .collect();
        // With credentials `*` is the name of a field, not all of them.
        let all = !self.credentials && known.iter().any(|name| name == "*");
        let lacking = |name: &&&str| !all && !known.contains(&name.to_ascii_lowercase());
        let names: Vec<&str> = self.exposed.iter().filter(lacking).copied().collect();
        if let Some(value) = HeaderValue::try_from(names.join(", ")).ok().filter(|value| !value.is_empty()) {
            headers.append(header::ACCESS_CONTROL_EXPOSE_HEADERS, value);
        }
    }
}

/// Whether answers of a route differ by origin, so that caches must keep them apart.
pub(crate) fn varies(cors: Option<&Cors>) -> bool {
    cors.is_some_and(|cors| !cors.allows_any())
}
