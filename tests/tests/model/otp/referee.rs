//! What has happened, in true time, told apart from the code under test; and what must not.

use super::scenario::{Nth, Scenario};
use std::collections::BTreeMap;

/// What went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Fault {
    /// Two were told that they typed the code of one message.
    VerifiedTwice,
    /// Somebody was verified by a wrong code.
    WrongVerified,
    /// Somebody was verified by a code after another one was stored.
    SupersededVerified,
    /// Somebody was verified after the code's time.
    ExpiredVerified,
    /// More was compared with a code than it can be tried.
    CodeGuessed,
    /// More wrong guesses were compared in an account's window than its budget.
    AccountGuessed,
    /// Something was counted for a code that was not the last one, was used, or had expired.
    CountedInactive,
    /// A message went out for a code that the table does not have.
    SentUnstored,
    /// A message went out before the cooldown of the last one was over.
    SentTooSoon,
    /// A code was stored for an account that had used its budget up.
    SentWhileLocked,
    /// Somebody was told that there is no such code, or that it is locked, when it was not so.
    RefusedActive,
    /// Somebody had the right code compared, by a process that has its secret, and was told that it is wrong.
    RightRefused,
    /// An answer took more writes than it may.
    TooManyWrites,
}

/// Something interesting that has to happen, or a run would prove nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    Verified,
    WrongCode,
    NoActive,
    /// The code had been tried as often as it can be.
    CodeLocked,
    /// The account had.
    AccountLocked,
    /// No code was sent, since the last one was sent a moment ago.
    TooSoon,
    /// No code was sent, since the account was locked.
    SendLocked,
    /// A code was sent that took the place of another one.
    Resent,
    /// A window began anew.
    NewWindow,
    /// The right code was no longer good when it was to be used.
    UseRefused,
    /// A code was compared by a process that has not its secret.
    SecretGone,
    /// Somebody did not hear of a write that was applied.
    LostAfterApply,
    /// A write was applied after its maker had given up.
    AppliedLate,
    /// The table deleted the item.
    Deleted,
}

/// A code that the table has been given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Stored {
    /// When it was made.
    made: u64,
    /// How often something was compared with it.
    compared: u8,
    used: bool,
    told: bool,
}

/// The referee's account.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(crate) struct Referee {
    stored: BTreeMap<Nth, Stored>,
    last: Option<Nth>,
    /// When the last message went out, and of which code each was.
    sent: Option<u64>,
    messages: Vec<Nth>,
    /// When the account's window began.
    window: Option<u64>,
    /// What was counted in it, but for right codes that were used; and what of it was wrong.
    guesses: u8,
    wrong: u8,
}

impl Referee {
    /// The code of the last message, and of the first.
    pub(crate) fn messages(&self) -> Option<(Nth, Nth)> {
        Some((*self.messages.last()?, *self.messages.first()?))
    }

    /// A code was stored that was made at `made`. Whether a window began.
    pub(crate) fn stores(&mut self, scenario: &Scenario, n: Nth, made: u64) -> (bool, Option<Fault>) {
        let window = scenario.world.rules().window.as_secs();
        let is_new = self.window.is_none_or(|began| made + scenario.spread() >= began + window);
        let is_locked = !is_new && u32::from(self.guesses) >= scenario.world.rules().budget;
        if is_new {
            (self.window, self.guesses, self.wrong) = (Some(made), 0, 0);
        }
        self.stored.insert(n, Stored { made, compared: 0, used: false, told: false });
        self.last = Some(n);
        (is_new, is_locked.then_some(Fault::SentWhileLocked))
    }

    /// A message of it goes out, which was made at `made`.
    pub(crate) fn sends(&mut self, scenario: &Scenario, n: Nth, made: u64) -> Option<Fault> {
        let cooldown = scenario.world.rules().cooldown.first().as_secs();
        let before = self.sent.replace(made);
        self.messages.push(n);
        if !self.stored.contains_key(&n) {
            return Some(Fault::SentUnstored);
        }
        before.is_some_and(|before| made + scenario.spread() < before + cooldown).then_some(Fault::SentTooSoon)
    }

    /// An attempt at `n`, made at `made`, was counted for the code `found`.
    pub(crate) fn counts(&mut self, scenario: &Scenario, n: Nth, found: Nth, made: u64) -> Option<Fault> {
        self.guesses += 1;
        let is_active = found == n && self.last == Some(n) && !self.stored[&n].used;
        let end = self.stored[&found].made + scenario.world.rules().ttl.as_secs() + scenario.spread();
        (!is_active || made >= end).then_some(Fault::CountedInactive)
    }

    /// Something that was typed for `n` can be compared with what is stored of `found`.
    pub(crate) fn compares(&mut self, scenario: &Scenario, found: Nth, is_right: bool) -> Option<Fault> {
        let stored = self.stored.get_mut(&found).unwrap();
        stored.compared += 1;
        self.wrong += u8::from(!is_right);
        let rules = scenario.world.rules();
        if u32::from(stored.compared) > rules.attempts {
            return Some(Fault::CodeGuessed);
        }
        (u32::from(self.wrong) > rules.budget).then_some(Fault::AccountGuessed)
    }

    /// A code is used.
    pub(crate) fn uses(&mut self, n: Nth) {
        self.guesses -= 1;
        self.stored.get_mut(&n).unwrap().used = true;
    }

    /// Somebody is told that he is verified, by a write that was applied at `at`, when `last` was the last code.
    pub(crate) fn verifies(
        &mut self,
        scenario: &Scenario,
        n: Nth,
        is_right: bool,
        at: u64,
        last: Nth,
    ) -> Option<Fault> {
        let stored = self.stored.get_mut(&n).unwrap();
        let end = stored.made + scenario.world.rules().ttl.as_secs() + scenario.spread() + Scenario::DEADLINE;
        let twice = std::mem::replace(&mut stored.told, true);
        let faults = [
            (twice, Fault::VerifiedTwice),
            (!is_right, Fault::WrongVerified),
            (last != n, Fault::SupersededVerified),
            (at >= end, Fault::ExpiredVerified),
        ];
        faults.into_iter().find(|(is_so, _)| *is_so).map(|(_, fault)| fault)
    }

    /// The last code.
    pub(crate) fn last(&self) -> Option<Nth> {
        self.last
    }

    /// Whether an attempt at `n`, made at `made`, ought to have been counted.
    pub(crate) fn is_open(&self, scenario: &Scenario, n: Nth, made: u64) -> bool {
        let rules = scenario.world.rules();
        let Some(stored) = self.stored.get(&n).filter(|stored| self.last == Some(n) && !stored.used) else {
            return false;
        };
        let tried = u32::from(stored.compared) >= rules.attempts || u32::from(self.guesses) >= rules.budget;
        !tried && made + scenario.spread() < stored.made + rules.ttl.as_secs()
    }
}
