//! Calls that are charged together, beside the same calls one by one.

use crate::store::{SECOND, Store, at, bucket, charge, on_key, plan};
use proptest::prelude::*;
use std::time::Duration;
use tollgate_core::settle::Step as Settle;
use tollgate_core::take::Moment;
use tollgate_core::{
    Charge, Charges, Figures, Hold, Item, Log, Mode, PenaltyRule, Settlement, Span, Step, Take, Terms, Timestamp,
    Window,
};

fn moment(now: Timestamp) -> Moment {
    Moment { now, clock_agrees: true }
}

fn figures(which: u8) -> Figures {
    let window = |sliding| Window::new(9, Span::Every(7 * SECOND), sliding).unwrap().into();
    match which {
        0 => bucket(3, 7 * SECOND, 8).into(),
        1 => window(false),
        2 => window(true),
        _ => bucket(100, SECOND, 20).into(),
    }
}

/// What each call of a group is told is left, and what of it could be given back at once.
type Told = Vec<(u64, Vec<u64>)>;

/// Charges `n` calls together on `item`; the item afterwards, and what each is told and may give back.
fn together(each: &Charges, n: u64, item: Option<&Item>, now: Timestamp) -> Option<(Item, Told)> {
    let group = each.times(n).unwrap();
    let (mut take, mut step) = Take::start(group, item, moment(now), 7);
    let mut item = item.cloned();
    for _ in 0..4 {
        step = match step {
            Step::Write(write) => match write.apply(item.as_ref()) {
                Some(next) => take.applied(item.insert(next), moment(now)),
                None => take.refused(item.as_ref(), moment(now)),
            },
            Step::Read => take.read(item.as_ref(), moment(now)),
            Step::Lock { .. } => panic!("no limit locks"),
            Step::Done(decision) => {
                if !decision.is_allowed() {
                    return None;
                }
                let left = item.unwrap();
                let told = take.shares(each, n, 0, &left).into_iter().map(|(decision, charged)| {
                    let unused = charged
                        .iter()
                        .map(|one| u64::try_from(one.unused(&left.buckets[one.limit()], 0, now).0).unwrap());
                    (decision.limits.iter().map(|l| l.remaining).min().unwrap(), unused.collect())
                });
                return Some((left.clone(), told.collect()));
            }
        };
    }
    panic!("a group that nobody disturbs goes on and on")
}

proptest! {
    #[test]
    fn a_group_leaves_and_tells_what_its_calls_would_one_by_one(
        kinds in prop::collection::vec(0..4_u8, 1..3),
        before in prop::collection::vec((0..9 * SECOND, 1..4_u64), 0..6),
        (cost, n, wait) in (1..3_u64, 1..9_u64, 0..9 * SECOND),
    ) {
        let limits = |cost| on_key(
            kinds.iter().enumerate().map(|(i, kind)| {
                charge(["a", "b"][i], &Terms::new(1, figures(*kind)), cost)
            }).collect(),
        );
        let (mut store, mut now) = (Store::default(), 0);
        for (wait, cost) in before {
            now += wait;
            store.ask(&limits(cost), at(now));
        }
        now += wait;
        let (each, item) = (limits(cost), store.item.clone());
        let room = Take::room(&each, item.as_ref(), moment(at(now)));
        let mut one_by_one = Vec::new();
        for _ in 0..n {
            let told = store.ask(&each, at(now)).decision;
            if !told.is_allowed() {
                break;
            }
            one_by_one.push(told.limits.iter().map(|l| l.remaining).min().unwrap());
        }
        prop_assert_eq!(one_by_one.len() as u64, room.min(n), "the room is how many pass one by one");
        if room > 0 {
            let (left, told) = together(&each, room.min(n), item.as_ref(), at(now)).expect("they fit");
            prop_assert_eq!(told.iter().map(|(left, _)| *left).collect::<Vec<_>>(), one_by_one);
            let after = store.item.as_ref().unwrap();
            for (name, bucket) in &after.buckets {
                prop_assert_eq!(left.buckets[name].tat, bucket.tat);
            }
        }
        if room < 20 {
            prop_assert!(together(&each, room + 1, item.as_ref(), at(now)).is_none(), "one more does not");
        }
    }
}

/// Each has its own slot: what one gives back is its own, and all of them together what they were charged.
#[test]
fn each_call_of_a_group_gives_its_own_charge_back_once() {
    let each = on_key(vec![charge("a", &Terms::new(1, bucket(1, SECOND, 10)), 2)]);
    let group = each.times(4).unwrap();
    let (mut take, step) = Take::start(group, None, moment(at(0)), 7);
    let Step::Write(write) = step else { panic!("a charge") };
    let left = write.apply(None).unwrap();
    take.applied(&left, moment(at(0)));
    let mut item = left.clone();
    for (i, (_, charged)) in take.shares(&each, 4, 0, &left).into_iter().enumerate() {
        let (_, Settle::Write(write)) = Settlement::giving_back(charged, &item, at(0)) else { panic!("call {i}") };
        item = write.apply(Some(&item)).unwrap();
    }
    assert!(item.buckets["a"].is_full(at(0)), "{item:?}");
}

#[test]
fn nobody_fits_under_a_ban_and_calls_that_differ_in_more_than_the_cost_are_no_group() {
    let terms = plan(1, "", bucket(10, SECOND, 10));
    let one = on_key(vec![charge("a", &terms, 1)]);
    let hold = Hold { id: 1, banned_until: Some(at(10 * SECOND)), ..Hold::default() };
    let banned = Item { hold: Some(hold), ..Item::default() };
    assert_eq!(Take::room(&one, Some(&banned), moment(at(SECOND))), 0);
    assert_eq!(Take::room(&one, Some(&banned), moment(at(11 * SECOND))), 10);
    assert!(one.can_be_grouped());
    let rule = PenaltyRule::new(Duration::from_secs(1), 2, Duration::from_secs(9), Duration::from_secs(9)).unwrap();
    let plain = charge("a", &terms, 1);
    let others = [
        Charge { mode: Mode::Shadow, ..plain.clone() },
        Charge { penalty: Some(rule), ..plain.clone() },
        Charge { settled_within: Some(Duration::from_secs(1)), ..plain.clone() },
        Charge { cost: 0, ..plain.clone() },
        Charge { coalesce: false, ..plain.clone() },
        charge("a", &Terms::new(1, bucket(10, SECOND, 10).paced(3)), 1),
        charge("a", &Terms::new(1, Log::new(5, SECOND).unwrap()), 1),
    ];
    for other in others {
        assert!(!on_key(vec![other.clone()]).can_be_grouped(), "{other:?}");
    }
    assert_eq!(one.times(u64::MAX), None, "a cost beyond the range");
}
