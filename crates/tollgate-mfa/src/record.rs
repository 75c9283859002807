//! What is remembered of a subject and of one of its sessions, and the conditional writes on it, as data.
//!
//! A subject has an epoch, which every revocation raises; a record of a session has the epoch that its verification began in.
//! Invariants: a record of an earlier epoch is never good again; a session's sign-in never moves on; a
//! subject's revocation never moves back, whatever its clocks do. [`SessionWrite::apply`] and [`Revoke::apply`] are the
//! meaning of what [`crate::storage`] renders.

use crate::authentication::Authentication;
use std::collections::BTreeSet;
use tollgate_core::Timestamp;

/// What is remembered of a subject. One that nothing was ever revoked of has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Subject {
    /// How often all that it had proved was revoked.
    pub epoch: u64,
    /// When that was last; tokens know no epoch.
    pub revoked: Option<Timestamp>,
}

/// An authentication that a factor has verified here.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Verified {
    /// What it proves.
    pub authentication: Authentication,
    /// The subject's epoch when its verification began.
    pub epoch: u64,
}

/// What is remembered of a session.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Session {
    /// The earliest `auth_time` that a token of it had. A later one in a token of the same sign-in was refreshed, and nobody has proved
    /// anything by that.
    pub signed_in: Option<Timestamp>,
    /// What a factor has verified last.
    pub verified: Option<Verified>,
    /// How the codes were sent that somebody has signed in by, as methods (`sms`, `email`).
    pub codes: BTreeSet<String>,
}

/// A conditional write of a session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SessionWrite {
    /// When its sign-in was, unless it is known to be as early.
    SignIn(Timestamp),
    /// What a factor has verified, unless a later one is there.
    Verify(Verified),
    /// Somebody has signed in by a code that was sent so, unless that is known.
    Code(String),
}

impl SessionWrite {
    /// The session after the write, or `None` if its condition does not hold and nothing is written.
    #[must_use]
    pub fn apply(&self, session: Option<&Session>) -> Option<Session> {
        let session = session.cloned().unwrap_or_default();
        match self {
            Self::SignIn(at) => {
                let is_earlier = session.signed_in.is_none_or(|known| *at < known);
                is_earlier.then_some(Session { signed_in: Some(*at), ..session })
            }
            Self::Verify(verified) => {
                let at = verified.authentication.at;
                let is_latest = session.verified.as_ref().is_none_or(|known| known.authentication.at <= at);
                is_latest.then(|| Session { verified: Some(verified.clone()), ..session })
            }
            Self::Code(method) => {
                let mut session = session;
                session.codes.insert(method.clone()).then_some(session)
            }
        }
    }
}

/// A conditional write of a subject: all that it has proved up to now is revoked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Revoke {
    /// `epoch + 1`, `revoked = now`, if none is there or it is not later.
    Now(Timestamp),
    /// `epoch + 1` where it was revoked at that later instant, by whoever's clock was ahead.
    Beside(Timestamp),
}

impl Revoke {
    /// The subject after the write, or `None` if its condition does not hold and nothing is written.
    #[must_use]
    pub fn apply(&self, subject: Option<Subject>) -> Option<Subject> {
        let Subject { epoch, revoked } = subject.unwrap_or_default();
        let after = match self {
            Self::Now(now) => revoked.is_none_or(|revoked| revoked <= *now).then_some(*now)?,
            Self::Beside(seen) => (revoked == Some(*seen)).then_some(*seen)?,
        };
        Some(Subject { epoch: epoch + 1, revoked: Some(after) })
    }

    /// The write after one that found `subject` and did not fit it.
    #[must_use]
    pub fn next(now: Timestamp, subject: Option<Subject>) -> Self {
        match subject.and_then(|subject| subject.revoked) {
            Some(later) if later > now => Self::Beside(later),
            _ => Self::Now(now),
        }
    }
}
