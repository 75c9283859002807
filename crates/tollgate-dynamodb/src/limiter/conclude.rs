//! What follows from the answers about the items of a decision, and from the store's failures.
//!
//! Invariants: a denial goes before a failure of the store, and that before an admission; this process decides by itself only
//! where the store failed, nothing denies and nothing is closed.

use super::{Driven, Limiter, Place, Taken};
use crate::breaker::Health;
use crate::error::{Error, Result};
use crate::meter::Event;
use crate::store::Store;
use futures_util::future::join_all;
use tollgate_core::local::Answer;
use tollgate_core::{Charges, Decision, Source, StoreFailure, Unasked};

/// For an item its answer, or what happens to the call without one.
pub(super) type Part = std::result::Result<Driven, StoreFailure>;

/// What became of a decision, item by item, and of the store.
pub(super) struct Answers {
    pub(super) parts: Vec<Part>,
    pub(super) failures: Vec<(StoreFailure, Error)>,
    /// How many of the parts the store has answered.
    pub(super) answered: usize,
    /// How many of the failures are those of a request that another call has sent for this one, too.
    pub(super) shared: usize,
}

impl<S: Store> Limiter<S> {
    /// What follows from the parts: a denial goes before a failure of the store, and that before an admission. What this process
    /// may decide by itself it does last, when nothing else is in the way.
    pub(super) async fn conclude(&self, charges: &[Charges], answers: Answers) -> Result<(Decision, Taken)> {
        let Answers { mut parts, mut failures, .. } = answers;
        self.report_failures(&failures);
        let is_denied = |parts: &[Part]| {
            let is_denial = |part: &Driven| !part.decision.is_allowed();
            !unasked(charges, parts).is_allowed() || parts.iter().flatten().any(is_denial)
        };
        let closed = failures.iter().position(|(rule, _)| *rule == StoreFailure::Closed);
        if closed.is_none() && !is_denied(&parts) {
            self.decide_here(charges, &mut parts);
        }
        let is_denied = is_denied(&parts);
        if is_denied || closed.is_some() {
            let parts = charges.iter().zip(&mut parts);
            join_all(parts.filter_map(|(charges, part)| Some(self.give_back(charges, part.as_mut().ok()?)))).await;
        }
        if let (false, Some(closed)) = (is_denied, closed) {
            return Err(failures.swap_remove(closed).1);
        }
        let mut decision = unasked(charges, &parts);
        for part in parts.iter_mut().flatten() {
            decision.extend(std::mem::take(&mut part.decision));
        }
        Ok((decision, Taken(parts.into_iter().map(std::result::Result::ok).collect())))
    }

    fn report_failures(&self, failures: &[(StoreFailure, Error)]) {
        let meter = self.parts.store.meter();
        for (rule, error) in failures {
            meter.record(Event::StoreFailure(error));
            // While the breaker is open that goes without saying, and would be said with every call.
            if *rule != StoreFailure::Closed && !matches!(error, Error::Suspended) {
                tracing::warn!(%error, "the store gave no answer to a part of a decision, which is made without it");
            }
        }
        let strictest = failures.iter().filter(|(_, error)| error.is_store_failure()).map(|(rule, _)| *rule).max();
        if let Some(rule) = strictest {
            meter.record(Event::Degraded(rule));
        }
    }

    /// Decides the parts that are this process's own affair.
    fn decide_here(&self, charges: &[Charges], parts: &mut [Part]) {
        let is_local = |part: &Part| matches!(part, Err(StoreFailure::Local));
        let own: Vec<_> = charges.iter().zip(&*parts).filter(|(_, part)| is_local(part)).map(|(c, _)| c).collect();
        let answers = self.parts.locals.decide(&own, &self.parts.memory, self.parts.store.moment().now);
        for (part, Answer { decision, charged, .. }) in parts.iter_mut().filter(|part| is_local(part)).zip(answers) {
            *part = Ok(Driven::new(decision, charged, Place::Here));
        }
    }
}

impl Answers {
    /// The store was not asked.
    pub(super) fn suspended(charges: &[Charges]) -> Self {
        let failures: Vec<_> = charges.iter().map(|c| (rule(c, &Error::Suspended), Error::Suspended)).collect();
        Self { parts: failures.iter().map(|(rule, _)| Err(*rule)).collect(), failures, answered: 0, shared: 0 }
    }

    /// Whether the store answered any of it; `None` if this call has asked it nothing by itself, so that one request that fails for
    /// many counts once.
    pub(super) fn health(&self) -> Option<Health> {
        let is_outage = |(_, error): &(StoreFailure, Error)| error.is_outage();
        if self.answered > 0 || self.failures.is_empty() || !self.failures.iter().all(is_outage) {
            return Some(Health::Answers);
        }
        (self.shared < self.failures.len()).then_some(Health::Gone)
    }
}

/// The limits that nobody was asked about.
fn unasked(charges: &[Charges], parts: &[Part]) -> Decision {
    let mut decision = Decision::default();
    for (charges, part) in charges.iter().zip(parts) {
        let source = match part {
            Ok(_) => continue,
            Err(StoreFailure::Open) => Source::Open,
            Err(StoreFailure::Local) => Source::Local,
            Err(_) => Source::Closed,
        };
        decision.unasked.extend(Unasked::of(charges, source));
    }
    decision
}

/// What happens to the call if the store failed with `error` on these charges: limits that only report never matter;
/// contention, and what cannot be read or asked, must not become a way past the others.
pub(super) fn rule(charges: &Charges, error: &Error) -> StoreFailure {
    match error {
        _ if charges.only_report() => StoreFailure::Open,
        Error::HotKey(_) => charges.on_store_failure().max(StoreFailure::Local),
        error if error.is_outage() => charges.on_store_failure(),
        _ => StoreFailure::Closed,
    }
}
