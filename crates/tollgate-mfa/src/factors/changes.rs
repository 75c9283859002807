//! Changes of an account's factors: what was added or removed of late, and what factors prove while that can still be cancelled.
//!
//! ```text
//! what is enrolled                                    proves, until the cooldown of its change is over
//! the first factor, and nothing was changed of late   everything
//! any other, beside one that is not cooling           nothing
//! any other, and all that there are are cooling       enough to enrol and remove factors
//! ```
//!
//! A change of factors is what whoever has stolen a session or a code does next. Were what he has added to prove enough to enrol and
//! remove, he would remove his victim's own factor by it; so beside a factor that was there before it proves nothing. Nor does it take
//! anything from that factor, so that nobody loses his work by adding one, and no thief locks anybody out by it. Whoever removes the only
//! factor and enrols another has no first one: the removal is remembered for its cooldown.
//!
//! Invariants: within the cooldown of a change nothing that it added proves everything, whatever follows; what was there before and was not
//! removed proves what it did; what was removed is back once that is cancelled.

use super::account::{Account, CodeKind, Kind, Recovery, Totp};
use super::passkey::PasskeyId;
use super::random;
use super::totp::STEP;
use super::write::{Change, Check, Write};
use crate::error::Result;
use crate::grant::hashed;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use tollgate_core::Timestamp;

/// Changes of an account that can be cancelled at once, at most: each is told by messages, which cost something.
pub const MOST_CHANGES: usize = 12;

/// One factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Factor {
    /// The authenticator app.
    Totp,
    /// The recovery codes that were made last.
    Recovery,
    /// A passkey.
    Passkey(PasskeyId),
}

impl From<CodeKind> for Factor {
    fn from(kind: CodeKind) -> Self {
        match kind {
            CodeKind::Totp => Self::Totp,
            CodeKind::Recovery => Self::Recovery,
        }
    }
}

impl Factor {
    /// Its kind.
    #[must_use]
    pub fn kind(self) -> Kind {
        match self {
            Self::Totp => Kind::Totp,
            Self::Recovery => Kind::Recovery,
            Self::Passkey(_) => Kind::Passkey,
        }
    }
}

/// What a change does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Altered {
    /// The first factor is enrolled: it needs no cooldown.
    First(Factor),
    /// Another one is, or recovery codes are made anew.
    Added(Factor),
    /// One is removed.
    Removed(Factor),
    /// All passkeys are removed.
    RemovedPasskeys,
    /// Nothing yet: somebody asks for that, see [`request`](super::request).
    Requested,
    /// All factors are removed, since their owner has lost them.
    Recovered,
    /// What added it was cancelled after a change of several factors had taken it away: that brings it back no more. It cannot be cancelled.
    Cancelled(Factor),
}

impl Altered {
    /// The one factor that it is of; `None` if it is of several.
    #[must_use]
    pub fn factor(self) -> Option<Factor> {
        match self {
            Self::First(factor) | Self::Added(factor) | Self::Removed(factor) | Self::Cancelled(factor) => Some(factor),
            Self::RemovedPasskeys | Self::Recovered | Self::Requested => None,
        }
    }

    fn is_of_several(self) -> bool {
        self.factor().is_none()
    }

    /// As a word, in answers and logs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::First(_) | Self::Added(_) => "added",
            Self::Removed(_) | Self::RemovedPasskeys => "removed",
            Self::Requested => "requested",
            Self::Recovered => "recovered",
            Self::Cancelled(_) => "cancelled",
        }
    }

    /// The kind of factor; `None` if it is all of them.
    #[must_use]
    pub fn kind(self) -> Option<Kind> {
        match self {
            Self::RemovedPasskeys => Some(Kind::Passkey),
            of => of.factor().map(Factor::kind),
        }
    }

    /// Whether something is taken away, so that what is enrolled after it is no first factor.
    fn takes_away(self) -> bool {
        matches!(self, Self::Removed(_) | Self::RemovedPasskeys | Self::Recovered)
    }
}

/// What cancels a change: 256 random bits, as text 43 characters of base64url. It is a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct CancelToken(String);

