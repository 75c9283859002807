//! A million random histories of calls on several keys, all or nothing: charges in flight, one of them denied and the
//! others given back, refunds refused, late or lost, callers that crash, clocks 2 s apart, operators at work.
//!
//! Each runs the real [`Take`] and the real [`Settlement`]. What is admitted is checked over every interval of every key,
//! exactly, and every kind of naive refund breaks that bound in the same histories.

use crate::store::{MS, Rng, SECOND, START, bucket, charge, over_bound_by_clocks};
use std::ops::Range;
use std::time::Duration;
use tollgate_core::settle::Step as RefundStep;
use tollgate_core::take::{Moment, Notice};
use tollgate_core::write::Assign;
use tollgate_core::{
    Bucket, Charge, Charged, Charges, Check, Expect, Figures, Hold, Item, ItemKey, Key, LimitName, Override,
    Settlement, Span, Step, Take, Terms, Ticks, Timestamp, TokenBucket, Window, Write,
};

/// Histories in all, over the tests of the real protocol.
const HISTORIES: u64 = 1_000_000;
/// Things that happen in a history, before what is under way is brought to its end.
const STEPS: u64 = 20;
/// How far clocks are ahead, in nanoseconds.
const OFFSETS: [i64; 3] = [-1_000_000_000, 0, 1_000_000_000];

/// How a refund is reckoned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// As it is.
    Real,
    /// The whole charge, whatever has become of the bucket.
    All,
    /// The whole charge, within its busy period.
    AllOfItsBusyPeriod,
    /// As if there were no other refunds.
    IgnoringOthers,
    /// Subtracted without a look at what was charged since.
    WithoutGross,
    /// Of a pacer as of a token bucket, whose calls went when they were charged.
    AsIfNobodyWaited,
}

/// What a history is made of.
#[derive(Debug, Clone, Copy)]
struct Kind {
    keys: usize,
    apart: bool,
    plans: bool,
    operators: bool,
    /// Windows of a second instead of token buckets, and whether they slide.
    windows: Option<bool>,
    /// Pacers instead of token buckets.
    paced: bool,
    rule: Rule,
}

/// A part of a call: the decision on one key.
#[derive(Debug)]
struct Part {
    key: usize,
    cost: u64,
    take: Take,
    step: Step,
    /// The instant that the write under way is dated by, in true time.
    dated: Timestamp,
    left: Option<Item>,
}

impl Kind {
    /// A bucket of this kind of history.
    fn bucket(self, bucket: TokenBucket, rng: &mut Rng) -> TokenBucket {
        if self.paced { bucket.paced(rng.pick(0, bucket.burst() - 1)) } else { bucket }
    }
}

impl Part {
    fn is_allowed(&self) -> bool {
        matches!(&self.step, Step::Done(decision) if decision.is_allowed())
    }

    fn is_denied(&self) -> bool {
        matches!(&self.step, Step::Done(decision) if !decision.is_allowed())
    }
}

#[derive(Debug)]
struct Call {
    caller: usize,
    parts: Vec<Part>,
}

/// A charge that is being given back.
#[derive(Debug)]
struct Giving {
    caller: usize,
    key: usize,
    cost: u64,
    after: Bucket,
    /// The instant that the charge was dated by.
    charged_at: Timestamp,
    refund: Settlement,
    write: Write,
}

struct World {
    kind: Kind,
    rng: Rng,
    /// True time.
    now: Timestamp,
    items: Vec<Option<Item>>,
    /// What each caller last saw of each key.
    seen: Vec<Vec<Option<Item>>>,
    plans: Vec<[Figures; 2]>,
    /// All token buckets that each key ever has.
    buckets: Vec<Vec<TokenBucket>>,
    admitted: Vec<Vec<(Timestamp, u64)>>,
    calls: Vec<Call>,
    givings: Vec<Giving>,
    /// Writes that nobody waits for any longer.
    late: Vec<(usize, Write)>,
    ids: u64,
}

fn limit() -> LimitName {
    LimitName::new("l").unwrap()
}

