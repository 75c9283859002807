//! A web ACL's rules as values: what the policy comes to, before it is anybody's JSON.
//!
//! Invariant: every IP set and body that a rule names is in the same [`WebAcl`].

use std::collections::BTreeMap;
use tollgate_policy::{BodyKind, Cidr, EdgeScope, ForwardedAddress};

/// The Region of ACLs for CloudFront (API Reference, "Scope").
pub const CLOUDFRONT_REGION: &str = "us-east-1";

/// The rules of one policy, and what they need.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WebAcl {
    /// Where it lives.
    pub scope: EdgeScope,
    /// Its name. Others may have rules in it, too.
    pub name: String,
    /// How the names of rules, IP sets and bodies begin that are the policy's.
    pub prefix: String,
    /// The policy's rules, by priority.
    pub rules: Vec<Rule>,
    /// What blocked requests are answered with, by key.
    pub bodies: BTreeMap<String, Body>,
    /// The IP sets that rules name.
    pub ip_sets: Vec<IpSet>,
    /// Where requests are logged.
    pub logging: Option<Logging>,
}

/// A rule.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// Its name, with the prefix.
    pub name: String,
    /// Lower goes first.
    pub priority: u32,
    /// Which requests it catches.
    pub catches: Catches,
    /// What happens to these.
    pub action: Action,
}

/// Which requests a rule catches.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Catches {
    /// Those of an address that is over a limit.
    Over(Rate),
    /// Those of which a condition holds.
    Where(Statement),
}

/// A limit of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rate {
    /// Requests of one address in the window.
    pub limit: u64,
    /// The window in seconds.
    pub window_secs: u64,
    /// Who is calling; `None`: whoever opened the connection.
    pub forwarded: Option<ForwardedAddress>,
    /// Which requests count; `None`: all.
    pub scope_down: Option<Statement>,
}

impl Rule {
    /// The same rule, with nothing but a count of what it catches.
    pub fn count_only(&mut self) {
        self.action = Action::Count;
    }
}

/// What happens to a request that a rule has caught.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// It goes on to the other rules.
    Count,
    /// It is answered with 429.
    Block {
        /// A key of [`WebAcl::bodies`].
        body: String,
        /// Header fields of the answer.
        headers: Vec<(String, String)>,
    },
    /// It goes on if a CAPTCHA was solved.
    Captcha,
    /// It goes on if the browser has run a script.
    Challenge,
}

/// A condition.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Statement {
    /// The field, transformed, is or begins with this text.
    Bytes {
        /// Which field.
        field: Field,
        /// How they are compared.
        position: Position,
        /// The text.
        text: String,
        /// What is done to the field first, in order.
        transforms: &'static [Transform],
    },
    /// The field, transformed, has a match of this expression (PCRE).
    Regex {
        /// Which field.
        field: Field,
        /// The expression.
        expression: String,
        /// What is done to the field first, in order.
        transforms: &'static [Transform],
    },
    /// The address is in the IP set of that name.
    In {
        /// Its name.
        ip_set: String,
        /// The header that has the address; `None`: the connection's.
        header: Option<String>,
    },
    /// All hold; two at least.
    All(Vec<Statement>),
    /// One holds; two at least.
    Any(Vec<Statement>),
    /// It does not hold.
    Not(Box<Statement>),
}

impl Statement {
    /// All of these; one is itself.
    #[must_use]
    pub fn all(mut of: Vec<Self>) -> Option<Self> {
        if of.len() > 1 { Some(Self::All(of)) } else { of.pop() }
    }

    /// One of these; one is itself.
    #[must_use]
    pub fn any(mut of: Vec<Self>) -> Option<Self> {
        if of.len() > 1 { Some(Self::Any(of)) } else { of.pop() }
    }
}

/// A part of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Field {
    /// The method.
    Method,
    /// The path as it was sent, without the query.
    Path,
}

/// How a string match compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Position {
    /// The whole field.
    Exactly,
    /// Its beginning.
    StartsWith,
}

/// A text transformation (Developer Guide, "Text transformation options").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transform {
    /// `URL_DECODE`
    UrlDecode,
    /// `URL_DECODE_UNI`: that, and `%u0061`.
    UrlDecodeUni,
    /// `NORMALIZE_PATH`: one slash for several, no `.` and `..` segments.
    NormalizePath,
    /// `LOWERCASE`
    Lowercase,
}

/// Blocks of addresses of one version.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct IpSet {
    /// Its name, with the prefix.
    pub name: String,
    /// Whether these are IPv6 addresses.
    pub is_v6: bool,
    /// The blocks.
    pub blocks: Vec<Cidr>,
    /// Whether they are somebody else's to put in and take out: then the set is made without any, and left as it is.
    pub is_kept_by_others: bool,
}

/// What a blocked request is answered with.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Body {
    /// What it is.
    pub kind: BodyKind,
    /// The text.
    pub content: String,
}

/// Where requests are logged, without what is secret in them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Logging {
    /// The ARN.
    pub destination: String,
    /// Whether every request is, or those that a rule has caught.
    pub keeps_all: bool,
}
