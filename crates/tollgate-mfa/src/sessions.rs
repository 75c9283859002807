//! Drives records, revocations and grants against the table.
//!
//! Invariants: nobody goes on without a read that was consistent and began after the request did; a factor's record has the epoch
//! that was read before the factor was looked at; of any number of callers with one grant, one goes on, once the table has said that
//! it is gone; whatever the table does not answer is an error, never an outcome.

use crate::authentication::{Authentication, Shortcoming};
use crate::error::Result;
use crate::grant::{Action, Grant, GrantId};
use crate::judge::Evidence;
use crate::record::{Revoke, Session, SessionWrite, Subject, Verified, session_digest};
use crate::storage;
use std::collections::BTreeSet;
use std::time::Duration;
use tollgate_core::{Key, Timestamp};
use tollgate_dynamodb::attributes::Attributes;
use tollgate_dynamodb::items::Call;
use tollgate_dynamodb::{Items, Updated};
use tollgate_policy::StepUp;

/// Who asks, as whoever vouches for him says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The account, like `tenant:acme,user:alice`.
    pub subject: Key,
    /// His sign-in: what no refresh of a token changes. Without one there are neither records nor anything to remember.
    pub session: Option<String>,
}

/// A verification that has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "what it proves is lost unless it is recorded or granted"]
pub struct Begun {
    caller: Caller,
    epoch: u64,
    at: Timestamp,
}

/// A grant that was judged good, and is still to be used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "it can be used again until it is used up"]
pub struct Usable {
    pk: String,
    grant: Grant,
}

/// What is remembered of how callers have proved who they are. Cheap to share behind an [`Arc`](std::sync::Arc); one a process.
#[derive(Debug)]
pub struct Sessions {
    items: Items,
}

impl Sessions {
    /// For how long a session's sign-in is remembered after it was written last: longer than refresh tokens usually last (Cognito's
    /// are good for 30 days unless somebody says otherwise).
    pub const REMEMBERED: Duration = Duration::from_secs(90 * 86_400);
    /// For how long a grant can be used, at most; a route's `max_age` may be shorter.
    pub const GRANTED: Duration = Duration::from_secs(600);
    /// Writes after which a revocation is given up, since others revoke all the time. One is what it takes alone.
    pub const MOST_WRITES: u32 = 8;

    /// Sessions among these items.
    #[must_use]
    pub fn new(items: Items) -> Self {
        Self { items }
    }

    /// The items.
    #[must_use]
    pub fn items(&self) -> &Items {
        &self.items
    }

    /// Whether `caller`, whose token says `token`, may do what asks for an authentication of its session. Two reads; a write more for
    /// the first token of a sign-in.
    ///
    /// # Errors
    ///
    /// The table gives no answer.
    pub async fn judge(
        &self,
        caller: &Caller,
        token: Option<Authentication>,
        required: &StepUp,
    ) -> Result<std::result::Result<(), Shortcoming>> {
        let call = self.items.begin();
        let (subject, session) = self.read(&call, caller).await?;
        let mut evidence = Evidence { token, subject, session };
        if let (Some(name), Some(at)) = (&caller.session, evidence.sign_in(self.items.now())) {
            // Somebody else may have remembered an earlier one meanwhile.
            evidence.session = Some(self.write_session(&call, caller, name, &SessionWrite::SignIn(at)).await?);
        }
        Ok(evidence.judge(required, self.items.now()))
    }

    /// Whether a grant lets `caller` do `action`; it still has to be [used](Self::consume). Two reads.
    ///
    /// # Errors
    ///
    /// The table gives no answer.
    pub async fn judge_grant(
        &self,
        caller: &Caller,
        action: Action,
        grant: Option<GrantId>,
        required: &StepUp,
    ) -> Result<std::result::Result<Usable, Shortcoming>> {
        let Some(id) = grant else { return Ok(Err(Shortcoming::Missing)) };
        let call = self.items.begin();
        let pk = storage::grant_key(&caller.subject, &id.stored());
        let subject = self.subject_in(&call, &caller.subject).await?.seen_by(caller.session.as_deref());
        let found = call.read(&pk).await?.map(|found| read(&found, storage::to_grant)).transpose()?;
        let of_this = |grant: &Grant| grant.action == action && grant.session == caller.session;
        let grant = found.filter(of_this);
        let now = self.items.now();
        let mut at_most = required.clone();
        at_most.max_age = required.max_age.min(Self::GRANTED);
        let judged = Evidence { subject, ..Evidence::default() }.judge_grant(grant.as_ref(), &at_most, now);
        Ok(judged.and_then(|()| grant.map(|grant| Usable { pk, grant }).ok_or(Shortcoming::Missing)))
    }

