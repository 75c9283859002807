//! What an operator sets for a key: in force with the next decision, gone when it ends, and no way to more tokens.

use crate::store::{HOUR, SECOND, Store, at, bucket, charge, on_key, plan, single};
use std::time::Duration;
use tollgate_core::take::Moment;
use tollgate_core::{Held, Hold, Item, LimitName, Outcome, Override, Step, Take, Terms, Ticks, Timestamp, TokenBucket};

fn terms() -> Terms {
    plan(1, "", bucket(1, SECOND, 3))
}

fn ban(id: u64, until: Timestamp) -> Hold {
    Hold { id, banned_until: Some(until), ..Hold::default() }
}

fn set(id: u64, figures: TokenBucket, until: Timestamp) -> Hold {
    let overrides = [(LimitName::new("l").unwrap(), Override { figures: (figures).into(), until })].into();
    Hold { id, overrides, ..Hold::default() }
}

fn moment(now: Timestamp) -> Moment {
    Moment { now, clock_agrees: true }
}

#[test]
fn a_ban_denies_every_caller_with_one_write_until_it_ends() {
    let mut store = Store::default();
    assert!(store.allows(&terms(), 1, at(0)));
    let before = store.item.clone();
    store.set_hold(Some(ban(1, at(HOUR))), at(0));
    let after = store.item.clone();
    for seen in [None, before, after] {
        for cost in [1, 3, 4] {
            let told = store.ask_knowing(seen.as_ref(), &single(&terms(), cost), moment(at(SECOND)));
            assert_eq!(told.decision.outcome(), Outcome::Denied);
            assert_eq!(told.decision.retry_after(), Some(Duration::from_nanos(HOUR - SECOND)));
            assert_eq!(told.decision.limits[0].held, Some(Held::Ban { until: at(HOUR) }));
            assert_eq!((told.writes + told.reads, told.applied), (1, 0), "cost {cost}");
        }
    }
    let told = store.ask(&single(&terms(), 3), at(HOUR));
    assert!(told.decision.is_allowed() && told.writes == 2);
    assert_eq!(store.item.as_ref().unwrap().hold, None, "the first caller removes it");
}

#[test]
fn a_ban_of_a_key_without_state_denies_and_leaves_none() {
    let mut store = Store::default();
    store.set_hold(Some(ban(1, at(HOUR))), at(0));
    assert!(!store.allows(&terms(), 1, at(SECOND)));
    assert!(store.item.as_ref().unwrap().buckets.is_empty());
    assert!(store.item.as_ref().unwrap().expires_at.unwrap() * SECOND > at(HOUR).as_nanos());
}

/// A guess by a ban asks for no ban, so that one that was lifted costs no write; a ban of another id is found.
#[test]
fn a_remembered_ban_that_was_lifted_costs_no_write() {
    let mut store = Store::default();
    assert!(store.allows(&terms(), 1, at(0)));
    store.set_hold(Some(ban(1, at(HOUR))), at(0));
    let banned = store.item.clone();
    store.set_hold(None, at(0));
    let told = store.ask_knowing(banned.as_ref(), &single(&terms(), 1), moment(at(0)));
    assert_eq!((told.decision.is_allowed(), told.writes), (true, 1));
    store.set_hold(Some(ban(2, at(HOUR))), at(0));
    let told = store.ask_knowing(banned.as_ref(), &single(&terms(), 1), moment(at(0)));
    assert_eq!((told.decision.is_allowed(), told.writes), (false, 1));
}

/// With a ban that has ended, the last seen item may deny by its bucket alone, or by an override that goes on.
#[test]
fn a_remembered_ban_that_has_ended_takes_two_writes_at_most() {
    for figures in [None, Some(bucket(1, SECOND, 1))] {
        let mut store = Store::default();
        assert!(store.allows(&terms(), 3, at(0)));
        let mut hold = ban(1, at(SECOND / 2));
        hold.overrides.extend(figures.map(|f| set(1, f, at(HOUR)).overrides).unwrap_or_default());
        store.set_hold(Some(hold), at(0));
        let seen = store.item.clone();
        let told = store.ask_knowing(seen.as_ref(), &single(&terms(), 1), moment(at(SECOND / 2)));
        assert!(!told.decision.is_allowed() && told.writes <= 2, "{told:?}");
        let told = store.ask_knowing(seen.as_ref(), &single(&terms(), 1), moment(at(4 * SECOND)));
        assert!(told.decision.is_allowed() && told.writes <= 2, "{told:?}");
        assert_eq!(store.item.as_ref().unwrap().hold.is_some(), figures.is_some());
        assert_eq!(store.bucket("l").terms.is_override(), figures.is_some());
    }
}

