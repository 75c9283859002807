//! Changes of factors against the table: told before they are made, and cancelled by whoever has the link.
//!
//! ```text
//! what is taken away    an item of its own under the token's hash, for the cooldown        written first
//! announced             messages are queued, other sessions are revoked                    or nothing is changed
//! changed               the account's item, and the change in it, by one conditional write
//! cancelled             the change is in the account's item no more, and undone, by one conditional write
//! ```
//!
//! Whoever tells afterwards has changes that nobody was told of, when he dies in between or the queue takes nothing. This way round somebody
//! may be told of a change that was not made; its link cancels nothing.
//!
//! Invariants: nothing is changed that was not announced; of any number of callers with one token, one has cancelled its change.

use super::account::{Account, Recovery, Totp};
use super::changes::{Altered, CancelToken, Changed, Factor, Taken, cancelled, recorded, until};
use super::driver::{Factors, read};
use super::passkey::PasskeyId;
use super::recovery::CodeHash;
use super::request::driver::REQUEST;
use super::vault::Vault;
use super::write::Write;
use crate::audit::{Author, Entry, Event, Logged};
use crate::error::{Error, Result};
use std::future::Future;
use std::time::Duration;
use tollgate_core::{Key, Timestamp};
use tollgate_dynamodb::attributes::{self, Attributes, EXPIRES_AT, binaries, number, string};
use tollgate_dynamodb::expression::Expressions;
use tollgate_dynamodb::partition_key;

/// A change that is about to be made.
#[derive(Debug, Clone)]
pub struct Announcement {
    /// What it does.
    pub altered: Altered,
    /// Until when it can be cancelled.
    pub until: Timestamp,
    /// What cancels it.
    pub token: CancelToken,
}

/// Who tells an account's owner of a change, and what follows from it for others.
pub trait Announce: Sync {
    /// Tells of it. An error keeps the change from being made.
    fn announce(&self, announcement: &Announcement) -> impl Future<Output = Result<()>> + Send;
}

/// Who changes factors, and by which rules.
#[derive(Debug)]
pub struct Changing<'a, A> {
    /// Whose they are.
    pub owner: &'a Key,
    /// How long a change can be cancelled, and what it adds proves less.
    pub cooldown: Duration,
    /// Who changes them, for the log.
    pub author: &'a Author,
    /// Who tells of it.
    pub announce: &'a A,
}

impl<A> Changing<'_, A> {
    /// What the log has of it.
    pub(super) fn entry(&self, event: Event, change: Changed) -> Entry {
        let entry = self.author.did(event).with(CHANGE, change.id);
        match change.altered.kind() {
            Some(kind) => entry.of(kind),
            None => entry,
        }
    }
}

impl<A> Clone for Changing<'_, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A> Copy for Changing<'_, A> {}

/// What became of a removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Removal {
    /// It is removed.
    Removed,
    /// There is no such factor.
    NotEnrolled,
    /// There are too many changes that can be cancelled; there is room again after that time.
    TooMany(Duration),
}

/// A change that can be cancelled by a token.
#[derive(Debug, Clone)]
pub struct Cancellable {
    /// Whose it is.
    pub owner: Key,
    /// What it has done.
    pub altered: Altered,
    change: Changed,
    taken: Taken,
    pk: String,
}

const OWNER: &str = "owner";
/// A change, in an item and in the log.
pub(super) const CHANGE: &str = "change";
const TOTP: &str = "totp";
const TOTP_SINCE: &str = "totp_since";
const TOTP_STEP: &str = "totp_step";
const RECOVERY: &str = "recovery";
const RECOVERY_SINCE: &str = "recovery_since";
const PASSKEYS: &str = "passkeys";

/// The partition key of what a token cancels.
fn change_key(token: &CancelToken) -> Result<String> {
    let key = Key::new([("change", token.stored())]).map_err(tollgate_dynamodb::Error::from)?;
    Ok(partition_key::mfa("change", &key))
}

