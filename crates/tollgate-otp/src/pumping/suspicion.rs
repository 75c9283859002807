//! What the ladder asks of one who wants a message now.
//!
//! Invariant: whoever is asked for a CAPTCHA and has solved one is sent his message, unless too many are or nobody is.

use super::ladder::{Ladder, Rung};
use crate::destination::Destination;
use std::time::Duration;
use tollgate_core::Timestamp;

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
    /// What the ladder says of a number.
    #[must_use]
    pub fn of(ladder: &Ladder, to: &Destination, is_human: bool, now: Timestamp) -> Self {
        let Some((scope, standing)) = ladder.of(to) else { return Self::None };
        match standing.rung {
            Rung::Observe => Self::None,
            Rung::Block => {
                let ns = standing.until.as_nanos().saturating_sub(now.as_nanos());
                Self::Blocked(Duration::from_nanos(ns))
            }
            Rung::Captcha | Rung::Reduced if !is_human => Self::Captcha,
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
