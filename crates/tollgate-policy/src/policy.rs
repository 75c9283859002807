//! A policy that has been checked. Invariant: every name in it refers to something that it has, so nothing that is
//! looked up while serving can fail for reasons that lie in the file.

use crate::decode;
use crate::diagnostic::{Diagnostic, Diagnostics, Severity};
use crate::edge::Edge;
use crate::error::{Error, Result};
use crate::http::{Cors, Http};
use crate::identity::Identity;
use crate::limit::Limit;
use crate::mfa::MfaRules;
use crate::otp::OtpRules;
use crate::pseudonym::KeySecrets;
use crate::report::Report;
use crate::route::{Exemption, Route, RouteMatch};
use crate::suggest;
use crate::syntax::Syntax;
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::path::Path;
use tollgate_core::LimitName;

/// The plans that callers can be on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plans {
    pub(crate) names: Vec<String>,
    pub(crate) default: Option<String>,
}

impl Plans {
    /// All plans, in file order.
    pub fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.names.iter().map(String::as_str)
    }

    /// The plan of a caller who names none; `None` if the policy has no plans.
    #[must_use]
    pub fn default_plan(&self) -> Option<&str> {
        self.default.as_deref()
    }

    /// Whether a caller can be on `plan`. A policy without plans ignores what callers name, so there every plan is fine.
    #[must_use]
    pub fn accepts(&self, plan: &str) -> bool {
        self.names.is_empty() || self.names().any(|name| name == plan)
    }

    /// The plan that counts for a caller who names `plan`. A policy without plans ignores what callers name.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownPlan`] if the policy has plans and this is none of them.
    pub fn resolve<'a>(&'a self, plan: Option<&'a str>) -> Result<Option<&'a str>> {
        match plan {
            Some(plan) if !self.names.is_empty() => match self.names().find(|name| *name == plan) {
                Some(name) => Ok(Some(name)),
                None => {
                    let help = suggest::help(plan, "plan", self.names());
                    Err(Error::UnknownPlan { plan: plan.to_owned(), help })
                }
            },
            _ => Ok(self.default_plan()),
        }
    }
}

/// A policy, and what is worth a look in its file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Parsed {
    /// The policy.
    pub policy: Policy,
    /// Findings that do not keep the policy from working.
    pub warnings: Diagnostics,
}

/// A checked policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    revision: u64,
    instances: NonZeroU64,
    identity: Identity,
    plans: Plans,
    limits: Vec<Limit>,
    by_name: BTreeMap<LimitName, usize>,
    routes: Vec<Route>,
    /// Indexes of `routes`, the most specific first.
    by_specificity: Vec<usize>,
    exemptions: Vec<Exemption>,
    http: Http,
    pub(crate) otp: Option<OtpRules>,
    pub(crate) mfa: Option<MfaRules>,
    /// Apart: it is large, and nothing that serves looks at it.
    pub(crate) edge: Option<Box<Edge>>,
    pub(crate) secrets: KeySecrets,
}

impl Policy {
    /// Most processes that can be told to share the limits: 1,000,000.
    pub const MOST_INSTANCES: u64 = 1_000_000;

    pub(crate) fn new(
        revision: u64,
        identity: Identity,
        plans: Plans,
        limits: Vec<Limit>,
        routes: Vec<Route>,
        exemptions: Vec<Exemption>,
        http: Http,
    ) -> Self {
        let by_name = limits.iter().enumerate().map(|(i, limit)| (limit.name.clone(), i)).collect();
        let mut ranked: Vec<(usize, &Route)> = routes.iter().enumerate().collect();
        ranked.sort_by(|(_, a), (_, b)| b.pattern.specificity(&a.pattern));
        let by_specificity = ranked.into_iter().map(|(i, _)| i).collect();
        let (instances, secrets) = (NonZeroU64::MIN, KeySecrets::default());
        Self {
            revision,
            instances,
            identity,
            plans,
            limits,
            by_name,
            routes,
            by_specificity,
            exemptions,
            http,
            otp: None,
            mfa: None,
            edge: None,
            secrets,
        }
    }

    pub(crate) fn among(mut self, instances: NonZeroU64) -> Self {
        self.instances = instances;
        self
    }

    pub(crate) fn sending(mut self, otp: Option<OtpRules>) -> Self {
        self.otp = otp;
        self
    }

    pub(crate) fn stepping_up(mut self, mfa: Option<MfaRules>) -> Self {
        self.mfa = mfa;
        self
    }

