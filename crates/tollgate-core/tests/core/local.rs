//! What a process admits by itself: its share of each limit and never more, under what it has seen to be in force.

use crate::store::{HOUR, MS, SECOND, at, bucket, charge, on_key, single};
use proptest::prelude::*;
use std::num::NonZeroU64;
use std::time::Duration;
use tollgate_core::{
    Actual, Charge, Charges, Decision, Figures, Held, Hold, Item, LimitName, Local, Log, Mode, Outcome, Override,
    Penalty, PenaltyRule, Source, Span, Terms, Timestamp, Window,
};

/// A process among `instances`, with the item of its own and what it last saw of the table's.
struct Process {
    instances: NonZeroU64,
    own: Option<Item>,
    seen: Option<Item>,
    calls: u64,
}

impl Process {
    fn among(instances: u64) -> Self {
        Self { instances: NonZeroU64::new(instances).unwrap(), own: None, seen: None, calls: 0 }
    }

    fn local(&self, now: Timestamp) -> Local {
        Local { instances: self.instances, now }
    }

    fn ask(&mut self, charges: &Charges, now: Timestamp) -> Decision {
        self.calls += 1;
        let answer = self.local(now).decide(charges, self.own.as_ref(), self.seen.as_ref(), self.calls);
        assert_eq!(answer.decision.is_allowed(), !answer.charged.is_empty());
        self.own = Some(answer.item);
        answer.decision
    }

    fn allows(&mut self, charges: &Charges, now: Timestamp) -> bool {
        self.ask(charges, now).is_allowed()
    }

    /// How many calls of one token pass at one instant.
    fn at_once(&mut self, figures: impl Into<Figures>, now: Timestamp) -> u64 {
        let charges = single(&Terms::new(1, figures), 1);
        (0..10_000).take_while(|_| self.allows(&charges, now)).count() as u64
    }
}

fn among(figures: impl Into<Figures>, instances: u64, cost: u64) -> Figures {
    figures.into().share(NonZeroU64::new(instances).unwrap(), cost)
}

#[test]
fn a_share_is_the_figures_divided_and_one_call_at_least() {
    let minute = 60 * SECOND;
    assert_eq!(among(bucket(10, SECOND, 10), 4, 1), bucket(10, 4 * SECOND, 2).into());
    assert_eq!(among(bucket(7, minute, 3), 5, 1), bucket(7, 5 * minute, 1).into());
    assert_eq!(among(bucket(7, minute, 7), 1, 7), bucket(7, minute, 7).into());
    assert_eq!(among(bucket(600, minute, 100), 10, 50), bucket(600, 10 * minute, 50).into(), "room for the call");
    assert_eq!(among(bucket(600, minute, 100), 10, 101), bucket(600, 10 * minute, 100).into(), "which never fits");
    let pacer = |n, period, burst, delay| Figures::from(bucket(n, period, burst).paced(delay));
    assert_eq!(among(pacer(10, SECOND, 21, 5), 5, 1), pacer(10, 5 * SECOND, 4, 1));
    let debt = bucket(10, SECOND, 10).with_debt(9).unwrap();
    assert_eq!(among(debt, 2, 1), bucket(10, 2 * SECOND, 5).with_debt(4).unwrap().into());
    let window = |most, sliding| Window::new(most, Span::Every(HOUR), sliding).unwrap();
    assert_eq!(among(window(100, true), 3, 1), window(33, true).into());
    assert_eq!(among(window(2, false), 5, 1), window(1, false).into());
    let log = |most| Log::new(most, HOUR).unwrap();
    assert_eq!((among(log(5), 2, 1), among(log(5), 10, 1)), (log(2).into(), log(1).into()));
}

