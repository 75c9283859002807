//! The protocol of one decision on one item, without I/O: which store operation comes next, and when the answer is known.
//!
//! [`Take`] starts from what the caller last saw of the key (or nothing), guesses the form of the write that will fit,
//! and corrects itself from the item that a refused write returns. Invariants: at most one write of a `Take` charges, and
//! the answer is "allowed" only if one did (or nothing was to be charged); a denial is concluded only from an item that
//! the store returned; after a write whose fate is unknown the `Take` is dropped, never resumed, since sending again
//! could charge twice.

use crate::charge::{Charge, Charges, LimitName};
use crate::decision::{Decision, LimitDecision, Outcome, Source};
use crate::item::{Bucket, BusyPeriod, Item};
use crate::terms::{Standing, Terms};
use crate::time::Timestamp;
use crate::token_bucket::{Ticks, TokenBucket, Verdict};
use crate::write::{LimitWrite, Write};

/// The time of a step, and whether the clock that told it is known to agree with the store's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Moment {
    /// The time.
    pub now: Timestamp,
    /// Whether the clock agrees with the store's. Only then may a bucket that lies too far in the future be pulled back.
    pub clock_agrees: bool,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Read the item, strongly consistent, and call [`Take::read`].
    Read,
    /// Write the item; then call [`Take::applied`] or [`Take::refused`].
    Write(Write),
    /// The answer.
    Done(Decision),
}

/// Something that happened on the way and that an operator counts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Notice {
    /// The guessed form did not fit and another write was needed.
    Mispredicted,
    /// A bucket of the same revision and plan had other figures: somebody forgot to raise `revision`.
    RevisionConflict(LimitName),
    /// A bucket lay further in the future than agreeing clocks can leave it and was pulled back.
    PulledBack(LimitName),
}

/// A decision in progress.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Take {
    charges: Charges,
    id: u64,
    now: Timestamp,
    charging: bool,
    /// What is known to have happened.
    noticed: Vec<Notice>,
    /// What the write that is under way makes happen, if it is applied.
    pending: Vec<Notice>,
}

/// A limit as the caller has to see it: under whose terms, with which debt.
struct View<'a> {
    charge: &'a Charge,
    found: Option<&'a Bucket>,
    terms: Terms,
    tat: Option<Ticks>,
    /// The instant that `tat` was reckoned at, if it was moved.
    reckoned_at: Timestamp,
    standing: Standing,
    /// The stored bucket lay further in the future than agreeing clocks can leave it.
    pulled: bool,
    /// The stored bucket is under other terms or was pulled back: it must be rewritten, even if the answer is a denial.
    moved: bool,
}

impl Take {
    /// Starts deciding. `last_seen` is what this process last saw of the item: a guess, never grounds for an answer.
    /// `id` is random, for a busy period that this decision may start.
    #[must_use]
    pub fn start(charges: Charges, last_seen: Option<&Item>, moment: Moment, id: u64) -> (Self, Step) {
        let mut take = Self { charges, id, now: moment.now, charging: false, noticed: Vec::new(), pending: Vec::new() };
        let observes = take.charges.charges().iter().all(|c| c.cost == 0);
        let step = if observes {
            Step::Read
        } else {
            match take.conclude(last_seen, moment) {
                Step::Done(guess) if guess.outcome() == Outcome::NeverFits => Step::Read,
                Step::Done(_) => take.probe(last_seen, moment),
                step => step,
            }
        };
        (take, step)
    }

    /// The store returned the item.
    pub fn read(&mut self, item: Option<&Item>, moment: Moment) -> Step {
        self.conclude(item, moment)
    }

    /// The store refused the write and returned the item that it found.
    ///
    /// If the cost fitted at the instant that the refused write was made with, into a bucket that is busy by then, the
    /// decision stays at that instant: theoretical arrival times only grow, so the busy form's floor holds from now on,
    /// whoever else writes. (With a later instant the bucket may look idle again, and callers of a bucket that refills
    /// faster than they write would overtake each other without end. What is left is a bucket whose whole window is
    /// shorter than the spread of the calls under way.) Any instant within the call is as good.
    pub fn refused(&mut self, item: Option<&Item>, moment: Moment) -> Step {
        let at_first = Moment { now: self.now, clock_agrees: false };
        // A clock that was corrected meanwhile was wrong before.
        let elapsed = moment.now.as_nanos().checked_sub(self.now.as_nanos());
        let is_near = elapsed.is_some_and(|ns| ns <= TokenBucket::CLOCK_TOLERANCE_NS);
        let step = if is_near && self.is_busy_and_fits(item, at_first) {
            self.conclude(item, at_first)
        } else {
            self.conclude(item, moment)
        };
        if matches!(step, Step::Write(_)) {
            self.noticed.push(Notice::Mispredicted);
        }
        step
    }

