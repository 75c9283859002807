//! Limits that share an item: charged together or not at all, and none forgotten because of another.

use crate::store::{HOUR, SECOND, START, Store, at, bucket, charge, on_key, over_bound, plan, single};
use proptest::prelude::*;
use std::time::Duration;
use tollgate_core::{Charges, Outcome, Terms};

fn short() -> Terms {
    plan(1, "", bucket(10, SECOND, 100))
}

fn long() -> Terms {
    plan(1, "", bucket(3, HOUR, 3))
}

fn both(cost: u64) -> Charges {
    on_key(vec![charge("short", &short(), cost), charge("long", &long(), cost)])
}

#[test]
fn a_denial_by_one_limit_charges_none() {
    let mut store = Store::default();
    assert!(store.ask(&both(3), at(0)).decision.is_allowed());
    let before = store.item.clone();
    let told = store.ask(&both(1), at(0)).decision;
    let outcomes: Vec<_> = told.limits.iter().map(|l| l.outcome).collect();
    assert_eq!(outcomes, [Outcome::Allowed, Outcome::Denied]);
    assert_eq!(told.limits[0].remaining, 97, "the limit that would have allowed keeps its tokens");
    assert_eq!(told.retry_after(), Some(Duration::from_secs(1200)));
    assert_eq!(store.item, before);
}

#[test]
fn a_cost_that_never_fits_one_limit_charges_none() {
    let mut store = Store::default();
    let told = store.ask(&both(4), at(0)).decision;
    assert_eq!((told.outcome(), told.retry_after(), &store.item), (Outcome::NeverFits, None, &None));
    assert!(store.ask(&both(3), at(0)).decision.is_allowed());
}

/// A denied call moves nothing of the limits that are under their terms, even if another one has to move to new terms.
#[test]
fn a_denial_that_moves_one_limit_to_new_terms_charges_none() {
    let mut store = Store::default();
    assert!(store.ask(&both(3), at(0)).decision.is_allowed());
    let newer = plan(2, "", bucket(4, HOUR, 3));
    let short_before = store.bucket("short").clone();
    let told = store.ask(&on_key(vec![charge("short", &short(), 1), charge("long", &newer, 1)]), at(0));
    assert_eq!(told.decision.outcome(), Outcome::Denied);
    assert_eq!((store.bucket("short"), &store.bucket("long").terms), (&short_before, &newer));
    assert_eq!(
        store.bucket("long").tat,
        newer.figures.token_bucket().unwrap().at(at(0)) + newer.figures.token_bucket().unwrap().window()
    );
}

/// parse-server#10624.
#[test]
fn using_the_limit_with_the_short_memory_does_not_let_the_long_one_expire() {
    let mut store = Store::default();
    assert!(store.ask(&both(3), at(0)).decision.is_allowed());
    let (h, expires_at) = store.item.as_ref().map(|i| (i.horizon, i.expires_at)).unwrap();
    assert!(expires_at.unwrap() > START / SECOND + 3600);
    for seconds in [0, 1, 30, 1000] {
        let only_short = on_key(vec![charge("short", &short(), 1)]);
        let told = store.ask(&only_short, at(seconds * SECOND));
        assert!(told.decision.is_allowed() && told.writes <= 2);
        let item = store.item.as_ref().unwrap();
        assert_eq!(item.horizon, h);
        assert!(item.expires_at >= expires_at);
    }
}

/// Clocks of callers may disagree by 2 s; a request may be on its way for longer than any of that.
#[test]
fn a_late_write_of_one_limit_does_not_let_another_expire() {
    let mut store = Store::default();
    let lateness = tollgate_core::TokenBucket::LATEST_ARRIVAL_SECS;
    assert!(store.ask(&on_key(vec![charge("long", &long(), 3)]), at(lateness * SECOND)).decision.is_allowed());
    let late =
        on_key(vec![charge("short", &short(), 1)]).with_horizon(long().figures.token_bucket().unwrap().horizon_secs());
    store.ask(&late, at(0));
    let expires_at = i128::from(store.item.as_ref().unwrap().expires_at.unwrap()) * i128::from(SECOND);
    assert!(expires_at * i128::from(long().figures.token_bucket().unwrap().n()) >= store.bucket("long").tat.0);
}

#[test]
fn a_cost_of_0_observes_and_writes_nothing() {
    let mut store = Store::default();
    let told = store.ask(&single(&short(), 0), at(0));
    assert_eq!((told.writes, told.reads, told.decision.limits[0].remaining, &store.item), (0, 1, 100, &None));
    assert!(store.ask(&single(&short(), 40), at(0)).decision.is_allowed());
    let before = store.item.clone();
    let newer = plan(2, "", bucket(1, SECOND, 10));
    let told = store.ask(&single(&newer, 0), at(0));
    assert_eq!((told.writes, told.decision.limits[0].remaining), (0, 6), "told by the newer terms");
    let told = store.ask(&single(&short(), 0), at(0));
    assert_eq!((told.writes, told.decision.limits[0].remaining), (0, 60));
    assert_eq!(store.item, before);
}

#[test]
fn a_limit_that_is_only_observed_is_not_charged_beside_one_that_is() {
    let mut store = Store::default();
    let told = store.ask(&on_key(vec![charge("short", &short(), 0), charge("long", &long(), 1)]), at(0));
    assert!(told.decision.is_allowed());
    assert_eq!(store.item.as_ref().unwrap().buckets.keys().map(|k| k.as_str()).collect::<Vec<_>>(), ["long"]);
    assert_eq!(told.decision.limits.iter().map(|l| l.remaining).collect::<Vec<_>>(), [100, 2]);
}

proptest! {
    /// Each limit keeps its own bound, and what is admitted is charged to both.
    #[test]
    fn every_limit_keeps_its_bound(
        history in prop::collection::vec((prop_oneof![Just(0), 0..SECOND, 0..60 * SECOND], 0..4u64, 0..4u64), 1..60),
    ) {
        let (a, b) = (plan(1, "", bucket(7, 60 * SECOND, 4)), plan(1, "", bucket(3, SECOND, 3)));
        let (mut store, mut now, mut admitted) = (Store::default(), at(0), [Vec::new(), Vec::new()]);
        for (step, cost_a, cost_b) in history {
            now = now + Duration::from_nanos(step);
            let before = store.item.clone();
            let told = store.ask(&on_key(vec![charge("a", &a, cost_a), charge("b", &b, cost_b)]), now);
            prop_assert!(told.writes <= 2);
            if told.decision.is_allowed() {
                admitted[0].push((now, cost_a));
                admitted[1].push((now, cost_b));
            } else {
                prop_assert_eq!(&before, &store.item);
                let fits = |l: &tollgate_core::LimitDecision| l.cost <= l.remaining;
                prop_assert!(!told.decision.limits.iter().all(fits), "denied though all fit");
            }
        }
        prop_assert_eq!(over_bound(&[a.figures.token_bucket().unwrap()], &admitted[0]), 0);
        prop_assert_eq!(over_bound(&[b.figures.token_bucket().unwrap()], &admitted[1]), 0);
    }
}