impl World {
    fn new(seed: u64, kind: Kind) -> Self {
        let mut rng = Rng::new(seed);
        let figures = |rng: &mut Rng| match kind.windows {
            None => kind.bucket(bucket(rng.pick(2, 4), SECOND, rng.pick(1, 8)), rng).into(),
            Some(sliding) => Window::new(rng.pick(1, 8), Span::Every(SECOND), sliding).unwrap().into(),
        };
        let plans: Vec<[Figures; 2]> = (0..kind.keys).map(|_| [(); 2].map(|()| figures(&mut rng))).collect();
        let used = |both: &[Figures; 2]| both[..if kind.plans { 2 } else { 1 }].to_vec();
        let buckets = plans.iter().map(|both| used(both).iter().filter_map(Figures::token_bucket).collect()).collect();
        Self {
            kind,
            rng,
            now: Timestamp::from_nanos(START),
            items: vec![None; kind.keys],
            seen: vec![vec![None; kind.keys]; OFFSETS.len()],
            plans,
            buckets,
            admitted: vec![Vec::new(); kind.keys],
            calls: Vec::new(),
            givings: Vec::new(),
            late: Vec::new(),
            ids: 0,
        }
    }

    fn offset(&self, caller: usize) -> i64 {
        if self.kind.apart { OFFSETS[caller] } else { 0 }
    }

    fn moment(&self, caller: usize) -> Moment {
        Moment { now: self.now.offset_by(self.offset(caller)), clock_agrees: true }
    }

    fn id(&mut self) -> u64 {
        self.ids += 1;
        self.ids
    }

    fn index(&mut self, of: usize) -> usize {
        usize::try_from(self.rng.pick(0, of as u64 - 1)).unwrap()
    }

    fn run(mut self) -> i128 {
        for _ in 0..STEPS {
            let quarters = [0, 0, 1, self.rng.pick(0, 4)][self.index(4)];
            self.now = self.now + Duration::from_nanos(250 * MS * quarters);
            match self.rng.pick(0, 15) {
                0..=7 => self.call(),
                8..=13 => self.go_on(),
                14 if self.kind.operators => self.operate(),
                _ => self.lose(),
            }
        }
        while !(self.calls.is_empty() && self.givings.is_empty()) {
            self.go_on();
        }
        let apart = if self.kind.apart { Duration::from_secs(2) } else { Duration::ZERO };
        let over = |key: usize| {
            let mut admitted = self.admitted[key].clone();
            admitted.sort_unstable();
            match self.kind.windows {
                None if self.kind.paced => over_pace(&self.buckets[key], &admitted, apart),
                None => over_bound_by_clocks(&self.buckets[key], &admitted, apart),
                Some(sliding) => over_windows(self.most(key), sliding, &admitted),
            }
        };
        (0..self.kind.keys).map(over).max().unwrap()
    }

    /// Most that a window of the key has.
    fn most(&self, key: usize) -> u64 {
        let [a, b] = self.plans[key].map(|figures| figures.most());
        if self.kind.plans { a.max(b) } else { a }
    }

    /// A call begins, on one key or several.
    fn call(&mut self) {
        let caller = self.index(OFFSETS.len());
        let (moment, dated) = (self.moment(caller), self.now);
        let side = if self.kind.plans { self.index(2) } else { 0 };
        // Most on the first key alone, so that something happens there.
        let keys = 0..=if self.rng.pick(0, 2) == 0 { self.index(self.kind.keys) } else { 0 };
        let mut part = |key: usize| {
            let figures = self.plans[key][side];
            let cost = self.rng.pick(1, figures.most());
            let terms = Terms::new(1, figures).on_plan(["a", "b"][side]);
            let item = ItemKey::shared(Key::new([("user", "alice")]).unwrap());
            let max_wait =
                (self.kind.paced && self.rng.pick(0, 1) == 0).then(|| Duration::from_millis(self.rng.pick(0, 3000)));
            let charge = Charge { max_wait, ..charge("l", &terms, cost) };
            let charges = Charges::new(item, vec![charge]).unwrap();
            self.ids += 1;
            let (take, step) = Take::start(charges, self.seen[caller][key].as_ref(), moment, self.ids);
            Part { key, cost, take, step, dated, left: None }
        };
        let (count, parts) = (keys.clone().count(), keys.map(&mut part).collect());
        self.calls.push(Call { caller, parts });
        // Most are decided at once; what all allow is concluded later.
        if self.rng.pick(0, 7) > 0 {
            for _ in 0..count {
                self.decide(self.calls.len() - 1);
            }
            if self.calls.last().is_some_and(|call| call.parts.iter().any(Part::is_denied)) {
                self.decide(self.calls.len() - 1);
            }
        }
    }

