//! What a factor of an account proves, by the rules that are in force; what the account lacks.
//!
//! Invariant: stricter rules that somebody can keep, and fewer factors, never make one prove more.

use crate::distinct::distinct;
use crate::factors::{Account, Kind, Tries};
use std::collections::BTreeSet;
use tollgate_core::Timestamp;
use tollgate_policy::{FactorKind, FactorRules};

/// What an account has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Held {
    /// Kinds.
    pub kinds: BTreeSet<FactorKind>,
    /// Those of them that no code can be tried of any more.
    pub locked: BTreeSet<FactorKind>,
    /// Those of which all that there are were added of late: nobody is kept from what he has by what a thief adds.
    pub cooling: BTreeSet<FactorKind>,
    /// Whether something was taken away of late: then what is sent is no whole factor.
    pub is_weakened: bool,
}

/// What a right code proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Proves {
    /// Enough to enrol and remove factors.
    Enrolment,
    /// Everything that a second factor is asked for.
    Everything,
}

/// Why a factor proves nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// The rules do not allow it.
    NotAllowed,
    /// It is a fallback, and the account has that one.
    Stronger(FactorKind),
    /// It may be what was signed in by.
    SameFactor,
}

impl From<Kind> for FactorKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Totp => Self::Totp,
            Kind::Passkey => Self::Passkey,
            Kind::Recovery => Self::Recovery,
        }
    }
}

impl Held {
    /// What an account has; recovery codes that are used up are none.
    #[must_use]
    pub fn of(account: &Account, now: Timestamp) -> Self {
        let has = |kind: Kind| match kind {
            Kind::Totp => account.totp.is_some(),
            Kind::Passkey => !account.passkeys.is_empty(),
            Kind::Recovery => account.codes_left() > 0,
        };
        let held: Vec<_> = Kind::ALL.into_iter().filter(|kind| has(*kind)).collect();
        // What nobody can guess is never locked.
        let is_locked = |kind: &&Kind| kind.of_codes().is_some_and(|kind| account.tries(kind).wrong >= Tries::MOST);
        let locked = held.iter().filter(is_locked).map(|kind| FactorKind::from(*kind)).collect();
        let cools = |kind: &&Kind| {
            let mut of_it = account.factors().filter(|factor| factor.kind() == **kind);
            of_it.all(|factor| account.cooling(factor, now).is_some())
        };
        let cooling = held.iter().filter(cools).map(|kind| FactorKind::from(*kind)).collect();
        let is_weakened = account.weakened_until(now).is_some();
        Self { kinds: held.into_iter().map(FactorKind::from).collect(), locked, cooling, is_weakened }
    }

    /// The same with one more.
    #[must_use]
    pub fn with(mut self, kind: FactorKind) -> Self {
        self.locked.remove(&kind);
        self.kinds.insert(kind);
        self
    }
}

/// What an account lacks of what is asked for; each kind that would count, where any does. A kind that a tenant requires and the file has
/// taken away since is not asked for: nobody can have it. (What is weaker does not prove everything for that.)
#[must_use]
pub fn missing(rules: &FactorRules, held: &Held) -> BTreeSet<FactorKind> {
    let open = |kind: &FactorKind| !held.kinds.contains(kind);
    let mut missing: BTreeSet<_> =
        rules.required.iter().copied().filter(|kind| rules.allowed.contains(kind)).filter(open).collect();
    let (had, others): (Vec<_>, Vec<_>) = rules.enrollable().partition(|kind| !open(kind));
    // No more than there is: rules of which the file has taken a kind away since ask for the rest.
    let least = usize::try_from(rules.minimum).unwrap_or(usize::MAX).min(had.len() + others.len());
    if had.len() + missing.len() < least {
        missing.extend(others);
    }
    missing
}

/// What a right code of a factor proves, `second` by its methods, for somebody who has signed in by `first` and has these factors.
///
/// # Errors
///
/// Why it proves nothing, however right it is.
pub fn judge<A: AsRef<str>, B: AsRef<str>>(
    rules: &FactorRules,
    held: &Held,
    kind: FactorKind,
    first: &[A],
    second: &[B],
) -> Result<Proves, Refused> {
    if !rules.allowed.contains(&kind) {
        return Err(Refused::NotAllowed);
    }
    if !distinct(first, second) {
        return Err(Refused::SameFactor);
    }
    // A wait is not enough: whoever guesses on purpose must not be able to choose the weaker one.
    let counts = |other: &FactorKind| !held.locked.contains(other) && !held.cooling.contains(other);
    let stronger = rules.enrollable().find(|other| held.kinds.contains(other) && counts(other));
    if let Some(stronger) = stronger.filter(|_| kind.is_sent()) {
        return Err(Refused::Stronger(stronger));
    }
    // By the strongest: a kind that is required beside it must not make it less.
    let is_strong_enough = rules.required.last().is_none_or(|strongest| kind >= *strongest);
    let is_complete = missing(rules, held).is_empty();
    let is_whole = !(kind.is_sent() && held.is_weakened);
    Ok(if is_strong_enough && is_complete && is_whole { Proves::Everything } else { Proves::Enrolment })
}
