//! A request and what limits said of it, as JSON.
//!
//! Invariant: personal values are what the table has in their place; names of limits and outcomes are those of metrics and logs.

use super::{Layer, Word};
use axum::http::request::Parts;
use serde::Serialize;
use tollgate_core::time::millis_rounded_up;
use tollgate_core::{Charge, Held, Key, LimitDecision, Source, Timestamp, Unasked};
use tollgate_policy::rate_text;

/// A request, and what it came to.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Told {
    /// Counted from 1.
    pub(super) number: u64,
    /// When it came, by the store's clock.
    at_ms: u64,
    pub(super) layer: Layer,
    method: String,
    path: String,
    pub(super) status: u16,
    /// What it fell short of where it has to step up.
    #[serde(skip_serializing_if = "Option::is_none")]
    step_up: Option<&'static str>,
    pub(super) limits: Vec<Said>,
}

impl Told {
    /// A request without an answer.
    pub(crate) fn of(parts: &Parts, at: Timestamp) -> Self {
        let (method, path) = (parts.method.to_string(), parts.uri.path().to_owned());
        let limits = Vec::new();
        Self { number: 0, at_ms: at.as_millis(), layer: super::NOBODY, method, path, status: 0, step_up: None, limits }
    }

    pub(super) fn answered(self, layer: Layer, status: u16, step_up: Option<&'static str>) -> Self {
        Self { layer, status, step_up, ..self }
    }
}

/// What a limit, or a rule in front, said of a request.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Said {
    limit: String,
    key: String,
    outcome: &'static str,
    source: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remaining: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    most: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<&'static str>,
}

impl Said {
    /// A limit's part of a decision.
    pub(super) fn of(limit: &LimitDecision) -> Self {
        let figures = &limit.terms.figures;
        Self {
            cost: Some(limit.cost),
            remaining: Some(limit.remaining),
            most: Some(figures.most()),
            rate: Some(rate_text(figures)),
            retry_after_ms: limit.retry_after.map(millis_rounded_up),
            held: limit.held.map(Held::as_str),
            ..Self::bare(limit.limit.as_str(), &limit.key, limit.said(), limit.source)
        }
    }

    /// A limit that was not decided on; nothing of one that was not asked since another denied.
    pub(super) fn unasked(limit: &Unasked) -> Option<Self> {
        let said = limit.said()?;
        Some(Self {
            cost: Some(limit.charge.cost),
            ..Self::bare(limit.charge.limit.as_str(), &limit.key, said, limit.source)
        })
    }

    /// A limit of a call that is refused since no decision could be made.
    pub(super) fn closed(key: &Key) -> impl Fn(&Charge) -> Self {
        |charge| Self::bare(charge.limit.as_str(), key, Source::Closed.as_str(), Source::Closed)
    }

    /// A rule in front that has counted `in_window` requests of an address.
    pub(super) fn in_front(rule: &str, address: &str, in_window: u64, limit: u64, rate: String) -> Self {
        let outcome = if in_window > limit { "shadow_denied" } else { "allowed" };
        Self {
            limit: rule.to_owned(),
            key: format!("client_ip:{address}"),
            outcome,
            source: "waf",
            cost: Some(1),
            remaining: Some(limit.saturating_sub(in_window)),
            most: Some(limit),
            rate: Some(rate),
            retry_after_ms: None,
            held: None,
        }
    }

    fn bare(limit: &str, key: &Key, outcome: &'static str, source: Source) -> Self {
        Self {
            limit: limit.to_owned(),
            key: key.to_string(),
            outcome,
            source: source.as_str(),
            cost: None,
            remaining: None,
            most: None,
            rate: None,
            retry_after_ms: None,
            held: None,
        }
    }

    pub(super) fn word(&self, layer: Layer) -> Word {
        Word { layer, limit: self.limit.clone(), outcome: self.outcome, source: self.source }
    }
}
