//! The protocol minus one guard: what must be caught if the model is worth anything.
//!
//! A mutant changes a [`Write`] on its way to the table, so everything else is the real protocol: it weakens the condition,
//! or leaves out something that later calls go by. Some reckon a refund otherwise: see [`Giving`](crate::refunds::Giving).

use tollgate_core::penalty::PenaltyExpect;
use tollgate_core::write::{Assign, ItemCheck};
use tollgate_core::{Check, Expect, Item, LimitWrite, Ticks, Timestamp, Write};

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
    /// The exact form does not check the `tat` seen.
    ExactWithoutTat,
    /// The exact form does not check the `f` seen.
    ExactWithoutTerms,
    /// The exact form does not check the `b` seen.
    ExactWithoutBusyPeriod,
    /// The exact form checks neither the `f` nor the `b` seen.
    ExactWithoutTermsAndBusyPeriod,
    /// The exact form does not check the `g` seen.
    ExactWithoutGross,
    /// The exact form checks neither the `tat` nor the `g` seen.
    ExactWithoutTatAndGross,
    /// No form checks the item's horizon.
    WithoutHorizon,
    /// The item expires as soon as it is written.
    WithoutMemory,
    /// A change of terms does not leave the instant that it reckoned debt at.
    ChangeWithoutSince,
    /// A write whose reply was lost is sent again.
    RetriesAmbiguous,
    /// A refund gives the whole charge back, whatever has become of the bucket.
    RefundsAll,
    /// A refund gives the whole charge back within its busy period.
    RefundsAllOfItsBusyPeriod,
    /// A refund gives back what lies ahead of the slot as it was charged, wherever other refunds have moved it.
    RefundsIgnoringOthers,
    /// A refund reckons with a bucket that began another busy period as if it were the charge's.
    RefundsInAnyBusyPeriod,
    /// A refund does not check the `b` seen.
    RefundWithoutBusyPeriod,
    /// What settles a charge does not check that its entry is there.
    SettlesWithoutEntry,
    /// A refund does not check the `g` seen, so not whether anything was charged since.
    RefundWithoutGross,
    /// The busy form does not check the hold.
    BusyWithoutHold,
    /// The idle form does not check the hold.
    IdleWithoutHold,
    /// The exact form does not check the hold.
    ExactWithoutHold,
    /// A write that expects a hold takes none for it.
    HoldMayBeAbsent,
    /// A write that expects a hold takes any other for it.
    AnyHold,
    /// What has ended of a hold is removed whatever the hold is by then.
    LapseWithoutHold,
    /// `expires_at` does not wait for the end of the hold.
    ExpiresBeforeHold,
    /// A caller that knows of a ban goes on asking for it to be there.
    ProbesUnderBan,
    /// A write that charges does not ask whether the limit is locked.
    ChargesWhileLocked,
    /// What was taken ahead is spent at any time.
    LeaseNeverEnds,
    /// What was taken ahead is spent until its slot ends.
    LeaseUntilSlotEnds,
    /// Tokens are taken ahead of a bucket that others give back to.
    LeaseOfUnleased,
    /// A lock is set whatever lock there is by then.
    LocksUnseen,
    /// A lock is remembered for no longer than a limit of a burst of 2 at 1/s.
    ForgetsLevels,
}

/// The form of a limit's part of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Busy,
    Idle,
    Exact,
    Refund,
}

/// Which form `limit` is.
pub(crate) fn form(limit: &LimitWrite) -> Form {
    match (&limit.assign, &limit.expect) {
        (Assign::Extend { .. }, _) => Form::Busy,
        (Assign::Replace(_), Expect::AbsentOr(_)) => Form::Idle,
        (Assign::Replace(_), Expect::Absent | Expect::Present(_)) => Form::Exact,
        (Assign::GiveBack { .. }, _) => Form::Refund,
    }
}

