//! Who is asked for a CAPTCHA, or refused, since others have messages sent to numbers like his for money.
//!
//! Invariants: nothing is sent while it is not known who is suspected; who is refused here costs his account no cooldown and nobody a
//! limit; what is refused is counted, so that an attack is seen to go on.

use crate::Service;
use crate::answer::{self, Answer};
use serde_json::json;
use std::sync::Arc;
use tollgate::http::Facts;
use tollgate::tollgate_dynamodb::Event;
use tollgate::tollgate_policy::PumpingRules;
use tollgate::{Key, Policy, Store};
use tollgate_otp::pumping::{Counted, Ladder, Suspicion};
use tollgate_otp::{Courier, Destination, Directory};

/// The answer to who is sent nothing.
pub(crate) fn refusal(suspicion: &Suspicion) -> Answer {
    match suspicion {
        Suspicion::Captcha => answer::captcha_required(),
        Suspicion::Blocked(rest) => answer::blocked(*rest),
        Suspicion::None | Suspicion::Reduced(_) => answer::unavailable(),
    }
}

/// What a message to this number, or to none, is counted by and costs, for the limits of the route.
#[must_use]
pub fn charged_as(
    policy: &Policy,
    account: &Key,
    to: Option<&Destination>,
    suspicion: &Suspicion,
    facts: Facts,
) -> Facts {
    // All accounts without a number together would run out sooner than others, and so be told apart.
    let itself = format!("nowhere {account}");
    let (number, block, country) =
        to.map_or((&*itself, &*itself, &*itself), |to| (to.spelling(), to.block(), to.country()));
    let mut known = json!({ "number": number, "block": block, "country": country });
    let suspect = if let Suspicion::Reduced(scope) = suspicion { Some(scope.as_str()) } else { None };
    if let (Some(suspect), Some(known)) = (suspect, known.as_object_mut()) {
        known.insert("suspect".to_owned(), suspect.into());
    }
    let costs = rules(policy).into_iter().flat_map(|rules| rules.costs(country, suspect.is_some()));
    costs.fold(facts.with_context_field("otp", known), |facts, (limit, cost)| facts.with_cost(limit.as_str(), cost))
}

/// The rules, if the policy has those who send watched.
pub(crate) fn rules(policy: &Policy) -> Option<&PumpingRules> {
    policy.otp()?.pumping.as_ref()
}

impl<S: Store + 'static, D: Directory, C: Courier + 'static> Service<S, D, C> {
    /// The ladder, if there is one.
    pub(crate) async fn ladder(&self, policy: &Policy) -> Result<Option<Arc<Ladder>>, tollgate_otp::Error> {
        match rules(policy) {
            Some(_) => self.guard.ladder(self.otp.items()).await.map(Some),
            None => Ok(None),
        }
    }

    /// Counts that a message was refused.
    pub(crate) async fn refused(&self, to: &Destination) {
        let items = self.otp.items();
        items.store().meter().record(Event::Suspected);
        if let Err(error) = self.guard.refused(items, Counted::as_destination(to)).await {
            tracing::warn!(%error, "a refused message is not counted");
        }
    }
}
