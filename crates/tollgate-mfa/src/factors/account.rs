//! What is remembered of an account's factors.
//!
//! Invariant: what is under enrolment proves nothing; an app that is enrolled stays until it is removed.

use super::changes::Changed;
use super::passkey::PasskeyId;
use super::recovery::CodeHash;
use super::request::RecoveryRequest;
use super::tries::Tries;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use tollgate_core::Timestamp;

/// A kind of factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// An authenticator app.
    Totp,
    /// Passkeys.
    Passkey,
    /// Recovery codes.
    Recovery,
}

/// A kind of factor of which codes are typed: what can be guessed, so that tries of it are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum CodeKind {
    /// An authenticator app.
    Totp,
    /// Recovery codes.
    Recovery,
}

impl CodeKind {
    /// Every kind.
    pub const ALL: [Self; 2] = [Self::Totp, Self::Recovery];
}

impl From<CodeKind> for Kind {
    fn from(kind: CodeKind) -> Self {
        match kind {
            CodeKind::Totp => Self::Totp,
            CodeKind::Recovery => Self::Recovery,
        }
    }
}

/// No kind of factor has that name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there is no such kind of factor")]
pub struct NoKind;

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Totp, Self::Passkey, Self::Recovery];

    /// Its name, in requests, answers and the table.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Totp => "totp",
            Self::Passkey => "passkey",
            Self::Recovery => "recovery",
        }
    }

    /// The kind whose codes are typed, if it is one.
    #[must_use]
    pub fn of_codes(self) -> Option<CodeKind> {
        match self {
            Self::Totp => Some(CodeKind::Totp),
            Self::Recovery => Some(CodeKind::Recovery),
            Self::Passkey => None,
        }
    }

    /// How it proves something, on top of another factor (RFC 8176, and for `pop` the registry that it founds, by OpenID Connect EAP ACR
    /// Values 1.0). That list has no name for recovery codes: they are no answers to questions (`kba`), and were `otp` said of them, they
    /// would pass where an app is asked for. A passkey is a key whose possession is proved (`pop`) by somebody who is there (`user`):
    /// whether hardware keeps it (`hwk`) or software (`swk`) nobody knows whom its maker does not attest it.
    #[must_use]
    pub fn methods(self) -> &'static [&'static str] {
        match self {
            Self::Totp => &["mfa", "otp"],
            Self::Passkey => &["mfa", "pop", "user"],
            Self::Recovery => &["mfa"],
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Kind {
    type Err = NoKind;

    fn from_str(text: &str) -> Result<Self, NoKind> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or(NoKind)
    }
}

/// An app that is being set up.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pending {
    /// Its secret, sealed; no two seals are alike.
    pub sealed: String,
    /// Until when it can be confirmed.
    pub until: Timestamp,
    /// The subject's epoch when it began: a revocation ends it.
    pub epoch: u64,
    /// The session that it began in.
    pub session: Option<String>,
}

/// An app.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Totp {
    /// Its secret, sealed.
    pub sealed: String,
    /// When it was confirmed.
    pub since: Timestamp,
    /// The last step of which a code was accepted.
    pub step: u64,
}

/// Recovery codes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Recovery {
    /// When they were made.
    pub since: Timestamp,
    /// What is stored of those that are left.
    pub codes: BTreeSet<CodeHash>,
}

/// An item of the table, as data. An account without one is as one that has nothing.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Account {
    /// The app that is being set up.
    pub pending: Option<Pending>,
    /// The app.
    pub totp: Option<Totp>,
    /// Its passkeys; what is remembered of each is in an item of its own.
    pub passkeys: BTreeSet<PasskeyId>,
    /// Recovery codes, used up or not.
    pub recovery: Option<Recovery>,
    /// Changes that can be cancelled, oldest first; some of them are over, until the next one.
    pub changes: Vec<Changed>,
    /// The request for recovery that was made last, unless it is over; it may have lapsed.
    pub request: Option<RecoveryRequest>,
    /// What was tried of the app, or of the one that is being set up.
    pub totp_tries: Tries,
    /// What was tried of the recovery codes.
    pub recovery_tries: Tries,
}

impl Account {
    /// What was tried of a factor.
    #[must_use]
    pub fn tries(&self, kind: CodeKind) -> Tries {
        match kind {
            CodeKind::Totp => self.totp_tries,
            CodeKind::Recovery => self.recovery_tries,
        }
    }

    /// Whether it has anything by which it can step up: then nothing is enrolled without.
    #[must_use]
    pub fn has_factor(&self) -> bool {
        self.totp.is_some() || !self.passkeys.is_empty() || self.codes_left() > 0
    }

    /// Recovery codes that are left.
    #[must_use]
    pub fn codes_left(&self) -> usize {
        self.recovery.as_ref().map_or(0, |recovery| recovery.codes.len())
    }

    /// The tries of a factor, to be changed.
    pub(crate) fn tries_mut(&mut self, kind: CodeKind) -> &mut Tries {
        match kind {
            CodeKind::Totp => &mut self.totp_tries,
            CodeKind::Recovery => &mut self.recovery_tries,
        }
    }
}