    /// The table executes something that is under way.
    fn go_on(&mut self) {
        let under_way = self.calls.len() + self.givings.len() + self.late.len();
        if under_way == 0 {
            return;
        }
        let nth = self.index(under_way);
        if nth < self.calls.len() {
            self.decide(nth);
        } else if nth < self.calls.len() + self.givings.len() {
            let giving = self.givings.swap_remove(nth - self.calls.len());
            self.give_back(giving);
        } else {
            let (key, write) = self.late.swap_remove(nth - self.calls.len() - self.givings.len());
            self.apply(key, &write);
        }
    }

    /// The next request of a call, on any of its keys; with the last the call is admitted or refunded.
    fn decide(&mut self, nth: usize) {
        let mut call = self.calls.swap_remove(nth);
        let open: Vec<_> = (0..call.parts.len()).filter(|i| !matches!(call.parts[*i].step, Step::Done(_))).collect();
        if open.is_empty() {
            return self.conclude(call);
        }
        let part = &mut call.parts[open[self.index(open.len())]];
        let (key, moment) = (part.key, self.moment(call.caller));
        part.step = match &part.step {
            Step::Write(write) | Step::Lock { write, .. } => {
                let dated = dated(write, self.offset(call.caller));
                if let Some(left) = self.apply(key, write) {
                    assert!(!part.take.is_charging() || !self.is_banned(&left), "charged under a ban");
                    // A write that only moves the limit is no answer: the decision goes on from now.
                    part.dated = if part.take.is_charging() { dated.unwrap_or(part.dated) } else { self.now };
                    if self.kind.windows.is_some() {
                        // Within its call, at whichever instant of the window that it was counted in.
                        let start = opening(left.buckets["l"].tat);
                        part.dated = part.dated.clamp(start, start + Duration::from_nanos(SECOND - 1));
                    }
                    let step = part.take.applied(&left, moment);
                    part.left = Some(left);
                    step
                } else {
                    part.dated = self.now;
                    part.take.refused(self.items[key].as_ref(), moment)
                }
            }
            Step::Read | Step::Done(_) => {
                part.dated = self.now;
                part.take.read(self.items[key].as_ref(), moment)
            }
        };
        assert!(!part.take.notices().any(|n| matches!(n, Notice::PulledBack(_))), "clocks agree");
        self.seen[call.caller][key].clone_from(&self.items[key]);
        self.calls.push(call);
    }

    fn conclude(&mut self, call: Call) {
        // One call in two is denied by a key that is not looked at here.
        if call.parts.iter().all(Part::is_allowed) && self.rng.pick(0, 1) == 0 {
            for part in &call.parts {
                let Step::Done(decision) = &part.step else { unreachable!("it is allowed") };
                let (waits, longest) = (decision.starts_after(), part.take.charges().charges()[0].max_wait);
                assert!(longest.is_none_or(|longest| waits <= longest), "waits {waits:?} of {longest:?}");
                self.admitted[part.key].push((part.dated + waits, part.cost));
            }
            return;
        }
        // One caller in eight crashes before it gives anything back.
        if self.rng.pick(0, 7) == 0 {
            return;
        }
        let now = self.moment(call.caller).now;
        for part in call.parts.into_iter().filter(Part::is_allowed) {
            let item = part.left.unwrap();
            let after = item.buckets["l"].clone();
            let charged_at = part.dated.offset_by(self.offset(call.caller));
            let (refund, step) = Settlement::giving_back(part.take.charged().to_vec(), &item, now);
            let step = reckon(self.kind.rule, (&after, charged_at), part.cost, Some(&item), now).unwrap_or(step);
            if let RefundStep::Write(write) = step {
                let (caller, key, cost) = (call.caller, part.key, part.cost);
                self.give_back(Giving { caller, key, cost, after, charged_at, refund, write });
            }
        }
    }

