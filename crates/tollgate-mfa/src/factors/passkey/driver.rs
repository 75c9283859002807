//! Drives passkeys against the table.
//!
//! Invariants: nothing that an authenticator says is looked at before its challenge is used up; a passkey is in its item before the
//! account's names it, and named by it no more before its item goes, so that what is left by whoever dies between them proves nothing;
//! whatever the table does not answer is an error, never an outcome.

use super::challenge::{Ceremony, Challenge, ChallengeId, Use};
use super::relying_party::{Assertion, Handle, Owner, Refusal, Registration, RelyingParty, Request};
use super::{LONGEST_NAME, Passkey, PasskeyId, PasskeyWrite, storage};
use crate::audit::{AuditLog, Author, Event, Logged};
use crate::error::Result;
use crate::factors::account::{Account, Kind};
use crate::factors::cancel::{Announce, Changing, Removal};
use crate::factors::changes::{Altered, Factor};
use crate::factors::driver::{Factors, Found, read};
use crate::factors::vault::Vault;
use crate::factors::write::{Change, Check, Write};
use crate::grant::Action;
use crate::sessions::Begun;
use futures_util::future::{join_all, try_join_all};
use std::collections::BTreeSet;
use std::time::Duration;
use tollgate_core::{Key, Timestamp};
use tollgate_dynamodb::Updated;
use tollgate_dynamodb::items::Call;

/// The detail of an entry that names a passkey.
const ID: &str = "passkey";

/// What becomes of the wish for a challenge.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Asked {
    /// It can be answered.
    Request(Request),
    /// There is no passkey.
    NotEnrolled,
    /// There are as many as an account can have.
    TooMany,
}

/// What becomes of a passkey that is to be registered.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Registered {
    /// It is the account's.
    Added {
        /// What it is known by.
        id: PasskeyId,
        /// What that was.
        altered: Altered,
        /// What it proves, dated by its challenge.
        begun: Begun,
    },
    /// There is no such challenge: it was answered, is over, or was made for something else.
    NoChallenge,
    /// It was not made as it was asked for.
    Refused,
    /// It is registered already.
    Known,
    /// There are as many as an account can have.
    TooMany,
    /// A factor has been enrolled meanwhile: the caller has to step up.
    HasFactor,
    /// There are too many changes that can be cancelled; there is room again after that time.
    TooManyChanges(Duration),
}

/// What becomes of a passkey's signature.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Asserted {
    /// It is right; what it proves is dated by its challenge.
    Verified(Begun),
    /// There is no such challenge: it was answered, is over, or was made for something else.
    NoChallenge,
    /// It proves nothing, or is of no passkey of the account's.
    Refused,
    /// It is right, and its counter went back: somebody may have a copy of it.
    Cloned,
}

impl<V: Vault> Factors<V> {
    /// The passkeys of an account. One read each, at once.
    ///
    /// # Errors
    ///
    /// The table gives no answer.
    pub async fn passkeys(&self, owner: &Key, found: &Found) -> Result<Vec<Passkey>> {
        let call = &self.items().begin();
        let read = |id: &PasskeyId| passkey(call, storage::passkey_key(owner, *id));
        // One that is being removed may be without its item.
        Ok(try_join_all(found.account().passkeys.iter().map(read)).await?.into_iter().flatten().collect())
    }

    /// Asks an authenticator for a new passkey of `owner`, who is shown `label`. One write. Whoever `found` the account has judged the caller by it.
    ///
    /// # Errors
    ///
    /// The table gives no answer.
    pub async fn ask_to_register(
        &self,
        owner: &Key,
        found: &Found,
        begun: &Begun,
        party: &RelyingParty,
        label: &str,
    ) -> Result<Asked> {
        if !Check::RoomForPasskey.holds(found.account()) {
            return Ok(Asked::TooMany);
        }
        let known = self.passkeys(owner, found).await?;
        let request = party.ask_to_register(Owner { handle: Handle::of(found.pk()), label }, &known)?;
        let ceremony = Ceremony::Register { is_first: !found.account().has_factor() };
        self.put(owner, begun, party, ceremony, None, &request).await?;
        Ok(Asked::Request(request))
    }

