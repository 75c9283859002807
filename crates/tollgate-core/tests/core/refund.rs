//! What a refund gives back: the unused future of a slot, once.

use crate::store::{SECOND, Store, at, bucket, plan, single};
use tollgate_core::settle::Step;
use tollgate_core::take::Moment;
use tollgate_core::{Charged, Item, Settlement, Take, Terms, Ticks, Timestamp};

fn terms() -> Terms {
    plan(1, "", bucket(1, SECOND, 10))
}

/// A charge at `now`, and the item that it left.
fn charged(store: &mut Store, cost: u64, now: Timestamp) -> (Vec<Charged>, Item) {
    let moment = Moment { now, clock_agrees: true };
    let (mut take, step) = Take::start(single(&terms(), cost), store.item.as_ref(), moment, 1);
    let tollgate_core::Step::Write(write) = step else { panic!("{step:?}") };
    let left = write.apply(store.item.as_ref()).unwrap();
    take.applied(&left, moment);
    store.item = Some(left.clone());
    (take.charged().to_vec(), left)
}

/// PostHog PR#83938, express-rate-limit PR#647.
#[test]
fn a_refund_after_the_bucket_has_moved_on_credits_nothing() {
    let mut store = Store::default();
    let (charge, left) = charged(&mut store, 4, at(0));
    let late = Settlement::giving_back(charge.clone(), &left, at(4 * SECOND)).1;
    assert_eq!(late, Step::Done, "what was charged has come back by itself");
    let Step::Write(write) = Settlement::giving_back(charge.clone(), &left, at(SECOND)).1 else {
        panic!("three are left")
    };
    let given = write.apply(Some(&left)).unwrap();
    assert_eq!(
        given.buckets["l"].tat,
        terms().figures.token_bucket().unwrap().at(at(SECOND)),
        "the part in the future, and no more"
    );
    // Something charged since, or a new busy period once it was idle: the same request changes nothing.
    let (_, busy) = charged(&mut store, 1, at(2 * SECOND));
    assert_eq!(write.apply(Some(&busy)), None);
    let (_, idle) = charged(&mut store, 1, at(60 * SECOND));
    assert_eq!(write.apply(Some(&idle)), None);
    assert_eq!(Settlement::giving_back(charge, &idle, at(60 * SECOND)).1, Step::Done);
}

/// The numbers of the module's docs: 10 at 0 s, 5 more at 5 s, and the 10 are given back right after.
#[test]
fn what_others_were_admitted_on_is_not_given_back() {
    let mut store = Store::default();
    let (ten, _) = charged(&mut store, 10, at(0));
    let (_, left) = charged(&mut store, 5, at(5 * SECOND));
    let unused = ten[0].unused(&left.buckets["l"], 0, at(5 * SECOND + 1));
    assert_eq!(unused, Ticks(i128::from(5 * SECOND) - 1), "five of ten seconds lie ahead");
}
