//! What is said in the log: what has happened, by whom, to which factor.
//!
//! Invariant: nothing of it is a secret or a personal value; a session is told by a hash of its name, an account by the id that `[mfa]`
//! demands, which says nothing.

use std::fmt;
use std::time::Duration;
use tollgate_core::{Key, Timestamp};
use tollgate_policy::FactorKind;

/// What has happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Event {
    /// A factor is the account's.
    FactorEnrolled,
    /// It is not any more; of passkeys without an id all are not.
    FactorRemoved,
    /// New recovery codes took the place of all old ones.
    CodesGenerated,
    /// A recovery code was right, and is used up.
    RecoveryCodeUsed,
    /// So many codes in a row were wrong that the next one has to wait, or wait longer, or is never compared.
    FactorLocked,
    /// A passkey's counter went back: somebody may have a copy of it.
    PasskeyCloned,
    /// A tenant's rules were put.
    TenantPolicyChanged,
    /// All that the account had proved was revoked.
    SessionsRevoked,
    /// A change of factors was cancelled by its link.
    ChangeCancelled,
    /// Somebody asked for all factors to be removed, since their owner has lost them.
    RecoveryRequested,
    /// An admin approved that.
    RecoveryApproved,
    /// An admin refused it.
    RecoveryRefused,
    /// The owner cancelled it.
    RecoveryCancelled,
    /// All factors were removed, since their owner has lost them.
    AccountRecovered,
}

impl Event {
    /// Its name, in the table and in answers. It never changes.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FactorEnrolled => "factor_enrolled",
            Self::FactorRemoved => "factor_removed",
            Self::CodesGenerated => "codes_generated",
            Self::RecoveryCodeUsed => "recovery_code_used",
            Self::FactorLocked => "factor_locked",
            Self::PasskeyCloned => "passkey_cloned",
            Self::TenantPolicyChanged => "tenant_policy_changed",
            Self::SessionsRevoked => "sessions_revoked",
            Self::ChangeCancelled => "change_cancelled",
            Self::RecoveryRequested => "recovery_requested",
            Self::RecoveryApproved => "recovery_approved",
            Self::RecoveryRefused => "recovery_refused",
            Self::RecoveryCancelled => "recovery_cancelled",
            Self::AccountRecovered => "account_recovered",
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Who has done it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Actor {
    /// The account's user himself.
    User,
    /// An admin of the tenant, by his account.
    Admin(Key),
    /// Somebody with a command of the operator's; AWS CloudTrail knows who.
    Operator,
    /// Nobody: time, or a rule.
    System,
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User => f.write_str("user"),
            Self::Admin(admin) => write!(f, "admin {admin}"),
            Self::Operator => f.write_str("operator"),
            Self::System => f.write_str("system"),
        }
    }
}

/// Whoever changes something, and for how long it is remembered that he did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    /// Who.
    pub actor: Actor,
    /// His session, by its name (`origin_jti`); the log has a hash of it.
    pub session: Option<String>,
    /// For how long the entry is kept: [`Policy::audit_retention`](tollgate_policy::Policy::audit_retention).
    pub retention: Duration,
}

impl Author {
    /// Says that he has done something.
    #[must_use]
    pub fn did(&self, event: Event) -> Entry {
        Entry { event, actor: self.actor.clone(), factor: None, session: self.session.clone(), details: Vec::new() }
    }
}

/// What is appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What has happened.
    pub event: Event,
    /// By whom.
    pub actor: Actor,
    /// To which kind of factor.
    pub factor: Option<FactorKind>,
    /// In which session, by its name; the log has a hash of it.
    pub session: Option<String>,
    /// What else is to be known, by names in lower case with `_`.
    pub details: Vec<(&'static str, String)>,
}

impl Entry {
    /// To a factor of that kind.
    #[must_use]
    pub fn of(self, factor: impl Into<FactorKind>) -> Self {
        Self { factor: Some(factor.into()), ..self }
    }

    /// With something else that is to be known. Nothing secret or personal.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl ToString) -> Self {
        self.details.push((name, value.to_string()));
        self
    }
}

/// What was appended, as it is read. Texts, since a later version may have written it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recorded {
    /// Its number in the chain, from 1.
    pub seq: u64,
    /// When, in whole milliseconds, by the clock of the table.
    pub at: Timestamp,
    /// [`Event::as_str`].
    pub event: String,
    /// As an [`Actor`] is shown.
    pub actor: String,
    /// [`FactorKind::as_str`].
    pub factor: Option<String>,
    /// The SHA-256 of the session's name, in base64url.
    pub session: Option<String>,
    /// What else is known, by name.
    pub details: Vec<(String, String)>,
}