    /// Uses a grant up, and says whether it was still there: of any number of callers, one is told so.
    ///
    /// # Errors
    ///
    /// The table gives no answer; the grant may be used up.
    pub async fn consume(&self, usable: &Usable) -> Result<bool> {
        Ok(self.items.begin().delete(&usable.pk, &storage::using(&usable.grant)).await?)
    }

    /// Begins a verification: before the factor is looked at, so that what is revoked meanwhile is revoked of it, too. One read.
    ///
    /// # Errors
    ///
    /// The table gives no answer.
    pub async fn begin(&self, caller: Caller) -> Result<Begun> {
        let at = self.items.now();
        let Subject { epoch, .. } = self.subject_in(&self.items.begin(), &caller.subject).await?;
        Ok(Begun { caller, epoch, at })
    }

    /// A factor was verified: the session is as fresh as that. `false` if the caller has no session, and nothing is recorded.
    ///
    /// # Errors
    ///
    /// The table gives no answer; it may have been recorded.
    pub async fn record(&self, begun: &Begun, acr: &str, amr: &[&str]) -> Result<bool> {
        let Some(name) = &begun.caller.session else { return Ok(false) };
        let write = SessionWrite::Verify(begun.proves(acr, amr));
        // A later one that is there is as good.
        self.write_session(&self.items.begin(), &begun.caller, name, &write).await?;
        Ok(true)
    }

    /// Somebody has signed in by a code that was sent so (`sms`, `email`): in this session another one is no second factor. `false` if the
    /// caller has no session, and nothing is recorded. One write.
    ///
    /// # Errors
    ///
    /// The table gives no answer; it may have been recorded.
    pub async fn signed_in_by(&self, caller: &Caller, method: &str) -> Result<bool> {
        let Some(name) = &caller.session else { return Ok(false) };
        self.write_session(&self.items.begin(), caller, name, &SessionWrite::Code(method.to_owned())).await?;
        Ok(true)
    }

    /// By which codes the caller's session was opened; `None` if he has no session, so that nobody knows. One read.
    ///
    /// # Errors
    ///
    /// The table gives no answer.
    pub async fn codes(&self, caller: &Caller) -> Result<Option<BTreeSet<String>>> {
        let Some(name) = &caller.session else { return Ok(None) };
        let found = self.items.begin().read(&storage::session_key(&caller.subject, name)).await?;
        let session = found.map(|found| read(&found, storage::to_session)).transpose()?;
        Ok(Some(session.unwrap_or_default().codes))
    }

    /// A factor was verified for `action`: whoever has the id may do it once, as the same caller.
    ///
    /// # Errors
    ///
    /// The table gives no answer, or the system no random numbers.
    pub async fn grant(&self, begun: &Begun, action: Action, acr: &str, amr: &[&str]) -> Result<GrantId> {
        let id = GrantId::random()?;
        let grant = Grant { action, session: begun.caller.session.clone(), verified: begun.proves(acr, amr) };
        let expires_at = (begun.at + Self::GRANTED).as_secs() + 1;
        let pk = storage::grant_key(&begun.caller.subject, &id.stored());
        self.items.begin().update(&pk, &storage::grant(&grant, expires_at)).await?;
        Ok(id)
    }

    /// Revokes all that `subject` has proved so far: records, grants, and the `auth_time` of tokens; and returns what is remembered of it
    /// from now on. One write.
    ///
    /// # Errors
    ///
    /// The table gives no answer; it may have been revoked.
    pub async fn revoke(&self, subject: &Key) -> Result<Subject> {
        let (call, pk) = (self.items.begin(), storage::subject_key(subject));
        let mut found = None;
        for _ in 0..Self::MOST_WRITES {
            let write = Revoke::next(self.items.now(), found);
            match call.update(&pk, &storage::revoke(write)).await? {
                Updated::Applied(left) => return subject_of(Some(&left)),
                Updated::Refused(seen) => found = Some(subject_of(seen.as_ref())?),
            }
        }
        Err(call.contended().into())
    }

