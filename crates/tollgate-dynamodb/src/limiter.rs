//! The limiter: drives the core's protocol against a store, within a deadline: one decision on one item or several, all or
//! nothing.
//!
//! Invariants: what was last seen picks the form of the first write and may deny while it is fresh, it never admits; a
//! write whose fate is unknown ends its part of the decision and is not repeated; only "not applied" is retried, within the
//! deadline; what was charged before another item refused is given back before the answer, as far as it can be.

mod settle;
mod together;

pub use settle::Settled;

use crate::error::{Error, Fate, Result};
use crate::memory::{Memory, Seen};
use crate::meter::Event;
use crate::partition_key;
use crate::patience::{Backoff, Patience};
use crate::store::{Store, Written};
use futures_util::future::join_all;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
#[cfg(doc)]
use tollgate_core::TokenBucket;
use tollgate_core::{Charged, Charges, Decision, Item, LimitName, Source, Step, StoreFailure, Take, Unasked, Write};
use tracing::Instrument;

/// Decides charges on a store. Cheap to share behind an [`Arc`]; one a process.
#[derive(Debug)]
pub struct Limiter<S> {
    store: S,
    memory: Memory,
    deadline: Duration,
}

/// What became of a decision, item by item, and of the store.
struct Answers {
    /// For each item its answer, or what happens to the call without one.
    parts: Vec<std::result::Result<Driven, StoreFailure>>,
    failures: Vec<(StoreFailure, Error)>,
}

/// A part of a decision that the store has answered.
#[derive(Debug)]
struct Driven {
    decision: Decision,
    charged: Vec<Charged>,
    /// The item as the charge left it.
    item: Option<Arc<Item>>,
}

/// What an allowed decision was charged, item by item in its order, while it can still be settled: see [`Limiter::settle`] and
/// [`Limiter::cancel`].
#[derive(Debug, Default)]
pub struct Taken(Vec<Option<Driven>>);

/// What became of a write: as [`Written`], with the item as memory shares it.
enum Met {
    Applied(Arc<Item>),
    Refused(Option<Arc<Item>>),
}

impl<S: Store> Limiter<S> {
    /// Keys whose last seen item is remembered.
    pub const REMEMBERED_KEYS: usize = 10_000;
    /// Default deadline of a decision. DynamoDB answers in single-digit milliseconds; what takes ten times as long is better
    /// decided by `on_store_failure`.
    pub const DEADLINE: Duration = Duration::from_millis(50);
    /// Longest deadline of a decision: [`TokenBucket::LATEST_ARRIVAL_SECS`] reckons with it.
    pub const LONGEST_DEADLINE: Duration = Duration::from_secs(60);
    /// Writes after which a decision on a contended key is given up. Uncontended decisions need two at most.
    pub const MOST_WRITES: u32 = 16;
    /// Most of the first wait of a call that others are in the way of; the next ones double.
    const FIRST_PAUSE: Duration = Duration::from_millis(4);
    /// How long what was seen of a key may deny without asking the store, and the most that it can be set to. What others
    /// give back meanwhile (a refund, an operator's reset) shows that much later in a process that has just denied.
    pub const DENIES_FOR: Duration = Duration::from_secs(1);

    /// A limiter on `store`.
    #[must_use]
    pub fn new(store: S) -> Self {
        Self { store, memory: Memory::new(Self::REMEMBERED_KEYS, Self::DENIES_FOR), deadline: Self::DEADLINE }
    }

