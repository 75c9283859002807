//! What is told of one answer or of a log: the same six steps each time, in the order in which a person would look.
//!
//! Invariant: there are always six steps, each with something found or something to look at; what others wrote is in it only as
//! [`printable`](super::printable::printable).

use super::quotas::Quota;
use super::terms::Terms;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Who gave an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Layer {
    /// AWS WAF.
    Waf,
    /// CloudFront by itself.
    Cloudfront,
    /// An Application Load Balancer by itself.
    LoadBalancer,
    /// API Gateway by itself: a usage plan, a stage, the account.
    Gateway,
    /// Our Lambda authorizer, through a gateway response of API Gateway.
    Authorizer,
    /// Lambda: no room for another invocation.
    Lambda,
    /// Ours in front of or within the application.
    Application,
    /// Somebody else's.
    Elsewhere,
    /// Nobody can tell.
    Unknown,
}

/// How sure that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Confidence {
    /// Others answer like this, too.
    Guess,
    /// Others could answer like this.
    Likely,
    /// Nobody else answers like this by chance.
    Certain,
}

/// What became of the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    /// It was over a limit.
    Limited,
    /// It costs more than a limit ever admits.
    NeverFits,
    /// A limiter, or what it needs, failed: nobody was limited.
    Unavailable,
    /// Too many wrong codes or passwords.
    Locked,
    /// A code was sent a moment ago.
    Cooldown,
    /// Nothing is sent to such numbers for now.
    SendingPaused,
    /// Its caller has to prove something first: an authentication, a CAPTCHA, a script that runs.
    Challenged,
    /// It was refused for what it is or where it is from, by no limit that says so.
    Blocked,
    /// It was not refused.
    Passed,
    /// Nobody can tell.
    Unknown,
}

/// A step, named in `--json` by its place in the investigation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Step {
    /// `layer`, `key`, `algorithm`, `retries`, `regions` or `action`.
    pub(super) step: &'static str,
    /// What it asks.
    pub(super) question: &'static str,
    /// What is known.
    pub(super) found: Vec<String>,
    /// What to look at or do.
    pub(super) look: Vec<String>,
}

/// The six steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(super) struct Steps([Step; 6]);

impl Steps {
    pub(super) fn new() -> Self {
        let all = [
            ("layer", "Which layer answered?"),
            ("key", "Which limit, and whose calls does it count together?"),
            ("algorithm", "By which algorithm and unit?"),
            ("retries", "Was Retry-After kept, or do retries feed themselves?"),
            ("regions", "Does anybody count apart: Regions, processes, clocks?"),
            ("action", "What to change?"),
        ];
        Self(all.map(|(step, question)| Step { step, question, found: Vec::new(), look: Vec::new() }))
    }

    fn at(&mut self, name: &str) -> Option<&mut Step> {
        self.0.iter_mut().find(|step| step.step == name)
    }

    /// Something that is known.
    pub(super) fn found(&mut self, name: &str, text: impl Into<String>) {
        if let Some(step) = self.at(name) {
            step.found.push(text.into());
        }
    }

    /// Something to look at, or to do.
    pub(super) fn look(&mut self, name: &str, text: impl Into<String>) {
        if let Some(step) = self.at(name) {
            step.look.push(text.into());
        }
    }
}

/// Whether the policy that was looked at is the one that has answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Agreement {
    /// The policy's revision.
    pub(super) revision: u64,
    /// Whether its figures are those of the answer; `None` where the answer has none to compare.
    pub(super) agrees: Option<bool>,
    /// What differs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) differs: Vec<String>,
}

/// What a log has in it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub(super) struct Counts {
    /// Objects of JSON.
    pub(super) lines: u64,
    /// Of them denials.
    pub(super) denials: u64,
    /// Denials that were not written, since there were too many in a second.
    pub(super) kept_back: u64,
    /// Of them warnings and errors of the limiter, that is calls that it failed.
    pub(super) failures: u64,
    /// Denials by limit.
    pub(super) by_limit: BTreeMap<String, u64>,
}

/// The whole answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// `response` or `log`.
    pub(super) input: &'static str,
    /// The status of an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<u16>,
    /// Who answered.
    pub(super) layer: Layer,
    /// The same in words.
    pub(super) by: String,
    /// How sure that is.
    pub(super) confidence: Confidence,
    /// What became of the call.
    pub(super) outcome: Outcome,
    /// The limit that is in the way, if it has a name.
    pub(super) limit: Option<String>,
    /// What the policy says of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) terms: Option<Terms>,
    /// Limits that it may be, where none is named.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) candidates: Vec<String>,
    /// What the answer says of quotas.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) quotas: Vec<Quota>,
    /// Seconds to wait.
    pub(super) retry_after_s: Option<u64>,
    /// Whether the same call can be admitted later; `None` where nobody can tell.
    pub(super) can_succeed: Option<bool>,
    /// How the policy compares.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) policy: Option<Agreement>,
    /// What a log has in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) counts: Option<Counts>,
    /// The six steps.
    pub(super) steps: Steps,
}

impl Report {
    /// For people.
    pub(crate) fn text(&self) -> String {
        let mut out = String::new();
        let status = self.status.map(|status| format!("{status} ")).unwrap_or_default();
        let sure = match self.confidence {
            Confidence::Certain => "",
            Confidence::Likely => ", likely",
            Confidence::Guess => ", at a guess",
        };
        let _ = writeln!(out, "{status}by {}{sure}", self.by);
        if let Some(Counts { denials, kept_back, failures, by_limit, .. }) = &self.counts {
            let _ = writeln!(out, "{denials} denials told, {kept_back} kept back, {failures} failures of the limiter");
            for (limit, denials) in by_limit {
                let _ = writeln!(out, "  {denials:>6}  {limit}");
            }
        }
        for (n, Step { question, found, look, .. }) in self.steps.0.iter().enumerate() {
            let _ = writeln!(out, "{}. {question}", n + 1);
            for line in found {
                let _ = writeln!(out, "   {line}");
            }
            for line in look {
                let _ = writeln!(out, "   -> {line}");
            }
        }
        out
    }
}