/// Rates at the edges stay figures, and no faster than the share.
#[test]
fn shares_of_extreme_figures_are_no_more_than_that() {
    use tollgate_core::TokenBucket;
    let (longest, most) = (TokenBucket::MAX_PERIOD_NS, TokenBucket::MAX_TOKENS);
    for (n, period, burst) in [(most, longest, most), (1, longest, 50), (7, longest, 7), (most, 1, most), (1, 1, 1)] {
        for instances in [1, 2, 999_999, 1_000_000] {
            let share = among(bucket(n, period, burst), instances, 1).token_bucket().unwrap();
            let (n, period) = (u128::from(n), u128::from(period) * u128::from(instances));
            let is_slower = u128::from(share.n()) * period <= n * u128::from(share.period());
            assert!(is_slower || (share.n(), share.period()) == (1, longest), "{n}/{period}: {share:?}");
            assert_eq!(share.burst(), (burst / instances).max(1));
        }
    }
}

#[test]
fn every_algorithm_admits_its_share_at_one_instant() {
    let pacer = bucket(10, SECOND, 12).paced(11);
    for (instances, shares) in [(1, [10, 10, 10, 10, 12]), (4, [2, 2, 2, 2, 3]), (20, [1, 1, 1, 1, 1])] {
        let window = |sliding| Figures::from(Window::new(10, Span::Every(HOUR), sliding).unwrap());
        let log = Figures::from(Log::new(10, HOUR).unwrap());
        let all = [bucket(10, SECOND, 10).into(), window(false), window(true), log, pacer.into()];
        let admitted = all.map(|figures| Process::among(instances).at_once(figures, at(0)));
        assert_eq!(admitted, shares, "{instances}");
    }
}

/// 10 and what comes back.
#[test]
fn of_fourteen_calls_a_bucket_of_ten_admits_thirteen() {
    let (mut process, charges) = (Process::among(1), single(&Terms::new(1, bucket(10, SECOND, 10)), 1));
    let decisions: Vec<_> = (0..14).map(|i| process.ask(&charges, at(i * 25 * MS))).collect();
    let denied: Vec<_> = decisions.iter().filter(|d| !d.is_allowed()).collect();
    assert_eq!((decisions.len() - denied.len(), denied.len()), (13, 1));
    assert_eq!(denied[0].retry_after(), Some(Duration::from_millis(75)), "as a bucket would");
    assert!(decisions.iter().flat_map(|d| &d.limits).all(|l| l.source == Source::Local));
}

#[test]
fn what_is_told_is_the_whole_limit_of_which_the_share_is_left() {
    let (mut process, terms) = (Process::among(5), Terms::new(1, bucket(50, HOUR, 50)));
    let decision = process.ask(&single(&terms, 1), at(0));
    assert_eq!((&decision.limits[0].terms, decision.limits[0].remaining), (&terms, 9));
}

#[test]
fn a_call_that_costs_more_than_the_share_passes_when_nothing_is_missing_and_is_owed_for() {
    let terms = Terms::new(1, bucket(600, 60 * SECOND, 100)); // 1/s for each of ten
    let (dear, cheap) = (single(&terms, 50), single(&terms, 1));
    let mut process = Process::among(10);
    assert!(process.allows(&dear, at(0)));
    let denied = process.ask(&cheap, at(0));
    assert_eq!(denied.retry_after(), Some(Duration::from_secs(41)), "until the 50 are down to 9");
    assert!(process.allows(&cheap, at(41 * SECOND)) && !process.allows(&dear, at(50 * SECOND)));
    assert!(process.allows(&dear, at(51 * SECOND)));
    let never = process.ask(&single(&terms, 101), at(HOUR));
    assert_eq!(never.outcome(), Outcome::NeverFits);
}

#[test]
fn a_ban_that_was_seen_binds_until_it_ends() {
    let (mut process, charges) = (Process::among(1), single(&Terms::new(1, bucket(10, SECOND, 10)), 1));
    let hold = Hold { id: 1, banned_until: Some(at(HOUR)), ..Hold::default() };
    process.seen = Some(Item { hold: Some(hold), ..Item::default() });
    for now in [at(0), at(HOUR - 1)] {
        let denied = process.ask(&charges, now).limits[0].clone();
        assert_eq!((denied.outcome, denied.held), (Outcome::Denied, Some(Held::Ban { until: at(HOUR) })));
    }
    assert!(process.allows(&charges, at(HOUR)));
    assert!(Process::among(1).allows(&charges, at(1)), "what was not seen does not bind");
}

