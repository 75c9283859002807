//! Leases: random histories of processes that take tokens ahead and spend them later, checked over every interval; the rules that
//! a search showed to be wrong break the bound in the same histories.

use crate::store::{MS, Rng, SECOND, START, at, bucket, charge, on_key, over_bound_by_clocks, plan};
use std::time::Duration;
use tollgate_core::lease::Pool;
use tollgate_core::settle::Step as Settle;
use tollgate_core::take::Moment;
use tollgate_core::{
    Charged, Charges, Figures, Hold, Item, LimitName, Outcome, Settlement, Source, Span, Step, Take, Terms, Timestamp,
    TokenBucket, Window,
};

/// How leased tokens are spent, and what becomes of those that are given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// As it is.
    Real,
    /// At any time.
    NeverEnds,
    /// Until the end of their slot.
    UntilSlotEnds,
    /// A charge of a leased limit is given back to the store.
    ToTheStore,
    /// Leased tokens move between plans as others do.
    InTokens,
}

/// A process: how far its clock is ahead, what it has leased, what it last saw.
#[derive(Debug, Default)]
struct Process {
    offset: i64,
    pool: Option<Pool>,
    leased_at: Timestamp,
    seen: Option<Item>,
}

/// An item whose buckets nobody knows to be leased.
fn unmarked(mut item: Item) -> Item {
    item.buckets.values_mut().for_each(|bucket| bucket.terms.leased = false);
    item
}

struct World {
    rule: Rule,
    rng: Rng,
    now: Timestamp,
    item: Option<Item>,
    processes: Vec<Process>,
    admitted: Vec<(Timestamp, u64)>,
    ids: u64,
}

/// A call that was let through: what it was charged, and the item that its write left, if it took one.
type Let = (Charged, Option<Item>);

impl World {
    fn new(seed: u64, rule: Rule, offsets: &[i64]) -> Self {
        let processes = offsets.iter().map(|offset| Process { offset: *offset, ..Process::default() }).collect();
        let (rng, now) = (Rng::new(seed), Timestamp::from_nanos(START));
        Self { rule, rng, now, item: None, processes, admitted: Vec::new(), ids: 0 }
    }

    fn local(&self, p: usize) -> Timestamp {
        self.now.offset_by(self.processes[p].offset)
    }

    /// One call of `cost`, with `ahead` tokens more if it has to write.
    fn call(&mut self, p: usize, terms: &Terms, cost: u64, ahead: u64) -> Option<Let> {
        let now = self.local(p);
        let pretended = match self.rule {
            Rule::NeverEnds => self.processes[p].leased_at,
            Rule::UntilSlotEnds => now.offset_by(-i64::try_from(SECOND).unwrap()),
            _ => now,
        };
        let spent = self.processes[p].pool.as_mut().and_then(|pool| pool.spend(terms, cost, pretended));
        if let Some((told, charged)) = spent {
            assert_eq!((told.source, told.outcome), (Source::Lease, Outcome::Allowed));
            return Some((charged, None));
        }
        let one = on_key(vec![charge("l", terms, cost)]);
        let (charged, pool, left) = self.write(p, &one, ahead, now).or_else(|| self.write(p, &one, 0, now))?;
        let pool = match self.processes[p].pool.take() {
            Some(earlier) => pool.after(earlier),
            None => pool,
        };
        (self.processes[p].pool, self.processes[p].leased_at) = (Some(pool), now);
        Some((charged, Some(left)))
    }

    fn write(&mut self, p: usize, one: &Charges, ahead: u64, now: Timestamp) -> Option<(Charged, Pool, Item)> {
        self.ids += 1;
        let moment = Moment { now, clock_agrees: true };
        if self.rule == Rule::InTokens {
            self.item = self.item.take().map(unmarked);
        }
        let wanted = one.ahead(ahead).unwrap();
        let (mut take, mut step) = Take::start(wanted, self.processes[p].seen.as_ref(), moment, self.ids);
        loop {
            step = match step {
                Step::Read => take.read(self.item.as_ref(), moment),
                Step::Write(write) => match write.apply(self.item.as_ref()) {
                    Some(next) => take.applied(self.item.insert(next), moment),
                    None => take.refused(self.item.as_ref(), moment),
                },
                Step::Lock { .. } => panic!("no limit locks"),
                Step::Done(decision) => {
                    self.processes[p].seen.clone_from(&self.item);
                    let all = take.charged().first()?;
                    let left = self.item.clone().filter(|_| decision.is_allowed())?;
                    let (told, own) = take.shares(one, 1, ahead, &left).remove(0);
                    let pool = Pool::of(one, all, one.charges()[0].cost, &told, &left)?;
                    return Some((own[0].clone(), pool, left));
                }
            };
        }
    }

