//! Recovery against the table: each step is one conditional write of the account's item, in one transaction with its entry in the log.
//!
//! Invariants: nothing is requested that its owner was not told of before; of any number of callers at once two admins have approved, and
//! one has completed.

use super::super::account::Account;
use super::super::cancel::{Announce, Announcement, Changing, Removal};
use super::super::changes::{Altered, CancelToken, ChangeId, Changed, Taken};
use super::super::driver::{Factors, read};
use super::super::vault::Vault;
use super::{
    Approval, Completion, NotRequested, RecoveryRequest, RequestSecret, approved, closed, completed, requested,
};
use crate::audit::{Author, Entry, Event, Logged};
use crate::error::Result;
use std::time::Duration;
use tollgate_core::Key;

/// A request, in the log.
pub(in super::super) const REQUEST: &str = "request";

fn entry(author: &Author, event: Event, id: ChangeId) -> Entry {
    author.did(event).with(REQUEST, id)
}

impl<V: Vault> Factors<V> {
    /// Requests the recovery of an account, to be completed after `wait`. One write for the link that cancels it, a logged write, and what
    /// announcing takes.
    ///
    /// # Errors
    ///
    /// The table gives no answer, or the request cannot be announced; it may be open, and nobody knows its secret.
    pub async fn request_recovery<A: Announce>(
        &self,
        by: Changing<'_, A>,
        wait: Duration,
    ) -> Result<std::result::Result<(RecoveryRequest, RequestSecret), NotRequested>> {
        let seen = self.find(by.owner).await?.account().clone();
        let (token, secret, now) = (CancelToken::random()?, RequestSecret::random()?, self.items().now());
        let request = RecoveryRequest::new(&token, &secret, now, wait);
        let write = match requested(&seen, request.clone(), now) {
            Ok(write) => write,
            Err(not) => return Ok(Err(not)),
        };
        let link = Changed { id: request.id, altered: Altered::Requested, until: request.until };
        self.keep_and_tell(
            by,
            &link,
            &Taken::default(),
            Announcement { altered: link.altered, until: link.until, token },
        )
        .await?;
        let entry = entry(by.author, Event::RecoveryRequested, request.id);
        match self.send_logged(&self.items().begin(), by.owner, &write, &entry, by.author).await? {
            Logged::Applied => Ok(Ok((request, secret))),
            Logged::Refused(found) => match read(found.as_ref())?.open_request(now) {
                Some(open) => Ok(Err(NotRequested::Open(open.clone()))),
                None => Err(self.items().begin().contended().into()),
            },
        }
    }

    /// Records that `admin` approves the request with that id. One read and a logged write.
    ///
    /// # Errors
    ///
    /// The table gives no answer; it may be recorded.
    pub async fn approve_recovery(&self, owner: &Key, id: ChangeId, admin: &Key, author: &Author) -> Result<Approval> {
        let entry = entry(author, Event::RecoveryApproved, id);
        let mut seen = self.find(owner).await?.account().clone();
        for _ in 0..Self::MOST_ROUNDS {
            let (write, next) = match approved(&seen, id, owner, admin, self.items().now()) {
                Ok(both) => both,
                Err(approval) => return Ok(approval),
            };
            match self.send_logged(&self.items().begin(), owner, &write, &entry, author).await? {
                Logged::Applied => return Ok(Approval::Approved(next)),
                Logged::Refused(found) => seen = read(found.as_ref())?,
            }
        }
        Err(self.items().begin().contended().into())
    }

    /// Ends the request with that id, as cancelled by its owner or refused by an admin, and says whether it was open: of any number of
    /// callers, one is told so. One read and a logged write.
    ///
    /// # Errors
    ///
    /// The table gives no answer; it may be over.
    pub async fn end_recovery(&self, owner: &Key, id: ChangeId, event: Event, author: &Author) -> Result<bool> {
        let entry = entry(author, event, id);
        let mut seen: Account = self.find(owner).await?.account().clone();
        for _ in 0..Self::MOST_ROUNDS {
            let Some(write) = closed(&seen, id, self.items().now()) else { return Ok(false) };
            match self.send_logged(&self.items().begin(), owner, &write, &entry, author).await? {
                Logged::Applied => return Ok(true),
                Logged::Refused(found) => seen = read(found.as_ref())?,
            }
        }
        Err(self.items().begin().contended().into())
    }

    /// Completes the request of that secret: every factor is removed by a change that can be cancelled like any other, and the request is
    /// used up. One write for the link that cancels it, a logged write, one more for each passkey, and what announcing takes.
    ///
    /// # Errors
    ///
    /// The table gives no answer, or the change cannot be announced; it may be completed.
    pub async fn complete_recovery<A: Announce>(
        &self,
        by: Changing<'_, A>,
        secret: &RequestSecret,
    ) -> Result<Completion> {
        let found = self.find(by.owner).await?;
        let write = match completed(found.account(), secret, self.items().now()) {
            Ok(write) => write,
            Err(completion) => return Ok(completion),
        };
        Ok(match self.take_away(by, Altered::Recovered, &write).await? {
            Removal::Removed => Completion::Completed,
            Removal::NotEnrolled => Completion::NoSuchRequest,
            Removal::TooMany(wait) => Completion::TooMany(wait),
        })
    }
}