    /// The table executes the next writes of a refund, until one is held up.
    fn give_back(&mut self, mut giving: Giving) {
        while self.rng.pick(0, 2) > 0 {
            let blind = (self.kind.rule == Rule::WithoutGross).then(|| blindly(&giving.write));
            if self.apply(giving.key, blind.as_ref().unwrap_or(&giving.write)).is_some() {
                return;
            }
            let (found, now) = (self.items[giving.key].as_ref(), self.moment(giving.caller).now);
            let naive = reckon(self.kind.rule, (&giving.after, giving.charged_at), giving.cost, found, now);
            let RefundStep::Write(write) = naive.unwrap_or_else(|| giving.refund.refused(found, now)) else { return };
            giving.write = write;
        }
        self.givings.push(giving);
    }

    /// Somebody gives up: what it asked for may still arrive.
    fn lose(&mut self) {
        if self.rng.pick(0, 1) == 0 && !self.givings.is_empty() {
            let nth = self.index(self.givings.len());
            let giving = self.givings.swap_remove(nth);
            self.late.push((giving.key, giving.write));
        } else if !self.calls.is_empty() {
            let nth = self.index(self.calls.len());
            for part in self.calls.swap_remove(nth).parts {
                if let Step::Write(write) = part.step {
                    self.late.push((part.key, write));
                }
            }
        }
    }

    /// An operator bans a key, sets other figures for it, or lifts both.
    fn operate(&mut self) {
        let key = self.index(self.kind.keys);
        let until = self.now + Duration::from_nanos(500 * MS * self.rng.pick(1, 6));
        let mut hold = Hold { id: self.id(), ..Hold::default() };
        let next = match self.rng.pick(0, 3) {
            0 => None,
            1 => {
                hold.banned_until = Some(until);
                Some(hold)
            }
            _ => {
                let figures = bucket(self.rng.pick(1, 3), SECOND, self.rng.pick(1, 6));
                let figures = self.kind.bucket(figures, &mut self.rng);
                self.buckets[key].push(figures);
                hold.overrides.insert(limit(), Override { figures: (figures).into(), until });
                Some(hold)
            }
        };
        let item = self.items[key].as_ref();
        let horizon = item.and_then(|item| item.horizon).unwrap_or(0);
        let write = Write::set_hold(self.now, horizon, item.and_then(|item| item.hold.as_ref()), next);
        self.apply(key, &write).unwrap();
    }

    fn apply(&mut self, key: usize, write: &Write) -> Option<Item> {
        let next = write.apply(self.items[key].as_ref())?;
        self.items[key] = Some(next.clone());
        Some(next)
    }

    /// Whether `item` is under a ban that is in force by every clock.
    fn is_banned(&self, item: &Item) -> bool {
        let fastest = self.now.offset_by(if self.kind.apart { OFFSETS[2] } else { 0 });
        item.hold.as_ref().and_then(|hold| hold.banned_until).is_some_and(|until| until > fastest)
    }
}

/// True time of the instant that a write is dated by, told by the busy period or the slot that it starts; that of a write
/// to other terms is when it is made.
fn dated(write: &Write, offset: i64) -> Option<Timestamp> {
    let limit = write.limits.first()?;
    let clock = match (&limit.assign, &limit.expect) {
        (Assign::Extend { busy_period, .. }, _) => busy_period.since,
        (Assign::Replace(next), Expect::AbsentOr(_)) => next.busy_period.since,
        (Assign::Replace(_) | Assign::GiveBack { .. }, _) => return None,
    };
    Some(clock.offset_by(-offset))
}

