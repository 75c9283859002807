//! Logs against the definition, and what becomes of one when terms change or a clock was wrong; settlements by the figures.

use crate::store::{SECOND, Store, at, bucket, charge, on_key, single};
use proptest::prelude::*;
use std::time::Duration;
use tollgate_core::settle::Step;
use tollgate_core::take::Moment;
use tollgate_core::{
    Actual, Charge, Entries, Entry, Figures, Log, OnChange, Outcome, Settlement, Span, State, Take, Terms, Ticks,
    Timestamp, Verdict, Window,
};

fn log(most: u64, secs: u64) -> Log {
    Log::new(most, secs * SECOND).unwrap()
}

fn terms(revision: u64, most: u64, secs: u64) -> Terms {
    Terms::new(revision, log(most, secs))
}

proptest! {
    /// Every call is decided as by the list of all that were admitted before it; a wait that is told is exact.
    #[test]
    fn a_log_decides_by_its_definition(
        most in 1..=8_u64,
        calls in prop::collection::vec((0..4 * SECOND, 1..4_u64), 1..60),
    ) {
        let (log, mut store, mut now) = (terms(1, most, 5), Store::default(), 0);
        let mut admitted: Vec<(u64, u64)> = Vec::new();
        for (wait, cost) in calls {
            now += wait;
            let used = |t: u64| admitted.iter().filter(|(at, _)| at + 5 * SECOND > t).map(|(_, cost)| cost).sum::<u64>();
            let told = store.ask(&single(&log, cost), at(now));
            let decision = &told.decision.limits[0];
            let expected = match cost {
                cost if cost > most => Outcome::NeverFits,
                cost if used(now) + cost > most => Outcome::Denied,
                _ => Outcome::Allowed,
            };
            prop_assert_eq!(decision.outcome, expected);
            if let Some(wait) = decision.retry_after {
                let then = now + u64::try_from(wait.as_nanos()).unwrap();
                prop_assert!(used(then) + cost <= most && used(then - 1) + cost > most);
            }
            if expected == Outcome::Allowed {
                admitted.push((now, cost));
            }
            let left = most - admitted.iter().filter(|(at, _)| at + 5 * SECOND > now).map(|(_, cost)| cost).sum::<u64>();
            prop_assert_eq!(decision.remaining, left);
            if let Some(bucket) = store.item.as_ref().and_then(|item| item.buckets.get("l")) {
                prop_assert_eq!(bucket.tat, Ticks(bucket.entries.cost().into()), "the integer is what the entries cost");
                prop_assert!(bucket.entries.len() <= 8);
            }
        }
    }

    #[test]
    fn an_entry_is_its_number(at in any::<u64>(), id in any::<u64>(), cost in any::<u64>()) {
        let entry = Entry::new(Timestamp::from_nanos(at), id, cost);
        let text = entry.to_string();
        prop_assert_eq!(text.parse::<Entry>().unwrap(), entry);
        prop_assert!(text.len() <= 38, "as many digits as the table keeps");
    }

    /// Whatever is read of an entry that cannot be one is an error, and no entry.
    #[test]
    fn what_is_no_entry_is_refused(text in "-?[0-9]{0,45}|[a-z.]{0,5}") {
        match text.parse::<Entry>() {
            Ok(entry) => prop_assert_eq!(entry.to_string().parse::<Entry>().unwrap(), entry),
            Err(error) => prop_assert!(error.to_string().contains('e')),
        }
    }
}

#[test]
fn figures_of_a_log_have_their_ranges() {
    for (most, ns) in [(0, SECOND), (33, SECOND), (1, SECOND - 1), (1, u64::MAX)] {
        assert!(Log::new(most, ns).is_err(), "{most} {ns}");
    }
    let figures: Figures = log(5, 900).into();
    assert_eq!(figures.to_string(), "5/900000000000/log");
    assert_eq!(Terms::new(3, figures).to_string().parse::<Terms>().unwrap(), Terms::new(3, figures));
}

/// A log knows what happened: figures change, and it stays.
#[test]
fn a_log_keeps_its_entries_through_newer_figures_unless_they_reset_it() {
    for (rule, expected) in [(OnChange::Proportional, 6), (OnChange::Keep, 6), (OnChange::Reset, 10)] {
        let mut store = Store::default();
        for _ in 0..4 {
            assert!(store.allows(&terms(1, 5, 900), 1, at(SECOND)));
        }
        let newer = on_key(vec![Charge { on_change: rule, ..charge("l", &terms(2, 10, 900), 0) }]);
        assert_eq!(store.ask(&newer, at(2 * SECOND)).decision.limits[0].remaining, expected, "{rule:?}");
    }
}

