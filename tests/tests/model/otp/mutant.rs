//! The protocol minus one guard. A mutant changes a [`Write`] on its way to the table, or the order in which somebody goes.

use super::scenario::Keyring;
use tollgate_otp::write::{Change, Check, Expect, Write};

/// Which guard is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Mutant {
    /// None: the real protocol.
    None,
    /// One write compares and uses: it requires the digest of what was typed, and what is wrong counts nothing.
    ComparesInCondition,
    /// What is stored is read and compared first, and what was wrong counted afterwards.
    CountsAfterComparing,
    /// The count does not ask for one of its conditions, and so on.
    CountsWithoutChallenge,
    CountsWithoutTime,
    CountsUsed,
    CountsWithoutAttempts,
    CountsWithoutBudget,
    UsesWithoutChallenge,
    UsesWithoutTime,
    UsesUsed,
    /// The right code is marked as used without any condition.
    UsesBlindly,
    /// A blind send does not ask whether the cooldown is over.
    SendsWithoutCooldown,
    /// A blind send does not ask whether the window is over.
    SendsWithoutWindow,
    /// A send that has seen the item does not ask whether another code was sent since.
    SendsWithoutChallenge,
    /// Nor whether the account has been locked since.
    SendsWithoutBudget,
    /// A new code brings a new budget.
    SendsNewBudget,
    /// A message goes out though nobody knows whether its code was stored.
    SendsUnconfirmed,
    /// The item may be deleted once its code has expired.
    ForgetsAccount,
    /// What is stored is compared under the active secret alone.
    VerifiesByActive,
}

impl Mutant {
    /// The write as it reaches the table.
    pub(crate) fn weaken(self, write: &Write) -> Write {
        let mut sent = write.clone();
        if let Change::Send(sending) = &mut sent.change {
            match self {
                Self::SendsNewBudget if sending.window.is_none() => sending.window = Some(sending.valid_until),
                Self::ForgetsAccount => sending.expires_at = sending.valid_until.as_secs(),
                _ => {}
            }
        }
        let is_blind = matches!(sent.expect, Expect::AbsentOr(_));
        let change = sent.change.clone();
        let (Expect::AbsentOr(checks) | Expect::Present(checks)) = &mut sent.expect;
        checks.retain(|check| !match (self, &change) {
            (Self::CountsWithoutChallenge, Change::Count) | (Self::UsesWithoutChallenge, Change::Use(_)) => {
                matches!(check, Check::ChallengeIs(_))
            }
            (Self::CountsWithoutTime, Change::Count) | (Self::UsesWithoutTime, Change::Use(_)) => {
                matches!(check, Check::ValidAt(_))
            }
            (Self::CountsUsed, Change::Count) | (Self::UsesUsed, Change::Use(_)) => matches!(check, Check::Unused),
            (Self::UsesBlindly, Change::Use(_)) => true,
            (Self::CountsWithoutAttempts, _) => matches!(check, Check::AttemptsBelow(_)),
            (Self::CountsWithoutBudget, Change::Count) | (Self::SendsWithoutBudget, Change::Send(_)) => {
                matches!(check, Check::GuessesBelow(_))
            }
            (Self::SendsWithoutCooldown, _) => matches!(check, Check::CooldownOver(_)),
            (Self::SendsWithoutWindow, _) => matches!(check, Check::WindowOver(_)),
            (Self::SendsWithoutChallenge, Change::Send(_)) => !is_blind && matches!(check, Check::ChallengeIs(_)),
            _ => false,
        });
        sent
    }

    /// The secrets that somebody with these compares by.
    pub(crate) fn verifies_by(self, keyring: Keyring) -> Keyring {
        if self == Self::VerifiesByActive && keyring == Keyring::Both { Keyring::New } else { keyring }
    }
}

/// The count of an attempt that was compared already.
pub(crate) fn late_count() -> Write {
    Write { expect: Expect::Present(Vec::new()), change: Change::Count }
}

/// Whether that is what `write` is.
pub(crate) fn is_late_count(write: &Write) -> bool {
    *write == late_count()
}
