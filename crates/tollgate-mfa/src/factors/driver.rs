//! Drives factors against the table.
//!
//! Invariants: a secret is opened before a try is counted, so that a vault that fails costs nobody a try; nobody is verified without the
//! answer to the write that says so; whatever the table or the vault does not answer is an error, never an outcome.

use super::account::{Account, CodeKind, Kind, Pending};
use super::attempt::{Attempt, Next, Verification, locked};
use super::cancel::{Announce, Announcement, CHANGE, Changing, Removal, waiting};
use super::changes::{Altered, Changed, Factor, recorded};
use super::recovery::{CODES, RecoveryCode};
use super::storage;
use super::totp::{Secret, Setup};
use super::tries::{Tries, Turn};
use super::vault::{Vault, VaultContext, VaultError};
use super::write::{Change, Check, Write};
use crate::audit::{AuditLog, Author, Entry, Event, Logged};
use crate::error::Result;
use crate::sessions::Begun;
use std::time::Duration;
use tollgate_core::Key;
use tollgate_dynamodb::items::Call;
use tollgate_dynamodb::{Items, Updated};

/// What becomes of the wish to set an app up.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Enrolment {
    /// It can be, once a code of it is confirmed.
    Begun(Setup),
    /// There is one already, which has to be removed first.
    HasApp,
    /// A factor has been enrolled meanwhile: the caller has to step up.
    HasFactor,
}

/// What becomes of the wish for new recovery codes.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Generated {
    /// These are good, and none that were made before.
    Codes(Vec<RecoveryCode>),
    /// The account was changed meanwhile, so that nobody is shown codes that are none.
    Changed,
    /// There are too many changes that can be cancelled; there is room again after that time.
    TooMany(Duration),
}

/// An account's item, as it was found.
#[derive(Debug, Clone)]
pub struct Found {
    owner: Key,
    pk: String,
    account: Account,
}

impl Found {
    /// The partition key of its item.
    pub(super) fn pk(&self) -> &str {
        &self.pk
    }

    /// What is remembered of the account.
    #[must_use]
    pub fn account(&self) -> &Account {
        &self.account
    }
}

/// Second factors of a table. Cheap to share behind an [`Arc`](std::sync::Arc); one a process.
#[derive(Debug)]
pub struct Factors<V> {
    items: Items,
    vault: V,
}

impl<V: Vault> Factors<V> {
    /// How long an app can be confirmed after its secret was shown.
    pub const CONFIRMED_WITHIN: Duration = Duration::from_secs(600);
    /// Rounds after which a code is given up, since others change the account's item all the time. One is what it takes alone.
    pub const MOST_ROUNDS: u32 = 4;

    /// Factors among these items, whose secrets `vault` seals.
    #[must_use]
    pub fn new(items: Items, vault: V) -> Self {
        Self { items, vault }
    }

    /// The items.
    #[must_use]
    pub fn items(&self) -> &Items {
        &self.items
    }

    /// What is remembered of an account. One read.
    ///
    /// # Errors
    ///
    /// The table gives no answer.
    pub async fn find(&self, owner: &Key) -> Result<Found> {
        let pk = storage::partition_key(owner);
        Ok(Found { account: read(self.items.begin().read(&pk).await?.as_ref())?, owner: owner.clone(), pk })
    }