    /// The store applied the write and left `item`.
    ///
    /// A write that charged is the answer. One that only moved limits to other terms, since another limit denied, is not:
    /// its condition said nothing of that other limit, which may have room by now.
    pub fn applied(&mut self, item: &Item, moment: Moment) -> Step {
        self.noticed.append(&mut self.pending);
        if !self.charging {
            return self.conclude(Some(item), moment);
        }
        // Figures are told as of the instant that the write was made with: its condition proved them.
        let views = self.views(Some(item), Moment { now: self.now, clock_agrees: false });
        let limits = views.iter().map(|v| v.decide(None, self.now));
        Step::Done(Decision::new(limits.collect(), Source::Table))
    }

    /// What was noticed on the way to the last step.
    pub fn notices(&self) -> impl Iterator<Item = &Notice> {
        self.noticed.iter().chain(&self.pending)
    }

    /// The charges that are being decided.
    #[must_use]
    pub fn charges(&self) -> &Charges {
        &self.charges
    }

    /// What follows if the item is as given: an answer, or the write that makes it so.
    fn conclude(&mut self, item: Option<&Item>, moment: Moment) -> Step {
        self.now = moment.now;
        let views = self.views(item, moment);
        let notices: Vec<_> = views.iter().flat_map(View::notices).collect();
        let verdicts: Vec<_> = views.iter().map(|v| v.verdict(moment.now)).collect();
        let denied = verdicts.iter().any(|v| matches!(v, Some(Verdict::Denied { .. } | Verdict::NeverFits)));
        let charging = !denied && verdicts.iter().any(Option::is_some);
        let writes: Vec<LimitWrite> = views
            .iter()
            .filter_map(|v| if charging { v.charge(moment.now, self.id) } else { v.settle(self.id) })
            .collect();
        let step = if writes.is_empty() {
            let limits = views.iter().zip(verdicts).map(|(v, verdict)| v.decide(verdict, moment.now));
            Step::Done(Decision::new(limits.collect(), Source::Table))
        } else {
            Step::Write(self.write(&views, writes, item))
        };
        self.charging = charging;
        self.pending = notices;
        step
    }

    /// Whether every charged limit has a bucket under the right terms that is busy and has room.
    fn is_busy_and_fits(&self, item: Option<&Item>, moment: Moment) -> bool {
        let fits = |v: &View<'_>| match v.verdict(moment.now) {
            None => true,
            Some(Verdict::Allowed { .. }) => !v.moved && v.found.is_some_and(|b| !b.is_idle(moment.now)),
            Some(Verdict::Denied { .. } | Verdict::NeverFits) => false,
        };
        self.charging && self.views(item, moment).iter().all(fits)
    }

    /// A write whose refusal would confirm a guessed denial, and whose success would be a fair charge.
    fn probe(&mut self, last_seen: Option<&Item>, moment: Moment) -> Step {
        self.charging = true;
        let views = self.views(last_seen, moment);
        let charge = |v: &View<'_>| {
            let c = v.charge;
            (c.cost > 0).then(|| LimitWrite::new_or_busy(c.limit.clone(), v.terms.clone(), c.cost, moment.now, self.id))
        };
        let writes = views.iter().filter_map(charge).collect();
        Step::Write(self.write(&views, writes, last_seen))
    }

    fn write(&self, views: &[View<'_>], writes: Vec<LimitWrite>, item: Option<&Item>) -> Write {
        let adopted = item.and_then(|i| i.horizon).unwrap_or(0);
        let needed = views.iter().map(|v| v.horizon(self.now)).max().unwrap_or(0);
        Write::new(writes, self.now, self.charges.horizon().max(adopted).max(needed))
    }

    fn views<'a>(&'a self, item: Option<&'a Item>, moment: Moment) -> Vec<View<'a>> {
        let find = |charge: &Charge| item.and_then(|i| i.buckets.get(&charge.limit));
        self.charges.charges().iter().map(|charge| View::new(charge, find(charge), moment)).collect()
    }
}

