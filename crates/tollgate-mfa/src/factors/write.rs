//! The conditional writes of an account's item, as data.
//!
//! [`Write::apply`] is the meaning of what `storage` renders. Invariant: a write changes an item only if all of its
//! checks hold, and then all of it.

use super::account::{Account, CodeKind, Kind, Pending, Recovery, Totp};
use super::changes::{Changed, Part, PasskeysPart, Patch};
use super::passkey::{MOST_PASSKEYS, PasskeyId};
use super::recovery::CodeHash;
use super::request::RecoveryRequest;
use super::tries::{Tries, Turn};
use std::collections::BTreeSet;
use tollgate_core::Timestamp;

/// A comparison of the item with a constant. An item that is not there is compared like an empty one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Check {
    /// There is no app.
    NoApp,
    /// There is nothing by which the account could step up.
    NoFactor,
    /// There are some.
    AnyCodes,
    /// Recovery codes were made last then, or never.
    CodesOf(Option<Timestamp>),
    /// That app is being set up.
    PendingIs(String),
    /// And can be confirmed.
    PendingAt(Timestamp),
    /// That is the app.
    AppIs(String),
    /// The last step that was accepted of it is before this one.
    StepBefore(u64),
    /// That recovery code is there.
    HasCode(CodeHash),
    /// It is that factor's turn: see [`Tries`].
    Turn(CodeKind, Timestamp),
    /// That passkey is the account's.
    HasPasskey(PasskeyId),
    /// It is not.
    LacksPasskey(PasskeyId),
    /// There can be one more: see [`MOST_PASSKEYS`].
    RoomForPasskey,
    /// There is such a factor.
    Has(Kind),
    /// These changes are remembered, and no others.
    ChangesAre(Vec<Changed>),
    /// That request for recovery is there, as it is, or none.
    RequestIs(Option<RecoveryRequest>),
}

impl Check {
    /// Whether `account` satisfies the check.
    #[must_use]
    pub fn holds(&self, account: &Account) -> bool {
        let pending = account.pending.as_ref();
        let app = account.totp.as_ref();
        match self {
            Self::NoApp => app.is_none(),
            Self::NoFactor => !account.has_factor(),
            Self::AnyCodes => account.codes_left() > 0,
            Self::CodesOf(since) => account.recovery.as_ref().map(|recovery| recovery.since) == *since,
            Self::PendingIs(sealed) => pending.is_some_and(|pending| pending.sealed == *sealed),
            Self::PendingAt(now) => pending.is_some_and(|pending| pending.until > *now),
            Self::AppIs(sealed) => app.is_some_and(|app| app.sealed == *sealed),
            Self::StepBefore(step) => app.is_some_and(|app| app.step < *step),
            Self::HasCode(code) => account.recovery.as_ref().is_some_and(|recovery| recovery.codes.contains(code)),
            Self::Turn(kind, now) => account.tries(*kind).turn(*now) == Turn::Now,
            Self::HasPasskey(id) => account.passkeys.contains(id),
            Self::LacksPasskey(id) => !account.passkeys.contains(id),
            Self::RoomForPasskey => account.passkeys.len() < MOST_PASSKEYS,
            Self::Has(Kind::Totp) => app.is_some(),
            Self::Has(Kind::Passkey) => !account.passkeys.is_empty(),
            Self::Has(Kind::Recovery) => account.recovery.is_some(),
            Self::ChangesAre(changes) => account.changes == *changes,
            Self::RequestIs(request) => account.request == *request,
        }
    }
}

/// What is written.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Change {
    /// An app is being set up, in the place of whatever was.
    Enrol(Pending),
    /// One more try of a factor, before it is known whether it is right.
    Count(CodeKind, Timestamp),
    /// The app that is being set up is one: a code of its was right.
    Confirm(Totp),
    /// A code of the app was right; its secret may be sealed anew by that.
    Pass {
        /// The step of the code.
        step: u64,
        /// The secret, sealed.
        sealed: String,
    },
    /// A recovery code is used.
    Use(CodeHash),
    /// New recovery codes take the place of all old ones.
    Generate(BTreeSet<CodeHash>, Timestamp),
    /// A passkey is the account's.
    AddPasskey(PasskeyId),
    /// It is not any more.
    RemovePasskey(PasskeyId),
    /// A factor is removed; of passkeys all are.
    Remove(Kind),
    /// Factors are put back or dropped.
    Patch(Patch),
    /// A request for recovery is made or approved; `None`: it is over.
    Request(Option<RecoveryRequest>),
}

