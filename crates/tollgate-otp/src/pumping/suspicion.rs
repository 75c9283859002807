//! What the ladder asks of one who wants a message now.
//!
//! Invariants: whoever is asked for a CAPTCHA and has solved one is sent his message, unless too many are or nobody is; and whoever was
//! known before his number was first suspected is asked for no more than that. To become known afterwards is of no use.

use super::ladder::{Ladder, Rung};
use crate::destination::Destination;
use std::time::Duration;
use tollgate_core::Timestamp;

/// What whoever wants a message has shown of himself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shown {
    /// He has solved a CAPTCHA.
    pub is_human: bool,
    /// He asks with a device on which he had typed a right code by then.
    pub known_since: Option<Timestamp>,
}

/// What follows from the suspicion of a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Suspicion {
    /// Nothing.
    None,
    /// Few messages go to this prefix or country.
    Reduced(String),
    /// Nothing is sent to who has not shown that he is human.
    Captcha,
    /// Nothing is sent for so long.
    Blocked(Duration),
}

impl Suspicion {
    /// What the ladder says of a number, to whoever has `shown` that.
    #[must_use]
    pub fn of(ladder: &Ladder, to: &Destination, shown: Shown, now: Timestamp) -> Self {
        let Some((scope, standing)) = ladder.of(to) else { return Self::None };
        let was_known = shown.known_since.zip(ladder.suspected(to)).is_some_and(|(known, first)| known < first);
        match if was_known { standing.rung.min(Rung::Captcha) } else { standing.rung } {
            Rung::Observe => Self::None,
            Rung::Block => {
                let ns = standing.until.as_nanos().saturating_sub(now.as_nanos());
                Self::Blocked(Duration::from_nanos(ns))
            }
            Rung::Captcha | Rung::Reduced if !shown.is_human => Self::Captcha,
            Rung::Captcha => Self::None,
            Rung::Reduced => Self::Reduced(scope.to_string()),
        }
    }

    /// Whether nothing is sent.
    #[must_use]
    pub const fn refuses(&self) -> bool {
        matches!(self, Self::Captcha | Self::Blocked(_))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::ladder::{Scope, Standing};
    use super::*;
    use proptest::prelude::*;
    use tollgate_policy::{Channel, Policy};

    const START: u64 = 1_767_225_600;

    fn number() -> Destination {
        let policy = Policy::parse("version = 1\n[otp]\npurposes = ['login']\ncountries = ['RO']\n").unwrap().policy;
        Destination::phone("+40721234567", Channel::Sms, policy.otp().unwrap()).unwrap()
    }

    fn rung() -> impl Strategy<Value = Rung> {
        prop_oneof![Just(Rung::Observe), Just(Rung::Captcha), Just(Rung::Reduced), Just(Rung::Block)]
    }

    prop_compose! {
        fn standing()(rung in rung(), suspected in 0_u64..1000, later in 0_u64..1000, raised in 1_u32..9) -> Standing {
            let (since, suspected) = (Timestamp::from_secs(START + suspected + later), Timestamp::from_secs(START + suspected));
            Standing { country: "RO".to_owned(), rung, since, suspected, until: since + Standing::HOLD, raised, risen: since }
        }
    }

    proptest! {
        #[test]
        fn who_was_known_before_is_asked_for_a_captcha_at_most_and_nobody_gains_by_becoming_known_after(
            standings in prop::collection::vec((0_usize..5, standing()), 0..5),
            known in 0_u64..3000,
        ) {
            let (to, mut ladder, now) = (number(), Ladder::default(), Timestamp::from_secs(START + 3000));
            let scopes: Vec<_> = Scope::around(to.country(), to.block()).collect();
            ladder.standings.extend(standings.into_iter().map(|(at, standing)| (scopes[at].clone(), standing)));
            let first = ladder.standings.values().map(|standing| standing.suspected).min();
            let known = Timestamp::from_secs(START + known);
            let of = |is_human, known_since| Suspicion::of(&ladder, &to, Shown { is_human, known_since }, now);
            let (stranger, mine) = (of(true, None), of(true, Some(known)));
            if first.is_some_and(|first| known < first) {
                prop_assert_eq!(mine, Suspicion::None);
                // He is asked for a CAPTCHA wherever strangers are asked for anything.
                let expected = if of(false, None) == Suspicion::None { Suspicion::None } else { Suspicion::Captcha };
                prop_assert_eq!(of(false, Some(known)), expected);
            } else {
                prop_assert_eq!(mine, stranger);
                prop_assert_eq!(of(false, Some(known)), of(false, None));
            }
        }
    }
}
