//! What is remembered of a subject and of one of its sessions, and the conditional writes on it, as data.
//!
//! A subject has an epoch, which every revocation raises; a record of a session has the epoch that its verification began in.
//! Invariants: a record of an earlier epoch is never good again; a session's sign-in never moves on; a
//! subject's revocation never moves back, whatever its clocks do. [`SessionWrite::apply`] and [`Revoke::apply`] are the
//! meaning of what [`crate::storage`] renders.

use crate::authentication::Authentication;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use tollgate_core::Timestamp;

/// What is remembered of a subject. One that nothing was ever revoked of has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Subject {
    /// How often all that it had proved was revoked.
    pub epoch: u64,
    /// When that was last; tokens know no epoch.
    pub revoked: Option<Timestamp>,
    /// The session that has made a change of factors, which revoked the others only.
    pub spared: Option<Spared>,
}

/// A session that the last revocation was not of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Spared {
    /// The SHA-256 of its name.
    pub session: [u8; 32],
    /// What it has proved since that epoch is good.
    pub epoch: u64,
    /// When it was revoked itself.
    pub revoked: Option<Timestamp>,
}

impl Subject {
    /// The same as it is for a session: of one that was spared, what was revoked before that counts.
    #[must_use]
    pub fn seen_by(&self, session: Option<&str>) -> Self {
        let name = session.map(session_digest);
        match self.spared.filter(|spared| Some(spared.session) == name) {
            Some(spared) => Self { revoked: spared.revoked, ..*self },
            None => Self { spared: None, ..*self },
        }
    }

    /// Whether what was proved in that epoch is good still, for whom it is [seen by](Self::seen_by).
    #[must_use]
    pub fn holds(&self, epoch: u64) -> bool {
        (self.spared.map_or(self.epoch, |spared| spared.epoch)..=self.epoch).contains(&epoch)
    }
}

/// What a session is known by where its name, somebody else's text, is too long.
#[must_use]
pub fn session_digest(name: &str) -> [u8; 32] {
    Sha256::digest(name.as_bytes()).into()
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
    /// The same for all sessions but one, of a subject that was seen so.
    Sparing {
        /// What it was.
        seen: Subject,
        /// The session that goes on, as [`session_digest`] tells it.
        session: [u8; 32],
        /// When.
        now: Timestamp,
    },
}

impl Revoke {
    /// The subject after the write, or `None` if its condition does not hold and nothing is written.
    #[must_use]
    pub fn apply(&self, subject: Option<Subject>) -> Option<Subject> {
        let Subject { epoch, revoked, .. } = subject.unwrap_or_default();
        let after = match self {
            Self::Sparing { seen, .. } => {
                return (seen.epoch == epoch).then(|| self.sparing()).flatten();
            }
            Self::Now(now) => revoked.is_none_or(|revoked| revoked <= *now).then_some(*now)?,
            Self::Beside(seen) => (revoked == Some(*seen)).then_some(*seen)?,
        };
        Some(Subject { epoch: epoch + 1, revoked: Some(after), spared: None })
    }

    /// What a revocation that spares a session leaves. One that was spared before keeps what it had, and no more.
    pub(crate) fn sparing(&self) -> Option<Subject> {
        let Self::Sparing { seen, session, now } = self else { return None };
        let before = seen.spared.filter(|spared| spared.session == *session);
        let spared = before.unwrap_or(Spared { session: *session, epoch: seen.epoch, revoked: seen.revoked });
        let revoked = seen.revoked.map_or(*now, |revoked| revoked.max(*now));
        Some(Subject { epoch: seen.epoch + 1, revoked: Some(revoked), spared: Some(spared) })
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