    /// The same for all sessions but the caller's own, which has just proved who he is and changes his factors. One read, one write.
    ///
    /// # Errors
    ///
    /// The table gives no answer; it may have been revoked.
    pub async fn revoke_others(&self, caller: &Caller) -> Result<Subject> {
        let Some(session) = &caller.session else { return self.revoke(&caller.subject).await };
        let (call, pk) = (self.items.begin(), storage::subject_key(&caller.subject));
        let mut seen = self.subject_in(&call, &caller.subject).await?;
        for _ in 0..Self::MOST_WRITES {
            let write = Revoke::Sparing { seen, session: session_digest(session), now: self.items.now() };
            match call.update(&pk, &storage::revoke(write)).await? {
                Updated::Applied(left) => return subject_of(Some(&left)),
                Updated::Refused(found) => seen = subject_of(found.as_ref())?,
            }
        }
        Err(call.contended().into())
    }

    /// What is remembered of `subject`. One read.
    ///
    /// # Errors
    ///
    /// The table gives no answer.
    pub async fn subject(&self, subject: &Key) -> Result<Subject> {
        self.subject_in(&self.items.begin(), subject).await
    }

    /// The session's name decides which of its items is read; the subject's is read after it, so that a revocation which was done
    /// before the request is in what is read.
    async fn read(&self, call: &Call<'_>, caller: &Caller) -> Result<(Subject, Option<Session>)> {
        let session = match &caller.session {
            Some(name) => call.read(&storage::session_key(&caller.subject, name)).await?,
            None => None,
        };
        let session = session.map(|found| read(&found, storage::to_session)).transpose()?;
        let subject = self.subject_in(call, &caller.subject).await?;
        Ok((subject.seen_by(caller.session.as_deref()), session))
    }

    async fn subject_in(&self, call: &Call<'_>, subject: &Key) -> Result<Subject> {
        subject_of(call.read(&storage::subject_key(subject)).await?.as_ref())
    }

    /// The session afterwards, or as it was found where the write did not fit it.
    async fn write_session(
        &self,
        call: &Call<'_>,
        caller: &Caller,
        name: &str,
        write: &SessionWrite,
    ) -> Result<Session> {
        let expires_at = (self.items.now() + Self::REMEMBERED).as_secs();
        let pk = storage::session_key(&caller.subject, name);
        let found = match call.update(&pk, &storage::session(write, expires_at)).await? {
            Updated::Applied(found) => Some(found),
            Updated::Refused(found) => found,
        };
        Ok(found.map(|found| read(&found, storage::to_session)).transpose()?.unwrap_or_default())
    }
}

impl Begun {
    /// Who proves something.
    #[cfg(feature = "factors")]
    pub(crate) fn subject(&self) -> &Key {
        &self.caller.subject
    }

    /// The subject's epoch when it began.
    #[cfg(feature = "factors")]
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// When it began.
    #[cfg(feature = "factors")]
    pub(crate) fn at(&self) -> Timestamp {
        self.at
    }

    /// The same as if it had begun then, which is earlier.
    #[cfg(feature = "factors")]
    pub(crate) fn dated(self, at: Timestamp) -> Self {
        Self { at: self.at.min(at), ..self }
    }

    /// The session that it began in.
    #[cfg(feature = "factors")]
    pub(crate) fn session(&self) -> Option<&str> {
        self.caller.session.as_deref()
    }

    /// Dated by when it began: what it proves is at least as old.
    fn proves(&self, acr: &str, amr: &[&str]) -> Verified {
        let amr = amr.iter().map(|method| (*method).to_owned()).collect();
        let authentication = Authentication { at: self.at, acr: Some(acr.to_owned()), amr };
        Verified { authentication, epoch: self.epoch }
    }
}

fn subject_of(found: Option<&Attributes>) -> Result<Subject> {
    Ok(storage::to_subject(found).map_err(tollgate_dynamodb::Error::from)?)
}

fn read<T>(found: &Attributes, to: fn(&Attributes) -> tollgate_core::Result<T>) -> Result<T> {
    Ok(to(found).map_err(tollgate_dynamodb::Error::from)?)
}
