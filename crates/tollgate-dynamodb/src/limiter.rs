//! The limiter: drives the core's protocol against a store, within a deadline: one decision on one item or several, all or
//! nothing.
//!
//! Invariants: what was last seen picks the form of the first write and may deny while it is fresh, it never admits; a
//! write whose fate is unknown ends its part of the decision and is not repeated; only "not applied" is retried, within the
//! deadline; what was charged before another item refused is given back before the answer, as far as it can be.

use crate::error::{Error, Result};
use crate::memory::{Memory, Seen};
use crate::meter::Event;
use crate::partition_key;
use crate::store::{Store, Transacted, Written};
use futures_util::future::join_all;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};
#[cfg(doc)]
use tollgate_core::TokenBucket;
use tollgate_core::refund;
use tollgate_core::{
    Charged, Charges, Decision, Item, LimitName, Refund, Source, Step, StoreFailure, Take, Unasked, Write,
};

/// Decides charges on a store. Cheap to share behind an [`Arc`]; one a process.
#[derive(Debug)]
pub struct Limiter<S> {
    store: S,
    memory: Memory,
    deadline: Duration,
}

/// What became of the part of a decision on one item: its decision and what it charged, or nothing if the store failed.
type Part = Option<Driven>;

/// A part of a decision that the store has answered.
struct Driven {
    decision: Decision,
    charged: Vec<Charged>,
    /// The item as the charge left it.
    item: Option<Arc<Item>>,
}

/// What became of a write: as [`Written`], with the item as memory shares it.
enum Met {
    Applied(Arc<Item>),
    Refused(Option<Arc<Item>>),
}

/// The parts of a decision, and what the store failed with, with what the policy says about that.
struct Answers {
    parts: Vec<Part>,
    failures: Vec<(StoreFailure, Error)>,
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
    /// The items are written in parallel, or in one transaction if one of the charges is atomic. Where one item denies, or
    /// its failure refuses the call, what the others were charged is given back before this returns; a process that dies
    /// in between leaves it charged until the bucket refills.
    ///
    /// Where the store fails on some items and none denies, the strictest of their [`StoreFailure`] rules holds. One that
    /// lets the call pass leaves the limits in [`Decision::unasked`]; contention, and what cannot be read, never pass.
    ///
    /// # Errors
    ///
    /// The store gave no answer and the call is to be refused: see [`Error`]. A denial is `Ok`.
    pub async fn take(&self, charges: &[Charges]) -> Result<Decision> {
        let result = match self.known_denial(charges) {
            Some(denial) => Ok(denial),
            None => {
                let is_atomic = charges.len() > 1 && charges.iter().any(Charges::is_atomic);
                let answers = if is_atomic { self.together(charges).await } else { self.apart(charges).await };
                self.conclude(charges, answers).await
            }
        };
        if let Ok(decision) = &result {
            self.store.meter().record(Event::Decision(decision));
        }
        result
    }

    /// The denial that follows from what this process saw of the items a moment ago, if one does.
    fn known_denial(&self, charges: &[Charges]) -> Option<Decision> {
        let moment = self.store.moment();
        let mut is_denied = false;
        let mut decision = Decision::default();
        for charges in charges {
            match self.memory.fresh(&partition_key::of(charges.item())) {
                Some(seen) => {
                    let (limits, denies) = Take::recall(charges, &seen, moment);
                    is_denied |= denies;
                    decision.limits.extend(limits);
                }
                None => decision.unasked.extend(Unasked::of(charges, Source::Cache)),
            }
        }
        is_denied.then_some(decision)
    }

    /// Each item by itself, in parallel.
    async fn apart(&self, charges: &[Charges]) -> Answers {
        let until = Instant::now() + self.deadline;
        let answers = join_all(charges.iter().map(|charges| self.drive(charges, until))).await;
        let mut failures = Vec::new();
        let of = |(charges, answer): (&Charges, Result<Driven>)| match answer {
            Ok(driven) => Some(driven),
            Err(error) => {
                failures.push((rule(charges, &error), error));
                None
            }
        };
        let parts = charges.iter().zip(answers).map(of).collect();
        Answers { parts, failures }
    }

