//! What rules of AWS WAF say of a request, offline: of rules as the API has them, whoever wrote them.
//!
//! Nothing here knows how a policy is rendered, so that the two can be held against each other. What WAF does not document is not
//! guessed at: it is an [`Assumptions`], to be tried both ways. Invariant: what cannot be judged here (a country, a managed rule
//! group, a label) is [`Truth::Unknown`] and never taken for a match or for none.
//!
//! | module | what it is |
//! | --- | --- |
//! | `request` | a request as WAF sees it |
//! | `transform` | text transformations |
//! | `statement` | conditions |
//! | `address` | blocks of addresses, forwarded addresses |
//! | `traffic` | requests in time: rate-based rules and actions |

mod address;
mod request;
mod statement;
mod traffic;
mod transform;

pub use request::Request;
pub use traffic::{Caught, Counted, Decided, Outcome, RuleOutcome, Traffic};
pub use transform::Assumptions;

use regex_lite::Regex;
use serde_json::Value;
use std::collections::BTreeMap;

/// Whether something holds, as far as can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Truth {
    /// It does not.
    No,
    /// It takes something that only WAF knows.
    Unknown,
    /// It does.
    Yes,
}

impl Truth {
    fn of(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }

    fn not(self) -> Self {
        match self {
            Self::No => Self::Yes,
            Self::Unknown => Self::Unknown,
            Self::Yes => Self::No,
        }
    }
}

/// An ACL with the IP sets that its rules refer to, as the API has them.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    rules: Vec<Value>,
    default_blocks: bool,
    /// Addresses by the ARN of their set.
    ip_sets: BTreeMap<String, Vec<String>>,
    /// The expressions of all rules; those that are not understood here are not among them.
    expressions: BTreeMap<String, Regex>,
    assumptions: Assumptions,
}

impl Rules {
    /// The rules of an ACL (`WebACL` of `GetWebACL`), in the order of their priorities.
    #[must_use]
    pub fn of(acl: &Value) -> Self {
        let mut rules = acl["Rules"].as_array().cloned().unwrap_or_default();
        rules.sort_by_key(|rule| rule["Priority"].as_i64());
        let default_blocks = acl["DefaultAction"]["Block"].is_object();
        let mut expressions = BTreeMap::new();
        rules.iter().for_each(|rule| statement::collect(&rule["Statement"], &mut expressions));
        Self { rules, default_blocks, expressions, ..Self::default() }
    }

    /// With the addresses of the IP set that has this ARN.
    #[must_use]
    pub fn with_ip_set(mut self, arn: impl Into<String>, addresses: impl IntoIterator<Item = String>) -> Self {
        self.ip_sets.insert(arn.into(), addresses.into_iter().collect());
        self
    }

    /// With these answers to what WAF leaves open.
    #[must_use]
    pub fn assuming(mut self, assumptions: Assumptions) -> Self {
        self.assumptions = assumptions;
        self
    }

    /// Names of the rules, in the order in which they are asked.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().map(|rule| rule["Name"].as_str().unwrap_or_default())
    }

    /// Whether a rule looks at the request: of a rate-based rule, whether it counts it. `None` if there is no rule of that name.
    #[must_use]
    pub fn counts(&self, rule: &str, request: &Request) -> Option<Truth> {
        let rule = self.rules.iter().find(|of| of["Name"] == rule)?;
        Some(self.looks_at(rule, request))
    }

    fn looks_at(&self, rule: &Value, request: &Request) -> Truth {
        let (ip_sets, expressions) = (&self.ip_sets, &self.expressions);
        let judge = statement::Judge { request, ip_sets, expressions, assumptions: self.assumptions };
        let rate = &rule["Statement"]["RateBasedStatement"];
        if !rate.is_object() {
            return judge.judge(&rule["Statement"]);
        }
        let scope = &rate["ScopeDownStatement"];
        let scoped = if scope.is_object() { judge.judge(scope) } else { Truth::Yes };
        scoped.min(traffic::keyed(rate, request))
    }
}
