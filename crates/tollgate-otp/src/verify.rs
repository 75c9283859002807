//! Verifying a code: the attempt is counted, then compared, then the code is used.
//!
//! ```text
//! count   challenge = mine AND valid_until > now AND unused AND attempts < 5 AND guesses < budget   attempts + 1, guesses + 1
//! use     challenge = mine AND valid_until > now AND unused                                         used, guesses - 1
//! ```
//!
//! The first write hands out what is stored of the code, and it hands it out at most so often. Comparing in its condition would
//! count nothing where the code is wrong, and comparing before it would let any number of callers at once compare; the
//! second write is what one of any number of right ones succeeds with.
//!
//! Invariants: what is compared has been counted; nobody is verified unless his own second write was applied; what names another
//! challenge counts nothing.

use crate::challenge::{ChallengeId, Recipient};
use crate::code::Code;
use crate::item::Item;
use crate::write::{Change, Check, Expect, Write};
use std::time::Duration;
use tollgate_core::Timestamp;
use tollgate_policy::{KeySecrets, OtpRules};

/// What is said of a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verification {
    /// It was right, and is used now.
    Verified,
    /// It was wrong.
    WrongCode {
        /// How often this code can still be tried.
        attempts_left: u32,
    },
    /// There is no such code: it was used, has expired, another one was sent since, or it is for another purpose or
    /// account. Nothing was counted.
    NoActive,
    /// It was tried as often as it can be, or the account was. Nothing was compared.
    Locked {
        /// How long until another code may be sent.
        retry_after: Duration,
    },
}

/// What comes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// This write.
    Write(Write),
    /// Nothing: this is the answer.
    Done(Verification),
}

/// A code that somebody has typed.
#[derive(Debug, Clone, Copy)]
pub struct Attempt<'a> {
    rules: &'a OtpRules,
    secrets: &'a KeySecrets,
    recipient: &'a Recipient,
    challenge: ChallengeId,
    code: &'a Code,
}

impl<'a> Attempt<'a> {
    /// `recipient` types `code` as that of `challenge`.
    #[must_use]
    pub fn new(
        rules: &'a OtpRules,
        secrets: &'a KeySecrets,
        recipient: &'a Recipient,
        challenge: ChallengeId,
        code: &'a Code,
    ) -> Self {
        Self { rules, secrets, recipient, challenge, code }
    }

    /// The first write: the attempt is counted.
    #[must_use]
    pub fn count(&self, now: Timestamp) -> Write {
        let mut checks = self.active(now);
        checks.extend([Check::AttemptsBelow(self.rules.attempts), Check::GuessesBelow(self.rules.budget)]);
        Write { expect: Expect::Present(checks), change: Change::Count }
    }

    /// What follows once it is counted in `item`: the code is compared.
    #[must_use]
    pub fn counted(&self, item: &Item, now: Timestamp) -> Next {
        // A secret that is gone has taken its codes along.
        if !self.secrets.ids().any(|id| id == item.digest.kid()) {
            return Next::Done(Verification::NoActive);
        }
        if !self.recipient.matches(self.secrets, self.challenge, self.code, &item.digest) {
            let (of_code, of_account) = (self.rules.attempts, self.rules.budget);
            let left = of_code.saturating_sub(item.attempts).min(of_account.saturating_sub(item.guesses));
            return Next::Done(Verification::WrongCode { attempts_left: left });
        }
        // By the clock as it is now: the answer to the first write may have been what set it right.
        Next::Write(Write { expect: Expect::Present(self.active(now)), change: Change::Use(now) })
    }

    /// What is said where the first write, made at `now`, was refused for what was `found`.
    #[must_use]
    pub fn uncounted(&self, found: Option<&Item>, now: Timestamp) -> Verification {
        let Some(item) = found.filter(|item| item.is_active(self.challenge, now)) else {
            return Verification::NoActive;
        };
        let of_account = item.window_rest(now).filter(|_| item.guesses >= self.rules.budget);
        Verification::Locked { retry_after: of_account.unwrap_or_default().max(item.cooldown_rest(now)) }
    }

    fn active(&self, now: Timestamp) -> Vec<Check> {
        vec![Check::ChallengeIs(self.challenge), Check::ValidAt(now), Check::Unused]
    }
}
