//! The protocol of one decision on one item, without I/O: which store operation comes next, and when the answer is known.
//!
//! [`Take`] starts from what the caller last saw of the key (or nothing), guesses the form of the write that will fit,
//! and corrects itself from the item that a refused write returns. Invariants: at most one write of a `Take` charges, and
//! the answer is "allowed" only if one did (or nothing was to be charged); a denial is concluded only from an item that
//! the store returned; after a write whose fate is unknown the `Take` is dropped, never resumed, since sending again
//! could charge twice. A denial that sets a lock is known before the lock is written, and stands whatever becomes of that.

use crate::charge::{Charge, Charges, LimitName, Mode};
use crate::decision::{Decision, Held, LimitDecision, Outcome, Source};
use crate::entry::{Entries, Entry};
use crate::figures::{Form, State};
use crate::item::{Bucket, BusyPeriod, Item};
use crate::penalty::{Lock, Penalty, PenaltyWrite};
use crate::settle::Charged;
use crate::terms::{Standing, Terms};
use crate::time::Timestamp;
use crate::token_bucket::{TokenBucket, Verdict};
use crate::write::{LimitWrite, Write};
use std::time::Duration;

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
    /// The same, of a write that locks what has been denied. If it fails, whatever its fate, `denial` is the answer.
    Lock {
        /// The write.
        write: Write,
        /// What was concluded.
        denial: Decision,
    },
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
    /// A bucket, or a lock, lay further in the future than agreeing clocks can leave it and was pulled back.
    PulledBack(LimitName),
    /// A key was locked, since the limit denied it, or its lock began anew.
    Penalised(LimitName),
    /// A key was locked that is to be kept out in front until then.
    KeptOut {
        /// The limit that has locked it.
        limit: LimitName,
        /// When the lock ends.
        until: Timestamp,
    },
}

/// A decision in progress.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Take {
    charges: Charges,
    id: u64,
    /// Whether a charge requires the very state that was seen, since no reply will tell what it was added to.
    exactly: bool,
    now: Timestamp,
    /// Whether the clock agrees with the store's. A hold has ended for a caller only if it does: one process with a clock
    /// ahead would otherwise lift a ban for everybody.
    agrees: bool,
    charging: bool,
    /// Whether the write that is under way leaves a limit locked that denies.
    locking: bool,
    /// Limits that only report and are not charged by the write that is under way, since they have no room, and what they
    /// said.
    left_out: Vec<(LimitName, Verdict)>,
    charged: Vec<Charged>,
    /// What is known to have happened.
    noticed: Vec<Notice>,
    /// What the write that is under way makes happen, if it is applied.
    pending: Vec<Notice>,
}

/// A lock as it was found, and as it is to be.
struct Next {
    lock: Lock,
    penalty: Penalty,
}

