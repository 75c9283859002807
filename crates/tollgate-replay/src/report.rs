//! What a policy would have done, as data. The JSON shape is a contract: fields are added, never renamed or removed.
//!
//! ```json
//! {"requests": 9999, "skipped": 1, "denied": 1395, "exempt": 0, "unmatched": 0,
//!  "first": "2015-05-17T10:05:00Z", "last": "2015-05-20T21:05:59Z",
//!  "limits": {"per-ip": {"allowed": 8604, "denied": 1395, "not_charged": 0, "missing_dimension": 0, "keys": 1753,
//!    "top_denied": [{"key": "client_ip:192.0.2.1", "denied": 12, "allowed": 3, "max_wait_ms": 6000}]}},
//!  "malformed": [{"line": 8899, "column": 98, "why": "the status should be three digits", "text": "192.0.2.1 - - [20/…"}]}
//! ```
//!
//! Invariant: of every limit, allowed + denied + not charged + missing dimension are the requests on its routes.

use crate::compare::Comparison;
use crate::entry::{LineError, Waf};
use crate::format::Format;
use serde::{Serialize, Serializer};
use std::collections::BTreeMap;
use tollgate_core::Timestamp;

/// Most characters of a malformed line that are shown.
const SHOWN: usize = 160;

/// The outcome of a replay.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// Lines that are requests.
    pub requests: u64,
    /// Lines that could not be read. Blank ones are not counted.
    pub skipped: u64,
    /// Requests that would have been denied, by one limit or more.
    pub denied: u64,
    /// Requests that the policy never limits.
    pub exempt: u64,
    /// Requests on no route, and lines of connections on which no HTTP request arrived.
    pub unmatched: u64,
    /// The earliest time; in JSON as in RFC 3339, or null if there are no requests.
    #[serde(serialize_with = "rfc3339")]
    pub first: Option<Timestamp>,
    /// The latest time.
    #[serde(serialize_with = "rfc3339")]
    pub last: Option<Timestamp>,
    /// By limit, also those that no request met.
    pub limits: BTreeMap<String, LimitReport>,
    /// The first lines of each log that could not be read.
    pub malformed: Vec<MalformedLine>,
    /// The logs that have a name, in the order in which they were read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileReport>,
    /// What AWS WAF did, if a log of it was read. What it stopped is not decided by the limits: it never came so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waf: Option<WafReport>,
    /// What the other policy would have done otherwise, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compare: Option<Comparison>,
    /// Equal parts of the time, if that was asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
}

/// A log.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct FileReport {
    /// Its name.
    pub name: String,
    /// Its format; `None` if no line could be read.
    pub format: Option<Format>,
    /// Lines that are requests.
    pub requests: u64,
    /// Lines that could not be read.
    pub skipped: u64,
}

/// What AWS WAF did.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct WafReport {
    /// Requests that it let through.
    pub passed: u64,
    /// Requests that it stopped.
    pub stopped: u64,
    /// Requests by the action that ended each: `ALLOW`, `BLOCK`, `CAPTCHA`, `CHALLENGE`.
    pub actions: BTreeMap<String, u64>,
    /// By rule.
    pub rules: BTreeMap<String, WafRuleReport>,
}

/// What a rule of AWS WAF did.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct WafRuleReport {
    /// Requests that it ended, whatever its action.
    pub ended: u64,
    /// Requests that it matched and only counted.
    pub counted: u64,
}

impl WafReport {
    pub(crate) fn add(&mut self, waf: &Waf<'_>) {
        let side = if waf.stopped() { &mut self.stopped } else { &mut self.passed };
        *side += 1;
        *entry(&mut self.actions, &waf.action) += 1;
        entry(&mut self.rules, &waf.rule).ended += 1;
        waf.counted.iter().for_each(|rule| entry(&mut self.rules, rule).counted += 1);
    }
}

fn entry<'m, T: Default>(map: &'m mut BTreeMap<String, T>, name: &str) -> &'m mut T {
    if !map.contains_key(name) {
        map.insert(name.to_owned(), T::default());
    }
    map.entry(name.to_owned()).or_default()
}

/// A part of the time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Part {
    /// When it begins.
    #[serde(serialize_with = "rfc3339")]
    pub from: Option<Timestamp>,
    /// Requests on routes that would have been allowed.
    pub allowed: u64,
    /// Requests that would have been denied.
    pub denied: u64,
    /// Requests that the other policy would have denied.
    pub denied_by_other: u64,
    /// Denials, by limit.
    pub limits: BTreeMap<String, u64>,
}

/// What became of the requests on the routes of one limit.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct LimitReport {
    /// Allowed and charged.
    pub allowed: u64,
    /// Denied by this limit.
    pub denied: u64,
    /// Allowed by this limit but denied by another, so charged on none.
    pub not_charged: u64,
    /// Not decided by this limit: the log has no value for a dimension of its key, or none that a key can carry.
    pub missing_dimension: u64,
    /// The same by what has no value, an entry of the limit's key like `user ?? client_ip`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub missing: BTreeMap<String, u64>,
    /// Distinct keys.
    pub keys: u64,
    /// The keys denied most often; among equals in the order of the keys.
    pub top_denied: Vec<DeniedKey>,
}

/// A key and how often it was denied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DeniedKey {
    /// The key in its canonical form, as other commands take it: `client_ip:192.0.2.1`.
    pub key: String,
    /// Requests that the limit denied.
    pub denied: u64,
    /// Requests that were allowed.
    pub allowed: u64,
    /// The longest wait that a denial named, in milliseconds, rounded up; `None` if the cost never fits.
    pub max_wait_ms: Option<u64>,
}

/// A line that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct MalformedLine {
    /// The log's name, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Its number, counted from 1.
    pub line: u64,
    /// The byte at which the flaw shows, counted from 1.
    pub column: usize,
    /// What is wrong.
    pub why: String,
    /// The beginning of the line; what is not UTF-8 or does not print is replaced.
    pub text: String,
}

impl MalformedLine {
    pub(crate) fn new(file: Option<String>, line: u64, error: &LineError, text: &[u8]) -> Self {
        // No character is longer than 4 bytes, so the rest of a long line need not be decoded.
        let start = &text[..text.len().min(4 * (SHOWN + 1))];
        let start = String::from_utf8_lossy(start.trim_ascii_end());
        let mut shown: String = printable(&start).take(SHOWN).collect();
        if start.chars().nth(SHOWN).is_some() {
            shown.push('…');
        }
        Self { file, line, column: error.column, why: error.to_string(), text: shown }
    }
}

/// Text from a log, harmless on a terminal: control characters are replaced.
pub(crate) fn printable(text: &str) -> impl Iterator<Item = char> {
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c })
}

/// An instant as in RFC 3339, in UTC.
#[must_use]
pub fn instant(at: Timestamp) -> String {
    // Every timestamp lies before 2554 and jiff's end in 9999, so the fallback is never shown.
    jiff::Timestamp::from_nanosecond(i128::from(at.as_nanos())).map_or_else(|_| at.to_string(), |at| at.to_string())
}

fn rfc3339<S: Serializer>(at: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    at.map(instant).serialize(serializer)
}
