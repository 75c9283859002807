//! The limiter: drives the core's protocol against a store, within a deadline: one decision on one item or several, all or
//! nothing.
//!
//! Invariants: what was last seen picks the form of the first write and may deny while it is fresh, it never admits; a
//! write whose fate is unknown ends its part of the decision and is not repeated; only "not applied" is retried, within the
//! deadline; what was charged before another item refused is given back before the answer, as far as it can be; this process decides
//! by itself only where the store failed, never where it denied.

mod coalesce;
mod conclude;
mod leases;
mod settle;
mod shards;
mod together;

pub use settle::Settled;

use crate::breaker::{Breaker, BreakerState};
use crate::error::{Error, Fate, Result};
use crate::locals::Locals;
use crate::memory::{Memory, Seen};
use crate::meter::Event;
use crate::patience::{Backoff, Patience};
use crate::setting::AtomicDuration;
use crate::store::{Store, Written};
use coalesce::{Failure, Lines};
use conclude::{Answers, Part, rule};
use futures_util::FutureExt;
use futures_util::future::join_all;
use leases::Leases;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::time::Instant;
use tollgate_core::take::Notice;
#[cfg(doc)]
use tollgate_core::{Charge, TokenBucket};
use tollgate_core::{
    Charged, Charges, Decision, Item, LimitName, Source, Step, StoreFailure, Take, Timestamp, Unasked, Write,
};
use tracing::Instrument;

/// Decides charges on a store. One a process: a clone is a handle on the same limiter, whose settings it shares.
#[derive(Debug)]
pub struct Limiter<S> {
    parts: Arc<Parts<S>>,
}

impl<S> Clone for Limiter<S> {
    fn clone(&self) -> Self {
        Self { parts: Arc::clone(&self.parts) }
    }
}

/// What all handles on a limiter share, those of the tasks that go for others included.
#[derive(Debug)]
struct Parts<S> {
    store: S,
    memory: Memory,
    locals: Locals,
    leases: Leases,
    breaker: Breaker,
    deadline: AtomicDuration,
    coalesces: AtomicBool,
    lines: Lines,
}

/// A part of a decision that is answered.
#[derive(Debug)]
struct Driven {
    decision: Decision,
    charged: Vec<Charged>,
    place: Place,
    /// Of a limit that is divided, which shard was asked.
    shard: Option<u16>,
}

/// Where a part was charged.
#[derive(Debug)]
enum Place {
    /// In the table, with the item as the charge left it.
    Table(Option<Arc<Item>>),
    /// In the table, ahead of the call.
    Lease,
    /// In this process.
    Here,
}

impl Driven {
    /// An item that was not asked, since another refuses the call.
    fn unasked(charges: &Charges) -> Self {
        let mut decision = Decision::default();
        decision.unasked.extend(Unasked::of(charges, Source::Cache));
        Self::uncharged(decision)
    }

    fn uncharged(decision: Decision) -> Self {
        Self::new(decision, Vec::new(), Place::Table(None))
    }