    /// All items in one transaction.
    async fn together(&self, charges: &[Charges]) -> Answers {
        match self.drive_together(charges).await {
            Ok(parts) => Answers { parts, failures: Vec::new() },
            Err(error) => {
                let rule = charges.iter().map(|charges| rule(charges, &error)).max().unwrap_or(StoreFailure::Closed);
                Answers { parts: charges.iter().map(|_| None).collect(), failures: vec![(rule, error)] }
            }
        }
    }

    /// What follows from the parts: a denial goes before a failure of the store, and that before an admission.
    async fn conclude(&self, charges: &[Charges], answers: Answers) -> Result<Decision> {
        let Answers { mut parts, mut failures } = answers;
        for (_, error) in &failures {
            self.store.meter().record(Event::StoreFailure(error));
        }
        let is_denied = parts.iter().flatten().any(|part| !part.decision.is_allowed());
        let closed = failures.iter().position(|(rule, _)| *rule == StoreFailure::Closed);
        if is_denied || closed.is_some() {
            let give_back =
                charges.iter().zip(&mut parts).map(|(charges, part)| self.give_back(charges, part.as_mut()));
            join_all(give_back).await;
        }
        if let (false, Some(closed)) = (is_denied, closed) {
            return Err(failures.swap_remove(closed).1);
        }
        let mut decision = Decision::default();
        for (charges, part) in charges.iter().zip(parts) {
            match part {
                Some(part) => decision.extend(part.decision),
                None => decision.unasked.extend(Unasked::of(charges, Source::Open)),
            }
        }
        for (_, error) in &failures {
            tracing::warn!(%error, "the store gave no answer, and the policy lets the call pass");
        }
        Ok(decision)
    }

    async fn drive(&self, charges: &Charges, until: Instant) -> Result<Driven> {
        let pk = partition_key::of(charges.item());
        let last_seen = self.memory.last(&pk).map(|seen| seen.item);
        let (mut take, mut step) =
            Take::start(charges.clone(), last_seen.as_deref(), self.store.moment(), fastrand::u64(..));
        let (mut writes, mut left) = (0, None);
        loop {
            step = match step {
                Step::Done(decision) => {
                    self.report(&take);
                    return Ok(Driven { decision, charged: take.charged().to_vec(), item: left });
                }
                Step::Read => {
                    let item = self.read(charges, &pk, until).await?;
                    take.read(item.as_deref(), self.store.moment())
                }
                Step::Write(_) if writes == Self::MOST_WRITES => {
                    self.report(&take);
                    return Err(Error::Contended(writes));
                }
                Step::Write(write) => {
                    writes += 1;
                    match self.write(charges, &pk, &write, until).await? {
                        Met::Applied(item) => take.applied(left.insert(item), self.store.moment()),
                        Met::Refused(item) => {
                            pause_after(writes).await;
                            take.refused(item.as_deref(), self.store.moment())
                        }
                    }
                }
            };
        }
    }

    /// As [`Self::drive`], for several items that are charged in one transaction. Its reply has no items, so each charge
    /// requires the state that was seen; what has to be looked at, or moved without a charge, is so by itself before.
    async fn drive_together(&self, charges: &[Charges]) -> Result<Vec<Part>> {
        let until = Instant::now() + self.deadline;
        let mut items: Vec<Together<'_>> = charges.iter().map(|charges| self.begin_together(charges)).collect();
        let mut writes = 0;
        loop {
            join_all(items.iter_mut().map(|item| self.prepare(item, until)))
                .await
                .into_iter()
                .collect::<Result<()>>()?;
            let is_denied =
                items.iter().any(|item| matches!(&item.step, Step::Done(decision) if !decision.is_allowed()));
            if is_denied || items.iter().all(|item| matches!(item.step, Step::Done(_))) {
                return Ok(items.into_iter().map(|item| Some(self.finish_together(item, is_denied))).collect());
            }
            if writes == Self::MOST_WRITES {
                items.iter().for_each(|item| self.report(&item.take));
                return Err(Error::Contended(writes));
            }
            writes += 1;
            let charging = |item: &Together<'_>| matches!(item.step, Step::Write(_));
            let all: Vec<_> = items
                .iter()
                .filter_map(|item| match &item.step {
                    Step::Write(write) => Some((item.charges, write)),
                    Step::Read | Step::Done(_) => None,
                })
                .collect();
            let transacted = self.transact(&all, until).await?;
            let mut found = match transacted {
                Transacted::Applied => None,
                Transacted::Refused(found) => {
                    pause_after(writes).await;
                    Some(found.into_iter())
                }
            };
            for item in items.iter_mut().filter(|item| charging(item)) {
                match &mut found {
                    None => self.applied_together(item),
                    // An item whose own condition held keeps its write for the next try.
                    Some(found) => {
                        if let Some(found) = found.next().flatten() {
                            self.refused_together(item, found);
                        }
                    }
                }
            }
        }
    }