impl CancelToken {
    /// A new one.
    ///
    /// # Errors
    ///
    /// [`Error::NoRandomness`](crate::Error::NoRandomness) if the system has none.
    pub fn random() -> Result<Self> {
        let mut bytes = [0; 32];
        random(&mut bytes)?;
        Ok(Self(URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// The token that somebody has sent; `None` for what has never been one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_one = text.len() == 43 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        is_one.then(|| Self(text.to_owned()))
    }

    /// As it stands in a link.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What the table knows it by.
    #[must_use]
    pub fn stored(&self) -> String {
        hashed(self.0.as_bytes())
    }

    /// What the account's item knows its change by.
    #[must_use]
    pub fn change(&self) -> ChangeId {
        let mut id = [0; 8];
        id.copy_from_slice(&Sha256::digest(format!("change {}", self.0))[..8]);
        ChangeId(id)
    }
}

/// Without the secret.
impl fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CancelToken(..)")
    }
}

/// What a change is known by in its account's item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChangeId(pub [u8; 8]);

impl fmt::Display for ChangeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl FromStr for ChangeId {
    type Err = NoChange;

    fn from_str(text: &str) -> std::result::Result<Self, NoChange> {
        let id = URL_SAFE_NO_PAD.decode(text).ok().and_then(|id| id.try_into().ok());
        id.map(Self).ok_or(NoChange)
    }
}

/// A change that can be cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Changed {
    /// What it is known by.
    pub id: ChangeId,
    /// What it has done.
    pub altered: Altered,
    /// Until when it can be cancelled; until then what it has added is cooling, unless it is a first factor. In whole seconds.
    pub until: Timestamp,
}

/// It is no text of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is not the text of a change")]
pub struct NoChange;

impl fmt::Display for Changed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, factor) = match self.altered {
            Altered::First(factor) => ('1', Some(factor)),
            Altered::Added(factor) => ('+', Some(factor)),
            Altered::Removed(factor) => ('~', Some(factor)),
            Altered::RemovedPasskeys => ('p', None),
            Altered::Requested => ('q', None),
            Altered::Recovered => ('r', None),
            Altered::Cancelled(factor) => ('x', Some(factor)),
        };
        write!(f, "{}.{}.{sign}", self.id, self.until.as_secs())?;
        match factor {
            Some(Factor::Totp) => f.write_str("t"),
            Some(Factor::Recovery) => f.write_str("r"),
            Some(Factor::Passkey(id)) => write!(f, "p{id}"),
            None => Ok(()),
        }
    }
}

impl FromStr for Changed {
    type Err = NoChange;

    fn from_str(text: &str) -> std::result::Result<Self, NoChange> {
        let mut parts = text.splitn(3, '.');
        let mut part = || parts.next().ok_or(NoChange);
        let (id, until, what) = (part()?, part()?, part()?);
        let id = id.parse()?;
        let until = until.parse().map(Timestamp::from_secs).map_err(|_| NoChange)?;
        let factor = |text: &str| match text {
            "t" => Ok(Factor::Totp),
            "r" => Ok(Factor::Recovery),
            text => {
                let id = text.strip_prefix('p').and_then(|id| id.parse().ok());
                id.map(Factor::Passkey).ok_or(NoChange)
            }
        };
        let altered = match (what.get(..1), what.get(1..).unwrap_or_default()) {
            (Some("1"), rest) => Altered::First(factor(rest)?),
            (Some("+"), rest) => Altered::Added(factor(rest)?),
            (Some("~"), rest) => Altered::Removed(factor(rest)?),
            (Some("x"), rest) => Altered::Cancelled(factor(rest)?),
            (Some("p"), "") => Altered::RemovedPasskeys,
            (Some("q"), "") => Altered::Requested,
            (Some("r"), "") => Altered::Recovered,
            _ => return Err(NoChange),
        };
        Ok(Self { id, altered, until })
    }
}

/// What a factor proves while there are changes that can be cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Standing {
    /// As much as it always does.
    Full,
    /// Enough to enrol and remove factors, until then.
    Enrols(Timestamp),
    /// Nothing, until then.
    Cooling(Timestamp),
}

/// What was taken away by a change, to be put back if it is cancelled.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Taken {
    /// The app.
    pub totp: Option<Totp>,
    /// The recovery codes that were left.
    pub recovery: Option<Recovery>,
    /// Passkeys; their items are kept for as long.
    pub passkeys: BTreeSet<PasskeyId>,
}

/// What becomes of a part of an account.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Part<T> {
    /// Nothing.
    #[default]
    Keep,
    /// It is not there any more.
    Drop,
    /// This takes its place.
    Put(T),
}

/// What becomes of the passkeys of an account.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum PasskeysPart {
    /// Nothing.
    #[default]
    Keep,
    /// None is the account's any more.
    Drop,
    /// These are as well.
    Add(BTreeSet<PasskeyId>),
    /// This one is not any more.
    Remove(PasskeyId),
}

