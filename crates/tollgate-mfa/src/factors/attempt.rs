//! The protocol of a code: the try is counted, then compared, then what was right is marked.
//!
//! ```text
//! app       count   the app is this one AND it is its turn               wrong + 1, last = now
//!           mark    the app is this one AND step < the code's            step, no wrong tries
//! set up    count   this one is being set up AND it is its turn          wrong + 1, last = now
//!           mark    this one is being set up AND there is no app         it is the app, with the code's step
//! recovery  count   there are codes AND it is their turn                 wrong + 1, last = now
//!           mark    the code's hash is there                             the hash is gone, no wrong tries
//! ```
//!
//! The same as of one-time codes, for the same reasons: whoever compares first and counts afterwards lets any number of callers at once
//! compare. Invariants: what is compared has been counted; nobody is verified unless his own second write was applied.

use super::account::{Account, CodeKind, Kind, Pending, Totp};
use super::recovery::CodeHash;
use super::totp::Secret;
use super::tries::{Tries, Turn};
use super::write::{Change, Check, Write};
use crate::audit::{Author, Entry, Event};
use std::fmt;
use std::time::Duration;
use tollgate_core::Timestamp;

/// What is said of a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verification {
    /// It was right, and is used now.
    Verified,
    /// It was wrong, or was used before.
    WrongCode {
        /// How many more can be wrong before the factor is locked.
        left: u32,
        /// How long until the next one can be tried, if that is not at once.
        retry_after: Option<Duration>,
    },
    /// Too many were wrong. Nothing was compared.
    Locked {
        /// How long until the next one can be tried; `None`: none can.
        retry_after: Option<Duration>,
    },
    /// It was right, and nothing is changed by it: there are too many changes that can be cancelled.
    TooManyChanges {
        /// How long until there is room.
        retry_after: Duration,
    },
    /// The account has no such factor. Nothing was counted.
    NotEnrolled,
}

/// What comes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// This write.
    Write(Write),
    /// Nothing: this is the answer.
    Done(Verification),
}

/// A code that somebody has typed, and what it is compared with.
#[derive(Clone, Copy)]
pub enum Attempt<'a> {
    /// Of the account's app.
    App {
        /// What it was sealed as.
        sealed: &'a str,
        /// Its secret.
        secret: &'a Secret,
        /// What was typed.
        code: &'a str,
        /// What its secret is to be sealed as from now on.
        reseal: &'a str,
    },
    /// Of an app that is being set up.
    Setup {
        /// What it was sealed as.
        pending: &'a Pending,
        /// Its secret.
        secret: &'a Secret,
        /// What was typed.
        code: &'a str,
    },
    /// A recovery code; `None` for what has never been one.
    Recovery(Option<CodeHash>),
}

impl Attempt<'_> {
    /// Of which factor it is.
    #[must_use]
    pub fn kind(&self) -> CodeKind {
        match self {
            Self::App { .. } | Self::Setup { .. } => CodeKind::Totp,
            Self::Recovery(_) => CodeKind::Recovery,
        }
    }

    /// What the log says of a right code, if it is more than one of every day.
    #[must_use]
    pub fn entry(&self, by: &Author) -> Option<Entry> {
        match self {
            Self::App { .. } => None,
            Self::Setup { .. } => Some(by.did(Event::FactorEnrolled).of(Kind::Totp)),
            Self::Recovery(_) => Some(by.did(Event::RecoveryCodeUsed).of(Kind::Recovery)),
        }
    }

    /// The first write: the try is counted.
    #[must_use]
    pub fn count(&self, now: Timestamp) -> Write {
        let mut checks = match self {
            Self::App { sealed, .. } => vec![Check::AppIs((*sealed).to_owned())],
            Self::Setup { pending, .. } => Self::being_set_up(pending, now),
            Self::Recovery(_) => vec![Check::AnyCodes],
        };
        checks.push(Check::Turn(self.kind(), now));
        Write::new(checks, Change::Count(self.kind(), now))
    }

    /// What follows once it is counted in `account`: the code is compared.
    #[must_use]
    pub fn counted(&self, account: &Account, now: Timestamp) -> Next {
        let marked = match self {
            Self::App { sealed, secret, code, reseal } => {
                let last = account.totp.as_ref().map(|app| app.step);
                secret.step(code, now, last).map(|step| {
                    let checks = [Check::AppIs((*sealed).to_owned()), Check::StepBefore(step)];
                    Write::new(checks, Change::Pass { step, sealed: (*reseal).to_owned() })
                })
            }
            Self::Setup { pending, secret, code } => secret.step(code, now, None).map(|step| {
                let mut checks = Self::being_set_up(pending, now);
                checks.push(Check::NoApp);
                Write::new(checks, Change::Confirm(Totp { sealed: pending.sealed.clone(), since: now, step }))
            }),
            Self::Recovery(code) => code
                .filter(|code| Check::HasCode(*code).holds(account))
                .map(|code| Write::new([Check::HasCode(code)], Change::Use(code))),
        };
        marked.map_or_else(|| Next::Done(wrong(account.tries(self.kind()), now)), Next::Write)
    }

    /// What is said where the first write, made at `now`, was refused for what was found; `None` if the factor is not what it was.
    #[must_use]
    pub fn uncounted(&self, account: &Account, now: Timestamp) -> Option<Verification> {
        let mut checks = self.count(now).checks;
        checks.retain(|check| !matches!(check, Check::Turn(..)));
        checks.iter().all(|check| check.holds(account)).then(|| locked(account.tries(self.kind()), now))
    }

    /// What is said where the second write was refused for what was found: somebody else was faster with that code, or has changed the
    /// factor.
    #[must_use]
    pub fn unmarked(&self, account: &Account, now: Timestamp) -> Verification {
        match self {
            Self::Setup { .. } => Verification::NotEnrolled,
            Self::App { .. } | Self::Recovery(_) => wrong(account.tries(self.kind()), now),
        }
    }

    fn being_set_up(pending: &Pending, now: Timestamp) -> Vec<Check> {
        vec![Check::PendingIs(pending.sealed.clone()), Check::PendingAt(now)]
    }
}

/// Without what was typed.
impl fmt::Debug for Attempt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Attempt({})", Kind::from(self.kind()))
    }
}

/// What is said of a wrong code, which was counted in `tries`.
#[must_use]
pub fn wrong(tries: Tries, now: Timestamp) -> Verification {
    let retry_after = match tries.turn(now) {
        Turn::After(wait) => Some(wait),
        Turn::Now | Turn::Never => None,
    };
    Verification::WrongCode { left: tries.left(), retry_after }
}

/// What is said where it is not the turn of a factor.
#[must_use]
pub fn locked(tries: Tries, now: Timestamp) -> Verification {
    match tries.turn(now) {
        Turn::Never => Verification::Locked { retry_after: None },
        Turn::After(wait) => Verification::Locked { retry_after: Some(wait) },
        // It has become its turn since.
        Turn::Now => Verification::Locked { retry_after: Some(Duration::ZERO) },
    }
}
