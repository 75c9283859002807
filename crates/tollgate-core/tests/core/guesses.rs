//! Guesses made under a hold, and about limits that only report, never charge what does not fit.

use crate::store::{HOUR, Store, at, bucket, charge, on_key, plan, single};
use tollgate_core::take::Moment;
use tollgate_core::{Charge, Hold, Item, Mode, Outcome, Step, Take, Terms, Timestamp};

fn three() -> Terms {
    plan(1, "", bucket(3, HOUR, 3))
}

fn banned(until: Timestamp) -> Item {
    Item { hold: Some(Hold { id: 1, banned_until: Some(until), ..Hold::default() }), ..Item::default() }
}

/// A process that has seen a ban asks whether it was lifted by a charge that would be fair then.
#[test]
fn a_cost_that_never_fits_is_not_charged_once_a_ban_is_lifted() {
    let moment = Moment { now: at(0), clock_agrees: true };
    let seen = banned(at(HOUR));
    let mut lifted = Store::default();
    let told = lifted.ask_knowing(Some(&seen), &single(&three(), 4), moment);
    assert_eq!((told.decision.outcome(), told.writes, &lifted.item), (Outcome::NeverFits, 0, &None));
    let mut in_force = Store::default();
    in_force.item = Some(seen.clone());
    let told = in_force.ask_knowing(Some(&seen), &single(&three(), 4), moment);
    assert_eq!((told.decision.outcome(), told.writes, told.reads), (Outcome::Denied, 0, 1), "a ban goes first");
}

#[test]
fn a_limit_that_only_reports_is_not_charged_what_never_fits() {
    let shadow = Charge { mode: Mode::Shadow, ..charge("l", &three(), 4) };
    let moment = Moment { now: at(0), clock_agrees: true };
    let (mut take, step) = Take::start(on_key(vec![shadow]), None, moment, 1);
    assert_eq!(step, Step::Read);
    let Step::Done(decision) = take.read(None, moment) else { panic!("an answer") };
    assert!(decision.is_allowed() && decision.limits[0].outcome == Outcome::NeverFits);
}