    /// Registers the passkey that was made for a challenge. Four writes, the challenge's, the passkey's, the
    /// change's and the account's, and what announcing takes.
    ///
    /// # Errors
    ///
    /// The table gives no answer; the challenge may be used up, and the passkey registered.
    pub async fn register<A: Announce>(
        &self,
        by: Changing<'_, A>,
        begun: &Begun,
        party: &RelyingParty,
        challenge: &ChallengeId,
        answer: &Registration,
        name: &str,
    ) -> Result<Registered> {
        let owner = by.owner;
        let ceremony = Ceremony::Register { is_first: false };
        let Some(used) = self.take(owner, begun, challenge, ceremony, None).await? else {
            return Ok(Registered::NoChallenge);
        };
        let made = match party.registered(answer, &used.state, self.items().now()) {
            Ok(made) => Passkey { name: name.chars().take(LONGEST_NAME).collect(), ..made },
            Err(why) => {
                told(&why);
                return Ok(Registered::Refused);
            }
        };
        let (call, id) = (self.items().begin(), PasskeyId::of(&made.credential));
        let pk = storage::passkey_key(owner, id);
        if let Updated::Refused(_) = call.update(&pk, &storage::render(&PasskeyWrite::Add(made))).await? {
            return Ok(Registered::Known);
        }
        let mut checks = vec![Check::LacksPasskey(id), Check::RoomForPasskey];
        let is_first = used.ceremony == (Ceremony::Register { is_first: true });
        checks.extend(is_first.then_some(Check::NoFactor));
        // Its item is left where nobody knows whether it was added.
        let write = Write::new(checks, Change::AddPasskey(id));
        let why = match self.add(by, id, write).await? {
            Ok(altered) => return Ok(Registered::Added { id, altered, begun: begun.clone().dated(used.at) }),
            Err(why) => why,
        };
        drop_item(&self.items().begin(), &pk).await;
        Ok(why)
    }

    /// Asks for a signature of one of the account's passkeys, for an action if there is one. One write.
    ///
    /// # Errors
    ///
    /// The table gives no answer.
    pub async fn ask_to_assert(
        &self,
        owner: &Key,
        begun: &Begun,
        party: &RelyingParty,
        action: Option<Action>,
    ) -> Result<Asked> {
        let found = self.find(owner).await?;
        let known = self.passkeys(owner, &found).await?;
        if known.is_empty() {
            return Ok(Asked::NotEnrolled);
        }
        let request = party.ask_to_assert(&known)?;
        self.put(owner, begun, party, Ceremony::Assert, action, &request).await?;
        Ok(Asked::Request(request))
    }

    /// Verifies the signature of a challenge. Two writes: the challenge's, and the passkey's if it is right. A copy's is logged. No tries are counted, since
    /// nobody guesses a signature: a passkey is never locked.
    ///
    /// # Errors
    ///
    /// The table gives no answer; the challenge may be used up.
    pub async fn assert(
        &self,
        begun: &Begun,
        party: &RelyingParty,
        challenge: &ChallengeId,
        answer: &Assertion,
        action: Option<Action>,
        by: &Author,
    ) -> Result<Asserted> {
        let owner = begun.subject();
        let Some(used) = self.take(owner, begun, challenge, Ceremony::Assert, action).await? else {
            return Ok(Asserted::NoChallenge);
        };
        let (found, id) = (self.find(owner).await?, PasskeyId::of(answer.credential()));
        let call = self.items().begin();
        let pk = storage::passkey_key(owner, id);
        let known = if Check::HasPasskey(id).holds(found.account()) { passkey(&call, pk.clone()).await? } else { None };
        let Some(known) = known else { return Ok(Asserted::Refused) };
        let said = match party.asserted(answer, &used.state, &known, Handle::of(found.pk())) {
            Ok(said) => said,
            Err(why) => {
                told(&why);
                let Refusal::Cloned = why else { return Ok(Asserted::Refused) };
                return self.cloned(owner, id, by).await;
            }
        };
        let pass = PasskeyWrite::Pass(said, self.items().now());
        Ok(match call.update(&pk, &storage::render(&pass)).await? {
            Updated::Applied(_) => Asserted::Verified(begun.clone().dated(used.at)),
            // It was removed meanwhile.
            Updated::Refused(None) => Asserted::Refused,
            // Another signature with a later count was faster.
            Updated::Refused(Some(_)) => {
                told(&Refusal::Cloned);
                return self.cloned(owner, id, by).await;
            }
        })
    }

    async fn cloned(&self, owner: &Key, id: PasskeyId, by: &Author) -> Result<Asserted> {
        let entry = by.did(Event::PasskeyCloned).of(Kind::Passkey).with(ID, id);
        AuditLog::new(self.items(), by.retention).append(owner, &entry).await?;
        Ok(Asserted::Cloned)
    }

    /// Removes a passkey. Three writes, and what announcing takes.
    ///
    /// # Errors
    ///
    /// The table gives no answer, or the change cannot be announced; it may be removed.
    pub async fn remove_passkey<A: Announce>(&self, id: PasskeyId, by: Changing<'_, A>) -> Result<Removal> {
        let write = Write::new([Check::HasPasskey(id)], Change::RemovePasskey(id));
        self.take_away(by, Altered::Removed(Factor::Passkey(id)), &write).await
    }