#[test]
fn an_override_that_was_seen_is_shared_like_the_limit() {
    let terms = Terms::new(1, bucket(10, HOUR, 10));
    let mut process = Process::among(2);
    let other = Override { figures: bucket(100, HOUR, 100).into(), until: at(HOUR) };
    let overrides = [(LimitName::new("l").unwrap(), other)].into();
    process.seen = Some(Item { hold: Some(Hold { id: 1, overrides, ..Hold::default() }), ..Item::default() });
    let first = process.ask(&single(&terms, 1), at(0)).limits[0].clone();
    assert_eq!((first.remaining, first.terms.figures), (49, other.figures));
    assert_eq!((first.held, first.terms.is_override()), (Some(Held::Override { until: at(HOUR) }), true));
    let after = process.ask(&single(&terms, 1), at(HOUR)).limits[0].clone();
    assert_eq!((after.held, after.terms), (None, terms));
}

/// Locks for a minute and more.
fn penalty() -> PenaltyRule {
    PenaltyRule::new(Duration::from_secs(60), 2, Duration::from_secs(3600), Duration::from_secs(86_400)).unwrap()
}

/// A share is less than the limit: to use it up is no offence.
#[test]
fn a_denial_locks_nobody_and_a_lock_that_was_seen_binds() {
    let rule = penalty();
    let list = vec![Charge { penalty: Some(rule), ..charge("l", &Terms::new(1, bucket(1, SECOND, 1)), 1) }];
    let (mut process, charges) = (Process::among(1), on_key(list));
    assert!(process.allows(&charges, at(0)));
    let denied = process.ask(&charges, at(0));
    assert_eq!((denied.retry_after(), denied.limits[0].held), (Some(Duration::from_secs(1)), None));
    assert!(process.allows(&charges, at(SECOND)));
    let lock = Penalty { until: at(HOUR), length_ms: 60_000, level: 0 };
    process.seen = Some(Item { penalties: [(LimitName::new("l").unwrap(), lock)].into(), ..Item::default() });
    let locked = process.ask(&charges, at(HOUR - SECOND));
    assert_eq!(locked.limits[0].held, Some(Held::Penalty { until: at(HOUR) }));
    assert!(process.allows(&charges, at(HOUR)));
}

#[test]
fn a_shadow_decides_and_does_not_deny() {
    let terms = Terms::new(1, bucket(1, HOUR, 1));
    let shadow = Charge { mode: Mode::Shadow, penalty: Some(penalty()), ..charge("s", &terms, 1) };
    let charges = on_key(vec![charge("l", &Terms::new(1, bucket(3, HOUR, 3)), 1), shadow]);
    let mut process = Process::among(1);
    let said: Vec<_> = (0..3).map(|_| process.ask(&charges, at(0)).limits[1].clone()).collect();
    assert_eq!([0, 1, 2].map(|i| said[i].outcome), [Outcome::Allowed, Outcome::Denied, Outcome::Denied]);
    assert!(said.iter().all(|limit| limit.held.is_none()), "nor is it locked: {said:?}");
    assert!(!process.allows(&charges, at(0)));
}

/// Failures count, and the right password takes its try back here, too.
#[test]
fn what_was_charged_here_is_settled_here() {
    let charges = single(&Terms::new(1, Log::new(2, HOUR).unwrap()), 1);
    let process = Process::among(1);
    let local = process.local(at(0));
    let answer = local.decide(&charges, None, None, 1);
    let wanted = answer.charged.iter().cloned().map(|charged| (charged, Actual::Cost(0))).collect();
    let settled = local.settle(wanted, &answer.item, 2);
    assert!(settled.beyond.is_empty());
    let left = settled.item.unwrap();
    assert_eq!(local.decide(&charges, Some(&left), None, 3).decision.limits[0].remaining, 1);
    assert_eq!(local.tell(&charges, Some(&left), None)[0].remaining, 2);
}