/// Factors put back or dropped.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Patch {
    /// The app.
    pub totp: Part<Totp>,
    /// The recovery codes.
    pub recovery: Part<Recovery>,
    /// The passkeys.
    pub passkeys: PasskeysPart,
    /// Whether a request for recovery is over by it.
    pub ends_request: bool,
}

impl Account {
    /// What enrolling `factor` now is: the first only if there is none, and none was taken away of late.
    #[must_use]
    pub fn adds(&self, factor: Factor, now: Timestamp) -> Altered {
        let is_first = !self.has_factor() && self.weakened_until(now).is_none();
        if is_first { Altered::First(factor) } else { Altered::Added(factor) }
    }

    /// The changes after one more at `now`, those that cannot be cancelled any more left out; the error is when there is room again.
    ///
    /// # Errors
    ///
    /// There are [`MOST_CHANGES`].
    pub fn with_change(&self, change: Changed, now: Timestamp) -> std::result::Result<Vec<Changed>, Timestamp> {
        let mut open: Vec<_> = self.changes.iter().filter(|open| open.until > now).copied().collect();
        let earliest = open.iter().map(|open| open.until).min();
        match earliest.filter(|_| open.len() >= MOST_CHANGES) {
            Some(earliest) => Err(earliest),
            None => {
                open.push(change);
                Ok(open)
            }
        }
    }

    /// Until when a factor is cooling; `None` if it is not.
    #[must_use]
    pub fn cooling(&self, factor: Factor, now: Timestamp) -> Option<Timestamp> {
        let of_it = self.changes.iter().filter(|open| open.altered == Altered::Added(factor) && open.until > now);
        of_it.map(|open| open.until).max()
    }

    /// Until when something that was taken away can be put back; `None` if there is nothing. So long a code that is sent is no whole second
    /// factor.
    #[must_use]
    pub fn weakened_until(&self, now: Timestamp) -> Option<Timestamp> {
        let taken = self.changes.iter().filter(|open| open.altered.takes_away() && open.until > now);
        taken.map(|open| open.until).max()
    }

    /// The factors that it has.
    pub fn factors(&self) -> impl Iterator<Item = Factor> + '_ {
        let app = self.totp.iter().map(|_| Factor::Totp);
        let codes = (self.codes_left() > 0).then_some(Factor::Recovery);
        app.chain(codes).chain(self.passkeys.iter().copied().map(Factor::Passkey))
    }

    /// What `factor` proves now, as far as changes go.
    #[must_use]
    pub fn standing(&self, factor: Factor, now: Timestamp) -> Standing {
        let Some(until) = self.cooling(factor, now) else { return Standing::Full };
        let is_alone = self.factors().all(|other| self.cooling(other, now).is_some());
        if is_alone { Standing::Enrols(until) } else { Standing::Cooling(until) }
    }

    /// What `factor` will prove once it is enrolled now.
    #[must_use]
    pub fn standing_of_new(&self, factor: Factor, now: Timestamp, cooldown: Duration) -> Standing {
        if let Altered::First(_) = self.adds(factor, now) {
            return Standing::Full;
        }
        let until = until(now, cooldown);
        let is_alone = self.factors().all(|other| other == factor || self.cooling(other, now).is_some());
        if is_alone { Standing::Enrols(until) } else { Standing::Cooling(until) }
    }

    /// The change with that id, if it can be cancelled at `now`.
    #[must_use]
    pub fn change(&self, id: ChangeId, now: Timestamp) -> Option<Changed> {
        let can_be = |open: &&Changed| !matches!(open.altered, Altered::Cancelled(_));
        self.changes.iter().filter(can_be).find(|open| open.id == id && open.until > now).copied()
    }
}

/// A write that is a change of factors, which is remembered by the same write: the account must not have been changed since it was `seen`.
///
/// # Errors
///
/// When there is room for one more.
pub fn recorded(
    write: Write,
    seen: &Account,
    change: Changed,
    now: Timestamp,
) -> std::result::Result<Write, Timestamp> {
    let changes = seen.with_change(change, now)?;
    let mut checks = write.checks;
    checks.push(Check::ChangesAre(seen.changes.clone()));
    Ok(Write { checks, change: write.change, changes: Some(changes) })
}

/// When a change at `now` can be cancelled no more, a whole second.
#[must_use]
pub fn until(now: Timestamp, cooldown: Duration) -> Timestamp {
    Timestamp::from_secs((now + cooldown).as_secs() + 1)
}