impl Mutant {
    /// The write, dated by `secs` of epoch time, as it reaches the table, where it finds `item`.
    pub(crate) fn weaken(self, write: &Write, secs: u64, item: Option<&Item>) -> Write {
        let mut sent = write.clone();
        match self {
            Self::WithoutHorizon => sent.checks.retain(|check| !matches!(check, ItemCheck::HorizonAtMost(_))),
            Self::WithoutMemory => {
                if let Some(memory) = &mut sent.memory {
                    memory.expires_at -= memory.horizon + 1;
                }
            }
            Self::ExpiresBeforeHold => {
                if let Some(memory) = &mut sent.memory {
                    memory.expires_at = memory.expires_at.min(secs + memory.horizon + 1);
                }
            }
            Self::ForgetsLevels => {
                if let Some(memory) = &mut sent.memory {
                    memory.expires_at = memory.expires_at.min(secs + 366);
                }
            }
            _ => {
                self.weaken_hold(&mut sent, item);
                self.weaken_penalties(&mut sent, item);
                for limit in &mut sent.limits {
                    self.weaken_limit(limit, form(limit));
                }
            }
        }
        sent
    }

    fn weaken_hold(self, write: &mut Write, item: Option<&Item>) {
        let unguarded = match self {
            Self::BusyWithoutHold => Some(Form::Busy),
            Self::IdleWithoutHold => Some(Form::Idle),
            Self::ExactWithoutHold => Some(Form::Exact),
            _ => None,
        };
        let found = item.and_then(|item| item.hold.as_ref());
        let is_unguarded = write.limits.iter().any(|limit| Some(form(limit)) == unguarded)
            || (self == Self::LapseWithoutHold && write.hold.is_some() && !write.limits.is_empty());
        write.checks.retain(|check| match check {
            ItemCheck::HorizonAtMost(_) => true,
            ItemCheck::HoldIs(Some(_)) if self == Self::HoldMayBeAbsent => found.is_some(),
            ItemCheck::HoldIs(Some(_)) if self == Self::AnyHold => found.is_none(),
            ItemCheck::HoldIs(_) => !is_unguarded,
        });
    }

    fn weaken_penalties(self, write: &mut Write, item: Option<&Item>) {
        if self == Self::ChargesWhileLocked {
            write.penalties.retain(|part| !matches!(part.expect, PenaltyExpect::Unlocked(_)));
        }
        if self == Self::LocksUnseen {
            for part in &mut write.penalties {
                if let PenaltyExpect::Is(seen) = &mut part.expect {
                    *seen = item.and_then(|item| item.penalties.get(&part.limit)).copied();
                }
            }
        }
    }

    fn weaken_limit(self, limit: &mut LimitWrite, form: Form) {
        if let (Self::ChangeWithoutSince, Form::Exact, Assign::Replace(next)) = (self, form, &mut limit.assign) {
            next.busy_period.since = Timestamp::default();
        }
        let (Expect::AbsentOr(checks) | Expect::Present(checks)) = &mut limit.expect else { return };
        for check in &mut *checks {
            match (self, check) {
                (Self::BusyWithoutCeiling, Check::TatBetween(_, to) | Check::TatAtMost(to)) => *to = Ticks(i128::MAX),
                (Self::BusyWithoutFloor, Check::TatBetween(from, _)) => *from = Ticks(i128::MIN),
                _ => {}
            }
        }
        checks.retain(|check| !match (self, form) {
            (Self::BusyWithoutTerms, Form::Busy)
            | (Self::IdleWithoutTerms, Form::Idle)
            | (Self::ExactWithoutTerms, Form::Exact) => matches!(check, Check::TermsAre(_)),
            (Self::IdleWithoutTat, Form::Idle) => matches!(check, Check::TatBelow(_)),
            (Self::ExactWithoutTat, Form::Exact) => matches!(check, Check::TatIs(_)),
            (Self::ExactWithoutTatAndGross, Form::Exact) => matches!(check, Check::TatIs(_) | Check::GrossIs(_)),
            (Self::ExactWithoutBusyPeriod, Form::Exact) | (Self::RefundWithoutBusyPeriod, Form::Refund) => {
                matches!(check, Check::BusyPeriodIs(_))
            }
            (Self::SettlesWithoutEntry, _) => matches!(check, Check::Holds(_)),
            (Self::ExactWithoutGross, Form::Exact) | (Self::RefundWithoutGross, Form::Refund) => {
                matches!(check, Check::GrossIs(_))
            }
            (Self::ExactWithoutTermsAndBusyPeriod, Form::Exact) => {
                matches!(check, Check::TermsAre(_) | Check::BusyPeriodIs(_))
            }
            _ => false,
        });
    }
}
