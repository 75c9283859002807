//! Kinds of second factors, and what accounts have to have of them: as the file says it, and as a tenant may say it more strictly.
//!
//! Invariant: of rules that [`FactorRules::check`] has passed somebody can do what they ask for.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A kind of second factor, the weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FactorKind {
    /// `recovery`: codes that were written down, the way back.
    Recovery,
    /// `email`: a code that was sent to an address, a fallback.
    Email,
    /// `sms`: a code that was sent to a number, a fallback.
    Sms,
    /// `totp`: an authenticator app.
    Totp,
    /// `passkey`: a key that a browser or device uses after its owner has unlocked it (`WebAuthn`).
    Passkey,
}

/// No kind of factor has that name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there is no such kind of factor")]
pub struct NoFactorKind;

impl FactorKind {
    /// Every kind, the weakest first.
    pub const ALL: [Self; 5] = [Self::Recovery, Self::Email, Self::Sms, Self::Totp, Self::Passkey];

    /// Its name, in policies, requests, answers and the table.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Recovery => "recovery",
            Self::Email => "email",
            Self::Sms => "sms",
            Self::Totp => "totp",
            Self::Passkey => "passkey",
        }
    }

    /// Whether it is one that people enrol for every day. The others are a way back (`recovery`) and fallbacks (`email`, `sms`), which count
    /// for nothing that an account has to have.
    #[must_use]
    pub fn is_enrolled(self) -> bool {
        matches!(self, Self::Totp | Self::Passkey)
    }

    /// Whether it is sent to whoever has to prove something, and so a fallback.
    #[must_use]
    pub fn is_sent(self) -> bool {
        matches!(self, Self::Email | Self::Sms)
    }
}

impl fmt::Display for FactorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for FactorKind {
    type Err = NoFactorKind;

    fn from_str(text: &str) -> Result<Self, NoFactorKind> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or(NoFactorKind)
    }
}

/// What accounts have to have, and what they may prove something by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FactorRules {
    /// Kinds that may be enrolled and prove something; all others prove nothing, though they be enrolled.
    pub allowed: BTreeSet<FactorKind>,
    /// Kinds of which every account has to have one. What is weaker than the strongest of these does not prove everything.
    pub required: BTreeSet<FactorKind>,
    /// How many different kinds that are [enrolled](FactorKind::is_enrolled) every account has to have; 0: second factors are
    /// everybody's own choice.
    pub minimum: u32,
}

/// Rules that nobody could keep, or that are looser than those above them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` {why}")]
pub struct Unfit {
    /// Which of the rules.
    pub field: &'static str,
    /// What is wrong with it.
    pub why: String,
}

impl Default for FactorRules {
    /// Everything is allowed, nothing required.
    fn default() -> Self {
        Self { allowed: FactorKind::ALL.into_iter().collect(), required: BTreeSet::new(), minimum: 0 }
    }
}

impl FactorRules {
    /// Whether somebody can keep them.
    ///
    /// # Errors
    ///
    /// Which one nobody can.
    pub fn check(&self) -> Result<(), Unfit> {
        let unfit = |field, why: String| Err(Unfit { field, why });
        let most = self.enrollable().count();
        if most == 0 {
            return unfit("allowed", "has neither totp nor passkey, so nobody could enrol anything".to_owned());
        }
        if let Some(kind) = self.required.iter().find(|kind| !kind.is_enrolled()) {
            return unfit("required", format!("has {kind}, which nobody enrols; require totp or passkey"));
        }
        if let Some(kind) = self.required.difference(&self.allowed).next() {
            return unfit("required", format!("has {kind}, which is not allowed"));
        }
        if usize::try_from(self.minimum).unwrap_or(usize::MAX) > most {
            return unfit(
                "minimum",
                format!("is {}, and only {most} kinds that people enrol are allowed", self.minimum),
            );
        }
        Ok(())
    }