/// When the window began that a state counts in.
fn opening(state: Ticks) -> Timestamp {
    Timestamp::from_nanos(u64::try_from(state.0 / 1_000_000_000_000_000_000).unwrap())
}

/// The first step of a refund by a naive rule: the real one, of a charge that was made up to that end.
fn reckon(
    rule: Rule,
    (after, charged_at): (&Bucket, Timestamp),
    cost: u64,
    found: Option<&Item>,
    now: Timestamp,
) -> Option<RefundStep> {
    /// So far ahead that all of a slot is unused.
    const FAR: Ticks = Ticks(i128::MAX / 4);
    let item = found?;
    let bucket = item.buckets.get("l")?;
    if rule == Rule::All && bucket.terms.figures.token_bucket().is_none() {
        // As if it had been charged to the window that is found.
        return Some(Settlement::giving_back(vec![Charged::new(limit(), cost, bucket, now)], item, now).1);
    }
    let after = match rule {
        Rule::Real | Rule::WithoutGross => return None,
        Rule::All => {
            Bucket { tat: FAR, gross: FAR + bucket.refunded(), busy_period: bucket.busy_period, ..after.clone() }
        }
        Rule::AsIfNobodyWaited => {
            let (after, item) = (unpaced(after), Item { buckets: [(limit(), unpaced(bucket))].into(), ..item.clone() });
            return Some(Settlement::giving_back(vec![Charged::new(limit(), cost, &after, charged_at)], &item, now).1);
        }
        Rule::AllOfItsBusyPeriod => Bucket { tat: FAR, gross: FAR + bucket.refunded(), ..after.clone() },
        Rule::IgnoringOthers => Bucket { gross: after.tat + bucket.refunded(), ..after.clone() },
    };
    Some(Settlement::giving_back(vec![Charged::new(limit(), cost, &after, charged_at)], item, now).1)
}

/// The same bucket as if its calls went at once.
fn unpaced(bucket: &Bucket) -> Bucket {
    let figures = bucket.terms.figures.token_bucket().unwrap();
    let figures = TokenBucket::new(figures.n(), figures.period(), figures.burst()).unwrap();
    Bucket { terms: Terms::new(1, figures), ..bucket.clone() }
}

/// A refund that is subtracted from whatever `tat` is found in the busy period.
fn blindly(write: &Write) -> Write {
    let mut write = write.clone();
    let limit = &mut write.limits[0];
    if let Expect::Present(checks) = &mut limit.expect {
        checks.retain(|check| !matches!(check, Check::GrossIs(_)));
    }
    write
}

const REAL: Kind =
    Kind { keys: 2, apart: false, plans: false, operators: false, windows: None, paced: false, rule: Rule::Real };

/// By how much more goes in some interval than the dearest call, what may go before its slot, and rate times interval.
fn over_pace(buckets: &[TokenBucket], sent: &[(Timestamp, u64)], apart: Duration) -> i128 {
    let dearest = sent.iter().map(|(_, cost)| *cost).max().unwrap_or(1);
    let ahead_ns = |b: &TokenBucket| (b.delay().unwrap() * b.period()).div_ceil(b.n());
    let ahead_ns = buckets.iter().map(ahead_ns).max().unwrap();
    let allowance = |b: &TokenBucket| bucket(b.n(), b.period(), dearest + (ahead_ns * b.n()).div_ceil(b.period()));
    // Instants are told in whole nanoseconds, rounded up.
    let apart = apart + Duration::from_nanos(1);
    over_bound_by_clocks(&buckets.iter().map(allowance).collect::<Vec<_>>(), sent, apart)
}

