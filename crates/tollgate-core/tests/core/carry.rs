//! Debt that moves between terms: alternating cannot be farmed, a raise takes effect at once, each revision moves once.

use crate::store::{HOUR, MS, Rng, SECOND, Store, at, bucket, charge, on_key, over_bound, plan, single};
use std::time::Duration;
use tollgate_core::take::{Moment, Notice};
use tollgate_core::{Charge, Charges, Hold, LimitName, OnChange, Override, Terms, Timestamp, TokenBucket};

fn with(terms: &Terms, cost: u64, on_change: OnChange) -> Charges {
    on_key(vec![Charge { on_change, ..charge("l", terms, cost) }])
}

/// What the two sides of an alternation say that they are.
#[derive(Debug, Clone, Copy)]
enum Sides {
    /// Two plans of one revision: the case that happens.
    Plans,
    /// The same plan with other figures: a forgotten revision.
    Conflict,
    /// Each change poses as a newer revision, so that debt moves by this rule: what must not be done.
    Newer(OnChange),
}

/// A history of `sim/plans.py` against the real protocol: by how many tokens the worst interval is over the bound.
fn alternate(seed: u64, sides: Sides) -> i128 {
    let mut rng = Rng::new(seed);
    let buckets = [(); 2].map(|()| bucket(rng.pick(1, 20), SECOND, rng.pick(1, 30)));
    let (mut store, mut now, mut admitted) = (Store::default(), at(0), Vec::new());
    let (mut revision, mut last) = (1, 0);
    for _ in 0..60 {
        let step = [0, 0, 1, rng.pick(0, 5)][rng.pick(0, 3) as usize];
        now = now + Duration::from_millis(100 * step);
        let (side, cost) = (rng.pick(0, 1) as usize, rng.pick(1, 8));
        let (name, rule) = match sides {
            Sides::Plans => (["a", "b"][side], OnChange::Proportional),
            Sides::Conflict => ("", OnChange::Proportional),
            Sides::Newer(rule) => ("", rule),
        };
        if matches!(sides, Sides::Newer(_)) && side != last {
            (revision, last) = (revision + 1, side);
        }
        let told = store.ask(&with(&plan(revision, name, buckets[side]), cost, rule), now);
        assert!(!told.pulled_back(), "debt that was carried in is legitimate");
        if told.decision.is_allowed() {
            admitted.push((now, cost));
        }
    }
    over_bound(&buckets, &admitted)
}

#[test]
fn alternating_between_plans_admits_no_more_than_the_larger_burst_and_rate() {
    for seed in 0..400 {
        assert_eq!(alternate(seed, Sides::Plans), 0, "seed {seed}");
        assert_eq!(alternate(seed, Sides::Conflict), 0, "seed {seed}");
    }
}

/// The same histories, with debt moved in any other way: if these passed, the test above would prove nothing.
#[test]
fn any_other_way_to_move_debt_can_be_farmed() {
    for (rule, least) in [(OnChange::Reset, 300), (OnChange::Proportional, 50), (OnChange::Keep, 20)] {
        let broken = (0..400).filter(|seed| alternate(*seed, Sides::Newer(rule)) > 0).count();
        assert!(broken >= least, "{rule:?} broke the bound in {broken} of 400 histories");
    }
}

/// Clocks that agree with the table lie up to 2 s apart. If each change reckoned debt by the changer's clock alone, time
/// that one change skips at the higher rate would be given back at the lower one by the next, without end.
#[test]
fn alternating_between_plans_by_clocks_apart_is_bounded_once() {
    let buckets @ [fast, slow] = [bucket(10, SECOND, 100), bucket(1, SECOND, 100)];
    let (fast, slow) = (plan(1, "fast", fast), plan(1, "slow", slow));
    let (mut store, mut admitted) = (Store::default(), Vec::new());
    let mut ask = |terms: &Terms, cost, offset| {
        if store.ask(&single(terms, cost), at(0).offset_by(offset)).decision.is_allowed() {
            admitted.push((at(0), cost));
        }
    };
    ask(&fast, 100, 0);
    for _ in 0..20 {
        ask(&slow, 9, 1_000_000_000);
        ask(&fast, 9, 0);
    }
    // At one instant: the burst, and the higher rate for the second that the clocks are apart, once.
    let over = over_bound(&buckets, &admitted);
    assert!(over <= 10, "{over} tokens above the burst at one instant");
}