    pub(crate) fn behind(mut self, edge: Option<Edge>) -> Self {
        self.edge = edge.map(Box::new);
        self
    }

    /// Parses and checks the text of a policy file.
    ///
    /// # Errors
    ///
    /// All findings, at least one of them an error.
    pub fn parse(text: &str) -> std::result::Result<Parsed, Diagnostics> {
        let syntax = Syntax::read(text);
        let (root, _) = toml::de::DeTable::parse_recoverable(&syntax.readable);
        let mut report = Report::new(text, &syntax);
        let policy = decode::policy(&mut report, root.get_ref());
        let clean = report.is_clean();
        let findings = report.finish();
        match policy {
            Some(policy) if clean => Ok(Parsed { policy, warnings: findings }),
            _ => Err(findings),
        }
    }

    /// Reads, parses and checks a policy file.
    ///
    /// # Errors
    ///
    /// [`Error::Read`], or [`Error::Invalid`] with all findings.
    pub fn load(path: impl AsRef<Path>) -> Result<Parsed> {
        let shown = path.as_ref().display().to_string();
        let bytes = std::fs::read(path).map_err(|source| Error::Read { path: shown.clone(), source })?;
        let parsed = match std::str::from_utf8(&bytes) {
            Ok(text) => Self::parse(text),
            Err(error) => Err(not_utf8(&bytes, error.valid_up_to())),
        };
        parsed.map_err(|diagnostics| Error::Invalid { path: shown, diagnostics })
    }

    /// The policy's revision, at least 1: on a key, newer revisions win and older ones follow.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Replaces the revision, as a deployment does that counts its own.
    #[must_use]
    pub fn with_revision(mut self, revision: u64) -> Self {
        self.revision = revision.max(1);
        self
    }

    /// How many processes share each limit while each has to decide by itself ([`StoreFailure::Local`](crate::StoreFailure)).
    #[must_use]
    pub fn instances(&self) -> NonZeroU64 {
        self.instances
    }

    /// Where the dimensions come from.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The plans.
    #[must_use]
    pub fn plans(&self) -> &Plans {
        &self.plans
    }

    /// All limits, in file order.
    #[must_use]
    pub fn limits(&self) -> &[Limit] {
        &self.limits
    }

    /// A limit by name.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownLimit`].
    pub fn limit(&self, name: &str) -> Result<&Limit> {
        self.by_name.get(name).and_then(|i| self.limits.get(*i)).ok_or_else(|| Error::UnknownLimit {
            limit: name.to_owned(),
            help: suggest::help(name, "limit", self.limits.iter().map(|limit| limit.name.as_str())),
        })
    }

    /// All routes, in file order.
    #[must_use]
    pub fn routes(&self) -> &[Route] {
        &self.routes
    }

    /// All exemptions, in file order.
    #[must_use]
    pub fn exemptions(&self) -> &[Exemption] {
        &self.exemptions
    }

    /// How answers are spoken.
    #[must_use]
    pub fn http(&self) -> &Http {
        &self.http
    }

    /// The CORS rule of a route; `None` if the policy has none or the route opts out.
    #[must_use]
    pub fn cors(&self, route: &Route) -> Option<&Cors> {
        self.http.cors().filter(|_| route.cors)
    }

    /// The most specific route of a request, unless the request is exempt. `path` may carry a query.
    #[must_use]
    pub fn route<'a>(&'a self, method: &str, path: &'a str) -> Option<RouteMatch<'a>> {
        if self.exemption(method, path).is_some() {
            return None;
        }
        self.by_specificity.iter().filter_map(|i| self.routes.get(*i)).find_map(|route| {
            let params = route.pattern.matches(method, path)?;
            Some(RouteMatch { route, params })
        })
    }

    /// The exemption of a request, if it has one. `path` may carry a query.
    #[must_use]
    pub fn exemption(&self, method: &str, path: &str) -> Option<&Exemption> {
        self.exemptions.iter().find(|exemption| exemption.pattern.matches(method, path).is_some())
    }
}

fn not_utf8(bytes: &[u8], valid_up_to: usize) -> Diagnostics {
    let before = String::from_utf8_lossy(bytes.get(..valid_up_to).unwrap_or_default());
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    let message = "the file is not UTF-8 text from here on".to_owned();
    let help = "save it as UTF-8".to_owned();
    Diagnostics::new(vec![Diagnostic { severity: Severity::Error, line, column, message, help }])
}
