//! Denials from memory: whatever an item that was seen a moment ago denies, the table denies, too, if the item is still so.

use crate::store::{MS, SECOND, Store, at, bucket, charge, on_key, plan};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;
use tollgate_core::take::Moment;
use tollgate_core::{
    Charge, Charges, Decision, Hold, LimitName, Mode, Outcome, Override, Source, Take, Terms, Timestamp,
};

const LIMITS: [&str; 2] = ["a", "b"];

/// The terms that callers have: an old and a new revision of two plans.
fn all_terms() -> [Terms; 3] {
    [plan(1, "", bucket(1, SECOND, 3)), plan(1, "pro", bucket(3, SECOND, 5)), plan(2, "", bucket(2, SECOND, 4))]
}

fn any_charges() -> impl Strategy<Value = Charges> {
    let any_charge = (0..3usize, 0..6u64, any::<bool>());
    prop::collection::vec(any_charge, 1..=2).prop_map(|list| {
        let one = |(limit, (which, cost, enforced)): (&str, (usize, u64, bool))| {
            let mode = if enforced { Mode::Enforce } else { Mode::Shadow };
            Charge { mode, ..charge(limit, &all_terms()[which], cost) }
        };
        on_key(LIMITS.into_iter().zip(list).map(one).collect())
    })
}

/// A ban, an override of a limit, or neither; each for up to 3 s.
fn any_hold() -> impl Strategy<Value = Option<Hold>> {
    let until = (0..3 * SECOND).prop_map(at);
    let other = (0..2usize, until.clone(), 1..4u64, 1..5u64);
    (prop::option::of(until), prop::option::of(other)).prop_map(|(banned_until, other)| {
        let overrides = other.map(|(limit, until, n, burst)| {
            (LimitName::new(LIMITS[limit]).unwrap(), Override { figures: (bucket(n, SECOND, burst)).into(), until })
        });
        let hold = Hold { id: 1, banned_until, overrides: BTreeMap::from_iter(overrides) };
        (!hold.is_empty()).then_some(hold)
    })
}

fn moment(now: Timestamp) -> Moment {
    Moment { now, clock_agrees: true }
}

proptest! {
    #[test]
    fn what_is_denied_from_memory_the_table_denies(
        before in prop::collection::vec((0..SECOND, any_charges()), 0..8),
        hold in any_hold(),
        after in prop::collection::vec((0..SECOND, any_charges()), 0..4),
        (later, charges) in (0..SECOND, any_charges()),
    ) {
        let (mut store, mut now) = (Store::default(), at(0));
        for (step, charges) in before {
            now = now + Duration::from_nanos(step);
            store.ask(&charges, now);
        }
        store.set_hold(hold, now);
        for (step, charges) in after {
            now = now + Duration::from_nanos(step);
            store.ask(&charges, now);
        }
        now = now + Duration::from_nanos(later);
        let seen = store.item.clone().unwrap();
        let (limits, is_denied) = Take::recall(&charges, &seen, moment(now)).unwrap_or_default();
        let recalled = Decision::new(limits);
        let told = store.ask_knowing(Some(&seen), &charges, moment(now)).decision;
        prop_assert!(recalled.limits.iter().all(|l| l.source == Source::Cache));
        if is_denied {
            prop_assert_eq!(told.outcome(), Outcome::Denied, "{:?}", &seen);
            prop_assert_eq!(recalled.retry_after(), told.retry_after());
            prop_assert!(recalled.limits.iter().any(|l| l.cost > 0));
        }
        if !recalled.limits.iter().any(tollgate_core::LimitDecision::is_in_the_way) {
            prop_assert!(!is_denied, "only a limit that denies is in the way");
        }
    }
}

#[test]
fn a_shadow_without_room_denies_nothing_from_memory() {
    let mut store = Store::default();
    let terms = plan(1, "", bucket(1, SECOND, 1));
    let shadow = on_key(vec![
        charge("a", &plan(1, "", bucket(1, SECOND, 9)), 1),
        Charge { mode: Mode::Shadow, ..charge("b", &terms, 1) },
    ]);
    assert!(store.ask(&shadow, at(0)).decision.is_allowed());
    let (limits, is_denied) = Take::recall(&shadow, store.item.as_ref().unwrap(), moment(at(MS))).unwrap();
    assert_eq!((limits[1].outcome, is_denied), (Outcome::Denied, false));
}

#[test]
fn a_cost_of_0_and_one_that_never_fits_are_looked_up() {
    let mut store = Store::default();
    let terms = plan(1, "", bucket(1, SECOND, 2));
    let both = |a, b| on_key(vec![charge("a", &terms, a), charge("b", &terms, b)]);
    assert!(store.ask(&both(2, 1), at(0)).decision.is_allowed());
    let recall = |store: &Store, charges: &Charges| Take::recall(charges, store.item.as_ref().unwrap(), moment(at(0)));
    let recalls = |store: &Store, charges: &Charges| recall(store, charges).is_some_and(|(_, denies)| denies);
    assert!(recalls(&store, &both(1, 1)));
    assert_eq!(recall(&store, &both(1, 3)), None, "one never fits by figures that may be old");
    store.set_hold(Some(Hold { id: 1, banned_until: Some(at(SECOND)), ..Hold::default() }), at(0));
    assert!(recalls(&store, &both(1, 0)) && recalls(&store, &both(1, 3)), "a ban denies whatever the cost");
    assert!(!recalls(&store, &both(0, 0)));
}

#[test]
fn a_bucket_that_has_to_move_is_looked_up_unless_a_ban_denies() {
    let mut store = Store::default();
    let [old, _, new] = all_terms();
    let asked = |terms: &Terms| on_key(vec![charge("a", terms, 1)]);
    assert!(store.ask(&on_key(vec![charge("a", &old, 3)]), at(0)).decision.is_allowed());
    let recalls = |store: &Store, terms: &Terms| {
        Take::recall(&asked(terms), store.item.as_ref().unwrap(), moment(at(0))).unwrap().1
    };
    assert!(recalls(&store, &old) && !recalls(&store, &new));
    store.set_hold(Some(Hold { id: 1, banned_until: Some(at(SECOND)), ..Hold::default() }), at(0));
    assert!(recalls(&store, &new));
}

/// Nor by a ban or a lock; what another limit of the item denies is denied as ever.
#[test]
fn a_limit_that_is_not_to_deny_from_memory_does_not() {
    let mut store = Store::default();
    let terms = plan(1, "", bucket(1, SECOND, 1));
    let both = |of_a, of_b| {
        let charge = |limit, deny_cache| Charge { deny_cache, ..charge(limit, &terms, 1) };
        on_key(vec![charge("a", of_a), charge("b", of_b)])
    };
    assert!(store.ask(&both(false, false), at(0)).decision.is_allowed());
    let recalls = |store: &Store, charges: &Charges| {
        Take::recall(charges, store.item.as_ref().unwrap(), moment(at(0))).unwrap().1
    };
    let told = |store: &Store| [(false, false), (true, false), (true, true)].map(|(a, b)| recalls(store, &both(a, b)));
    assert_eq!(told(&store), [false, true, true]);
    store.set_hold(Some(Hold { id: 1, banned_until: Some(at(SECOND)), ..Hold::default() }), at(0));
    assert_eq!(told(&store), [false, true, true]);
}