#[test]
fn an_override_counts_at_once_with_and_without_state() {
    for used in [0, 1] {
        let mut store = Store::default();
        assert!(used == 0 || store.allows(&terms(), used, at(0)));
        let seen = store.item.clone();
        store.set_hold(Some(set(1, bucket(2, SECOND, 9), at(HOUR))), at(0));
        let told = store.ask_knowing(seen.as_ref(), &single(&terms(), 9 - used), moment(at(0)));
        assert!(told.decision.is_allowed() && told.writes <= 2);
        assert_eq!(told.decision.limits[0].held, Some(Held::Override { until: at(HOUR) }));
        assert!(!store.allows(&terms(), 1, at(0)));
    }
}

/// Debt of a loose override is never forgiven by a tight one, and is not taken for the work of a wrong clock.
#[test]
fn debt_beyond_a_tight_override_is_carried_and_not_pulled_back() {
    let mut store = Store::default();
    store.set_hold(Some(set(1, bucket(1, SECOND, 50), at(HOUR))), at(0));
    assert!(store.allows(&terms(), 50, at(0)));
    store.set_hold(Some(set(2, bucket(3, SECOND, 2), at(HOUR))), at(0));
    for secs in [0, 1, 5] {
        let told = store.ask(&single(&terms(), 1), at(secs * SECOND));
        assert!(!told.decision.is_allowed() && !told.pulled_back());
    }
    assert_eq!(store.bucket("l").refunded(), Ticks(0) - bucket(3, SECOND, 2).inc(48));
    // 50 tokens at 3/s, of which one has to be there.
    assert!(!store.allows(&terms(), 1, at(16 * SECOND)));
    assert!(store.allows(&terms(), 1, at(17 * SECOND)));
}

#[test]
fn when_an_override_ends_its_debt_is_carried_in_tokens() {
    let mut store = Store::default();
    store.set_hold(Some(set(1, bucket(1, SECOND, 10), at(SECOND))), at(0));
    assert!(store.allows(&terms(), 10, at(0)));
    assert!(!store.allows(&terms(), 1, at(SECOND)), "nine tokens of debt");
    assert_eq!((&store.bucket("l").terms, store.item.as_ref().unwrap().hold.is_none()), (&terms(), true));
    assert!(!store.allows(&terms(), 1, at(8 * SECOND - 1)) && store.allows(&terms(), 1, at(8 * SECOND)));
}

/// Made before the ban, it arrives after it.
#[test]
fn a_late_charge_is_refused_under_a_ban_and_after_another_hold() {
    let (take, Step::Write(write)) = Take::start(single(&terms(), 1), None, moment(at(0)), 1) else {
        panic!("a write")
    };
    assert!(take.is_charging());
    for hold in [ban(1, at(HOUR)), set(1, bucket(1, SECOND, 1), at(HOUR))] {
        let item = Item { hold: Some(hold), ..Item::default() };
        assert_eq!(write.apply(Some(&item)), None);
    }
    assert!(write.apply(Some(&Item::default())).is_some());
}

#[test]
fn an_override_of_one_limit_leaves_the_other_alone() {
    let mut store = Store::default();
    store.set_hold(Some(set(1, bucket(1, SECOND, 1), at(HOUR))), at(0));
    let both = |cost| on_key(vec![charge("l", &terms(), 1), charge("other", &terms(), cost)]);
    assert!(store.ask(&both(3), at(0)).decision.is_allowed());
    assert!(store.bucket("l").terms.is_override() && !store.bucket("other").terms.is_override());
    let outcomes: Vec<_> = store.ask(&both(1), at(0)).decision.limits.iter().map(|l| l.outcome).collect();
    assert_eq!(outcomes, [Outcome::Denied; 2]);
}

/// One process with a clock an hour ahead must not lift a ban for everybody.
#[test]
fn a_clock_that_does_not_agree_ends_no_hold() {
    for hold in [ban(1, at(HOUR)), set(1, bucket(1, SECOND, 1), at(HOUR))] {
        let mut store = Store::default();
        store.set_hold(Some(hold.clone()), at(0));
        let ahead = Moment { now: at(2 * HOUR), clock_agrees: false };
        for seen in [None, store.item.clone()] {
            let told = store.ask_knowing(seen.as_ref(), &single(&terms(), 1), ahead);
            assert!(told.decision.limits[0].held.is_some());
            assert_eq!(store.item.as_ref().unwrap().hold.as_ref(), Some(&hold));
        }
        assert!(hold.banned_until.is_none() || !store.allows(&terms(), 1, at(SECOND)));
        assert!(store.allows(&terms(), 1, at(2 * HOUR)) && store.item.as_ref().unwrap().hold.is_none());
    }
}
