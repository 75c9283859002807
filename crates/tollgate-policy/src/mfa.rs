//! `[mfa]`: what second factors prove, and what it takes to change them.
//!
//! Invariants: the issuer's name can stand in the label of an `otpauth` URI, where a colon would end it; a page of each origin of
//! passkeys may use what is made for their domain.

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
    /// How long what a change of factors adds proves less than `acr`, and the change can be cancelled:
    /// [`MfaRules::SHORTEST_COOLDOWN`] to [`MfaRules::LONGEST_COOLDOWN`].
    pub cooldown: Duration,
    /// The page that cancels a change, with the placeholder [`MfaRules::TOKEN`] once; without one, notices have no link.
    pub cancel_url: Option<String>,
    /// For how long an entry of the audit log is kept: [`MfaRules::SHORTEST_RETENTION`] to [`MfaRules::LONGEST_RETENTION`].
    pub audit_retention: Duration,
    /// How long after it was requested a recovery can be completed at the earliest: [`MfaRules::SHORTEST_RECOVERY_WAIT`] to
    /// [`MfaRules::LONGEST_RECOVERY_WAIT`].
    pub recovery_wait: Duration,
    /// What holds for every tenant, and what one may change.
    pub tenants: TenantRules,
    /// The rules of passkeys; without them there are none.
    pub passkeys: Option<PasskeyRules>,
}

/// The rules of passkeys (WebAuthn Level 3).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PasskeyRules {
    /// The id of the relying party: the domain that passkeys are made for. Under another one they are good for nothing.
    pub rp_id: String,
    /// The origins of pages that may use them, like `https://login.example.com`: of that domain or one below it, 1 to
    /// [`PasskeyRules::MOST_ORIGINS`].
    pub origins: Vec<String>,
    /// Whether the authenticator has to know its owner.
    pub user_verification: UserVerification,
    /// For how long a challenge can be answered: [`PasskeyRules::SHORTEST_TIMEOUT`] to [`PasskeyRules::LONGEST_TIMEOUT`].
    pub timeout: Duration,
}

/// Whether an authenticator has to know its owner, by a PIN, a finger or a face (WebAuthn section 5.8.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UserVerification {
    /// Always.
    Required,
    /// If it can; one that did when it was registered has to from then on.
    Preferred,
}

impl PasskeyRules {
    /// Origins at most.
    pub const MOST_ORIGINS: usize = 10;
    /// The shortest life of a challenge.
    pub const SHORTEST_TIMEOUT: Duration = Duration::from_secs(30);
    /// The longest life of a challenge (WebAuthn section 15.1: ten minutes are the most that is recommended).
    pub const LONGEST_TIMEOUT: Duration = Duration::from_secs(600);
}

impl MfaRules {
    /// Bytes of an issuer's name; a longer one makes a QR code that cameras read badly.
    pub const LONGEST_ISSUER: usize = 64;
    /// The shortest cooldown.
    pub const SHORTEST_COOLDOWN: Duration = Duration::from_secs(24 * 3600);
    /// The longest cooldown.
    pub const LONGEST_COOLDOWN: Duration = Duration::from_secs(72 * 3600);
    /// The shortest wait of a recovery.
    pub const SHORTEST_RECOVERY_WAIT: Duration = Duration::from_secs(24 * 3600);
    /// The longest wait of a recovery.
    pub const LONGEST_RECOVERY_WAIT: Duration = Duration::from_secs(72 * 3600);
    /// What stands in `cancel_url` for the token of a change.
    pub const TOKEN: &str = "{token}";
    /// Bytes of a `cancel_url`: a notice by SMS has to hold it.
    pub const LONGEST_CANCEL_URL: usize = 200;
    /// For how long an entry of the audit log is kept where the policy does not say: more than a year, so that a yearly review sees all.
    pub const RETENTION: Duration = Duration::from_secs(400 * 86_400);
    /// The least that it is kept.
    pub const SHORTEST_RETENTION: Duration = Duration::from_secs(30 * 86_400);
    /// The longest: ten years.
    pub const LONGEST_RETENTION: Duration = Duration::from_secs(3650 * 86_400);
    /// What somebody has signed in by where nobody says anything, nor the policy: a password.
    pub const FIRST_FACTOR: &str = "pwd";
}

impl MfaRules {
    /// The link that cancels the change with that token, if there is a page for it.
    #[must_use]
    pub fn cancel_link(&self, token: &str) -> Option<String> {
        self.cancel_url.as_ref().map(|url| url.replace(Self::TOKEN, token))
    }
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

    /// For how long an entry of the audit log is kept.
    #[must_use]
    pub fn audit_retention(&self) -> Duration {
        self.mfa.as_ref().map_or(MfaRules::RETENTION, |rules| rules.audit_retention)
    }

    /// What somebody has signed in by where neither his token nor his session says it.
    #[must_use]
    pub fn first_factor(&self) -> Vec<String> {
        self.mfa.as_ref().map_or_else(|| vec![MfaRules::FIRST_FACTOR.to_owned()], |rules| rules.first_factor.clone())
    }
}
