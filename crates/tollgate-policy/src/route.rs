//! What a request is charged, and what is never charged. Invariant: every limit that a route names exists, and no cost
//! of a route is above the burst that any plan has there.

use crate::pattern::Pattern;
use crate::step_up::StepUp;
use std::time::Duration;
use tollgate_core::{LimitName, StoreFailure};

/// A cost on one limit.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RouteCharge {
    /// Which limit.
    pub limit: LimitName,
    /// Tokens a call takes, at least 1.
    pub cost: u64,
    /// How long the true cost can be told afterwards; `None`: the cost is what it is.
    pub settle_within: Option<Duration>,
}

impl RouteCharge {
    /// A charge of `cost` tokens on a limit.
    #[must_use]
    pub fn new(limit: LimitName, cost: u64) -> Self {
        Self { limit, cost, settle_within: None }
    }
}

/// One `[[routes]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    pub(crate) pattern: Pattern,
    pub(crate) charges: Vec<RouteCharge>,
    pub(crate) on_store_failure: Option<StoreFailure>,
    pub(crate) atomic: bool,
    pub(crate) cors: bool,
    pub(crate) step_up: Option<StepUp>,
}

impl Route {
    /// Which requests.
    #[must_use]
    pub fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    /// What a request costs, in file order; never empty, each limit once.
    #[must_use]
    pub fn charges(&self) -> &[RouteCharge] {
        &self.charges
    }

    /// What the route wants when the store cannot answer; goes before what its limits want.
    #[must_use]
    pub fn on_store_failure(&self) -> Option<StoreFailure> {
        self.on_store_failure
    }

    /// Whether the route wants its decisions on several keys in one transaction.
    #[must_use]
    pub fn is_atomic(&self) -> bool {
        self.atomic
    }

    /// Which authentication it demands; `None`: it asks for none.
    #[must_use]
    pub fn step_up(&self) -> Option<&StepUp> {
        self.step_up.as_ref()
    }
}

/// One `[[exempt]]`: requests that are never counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exemption {
    pub(crate) pattern: Pattern,
    pub(crate) why: String,
}

impl Exemption {
    /// Which requests.
    #[must_use]
    pub fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    /// Why they are exempt.
    #[must_use]
    pub fn why(&self) -> &str {
        &self.why
    }
}

/// The route of a request, with the parameters of its path.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RouteMatch<'a> {
    /// The route.
    pub route: &'a Route,
    /// Names and values of the path parameters, in order, as they were sent (not decoded).
    pub params: Vec<(&'a str, &'a str)>,
}

impl<'a> RouteMatch<'a> {
    /// The value of a path parameter.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<&'a str> {
        self.params.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }
}