/// redis-cell#54.
#[test]
fn a_rate_raised_while_in_debt_takes_effect_at_once() {
    for (n, period) in [(10, SECOND), (10, HOUR)] {
        let old = plan(1, "", bucket(n, period, 10));
        let new = plan(2, "", bucket(1000, SECOND, 1000));
        for rule in [OnChange::Proportional, OnChange::Keep, OnChange::Reset] {
            let mut store = Store::default();
            assert!(store.allows(&old, 10, at(0)));
            let first = store.ask(&with(&new, 1, rule), at(0)).decision;
            let wait = first.retry_after().unwrap_or_default();
            assert!(wait <= Duration::from_millis(1), "{rule:?}: wait {wait:?}");
            assert_eq!(store.bucket("l").terms, new, "a denial moves the bucket, too");
            assert!(store.ask(&with(&new, 1, rule), at(0) + wait).decision.is_allowed());
            // Within the new terms: a second later the bucket is full, and not fuller.
            let later = at(0) + wait + Duration::from_secs(2);
            assert!(store.ask(&with(&new, 1000, rule), later).decision.is_allowed());
            assert!(!store.ask(&with(&new, 1, rule), later).decision.is_allowed());
        }
    }
}

#[test]
fn an_older_caller_follows_the_newer_figures_that_it_finds() {
    let (old, new) = (plan(1, "", bucket(1, SECOND, 10)), plan(2, "", bucket(3, SECOND, 5)));
    let mut store = Store::default();
    assert!(store.allows(&new, 1, at(0)));
    let told = store.ask(&single(&old, 4), at(0)).decision;
    assert!(told.is_allowed());
    assert_eq!((told.limits[0].terms.clone(), told.limits[0].remaining), (new.clone(), 0));
    let told = store.ask(&single(&old, 1), at(0)).decision;
    assert_eq!(told.retry_after(), Some(Duration::from_nanos(333_333_334)));
    assert_eq!(store.bucket("l").terms, new);
}

fn left_after_change(rule: OnChange, new: TokenBucket, used: u64) -> (u64, u64) {
    let (old, new) = (plan(1, "", bucket(1, SECOND, 10)), plan(2, "", new));
    let mut store = Store::default();
    assert!(store.allows(&old, used, at(0)));
    let mut left = || {
        let told = store.ask(&with(&new, 1, rule), at(0)).decision;
        told.limits[0].remaining + u64::from(told.is_allowed())
    };
    (left(), left())
}

/// A second caller of the new revision finds its own terms: what was forgiven once is not forgiven again.
#[test]
fn only_the_first_caller_of_a_newer_revision_moves_debt() {
    let new = bucket(1, SECOND, 20);
    assert_eq!(left_after_change(OnChange::Reset, new, 8), (20, 19));
    assert_eq!(left_after_change(OnChange::Keep, new, 8), (12, 11));
    assert_eq!(left_after_change(OnChange::Proportional, new, 8), (4, 3));
    let smaller = bucket(1, SECOND, 5);
    assert_eq!(left_after_change(OnChange::Keep, smaller, 8), (0, 0));
    assert_eq!(left_after_change(OnChange::Proportional, smaller, 8), (1, 0));
}