    /// Has the table delete the items of passkeys that were removed, once that cannot be cancelled any more.
    pub(in crate::factors) async fn retire_passkeys(
        &self,
        owner: &Key,
        ids: impl Iterator<Item = PasskeyId>,
        until: Timestamp,
    ) {
        let call = &self.items().begin();
        let retire = |id: PasskeyId| {
            let pk = storage::passkey_key(owner, id);
            async move {
                // The account's item names it no more, so that it proves nothing where this fails.
                if let Err(error) = call.update(&pk, &storage::retiring(until)).await {
                    tracing::warn!(%error, "the item of a passkey that was removed is left");
                }
            }
        };
        join_all(ids.map(retire)).await;
    }

    /// Keeps the items of passkeys that were removed after all; those that are there.
    pub(in crate::factors) async fn revive_passkeys(
        &self,
        owner: &Key,
        ids: &BTreeSet<PasskeyId>,
    ) -> Result<BTreeSet<PasskeyId>> {
        let call = &self.items().begin();
        let revive = |id: &PasskeyId| {
            let (pk, id) = (storage::passkey_key(owner, *id), *id);
            async move {
                let updated = call.update(&pk, &storage::reviving()).await?;
                Ok::<_, crate::Error>(matches!(updated, Updated::Applied(_)).then_some(id))
            }
        };
        Ok(try_join_all(ids.iter().map(revive)).await?.into_iter().flatten().collect())
    }

    /// Removes the item of a passkey that was never to be.
    pub(in crate::factors) async fn drop_passkey(&self, owner: &Key, id: PasskeyId) {
        drop_item(&self.items().begin(), &storage::passkey_key(owner, id)).await;
    }

    /// Makes a passkey whose item is there the account's, once that is announced; or why not.
    async fn add<A: Announce>(
        &self,
        by: Changing<'_, A>,
        id: PasskeyId,
        write: Write,
    ) -> Result<std::result::Result<Altered, Registered>> {
        let seen = self.find(by.owner).await?.account().clone();
        let refused = |account: &Account| {
            if Check::RoomForPasskey.holds(account) { Registered::HasFactor } else { Registered::TooMany }
        };
        if !write.checks.iter().all(|check| check.holds(&seen)) {
            return Ok(Err(refused(&seen)));
        }
        let (write, change) = match self.told(by, &seen, Factor::Passkey(id), write).await? {
            Ok(both) => both,
            Err(wait) => return Ok(Err(Registered::TooManyChanges(wait))),
        };
        let entry = by.entry(Event::FactorEnrolled, change).with(ID, id);
        let sent = self.send_logged(&self.items().begin(), by.owner, &write, &entry, by.author).await?;
        Ok(match sent {
            Logged::Applied => Ok(change.altered),
            Logged::Refused(found) => Err(refused(&read(found.as_ref())?)),
        })
    }

    async fn put(
        &self,
        owner: &Key,
        begun: &Begun,
        party: &RelyingParty,
        ceremony: Ceremony,
        action: Option<Action>,
        request: &Request,
    ) -> Result<()> {
        let challenge = Challenge {
            ceremony,
            session: begun.session().map(str::to_owned),
            epoch: begun.epoch(),
            action,
            at: begun.at(),
            until: self.items().now() + party.timeout(),
            state: request.state.clone(),
        };
        // It is random, so there is none.
        let pk = storage::challenge_key(owner, &request.id);
        self.items().begin().update(&pk, &storage::put(&challenge)).await?;
        Ok(())
    }

    /// Uses a challenge up, if it was made for that: of any number of callers, one gets it. One read, and a write if it fits.
    async fn take(
        &self,
        owner: &Key,
        begun: &Begun,
        id: &ChallengeId,
        ceremony: Ceremony,
        action: Option<Action>,
    ) -> Result<Option<Challenge>> {
        let (call, pk) = (self.items().begin(), storage::challenge_key(owner, id));
        let Some(found) = call.read(&pk).await? else { return Ok(None) };
        let found = storage::to_challenge(&found).map_err(tollgate_dynamodb::Error::from)?;
        let now = self.items().now();
        let using = Use { ceremony, session: begun.session(), epoch: begun.epoch(), action, now };
        // What does not fit costs no write.
        Ok((using.fits(&found) && call.delete(&pk, &storage::using(&using)).await?).then_some(found))
    }
}

async fn passkey(call: &Call<'_>, pk: String) -> Result<Option<Passkey>> {
    let found = call.read(&pk).await?;
    Ok(found.map(|found| storage::to_passkey(&found)).transpose().map_err(tollgate_dynamodb::Error::from)?)
}

/// The account's item names it no more, so that it proves nothing where this fails.
async fn drop_item(call: &Call<'_>, pk: &str) {
    if let Err(error) = call.delete(pk, &storage::removing()).await {
        tracing::warn!(%error, kind = Kind::Passkey.as_str(), "the item of a factor that was removed is left");
    }
}

/// Without anything of the caller's.
fn told(why: &Refusal) {
    match why {
        Refusal::Wrong(why) => tracing::info!(%why, "a passkey is refused"),
        Refusal::Cloned => {
            tracing::warn!("a passkey's counter went back: somebody may have a copy of it, and it is refused")
        }
    }
}
