//! `step_up` of a route: which authentication it demands of its caller, and how fresh.
//!
//! Invariant: every value of `acr` can stand in a challenge as it is (RFC 9470 section 3: a list with spaces between, in a quoted
//! string).

use std::time::Duration;

/// What a route demands of an authentication.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StepUp {
    /// How long ago it may be, [`StepUp::SHORTEST_AGE`] to [`StepUp::LONGEST_AGE`].
    pub max_age: Duration,
    /// Classes of which it has to be one (`acr`, OpenID Connect Core section 2); empty: any.
    pub acr: Vec<String>,
    /// Methods of which it has to have used one (`amr`, RFC 8176); empty: any.
    pub amr: Vec<String>,
    /// Fields of the body that it has to be about, beside method, target and caller: it is then good for this one action, once.
    /// `None`: it is good for all that its session does.
    pub bind: Option<Vec<String>>,
}

impl StepUp {
    /// The shortest `max_age`: a second, which is what `auth_time` counts in.
    pub const SHORTEST_AGE: Duration = Duration::from_secs(1);
    /// The longest: a day. What may be older needs no step-up.
    pub const LONGEST_AGE: Duration = Duration::from_secs(86_400);
    /// Most values of each list.
    pub const MOST_VALUES: usize = 16;

    /// Any authentication that is at most so old.
    #[must_use]
    pub fn within(max_age: Duration) -> Self {
        Self { max_age, acr: Vec::new(), amr: Vec::new(), bind: None }
    }
}