    /// Changes the deadline of a decision, all its requests and waits included; at most [`Self::LONGEST_DEADLINE`]. Giving
    /// charges back has as long again.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline.min(Self::LONGEST_DEADLINE);
        self
    }

    /// Changes how long what was seen of a key may deny, at most [`Self::DENIES_FOR`]; zero asks the store every time.
    #[must_use]
    pub fn denying_from_memory_for(mut self, age: Duration) -> Self {
        self.memory.deny_for(age.min(Self::DENIES_FOR));
        self
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &S {
        &self.store
    }

    /// Decides `charges`, each on an item of its own, all or nothing, and charges them if allowed.
    ///
    /// The items are written in parallel, or, if one of the charges is atomic, those that can deny in one transaction. Where
    /// one item denies, or its failure refuses the call, what the others were charged is given back before this returns; a
    /// process that dies in between leaves it charged until the bucket refills.
    ///
    /// Where the store fails on some items and none denies, the strictest of their [`StoreFailure`] rules holds. One that
    /// lets the call pass leaves the limits in [`Decision::unasked`]; contention, and what cannot be read, never pass.
    ///
    /// # Errors
    ///
    /// The store gave no answer and the call is to be refused: see [`Error`]. A denial is `Ok`.
    pub async fn take(&self, charges: &[Charges]) -> Result<Decision> {
        Ok(self.take_unsettled(charges).await?.0)
    }

    /// As [`Self::take`], for a call that may yet not take place or cost something else: with what it was charged, for
    /// [`Self::settle`] and [`Self::cancel`].
    ///
    /// # Errors
    ///
    /// As [`Self::take`].
    pub async fn take_unsettled(&self, charges: &[Charges]) -> Result<(Decision, Taken)> {
        let began = Instant::now();
        let span = tracing::info_span!("decision", items = charges.len(), outcome = tracing::field::Empty);
        let result = match self.known_denial(charges) {
            Some(denial) => Ok((denial, Taken::default())),
            // Boxed, since the SDK's futures nest deeper than the compiler follows by itself.
            None => Box::pin(self.ask(charges).instrument(span.clone())).await,
        };
        let (outcome, event) = match &result {
            Ok((decision, _)) => (decision.outcome().as_str(), Event::Decision(decision)),
            Err(_) => ("unavailable", Event::Unavailable(charges)),
        };
        span.record("outcome", outcome);
        self.store.meter().record(Event::Took(began.elapsed()));
        self.store.meter().record(event);
        result
    }

    /// Decides by what the store answers.
    async fn ask(&self, charges: &[Charges]) -> Result<(Decision, Taken)> {
        let is_atomic = charges.len() > 1 && charges.iter().any(Charges::is_atomic);
        let answers = if is_atomic { self.together(charges).await } else { self.apart(charges).await };
        self.conclude(charges, answers).await
    }

    /// The denial that follows from what this process saw of the items a moment ago, if one does.
    fn known_denial(&self, charges: &[Charges]) -> Option<Decision> {
        let moment = self.store.moment();
        let mut is_denied = false;
        let mut decision = Decision::default();
        for charges in charges {
            let seen = self.memory.fresh(&partition_key::of(charges.item()));
            match seen.and_then(|seen| Take::recall(charges, &seen, moment)) {
                Some((limits, denies)) => {
                    is_denied |= denies;
                    decision.limits.extend(limits);
                }
                None => decision.unasked.extend(Unasked::of(charges, Source::Cache)),
            }
        }
        is_denied.then_some(decision)
    }

    /// Each item by itself, in parallel.
    async fn apart(&self, charges: impl IntoIterator<Item = &Charges>) -> Answers {
        let drive = async |charges| (charges, self.drive(charges).await);
        let mut answers = Answers { parts: Vec::new(), failures: Vec::new() };
        for (charges, answer) in join_all(charges.into_iter().map(drive)).await {
            answers.parts.push(answer.map_err(|error| {
                let rule = rule(charges, &error);
                answers.failures.push((rule, error));
                rule
            }));
        }
        answers
    }

    /// What follows from the parts: a denial goes before a failure of the store, and that before an admission.
    async fn conclude(&self, charges: &[Charges], answers: Answers) -> Result<(Decision, Taken)> {
        let Answers { mut parts, mut failures } = answers;
        for (_, error) in &failures {
            self.store.meter().record(Event::StoreFailure(error));
        }
        let mut decision = Decision::default();
        for (charges, part) in charges.iter().zip(&parts) {
            match part {
                Ok(_) => {}
                Err(StoreFailure::Open) => decision.unasked.extend(Unasked::of(charges, Source::Open)),
                Err(_) => decision.unasked.extend(Unasked::of(charges, Source::Closed)),
            }
        }
        let is_denied = !decision.is_allowed() || parts.iter().flatten().any(|part| !part.decision.is_allowed());
        let closed = failures.iter().position(|(rule, _)| *rule == StoreFailure::Closed);
        if is_denied || closed.is_some() {
            let parts = charges.iter().zip(&mut parts);
            join_all(parts.filter_map(|(charges, part)| Some(self.give_back(charges, part.as_mut().ok()?)))).await;
        }
        if let (false, Some(closed)) = (is_denied, closed) {
            return Err(failures.swap_remove(closed).1);
        }
        for part in parts.iter_mut().flatten() {
            decision.extend(std::mem::take(&mut part.decision));
        }
        for (_, error) in &failures {
            tracing::warn!(%error, "the store gave no answer to a part of a decision, which was made without it");
        }
        Ok((decision, Taken(parts.into_iter().map(std::result::Result::ok).collect())))
    }

    async fn drive(&self, charges: &Charges) -> Result<Driven> {
        let pk = partition_key::of(charges.item());
        let last_seen = self.memory.last(&pk).map(|seen| seen.item);
        let (mut take, step) =
            Take::start(charges.clone(), last_seen.as_deref(), self.store.moment(), fastrand::u64(..));
        let answer = self.go_on(&mut take, step, &pk).await;
        self.report(&take);
        let (decision, item) = answer?;
        Ok(Driven { decision, charged: take.charged().to_vec(), item })
    }

    /// Takes step after step; returns the decision, and the item as a charge left it.
    async fn go_on(&self, take: &mut Take, mut step: Step, pk: &str) -> Result<(Decision, Option<Arc<Item>>)> {
        let patience = Patience::new(self.deadline);
        let mut backoff = Backoff::new(Self::FIRST_PAUSE);
        let (mut writes, mut left) = (0, None);
        loop {
            step = match step {
                Step::Done(decision) => return Ok((decision, left)),
                Step::Read => {
                    let item = self.read(take.charges(), pk, &patience).await?;
                    take.read(item.as_deref(), self.store.moment())
                }
                Step::Write(_) if writes == Self::MOST_WRITES => return Err(patience.contended(Fate::NotApplied)),
                Step::Write(write) => {
                    writes += 1;
                    match self.write(take.charges(), pk, &write, &patience).await? {
                        Met::Applied(item) => take.applied(left.insert(item), self.store.moment()),
                        Met::Refused(item) => {
                            // Two writes are what a wrong guess costs.
                            if writes > 1 {
                                patience.make_way(&mut backoff).await?;
                            }
                            take.refused(item.as_deref(), self.store.moment())
                        }
                    }
                }
                Step::Lock { write, denial } => match self.write(take.charges(), pk, &write, &patience).await {
                    Ok(Met::Applied(item)) => take.applied(&item, self.store.moment()),
                    Ok(Met::Refused(item)) => take.refused(item.as_deref(), self.store.moment()),
                    Err(error) => Step::Done(self.unlocked(denial, &error)),
                },
            };
        }
    }

    /// The denial that stands though the key could not be locked, or nobody knows whether it is.
    fn unlocked(&self, denial: Decision, error: &Error) -> Decision {
        self.store.meter().record(Event::StoreFailure(error));
        tracing::warn!(%error, "a key that was denied could not be locked");
        denial
    }

    async fn read(&self, charges: &Charges, pk: &str, patience: &Patience) -> Result<Option<Arc<Item>>> {
        let limits: Vec<&LimitName> = charges.charges().iter().map(|charge| &charge.limit).collect();
        let item = patience.read(self.store.read(charges.item(), &limits)).await?.map(Arc::new);
        self.memory.remember(pk, item.clone().map(Seen::now));
        Ok(item)
    }

    /// Sends one write and remembers the item that it left or found.
    async fn write(&self, charges: &Charges, pk: &str, write: &Write, patience: &Patience) -> Result<Met> {
        let met = match patience.write(self.store.meter(), || self.store.write(charges.item(), write)).await? {
            Written::Applied(item) => Met::Applied(Arc::new(item)),
            Written::Refused(item) => Met::Refused(item.map(Arc::new)),
        };
        let item = match &met {
            Met::Applied(item) => Some(item),
            Met::Refused(item) => item.as_ref(),
        };
        self.memory.remember(pk, item.cloned().map(Seen::now));
        Ok(met)
    }

    /// Tells what was noticed on the way, whether or not it led to an answer.
    fn report(&self, take: &Take) {
        for notice in take.notices() {
            self.store.meter().record(Event::Notice(notice));
        }
    }
}

/// What happens to the call if the store failed with `error` on these charges: limits that only report never matter;
/// contention, and what cannot be read or asked, must not become a way past the others.
fn rule(charges: &Charges, error: &Error) -> StoreFailure {
    match charges.only_report() {
        true => StoreFailure::Open,
        false if error.is_outage() => charges.on_store_failure(),
        false => StoreFailure::Closed,
    }
}