#[test]
fn a_change_that_never_fits_charges_nothing() {
    let (old, new) = (plan(1, "", bucket(1, SECOND, 10)), plan(2, "", bucket(1, SECOND, 5)));
    let mut store = Store::default();
    assert!(store.allows(&old, 2, at(0)));
    assert_eq!(store.ask(&single(&new, 6), at(0)).decision.retry_after(), None);
    let told = store.ask(&single(&new, 1), at(0)).decision;
    assert_eq!(told.limits[0].remaining, 3);
}

#[test]
fn only_other_figures_of_one_plan_are_a_conflict() {
    let conflict = |a: &Terms, b: &Terms| {
        let mut store = Store::default();
        store.ask(&single(a, 1), at(0));
        let told = store.ask(&single(b, 1), at(0));
        told.notices.iter().any(|n| matches!(n, Notice::RevisionConflict(_)))
    };
    let (one, two) = (bucket(1, SECOND, 10), bucket(2, SECOND, 10));
    assert!(conflict(&plan(1, "a", one), &plan(1, "a", two)));
    assert!(!conflict(&plan(1, "a", one), &plan(1, "b", two)));
    assert!(!conflict(&plan(1, "a", one), &plan(2, "a", two)));
    assert!(!conflict(&plan(2, "a", one), &plan(1, "a", two)));
}

/// Debt of a large burst lies far beyond a small one's: that is no wrong clock.
#[test]
fn debt_carried_in_beyond_the_burst_is_never_pulled_back() {
    for names in [["large", "small"], ["", ""]] {
        let large = plan(1, names[0], bucket(100, SECOND, 100));
        let small = plan(1, names[1], bucket(1, SECOND, 5));
        let mut store = Store::default();
        assert!(store.allows(&large, 100, at(0)));
        for ms in [0, 1, 500, 3_000, 90_000] {
            let moment = Moment { now: at(ms * MS), clock_agrees: true };
            let told = store.ask_knowing(None, &single(&small, 1), moment);
            assert!(!told.decision.is_allowed() && !told.pulled_back(), "after {ms} ms");
        }
        let tat = store.bucket("l").tat;
        assert_eq!(
            tat,
            small.figures.token_bucket().unwrap().at(at(0)) + small.figures.token_bucket().unwrap().inc(100),
            "a hundred tokens at 1 a second"
        );
        assert!(store.allows(&small, 1, at(96 * SECOND)));
    }
}

/// What is beyond the burst is remembered for as long as it lasts, whatever the figures' own horizon.
#[test]
fn debt_beyond_the_burst_is_remembered() {
    let (large, small) = (plan(1, "large", bucket(100, SECOND, 100)), plan(1, "small", bucket(1, SECOND, 5)));
    let mut store = Store::default();
    assert!(store.allows(&large, 100, at(0)));
    assert!(!store.allows(&small, 1, at(0)));
    let expires_at = Timestamp::from_secs(store.item.as_ref().unwrap().expires_at.unwrap());
    assert!(expires_at >= at(102 * SECOND));
}

/// A newer revision leaves debt as the same share of a smaller burst. What that forgave is not spent a second time by a
/// caller that still has the older revision and comes first when an override has ended.
#[test]
fn an_override_does_not_take_a_bucket_back_to_an_older_revision() {
    let (old, new) = (plan(1, "", bucket(1, SECOND, 4)), plan(2, "", bucket(1, SECOND, 2)));
    let mut store = Store::default();
    assert!(store.allows(&old, 4, at(0)));
    assert!(!store.allows(&new, 1, at(0)), "4 of 4 are 2 of 2");
    let figures = Override { figures: (bucket(2, SECOND, 2)).into(), until: at(HOUR) };
    let hold = Hold { id: 1, overrides: [(LimitName::new("l").unwrap(), figures)].into(), ..Hold::default() };
    store.set_hold(Some(hold), at(0));
    assert!(!store.allows(&new, 1, at(0)));
    assert!(store.bucket("l").terms.is_override());
    store.set_hold(None, at(0));
    assert!(!store.allows(&old, 1, at(0)));
    assert_eq!(store.bucket("l").terms, new);
}
