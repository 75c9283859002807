//! The protocol minus one guard: what must be caught if the model is worth anything.
//!
//! A mutant changes a [`Write`] on its way to the table, so everything else is the real protocol: it weakens the condition,
//! or leaves out something that later calls go by. Some reckon a refund otherwise: see [`Giving`](crate::refunds::Giving).

use tollgate_core::write::{Assign, ItemCheck};
use tollgate_core::{Bucket, Check, Expect, Item, LimitWrite, Ticks, Timestamp, Write};

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
    /// The exact form does not check the `adj` seen.
    ExactWithoutAdjusted,
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
    /// A refund (`tat = tat - d, adj = adj + d`) does not check the `tat` seen.
    RefundWithoutTat,
    /// A refund does not check the `f` seen.
    RefundWithoutTerms,
    /// A refund does not check the `b` seen.
    RefundWithoutBusyPeriod,
    /// A refund does not check the `adj` seen.
    RefundWithoutAdjusted,
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
}

/// The form of a limit's part of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Busy,
    Idle,
    Exact,
    Refund,
}

/// Which form `limit` is, as a part of `write`.
pub(crate) fn form(write: &Write, limit: &LimitWrite) -> Form {
    match (&limit.assign, &limit.expect) {
        (Assign::Extend { .. }, _) => Form::Busy,
        (Assign::Replace(_), Expect::AbsentOr(_)) => Form::Idle,
        (Assign::Replace(_), Expect::Absent | Expect::Present(_)) if write.memory.is_some() => Form::Exact,
        (Assign::Replace(_), Expect::Absent | Expect::Present(_)) => Form::Refund,
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
            _ => {
                self.weaken_hold(&mut sent, item);
                for limit in &mut sent.limits {
                    self.weaken_limit(limit, form(write, limit), item);
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
        let is_unguarded = write.limits.iter().any(|limit| Some(form(write, limit)) == unguarded)
            || (self == Self::LapseWithoutHold && write.hold.is_some() && !write.limits.is_empty());
        write.checks.retain(|check| match check {
            ItemCheck::HorizonAtMost(_) => true,
            ItemCheck::HoldIs(Some(_)) if self == Self::HoldMayBeAbsent => found.is_some(),
            ItemCheck::HoldIs(Some(_)) if self == Self::AnyHold => found.is_none(),
            ItemCheck::HoldIs(_) => !is_unguarded,
        });
    }

    fn weaken_limit(self, limit: &mut LimitWrite, form: Form, item: Option<&Item>) {
        if let (Self::ChangeWithoutSince, Form::Exact, Assign::Replace(next)) = (self, form, &mut limit.assign) {
            next.busy_period.since = Timestamp::default();
        }
        let (Expect::AbsentOr(checks) | Expect::Present(checks)) = &mut limit.expect else { return };
        let found = item.and_then(|item| item.buckets.get(&limit.limit));
        if let (Form::Refund, Assign::Replace(next), Some(found)) = (form, &mut limit.assign, found) {
            relative(next, checks, found);
        }
        for check in &mut *checks {
            match (self, check) {
                (Self::BusyWithoutCeiling, Check::TatBetween(_, to)) => *to = Ticks(i128::MAX),
                (Self::BusyWithoutFloor, Check::TatBetween(from, _)) => *from = Ticks(i128::MIN),
                _ => {}
            }
        }
        checks.retain(|check| !match (self, form) {
            (Self::BusyWithoutTerms, Form::Busy)
            | (Self::IdleWithoutTerms, Form::Idle)
            | (Self::ExactWithoutTerms, Form::Exact)
            | (Self::RefundWithoutTerms, Form::Refund) => matches!(check, Check::TermsAre(_)),
            (Self::IdleWithoutTat, Form::Idle) => matches!(check, Check::TatBelow(_)),
            (Self::ExactWithoutTat, Form::Exact) | (Self::RefundWithoutTat, Form::Refund) => {
                matches!(check, Check::TatIs(_))
            }
            (Self::ExactWithoutBusyPeriod, Form::Exact) | (Self::RefundWithoutBusyPeriod, Form::Refund) => {
                matches!(check, Check::BusyPeriodIs(_))
            }
            (Self::ExactWithoutAdjusted, Form::Exact) | (Self::RefundWithoutAdjusted, Form::Refund) => {
                matches!(check, Check::AdjustedIs(_))
            }
            (Self::ExactWithoutTermsAndBusyPeriod, Form::Exact) => {
                matches!(check, Check::TermsAre(_) | Check::BusyPeriodIs(_))
            }
            _ => false,
        });
    }
}

/// Turns a refund that overwrites what was seen into one that adds to what is found, so that a mutant loses its guard and
/// nothing else. They are the same where every guard holds.
fn relative(next: &mut Bucket, checks: &[Check], found: &Bucket) {
    let seen = |of: fn(&Check) -> Option<Ticks>| checks.iter().find_map(of);
    let tat = seen(|check| if let Check::TatIs(tat) = check { Some(*tat) } else { None });
    let adjusted = seen(|check| if let Check::AdjustedIs(adjusted) = check { Some(*adjusted) } else { None });
    let (given, back) = (next.tat - tat.unwrap(), next.adjusted - adjusted.unwrap());
    *next = Bucket { tat: found.tat + given, adjusted: found.adjusted + back, ..found.clone() };
}