    /// The call is refused elsewhere.
    fn give_back(&mut self, p: usize, (charged, left): Let) {
        let now = self.local(p);
        let pool = self.processes[p].pool.as_mut().unwrap();
        match (self.rule, left) {
            (Rule::ToTheStore, Some(left)) => {
                let (_, step) = Settlement::giving_back(vec![charged], &unmarked(left), now);
                if let Settle::Write(write) = step {
                    self.item = write.apply(self.item.as_ref()).or(self.item.take());
                }
            }
            _ => drop(pool.give_back(&charged, 0, now)),
        }
    }

    fn pass(&mut self) {
        let ns = [0, 0, 0, 250 * MS, SECOND, 3 * SECOND][usize::try_from(self.rng.pick(0, 5)).unwrap()];
        self.now = self.now + Duration::from_nanos(ns);
    }
}

/// By how much the worst of `histories` is over the bound, and how many are; buckets, and two plans of one limit if `plans`.
fn over(rule: Rule, plans: bool, apart: bool, histories: u64) -> (i128, u64) {
    let (mut worst, mut broken) = (0, 0);
    for seed in 1..=histories {
        let offsets: &[i64] = if apart { &[-1_000_000_000, 0, 1_000_000_000] } else { &[0, 0, 0] };
        let mut world = World::new(seed, rule, offsets);
        let rng = &mut world.rng;
        let rate = |rng: &mut Rng| [1, 2, 4, 50][usize::try_from(rng.pick(0, 3)).unwrap()];
        let buckets: Vec<TokenBucket> =
            (0..if plans { 2 } else { 1 }).map(|_| bucket(rate(rng), SECOND, rng.pick(2, 10))).collect();
        let terms: Vec<Terms> =
            buckets.iter().zip(["a", "b"]).map(|(bucket, name)| plan(1, name, *bucket).leased()).collect();
        for _ in 0..40 {
            world.pass();
            let pick = |rng: &mut Rng, most: usize| usize::try_from(rng.pick(0, most as u64 - 1)).unwrap();
            let (p, t) = (pick(&mut world.rng, offsets.len()), pick(&mut world.rng, terms.len()));
            let (cost, ahead) = (world.rng.pick(1, 2), world.rng.pick(0, 9));
            if let Some(passed) = world.call(p, &terms[t], cost, ahead) {
                if world.rng.pick(0, 3) == 0 {
                    world.give_back(p, passed);
                } else {
                    world.admitted.push((world.now, cost));
                }
            }
        }
        // The bursts of a leased limit's plans add up.
        let sum = buckets.iter().map(TokenBucket::burst).sum();
        let bound: Vec<_> = buckets.iter().map(|b| bucket(b.n(), b.period(), sum)).collect();
        let apart = Duration::from_secs(if apart { 2 } else { 0 });
        let over = over_bound_by_clocks(&bound, &world.admitted, apart);
        worst = worst.max(over);
        broken += u64::from(over > 0);
    }
    (worst, broken)
}

#[test]
fn whatever_processes_lease_the_bound_of_the_bucket_holds() {
    for (plans, apart) in [(false, false), (false, true), (true, false), (true, true)] {
        assert_eq!(over(Rule::Real, plans, apart, 20_000), (0, 0), "plans {plans}, clocks apart {apart}");
    }
}

#[test]
fn tokens_that_are_spent_late_double_the_burst() {
    // The same histories by the rules that are wrong.
    for rule in [Rule::NeverEnds, Rule::UntilSlotEnds, Rule::ToTheStore] {
        let (worst, broken) = over(rule, false, false, 5_000);
        assert!(worst >= 1 && broken >= 20, "{rule:?}: {broken} broken, the worst by {worst}");
    }
}

/// Processes lease all of a slow plan, one after the other, while somebody alternates between it and a fast one; then all spend at
/// once. How many calls pass at that instant.
fn passed_at_once(rule: Rule) -> usize {
    let [slow, fast] = [("slow", 1), ("fast", 50)].map(|(name, n)| plan(1, name, bucket(n, SECOND, 10)).leased());
    let mut world = World::new(1, rule, &[0; 7]);
    for p in 0..6 {
        world.call(p, &slow, 1, 9);
        world.now = world.now + Duration::from_millis(250);
        world.call(6, &fast, 1, 0);
        world.now = world.now + Duration::from_millis(250);
    }
    (0..6).map(|p| (0..20).filter(|_| world.call(p, &slow, 1, 0).is_some()).count()).sum()
}