/// A limit as the caller has to see it: under whose terms, with which debt.
pub(crate) struct View<'a> {
    charges: &'a Charges,
    pub(crate) charge: &'a Charge,
    pub(crate) found: Option<&'a Bucket>,
    /// What an operator has set for this limit.
    held: Option<Held>,
    /// What the limit remembers of its own denials, if it has a rule for that.
    lock: Option<Lock>,
    terms: Terms,
    /// The terms that are told of a shard: those of its whole limit, as the caller knows them.
    whole: Option<Terms>,
    state: Option<State>,
    /// The instant that `state` was reckoned at, if it was moved.
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
        Self::begin(charges, false, last_seen, moment, id)
    }

    /// Starts deciding as part of a transaction, whose reply has no items: every charge requires the state that was seen
    /// ([`LimitWrite::exact`]), and [`Take::applied`] is told what [`Write::apply`] makes of that.
    #[must_use]
    pub fn start_exactly(charges: Charges, last_seen: Option<&Item>, moment: Moment, id: u64) -> (Self, Step) {
        Self::begin(charges, true, last_seen, moment, id)
    }

    fn begin(charges: Charges, exactly: bool, last_seen: Option<&Item>, moment: Moment, id: u64) -> (Self, Step) {
        let (left_out, charged, noticed, pending) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (now, agrees, charging, locking) = (moment.now, moment.clock_agrees, false, false);
        let mut take =
            Self { charges, id, exactly, now, agrees, charging, locking, left_out, charged, noticed, pending };
        let observes = take.charges.charges().iter().all(|c| c.cost == 0);
        let step = if observes {
            Step::Read
        } else {
            let is_locked = |l: &LimitDecision| matches!(l.held, Some(Held::Penalty { .. }));
            match take.guess(last_seen, moment) {
                // A lock that was seen is hardly ever gone: to look is cheaper than a write that is refused.
                Step::Done(guess) if guess.limits.iter().any(is_locked) => Step::Read,
                Step::Done(guess) if guess.outcome() == Outcome::NeverFits || exactly => Step::Read,
                Step::Done(_) => take.probe(last_seen, moment),
                step => step,
            }
        };
        (take, step)
    }

    /// What each limit says if the item is as this process saw it a moment ago, and whether one of them denies; `None` if
    /// that says nothing.
    ///
    /// Such an answer may only reject, and only for a while. What has to be looked at in the store is not told from memory:
    /// a cost that never fits, by figures that may be old. A bucket that has to be moved to other terms denies nothing, nor does
    /// one that would lock its key: the lock has to be written. A limit that is not to ([`Charge::deny_cache`]) denies nothing at all.
    #[must_use]
    pub fn recall(charges: &Charges, seen: &Item, moment: Moment) -> Option<(Vec<LimitDecision>, bool)> {
        let observes = charges.charges().iter().all(|c| c.cost == 0);
        let views = views(charges, Some(seen), moment, moment.clock_agrees);
        let (mut limits, mut denies) = (Vec::with_capacity(views.len()), false);
        for view in &views {
            let verdict = view.verdict(moment.now);
            if view.denies(verdict) {
                if verdict == Some(Verdict::NeverFits) {
                    return None;
                }
                let stands =
                    view.is_banned() || view.is_locked(moment.now) || !(view.moved || view.would_lock(moment.now));
                denies |= view.charge.deny_cache && stands;
            }
            limits.push(view.decide(verdict, moment.now, Source::Cache));
        }
        Some((limits, denies && !observes))
    }

    /// What each limit says of the item as the store has just left it, charging nothing.
    #[must_use]
    pub fn tell(charges: &Charges, item: &Item, moment: Moment) -> Vec<LimitDecision> {
        let views = views(charges, Some(item), moment, moment.clock_agrees);
        views.iter().map(|v| v.decide(v.verdict(moment.now), moment.now, Source::Table)).collect()
    }

    /// The store returned the item.
    pub fn read(&mut self, item: Option<&Item>, moment: Moment) -> Step {
        self.agrees = moment.clock_agrees;
        self.conclude(item, moment)
    }

    /// The store refused the write and returned the item that it found.
    ///
    /// If the cost fitted at the instant that the refused write was made with, into a bucket that is busy by then, the
    /// decision stays at that instant: charges only raise theoretical arrival times, and a refund lowers none below the
    /// time that it is made at, so the busy form's floor holds from now on, whoever else writes (but for the refund of a
    /// clock that is behind). With a later instant the bucket may look idle again, and callers of a bucket that refills
    /// faster than they write would overtake each other without end. (What is left is a bucket whose whole window is
    /// shorter than the spread of the calls under way.) Any instant within the call is as good.
    pub fn refused(&mut self, item: Option<&Item>, moment: Moment) -> Step {
        self.agrees = moment.clock_agrees;
        let at_first = Moment { now: self.now, clock_agrees: false };
        // A clock that was corrected meanwhile was wrong before.
        let elapsed = moment.now.as_nanos().checked_sub(self.now.as_nanos());
        let is_near = elapsed.is_some_and(|ns| ns <= TokenBucket::CLOCK_TOLERANCE_NS);
        let step = if is_near && self.is_busy_and_fits(item, at_first) {
            self.conclude(item, at_first)
        } else {
            self.conclude(item, moment)
        };
        if matches!(step, Step::Write(_) | Step::Lock { .. }) {
            self.noticed.push(Notice::Mispredicted);
        }
        step
    }

    /// The store applied the write and left `item`.
    ///
    /// A write that charged is the answer. One that only moved limits to other terms, since another limit denied, is not:
    /// its condition said nothing of that other limit, which may have room by now. One that locked a limit that denies is.
    pub fn applied(&mut self, item: &Item, moment: Moment) -> Step {
        self.noticed.append(&mut self.pending);
        if self.locking {
            let views = views(&self.charges, Some(item), Moment { now: self.now, clock_agrees: false }, self.agrees);
            let told = |v: &View<'_>| v.decide(v.verdict(self.now), self.now, Source::Table);
            return Step::Done(Decision::new(views.iter().map(told).collect()));
        }
        if !self.charging {
            self.agrees = moment.clock_agrees;
            return self.conclude(Some(item), moment);
        }
        // Figures are told as of the instant that the write was made with: its condition proved them.
        let views = views(&self.charges, Some(item), Moment { now: self.now, clock_agrees: false }, self.agrees);
        let left_out = |v: &View<'_>| self.left_out.iter().find(|(limit, _)| *limit == v.charge.limit);
        let is_charged = |v: &View<'_>| v.charge.cost > 0 && left_out(v).is_none();
        let charged = |v: &View<'_>| v.found.map(|after| v.charged(after, self.now, self.id));
        let charged = views.iter().filter(|v| is_charged(v)).filter_map(charged).collect();
        let told = |v: &View<'_>| {
            // A limit that was left out is told by the item that the write found, which is this one. If it has room there
            // (a refund came between), it is told as it was seen: it must not say "allowed" of what it has not counted.
            let verdict = left_out(v).and_then(|(_, seen)| match v.verdict(self.now) {
                Some(Verdict::Allowed { .. }) => Some(*seen),
                found => found,
            });
            v.decide(verdict, self.now, Source::Table)
        };
        let limits = views.iter().map(told).collect();
        self.charged = charged;
        Step::Done(Decision::new(limits))
    }

    /// The instant that the last step was made with.
    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    /// Whether the clock that told it agrees with the store's.
    pub(crate) fn agrees(&self) -> bool {
        self.agrees
    }

    /// Whether the write that is under way charges, if it is applied.
    #[must_use]
    pub fn is_charging(&self) -> bool {
        self.charging
    }

    /// The charges that were applied, for giving them back. Empty unless the decision is done and allowed.
    #[must_use]
    pub fn charged(&self) -> &[Charged] {
        &self.charged
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

    /// What follows if the item is as given, which the store returned: an answer, or the write that makes it so.
    fn conclude(&mut self, item: Option<&Item>, moment: Moment) -> Step {
        self.follow(item, moment, true)
    }

    /// What follows if the item is as this process last saw it. A lock is never set by a guess.
    fn guess(&mut self, last_seen: Option<&Item>, moment: Moment) -> Step {
        self.follow(last_seen, moment, false)
    }

    fn follow(&mut self, item: Option<&Item>, moment: Moment, was_found: bool) -> Step {
        self.now = moment.now;
        let views = views(&self.charges, item, moment, self.agrees);
        let mut notices: Vec<_> = views.iter().flat_map(View::notices).collect();
        if !was_found && views.iter().any(|v| v.would_lock(moment.now)) {
            return Step::Read;
        }
        let verdicts: Vec<_> = views.iter().map(|v| v.verdict(moment.now)).collect();
        let denied = views.iter().zip(&verdicts).any(|(v, verdict)| v.denies(*verdict));
        let fits = |verdict: &Option<Verdict>| matches!(verdict, Some(Verdict::Allowed { .. }));
        let charging = !denied && verdicts.iter().any(fits);
        let mut left_out = Vec::new();
        let mut writes: Vec<LimitWrite> = Vec::new();
        let (mut penalties, mut needed, mut locking) = (Vec::new(), 0, false);
        for (view, verdict) in views.iter().zip(&verdicts) {
            if let Some(next) = view.penalty(moment.now) {
                let (write, secs) = next.lock.write(&view.charge.limit, next.penalty, moment.now);
                (needed, locking) = (secs.max(needed), locking || view.denies(*verdict));
                notices.push(Notice::Penalised(write.limit.clone()));
                notices.extend(view.kept_out(&next, moment.now));
                penalties.push(write);
            }
            if charging && fits(verdict) {
                writes.extend(view.charge(moment.now, self.id, self.exactly));
                penalties.extend(view.unlocked(moment.now));
            } else {
                writes.extend(view.settle(self.id));
                left_out.extend(verdict.filter(|_| charging).map(|seen| (view.charge.limit.clone(), seen)));
            }
        }
        let told = |(v, verdict): (&View<'_>, &Option<Verdict>)| v.decide(*verdict, moment.now, Source::Table);
        let decision = || Decision::new(views.iter().zip(&verdicts).map(told).collect());
        let step = if writes.is_empty() && penalties.is_empty() {
            Step::Done(decision())
        } else {
            let concludes = was_found && denied && !penalties.is_empty();
            let write = self.write(&views, writes, (penalties, needed), item);
            if concludes { Step::Lock { write, denial: decision() } } else { Step::Write(write) }
        };
        self.charging = charging;
        self.locking = locking;
        self.left_out = left_out;
        self.pending = notices;
        step
    }

    /// Whether every limit that is to be charged has a bucket under the right terms that is busy and has room.
    fn is_busy_and_fits(&self, item: Option<&Item>, moment: Moment) -> bool {
        let fits = |v: &View<'_>| match v.verdict(moment.now) {
            None => true,
            Some(Verdict::Allowed { .. }) => {
                let is_busy = |b: &Bucket| !b.is_idle(moment.now) && b.pulled_back(moment.now).is_none();
                !v.moved && v.found.is_some_and(is_busy)
            }
            verdict => !v.denies(verdict),
        };
        self.charging && views(&self.charges, item, moment, self.agrees).iter().all(fits)
    }

    /// A write whose refusal would confirm a guessed denial, and whose success would be a fair charge.
    fn probe(&mut self, last_seen: Option<&Item>, moment: Moment) -> Step {
        // Under the ban that was seen a charge would not be fair: the probe is for the case that it was lifted.
        let unheld = last_seen.filter(|item| item.hold.as_ref().is_some_and(|h| h.banned_until.is_some()));
        let unheld = unheld.map(|item| Item { hold: None, ..item.clone() });
        let guess = unheld.as_ref().or(last_seen);
        let views = views(&self.charges, guess, moment, self.agrees);
        let only_reports = |v: &View<'_>| v.charge.mode == Mode::Shadow;
        let costs = |v: &&View<'_>| v.charge.cost > 0;
        let leaves_out = views.iter().filter(costs).any(|v| !only_reports(v));
        let (mut writes, mut left_out, mut penalties) = (Vec::new(), Vec::new(), Vec::new());
        for v in views.iter().filter(costs) {
            match v.verdict(moment.now) {
                Some(seen @ (Verdict::Denied { .. } | Verdict::NeverFits)) if leaves_out && only_reports(v) => {
                    left_out.push((v.charge.limit.clone(), seen));
                }
                // A bucket that is not there would be charged beyond its burst.
                Some(Verdict::NeverFits) => return Step::Read,
                _ => match v.add(moment.now, self.id) {
                    Some(write) => {
                        writes.push(write);
                        penalties.extend(v.unlocked(moment.now));
                    }
                    None => return Step::Read,
                },
            }
        }
        let write = self.write(&views, writes, (penalties, 0), guess);
        (self.charging, self.left_out) = (true, left_out);
        Step::Write(write)
    }

    /// The write of these parts; penalties with the seconds that they are to be remembered for.
    fn write(
        &self,
        views: &[View<'_>],
        writes: Vec<LimitWrite>,
        (penalties, remembered): (Vec<PenaltyWrite>, u64),
        item: Option<&Item>,
    ) -> Write {
        let adopted = item.and_then(|i| i.horizon).unwrap_or(0);
        let needed = views.iter().map(|v| v.horizon(self.now)).max().unwrap_or(0);
        let horizon = self.charges.horizon().max(adopted).max(needed).max(remembered);
        let hold = item.and_then(|i| i.hold.as_ref());
        let write = if self.agrees {
            Write::new(writes, self.now, horizon, hold)
        } else {
            Write::under(writes, self.now, horizon, hold)
        };
        write.with_penalties(penalties)
    }
}

pub(crate) fn views<'a>(charges: &'a Charges, item: Option<&'a Item>, moment: Moment, agrees: bool) -> Vec<View<'a>> {
    charges.charges().iter().map(|charge| View::new(charges, charge, item, moment, agrees)).collect()
}

impl<'a> View<'a> {
    fn new(charges: &'a Charges, charge: &'a Charge, item: Option<&'a Item>, moment: Moment, agrees: bool) -> Self {
        // To a clock that does not agree nothing has ended.
        let ended = if agrees { moment.now } else { Timestamp::default() };
        let hold = item.and_then(|item| item.hold.as_ref());
        let held = hold.and_then(|hold| Held::of(hold, &charge.limit, ended));
        let overridden = hold.and_then(|hold| hold.overrides.get(&charge.limit)).filter(|o| o.until > ended);
        let lock = Lock::of(charge, item, moment, agrees);
        let found = item.and_then(|item| item.buckets.get(&charge.limit));
        let (set, shard) = (overridden.map(|o| o.figures), charges.shard());
        let whole = shard.map(|_| charge.terms.beside(None, set));
        let part = shard.map(|shard| Terms { figures: charge.terms.figures.shard(shard), ..charge.terms.clone() });
        let set = set.map(|set| shard.map_or(set, |shard| set.shard(shard)));
        let wanted = part.as_ref().unwrap_or(&charge.terms).beside(found.map(|bucket| &bucket.terms), set);
        let Some(bucket) = found else {
            let (terms, standing, reckoned_at) = (wanted, Standing::Same, moment.now);
            let (state, pulled, moved) = (None, false, false);
            return Self {
                charges,
                charge,
                found,
                held,
                lock,
                terms,
                whole,
                state,
                reckoned_at,
                standing,
                pulled,
                moved,
            };
        };
        let pulled_back = bucket.pulled_back(moment.now).filter(|_| moment.clock_agrees);
        let (pulled, state) = (pulled_back.is_some(), pulled_back.unwrap_or_else(|| bucket.state()));
        let reckoned_at = if pulled || bucket.is_idle(moment.now) {
            moment.now
        } else {
            // Never before the last such reckoning: see `BusyPeriod::since`.
            moment.now.max(bucket.busy_period.since)
        };
        let standing = wanted.standing(&bucket.terms);
        // What would lose its window by the move goes on under the terms that were found until that is over.
        let found_figures = &bucket.terms.figures;
        let waits = matches!(standing, Standing::OtherPlan | Standing::RevisionConflict)
            && !wanted.figures.shares_state_with(found_figures)
            && !found_figures.is_over(bucket, moment.now);
        let (terms, state, moved) = match standing {
            Standing::Same | Standing::CallerIsOlder => (bucket.terms.clone(), state, pulled),
            _ if waits => (bucket.terms.clone(), state, pulled),
            Standing::CallerIsNewer | Standing::OtherPlan | Standing::RevisionConflict | Standing::Override => {
                let state = wanted.carry(&bucket.terms, state, reckoned_at, charge.on_change);
                (wanted, state, true)
            }
        };
        let state = Some(state);
        Self { charges, charge, found, held, lock, terms, whole, state, reckoned_at, standing, pulled, moved }
    }

    fn is_banned(&self) -> bool {
        matches!(self.held, Some(Held::Ban { .. }))
    }

    /// What the arithmetic says; `None` for a cost of 0, which only observes.
    fn reckoned(&self, now: Timestamp) -> Option<Verdict> {
        (self.charge.cost > 0).then(|| self.terms.figures.take(self.state.as_ref(), now, self.charge.demand()))
    }

    /// The lock that is in force; under a ban it does not matter.
    fn locked(&self, now: Timestamp) -> Option<Penalty> {
        self.lock.filter(|_| !self.is_banned())?.in_force(now)
    }

    fn is_locked(&self, now: Timestamp) -> bool {
        self.locked(now).is_some()
    }

    /// Whether this limit denies by its arithmetic alone, and would set a lock.
    fn would_lock(&self, now: Timestamp) -> bool {
        let lock = self.lock.filter(|_| !self.is_banned());
        lock.is_some_and(|lock| lock.would_lock(self.reckoned(now), now))
    }

    /// The lock that a call leaves, new or moved; `None` if nothing changes, as ever by a cost of 0.
    fn penalty(&self, now: Timestamp) -> Option<Next> {
        let lock = self.lock.filter(|_| !self.is_banned())?;
        Some(Next { lock, penalty: lock.next(self.reckoned(now)?, now)? })
    }

    /// That the key is to be kept out in front: not for a limit that only reports.
    fn kept_out(&self, next: &Next, now: Timestamp) -> Option<Notice> {
        let until = next.lock.at_the_edge(next.penalty, now).filter(|_| self.charge.mode == Mode::Enforce)?;
        Some(Notice::KeptOut { limit: self.charge.limit.clone(), until })
    }

    /// What a write that charges this limit requires of its lock.
    fn unlocked(&self, now: Timestamp) -> Option<PenaltyWrite> {
        self.lock.map(|_| PenaltyWrite::unlocked(self.charge.limit.clone(), now))
    }

    /// What the arithmetic, the limit's lock or a ban says; `None` for a cost of 0 that none of these denies.
    fn verdict(&self, now: Timestamp) -> Option<Verdict> {
        match self.held {
            Some(Held::Ban { until }) => Some(Verdict::Denied {
                retry_after: Duration::from_nanos(until.as_nanos().saturating_sub(now.as_nanos()).max(1)),
            }),
            _ => self.lock.map_or_else(|| self.reckoned(now), |lock| lock.verdict(self.reckoned(now), now)),
        }
    }

    /// Whether a verdict denies the call.
    fn denies(&self, verdict: Option<Verdict>) -> bool {
        let is_denial = matches!(verdict, Some(Verdict::Denied { .. } | Verdict::NeverFits));
        is_denial && (self.charge.mode == Mode::Enforce || self.is_banned())
    }

    /// The write that charges this limit, in the form that fits the state; `None` for a cost of 0.
    fn charge(&self, now: Timestamp, id: u64, exactly: bool) -> Option<LimitWrite> {
        let Verdict::Allowed { tat } = self.verdict(now)? else { return None };
        let (limit, terms, cost) = (self.charge.limit.clone(), self.terms.clone(), self.charge.cost);
        let form = self.found.filter(|_| !self.moved).map(|seen| terms.figures.form(seen, now, cost));
        let (entry, makes_room) = self.entry(now, id);
        let exactly = exactly || makes_room;
        let after = || terms.figures.charged(self.state.as_ref(), now, tat, entry);
        match (self.found, form) {
            (Some(seen), Some(Form::Add)) if exactly => {
                let (gross, State { entries, .. }) = (seen.gross + (tat - seen.tat), after());
                Some(LimitWrite::exact(limit, Some(seen), Bucket { tat, gross, entries, ..seen.clone() }))
            }
            (found, form) if exactly || self.moved || form == Some(Form::Anew) => {
                Some(LimitWrite::exact(limit, found, self.starting(after(), id)))
            }
            (_, Some(Form::Restart)) => Some(LimitWrite::new_or_idle(limit, terms, cost, now, id).entering(entry)),
            _ => self.add(now, id),
        }
    }

    /// The write that adds to this limit what it is charged, to whatever is there, below the ceiling; `None` if there is no state
    /// that it could be added to.
    fn add(&self, now: Timestamp, id: u64) -> Option<LimitWrite> {
        let seen = self.state.as_ref().map(|state| state.tat);
        let (limit, terms, demand) = (self.charge.limit.clone(), self.terms.clone(), self.charge.demand());
        let write = LimitWrite::new_or_busy(limit, terms, seen, demand, now, id)?;
        Some(write.entering(self.entry(now, id).0))
    }

    /// What the charge is remembered by, and whether others have to make room for it. Where nobody can, a reservation is none: the
    /// charge is as it was estimated.
    fn entry(&self, now: Timestamp, id: u64) -> (Option<Entry>, bool) {
        let entry = self.charge.entry(&self.terms.figures, now, id);
        let held = self.state.as_ref().map(|state| &state.entries);
        match (entry, held) {
            (Some(entry), Some(held)) if entry.is_reservation() && held.len() >= Entries::MOST => {
                let is_crowded = held.only(|entry| entry.at > now).len() >= Entries::MOST;
                (Some(entry).filter(|_| !is_crowded), !is_crowded)
            }
            (entry, _) => (entry, false),
        }
    }

    /// What the charge was that left the limit as `after`.
    pub(crate) fn charged(&self, after: &Bucket, now: Timestamp, id: u64) -> Charged {
        let entry = self.charge.entry(&after.terms.figures, now, id).filter(|entry| after.entries.contains(entry));
        Charged::new(self.charge.limit.clone(), self.charge.cost, after, now).entered(entry)
    }

    /// The write that moves this limit without charging it; `None` if it is where it belongs.
    ///
    /// A denial must leave the bucket under the new terms, or its debt would go on shrinking at the old rate and a key
    /// that moved from 10/h to 1000/s would stay locked for the hour. A ban denies whatever the bucket.
    fn settle(&self, id: u64) -> Option<LimitWrite> {
        let (seen, state) = (self.found?, self.state.clone()?);
        let exact = || LimitWrite::exact(self.charge.limit.clone(), Some(seen), self.starting(state, id));
        (self.moved && self.charge.cost > 0 && !self.is_banned()).then(exact)
    }

    /// The bucket as moved to these terms, with `state`.
    fn starting(&self, state: State, id: u64) -> Bucket {
        Bucket::starting(self.terms.clone(), state, BusyPeriod { since: self.reckoned_at, id })
    }

    /// How many calls of this cost fit one behind the other; a cost of 0 fits without end.
    pub(crate) fn room(&self, now: Timestamp) -> u64 {
        if self.is_banned() || self.is_locked(now) {
            return 0;
        }
        self.terms.figures.remaining(self.state.as_ref(), now).checked_div(self.charge.cost).unwrap_or(u64::MAX)
    }

    /// Seconds that this limit's state must be remembered for, debt beyond a whole bucket included.
    fn horizon(&self, now: Timestamp) -> u64 {
        self.terms.figures.horizon_of(self.state.as_ref().map(|state| state.tat), now)
    }

    fn notices(&self) -> impl Iterator<Item = Notice> {
        let limit = &self.charge.limit;
        let conflict = (self.standing == Standing::RevisionConflict).then(|| Notice::RevisionConflict(limit.clone()));
        let pulled = self.pulled || self.lock.is_some_and(|lock| lock.is_pulled());
        conflict.into_iter().chain(pulled.then(|| Notice::PulledBack(limit.clone())))
    }

    pub(crate) fn decide(&self, verdict: Option<Verdict>, now: Timestamp, source: Source) -> LimitDecision {
        let (outcome, retry_after) = match verdict {
            None | Some(Verdict::Allowed { .. }) => (Outcome::Allowed, None),
            Some(Verdict::Denied { retry_after }) => (Outcome::Denied, Some(retry_after)),
            Some(Verdict::NeverFits) => (Outcome::NeverFits, None),
        };
        let (figures, state, cost) = (&self.terms.figures, self.state.as_ref(), self.charge.cost);
        let starts_after = match verdict {
            None => figures.starts_after(state.map(|state| state.tat), now, cost),
            Some(Verdict::Allowed { tat }) => figures.starts_after(Some(tat), now, cost),
            Some(Verdict::Denied { .. } | Verdict::NeverFits) => Duration::ZERO,
        };
        let locked = self.locked(now);
        let rest = locked.and_then(|lock| lock.rest(now)).unwrap_or_default();
        LimitDecision {
            key: self.charges.key().clone(),
            limit: self.charge.limit.clone(),
            terms: self.whole.as_ref().unwrap_or(&self.terms).clone(),
            cost,
            mode: self.charge.mode,
            outcome,
            held: locked.map(|lock| Held::Penalty { until: lock.until }).or(self.held),
            remaining: if locked.is_some() { 0 } else { figures.remaining(state, now) },
            retry_after,
            starts_after,
            decided_at: now,
            next_token_after: figures.next_after(state, now).max(rest),
            reset_after: figures.reset_after(state, now).max(rest),
            source,
        }
    }
}
