//! What an authentication is, and whether it is what a route demands.
//!
//! Invariant: of two authentications that differ in one thing, the older one and the one with fewer methods is never sufficient where
//! the other one is not; one from the future is as good as none.

use std::time::Duration;
use tollgate_core::Timestamp;
use tollgate_policy::StepUp;

/// How far the clock of whoever writes `auth_time` may be ahead of the table's.
pub const LEEWAY: Duration = Duration::from_secs(5);

/// Somebody has proved who he is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Authentication {
    /// When.
    pub at: Timestamp,
    /// How well, in the words of whoever has verified it (`acr`, OpenID Connect Core section 2).
    pub acr: Option<String>,
    /// By which methods (`amr`, RFC 8176).
    pub amr: Vec<String>,
}

/// Why an authentication is not what a route demands, the nearest to it last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Shortcoming {
    /// There is none, or nobody can tell when it was.
    Missing,
    /// It lies in the future.
    FromFuture,
    /// All authentications up to then have been revoked.
    Revoked,
    /// It is too long ago.
    TooOld,
    /// It is fresh, and of another class or by other methods.
    Insufficient,
}

impl Shortcoming {
    /// As a word, for logs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::FromFuture => "from_future",
            Self::Revoked => "revoked",
            Self::TooOld => "too_old",
            Self::Insufficient => "insufficient",
        }
    }
}

impl Authentication {
    /// Whether it is what `required` demands at `now`.
    ///
    /// # Errors
    ///
    /// What it falls short of.
    pub fn meets(&self, required: &StepUp, now: Timestamp) -> Result<(), Shortcoming> {
        if self.at > now + LEEWAY {
            return Err(Shortcoming::FromFuture);
        }
        if self.at + required.max_age < now {
            return Err(Shortcoming::TooOld);
        }
        let of_class = required.acr.is_empty() || self.acr.as_ref().is_some_and(|acr| required.acr.contains(acr));
        let by_method = required.amr.is_empty() || self.amr.iter().any(|method| required.amr.contains(method));
        if of_class && by_method { Ok(()) } else { Err(Shortcoming::Insufficient) }
    }
}
