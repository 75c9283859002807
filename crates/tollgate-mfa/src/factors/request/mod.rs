//! Recovery of an account whose owner has lost every factor: requested, approved by two admins, completed after a wait.
//!
//! ```text
//! nothing is open --request--> open: 0, 1, 2 approvals --complete: two of them, and the wait is over--> every factor is removed
//!                               | cancelled by the owner, refused by an admin, lapsed --> nothing is open
//! ```
//!
//! Whoever knows the password can request it, so what he gets by that is a message to the owner on every channel, with a link that ends it.
//! What completes it is a secret that only the answer to the request had: else he waits for a request of the owner to be approved, and
//! completes that himself.
//!
//! Invariants: nothing is recovered without the approvals of two admins of the account's tenant, neither of whom owns it, nor before the
//! wait is over, nor once the request was cancelled or refused or has lapsed; one request recovers once.

pub mod driver;

use super::account::Account;
use super::changes::{CancelToken, ChangeId, emptied, until};
use super::write::{Change, Check, Write};
use crate::error::Result;
use crate::grant::hashed;
use crate::tenant::tenant_of;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use tollgate_core::{Key, Timestamp};

/// Admins who have to approve.
pub const APPROVALS: usize = 2;

/// For how long after its wait a request can be completed.
pub const COMPLETED_WITHIN: Duration = Duration::from_secs(7 * 86_400);

/// What completes a request: 256 random bits, as text 43 characters of base64url. Whoever has requested it is shown it once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestSecret(CancelToken);

impl RequestSecret {
    /// A new one.
    ///
    /// # Errors
    ///
    /// [`Error::NoRandomness`](crate::Error::NoRandomness) if the system has none.
    pub fn random() -> Result<Self> {
        CancelToken::random().map(Self)
    }

    /// The secret that somebody has sent; `None` for what has never been one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        CancelToken::parse(text).map(Self)
    }

    /// As it is shown.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    fn stored(&self) -> String {
        hashed(format!("recovery {}", self.as_str()).as_bytes())
    }
}

/// An admin who has approved, as the account's item knows him; the log has his account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Approver([u8; 16]);

impl Approver {
    /// The one of that account.
    #[must_use]
    pub fn of(admin: &Key) -> Self {
        let mut id = [0; 16];
        id.copy_from_slice(&Sha256::digest(format!("approver {admin}"))[..16]);
        Self(id)
    }
}

/// A request, as the account's item has it. Times are in whole seconds.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RecoveryRequest {
    /// What it is known by; no secret.
    pub id: ChangeId,
    /// When it was made.
    pub at: Timestamp,
    /// From when on it can be completed.
    pub ready_at: Timestamp,
    /// From when on it cannot be any more.
    pub until: Timestamp,
    /// What is stored of its secret.
    secret: String,
    /// Who has approved it.
    pub approvals: Vec<Approver>,
}

impl RecoveryRequest {
    /// One that is made at `now` and waits for `wait`.
    #[must_use]
    pub fn new(token: &CancelToken, secret: &RequestSecret, now: Timestamp, wait: Duration) -> Self {
        let ready_at = until(now, wait);
        Self {
            id: token.change(),
            at: Timestamp::from_secs(now.as_secs()),
            ready_at,
            until: ready_at + COMPLETED_WITHIN,
            secret: secret.stored(),
            approvals: Vec::new(),
        }
    }
}

impl fmt::Display for RecoveryRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, at, ready_at, until, secret, approvals } = self;
        write!(f, "{id}.{}.{}.{}.{secret}", at.as_secs(), ready_at.as_secs(), until.as_secs())?;
        approvals.iter().try_for_each(|Approver(id)| write!(f, ".{}", URL_SAFE_NO_PAD.encode(id)))
    }
}

/// It is no text of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is not the text of a request for recovery")]
pub struct NoRequest;

impl FromStr for RecoveryRequest {
    type Err = NoRequest;