/// By how much a window has more than `most`, or, if it slides, a stretch as long as one more than twice that.
fn over_windows(most: u64, sliding: bool, admitted: &[(Timestamp, u64)]) -> i128 {
    let sum = |is_in: &dyn Fn(u64) -> bool| {
        admitted.iter().filter(|(at, _)| is_in(at.as_nanos())).map(|(_, cost)| i128::from(*cost)).sum::<i128>()
    };
    let over = |(at, _): &(Timestamp, u64)| {
        let at = at.as_nanos();
        let in_window = sum(&|other| other / SECOND == at / SECOND) - i128::from(most);
        // The count of a window before that was full leaves no room at its end, and all of it a window later.
        let in_stretch = sum(&|other| (at..at + SECOND).contains(&other)) - 2 * i128::from(most) + i128::from(most > 1);
        in_window.max(if sliding { in_stretch } else { 0 })
    };
    admitted.iter().map(over).max().unwrap_or(0).max(0)
}

/// All of these histories keep every bound.
fn keep_every_bound(seeds: Range<u64>, kind: Kind) {
    for seed in seeds {
        assert_eq!(World::new(seed, kind).run(), 0, "tokens over the bound: seed {seed}, {kind:?}");
    }
}

#[test]
fn calls_on_two_keys_with_refunds_keep_every_bound() {
    keep_every_bound(0..HISTORIES / 4, REAL);
}

#[test]
fn calls_on_three_keys_with_clocks_apart_keep_every_bound() {
    keep_every_bound(HISTORIES / 4..HISTORIES / 2, Kind { keys: 3, apart: true, ..REAL });
}

#[test]
fn calls_of_two_plans_with_clocks_apart_keep_every_bound() {
    keep_every_bound(HISTORIES / 2..HISTORIES * 3 / 4, Kind { apart: true, plans: true, ..REAL });
}

#[test]
fn calls_beside_operators_with_clocks_apart_keep_every_bound() {
    keep_every_bound(HISTORIES * 3 / 4..HISTORIES, Kind { apart: true, plans: true, operators: true, ..REAL });
}

/// Every call goes at the instant that it was told, whatever is given back or set meanwhile.
#[test]
fn paced_calls_keep_every_bound() {
    let (kind, nth) = (Kind { paced: true, ..REAL }, HISTORIES / 16);
    keep_every_bound(0..nth, kind);
    keep_every_bound(nth..2 * nth, Kind { keys: 3, apart: true, ..kind });
    keep_every_bound(2 * nth..3 * nth, Kind { plans: true, operators: true, ..kind });
    keep_every_bound(3 * nth..4 * nth, Kind { apart: true, plans: true, operators: true, ..kind });
}

#[test]
fn windows_with_refunds_and_two_plans_keep_every_bound() {
    for sliding in [false, true] {
        let kind = Kind { windows: Some(sliding), ..REAL };
        keep_every_bound(0..HISTORIES / 16, kind);
        keep_every_bound(HISTORIES / 16..HISTORIES / 8, Kind { plans: true, ..kind });
    }
}

/// PostHog PR#83938, express-rate-limit PR#647: a refund after the window moved on credits nothing.
#[test]
fn a_refund_to_whatever_window_is_found_breaks_a_bound_in_the_same_histories() {
    for sliding in [false, true] {
        let kind = Kind { windows: Some(sliding), rule: Rule::All, ..REAL };
        assert!((0..HISTORIES / 16).any(|seed| World::new(seed, kind).run() > 0), "sliding: {sliding}");
    }
}

/// A slot that is given back while others wait behind it moves them, and what was told them does not move.
#[test]
fn a_refund_from_the_middle_of_a_queue_breaks_a_bound_in_the_same_histories() {
    let kind = Kind { paced: true, rule: Rule::AsIfNobodyWaited, ..REAL };
    assert!((0..HISTORIES / 16).any(|seed| World::new(seed, kind).run() > 0));
}

/// If none of these did, the tests above would prove nothing.
#[test]
fn every_naive_refund_breaks_a_bound_in_the_same_histories() {
    for rule in [Rule::All, Rule::AllOfItsBusyPeriod, Rule::IgnoringOthers, Rule::WithoutGross] {
        let is_broken = |seed: &u64| World::new(*seed, Kind { rule, ..REAL }).run() > 0;
        assert!((0..HISTORIES / 4).any(|seed| is_broken(&seed)), "{rule:?}");
    }
}
