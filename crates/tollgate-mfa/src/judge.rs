//! Whether a caller may go on: by its token, by what a factor has verified in its session, or by a grant for this one action.
//!
//! Invariant: nobody goes on without an authentication that is fresh, sufficient and not revoked, of this subject and session; of
//! what a token says only its `auth_time` tells when that was, never when the token was made; of a session the earliest counts; what a
//! session was opened by is no second factor in it.

use crate::authentication::{Authentication, LEEWAY, Shortcoming};
use crate::distinct::{distinct, first_factor};
use crate::grant::Grant;
use crate::record::{Session, Subject, Verified};
use tollgate_core::Timestamp;
use tollgate_policy::StepUp;

/// What is known of a caller: by its token, and by the table at this moment.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    /// What the token says, if anybody vouches for one and it tells when.
    pub token: Option<Authentication>,
    /// The subject.
    pub subject: Subject,
    /// The session, if the token names one.
    pub session: Option<Session>,
}

impl Evidence {
    /// Whether the caller may do what asks for an authentication of its session.
    ///
    /// # Errors
    ///
    /// What the best of its authentications falls short of.
    pub fn judge(&self, required: &StepUp, now: Timestamp) -> Result<(), Shortcoming> {
        let record = self.record(required, now);
        record.or_else(|of_record| self.token(required, now).map_err(|of_token| of_token.max(of_record)))
    }

    fn record(&self, required: &StepUp, now: Timestamp) -> Result<(), Shortcoming> {
        let verified = self.session.as_ref().and_then(|session| session.verified.as_ref());
        let verified = self.unrevoked(verified.ok_or(Shortcoming::Missing)?)?;
        verified.meets(required, now)?;
        if self.is_second(&verified.amr) { Ok(()) } else { Err(Shortcoming::Insufficient) }
    }

    /// Whether what a factor has verified is not the code that its session was opened by, whichever came first.
    fn is_second(&self, amr: &[String]) -> bool {
        let codes = self.session.iter().flat_map(|session| &session.codes);
        let said = self.token.iter().flat_map(|token| &token.amr);
        let is_opened_by_code = codes.clone().next().is_some();
        !is_opened_by_code || distinct(&first_factor(said.map(String::as_str), codes.map(String::as_str), &[]), amr)
    }

    fn unrevoked<'v>(&self, verified: &'v Verified) -> Result<&'v Authentication, Shortcoming> {
        if self.subject.holds(verified.epoch) { Ok(&verified.authentication) } else { Err(Shortcoming::Revoked) }
    }

    fn token(&self, required: &StepUp, now: Timestamp) -> Result<(), Shortcoming> {
        let token = self.token.as_ref().ok_or(Shortcoming::Missing)?;
        // Whatever its session is known by.
        if token.at > now + LEEWAY {
            return Err(Shortcoming::FromFuture);
        }
        let at = self.signed_in().map_or(token.at, |signed_in| signed_in.min(token.at));
        // Whoever wrote the token may have been ahead of the clock that the revocation was dated by.
        if self.subject.revoked.is_some_and(|revoked| at <= revoked + LEEWAY) {
            return Err(Shortcoming::Revoked);
        }
        Authentication { at, ..token.clone() }.meets(required, now)
    }

    /// When the sign-in was, if the token tells of an earlier one than is remembered of its session. It has to be remembered whether
    /// the caller may go on or not: one who is refused comes again with a token that was made anew.
    #[must_use]
    pub fn sign_in(&self, now: Timestamp) -> Option<Timestamp> {
        let told = self.token.as_ref().map(|token| token.at).filter(|at| *at <= now + LEEWAY)?;
        self.signed_in().is_none_or(|known| told < known).then_some(told)
    }

    fn signed_in(&self) -> Option<Timestamp> {
        self.session.as_ref()?.signed_in
    }

    /// Whether `grant`, which was given for this subject, session and action, lets it be done once.
    ///
    /// # Errors
    ///
    /// What it falls short of.
    pub fn judge_grant(&self, grant: Option<&Grant>, required: &StepUp, now: Timestamp) -> Result<(), Shortcoming> {
        let verified = &grant.ok_or(Shortcoming::Missing)?.verified;
        self.unrevoked(verified)?.meets(required, now)
    }
}