#[test]
fn moving_leased_tokens_between_plans_in_tokens_has_the_bucket_forget_them() {
    // The bursts of both are 20.
    let (real, in_tokens) = (passed_at_once(Rule::Real), passed_at_once(Rule::InTokens));
    assert!(real <= 20 && in_tokens >= 40, "{real}, and {in_tokens} in tokens");
}

/// A process that leases `ahead` tokens with a call of cost 1 at `now`.
fn leased(figures: impl Into<Figures>, ahead: u64, now: Timestamp) -> (World, Terms) {
    let terms = Terms::new(1, figures).leased();
    let mut world = World::new(1, Rule::Real, &[0]);
    world.now = now;
    world.call(0, &terms, 1, ahead).unwrap();
    (world, terms)
}

#[test]
fn a_token_may_be_spent_until_its_slot_starts_and_not_1_ns_later() {
    // 1/s: the slots of the five tokens that were leased start 1 s, 2 s, ... 5 s later.
    let spent_at = |ns| {
        let (mut world, terms) = leased(bucket(1, SECOND, 10), 5, at(0));
        let pool = world.processes[0].pool.as_mut().unwrap();
        std::iter::from_fn(|| pool.spend(&terms, 1, at(ns))).count()
    };
    let left = [0, SECOND, SECOND + 1, 3 * SECOND, 5 * SECOND, 5 * SECOND + 1].map(spent_at);
    assert_eq!(left, [5, 5, 4, 3, 1, 0]);
}

#[test]
fn a_lease_ends_after_10_s_or_when_the_clock_was_set_back() {
    let spends = |from: Timestamp, now| {
        let (mut world, terms) = leased(bucket(1, 3_600 * SECOND, 10), 5, from);
        world.processes[0].pool.as_mut().unwrap().spend(&terms, 1, now).is_some()
    };
    let from = at(100 * SECOND);
    assert!(spends(from, at(110 * SECOND - 1)) && !spends(from, at(110 * SECOND)));
    assert!(spends(from, at(99 * SECOND)) && !spends(from, at(99 * SECOND - 1)));
}

#[test]
fn what_is_leased_of_a_window_is_spent_while_the_window_lasts() {
    for sliding in [false, true] {
        let window = Window::new(10, Span::Every(60 * SECOND), sliding).unwrap();
        let (mut world, terms) = leased(window, 5, at(55 * SECOND));
        let pool = world.processes[0].pool.as_mut().unwrap();
        assert!(pool.spend(&terms, 1, at(60 * SECOND - 1)).is_some());
        assert!(pool.spend(&terms, 1, at(60 * SECOND)).is_none());
    }
}

#[test]
fn no_window_admits_more_than_it_has_whatever_processes_lease() {
    for (seed, sliding) in (1..4_000).flat_map(|seed| [(seed, false), (seed, true)]) {
        let mut world = World::new(seed, Rule::Real, &[0, 0]);
        let most = world.rng.pick(2, 9);
        let terms = Terms::new(1, Window::new(most, Span::Every(2 * SECOND), sliding).unwrap()).leased();
        for _ in 0..40 {
            world.pass();
            let (p, cost, ahead) = (world.rng.pick(0, 1), world.rng.pick(1, 2), world.rng.pick(0, 4));
            if world.call(usize::try_from(p).unwrap(), &terms, cost, ahead).is_some() {
                world.admitted.push((world.now, cost));
            }
        }
        let mut counted = std::collections::BTreeMap::<u64, u64>::new();
        for (at, cost) in &world.admitted {
            *counted.entry(at.as_nanos() / (2 * SECOND)).or_default() += cost;
        }
        assert!(counted.values().all(|count| *count <= most), "seed {seed}: {counted:?} of {most}");
    }
}

#[test]
fn at_one_instant_a_process_that_leases_admits_exactly_the_burst() {
    for (cost, ahead) in [(1, 3), (1, 9), (2, 4), (3, 3)] {
        let terms = Terms::new(1, bucket(7, 60 * SECOND, 21)).leased();
        let mut world = World::new(1, Rule::Real, &[0]);
        let admitted = (0..50).filter(|_| world.call(0, &terms, cost, ahead).is_some()).count() as u64;
        assert_eq!(admitted, 21 / cost, "of cost {cost}");
    }
}