    /// Whether they ask for nothing that these do not, and allow nothing more.
    ///
    /// # Errors
    ///
    /// Which one is looser.
    pub fn tighten(&self, above: &Self) -> Result<(), Unfit> {
        let unfit = |field, why: String| Err(Unfit { field, why });
        if let Some(kind) = self.allowed.difference(&above.allowed).next() {
            return unfit("allowed", format!("has {kind}, which is allowed to nobody"));
        }
        if let Some(kind) = above.required.difference(&self.required).next() {
            return unfit("required", format!("lacks {kind}, which is required of everybody"));
        }
        if self.minimum < above.minimum {
            return unfit("minimum", format!("is {}, and {} is required of everybody", self.minimum, above.minimum));
        }
        Ok(())
    }

    /// Both together: what is allowed by both, required by either.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self {
            allowed: self.allowed.intersection(&other.allowed).copied().collect(),
            required: self.required.union(&other.required).copied().collect(),
            minimum: self.minimum.max(other.minimum),
        }
    }

    /// The kinds that are allowed and that people enrol.
    pub fn enrollable(&self) -> impl Iterator<Item = FactorKind> + '_ {
        self.allowed.iter().copied().filter(|kind| kind.is_enrolled())
    }

    /// Whether they ask every account for something.
    #[must_use]
    pub fn demand_something(&self) -> bool {
        self.minimum > 0 || !self.required.is_empty()
    }
}

/// What holds for every tenant, and what one may change.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TenantRules {
    /// What holds where a tenant says nothing, and in any case: its own rules can only be stricter.
    pub rules: FactorRules,
    /// How long it takes until something is required of people, or taken away from them, that they could not do without before;
    /// [`TenantRules::SHORTEST_GRACE`] to [`TenantRules::LONGEST_GRACE`].
    pub grace: Duration,
    /// Who may change a tenant's rules; `None`: nobody.
    pub admin: Option<Admin>,
}

/// Who may change a tenant's rules: whoever has this value in this claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admin {
    /// The name of the claim, as in `claims.NAME`.
    pub claim: String,
    /// The value, which may be one of several.
    pub value: String,
}

impl TenantRules {
    /// A day: people have to see that they are asked for something.
    pub const SHORTEST_GRACE: Duration = Duration::from_secs(86_400);
    /// 90 days.
    pub const LONGEST_GRACE: Duration = Duration::from_secs(90 * 86_400);
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn rules(allowed: &[FactorKind], required: &[FactorKind], minimum: u32) -> FactorRules {
        let set = |kinds: &[FactorKind]| kinds.iter().copied().collect();
        FactorRules { allowed: set(allowed), required: set(required), minimum }
    }

    #[test]
    fn rules_that_nobody_could_keep_are_told_by_their_field() {
        use FactorKind::{Passkey, Recovery, Sms, Totp};
        let field = |rules: FactorRules| rules.check().map_err(|unfit| unfit.field);
        assert_eq!(field(rules(&[Totp], &[Totp], 1)), Ok(()));
        assert_eq!(field(rules(&[Sms, Recovery], &[], 0)), Err("allowed"));
        assert_eq!(field(rules(&[Totp, Recovery], &[Recovery], 0)), Err("required"));
        assert_eq!(field(rules(&[Totp], &[Passkey], 0)), Err("required"));
        assert_eq!(field(rules(&[Totp, Sms], &[], 2)), Err("minimum"));
    }

    #[test]
    fn what_is_looser_than_the_rules_above_is_told_by_its_field() {
        use FactorKind::{Passkey, Sms, Totp};
        let above = rules(&[Totp, Passkey], &[Totp], 1);
        let field = |rules: FactorRules| rules.tighten(&above).map_err(|unfit| unfit.field);
        assert_eq!(field(above.clone()), Ok(()));
        assert_eq!(field(rules(&[Totp, Passkey, Sms], &[Totp], 1)), Err("allowed"));
        assert_eq!(field(rules(&[Totp], &[], 1)), Err("required"));
        assert_eq!(field(rules(&[Totp], &[Totp], 0)), Err("minimum"));
    }

    #[test]
    fn names_are_read_back() {
        for kind in FactorKind::ALL {
            assert_eq!(kind.as_str().parse(), Ok(kind));
        }
        assert_eq!("SMS".parse::<FactorKind>(), Err(NoFactorKind));
    }
}
