//! How many writes a decision takes when nobody disturbs it: one in the steady state, two at most.

use crate::store::{SECOND, Store, Told, at, bucket, charge, on_key, plan, single};
use proptest::prelude::*;
use std::time::Duration;
use tollgate_core::take::{Moment, Notice};
use tollgate_core::{Item, Terms, Timestamp};

fn terms() -> Terms {
    plan(1, "", bucket(1, SECOND, 3))
}

fn ask(store: &mut Store, last_seen: Option<&Item>, terms: &Terms, cost: u64, now: Timestamp) -> Told {
    store.ask_knowing(last_seen, &single(terms, cost), Moment { now, clock_agrees: true })
}

/// A table with one call at the start, and what its caller last saw.
fn used_once() -> (Store, Item) {
    let mut store = Store::default();
    let told = ask(&mut store, None, &terms(), 1, at(0));
    assert_eq!((told.writes, told.applied, told.reads), (1, 1, 0), "a new key takes one write");
    let seen = store.item.clone().unwrap();
    (store, seen)
}

#[test]
fn a_busy_key_takes_one_write_with_and_without_knowledge() {
    for know in [true, false] {
        let (mut store, seen) = used_once();
        let told = ask(&mut store, know.then_some(&seen), &terms(), 1, at(0));
        assert_eq!((told.writes, told.applied), (1, 1));
        assert_eq!(told.notices, []);
    }
}

#[test]
fn an_idle_key_takes_one_write_with_knowledge_and_two_without() {
    for (know, writes) in [(true, 1), (false, 2)] {
        let (mut store, seen) = used_once();
        let told = ask(&mut store, know.then_some(&seen), &terms(), 1, at(60 * SECOND));
        assert_eq!((told.writes, told.applied), (writes, 1));
        assert_eq!(told.notices.contains(&Notice::Mispredicted), writes == 2);
    }
}

#[test]
fn a_denial_takes_one_refused_write_with_and_without_knowledge() {
    for know in [true, false] {
        let (mut store, _) = used_once();
        assert!(store.allows(&terms(), 2, at(0)));
        let seen = store.item.clone().unwrap();
        let told = ask(&mut store, know.then_some(&seen), &terms(), 1, at(0));
        assert_eq!((told.writes, told.applied, told.reads), (1, 0, 0));
        assert_eq!(told.decision.retry_after(), Some(Duration::from_secs(1)));
    }
}

#[test]
fn a_change_of_terms_takes_one_write_with_knowledge_and_two_without() {
    let newer = plan(2, "", bucket(2, SECOND, 3));
    for (know, writes) in [(true, 1), (false, 2)] {
        let (mut store, seen) = used_once();
        let told = ask(&mut store, know.then_some(&seen), &newer, 1, at(0));
        assert_eq!((told.writes, told.applied), (writes, 1));
    }
}

#[test]
fn a_guessed_denial_that_is_wrong_is_an_admission_of_one_write() {
    let (mut store, _) = used_once();
    assert!(store.allows(&terms(), 2, at(0)));
    let emptied = store.item.take().unwrap();
    let told = ask(&mut store, Some(&emptied), &terms(), 1, at(0));
    assert!(told.decision.is_allowed());
    assert_eq!((told.writes, told.applied), (1, 1));
}

#[test]
fn one_busy_and_one_idle_limit_take_two_writes_without_knowledge() {
    let slow = plan(1, "", bucket(1, 60 * SECOND, 3));
    let both = on_key(vec![charge("fast", &terms(), 1), charge("slow", &slow, 1)]);
    let mut store = Store::default();
    assert_eq!(store.ask(&both, at(0)).writes, 1);
    assert_eq!(store.ask(&both, at(10 * SECOND)).writes, 2);
}

proptest! {
    /// Whatever the caller believes that it has seen.
    #[test]
    fn an_undisturbed_call_takes_at_most_two_writes_and_applies_at_most_one(
        history in prop::collection::vec((0..4 * SECOND, 0..5u64, 0..4usize, any::<prop::sample::Index>()), 1..40),
    ) {
        let all = [
            terms(),
            plan(1, "other", bucket(3, SECOND, 7)),
            plan(1, "", bucket(1, 2 * SECOND, 2)),
            plan(2, "", bucket(5, 3 * SECOND, 4)),
        ];
        let (mut store, mut now, mut seen) = (Store::default(), at(0), vec![None]);
        for (step, cost, which, belief) in history {
            now = now + Duration::from_nanos(step);
            let belief: Option<Item> = belief.get(&seen).clone();
            let told = ask(&mut store, belief.as_ref(), &all[which], cost, now);
            prop_assert!(told.writes + told.reads <= 2, "{told:?}");
            prop_assert!(told.applied <= 1);
            prop_assert!(!told.decision.is_allowed() || cost == 0 || told.applied == 1);
            seen.push(store.item.clone());
        }
    }
}