#[test]
fn what_a_call_gives_back_is_spent_again_with_its_slot() {
    let (mut world, terms) = leased(bucket(1, SECOND, 10), 2, at(0));
    let first = world.call(0, &terms, 1, 0).unwrap();
    assert!(first.1.is_none(), "out of the lease");
    world.give_back(0, first);
    let pool = world.processes[0].pool.as_mut().unwrap();
    assert_eq!(std::iter::from_fn(|| pool.spend(&terms, 1, at(SECOND))).count(), 2, "the first starts at 1 s");
    assert!(pool.spend(&terms, 1, at(SECOND)).is_none());
}

#[test]
fn a_lease_tells_what_is_left_for_its_process() {
    let (mut world, terms) = leased(bucket(1, SECOND, 10), 5, at(0));
    let pool = world.processes[0].pool.as_mut().unwrap();
    let left: Vec<_> = std::iter::from_fn(|| Some(pool.spend(&terms, 1, at(0))?.0.remaining)).collect();
    assert_eq!(left, [8, 7, 6, 5, 4]);
}

#[test]
fn another_plan_or_revision_or_an_operators_hold_is_no_business_of_a_lease() {
    let (mut world, terms) = leased(bucket(1, SECOND, 10), 5, at(0));
    let item = world.item.clone().unwrap();
    let pool = world.processes[0].pool.as_mut().unwrap();
    assert!(pool.spend(&terms.clone().on_plan("pro"), 1, at(0)).is_none());
    let is_spent_after = |seen: Option<&Item>| {
        let mut pool = pool.clone();
        pool.see(seen);
        pool.spend(&terms, 1, at(0)).is_some()
    };
    assert!(is_spent_after(Some(&item)));
    let held = Item { hold: Some(Hold { id: 1, banned_until: Some(at(SECOND)), ..Hold::default() }), ..item.clone() };
    assert!(!is_spent_after(Some(&held)) && !is_spent_after(None));
    let mut reset = item;
    reset.buckets.get_mut(&LimitName::new("l").unwrap()).unwrap().busy_period.id += 1;
    assert!(!is_spent_after(Some(&reset)));
}

/// Or a call that was charged before a ban would hand its slot to one that comes after it.
#[test]
fn a_lease_that_is_over_takes_nothing_back() {
    let (mut world, terms) = leased(bucket(1, SECOND, 10), 5, at(0));
    let pool = world.processes[0].pool.as_mut().unwrap();
    let (_, charged) = pool.spend(&terms, 1, at(0)).unwrap();
    pool.see(None);
    pool.give_back(&charged, 0, at(0));
    assert!(pool.spend(&terms, 1, at(0)).is_none());
}

#[test]
fn how_much_is_leased_follows_the_rate_of_late_and_leaves_room_for_others() {
    let extra = |(n, burst): (u64, u64), calls: u64, every: u64, most, room| {
        let (mut world, terms) = leased(bucket(n, SECOND, burst), calls.min(burst / 2) - 1, at(0));
        let pool = world.processes[0].pool.as_mut().unwrap();
        for call in 1..calls {
            pool.spend(&terms, 1, at(call * every));
        }
        pool.extra(most, (1, 1), room, at(calls * every))
    };
    let slow = (1, 10_000);
    assert_eq!(extra(slow, 1, 2 * SECOND, 1_000, 5_000), 0, "less than once a second");
    assert_eq!(extra(slow, 1, 100 * MS, 1_000, 5_000), 1, "as many as came before");
    assert_eq!(extra(slow, 5, MS, 1_000, 5_000), 5, "so it doubles");
    assert_eq!(extra(slow, 400, 20 * MS, 5_000, 5_000), 49, "50 a second");
    assert_eq!(extra(slow, 4_000, MS, 5_000, 9_000), 980, "1,000 a second, for four");
    assert_eq!(extra(slow, 4_000, MS, 100, 5_000), 100, "the policy's most");
    assert_eq!(extra(slow, 4_000, MS, 5_000, 501), 250, "half of what is left");
    assert_eq!(extra(slow, 4_000, MS, 5_000, 1), 0, "nothing is left");
    let fast = (1_000, 10_000);
    assert_eq!(extra(fast, 400, MS, 5_000, 9_000), 1_000, "what lasts for a second");
    assert_eq!(extra(fast, 2, 100 * MS, 20, 9_000), 0, "20 of these last for 20 ms: nobody would come meanwhile");
}