    fn new(decision: Decision, charged: Vec<Charged>, place: Place) -> Self {
        Self { decision, charged, place, shard: None }
    }
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
    /// Keys whose last seen item is remembered, and as many again that this process has decided on by itself.
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
        let parts = Parts {
            store,
            memory: Memory::new(Self::REMEMBERED_KEYS, Self::DENIES_FOR),
            locals: Locals::new(Self::REMEMBERED_KEYS),
            leases: Leases::new(Self::REMEMBERED_KEYS),
            breaker: Breaker::new(),
            deadline: AtomicDuration::new(Self::DEADLINE),
            coalesces: AtomicBool::new(true),
            lines: Lines::default(),
        };
        Self { parts: Arc::new(parts) }
    }

    /// Changes the deadline of a decision, all its requests and waits included; at most [`Self::LONGEST_DEADLINE`]. Giving
    /// charges back has as long again.
    #[must_use]
    pub fn with_deadline(self, deadline: Duration) -> Self {
        self.set_deadline(deadline);
        self
    }

    /// As [`Self::with_deadline`], for decisions that start from now on.
    pub fn set_deadline(&self, deadline: Duration) {
        self.parts.deadline.set(deadline.min(Self::LONGEST_DEADLINE));
    }

    fn patience(&self) -> Patience {
        Patience::new(self.parts.deadline.get())
    }

    /// Tells how many processes share each limit where each decides by itself ([`StoreFailure::Local`]), in place of what the policy
    /// says; `None` leaves it to the policy. Can be told anew at any time.
    pub fn set_instances(&self, instances: Option<NonZeroU64>) {
        self.parts.locals.set_instances(instances);
    }

    /// Whether decisions go to the store.
    #[must_use]
    pub fn breaker(&self) -> BreakerState {
        self.parts.breaker.state()
    }

    /// Changes how long what was seen of a key may deny, at most [`Self::DENIES_FOR`]; zero asks the store every time. Of one limit
    /// its [`Charge::deny_cache`] says whether it does.
    #[must_use]
    pub fn denying_from_memory_for(self, age: Duration) -> Self {
        self.parts.memory.deny_for(age.min(Self::DENIES_FOR));
        self
    }

    /// Changes whether calls that are alike and come while one of them is under way take one write together. They do, but for limits
    /// whose [`Charge::coalesce`] says that theirs do not; those of leased limits do in any case.
    ///
    /// A call may wait for another's round trip before its own, and what becomes of that request becomes of it: an outage, which its own
    /// [`StoreFailure`] rule decides, or contention.
    #[must_use]
    pub fn coalescing(self, coalesces: bool) -> Self {
        self.parts.coalesces.store(coalesces, Ordering::Relaxed);
        self
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &S {
        &self.parts.store
    }

    /// Decides `charges`, each on an item of its own, all or nothing, and charges them if allowed.
    ///
    /// The items are written in parallel, or, if one of the charges is atomic, those that can deny in one transaction. Where
    /// one item denies, or its failure refuses the call, what the others were charged is given back before this returns; a
    /// process that dies in between leaves it charged until the bucket refills.
    ///
    /// Where the store fails on some items and none denies, each follows its [`StoreFailure`] rule, and the strictest goes first: one that is
    /// closed refuses the call, whatever the others say; those that are local are decided by this process, all or nothing; one that is open lets the call pass
    /// and leaves its limits in [`Decision::unasked`]. Contention, and what cannot be read, never pass; a hot key is local where it
    /// is not closed.
    ///
    /// After five outages in a row decisions skip the store at once, as if it had failed, until one of the probes that go there every
    /// few seconds is answered.
    ///
    /// # Errors
    ///
    /// The store gave no answer and the call is to be refused: see [`Error`]. A denial is `Ok`.
    pub async fn take(&self, charges: &[Charges]) -> Result<Decision> {
        match self.take_leased(charges) {
            Some((decision, _)) => Ok(decision),
            None => Ok(self.take_asking(charges).await?.0),
        }
    }

    /// As [`Self::take`], for a call that may yet not take place or cost something else: with what it was charged, for
    /// [`Self::settle`] and [`Self::cancel`].
    ///
    /// # Errors
    ///
    /// As [`Self::take`].
    pub async fn take_unsettled(&self, charges: &[Charges]) -> Result<(Decision, Taken)> {
        match self.take_leased(charges) {
            Some((decision, charged)) => {
                let part = Driven::new(Decision::default(), vec![charged], Place::Lease);
                Ok((decision, Taken(vec![Some(part)])))
            }
            None => self.take_asking(charges).await,
        }
    }

    async fn take_asking(&self, charges: &[Charges]) -> Result<(Decision, Taken)> {
        let began = Instant::now();
        let span = tracing::info_span!("decision", items = charges.len(), outcome = tracing::field::Empty);
        let result = match self.known_denial(charges) {
            Some(denial) => Ok((denial, Taken::default())),
            // Without its type, since the SDK's futures nest deeper than the compiler follows by itself.
            None => self.decide(charges).instrument(span.clone()).boxed().await,
        };
        let (outcome, event) = match &result {
            Ok((decision, _)) => (decision.outcome().as_str(), Event::Decision(decision)),
            Err(_) => ("unavailable", Event::Unavailable(charges)),
        };
        span.record("outcome", outcome);
        self.parts.store.meter().record(Event::Took(began.elapsed()));
        self.parts.store.meter().record(event);
        result
    }

    /// Decides by what the store answers, or without it while it is known to be gone.
    async fn decide(&self, charges: &[Charges]) -> Result<(Decision, Taken)> {
        let answers = match self.parts.breaker.admit() {
            Some(leave) => {
                let answers = self.ask(charges).await;
                if let Some(health) = answers.health() {
                    leave.report(health, self.parts.store.meter());
                }
                answers
            }
            None => Answers::suspended(charges),
        };
        self.conclude(charges, answers).await
    }

    /// The denial that follows from what this process saw of the items a moment ago, if one does.
    fn known_denial(&self, charges: &[Charges]) -> Option<Decision> {
        let moment = self.parts.store.moment();
        let mut is_denied = false;
        let mut decision = Decision::default();
        for charges in charges {
            if self.parts.leases.has(charges, moment.now) {
                decision.unasked.extend(Unasked::of(charges, Source::Cache));
                continue;
            }
            match self.recall(charges, moment) {
                Some((limits, denies)) => {
                    is_denied |= denies;
                    decision.limits.extend(limits);
                }
                None => decision.unasked.extend(Unasked::of(charges, Source::Cache)),
            }
        }
        is_denied.then_some(decision)
    }

    async fn ask(&self, charges: &[Charges]) -> Answers {
        let is_atomic = charges.len() > 1 && charges.iter().any(Charges::is_atomic);
        if is_atomic { self.together(charges).await } else { self.in_turn(charges).await }
    }

    /// The items that are to be asked first, and, unless they refuse the call, the others. Of many calls at once each item has room
    /// for its own choice of them, and only those go on that all have chosen; of an item that is asked first, all that it has room for do.
    async fn in_turn(&self, charges: &[Charges]) -> Answers {
        let (first, rest): (Vec<_>, Vec<_>) = charges.iter().partition(|charges| charges.is_first());
        let mut asked = self.apart(first.iter().copied()).await;
        if rest.is_empty() {
            return asked;
        }
        let refuses = |part: &Part| match part {
            Ok(driven) => !driven.decision.is_allowed(),
            Err(rule) => *rule == StoreFailure::Closed,
        };
        let others = if asked.parts.iter().any(refuses) {
            let unasked = |charges: &&Charges| Ok(Driven::unasked(charges));
            Answers { parts: rest.iter().map(unasked).collect(), failures: Vec::new(), answered: 0, shared: 0 }
        } else {
            self.apart(rest.iter().copied()).await
        };
        let (mut first, mut rest) = (asked.parts.into_iter(), others.parts.into_iter());
        asked.parts = charges.iter().filter_map(|c| if c.is_first() { first.next() } else { rest.next() }).collect();
        asked.failures.extend(others.failures);
        asked.answered += others.answered;
        asked.shared += others.shared;
        asked
    }

    /// Each item by itself, in parallel.
    async fn apart(&self, charges: impl IntoIterator<Item = &Charges>) -> Answers {
        let drive = async |charges| (charges, self.drive(charges).await);
        let mut answers = Answers { parts: Vec::new(), failures: Vec::new(), answered: 0, shared: 0 };
        for (charges, answer) in join_all(charges.into_iter().map(drive)).await {
            answers.answered += usize::from(answer.is_ok());
            answers.parts.push(answer.map_err(|Failure { error, is_shared }| {
                let rule = rule(charges, &error);
                answers.failures.push((rule, error));
                answers.shared += usize::from(is_shared);
                rule
            }));
        }
        answers
    }

    /// Decides on one item, by a write of its own.
    async fn drive_one(&self, charges: &Charges, pk: &str, patience: &Patience) -> Result<Driven> {
        Ok(self.take_one(charges, pk, patience).await?.1)
    }

    async fn take_one(&self, charges: &Charges, pk: &str, patience: &Patience) -> Result<(Take, Driven)> {
        let last_seen = self.parts.memory.last(pk).map(|seen| seen.item);
        let (mut take, step) =
            Take::start(charges.clone(), last_seen.as_deref(), self.parts.store.moment(), fastrand::u64(..));
        let answer = self.go_on(&mut take, step, pk, patience).await;
        self.report(&take, patience).await;
        let (decision, item) = answer?;
        let charged = take.charged().to_vec();
        Ok((take, Driven::new(decision, charged, Place::Table(item))))
    }

    /// Takes step after step; returns the decision, and the item as a charge left it.
    async fn go_on(
        &self,
        take: &mut Take,
        mut step: Step,
        pk: &str,
        patience: &Patience,
    ) -> Result<(Decision, Option<Arc<Item>>)> {
        let mut backoff = Backoff::new(Self::FIRST_PAUSE);
        let (mut writes, mut left) = (0, None);
        loop {
            step = match step {
                Step::Done(decision) => return Ok((decision, left)),
                Step::Read => {
                    let item = self.read(take.charges(), pk, patience).await?;
                    take.read(item.as_deref(), self.parts.store.moment())
                }
                Step::Write(_) if writes == Self::MOST_WRITES => return Err(patience.contended(Fate::NotApplied)),
                Step::Write(write) => {
                    writes += 1;
                    match self.write(take.charges(), pk, &write, patience).await? {
                        Met::Applied(item) => take.applied(left.insert(item), self.parts.store.moment()),
                        Met::Refused(item) => {
                            // Two writes are what a wrong guess costs.
                            if writes > 1 {
                                patience.make_way(&mut backoff).await?;
                            }
                            take.refused(item.as_deref(), self.parts.store.moment())
                        }
                    }
                }
                Step::Lock { write, denial } => match self.write(take.charges(), pk, &write, patience).await {
                    Ok(Met::Applied(item)) => take.applied(&item, self.parts.store.moment()),
                    Ok(Met::Refused(item)) => take.refused(item.as_deref(), self.parts.store.moment()),
                    Err(error) => Step::Done(self.unlocked(denial, &error)),
                },
            };
        }
    }

    /// The denial that stands though the key could not be locked, or nobody knows whether it is.
    fn unlocked(&self, denial: Decision, error: &Error) -> Decision {
        self.parts.store.meter().record(Event::StoreFailure(error));
        tracing::warn!(%error, "a key that was denied could not be locked");
        denial
    }

    async fn read(&self, charges: &Charges, pk: &str, patience: &Patience) -> Result<Option<Arc<Item>>> {
        let limits: Vec<&LimitName> = charges.charges().iter().map(|charge| &charge.limit).collect();
        let item = patience.read(self.parts.store.read(charges.item(), &limits)).await?.map(Arc::new);
        self.see(charges, pk, item.as_ref());
        Ok(item)
    }

    /// Sends one write and remembers the item that it left or found.
    async fn write(&self, charges: &Charges, pk: &str, write: &Write, patience: &Patience) -> Result<Met> {
        let met =
            match patience.write(self.parts.store.meter(), || self.parts.store.write(charges.item(), write)).await? {
                Written::Applied(item) => Met::Applied(Arc::new(item)),
                Written::Refused(item) => Met::Refused(item.map(Arc::new)),
            };
        let item = match &met {
            Met::Applied(item) => Some(item),
            Met::Refused(item) => item.as_ref(),
        };
        self.see(charges, pk, item);
        Ok(met)
    }

    /// Remembers an item that the store has just returned.
    fn see(&self, charges: &Charges, pk: &str, item: Option<&Arc<Item>>) {
        self.parts.leases.seen(charges, item.map(|item| &**item));
        self.parts.memory.remember(pk, item.cloned().map(Seen::now));
    }

    /// Tells what was noticed on the way, whether or not it led to an answer.
    async fn report(&self, take: &Take, patience: &Patience) {
        for notice in take.notices() {
            self.parts.store.meter().record(Event::Notice(notice));
            if let Notice::KeptOut { limit, until } = notice {
                self.keep_out(take.charges(), limit, *until, patience).await;
            }
        }
    }

    /// Hands a locked address over to whoever stands in front, within what is left of the deadline. The lock holds whatever becomes of it.
    async fn keep_out(&self, charges: &Charges, limit: &LimitName, until: Timestamp, patience: &Patience) {
        let (store, key) = (&self.parts.store, &charges.item().key);
        let mut values = key.dimensions().map(|(_, value)| value);
        let (Some(address), None) = (values.next(), values.next()) else { return };
        match patience.write(store.meter(), || store.keep_out(address, until)).await {
            Ok(true) => {
                tracing::info!(limit = limit.as_str(), until = until.as_secs(), "an address is to be kept out in front")
            }
            Ok(false) => tracing::warn!(limit = limit.as_str(), "nobody in front has room for another address"),
            Err(error) => {
                store.meter().record(Event::StoreFailure(&error));
                tracing::warn!(%error, "a locked address could not be handed over to whoever stands in front");
            }
        }
    }
}