/// To another algorithm what is missing moves in calls, and a log takes it for calls of now.
#[test]
fn what_a_log_counts_moves_to_other_algorithms_and_back() {
    let hour = 3600 * SECOND;
    let window: Figures = Window::new(10, Span::Every(hour), false).unwrap().into();
    let others: [Figures; 2] = [bucket(10, hour, 10).into(), window];
    for other in others {
        let mut store = Store::default();
        let now = at(7200 * SECOND);
        for _ in 0..3 {
            assert!(store.allows(&terms(1, 5, 3600), 1, now));
        }
        let left = |store: &mut Store, terms: Terms| {
            let told = store.ask(&on_key(vec![Charge { on_change: OnChange::Keep, ..charge("l", &terms, 1) }]), now);
            told.decision.limits[0].remaining
        };
        assert_eq!(left(&mut store, Terms::new(2, other)), 6, "{other}: three and one");
        assert!(store.bucket("l").entries.is_empty(), "{other}");
        assert_eq!(left(&mut store, terms(3, 5, 3600)), 0, "four and one");
        assert_eq!(store.bucket("l").entries.cost(), 5);
    }
}

/// One revision whose plans count over other windows: what a shorter one would forget is not forgotten.
#[test]
fn plans_of_other_windows_do_not_share_a_log() {
    let (short, long) = (terms(1, 5, 60).on_plan("short"), terms(1, 5, 3600).on_plan("long"));
    let mut store = Store::default();
    for second in 0..5 {
        assert!(store.allows(&long, 1, at(second * SECOND)));
    }
    assert!(!store.allows(&short, 1, at(120 * SECOND)), "it goes by the long one until that is over");
    assert!(!store.allows(&long, 1, at(121 * SECOND)));
    assert!(store.allows(&short, 1, at(3700 * SECOND)));
}

#[test]
fn entries_of_a_clock_that_was_ahead_are_dated_now_by_one_that_agrees() {
    let (five, mut store) = (single(&terms(1, 2, 60), 1), Store::default());
    let ahead = Moment { now: at(86_400 * SECOND), clock_agrees: false };
    store.ask_knowing(None, &five, ahead);
    store.ask_knowing(None, &five, ahead);
    let told = store.ask(&five, at(SECOND));
    assert!(told.pulled_back() && told.decision.limits[0].outcome == Outcome::Denied);
    assert_eq!(told.decision.limits[0].retry_after, Some(Duration::from_secs(60)), "not a day");
    assert!(store.allows(&terms(1, 2, 60), 1, at(61 * SECOND)));
}

/// Of a charge of four, made at 0 s of a bucket of ten at one a second: what is given back, and what is charged more, at 2 s.
#[test]
fn a_settlement_gives_back_the_future_of_what_was_not_needed_and_charges_what_was() {
    let ten = bucket(1, SECOND, 10).with_debt(3).unwrap();
    for (actual, tokens_left, beyond) in [(0, 10, 0), (3, 9, 0), (4, 8, 0), (6, 6, 0), (14, 0, 0), (20, 0, 5)] {
        let mut store = Store::default();
        let charges = on_key(vec![Charge {
            settled_within: Some(Duration::from_secs(60)),
            ..charge("l", &Terms::new(1, ten), 4)
        }]);
        let (mut take, step) = Take::start(charges, None, Moment { now: at(0), clock_agrees: true }, 7);
        let tollgate_core::Step::Write(write) = step else { panic!("a charge") };
        let left = write.apply(None).unwrap();
        take.applied(&left, Moment { now: at(0), clock_agrees: true });
        assert_eq!(left.buckets["l"].entries.len(), 1);
        let charged = take.charged().iter().map(|charged| (charged.clone(), Actual::Cost(actual))).collect();
        let now = at(2 * SECOND);
        let (settlement, step) = Settlement::start(charged, &left, now, 8);
        let Step::Write(write) = step else { panic!("an entry to take out") };
        let settled = write.apply(Some(&left)).unwrap();
        assert!(settled.buckets["l"].entries.is_empty() && settlement.is_idempotent());
        assert_eq!(settlement.refused(Some(&settled), now), Step::Done, "sent again, it does nothing");
        assert_eq!(settlement.beyond(&left, now).iter().map(|(_, tokens)| tokens).sum::<u64>(), beyond, "{actual}");
        store.item = Some(settled);
        let told = store.ask(&single(&Terms::new(1, ten), 0), now).decision;
        // Two seconds have brought two tokens; of those that were used in the meantime none comes back twice.
        assert_eq!(told.limits[0].remaining, tokens_left, "{actual}");
        if actual == 14 {
            assert_eq!(told.limits[0].reset_after, Duration::from_secs(12), "two of debt");
        }
    }
}

#[test]
fn what_a_log_has_charged_can_be_told_without_a_store() {
    let figures: Figures = log(2, 60).into();
    let mut state: Option<State> = None;
    let mut passed = Vec::new();
    for (i, second) in [0, 10, 20, 60, 69, 70].into_iter().enumerate() {
        let now = at(second * SECOND);
        let verdict = figures.take(state.as_ref(), now, 1);
        if let Verdict::Allowed { tat } = verdict {
            state = Some(figures.charged(state.as_ref(), now, tat, Some(Entry::new(now, i as u64, 1))));
        }
        passed.push(matches!(verdict, Verdict::Allowed { .. }));
    }
    assert_eq!(passed, [true, true, false, true, false, true]);
    assert_eq!(state.map(|state| state.entries.len()), Some(2));
    assert!(Entries::default().is_empty());
}