    fn from_str(text: &str) -> std::result::Result<Self, NoRequest> {
        let mut parts = text.split('.');
        let mut part = || parts.next().ok_or(NoRequest);
        let id = part()?.parse().map_err(|_| NoRequest)?;
        let mut instant = || part()?.parse().map(Timestamp::from_secs).map_err(|_| NoRequest);
        let (at, ready_at, until) = (instant()?, instant()?, instant()?);
        let secret = part()?.to_owned();
        if secret.len() != 43 {
            return Err(NoRequest);
        }
        let approver = |text: &str| URL_SAFE_NO_PAD.decode(text).ok().and_then(|id| id.try_into().ok()).map(Approver);
        let approvals = parts.map(|text| approver(text).ok_or(NoRequest)).collect::<std::result::Result<_, _>>()?;
        Ok(Self { id, at, ready_at, until, secret, approvals })
    }
}

/// Why there is no request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotRequested {
    /// The account has no factor: one can be enrolled by signing in.
    NothingToRecover,
    /// This one is open already.
    Open(RecoveryRequest),
}

/// What became of an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Approval {
    /// It is recorded; this is the request with it.
    Approved(RecoveryRequest),
    /// It was recorded earlier, so that there is nothing to tell the owner; this is the request.
    Already(RecoveryRequest),
    /// Two others have approved: it takes no more.
    Enough,
    /// No such request is open.
    NoSuchRequest,
    /// Whoever approves owns the account, or is of another tenant.
    NotHis,
}

/// What became of a completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Completion {
    /// Every factor is removed.
    Completed,
    /// No such request is open.
    NoSuchRequest,
    /// It waits, or lacks approvals.
    NotYet {
        /// How many there are.
        approvals: usize,
        /// When the wait is over.
        ready_at: Timestamp,
    },
    /// There are too many changes that can be cancelled; there is room again after that time.
    TooMany(Duration),
}

impl Account {
    /// The request that is open at `now`.
    #[must_use]
    pub fn open_request(&self, now: Timestamp) -> Option<&RecoveryRequest> {
        self.request.as_ref().filter(|request| request.until > now)
    }
}

/// The write that opens `request` for an account that was `seen` so.
///
/// # Errors
///
/// Why there is none.
pub fn requested(seen: &Account, request: RecoveryRequest, now: Timestamp) -> std::result::Result<Write, NotRequested> {
    match seen.open_request(now) {
        Some(open) => Err(NotRequested::Open(open.clone())),
        None if !seen.has_factor() => Err(NotRequested::NothingToRecover),
        None => Ok(replaced(seen, Some(request))),
    }
}

/// The write by which `admin` approves the request with that id of the account of `owner`, and the request with it.
///
/// # Errors
///
/// What it is without a write.
pub fn approved(
    seen: &Account,
    id: ChangeId,
    owner: &Key,
    admin: &Key,
    now: Timestamp,
) -> std::result::Result<(Write, RecoveryRequest), Approval> {
    if owner == admin || tenant_of(owner).is_none() || tenant_of(owner) != tenant_of(admin) {
        return Err(Approval::NotHis);
    }
    let open = seen.open_request(now).filter(|open| open.id == id).ok_or(Approval::NoSuchRequest)?;
    let approver = Approver::of(admin);
    if open.approvals.contains(&approver) {
        return Err(Approval::Already(open.clone()));
    }
    if open.approvals.len() >= APPROVALS {
        return Err(Approval::Enough);
    }
    let mut next = open.clone();
    next.approvals.push(approver);
    Ok((replaced(seen, Some(next.clone())), next))
}

/// The write that ends the request with that id; `None` if it is not open.
#[must_use]
pub fn closed(seen: &Account, id: ChangeId, now: Timestamp) -> Option<Write> {
    seen.open_request(now).filter(|open| open.id == id).map(|_| replaced(seen, None))
}

/// The write that completes the request of that secret: every factor is removed, and the request is used up.
///
/// # Errors
///
/// What it is without a write.
pub fn completed(seen: &Account, secret: &RequestSecret, now: Timestamp) -> std::result::Result<Write, Completion> {
    let open = seen.open_request(now).filter(|open| open.secret == secret.stored());
    let open = open.ok_or(Completion::NoSuchRequest)?;
    if open.approvals.len() < APPROVALS || now < open.ready_at {
        return Err(Completion::NotYet { approvals: open.approvals.len(), ready_at: open.ready_at });
    }
    let Write { mut checks, change, changes } = emptied();
    checks.push(Check::RequestIs(Some(open.clone())));
    Ok(Write { checks, change, changes })
}

fn replaced(seen: &Account, next: Option<RecoveryRequest>) -> Write {
    Write::new([Check::RequestIs(seen.request.clone())], Change::Request(next))
}