/// Renders what a change has taken away. The table may delete it once it cannot be cancelled any more.
fn keep(owner: &Key, change: &Changed, taken: &Taken) -> Expressions {
    let mut out = Expressions::default();
    let mut set = vec![(OWNER, string(owner)), (CHANGE, string(change))];
    if let Some(Totp { sealed, since, step }) = &taken.totp {
        set.extend([(TOTP, string(sealed)), (TOTP_SINCE, number(since.as_nanos())), (TOTP_STEP, number(step))]);
    }
    if let Some(Recovery { since, codes }) = &taken.recovery {
        set.push((RECOVERY_SINCE, number(since.as_nanos())));
        set.extend((!codes.is_empty()).then(|| (RECOVERY, binaries(codes.iter().map(|code| &code.0)))));
    }
    if !taken.passkeys.is_empty() {
        set.push((PASSKEYS, binaries(taken.passkeys.iter().map(|id| &id.0))));
    }
    set.push((EXPIRES_AT, number(change.until.as_secs() + 1)));
    let mut assign = |(attribute, value)| {
        format!("{} = {}", out.name(&format!("#{attribute}"), attribute), out.value(&format!(":{attribute}"), value))
    };
    let update = format!("SET {}", set.into_iter().map(&mut assign).collect::<Vec<_>>().join(", "));
    let condition = format!("attribute_not_exists({})", out.name("#owner", OWNER));
    Expressions { condition, update, ..out }
}

fn kept(found: &Attributes) -> tollgate_core::Result<(Key, Changed, Taken)> {
    let wrong = |attribute: &str, text: &str| tollgate_core::Error::Stored {
        attribute: attribute.to_owned(),
        found: text.to_owned(),
    };
    let (owner, change) = (attributes::text(found, OWNER)?, attributes::text(found, CHANGE)?);
    let instant = |name| Ok::<_, tollgate_core::Error>(Timestamp::from_nanos(attributes::required(found, name)?));
    let app = || {
        let (sealed, step) = (attributes::text(found, TOTP)?.to_owned(), attributes::required(found, TOTP_STEP)?);
        Ok::<_, tollgate_core::Error>(Totp { sealed, since: instant(TOTP_SINCE)?, step })
    };
    let codes = || {
        let codes = attributes::byte_strings(found, RECOVERY)?.into_iter().map(CodeHash).collect();
        Ok::<_, tollgate_core::Error>(Recovery { since: instant(RECOVERY_SINCE)?, codes })
    };
    let taken = Taken {
        totp: found.contains_key(TOTP).then(app).transpose()?,
        recovery: found.contains_key(RECOVERY_SINCE).then(codes).transpose()?,
        passkeys: attributes::byte_strings(found, PASSKEYS)?.into_iter().map(PasskeyId).collect(),
    };
    let owner = owner.parse().map_err(|_| wrong(OWNER, owner))?;
    Ok((owner, change.parse().map_err(|_| wrong(CHANGE, change))?, taken))
}

impl<V: Vault> Factors<V> {
    /// Announces a change of an account that was `seen` so; the error is how long there is no room for one. One write, and what announcing
    /// takes.
    pub(super) async fn announce<A: Announce>(
        &self,
        by: Changing<'_, A>,
        seen: &Account,
        altered: Altered,
    ) -> Result<std::result::Result<Changed, Duration>> {
        let (token, now) = (CancelToken::random()?, self.items().now());
        let change = Changed { id: token.change(), altered, until: until(now, by.cooldown) };
        if let Err(room) = seen.with_change(change, now) {
            return Ok(Err(waiting(room, now)));
        }
        let taken = Taken::by(altered, seen, now);
        self.keep_and_tell(by, &change, &taken, Announcement { altered, until: change.until, token }).await?;
        Ok(Ok(change))
    }

    /// Writes what the token of an announcement cancels, and announces it.
    pub(super) async fn keep_and_tell<A: Announce>(
        &self,
        by: Changing<'_, A>,
        change: &Changed,
        taken: &Taken,
        announcement: Announcement,
    ) -> Result<()> {
        let pk = change_key(&announcement.token)?;
        self.items().begin().update(&pk, &keep(by.owner, change, taken)).await?;
        by.announce.announce(&announcement).await
    }