    /// Sets an app up that shows `issuer` and `label`, in the place of one that was not confirmed. One write. Whoever `found` the account
    /// has judged the caller by it.
    ///
    /// # Errors
    ///
    /// The table or the vault gives no answer; [`Error::Unspeakable`](crate::Error::Unspeakable) for a label that no app can show.
    pub async fn enrol(&self, found: &Found, begun: &Begun, issuer: &str, label: &str) -> Result<Enrolment> {
        if found.account.totp.is_some() {
            return Ok(Enrolment::HasApp);
        }
        let secret = Secret::random()?;
        let setup = secret.setup(issuer, label)?;
        let sealed = self.vault.seal(&VaultContext::new(&found.pk, Kind::Totp), secret.bytes()).await?;
        let until = self.items.now() + Self::CONFIRMED_WITHIN;
        let pending = Pending { sealed, until, epoch: begun.epoch(), session: begun.session().map(str::to_owned) };
        let mut checks = vec![Check::NoApp];
        checks.extend((!found.account.has_factor()).then_some(Check::NoFactor));
        let write = Write::new(checks, Change::Enrol(pending));
        Ok(match send(&self.items.begin(), &found.pk, &write).await? {
            Met::Applied(_) => Enrolment::Begun(setup),
            Met::Refused(account) if account.totp.is_some() => Enrolment::HasApp,
            Met::Refused(_) => Enrolment::HasFactor,
        })
    }

    /// Confirms the app that was `found` being set up by a code of it; that code is used by it. One write, and for the right code two more
    /// and what announcing takes.
    ///
    /// # Errors
    ///
    /// The table or the vault gives no answer; the try may have been counted, and the app confirmed.
    pub async fn confirm<A: Announce>(
        &self,
        found: &Found,
        begun: &Begun,
        code: &str,
        by: Changing<'_, A>,
    ) -> Result<Verification> {
        let Found { owner, pk, account } = found;
        let now = self.items.now();
        let same = |pending: &&Pending| pending.epoch == begun.epoch() && pending.session.as_deref() == begun.session();
        let pending = account.pending.as_ref().filter(same).filter(|pending| pending.until > now);
        let Some(pending) = pending else { return Ok(Verification::NotEnrolled) };
        if account.totp_tries.turn(now) != Turn::Now {
            return Ok(locked(account.totp_tries, now));
        }
        let secret = self.open(pk, &pending.sealed).await?;
        Ok(
            match self.attempt(owner, pk, &Attempt::Setup { pending, secret: &secret, code }, by.author, Ok(by)).await?
            {
                Tried::Is(verification) => verification,
                // Another app is being set up, or this one was confirmed by the same code.
                Tried::Changed(_) => Verification::NotEnrolled,
            },
        )
    }

