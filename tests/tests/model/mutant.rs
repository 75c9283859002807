//! The protocol minus one guard: what must be caught if the model is worth anything.
//!
//! A mutant changes a [`Write`] on its way to the table, so everything else is the real protocol: it weakens the condition,
//! or leaves out something that later calls go by.

use tollgate_core::write::{Assign, ItemCheck};
use tollgate_core::{Check, LimitWrite, Ticks, Timestamp, Write};

/// Which guard is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Mutant {
    /// None: the real protocol.
    None,
    /// The busy form does not check `f = mine`.
    BusyWithoutTerms,
    /// The busy form has no ceiling: it adds to a bucket without tokens.
    BusyWithoutCeiling,
    /// The busy form has no floor: it adds to a bucket that has been full for long, which saves tokens beyond the burst.
    BusyWithoutFloor,
    /// The idle form does not check `f = mine`.
    IdleWithoutTerms,
    /// The idle form does not check `tat < now`.
    IdleWithoutTat,
    /// The change form does not check the `tat` seen.
    ChangeWithoutTat,
    /// The change form does not check the `f` seen.
    ChangeWithoutTerms,
    /// The change form does not check the `b` seen.
    ChangeWithoutBusyPeriod,
    /// The change form checks neither the `f` nor the `b` seen.
    ChangeWithoutTermsAndBusyPeriod,
    /// No form checks the item's horizon.
    WithoutHorizon,
    /// The item expires as soon as it is written.
    WithoutMemory,
    /// A change of terms does not leave the instant that it reckoned debt at.
    ChangeWithoutSince,
    /// A write whose reply was lost is sent again.
    RetriesAmbiguous,
}

/// The form of a limit's part of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Busy,
    Idle,
    Change,
}

/// Which form `limit` is.
pub(crate) fn form(limit: &LimitWrite) -> Form {
    match (&limit.assign, limit.or_absent) {
        (Assign::Extend { .. }, _) => Form::Busy,
        (Assign::Replace(_), true) => Form::Idle,
        (Assign::Replace(_), false) => Form::Change,
    }
}

impl Mutant {
    /// The write as it reaches the table.
    pub(crate) fn weaken(self, write: &Write) -> Write {
        let mut write = write.clone();
        match self {
            Self::WithoutHorizon => write.checks.retain(|check| !matches!(check, ItemCheck::HorizonAtMost(_))),
            Self::WithoutMemory => write.expires_at -= write.horizon + 1,
            _ => write.limits.iter_mut().for_each(|limit| self.weaken_limit(limit)),
        }
        write
    }

    fn weaken_limit(self, limit: &mut LimitWrite) {
        let form = form(limit);
        if let (Self::ChangeWithoutSince, Form::Change, Assign::Replace(next)) = (self, form, &mut limit.assign) {
            next.busy_period.since = Timestamp::default();
        }
        let floor = Ticks(i128::MIN);
        for check in &mut limit.checks {
            match (self, check) {
                (Self::BusyWithoutCeiling, Check::TatBetween(_, to)) => *to = Ticks(i128::MAX),
                (Self::BusyWithoutFloor, Check::TatBetween(from, _)) => *from = floor,
                _ => {}
            }
        }
        limit.checks.retain(|check| !match (self, form) {
            (Self::BusyWithoutTerms, Form::Busy)
            | (Self::IdleWithoutTerms, Form::Idle)
            | (Self::ChangeWithoutTerms, Form::Change) => matches!(check, Check::TermsAre(_)),
            (Self::IdleWithoutTat, Form::Idle) => matches!(check, Check::TatBelow(_)),
            (Self::ChangeWithoutTat, Form::Change) => matches!(check, Check::TatIs(_)),
            (Self::ChangeWithoutBusyPeriod, Form::Change) => matches!(check, Check::BusyPeriodIs(_)),
            (Self::ChangeWithoutTermsAndBusyPeriod, Form::Change) => {
                matches!(check, Check::TermsAre(_) | Check::BusyPeriodIs(_))
            }
            _ => false,
        });
    }
}
