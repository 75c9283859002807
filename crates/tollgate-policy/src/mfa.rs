//! `[mfa]`: what second factors prove, and what it takes to change them.
//!
//! Invariant: the issuer's name can stand in the label of an `otpauth` URI, where a colon would end it.

use crate::error::{Error, Result};
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
}

impl MfaRules {
    /// Bytes of an issuer's name; a longer one makes a QR code that cameras read badly.
    pub const LONGEST_ISSUER: usize = 64;
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
}
