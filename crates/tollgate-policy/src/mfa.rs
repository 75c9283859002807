//! `[mfa]`: what second factors prove, and what it takes to change them.
//!
//! Invariant: the issuer's name can stand in the label of an `otpauth` URI, where a colon would end it.

use crate::error::{Error, Result};
use crate::factors::TenantRules;
use crate::policy::Policy;
use std::time::Duration;

/// The rules of second factors.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MfaRules {
    /// Who issues them, as an authenticator app shows it: up to [`MfaRules::LONGEST_ISSUER`] bytes, without a colon.
    pub issuer: String,
    /// The class of authentication (`acr`) that a right code is, on top of the first factor.
    pub acr: String,
    /// How long ago whoever enrols a factor may have proved who he is: for the first by signing in, for a further one by an
    /// authentication of that class. [`StepUp::SHORTEST_AGE`](crate::StepUp::SHORTEST_AGE) to
    /// [`StepUp::LONGEST_AGE`](crate::StepUp::LONGEST_AGE).
    pub max_age: Duration,
    /// The class of what proves enough to enrol and remove factors, and no more: that of a factor that is weaker than what is
    /// required, or of an account that lacks something. Another one than `acr`.
    pub enrol_acr: String,
    /// What somebody has signed in by (`amr`, RFC 8176) where neither his token nor his session says it.
    pub first_factor: Vec<String>,
    /// What holds for every tenant, and what one may change.
    pub tenants: TenantRules,
}

impl MfaRules {
    /// Bytes of an issuer's name; a longer one makes a QR code that cameras read badly.
    pub const LONGEST_ISSUER: usize = 64;
    /// What somebody has signed in by where nobody says anything, nor the policy: a password.
    pub const FIRST_FACTOR: &str = "pwd";
}

impl Policy {
    /// The rules of second factors.
    ///
    /// # Errors
    ///
    /// [`Error::NoMfa`] if the policy has no `[mfa]`.
    pub fn mfa(&self) -> Result<&MfaRules> {
        self.mfa.as_ref().ok_or(Error::NoMfa)
    }

    /// What somebody has signed in by where neither his token nor his session says it.
    #[must_use]
    pub fn first_factor(&self) -> Vec<String> {
        self.mfa.as_ref().map_or_else(|| vec![MfaRules::FIRST_FACTOR.to_owned()], |rules| rules.first_factor.clone())
    }
}