impl<'a> View<'a> {
    fn new(charge: &'a Charge, found: Option<&'a Bucket>, moment: Moment) -> Self {
        let Some(bucket) = found else {
            let terms = charge.terms.clone();
            let (standing, reckoned_at) = (Standing::Same, moment.now);
            return Self { charge, found, terms, tat: None, reckoned_at, standing, pulled: false, moved: false };
        };
        let pulled = moment.clock_agrees && bucket.tat > bucket.furthest_plausible(moment.now);
        let tat = if pulled { bucket.emptied_at(moment.now) } else { bucket.tat };
        let reckoned_at = if pulled || bucket.is_idle(moment.now) {
            moment.now
        } else {
            // Never before the last such reckoning: see `BusyPeriod::since`.
            moment.now.max(bucket.busy_period.since)
        };
        let standing = charge.terms.standing(&bucket.terms);
        let (terms, tat, moved) = match standing {
            Standing::Same | Standing::CallerIsOlder => (bucket.terms.clone(), tat, pulled),
            Standing::CallerIsNewer | Standing::OtherPlan | Standing::RevisionConflict => {
                let tat = charge.terms.carry(&bucket.terms, tat, reckoned_at, charge.on_change);
                (charge.terms.clone(), tat, true)
            }
        };
        Self { charge, found, terms, tat: Some(tat), reckoned_at, standing, pulled, moved }
    }

    /// What the arithmetic says; `None` for a cost of 0, which only observes.
    fn verdict(&self, now: Timestamp) -> Option<Verdict> {
        (self.charge.cost > 0).then(|| self.terms.bucket.take(self.tat, now, self.charge.cost))
    }

    /// The write that charges this limit, in the form that fits the state; `None` for a cost of 0.
    fn charge(&self, now: Timestamp, id: u64) -> Option<LimitWrite> {
        let Verdict::Allowed { tat } = self.verdict(now)? else { return None };
        let (limit, terms, cost) = (self.charge.limit.clone(), self.terms.clone(), self.charge.cost);
        Some(match self.found {
            Some(seen) if self.moved => LimitWrite::change(limit, seen, self.starting(tat, id)),
            Some(seen) if seen.is_idle(now) => LimitWrite::new_or_idle(limit, terms, cost, now, id),
            _ => LimitWrite::new_or_busy(limit, terms, cost, now, id),
        })
    }

    /// The write that moves this limit without charging it; `None` if it is where it belongs.
    ///
    /// A denial must leave the bucket under the new terms, or its debt would go on shrinking at the old rate and a key
    /// that moved from 10/h to 1000/s would stay locked for the hour.
    fn settle(&self, id: u64) -> Option<LimitWrite> {
        let (seen, tat) = (self.found?, self.tat?);
        let change = || LimitWrite::change(self.charge.limit.clone(), seen, self.starting(tat, id));
        (self.moved && self.charge.cost > 0).then(change)
    }

    /// The bucket as moved to these terms, with the theoretical arrival time `tat`.
    fn starting(&self, tat: Ticks, id: u64) -> Bucket {
        Bucket::starting(self.terms.clone(), tat, BusyPeriod { since: self.reckoned_at, id })
    }

    /// Seconds that this limit's state must be remembered for, debt beyond a whole bucket included.
    fn horizon(&self, now: Timestamp) -> u64 {
        let bucket = &self.terms.bucket;
        let debt = self.tat.map_or(Ticks(0), |tat| tat - bucket.at(now));
        bucket.horizon_secs().max(bucket.horizon_of(debt))
    }

    fn notices(&self) -> impl Iterator<Item = Notice> {
        let limit = &self.charge.limit;
        let conflict = (self.standing == Standing::RevisionConflict).then(|| Notice::RevisionConflict(limit.clone()));
        conflict.into_iter().chain(self.pulled.then(|| Notice::PulledBack(limit.clone())))
    }

    fn decide(&self, verdict: Option<Verdict>, now: Timestamp) -> LimitDecision {
        let (outcome, retry_after) = match verdict {
            None | Some(Verdict::Allowed { .. }) => (Outcome::Allowed, None),
            Some(Verdict::Denied { retry_after }) => (Outcome::Denied, Some(retry_after)),
            Some(Verdict::NeverFits) => (Outcome::NeverFits, None),
        };
        let (bucket, tat) = (&self.terms.bucket, self.tat);
        LimitDecision {
            limit: self.charge.limit.clone(),
            terms: self.terms.clone(),
            cost: self.charge.cost,
            outcome,
            remaining: bucket.remaining(tat, now),
            retry_after,
            next_token_after: bucket.next_token_after(tat, now),
            reset_after: bucket.reset_after(tat, now),
        }
    }
}
