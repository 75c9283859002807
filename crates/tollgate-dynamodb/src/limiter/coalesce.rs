//! Calls that are alike and come while one of them is under way: they wait for it, and then take one write together.
//!
//! Whoever finds nobody under way goes first, for itself. Those who come meanwhile line up; when the first has its answer, a request
//! goes for all of them, in a task and with a whole deadline of its own, and so on, so that a key is asked for once a round trip by a
//! process, however many call. Whoever hangs up, or has little time left, takes none from the others.
//!
//! Invariants: nobody is admitted whom a write has not been applied for, and a denial is concluded from an item that the store
//! returned; nobody waits for anything longer than its own time, so nothing depends on a task that goes on; what may have been
//! charged for somebody is not charged for him again; time in line that ends is an outage only if the table was silent.

use super::{Driven, Limiter, Place};
use crate::breaker::Health;
use crate::error::{Error, Fate, Result};
use crate::meter::Event;
use crate::partition_key;
use crate::patience::Patience;
use crate::store::Store;
use futures_util::FutureExt;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tollgate_core::{Actual, Charges, Decision, Item, Take};

/// The calls that are under way, by partition key. Only keys that are being asked for are here.
#[derive(Debug, Default)]
pub(super) struct Lines(Mutex<HashMap<String, Line>>);

/// Those who wait for their turn at a key, all with the same charges.
#[derive(Debug)]
struct Line {
    charges: Charges,
    /// Of the request that is under way. It names the line's present front.
    front: Arc<Patience>,
    waiting: VecDeque<Waiting>,
}

/// Somebody in line, and what drives him.
#[derive(Debug)]
struct Waiting {
    told: oneshot::Sender<Result<Driven>>,
    runtime: Handle,
}

/// Why a call has no answer.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) error: Error,
    /// Whether the request was another's, which went for this call, too.
    pub(super) is_shared: bool,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { error, is_shared: false }
    }
}

/// Where a call stands.
enum Spot {
    First,
    Waiting(oneshot::Receiver<Result<Driven>>),
    /// Others are under way with other charges.
    Apart,
}

impl Lines {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Line>> {
        // A panic elsewhere leaves a line as good as it was.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Behind those who are alike and under way. Nobody waits for a front that is held up, by a caller that is not polled or a
    /// runtime that has stopped; those who did go by themselves.
    fn place(&self, pk: &str, charges: &Charges, patience: &Arc<Patience>) -> Spot {
        let mut lines = self.lock();
        match lines.get_mut(pk).filter(|line| !line.front.is_held_up()) {
            None => {
                let line = Line { charges: charges.clone(), front: Arc::clone(patience), waiting: VecDeque::new() };
                lines.insert(pk.to_owned(), line);
                Spot::First
            }
            Some(line) if line.charges == *charges => line.join().map_or(Spot::Apart, Spot::Waiting),
            Some(_) => Spot::Apart,
        }
    }

    /// What the request is at that those in line wait for.
    fn front(&self, pk: &str) -> Option<Arc<Patience>> {
        self.lock().get(pk).map(|line| Arc::clone(&line.front))
    }
}

impl Line {
    /// Lines up; not where no runtime is known that would go for him.
    fn join(&mut self) -> Option<oneshot::Receiver<Result<Driven>>> {
        let runtime = Handle::try_current().ok()?;
        let (told, turn) = oneshot::channel();
        self.waiting.push_back(Waiting { told, runtime });
        Some(turn)
    }
}

/// The right to ask about a key. Dropped, by whoever has an answer, fails or hangs up, it goes on for those who wait.
struct Front<S: Store> {
    limiter: Limiter<S>,
    pk: String,
    patience: Arc<Patience>,
}

impl<S: Store> Front<S> {
    /// The line, unless it was taken over.
    fn own<'l>(&self, lines: &'l mut HashMap<String, Line>) -> Option<&'l mut Line> {
        lines.get_mut(&self.pk).filter(|line| Arc::ptr_eq(&line.front, &self.patience))
    }

    /// Lines up at the front, for a request that has a whole deadline where the caller has not.
    fn join(self) -> Option<oneshot::Receiver<Result<Driven>>> {
        self.own(&mut self.limiter.parts.lines.lock())?.join()
    }

    /// Where a whole deadline was not enough, whoever waits is told the same: with what time they have left none would do better.
    fn ended<T>(&self, answer: &Result<T>) {
        let Err(error) = answer else { return };
        if error.is_store_failure() && self.patience.is_spent() {
            let waiting = self.own(&mut self.limiter.parts.lines.lock()).map(|line| std::mem::take(&mut line.waiting));
            Others::of(waiting.unwrap_or_default()).answer_all(|| Err(error.clone()));
        }
    }

    /// The front of those who wait, and a runtime for it that one of them waits on; without any the line ends.
    fn next(&self) -> Option<(Handle, Self, Charges, Others)> {
        let mut lines = self.limiter.parts.lines.lock();
        let line = self.own(&mut lines)?;
        line.waiting.retain(|waiting| !waiting.told.is_closed());
        let Some(runtime) = line.waiting.front().map(|waiting| waiting.runtime.clone()) else {
            lines.remove(&self.pk);
            return None;
        };
        line.front = Arc::new(self.limiter.patience().after(&self.patience));
        let front = Self { limiter: self.limiter.clone(), pk: self.pk.clone(), patience: Arc::clone(&line.front) };
        Some((runtime, front, line.charges.clone(), Others::of(std::mem::take(&mut line.waiting))))
    }

    /// Goes for others.
    async fn go(self, charges: Charges, mut others: Others) {
        let limiter = &self.limiter;
        let answer = limiter.drive_for(&charges, &self.pk, &mut others, &self.patience).await;
        // Once for all of them, and also if none has waited for it.
        if !self.patience.is_whole() {
            limiter.parts.breaker.hear(Health::of(&answer), limiter.parts.store.meter());
        }
        self.ended(&answer);
    }
}

