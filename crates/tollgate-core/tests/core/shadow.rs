//! Limits that only report: they never deny, cost no limit its exactness, and say "allowed" only of what they counted.

use crate::store::{SECOND, Store, at, bucket, charge, on_key, plan};
use tollgate_core::take::Moment;
use tollgate_core::{Charge, Charges, Decision, Mode, Outcome, Settlement, Step, Take, Terms};

fn enforced() -> Terms {
    plan(1, "", bucket(1, SECOND, 3))
}

fn reported() -> Terms {
    plan(1, "", bucket(1, 60 * SECOND, 1))
}

fn shadow(terms: &Terms, cost: u64) -> Charge {
    Charge { mode: Mode::Shadow, ..charge("shadow", terms, cost) }
}

fn both(reported: &Terms) -> Charges {
    on_key(vec![charge("enforced", &enforced(), 1), shadow(reported, 1)])
}

fn outcomes(decision: &Decision) -> Vec<Outcome> {
    decision.limits.iter().map(|l| l.outcome).collect()
}

#[test]
fn a_shadow_without_room_denies_nothing_and_is_not_charged() {
    let mut store = Store::default();
    assert_eq!(outcomes(&store.ask(&both(&reported()), at(0)).decision), [Outcome::Allowed; 2]);
    let before = store.bucket("shadow").clone();
    let told = store.ask(&both(&reported()), at(0));
    assert!(told.decision.is_allowed());
    assert_eq!(outcomes(&told.decision), [Outcome::Allowed, Outcome::Denied]);
    assert_eq!((store.bucket("shadow"), told.writes), (&before, 2));
    assert!(store.ask(&both(&reported()), at(0)).decision.is_allowed());
    let told = store.ask(&both(&reported()), at(0));
    assert!(!told.decision.is_allowed(), "the limit beside it is exact");
    assert_eq!(told.writes, 1);
}

#[test]
fn whoever_knows_that_a_shadow_has_no_room_takes_one_write() {
    let mut store = Store::default();
    store.ask(&both(&reported()), at(0));
    let seen = store.item.clone();
    let told = store.ask_knowing(seen.as_ref(), &both(&reported()), Moment { now: at(0), clock_agrees: true });
    assert_eq!((told.writes, told.decision.is_allowed()), (1, true));
}

#[test]
fn a_cost_that_never_fits_a_shadow_is_allowed_and_reported() {
    let mut store = Store::default();
    let told = store.ask(&on_key(vec![charge("enforced", &enforced(), 2), shadow(&reported(), 2)]), at(0));
    assert_eq!(outcomes(&told.decision), [Outcome::Allowed, Outcome::NeverFits]);
    assert!(told.decision.is_allowed() && told.writes <= 2);
}

#[test]
fn a_shadow_that_is_left_out_moves_to_newer_terms_all_the_same() {
    let mut store = Store::default();
    store.ask(&both(&reported()), at(0));
    let newer = plan(2, "", bucket(1, SECOND, 1));
    let told = store.ask(&both(&newer), at(0));
    assert_eq!(outcomes(&told.decision), [Outcome::Allowed, Outcome::Denied]);
    assert_eq!((&store.bucket("shadow").terms, told.writes), (&newer, 2));
    assert_eq!(outcomes(&store.ask(&both(&newer), at(SECOND)).decision), [Outcome::Allowed; 2]);
}

/// The charge that left the shadow without room is given back while the write without it is under way.
#[test]
fn a_shadow_does_not_say_allowed_of_what_it_has_not_counted() {
    let moment = Moment { now: at(0), clock_agrees: true };
    let (mut first, Step::Write(write)) = Take::start(both(&reported()), None, moment, 1) else { panic!("a write") };
    let charged = write.apply(None).unwrap();
    first.applied(&charged, moment);
    let (mut second, Step::Write(without)) = Take::start(both(&reported()), Some(&charged), moment, 2) else {
        panic!("a write")
    };
    let (_, step) = Settlement::giving_back(first.charged().to_vec(), &charged, moment.now);
    let tollgate_core::settle::Step::Write(refund) = step else { panic!("a refund") };
    let refunded = refund.apply(Some(&charged)).unwrap();
    // The refund left the enforced limit busy: its bucket is full from this very instant.
    let item = without.apply(Some(&refunded)).unwrap();
    let Step::Done(decision) = second.applied(&item, moment) else { panic!("a decision") };
    assert_eq!(item.buckets["shadow"], refunded.buckets["shadow"]);
    assert_eq!(outcomes(&decision), [Outcome::Allowed, Outcome::Denied]);
    assert_eq!(second.charged().len(), 1);
}

#[test]
fn shadows_alone_pass_whatever_they_say() {
    let mut store = Store::default();
    let alone = on_key(vec![shadow(&reported(), 1)]);
    assert_eq!(outcomes(&store.ask(&alone, at(0)).decision), [Outcome::Allowed]);
    let before = store.item.clone();
    let (take, step) = Take::start(alone, before.as_ref(), Moment { now: at(0), clock_agrees: true }, 2);
    assert!(matches!(step, Step::Write(_)), "what it says is looked up");
    assert!(take.is_charging());
}
