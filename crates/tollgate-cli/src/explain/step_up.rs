//! What a route's `step_up` asks of a caller, and what a token that was given lacks of it.
//!
//! Invariant: the answer is the layer's own, as far as a token alone tells: what is remembered on the table, which may say more
//! (a factor's record) or less (a revocation, an earlier sign-in), is not looked at.

use serde::Serialize;
use tollgate::http::{Facts, authentication, caller};
use tollgate_core::Timestamp;
use tollgate_core::time::millis_rounded_up;
use tollgate_policy::Policy;

/// As in the policy, and what the token is worth.
#[derive(Debug, Serialize)]
pub(super) struct StepUp {
    max_age_ms: u64,
    /// Empty: any.
    acr: Vec<String>,
    /// Empty: any.
    amr: Vec<String>,
    /// The fields of the body that a grant is bound to, where nothing but a grant for the one action will do.
    #[serde(skip_serializing_if = "Option::is_none")]
    bind: Option<Vec<String>>,
    /// `sufficient`, or what it falls short of: `missing`, `from_future`, `too_old`, `insufficient`; where it can be enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<&'static str>,
}

impl StepUp {
    pub(super) fn of(required: &tollgate_policy::StepUp, policy: &Policy, facts: &Facts, now: Timestamp) -> Self {
        // Whose it is that nobody vouches for is nobody's; who cannot be told for want of secrets is somebody.
        let is_anybodys = !matches!(caller(policy, facts), Ok(None));
        let token = authentication(facts).filter(|_| is_anybodys);
        let token = match token.map(|token| token.meets(required, now)) {
            Some(Ok(())) => "sufficient",
            Some(Err(shortcoming)) => shortcoming.as_str(),
            None => tollgate::mfa::Shortcoming::Missing.as_str(),
        };
        Self {
            max_age_ms: millis_rounded_up(required.max_age),
            acr: required.acr.clone(),
            amr: required.amr.clone(),
            bind: required.bind.clone(),
            token: required.bind.is_none().then_some(token),
        }
    }

    pub(super) fn text(&self) -> String {
        let Self { max_age_ms, acr, amr, bind, token } = self;
        let one_of = |name: &str, values: &[String]| match values {
            [] => String::new(),
            values => format!(", {name} {}", values.join(" or ")),
        };
        let (acr, amr) = (one_of("acr", acr), one_of("amr", amr));
        let by = match (bind.as_deref(), token) {
            (Some([]), _) => "by a grant for this action alone, once".to_owned(),
            (Some(fields), _) => format!("by a grant for this action with its {}, once", fields.join(", ")),
            (None, Some("sufficient")) => "which the token is enough for".to_owned(),
            (None, Some("missing")) => "and no token says when its caller has".to_owned(),
            (None, Some("from_future")) => "and the token says that its caller will".to_owned(),
            (None, Some("too_old")) => "and the token is from before that".to_owned(),
            (None, _) => "and the token is of another class or method".to_owned(),
        };
        format!("step-up: the caller must have proved within {max_age_ms} ms who he is{acr}{amr}, {by}")
    }
}