impl<S: Store> Drop for Front<S> {
    fn drop(&mut self) {
        if let Some((runtime, front, charges, others)) = self.next() {
            runtime.spawn(front.go(charges, others).boxed());
        }
    }
}

/// Those whom somebody goes for. Dropped, by a runtime that stops, it has those go by themselves for whom nothing was sent.
struct Others {
    waiting: VecDeque<oneshot::Sender<Result<Driven>>>,
    /// Whether a write for them may be under way.
    sent: bool,
}

impl Others {
    fn of(waiting: impl IntoIterator<Item = Waiting>) -> Self {
        Self { waiting: waiting.into_iter().map(|waiting| waiting.told).collect(), sent: false }
    }

    fn leave(&mut self) {
        self.waiting.retain(|told| !told.is_closed());
    }

    /// Gives an answer to the next who still waits; back if nobody does.
    fn answer(&mut self, driven: Driven) -> Option<Driven> {
        let mut answer = Ok(driven);
        while let Some(told) = self.waiting.pop_front() {
            match told.send(answer) {
                Ok(()) => return None,
                Err(unheard) => answer = unheard,
            }
        }
        answer.ok()
    }

    fn answer_all(&mut self, answer: impl Fn() -> Result<Driven>) {
        // Whoever waits no longer has given up.
        self.waiting.drain(..).for_each(|told| drop(told.send(answer())));
    }
}

impl Drop for Others {
    fn drop(&mut self) {
        if self.sent {
            // Nothing that is known of the table, so nothing that lets a call pass.
            self.answer_all(|| Err(Error::Contended { writes: 1, fate: Fate::Unknown }));
        }
    }
}

impl<S: Store> Limiter<S> {
    /// Decides on one item, together with calls that are alike and under way.
    pub(super) async fn drive_item(
        &self,
        charges: &Charges,
        patience: &Arc<Patience>,
    ) -> std::result::Result<Driven, Failure> {
        if let Some(driven) = self.spend(charges) {
            return Ok(driven);
        }
        let pk = &*partition_key::of(charges.item());
        let coalesces = self.parts.coalesces.load(Ordering::Relaxed) && charges.can_be_grouped();
        if !(coalesces || charges.can_be_leased()) {
            return Ok(self.drive_one(charges, pk, patience).await?);
        }
        let turn = match self.parts.lines.place(pk, charges, patience) {
            Spot::Apart => None,
            Spot::Waiting(turn) => Some(turn),
            Spot::First => {
                let front = Front { limiter: self.clone(), pk: pk.to_owned(), patience: Arc::clone(patience) };
                if patience.is_whole() {
                    let answer = self.drive_first(charges, pk, patience).await;
                    front.ended(&answer);
                    return Ok(answer?);
                }
                front.join()
            }
        };
        let Some(turn) = turn else { return Ok(self.drive_one(charges, pk, patience).await?) };
        match patience.turn(turn).await {
            Some(Ok(answer)) => answer.map_err(|error| Failure { error, is_shared: true }),
            // Whoever was to go is gone, and had not begun.
            Some(Err(_)) => Ok(self.drive_one(charges, pk, patience).await?),
            None => {
                let front = self.parts.lines.front(pk);
                Err(Failure { error: patience.over_in_line(front.as_deref()), is_shared: true })
            }
        }
    }

    /// Decides for a call that found nobody under way, by a write of its own, which takes more ahead if the limit is leased.
    async fn drive_first(&self, charges: &Charges, pk: &str, patience: &Patience) -> Result<Driven> {
        if !charges.can_be_leased() {
            return self.drive_one(charges, pk, patience).await;
        }
        let (told, mut turn) = oneshot::channel();
        let mut own = Others { waiting: VecDeque::from([told]), sent: false };
        Box::pin(self.drive_for(charges, pk, &mut own, patience)).await?;
        turn.try_recv()
            .unwrap_or_else(|_| Err(Error::Ambiguous("a call that went for itself has no answer".to_owned())))
    }

