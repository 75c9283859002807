//! Calls that are alike and come while one of them is under way: they wait for it, and then take one write together.
//!
//! Whoever finds nobody under way goes first. Those who come meanwhile line up; when the first has its answer, the next in line goes
//! for all of them, and so on, so that a key is asked for once a round trip by a process, however many call. Nothing runs in the
//! background: whoever goes for others is one of them.
//!
//! Invariants: nobody is admitted whom a write has not been applied for, and a denial is concluded from an item that the store
//! returned; a caller that stops waiting, or is dropped while it goes for others, keeps nobody from going on; what may have been
//! charged for somebody is not charged for him again.

use super::{Driven, Limiter, Place};
use crate::error::{Error, Fate, Result};
use crate::meter::Event;
use crate::partition_key;
use crate::patience::Patience;
use crate::store::Store;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;
use tollgate_core::{Charges, Decision, Item, Take};

/// The calls that are under way, by partition key. Only keys that are being asked for are here.
#[derive(Debug, Default)]
pub(super) struct Lines(Mutex<HashMap<String, Line>>);

/// Those who wait for their turn at a key, all with the same charges.
#[derive(Debug)]
struct Line {
    charges: Charges,
    waiting: VecDeque<oneshot::Sender<Turn>>,
}

/// What somebody in line is told.
#[derive(Debug)]
enum Turn {
    /// To go, for those behind, too.
    Go(Front),
    /// What has become of the call.
    Answer(Result<Driven>),
    /// That whoever went for it is gone, and had not begun.
    Again,
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
    First(Front),
    Waiting(oneshot::Receiver<Turn>),
    /// Others are under way with other charges.
    Apart,
}

/// The right to go for everybody in line. Dropped, read or unread, it goes to the next.
#[derive(Debug)]
struct Front {
    lines: Arc<Lines>,
    pk: String,
}

impl Lines {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Line>> {
        // A panic elsewhere leaves a line as good as it was.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn place(self: &Arc<Self>, pk: &str, charges: &Charges) -> Spot {
        let mut lines = self.lock();
        match lines.get_mut(pk) {
            None => {
                lines.insert(pk.to_owned(), Line { charges: charges.clone(), waiting: VecDeque::new() });
                Spot::First(Front { lines: Arc::clone(self), pk: pk.to_owned() })
            }
            Some(line) if line.charges == *charges => {
                let (told, turn) = oneshot::channel();
                line.waiting.push_back(told);
                Spot::Waiting(turn)
            }
            Some(_) => Spot::Apart,
        }
    }
}

impl Front {
    /// Those in line who still wait.
    fn others(&self) -> Vec<oneshot::Sender<Turn>> {
        let mut lines = self.lines.lock();
        let waiting = lines.get_mut(&self.pk).map(|line| std::mem::take(&mut line.waiting)).unwrap_or_default();
        waiting.into_iter().filter(|told| !told.is_closed()).collect()
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        let next = {
            let mut lines = self.lines.lock();
            let next = lines.get_mut(&self.pk).and_then(|line| {
                while line.waiting.front().is_some_and(oneshot::Sender::is_closed) {
                    line.waiting.pop_front();
                }
                line.waiting.pop_front()
            });
            if next.is_none() {
                lines.remove(&self.pk);
            }
            next
        };
        if let Some(next) = next {
            // Not taken by whoever has just left, it is dropped, and goes on to the one behind.
            drop(next.send(Turn::Go(Self { lines: Arc::clone(&self.lines), pk: std::mem::take(&mut self.pk) })));
        }
    }
}

/// Those whom somebody goes for.
struct Others {
    waiting: VecDeque<oneshot::Sender<Turn>>,
    /// Whether a write for them may be under way.
    sent: bool,
}

impl Others {
    fn answer(told: oneshot::Sender<Turn>, answer: Result<Driven>) {
        // Whoever waits no longer has given up.
        drop(told.send(Turn::Answer(answer)));
    }

    fn leave(&mut self) {
        self.waiting.retain(|told| !told.is_closed());
    }

    fn answer_all(&mut self, answer: impl Fn() -> Result<Driven>) {
        self.waiting.drain(..).for_each(|told| Self::answer(told, answer()));
    }
}

impl Drop for Others {
    fn drop(&mut self) {
        // Whoever hangs up must not have the others pass by what the policy says of an outage.
        let gone = || Error::Contended { writes: 1, fate: Fate::Unknown };
        for told in self.waiting.drain(..) {
            drop(told.send(if self.sent { Turn::Answer(Err(gone())) } else { Turn::Again }));
        }
    }
}