/// The write that removes every factor of an account, which is what was requested.
#[must_use]
pub fn emptied() -> Write {
    let patch = Patch { totp: Part::Drop, recovery: Part::Drop, passkeys: PasskeysPart::Drop, ends_request: true };
    Write::new([], Change::Patch(patch))
}

/// The write that cancels `change`, which has `taken` that away, of an account that was `seen` since: each factor that the change was of is
/// again what it was before it, and whatever was done to it later is forgotten.
#[must_use]
pub fn cancelled(seen: &Account, change: &Changed, taken: &Taken, now: Timestamp) -> Write {
    let at = seen.changes.iter().position(|open| open.id == change.id).unwrap_or_default();
    let (earlier, later) = seen.changes.split_at(at);
    let back: BTreeSet<Factor> = match change.altered {
        Altered::First(factor) | Altered::Added(factor) | Altered::Removed(factor) => [factor].into(),
        _ => taken.factors().filter(|factor| !is_cancelled(seen, *factor, now)).collect(),
    };
    let of_it = |open: &Changed| open.altered.factor().is_some_and(|factor| back.contains(&factor));
    let rest = later.iter().skip(1).filter(|open| !of_it(open));
    let mut changes: Vec<_> = earlier.iter().chain(rest).copied().collect();
    // What it has added is in what a later change has taken away: that must not bring it back.
    let again = later.iter().skip(1).filter(|open| open.altered.is_of_several()).map(|open| open.until).max();
    if let (Altered::First(factor) | Altered::Added(factor), Some(until)) = (change.altered, again) {
        changes.push(Changed { id: change.id, altered: Altered::Cancelled(factor), until });
    }
    // No code of a step before counts, whoever may have seen one.
    let app = |app: &Totp| Totp { step: app.step.max(now.as_secs() / STEP), ..app.clone() };
    let is_back = |factor| back.contains(&factor);
    let passkeys = match change.altered.factor() {
        Some(Factor::Passkey(id)) if !taken.passkeys.contains(&id) => PasskeysPart::Remove(id),
        _ => {
            let some: BTreeSet<_> = taken.passkeys.iter().copied().filter(|id| is_back(Factor::Passkey(*id))).collect();
            if some.is_empty() { PasskeysPart::Keep } else { PasskeysPart::Add(some) }
        }
    };
    let patch = Patch {
        totp: part(is_back(Factor::Totp), taken.totp.as_ref().map(app)),
        recovery: part(is_back(Factor::Recovery), taken.recovery.clone()),
        passkeys,
        ends_request: false,
    };
    let checks = [Check::ChangesAre(seen.changes.clone())];
    Write { checks: checks.into(), change: Change::Patch(patch), changes: Some(changes) }
}

fn part<T>(is_back: bool, before: Option<T>) -> Part<T> {
    match (is_back, before) {
        (false, _) => Part::Keep,
        (true, Some(before)) => Part::Put(before),
        (true, None) => Part::Drop,
    }
}

/// Whether it was added by a change that is cancelled.
fn is_cancelled(seen: &Account, factor: Factor, now: Timestamp) -> bool {
    seen.changes.iter().any(|open| open.altered == Altered::Cancelled(factor) && open.until > now)
}

impl Taken {
    /// What a change of `account` takes away, and brings back if it is cancelled. What is cooling does not come back: it would be as if it
    /// had been there before.
    #[must_use]
    pub fn by(altered: Altered, account: &Account, now: Timestamp) -> Self {
        let goes = |factor: Factor| {
            let is_of_it = match altered {
                // New codes take the place of old ones.
                Altered::Added(Factor::Recovery) | Altered::First(Factor::Recovery) => factor == Factor::Recovery,
                Altered::Removed(removed) => factor == removed,
                Altered::RemovedPasskeys => factor.kind() == Kind::Passkey,
                Altered::Recovered => true,
                _ => false,
            };
            is_of_it && account.cooling(factor, now).is_none()
        };
        let passkeys = account.passkeys.iter().copied().filter(|id| goes(Factor::Passkey(*id)));
        Self {
            totp: account.totp.clone().filter(|_| goes(Factor::Totp)),
            recovery: account.recovery.clone().filter(|_| goes(Factor::Recovery)),
            passkeys: passkeys.collect(),
        }
    }

    fn factors(&self) -> impl Iterator<Item = Factor> + '_ {
        let app = self.totp.iter().map(|_| Factor::Totp);
        let codes = self.recovery.iter().map(|_| Factor::Recovery);
        app.chain(codes).chain(self.passkeys.iter().copied().map(Factor::Passkey))
    }
}
