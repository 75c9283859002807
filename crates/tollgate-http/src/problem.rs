//! The body of a refusal: problem details (RFC 9457) with our own members beside them. Invariant: nothing of a hidden
//! limit and nothing of the store is in it.

use serde::Serialize;

/// The media type.
pub(crate) const MEDIA_TYPE: &str = "application/problem+json";

/// The problem type of a denial (draft-ietf-httpapi-ratelimit-headers-11, "Problem Types").
pub(crate) const QUOTA_EXCEEDED: &str = "https://iana.org/assignments/http-problem-types#quota-exceeded";

/// The type of a problem that its status says all about (RFC 9457 section 4.2.1).
pub(crate) const BLANK: &str = "about:blank";

/// A refusal.
#[derive(Debug, Serialize)]
pub(crate) struct Problem<'a> {
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) title: &'static str,
    pub(crate) status: u16,
    pub(crate) detail: &'a str,
    #[serde(rename = "violated-policies", skip_serializing_if = "Vec::is_empty")]
    pub(crate) violated_policies: Vec<&'a str>,
    /// The kind of refusal, for programs: see the crate's table of answers.
    pub(crate) error: &'static str,
    /// What a person is told, the same as `detail`.
    pub(crate) message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) limit: Option<&'a str>,
    /// The dimensions that the limit counts by, names only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) scope: Vec<&'a str>,
    #[serde(rename = "retryAfter", skip_serializing_if = "Option::is_none")]
    pub(crate) retry_after: Option<u64>,
    #[serde(rename = "upgradeUrl", skip_serializing_if = "Option::is_none")]
    pub(crate) upgrade_url: Option<&'a str>,
    /// What an authentication has to be.
    #[serde(flatten)]
    pub(crate) challenge: Option<Challenge<'a>>,
}

/// What an authentication has to be, for programs that do not read `WWW-Authenticate`.
#[derive(Debug, Serialize)]
pub(crate) struct Challenge<'a> {
    /// Seconds.
    pub(crate) max_age: u64,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(crate) acr_values: &'a [String],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(crate) amr_values: &'a [String],
    /// What a grant has to be for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) action: Option<String>,
}

impl Problem<'_> {
    /// The body.
    pub(crate) fn body(&self) -> String {
        // Text and numbers only: writing them cannot fail, and an empty body would still have its status.
        serde_json::to_string(self).unwrap_or_default()
    }
}