    /// Decides for all of `others`, in as few writes as there are, and answers them, as well where that fails.
    async fn drive_for(&self, charges: &Charges, pk: &str, others: &mut Others, patience: &Patience) -> Result<()> {
        // At most so many, since more were found not to fit; and whether there is room beside them.
        let (mut most, mut has_more) = (u64::MAX, true);
        loop {
            others.leave();
            self.spend_for(charges, others);
            let n = others.waiting.len() as u64;
            if n == 0 {
                return Ok(());
            }
            let (seen, moment) = (self.parts.memory.last(pk).map(|seen| seen.item), self.parts.store.moment());
            if let Some((limits, true)) = self.recall(charges, moment) {
                // What was seen while they waited denies them as it would if they came now.
                let denial = Decision::new(limits);
                others.answer_all(|| Ok(Driven::uncharged(denial.clone())));
                return Ok(());
            }
            let room = Take::room(charges, seen.as_deref(), moment);
            let together = room.min(most).clamp(1, n);
            let extra = if has_more {
                self.parts.leases.extra(charges, together, (room, seen.as_deref()), moment.now)
            } else {
                0
            };
            let Some(wanted) = charges.times(together).and_then(|together| together.ahead(extra)) else {
                (most, has_more) = (1, false);
                continue;
            };
            others.sent = true;
            let driven = self.take_one(&wanted, pk, patience).await;
            others.sent = false;
            let (take, driven) = match driven {
                Ok(driven) => driven,
                Err(error) => {
                    others.answer_all(|| Err(error.clone()));
                    return Err(error);
                }
            };
            let left = match &driven.place {
                Place::Table(Some(item)) if driven.decision.is_allowed() => Some(Arc::clone(item)),
                Place::Table(_) | Place::Lease | Place::Here => None,
            };
            let Some(item) = left else {
                let is_alone = together == 1 && extra == 0;
                let denial = is_alone.then(|| driven.decision.clone()).or_else(|| self.last_denial(charges, pk));
                if let Some(denial) = denial {
                    others.answer_all(|| Ok(Driven::uncharged(denial.clone())));
                    return Ok(());
                }
                // Some of them fit.
                if std::mem::take(&mut has_more) && extra > 0 {
                    continue;
                }
                // What they were to have is others' by now.
                patience.met_others();
                most = together.div_ceil(2).min(together - 1);
                continue;
            };
            self.parts.store.meter().record(Event::Coalesced(together - 1));
            let shares = take.shares(charges, together, extra, &item);
            if let Some((told, _)) = shares.last() {
                self.parts.leases.keep(charges, together, take.charged(), told, &item);
                self.parts.store.meter().record(Event::TakenAhead(extra));
            }
            for (decision, charged) in shares {
                let driven = Driven::new(decision, charged, Place::Table(Some(Arc::clone(&item))));
                self.answer_next(charges, driven, others);
            }
            (most, has_more) = (u64::MAX, true);
            self.spend_for(charges, others);
            if let Some(denial) = self.tell_denial(charges, &item) {
                others.answer_all(|| Ok(Driven::uncharged(denial.clone())));
            }
        }
    }

    /// Answers those whom what was taken ahead is enough for.
    fn spend_for(&self, charges: &Charges, others: &mut Others) {
        while !others.waiting.is_empty() {
            let Some(driven) = self.spend(charges) else { break };
            self.answer_next(charges, driven, others);
        }
    }

    /// Gives an answer to the next in line. What was charged for somebody who is gone stays charged, as that of anybody who hangs up;
    /// of a leased limit the next call spends it.
    fn answer_next(&self, charges: &Charges, driven: Driven, others: &mut Others) {
        if let Some(unheard) = others.answer(driven) {
            let unspent: Vec<_> = unheard.charged.into_iter().map(|charged| (charged, Actual::Cost(0))).collect();
            drop(self.parts.leases.take_back(charges, &unspent, self.parts.store.moment().now));
        }
    }

    /// What one call is told by the item that was seen last, if that is a denial.
    fn last_denial(&self, charges: &Charges, pk: &str) -> Option<Decision> {
        self.tell_denial(charges, &self.parts.memory.last(pk)?.item)
    }

    /// What one call is told by an item that the store has just returned, if that is a denial.
    fn tell_denial(&self, charges: &Charges, item: &Item) -> Option<Decision> {
        let decision = Decision::new(Take::tell(charges, item, self.parts.store.moment()));
        (!decision.is_allowed()).then_some(decision)
    }
}
