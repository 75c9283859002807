//! A tenant's rules, those that are coming, and how one takes the place of another.
//!
//! Somebody who has an app today is not to be shut out by a change of today: what people could not do without before
//! comes into force after the grace period. Codes by SMS and email are nobody's only factor, since whoever has no other enrols his first
//! by a sign-in; so those are taken away at once. Invariant: what is in force and was not before has been announced for so long.

use super::judge::Held;
use std::time::Duration;
use tollgate_core::Timestamp;
use tollgate_policy::{FactorKind, FactorRules, TenantRules, Unfit};

/// Rules that are coming.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Next {
    /// When they come into force.
    pub from: Timestamp,
    /// The rules.
    pub rules: FactorRules,
}

/// An item of the table, as data.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Tenant {
    /// How often they were put; 0: the tenant has none of its own.
    pub version: u64,
    /// The rules until the next ones.
    pub rules: FactorRules,
    /// Those that are coming, or have come.
    pub next: Option<Next>,
}

/// What an admin puts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    /// The rules.
    pub rules: FactorRules,
    /// When what people could not do without before comes into force.
    pub required_from: Option<Timestamp>,
}

/// Why rules are not put.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// Nobody could keep them, the file does not leave it to tenants, or they would come too soon.
    Unfit(Unfit),
    /// None of the factors of whoever puts them would be allowed: nobody might be left who can change them back.
    LocksOut,
}

impl From<Unfit> for Refusal {
    fn from(unfit: Unfit) -> Self {
        Self::Unfit(unfit)
    }
}

impl Tenant {
    /// How far ahead rules can be put: a year.
    pub const FARTHEST: Duration = Duration::from_secs(366 * 86_400);

    /// A tenant that has said nothing: what the file says.
    #[must_use]
    pub fn of_file(rules: &FactorRules) -> Self {
        Self { version: 0, rules: rules.clone(), next: None }
    }

    /// The rules that the tenant has last put.
    #[must_use]
    pub fn put_last(&self) -> &FactorRules {
        self.next.as_ref().map_or(&self.rules, |next| &next.rules)
    }

    /// The tenant's rules at an instant, without the file's.
    #[must_use]
    pub fn at(&self, now: Timestamp) -> &FactorRules {
        self.next.as_ref().filter(|next| next.from <= now).map_or(&self.rules, |next| &next.rules)
    }

    /// What is in force at an instant.
    #[must_use]
    pub fn in_force(&self, file: &FactorRules, now: Timestamp) -> FactorRules {
        self.at(now).and(file)
    }

    /// The rules that are coming and have not come.
    #[must_use]
    pub fn coming(&self, now: Timestamp) -> Option<&Next> {
        self.next.as_ref().filter(|next| next.from > now)
    }

    /// What it becomes where somebody who has `held` puts `wish`.
    ///
    /// # Errors
    ///
    /// Why it stays as it is.
    pub fn put(&self, wish: &Wish, file: &TenantRules, held: &Held, now: Timestamp) -> Result<Self, Refusal> {
        let target = &wish.rules;
        target.check()?;
        target.tighten(&file.rules)?;
        if !held.kinds.is_empty() && held.kinds.is_disjoint(&target.allowed) {
            return Err(Refusal::LocksOut);
        }
        let version = self.version + 1;
        let until_then = meanwhile(&self.in_force(&file.rules, now), target);
        if until_then == *target {
            return Ok(Self { version, rules: until_then, next: None });
        }
        let earliest = self.earliest(target, file.grace, now);
        let from = wish.required_from.filter(|from| (earliest..=now + Self::FARTHEST).contains(from));
        let Some(from) = from else {
            let why = format!(
                "must be from {} on, within a year: people need the time until they cannot do without",
                earliest.as_secs().saturating_add(u64::from(!earliest.as_nanos().is_multiple_of(1_000_000_000)))
            );
            return Err(Unfit { field: "required_from", why }.into());
        };
        Ok(Self { version, rules: until_then, next: Some(Next { from, rules: target.clone() }) })
    }

    /// The earliest instant of what people could not do without before: what was announced stays so.
    fn earliest(&self, target: &FactorRules, grace: Duration, now: Timestamp) -> Timestamp {
        let announced = self.coming(now).filter(|next| meanwhile(&next.rules, target) == *target);
        announced.map_or(now + grace, |next| next.from.min(now + grace))
    }
}

/// The rules until those that are put come into force, where `current` are in force: all of theirs that shuts nobody out.
fn meanwhile(current: &FactorRules, target: &FactorRules) -> FactorRules {
    // The same whether they are taken away or were never there.
    let kept = current.allowed.iter().copied().filter(|kind| !FactorKind::is_sent(*kind));
    let is_looser = target.required.is_subset(&current.required);
    FactorRules {
        allowed: target.allowed.iter().copied().chain(kept).collect(),
        required: if is_looser { target.required.clone() } else { current.required.clone() },
        minimum: target.minimum.min(current.minimum),
    }
}
