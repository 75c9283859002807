//! Drives sending and verifying against the table.
//!
//! Invariants: a code is handed out for sending only if the table is known to have it; nobody is verified without the answer to the
//! write that says so; whatever the table does not answer is an error, never an outcome.

use crate::challenge::{ChallengeId, Digest, Recipient};
use crate::code::Code;
use crate::delivery::Receipt;
use crate::error::{Error, Result};
use crate::issue::{self, Denied, Issue};
use crate::item::Item;
use crate::storage;
use crate::verify::{self, Attempt, Verification};
use crate::write::Write;
use std::time::Duration;
use tollgate_core::Timestamp;
use tollgate_dynamodb::items::Call;
use tollgate_dynamodb::{Items, Updated};
use tollgate_policy::{KeySecrets, Policy};

/// A code that is to be sent to its recipient, now and once.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Issued {
    /// What the client names when it has the code typed. It is no secret.
    pub challenge: ChallengeId,
    /// The code, for the message alone.
    pub code: Code,
    /// When it was made.
    pub made_at: Timestamp,
    /// For how long it is good.
    pub expires_in: Duration,
    /// How long until another one can be sent.
    pub resend_after: Duration,
}

/// What is said of the wish to be sent a code.
#[derive(Debug)]
pub enum Issuance {
    /// It is to be sent. Codes that were sent before are good no longer.
    Issued(Issued),
    /// None is sent.
    Denied(Denied),
}

/// What is said of a code that somebody has typed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checked {
    /// The answer.
    pub verification: Verification,
    /// When it was made, if it was right.
    pub made_at: Option<Timestamp>,
    /// What the provider of the message calls it, if it wants to be told that its code was right.
    pub receipt: Option<Receipt>,
}

impl From<Verification> for Checked {
    fn from(verification: Verification) -> Self {
        Self { verification, made_at: None, receipt: None }
    }
}

/// What became of a write whose answer arrived.
pub(crate) enum Met {
    Applied(Item),
    Refused(Option<Item>),
}

/// One-time codes of a table. Cheap to share behind an [`Arc`](std::sync::Arc); one a process.
#[derive(Debug)]
pub struct Otp {
    items: Items,
}

impl Otp {
    /// Writes after which the sending of a code is given up, since others send codes to the same account all the time. Two are what it
    /// takes alone.
    pub const MOST_WRITES: u32 = 4;

    /// One-time codes among these items.
    #[must_use]
    pub fn new(items: Items) -> Self {
        Self { items }
    }

    /// The items.
    #[must_use]
    pub fn items(&self) -> &Items {
        &self.items
    }

    /// Makes a new code for `recipient`, the only one that is good from now on, unless it is too soon for one. One write for
    /// whoever has not been sent one of late, and for a denial; else two.
    ///
    /// # Errors
    ///
    /// See [`Error`]. If the table gave no answer nothing is to be sent: it may have the code, and then its cooldown holds.
    pub async fn issue(&self, policy: &Policy, recipient: &Recipient) -> Result<Issuance> {
        let (rules, _) = policy.otp_for(recipient.purpose().as_str())?;
        let (challenge, code) = (ChallengeId::random()?, Code::random(rules.digits)?);
        let digest = digest(policy.secrets(), recipient, challenge, &code)?;
        let issue = Issue::new(rules, challenge, digest);
        let (call, pk) = (self.items.begin(), storage::partition_key(recipient));
        let mut now = self.items.now();
        let mut write = issue.first(now);
        for _ in 0..Self::MOST_WRITES {
            match send(&call, &pk, &write).await? {
                Met::Applied(item) => {
                    let (expires_in, resend_after) = (rules.ttl, item.cooldown_rest(now));
                    return Ok(Issuance::Issued(Issued { challenge, code, made_at: now, expires_in, resend_after }));
                }
                Met::Refused(found) => {
                    now = self.items.now();
                    match issue.refused(found.as_ref(), now) {
                        issue::Next::Write(next) => write = next,
                        issue::Next::Denied(denied) => return Ok(Issuance::Denied(denied)),
                    }
                }
            }
        }
        Err(call.contended().into())
    }

    /// Verifies the code that `recipient` has typed for `challenge`, both as the client sends them. One write, and a second one for
    /// the right code.
    ///
    /// # Errors
    ///
    /// See [`Error`]: [`Error::Malformed`] for what is no code; if the table gave no answer the attempt may have been counted, and the
    /// code used.
    pub async fn verify(&self, policy: &Policy, recipient: &Recipient, challenge: &str, code: &str) -> Result<Checked> {
        let (rules, _) = policy.otp_for(recipient.purpose().as_str())?;
        let code = Code::parse(code, rules.digits)?;
        // What is no challenge was never sent.
        let Ok(challenge) = challenge.parse() else { return Ok(Verification::NoActive.into()) };
        let attempt = Attempt::new(rules, policy.secrets(), recipient, challenge, &code);
        let (call, pk) = (self.items.begin(), storage::partition_key(recipient));
        let now = self.items.now();
        let counted = match send(&call, &pk, &attempt.count(now)).await? {
            Met::Applied(item) => attempt.counted(&item, self.items.now()),
            Met::Refused(found) => verify::Next::Done(attempt.uncounted(found.as_ref(), now)),
        };
        match counted {
            verify::Next::Done(verification) => Ok(verification.into()),
            verify::Next::Write(write) => match send(&call, &pk, &write).await? {
                Met::Applied(item) => {
                    let ttl = i64::try_from(rules.ttl.as_nanos()).unwrap_or(i64::MAX);
                    let made_at = Some(item.valid_until.offset_by(-ttl));
                    Ok(Checked { verification: Verification::Verified, made_at, receipt: item.receipt })
                }
                // Somebody else was faster, another code was sent, or time has run out.
                Met::Refused(_) => Ok(Verification::NoActive.into()),
            },
        }
    }
}

fn digest(secrets: &KeySecrets, recipient: &Recipient, challenge: ChallengeId, code: &Code) -> Result<Digest> {
    recipient.digest(secrets, challenge, code).ok_or_else(no_secrets)
}

pub(crate) fn no_secrets() -> Error {
    Error::Policy(tollgate_policy::Error::NoSecrets { what: "`otp`".to_owned() })
}

pub(crate) async fn send(call: &Call<'_>, pk: &str, write: &Write) -> Result<Met> {
    let read = |found| storage::to_item(found).map_err(tollgate_dynamodb::Error::from);
    Ok(match call.update(pk, &storage::render(write)).await? {
        Updated::Applied(found) => Met::Applied(read(&found)?),
        Updated::Refused(found) => Met::Refused(found.as_ref().map(read).transpose()?),
    })
}