    /// Makes a change that takes something away, and says what became of it.
    pub(super) async fn take_away<A: Announce>(
        &self,
        by: Changing<'_, A>,
        altered: Altered,
        write: &Write,
    ) -> Result<Removal> {
        let mut seen = self.find(by.owner).await?.account().clone();
        let holds = |seen: &Account| write.checks.iter().all(|check| check.holds(seen));
        if !holds(&seen) {
            return Ok(Removal::NotEnrolled);
        }
        let change = match self.announce(by, &seen, altered).await? {
            Ok(change) => change,
            Err(wait) => return Ok(Removal::TooMany(wait)),
        };
        let announced = Taken::by(altered, &seen, self.items().now());
        for _ in 0..Self::MOST_ROUNDS {
            let now = self.items().now();
            let write = match recorded(write.clone(), &seen, change, now) {
                Ok(write) => write,
                Err(room) => return Ok(Removal::TooMany(waiting(room, now))),
            };
            let event = if altered == Altered::Recovered { Event::AccountRecovered } else { Event::FactorRemoved };
            let entry = match altered {
                Altered::Removed(Factor::Passkey(id)) => by.entry(event, change).with("passkey", id),
                _ => by.entry(event, change),
            };
            let entry = match seen.request.as_ref().filter(|_| altered == Altered::Recovered) {
                Some(request) => entry.with(REQUEST, request.id),
                None => entry,
            };
            match self.send_logged(&self.items().begin(), by.owner, &write, &entry, by.author).await? {
                Logged::Applied => {
                    let gone = seen.passkeys.iter().filter(|id| match altered {
                        Altered::Removed(Factor::Passkey(removed)) => **id == removed,
                        Altered::RemovedPasskeys | Altered::Recovered => true,
                        _ => false,
                    });
                    self.retire_passkeys(by.owner, gone.copied(), change.until).await;
                    return Ok(Removal::Removed);
                }
                Logged::Refused(found) => {
                    let found = read(found.as_ref())?;
                    if !holds(&found) {
                        return Ok(Removal::NotEnrolled);
                    }
                    // What is taken away now is more or less than what would come back.
                    if Taken::by(altered, &found, now).passkeys != announced.passkeys {
                        break;
                    }
                    seen = found;
                }
            }
        }
        Err(self.items().begin().contended().into())
    }

    /// What a token cancels; `None` if there is nothing, or no more. Two reads.
    ///
    /// # Errors
    ///
    /// The table gives no answer.
    pub async fn cancellable(&self, token: &CancelToken) -> Result<Option<Cancellable>> {
        let pk = change_key(token)?;
        let Some(found) = self.items().begin().read(&pk).await? else { return Ok(None) };
        let (owner, change, taken) = kept(&found).map_err(tollgate_dynamodb::Error::from)?;
        let account = self.find(&owner).await?;
        let (account, now) = (account.account(), self.items().now());
        let open = match change.altered {
            Altered::Requested => account.open_request(now).is_some_and(|open| open.id == change.id),
            _ => account.change(change.id, now).is_some(),
        };
        Ok(open.then_some(Cancellable { owner, altered: change.altered, change, taken, pk }))
    }

    /// Cancels a change, and says whether it was still there: of any number of callers, one is told so. One write, one that tidies up, and
    /// one more for each passkey.
    ///
    /// # Errors
    ///
    /// The table gives no answer; it may be cancelled.
    pub async fn cancel(&self, of: &Cancellable, author: &Author) -> Result<bool> {
        if of.altered == Altered::Requested {
            let was_open = self.end_recovery(&of.owner, of.change.id, Event::RecoveryCancelled, author).await?;
            self.tidy(&of.pk).await;
            return Ok(was_open);
        }
        let mut taken = of.taken.clone();
        // Named only once they are there for good.
        taken.passkeys = self.revive_passkeys(&of.owner, &taken.passkeys).await?;
        let mut seen = self.find(&of.owner).await?.account().clone();
        let entry = author.did(Event::ChangeCancelled).with(CHANGE, of.change.id).with("what", of.altered.as_str());
        let entry = match of.altered.kind() {
            Some(kind) => entry.of(kind),
            None => entry,
        };
        for _ in 0..Self::MOST_ROUNDS {
            let now = self.items().now();
            let Some(open) = seen.change(of.change.id, now) else { return Ok(false) };
            let write = cancelled(&seen, &open, &taken, now);
            match self.send_logged(&self.items().begin(), &of.owner, &write, &entry, author).await? {
                Logged::Applied => {
                    if let Altered::First(Factor::Passkey(id)) | Altered::Added(Factor::Passkey(id)) = of.altered {
                        self.drop_passkey(&of.owner, id).await;
                    }
                    self.tidy(&of.pk).await;
                    return Ok(true);
                }
                Logged::Refused(found) => seen = read(found.as_ref())?,
            }
        }
        Err(self.items().begin().contended().into())
    }

    /// What a token cancelled goes; the table does that as well, later.
    async fn tidy(&self, pk: &str) {
        let mut out = Expressions::default();
        let condition = format!("attribute_exists({})", out.name("#owner", OWNER));
        if let Err(error) = self.items().begin().delete(pk, &Expressions { condition, ..out }).await {
            tracing::warn!(%error, "what a cancelled change had taken away is left for the table to delete");
        }
    }
}

/// How long until then.
pub(super) fn waiting(until: Timestamp, now: Timestamp) -> Duration {
    Duration::from_nanos(until.as_nanos().saturating_sub(now.as_nanos()))
}

impl Error {
    /// A change cannot be announced, so that it is not made. No text has a number or an address.
    pub fn unannounced(why: impl std::fmt::Display) -> Self {
        Self::Unannounced(why.to_string())
    }
}