#[derive(Debug, Clone)]
struct Call {
    after: u64,
    cost: u64,
    /// Which of the plans' figures.
    plan: usize,
    instances: u64,
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let after = prop_oneof![Just(0), 0..300 * MS, 0..4 * SECOND];
    let call = (after, 1_u64..=12, 0_usize..2, 1_u64..=3).prop_map(|(after, cost, plan, instances)| Call {
        after,
        cost,
        plan,
        instances,
    });
    prop::collection::vec(call, 1..60)
}

/// What was admitted, and when.
fn admitted(figures: [Figures; 2], calls: &[Call], changes: bool) -> Vec<(u64, u64)> {
    let (mut process, mut now, mut admitted) = (Process::among(calls[0].instances), 0, Vec::new());
    for call in calls {
        now += call.after;
        let which = if changes { call.plan } else { 0 };
        let name = ["free", "pro"][which];
        let terms = Terms::new(1, figures[which]).on_plan(name);
        if process.allows(&single(&terms, call.cost), at(now)) {
            admitted.push((now, call.cost));
        }
    }
    admitted
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Over any interval: the share of the burst or the dearest call, and the share of the rate; of plans the greatest.
    #[test]
    fn a_bucket_admits_no_more_than_its_share_over_any_interval(
        calls in calls(), n in 1_u64..20, burst in 1_u64..20, more in 1_u64..4, changes: bool,
    ) {
        let plans = [bucket(n, SECOND, burst), bucket(n * more, SECOND, burst * more)];
        let passed = admitted(plans.map(Figures::from), &calls, changes);
        let (i, most) = (u128::from(calls[0].instances), if changes { more } else { 1 });
        let dearest = passed.iter().map(|(_, cost)| *cost).max().unwrap_or(0);
        let room = (burst * most / calls[0].instances).max(dearest).max(1);
        for (from, (start, _)) in passed.iter().enumerate() {
            let mut cost = 0;
            for (end, c) in &passed[from..] {
                cost += c;
                // cost <= room + n/instances per second * time, without fractions
                let left = u128::from(cost - room.min(cost)) * u128::from(SECOND) * i;
                prop_assert!(left <= u128::from(n * most) * u128::from(end - start), "{cost} in {start}..{end}: {passed:?}");
            }
        }
    }

    #[test]
    fn a_window_and_a_log_admit_no_more_than_their_share(calls in calls(), most in 1_u64..=32) {
        let share = |dearest: u64| (most / calls[0].instances).max(dearest).max(1);
        let window = Figures::from(Window::new(most, Span::Every(2 * SECOND), false).unwrap());
        let passed = admitted([window; 2], &calls, false);
        let dearest = passed.iter().map(|(_, cost)| *cost).max().unwrap_or(0);
        for (start, _) in &passed {
            // `at(0)` begins a window.
            let window = start / (2 * SECOND);
            let counted: u64 = passed.iter().filter(|(t, _)| t / (2 * SECOND) == window).map(|(_, c)| c).sum();
            prop_assert!(counted <= share(dearest), "{passed:?}");
        }
        let log = Figures::from(Log::new(most, 2 * SECOND).unwrap());
        let passed = admitted([log; 2], &calls, false);
        let dearest = passed.iter().map(|(_, cost)| *cost).max().unwrap_or(0);
        for (start, _) in &passed {
            let counted: u64 = passed.iter().filter(|(t, _)| (*start..start + 2 * SECOND).contains(t)).map(|(_, c)| c).sum();
            prop_assert!(counted <= share(dearest), "{passed:?}");
        }
    }
}

#[test]
fn all_together_admit_the_limit_and_no_more() {
    for instances in 1..=9 {
        let admitted: u64 =
            (0..instances).map(|_| Process::among(instances).at_once(bucket(10, HOUR, 60), at(0))).sum();
        assert_eq!(admitted, 60 / instances * instances, "{instances}");
    }
}