impl<S: Store> Limiter<S> {
    /// Decides on one item, together with calls that are alike and under way.
    pub(super) async fn drive_item(
        &self,
        charges: &Charges,
        patience: &Patience,
    ) -> std::result::Result<Driven, Failure> {
        if let Some(driven) = self.spend(charges) {
            return Ok(driven);
        }
        let pk = &*partition_key::of(charges.item());
        let is_leased = charges.can_be_leased();
        if !(is_leased || self.coalesces && charges.can_be_grouped()) {
            return Ok(self.drive_one(charges, pk, patience).await?);
        }
        let shared = |error| Failure { error, is_shared: true };
        loop {
            let front = match self.lines.place(pk, charges) {
                Spot::Apart => return Ok(self.drive_one(charges, pk, patience).await?),
                Spot::First(front) => front,
                Spot::Waiting(turn) => match patience.turn(turn).await.map_err(shared)? {
                    Some(Turn::Go(front)) => {
                        // What time it has left is what others have left it.
                        patience.met_others();
                        front
                    }
                    Some(Turn::Answer(answer)) => return answer.map_err(shared),
                    Some(Turn::Again) | None => continue,
                },
            };
            let others = Others { waiting: front.others().into(), sent: false };
            let driven = match others.waiting.is_empty() && !is_leased {
                true => self.drive_one(charges, pk, patience).await,
                false => Box::pin(self.drive_for(charges, pk, others, patience)).await,
            };
            drop(front);
            return Ok(driven?);
        }
    }

    /// Decides for a call and those in line behind it, in as few writes as there are.
    async fn drive_for(&self, charges: &Charges, pk: &str, mut others: Others, patience: &Patience) -> Result<Driven> {
        let mut own: Option<Driven> = None;
        // At most so many, since more were found not to fit; and whether there is room beside them.
        let (mut most, mut has_more) = (u64::MAX, true);
        loop {
            others.leave();
            self.spend_for(charges, &mut own, &mut others);
            let is_in = own.is_none();
            let n = others.waiting.len() as u64 + u64::from(is_in);
            if n == 0 {
                break;
            }
            let (seen, moment) = (self.memory.last(pk).map(|seen| seen.item), self.store.moment());
            let room = Take::room(charges, seen.as_deref(), moment);
            let together = room.min(most).clamp(1, n);
            let extra =
                if has_more { self.leases.extra(charges, together, (room, seen.as_deref()), moment.now) } else { 0 };
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
                    others.answer_all(|| Err(Error::Contended { writes: 1, fate: error.fate() }));
                    return own.ok_or(error);
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
                    let denied = || Driven::uncharged(denial.clone());
                    others.answer_all(|| Ok(denied()));
                    return Ok(own.unwrap_or_else(denied));
                }
                // Some of them fit.
                if std::mem::take(&mut has_more) && extra > 0 {
                    continue;
                }
                most = together.div_ceil(2).min(together - 1);
                continue;
            };
            self.store.meter().record(Event::Coalesced(together - 1));
            let shares = take.shares(charges, together, extra, &item);
            if let Some((told, _)) = shares.last() {
                self.leases.keep(charges, together, take.charged(), told, &item);
                self.store.meter().record(Event::TakenAhead(extra));
            }
            for (decision, charged) in shares {
                let driven = Driven { decision, charged, place: Place::Table(Some(Arc::clone(&item))), shard: None };
                hand_out(driven, &mut own, &mut others);
            }
            (most, has_more) = (u64::MAX, true);
            self.spend_for(charges, &mut own, &mut others);
            if let Some(denial) = self.tell_denial(charges, &item) {
                others.answer_all(|| Ok(Driven::uncharged(denial.clone())));
            }
        }
        own.ok_or_else(|| Error::Ambiguous("a call that went for others has no answer".to_owned()))
    }

    /// Answers those whom what was taken ahead is enough for.
    fn spend_for(&self, charges: &Charges, own: &mut Option<Driven>, others: &mut Others) {
        while own.is_none() || !others.waiting.is_empty() {
            let Some(driven) = self.spend(charges) else { break };
            hand_out(driven, own, others);
        }
    }

    /// What one call is told by the item that was seen last, if that is a denial.
    fn last_denial(&self, charges: &Charges, pk: &str) -> Option<Decision> {
        self.tell_denial(charges, &self.memory.last(pk)?.item)
    }

    /// What one call is told by an item that the store has just returned, if that is a denial.
    fn tell_denial(&self, charges: &Charges, item: &Item) -> Option<Decision> {
        let decision = Decision::new(Take::tell(charges, item, self.store.moment()));
        (!decision.is_allowed()).then_some(decision)
    }
}

/// Gives an answer to the call itself, or else to the next that it goes for.
fn hand_out(driven: Driven, own: &mut Option<Driven>, others: &mut Others) {
    if own.is_none() {
        *own = Some(driven);
    } else if let Some(told) = others.waiting.pop_front() {
        Others::answer(told, Ok(driven));
    }
}