    fn begin_together<'c>(&self, charges: &'c Charges) -> Together<'c> {
        let pk = partition_key::of(charges.item());
        let seen = self.memory.last(&pk);
        let item = seen.as_ref().map(|seen| &*seen.item);
        let (take, step) = Take::start_exactly(charges.clone(), item, self.store.moment(), fastrand::u64(..));
        Together { charges, pk, take, step, seen, charged: None }
    }

    /// Does what concerns one item alone, until it is to be charged or answered.
    async fn prepare(&self, item: &mut Together<'_>, until: Instant) -> Result<()> {
        for _ in 0..Self::MOST_WRITES {
            let moment = || self.store.moment();
            match &item.step {
                Step::Read => {
                    let found = self.read(item.charges, &item.pk, until).await?;
                    item.seen = found.clone().map(Seen::now);
                    item.step = item.take.read(found.as_deref(), moment());
                }
                Step::Write(write) if !item.take.is_charging() => {
                    match self.write(item.charges, &item.pk, write, until).await? {
                        Met::Applied(left) => {
                            item.step = item.take.applied(&left, moment());
                            item.seen = Some(Seen::now(left));
                        }
                        Met::Refused(found) => {
                            item.step = item.take.refused(found.as_deref(), moment());
                            item.seen = found.map(Seen::now);
                        }
                    }
                }
                Step::Write(_) | Step::Done(_) => return Ok(()),
            }
        }
        Err(Error::Contended(Self::MOST_WRITES))
    }

    fn applied_together(&self, item: &mut Together<'_>) {
        let Step::Write(write) = &item.step else { return };
        let seen = item.seen.as_ref();
        // The condition was that the limits are as seen; others that share the item may have moved on since.
        let Some(left) = write.apply(seen.map(|seen| &*seen.item)).map(Arc::new) else { return };
        let remembered = seen.map_or_else(|| Seen::now(left.clone()), |seen| seen.with(left.clone()));
        self.memory.remember(&item.pk, Some(remembered));
        item.step = item.take.applied(&left, self.store.moment());
        item.charged = Some(left);
    }

    fn refused_together(&self, item: &mut Together<'_>, found: Option<Item>) {
        let found = found.map(|found| Seen::now(Arc::new(found)));
        self.memory.remember(&item.pk, found.clone());
        item.step = item.take.refused(found.as_ref().map(|seen| &*seen.item), self.store.moment());
        item.seen = found;
    }

    fn finish_together(&self, item: Together<'_>, is_denied: bool) -> Driven {
        self.report(&item.take);
        let decision = match (item.step, item.seen) {
            (Step::Done(decision), _) => decision,
            // Another item denied before this one was charged.
            (_, Some(seen)) if is_denied => Decision::new(Take::tell(item.charges, &seen.item, self.store.moment())),
            _ => {
                let mut decision = Decision::default();
                decision.unasked.extend(Unasked::of(item.charges, Source::Cache));
                decision
            }
        };
        Driven { decision, charged: item.take.charged().to_vec(), item: item.charged }
    }

    /// Gives back what a part of a refused call was charged, and tells its limits as they are then.
    async fn give_back(&self, charges: &Charges, part: Option<&mut Driven>) {
        let Some(part) = part else { return };
        let (Some(left), false) = (part.item.take(), part.charged.is_empty()) else { return };
        let until = Instant::now() + self.deadline;
        let charged = std::mem::take(&mut part.charged);
        match self.refund(charges, charged, left, until).await {
            Some(item) => {
                self.store.meter().record(Event::Refunded);
                part.decision = Decision::new(Take::tell(charges, &item, self.store.moment()));
            }
            None => self.store.meter().record(Event::RefundLost),
        }
    }

    /// The item after the refund; `None` if the charge could not be given back. It comes back as the bucket refills.
    async fn refund(
        &self,
        charges: &Charges,
        charged: Vec<Charged>,
        left: Arc<Item>,
        until: Instant,
    ) -> Option<Arc<Item>> {
        let pk = partition_key::of(charges.item());
        let (refund, mut step) = Refund::start(charged, &left, self.store.moment().now);
        let mut item = left;
        for attempt in 1..=Self::MOST_WRITES {
            let write = match step {
                refund::Step::Done => return Some(item),
                refund::Step::Write(write) => write,
            };
            match self.write(charges, &pk, &write, until).await {
                Ok(Met::Applied(left)) => return Some(left),
                Ok(Met::Refused(found)) => {
                    pause_after(attempt).await;
                    step = refund.refused(found.as_deref(), self.store.moment().now);
                    item = found.unwrap_or_default();
                }
                Err(error) => {
                    tracing::warn!(%error, "a charge could not be given back");
                    return None;
                }
            }
        }
        None
    }

    async fn read(&self, charges: &Charges, pk: &str, until: Instant) -> Result<Option<Arc<Item>>> {
        let limits: Vec<&LimitName> = charges.charges().iter().map(|charge| &charge.limit).collect();
        let read = timeout_at(until, self.store.read(charges.item(), &limits)).await;
        let item = read.map_err(|_| Error::Deadline(self.deadline))??.map(Arc::new);
        self.memory.remember(pk, item.clone().map(Seen::now));
        Ok(item)
    }

    /// Sends one write and remembers the item that it left or found.
    async fn write(&self, charges: &Charges, pk: &str, write: &Write, until: Instant) -> Result<Met> {
        let met = match self.send(until, || self.store.write(charges.item(), write)).await? {
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

    /// Sends the charges of a transaction. One alone needs none.
    async fn transact(&self, writes: &[(&Charges, &Write)], until: Instant) -> Result<Transacted> {
        if let [(charges, write)] = writes {
            return Ok(match self.send(until, || self.store.write(charges.item(), write)).await? {
                Written::Applied(_) => Transacted::Applied,
                Written::Refused(found) => Transacted::Refused(vec![Some(found)]),
            });
        }
        let writes: Vec<_> = writes.iter().map(|(charges, write)| (charges.item(), *write)).collect();
        self.send(until, || self.store.transact(&writes)).await
    }

    /// Sends a request that writes, again only while the table says that it was not applied, and only until the deadline.
    async fn send<T, F: Future<Output = Result<T>>>(&self, until: Instant, request: impl Fn() -> F) -> Result<T> {
        let mut pause = Duration::from_millis(5);
        loop {
            let Ok(answer) = timeout_at(until, request()).await else {
                return Err(Error::Ambiguous(format!("no answer within {:?}", self.deadline)));
            };
            match answer {
                Err(e) if e.may_be_retried() => {
                    self.store.meter().record(Event::Throttled);
                    let wait = jittered(pause);
                    if Instant::now() + wait >= until {
                        return Err(e);
                    }
                    sleep(wait).await;
                    pause *= 2;
                }
                answer => return answer,
            }
        }
    }

    /// Tells what was noticed on the way, whether or not it led to an answer.
    fn report(&self, take: &Take) {
        for notice in take.notices() {
            self.store.meter().record(Event::Notice(notice));
        }
    }
}

/// An item of a transaction.
struct Together<'c> {
    charges: &'c Charges,
    pk: String,
    take: Take,
    step: Step,
    /// The item as the next write requires it.
    seen: Option<Seen>,
    /// The item as the charge left it.
    charged: Option<Arc<Item>>,
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

/// Two writes are what a wrong guess costs; from the third on, others are in the way.
async fn pause_after(writes: u32) {
    if writes > 2 {
        sleep(jittered(Duration::from_millis(1 << writes.min(6)))).await;
    }
}

/// Full jitter, so that callers who were in each other's way do not come back together.
fn jittered(most: Duration) -> Duration {
    most.mul_f64(fastrand::f64())
}
