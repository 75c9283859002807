//! `[edge]`: what AWS WAF counts by address before anything else is reached, and what it does with who is over a limit.
//!
//! Invariant: whatever is named by a rule (egress sets, bodies) is declared, names and priorities are each there once, and every
//! figure is one that WAF takes (API Reference, `RateBasedStatement`; Developer Guide, "AWS WAF quotas").

use crate::identity::{Cidr, Source, Trust};
use crate::policy::Policy;
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Where a web ACL lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EdgeScope {
    /// `regional`: REST APIs, load balancers and the like of one Region.
    Regional,
    /// `cloudfront`: distributions; such an ACL is in us-east-1.
    CloudFront,
}

/// What happens to a request that is over a limit. Count before block: a stage is a step of a rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// `count`: it passes and is counted.
    Count,
    /// `block`: it is answered with 429.
    Block,
    /// `captcha`: it passes with a solved CAPTCHA.
    Captcha,
    /// `challenge`: it passes if its browser has run a script.
    Challenge,
}

/// Networks whose callers share addresses, like an office behind NAT.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EgressSet {
    /// The name in the policy.
    pub name: String,
    /// Its blocks, in file order, each once; IPv4 and IPv6 together.
    pub blocks: Vec<Cidr>,
}

/// The header that says who is calling, where a proxy in front writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ForwardedAddress {
    /// The header's name, as it is written in the policy.
    pub header: String,
    /// Whether a request whose header has no valid address is taken for one over the limit.
    pub counts_invalid: bool,
}

/// What a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BodyKind {
    /// `json`
    Json,
    /// `text`
    Text,
    /// `html`
    Html,
}

/// What a blocked request is answered with.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EdgeBody {
    /// What it is.
    pub kind: BodyKind,
    /// The text, 1 to [`Edge::MOST_BODY_BYTES`] bytes.
    pub content: String,
}

/// Where WAF logs requests.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EdgeLogging {
    /// The ARN of a log group, bucket or delivery stream whose name begins with `aws-waf-logs-`.
    pub destination: String,
    /// Whether every request is logged, or only those that a rule has caught.
    pub keeps_all: bool,
}

/// A limit by address.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EdgeRule {
    /// Its name.
    pub name: String,
    /// Requests of one address in a window, [`Edge::LIMITS`].
    pub limit: u64,
    /// The window, one of [`Edge::WINDOWS`].
    pub window: Duration,
    /// The paths that it is about, each with all below it: in small letters, without a slash at the end. Empty: every path.
    pub paths: Vec<String>,
    /// The egress sets that it does not count.
    pub egress: Vec<String>,
    /// What happens to a request that is over the limit.
    pub stage: Stage,
    /// The body that such a request is answered with, a key of [`Edge::bodies`]; `None`: ours.
    pub body: Option<String>,
    /// How long a blocked caller is told to wait, whole seconds; the window unless the policy says otherwise.
    pub retry_after: Duration,
    /// Its place among the rules of the ACL; lower goes first.
    pub priority: u32,
}

/// Who is kept out: addresses that limits have locked too often ([`PenaltyRule::edge_after`](tollgate_core::PenaltyRule::edge_after)).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeepsOut {
    /// Most addresses at once, up to [`Edge::MOST_KEPT_OUT`].
    pub most: usize,
    /// What happens to their requests.
    pub stage: Stage,
    /// The body that they are answered with, a key of [`Edge::bodies`]; `None`: ours.
    pub body: Option<String>,
    /// How long they are told to wait, whole seconds.
    pub retry_after: Duration,
    /// The rule's place in the ACL; lower goes first.
    pub priority: u32,
}

/// `[edge]`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Edge {
    /// Where the ACL lives.
    pub scope: EdgeScope,
    /// The ACL's name.
    pub web_acl: String,
    /// How the names of our rules, IP sets and bodies begin: what begins otherwise is somebody else's.
    pub prefix: String,
    /// What requests have before the paths of rules and exemptions, as clients send them: the stage of a REST API, the base path of
    /// a custom domain. Without a slash at the end; a request may also have none of them.
    pub base_paths: Vec<String>,
    /// The egress sets, in file order.
    pub egress: Vec<EgressSet>,
    /// Who is calling; `None`: whoever opened the connection.
    pub forwarded: Option<ForwardedAddress>,
    /// Bodies by name.
    pub bodies: BTreeMap<String, EdgeBody>,
    /// Header fields of an answer to a blocked request, besides `Retry-After` and `Cache-Control`.
    pub headers: BTreeMap<String, String>,
    /// Where requests are logged.
    pub logging: Option<EdgeLogging>,
    /// How many people call from one address, where many share one; the rules' figures are checked against it.
    pub users_per_address: Option<NonZeroU64>,
    /// The rules, in file order.
    pub rules: Vec<EdgeRule>,
    /// Who is kept out; `None`: nobody.
    pub keeps_out: Option<KeepsOut>,
}

impl Edge {
    /// Requests of a rate-based rule in a window (API Reference, `RateBasedStatement`).
    pub const LIMITS: RangeInclusive<u64> = 10..=2_000_000_000;
    /// Windows of a rate-based rule in seconds (the same page, `EvaluationWindowSec`).
    pub const WINDOWS: [u64; 4] = [60, 120, 300, 600];
    /// People who share one address, at most: those behind a carrier's NAT.
    pub const MOST_USERS: u64 = 1_000_000;
    /// Rate-based rules of one ACL (Developer Guide, "AWS WAF quotas").
    pub const MOST_RULES: usize = 10;
    /// Bytes of one body (the same page).
    pub const MOST_BODY_BYTES: usize = 4096;
    /// Bodies of one ACL (the same page).
    pub const MOST_BODIES: usize = 50;
    /// Header fields of one answer (the same page).
    pub const MOST_HEADERS: usize = 10;
    /// Bytes that a string match compares with (API Reference, `ByteMatchStatement`).
    pub const MOST_PATH_BYTES: usize = 200;
    /// Characters of the name of a rule, an IP set or an ACL (API Reference, `EntityName`).
    pub const MOST_NAME: usize = 128;
    /// Blocks of one IP set (Developer Guide, "AWS WAF quotas").
    pub const MOST_BLOCKS: usize = 10_000;
    /// Addresses that are kept out at once: as many as the table lists.
    pub const MOST_KEPT_OUT: usize = 2_000;
    /// The name of the rule that keeps addresses out, and of what it needs, without the prefix.
    pub const KEPT_OUT: &str = "kept-out";
}

impl Policy {
    /// What AWS WAF does in front; `None` if the policy has no `[edge]`.
    #[must_use]
    pub fn edge(&self) -> Option<&Edge> {
        self.edge.as_deref()
    }

    /// Whether nobody of a block is ever kept out in front: a proxy is in it, or an office. Others would be kept out with whoever it is
    /// about.
    #[must_use]
    pub fn is_never_kept_out(&self, block: &Cidr) -> bool {
        let proxies = self.identity().dimensions().filter_map(|(_, dimension)| match &dimension.source {
            Source::ClientIp(rule) => match &rule.trust {
                Trust::Proxies(blocks) => Some(blocks),
                Trust::Hops(_) => None,
            },
            _ => None,
        });
        let offices = self.edge().into_iter().flat_map(|edge| edge.egress.iter().map(|set| &set.blocks));
        proxies.chain(offices).flatten().any(|other| other.overlaps(block))
    }
}