/// One conditional write of one item.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Write {
    /// What the item must be like.
    pub checks: Vec<Check>,
    /// What becomes of it.
    pub change: Change,
    /// The changes of factors that are remembered from then on; `None`: those that were.
    pub changes: Option<Vec<Changed>>,
}

impl Write {
    /// A write of `change` where all of `checks` hold.
    #[must_use]
    pub fn new(checks: impl Into<Vec<Check>>, change: Change) -> Self {
        Self { checks: checks.into(), change, changes: None }
    }

    /// The item after the write, or `None` if its condition does not hold and nothing is written.
    #[must_use]
    pub fn apply(&self, account: Option<&Account>) -> Option<Account> {
        let mut account = account.cloned().unwrap_or_default();
        self.checks.iter().all(|check| check.holds(&account)).then(|| {
            self.change.make(&mut account);
            if let Some(changes) = &self.changes {
                account.changes.clone_from(changes);
            }
            account
        })
    }
}

impl Change {
    /// The factor whose tries are over with it, and whether what is being set up is.
    pub(crate) fn clears(&self) -> (Option<CodeKind>, bool) {
        match self {
            // Whoever requests something has not proved enough to end what is being set up.
            Self::Enrol(_) | Self::Count(..) | Self::Request(_) => (None, false),
            Self::Pass { .. } => (Some(CodeKind::Totp), false),
            Self::Use(_) => (Some(CodeKind::Recovery), false),
            // Whoever has set it up may have done so while there was less to prove.
            Self::Confirm(_) => (Some(CodeKind::Totp), true),
            Self::Generate(..) => (Some(CodeKind::Recovery), true),
            Self::AddPasskey(_) | Self::RemovePasskey(_) | Self::Patch(_) => (None, true),
            Self::Remove(kind) => (kind.of_codes(), true),
        }
    }

    fn make(&self, account: &mut Account) {
        let (tries, pending) = self.clears();
        if let Some(kind) = tries {
            *account.tries_mut(kind) = Tries::default();
        }
        if pending {
            account.pending = None;
        }
        match self {
            Self::Enrol(pending) => account.pending = Some(pending.clone()),
            Self::Count(kind, now) => {
                let tries = account.tries_mut(*kind);
                *tries = tries.and_one(*now);
            }
            Self::Confirm(totp) => account.totp = Some(totp.clone()),
            Self::Pass { step, sealed } => {
                if let Some(app) = &mut account.totp {
                    (app.step, app.sealed) = (*step, sealed.clone());
                }
            }
            Self::Use(code) => {
                if let Some(recovery) = &mut account.recovery {
                    recovery.codes.remove(code);
                }
            }
            Self::Generate(codes, since) => {
                account.recovery = Some(Recovery { since: *since, codes: codes.clone() });
            }
            Self::AddPasskey(id) => {
                account.passkeys.insert(*id);
            }
            Self::RemovePasskey(id) => {
                account.passkeys.remove(id);
            }
            Self::Patch(patch) => patch.make(account),
            Self::Request(request) => account.request.clone_from(request),
            Self::Remove(Kind::Totp) => account.totp = None,
            Self::Remove(Kind::Passkey) => account.passkeys.clear(),
            Self::Remove(Kind::Recovery) => account.recovery = None,
        }
    }
}

impl Patch {
    fn make(&self, account: &mut Account) {
        if self.ends_request {
            account.request = None;
        }
        match &self.totp {
            Part::Keep => {}
            Part::Drop => (account.totp, account.totp_tries) = (None, Tries::default()),
            Part::Put(app) => (account.totp, account.totp_tries) = (Some(app.clone()), Tries::default()),
        }
        match &self.recovery {
            Part::Keep => {}
            Part::Drop => (account.recovery, account.recovery_tries) = (None, Tries::default()),
            Part::Put(codes) => (account.recovery, account.recovery_tries) = (Some(codes.clone()), Tries::default()),
        }
        match &self.passkeys {
            PasskeysPart::Keep => {}
            PasskeysPart::Drop => account.passkeys.clear(),
            PasskeysPart::Add(ids) => account.passkeys.extend(ids),
            PasskeysPart::Remove(id) => {
                account.passkeys.remove(id);
            }
        }
    }
}