    /// Verifies a code of a factor that was `found`. One write, and a second one for the right code, which
    /// is logged if it is a recovery code. So is what locks the factor.
    ///
    /// # Errors
    ///
    /// The table or the vault gives no answer; the try may have been counted, and the code used.
    pub async fn verify(&self, found: Found, kind: CodeKind, code: &str, by: &Author) -> Result<Verification> {
        let Found { owner, pk, mut account } = found;
        for _ in 0..Self::MOST_ROUNDS {
            let (tries, now) = (account.tries(kind), self.items.now());
            let tried = match (kind, &account.totp) {
                (CodeKind::Totp, None) => return Ok(Verification::NotEnrolled),
                (CodeKind::Recovery, _) if account.codes_left() == 0 => return Ok(Verification::NotEnrolled),
                _ if tries.turn(now) != Turn::Now => return Ok(locked(tries, now)),
                (CodeKind::Totp, Some(app)) => {
                    let secret = self.open(&pk, &app.sealed).await?;
                    let reseal = self.resealed(&pk, &app.sealed, &secret).await;
                    let attempt = Attempt::App { sealed: &app.sealed, secret: &secret, code, reseal: &reseal };
                    self.attempt(&owner, &pk, &attempt, by, Err::<Changing<'_, Untold>, _>(&account.changes)).await?
                }
                (CodeKind::Recovery, _) => {
                    let code = RecoveryCode::parse(code).map(|code| code.hash(&pk));
                    self.attempt(
                        &owner,
                        &pk,
                        &Attempt::Recovery(code),
                        by,
                        Err::<Changing<'_, Untold>, _>(&account.changes),
                    )
                    .await?
                }
            };
            match tried {
                Tried::Is(verification) => return Ok(verification),
                // Another factor may be in the place of the one that was judged, and must not prove what that does.
                Tried::Changed(changed) if changed.changes != account.changes => break,
                Tried::Changed(changed) => account = *changed,
            }
        }
        Err(self.items.begin().contended().into())
    }

    /// Makes new recovery codes; all that were made before are good no longer, unless that is cancelled. Two writes, and what announcing
    /// takes.
    ///
    /// # Errors
    ///
    /// The table gives no answer, or the change cannot be announced; the old codes may be gone, and nobody knows the new ones.
    pub async fn generate<A: Announce>(&self, by: Changing<'_, A>) -> Result<Generated> {
        let found = self.find(by.owner).await?;
        let codes = (0..CODES).map(|_| RecoveryCode::random()).collect::<Result<Vec<_>>>()?;
        let hashes = codes.iter().map(|code| code.hash(&found.pk)).collect();
        let seen = found.account.recovery.as_ref().map(|recovery| recovery.since);
        let write = Write::new([Check::CodesOf(seen)], Change::Generate(hashes, self.items.now()));
        let (write, change) = match self.told(by, &found.account, Factor::Recovery, write).await? {
            Ok(both) => both,
            Err(wait) => return Ok(Generated::TooMany(wait)),
        };
        let entry = by.entry(Event::CodesGenerated, change);
        let sent = self.send_logged(&self.items.begin(), by.owner, &write, &entry, by.author).await?;
        Ok(match sent {
            Logged::Applied => Generated::Codes(codes),
            Logged::Refused(_) => Generated::Changed,
        })
    }

    /// Removes a factor: of passkeys all. Two writes, one more for each passkey, and what announcing takes.
    ///
    /// # Errors
    ///
    /// The table gives no answer, or the change cannot be announced; it may be removed.
    pub async fn remove<A: Announce>(&self, kind: Kind, by: Changing<'_, A>) -> Result<Removal> {
        let altered = match kind {
            Kind::Totp => Altered::Removed(Factor::Totp),
            Kind::Recovery => Altered::Removed(Factor::Recovery),
            Kind::Passkey => Altered::RemovedPasskeys,
        };
        self.take_away(by, altered, &Write::new([Check::Has(kind)], Change::Remove(kind))).await
    }

    /// The write that makes a factor the account's, once that is announced, and the change that it is; the error is how long there is no
    /// room for one.
    pub(in crate::factors) async fn told<A: Announce>(
        &self,
        by: Changing<'_, A>,
        seen: &Account,
        factor: Factor,
        write: Write,
    ) -> Result<std::result::Result<(Write, Changed), Duration>> {
        let now = self.items.now();
        let change = match self.announce(by, seen, seen.adds(factor, now)).await? {
            Ok(change) => change,
            Err(wait) => return Ok(Err(wait)),
        };
        Ok(recorded(write, seen, change, now).map(|write| (write, change)).map_err(|room| waiting(room, now)))
    }

    async fn open(&self, pk: &str, sealed: &str) -> Result<Secret> {
        let opened = self.vault.open(&VaultContext::new(pk, Kind::Totp), sealed).await?;
        Ok(Secret::of(&opened).ok_or_else(|| VaultError::opening("it is no secret of an app"))?)
    }

    /// The secret under the key of new ones, or as it is: that it is sealed anew can wait, the code cannot.
    async fn resealed(&self, pk: &str, sealed: &str, secret: &Secret) -> String {
        if self.vault.is_current(sealed) {
            return sealed.to_owned();
        }
        match self.vault.seal(&VaultContext::new(pk, Kind::Totp), secret.bytes()).await {
            Ok(sealed) => sealed,
            Err(error) => {
                tracing::warn!(%error, "a factor's secret stays sealed under an older key");
                sealed.to_owned()
            }
        }
    }

    /// A right code is a change of factors where somebody is named who makes it; else those changes have to be what was seen of the account.
    async fn attempt<A: Announce>(
        &self,
        owner: &Key,
        pk: &str,
        attempt: &Attempt<'_>,
        by: &Author,
        changing: std::result::Result<Changing<'_, A>, &[Changed]>,
    ) -> Result<Tried> {
        let seen = changing.as_ref().err().copied();
        // With a deadline of its own: the vault may have taken long.
        let (call, now) = (&self.items.begin(), self.items.now());
        let counted = match send(call, pk, &attempt.count(now)).await? {
            Met::Applied(account) => account,
            Met::Refused(account) => {
                let uncounted = attempt.uncounted(&account, now);
                return Ok(uncounted.map_or(Tried::Changed(account), Tried::Is));
            }
        };
        if seen.is_some_and(|seen| counted.changes != seen) {
            return Ok(Tried::Changed(counted));
        }
        // By the clock as it is now: the answer to the first write may have been what set it right.
        let write = match attempt.counted(&counted, self.items.now()) {
            Next::Done(verification) => {
                self.say_if_locked(owner, attempt.kind(), counted.tries(attempt.kind()), by).await?;
                return Ok(Tried::Is(verification));
            }
            Next::Write(write) => write,
        };
        let (write, change) = match changing {
            Ok(changing) => match self.told(changing, &counted, Factor::Totp, write).await? {
                Ok((write, change)) => (write, Some(change)),
                Err(retry_after) => return Ok(Tried::Is(Verification::TooManyChanges { retry_after })),
            },
            Err(_) => (write, None),
        };
        let entry = attempt.entry(by).map(|entry| match change {
            Some(change) => entry.with(CHANGE, change.id),
            None => entry,
        });
        // With a deadline of its own: announcing may have taken long.
        let call = &self.items.begin();
        let refused = match entry {
            Some(entry) => match self.send_logged(call, owner, &write, &entry, by).await? {
                Logged::Applied => None,
                Logged::Refused(found) => Some(read(found.as_ref())?),
            },
            None => match send(call, pk, &write).await? {
                Met::Applied(_) => None,
                Met::Refused(account) => Some(*account),
            },
        };
        let refused = refused.map(|account| attempt.unmarked(&account, now));
        Ok(Tried::Is(refused.unwrap_or(Verification::Verified)))
    }

    /// A wrong code was counted: the log has the one from which on there is a wait, or a longer one, or no next one.
    async fn say_if_locked(&self, owner: &Key, kind: CodeKind, tries: Tries, by: &Author) -> Result<()> {
        if !tries.is_a_step() {
            return Ok(());
        }
        let entry = by.did(Event::FactorLocked).of(Kind::from(kind)).with("wrong_codes", tries.wrong);
        AuditLog::new(&self.items, by.retention).append(owner, &entry).await?;
        Ok(())
    }

    /// Writes the account's item, and to its log, or neither.
    pub(super) async fn send_logged(
        &self,
        call: &Call<'_>,
        owner: &Key,
        write: &Write,
        entry: &Entry,
        by: &Author,
    ) -> Result<Logged> {
        let log = AuditLog::new(&self.items, by.retention);
        log.append_with(call, owner, entry, &storage::partition_key(owner), &storage::render(write)).await
    }
}

/// Nobody: for codes that change nothing.
enum Untold {}

impl Announce for Untold {
    async fn announce(&self, _: &Announcement) -> Result<()> {
        match *self {}
    }
}

/// What became of a try.
enum Tried {
    Is(Verification),
    /// Nothing, since the factor is not what it was; this is what it is. Nothing was counted.
    Changed(Box<Account>),
}

/// What became of a write whose answer arrived.
pub(super) enum Met {
    Applied(Box<Account>),
    Refused(Box<Account>),
}

pub(super) async fn send(call: &Call<'_>, pk: &str, write: &Write) -> Result<Met> {
    Ok(match call.update(pk, &storage::render(write)).await? {
        Updated::Applied(found) => Met::Applied(Box::new(read(Some(&found))?)),
        Updated::Refused(found) => Met::Refused(Box::new(read(found.as_ref())?)),
    })
}

pub(super) fn read(found: Option<&tollgate_dynamodb::attributes::Attributes>) -> Result<Account> {
    Ok(storage::to_account(found).map_err(tollgate_dynamodb::Error::from)?)
}
