//! The rules of AWS WAF that the policy has in front, asked about each request by the evaluator of `tollgate-waf`.
//!
//! Nothing stands in front of `tollgate dev`, so they only report, whatever their stage. Invariant: what they remember is bounded.

use super::told::Said;
use crate::explain::edge::request;
use axum::http::request::Parts;
use std::net::IpAddr;
use std::time::Duration;
use tollgate_core::Timestamp;
use tollgate_policy::Policy;
use tollgate_waf::evaluate::{Request, Traffic};
use tollgate_waf::{Catches, Rule, WebAcl, offline, render};

/// Most requests that are remembered; beyond that they begin anew.
const MOST: u32 = 100_000;

/// The rules, and what they have counted.
#[derive(Debug)]
pub(crate) struct Edge {
    rules: WebAcl,
    traffic: Traffic,
    remembered: u32,
    /// The time of the last request, since a manual clock can be set back.
    last: Duration,
}

/// What they see of a request, and when.
pub(crate) struct Seen {
    request: Request,
    at: Duration,
}

impl Seen {
    pub(crate) fn of(parts: &Parts, source: Option<IpAddr>, at: Timestamp) -> Self {
        let request = request(parts.method.as_str(), parts.uri.path(), &parts.headers, source);
        Self { request, at: Duration::from_nanos(at.as_nanos()) }
    }
}

impl Edge {
    /// `None` if the policy has none.
    pub(crate) fn of(policy: &Policy) -> Option<Self> {
        let mut rules = render::web_acl(policy)?;
        // Rules that only count let the next one look.
        rules.rules.iter_mut().for_each(Rule::count_only);
        let traffic = Traffic::new(offline(&rules));
        Some(Self { rules, traffic, remembered: 0, last: Duration::ZERO })
    }

    /// What each rule that counts the request says of it.
    pub(super) fn count(&mut self, seen: &Seen) -> Vec<Said> {
        if self.remembered >= MOST {
            self.traffic = Traffic::new(offline(&self.rules));
            self.remembered = 0;
        }
        self.remembered += 1;
        self.last = self.last.max(seen.at);
        let outcome = self.traffic.take(&seen.request, self.last);
        let counted = self.rules.rules.iter().zip(outcome.rules).filter_map(|(rule, outcome)| {
            let Catches::Over(rate) = &rule.catches else { return None };
            let (counted, rate) = (outcome.counted?, format!("{}/{}s", rate.limit, rate.window_secs));
            Some(Said::in_front(&rule.name, &counted.key, counted.in_window, counted.limit, rate))
        });
        counted.collect()
    }
}
