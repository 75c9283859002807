//! How answers are spoken: older header fields beside the standard ones, and CORS. Invariant: credentials never go
//! together with any origin, which browsers refuse (Fetch Standard, "CORS protocol and credentials").

/// A family of header fields from before the standard ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LegacyHeaders {
    /// `RateLimit-Limit`, `RateLimit-Remaining`, `RateLimit-Reset`.
    RateLimit,
    /// `X-RateLimit-Limit`, `X-RateLimit-Remaining`, `X-RateLimit-Reset`.
    XRateLimit,
}

/// Which pages may read answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cors {
    /// None stands for any.
    pub(crate) origins: Option<Vec<String>>,
    pub(crate) credentials: bool,
}

impl Cors {
    /// Whether every origin is allowed.
    #[must_use]
    pub fn allows_any(&self) -> bool {
        self.origins.is_none()
    }

    /// Whether pages of `origin`, as a browser writes it, may read answers.
    #[must_use]
    pub fn allows(&self, origin: &str) -> bool {
        self.origins.as_ref().is_none_or(|list| list.iter().any(|known| known == origin))
    }

    /// Whether requests may carry cookies and the like.
    #[must_use]
    pub fn credentials(&self) -> bool {
        self.credentials
    }
}

/// `[http]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Http {
    pub(crate) legacy_headers: Vec<LegacyHeaders>,
    pub(crate) cors: Option<Cors>,
}

impl Http {
    /// The older fields that answers carry in addition, each once.
    #[must_use]
    pub fn legacy_headers(&self) -> &[LegacyHeaders] {
        &self.legacy_headers
    }

    /// The CORS rule of all routes that do not opt out: see [`Policy::cors`](crate::Policy::cors).
    #[must_use]
    pub fn cors(&self) -> Option<&Cors> {
        self.cors.as_ref()
    }
}
