//! Locks: set by a denial, longer each time, forgotten level by level; denied until they end and not a nanosecond longer.

use crate::store::{HOUR, MS, SECOND, Store, Told, at, bucket, charge, on_key, plan, single};
use std::collections::BTreeSet;
use std::time::Duration;
use tollgate_core::take::{Moment, Notice};
use tollgate_core::{
    Bucket, BusyPeriod, Charge, Charges, Decision, Figures, Held, Item, LimitName, LimitWrite, Mode, Outcome, Penalty,
    PenaltyRule, PenaltyWrite, Period, Span, Step, Take, Terms, Ticks, Timestamp, Verdict, Window, Write, Zone,
};

const MINUTE: u64 = 60 * SECOND;

/// A call in ten seconds.
fn terms() -> Terms {
    plan(1, "", bucket(1, 10 * SECOND, 1))
}

/// A minute, two, four and so on up to an hour; a level is forgotten in a day.
fn usual() -> PenaltyRule {
    rule(2, 24 * HOUR)
}

fn rule(factor: u64, forget: u64) -> PenaltyRule {
    let ns = Duration::from_nanos;
    PenaltyRule::new(ns(MINUTE), factor, ns(HOUR), ns(forget)).unwrap()
}

fn penalised(rule: PenaltyRule, cost: u64) -> Charges {
    on_key(vec![Charge { penalty: Some(rule), ..charge("l", &terms(), cost) }])
}

fn stored(store: &Store, limit: &str) -> Penalty {
    store.item.as_ref().unwrap().penalties[&LimitName::new(limit).unwrap()]
}

fn wait(decision: &Decision) -> u64 {
    u64::try_from(decision.retry_after().expect("a denial").as_nanos()).unwrap()
}

/// A call that passes at `now`, and one that is denied: how long that locks.
fn offend(store: &mut Store, charges: &Charges, now: u64) -> u64 {
    assert!(store.ask(charges, at(now)).decision.is_allowed(), "at {now}");
    wait(&store.ask(charges, at(now)).decision)
}

#[test]
fn each_lock_is_longer_than_the_last_up_to_the_most() {
    let (mut store, charges, mut now) = (Store::default(), penalised(usual(), 1), 0);
    for minutes in [1, 2, 4, 8, 16, 32, 60, 60, 60] {
        let locked = offend(&mut store, &charges, now);
        assert_eq!(locked, minutes * MINUTE);
        let before = store.ask(&charges, at(now + locked - 1)).decision;
        assert_eq!((before.is_allowed(), wait(&before)), (false, 1), "a nanosecond is left");
        now += locked;
    }
    assert_eq!(stored(&store, "l").level, usual().highest());
    assert_eq!(rule(10, HOUR).highest(), 2, "1, 10, 60");
}

#[test]
fn a_first_denial_takes_two_writes_and_a_locked_one_none() {
    let (mut store, charges) = (Store::default(), penalised(usual(), 1));
    store.ask(&charges, at(0));
    let told = store.ask(&charges, at(0));
    assert_eq!((told.writes, told.reads, told.applied), (2, 0, 0));
    assert!(told.notices.contains(&Notice::Penalised(LimitName::new("l").unwrap())));
    let limit = &told.decision.limits[0];
    assert_eq!((limit.outcome, limit.remaining), (Outcome::Denied, 0));
    assert_eq!(limit.held, Some(Held::Penalty { until: at(MINUTE) }));
    let seen = store.item.clone();
    let later = Moment { now: at(20 * SECOND), clock_agrees: true };
    let (_, denies) = Take::recall(&charges, seen.as_ref().unwrap(), later).unwrap();
    assert!(denies, "by memory, though the bucket is full");
    let told = store.ask_knowing(seen.as_ref(), &charges, later);
    assert_eq!((told.writes, told.reads, wait(&told.decision)), (0, 1, 40 * SECOND));
    let told = store.ask(&charges, at(20 * SECOND));
    assert_eq!((told.writes, wait(&told.decision)), (1, 40 * SECOND), "whoever has not seen the key");
}

#[test]
fn a_denial_from_memory_that_would_lock_is_looked_at() {
    let (mut store, charges) = (Store::default(), penalised(usual(), 1));
    store.ask(&charges, at(0));
    let (seen, now) = (store.item.clone(), Moment { now: at(0), clock_agrees: true });
    let (_, denies) = Take::recall(&charges, seen.as_ref().unwrap(), now).unwrap();
    assert!(!denies, "it would not lock");
    let told = store.ask_knowing(seen.as_ref(), &charges, now);
    assert_eq!((told.reads, told.writes, wait(&told.decision)), (1, 1, MINUTE));
    assert_eq!(stored(&store, "l").level, 0);
}

#[test]
fn a_level_is_forgotten_with_each_time_without_a_lock_and_not_before() {
    let day = 24 * HOUR;
    for (pause, minutes) in
        [(0, 8), (day - 1, 8), (day, 4), (2 * day - 1, 4), (2 * day, 2), (3 * day, 1), (99 * day, 1)]
    {
        let (mut store, charges) = (Store::default(), penalised(usual(), 1));
        let mut now = 0;
        for _ in 0..3 {
            now += offend(&mut store, &charges, now);
        }
        assert_eq!(offend(&mut store, &charges, now + pause), minutes * MINUTE, "{pause} ns after the last");
    }
}

#[test]
fn where_nothing_is_remembered_every_lock_is_the_first() {
    for rule in [rule(2, 0), rule(1, HOUR)] {
        let (mut store, charges, mut now) = (Store::default(), penalised(rule, 1), 0);
        for _ in 0..3 {
            let locked = offend(&mut store, &charges, now);
            assert_eq!(locked, MINUTE);
            now += locked;
        }
    }
}

#[test]
fn the_highest_level_is_forgotten_like_any() {
    let (mut store, charges, mut now) = (Store::default(), penalised(usual(), 1), 0);
    for _ in 0..9 {
        now += offend(&mut store, &charges, now);
    }
    assert_eq!(offend(&mut store, &charges, now + 24 * HOUR), 32 * MINUTE);
}

#[test]
fn a_lock_is_never_shorter_than_what_the_limit_asks_for() {
    let slow = plan(1, "", bucket(1, 2 * HOUR, 1));
    let charges = on_key(vec![Charge { penalty: Some(usual()), ..charge("l", &slow, 1) }]);
    assert_eq!(offend(&mut Store::default(), &charges, 0), 2 * HOUR);
    // While a lock lasts, a dearer call is told how long it would have to wait without it.
    let three = plan(1, "", bucket(1, MINUTE, 3));
    let charges = |cost| on_key(vec![Charge { penalty: Some(usual()), ..charge("l", &three, cost) }]);
    let mut store = Store::default();
    store.ask(&charges(3), at(0));
    assert_eq!(wait(&store.ask(&charges(1), at(0)).decision), MINUTE);
    assert_eq!(wait(&store.ask(&charges(3), at(0)).decision), 3 * MINUTE);
}

#[test]
fn a_call_during_a_lock_has_it_begin_anew_where_the_rule_says_so() {
    let (mut store, charges) = (Store::default(), penalised(usual().extending(true), 1));
    let end = |store: &Store| stored(store, "l").until;
    offend(&mut store, &charges, 0);
    let told = store.ask(&charges, at(40 * SECOND));
    assert_eq!((wait(&told.decision), end(&store)), (MINUTE, at(100 * SECOND)));
    assert_eq!(stored(&store, "l").level, 0, "the level stays");
    let told = store.ask(&charges, at(40 * SECOND + 999 * MS));
    assert_eq!((told.writes, end(&store)), (1, at(100 * SECOND)), "less than a second more is not written");
    let seen = store.item.clone();
    let told = store.ask_knowing(seen.as_ref(), &charges, Moment { now: at(50 * SECOND), clock_agrees: true });
    assert_eq!((told.writes, told.reads, end(&store)), (1, 0, at(110 * SECOND)), "whoever knows the lock writes once");
    let quiet = penalised(usual(), 1);
    store.ask(&quiet, at(60 * SECOND));
    assert_eq!(end(&store), at(110 * SECOND));
    // A limit that asks for more than the rule is not made to ask for less.
    let slow = plan(1, "", bucket(1, 2 * HOUR, 1));
    let slow = on_key(vec![Charge { penalty: Some(usual().extending(true)), ..charge("l", &slow, 1) }]);
    let mut store = Store::default();
    offend(&mut store, &slow, 0);
    store.ask(&slow, at(HOUR));
    assert_eq!(end(&store), at(2 * HOUR));
}

#[test]
fn a_cost_of_0_and_one_that_never_fits_lock_nobody() {
    let mut store = Store::default();
    store.ask(&penalised(usual(), 1), at(0));
    for cost in [0, 2] {
        let told = store.ask(&penalised(usual(), cost), at(0));
        assert_eq!(told.applied, 0);
        assert!(store.item.as_ref().unwrap().penalties.is_empty(), "cost {cost}");
    }
    store.ask(&penalised(usual().extending(true), 1), at(0));
    let told = store.ask(&penalised(usual().extending(true), 0), at(30 * SECOND));
    assert_eq!((told.writes, wait(&told.decision)), (0, 30 * SECOND), "observed, and left alone");
}

#[test]
fn another_limits_denial_locks_nothing_and_two_denials_are_one_write() {
    let plenty = plan(1, "", bucket(1, SECOND, 100));
    let locking = |name, terms: &Terms| Charge { penalty: Some(usual()), ..charge(name, terms, 1) };
    let charges = on_key(vec![locking("a", &terms()), locking("b", &plenty), charge("c", &terms(), 1)]);
    let mut store = Store::default();
    store.ask(&charges, at(0));
    assert!(!store.ask(&charges, at(0)).decision.is_allowed());
    let locked: Vec<_> = store.item.as_ref().unwrap().penalties.keys().map(LimitName::as_str).collect();
    assert_eq!(locked, ["a"]);
    let both = on_key(vec![locking("a", &terms()), locking("b", &terms())]);
    let mut store = Store::default();
    store.ask(&both, at(0));
    assert_eq!(store.ask(&both, at(0)).writes, 2);
    assert_eq!((stored(&store, "a"), stored(&store, "b")), (stored(&store, "b"), stored(&store, "a")));
}

#[test]
fn a_limit_that_only_reports_is_locked_alike() {
    let enforced = plan(1, "", bucket(1, SECOND, 100));
    let shadow = Charge { penalty: Some(usual()), mode: Mode::Shadow, ..charge("s", &terms(), 1) };
    let charges = on_key(vec![charge("e", &enforced, 1), shadow]);
    let mut store = Store::default();
    store.ask(&charges, at(0));
    let seen = store.item.clone();
    let told = store.ask_knowing(seen.as_ref(), &charges, Moment { now: at(0), clock_agrees: true });
    assert_eq!((told.decision.is_allowed(), told.reads, told.writes), (true, 1, 1), "charged and locked at once");
    let shadow = &told.decision.limits[1];
    assert_eq!((shadow.outcome, shadow.held), (Outcome::Denied, Some(Held::Penalty { until: at(MINUTE) })));
    let charged = store.bucket("s").tat;
    let told = store.ask(&charges, at(30 * SECOND));
    assert_eq!((told.decision.is_allowed(), told.decision.limits[1].outcome), (true, Outcome::Denied));
    assert_eq!(store.bucket("s").tat, charged, "nothing is charged to what is locked");
    assert_eq!(store.ask(&charges, at(MINUTE)).decision.limits[1].outcome, Outcome::Allowed);
}

#[test]
fn callers_who_are_denied_at_once_raise_the_level_once() {
    let (mut store, charges) = (Store::default(), penalised(usual(), 1));
    store.ask(&charges, at(0));
    let moment = Moment { now: at(0), clock_agrees: true };
    let offender = |id| {
        let (mut take, step) = Take::start(charges.clone(), None, moment, id);
        assert!(matches!(step, Step::Write(_)));
        let Step::Lock { write, denial } = take.refused(store.item.as_ref(), moment) else { panic!("a lock") };
        assert_eq!(wait(&denial), 10 * SECOND, "what stands if the lock cannot be written");
        (take, write)
    };
    let offenders: Vec<_> = (0..40).map(offender).collect();
    let mut applied = 0;
    for (mut take, write) in offenders {
        let next = write.apply(store.item.as_ref());
        applied += u32::from(next.is_some());
        let step = match next {
            Some(next) => take.applied(store.item.insert(next), moment),
            None => take.refused(store.item.as_ref(), moment),
        };
        let Step::Done(decision) = step else { panic!("an answer") };
        assert_eq!(wait(&decision), MINUTE);
    }
    assert_eq!((applied, stored(&store, "l").level), (1, 0));
}

#[test]
fn changes_of_terms_leave_a_lock_alone() {
    let mut store = Store::default();
    offend(&mut store, &penalised(usual(), 1), 0);
    let lock = stored(&store, "l");
    for terms in [plan(1, "pro", bucket(9, SECOND, 9)), plan(2, "", bucket(1, SECOND, 5))] {
        let charges = on_key(vec![Charge { penalty: Some(usual()), ..charge("l", &terms, 1) }]);
        assert_eq!(wait(&store.ask(&charges, at(20 * SECOND)).decision), 40 * SECOND, "{terms}");
        assert_eq!(stored(&store, "l"), lock);
    }
    assert!(store.ask(&single(&terms(), 1), at(50 * SECOND)).decision.is_allowed(), "a limit without a rule");
    assert_eq!(stored(&store, "l"), lock);
}

#[test]
fn a_charge_that_was_made_before_the_lock_is_refused_by_it() {
    let three = plan(1, "", bucket(1, 10 * SECOND, 3));
    let charges = |cost| on_key(vec![Charge { penalty: Some(usual()), ..charge("l", &three, cost) }]);
    let mut store = Store::default();
    store.ask(&charges(2), at(0));
    let moment = Moment { now: at(0), clock_agrees: true };
    let (_, step) = Take::start(charges(1), store.item.as_ref(), moment, 7);
    let Step::Write(late) = step else { panic!("a charge") };
    assert!(late.apply(store.item.as_ref()).is_some(), "there is room");
    store.ask(&charges(2), at(0));
    assert!(late.apply(store.item.as_ref()).is_none(), "and now a lock");
}

/// A lock that was set by a clock so far ahead.
fn set_ahead(secs: u64, charges: &Charges) -> Store {
    let mut store = Store::default();
    let wrong = |now| Moment { now: at(now), clock_agrees: false };
    store.ask_knowing(None, charges, wrong(secs * SECOND));
    store.ask_knowing(None, charges, wrong(secs * SECOND));
    store
}

#[test]
fn a_lock_from_the_future_is_cut_to_its_length_by_a_clock_that_agrees_and_by_no_other() {
    let charges = penalised(usual(), 1);
    let mut store = set_ahead(1_000_000, &charges);
    let ahead = stored(&store, "l");
    store.ask_knowing(None, &charges, Moment { now: at(0), clock_agrees: false });
    assert_eq!(stored(&store, "l"), ahead);
    let told = store.ask(&charges, at(0));
    assert_eq!((wait(&told.decision), told.pulled_back()), (MINUTE, true));
    assert!(store.ask(&charges, at(MINUTE)).decision.is_allowed());
    let mut store = set_ahead(2, &charges);
    let told = store.ask(&charges, at(0));
    assert_eq!((wait(&told.decision), told.pulled_back()), (62 * SECOND, false), "clocks may differ by as much");
}

#[test]
fn a_clock_that_does_not_agree_forgets_no_level_and_ends_no_lock_for_others() {
    let (mut store, charges) = (Store::default(), penalised(usual(), 1));
    offend(&mut store, &charges, 0);
    let lock = stored(&store, "l");
    let wrong = Moment { now: at(9999 * 24 * HOUR), clock_agrees: false };
    store.ask_knowing(None, &charges, wrong);
    assert_eq!(stored(&store, "l"), lock, "a charge leaves it alone");
    assert!(!store.ask(&charges, at(59 * SECOND)).decision.is_allowed());
    store.ask_knowing(None, &charges, wrong);
    store.ask_knowing(None, &charges, wrong);
    assert_eq!(stored(&store, "l").level, 1);
}

#[test]
fn an_item_outlives_its_lock_and_every_level_of_it() {
    let (mut store, charges, mut now) = (Store::default(), penalised(usual(), 1), 0);
    for _ in 0..9 {
        now += offend(&mut store, &charges, now);
        let penalty = stored(&store, "l");
        let expires_at = Timestamp::from_secs(store.item.as_ref().unwrap().expires_at.unwrap());
        let before = expires_at.offset_by(-360 * i64::try_from(SECOND).unwrap());
        assert_eq!(usual().level(Some(&penalty), before), 0);
        assert!(before > penalty.until);
        assert!(store.item.as_ref().unwrap().horizon.unwrap() <= usual().longest_horizon_secs());
    }
    // A limit with a shorter memory, by a process that has not seen the key, does not shorten that.
    let horizon = store.item.as_ref().unwrap().horizon;
    store.ask(&single(&terms(), 1), at(now));
    assert_eq!(store.item.as_ref().unwrap().horizon, horizon);
}

#[test]
fn windows_and_pacers_lock_like_buckets() {
    let window = |sliding| Window::new(2, Span::Every(10 * SECOND), sliding).unwrap();
    let quota = Window::new(2, Span::Calendar(Period::Day, Zone::UTC), false).unwrap();
    let pacer = bucket(1, 10 * SECOND, 2).paced(1);
    let all: [(Figures, u64); 4] = [
        (window(false).into(), MINUTE),
        (window(true).into(), MINUTE),
        (quota.into(), 24 * HOUR),
        (pacer.into(), MINUTE),
    ];
    for (figures, length) in all {
        let charges = |rule| on_key(vec![Charge { penalty: rule, ..charge("l", &Terms::new(1, figures), 1) }]);
        let (mut store, charges, mut now) = (Store::default(), charges(Some(usual())), 0);
        for level in 0..3 {
            let expected = length.max(MINUTE << level);
            for _ in 0..2 {
                assert!(store.ask(&charges, at(now)).decision.is_allowed(), "{figures} at {now}");
            }
            let seen = store.item.clone();
            let told = store.ask_knowing(seen.as_ref(), &charges, Moment { now: at(now), clock_agrees: true });
            assert_eq!((wait(&told.decision), told.reads, told.writes), (expected, 1, 1), "{figures} at {now}");
            assert_eq!(wait(&store.ask(&charges, at(now + expected - 1)).decision), 1, "{figures}");
            now += expected;
        }
        assert_eq!(stored(&store, "l").level, 2, "{figures}");
    }
}

#[test]
fn a_reset_takes_back_what_was_seen_and_nothing_else() {
    let (mut store, charges) = (Store::default(), penalised(usual(), 1));
    offend(&mut store, &charges, 0);
    let (limit, lock) = (LimitName::new("l").unwrap(), stored(&store, "l"));
    let other = Penalty { level: 3, ..lock };
    let clear = |seen| {
        let write = Write::new(Vec::new(), at(0), 10_000_000, None);
        write.with_penalties(vec![PenaltyWrite::exact(limit.clone(), seen, None)])
    };
    assert!(clear(Some(other)).apply(store.item.as_ref()).is_none());
    assert!(clear(None).apply(store.item.as_ref()).is_none());
    assert!(clear(Some(lock)).apply(store.item.as_ref()).unwrap().penalties.is_empty());
}

#[test]
fn a_lock_is_one_number_that_orders_by_its_end() {
    let all = [0, 1, 9_999_999_999_999_999].map(|length_ms| [0, 1, 99].map(|level| (length_ms, level))).concat();
    for ns in [0, 1, SECOND, u64::MAX] {
        for (length_ms, level) in &all {
            let penalty = Penalty { until: Timestamp::from_nanos(ns), length_ms: *length_ms, level: *level };
            let text = penalty.to_string();
            assert_eq!((text.parse(), text.len() <= 38), (Ok(penalty), true));
            let number: i128 = text.parse().unwrap();
            for now in [0, ns.saturating_sub(1), ns, ns.saturating_add(1), u64::MAX] {
                let now = Timestamp::from_nanos(now);
                assert_eq!(number >= Penalty::in_force_from(now), penalty.rest(now).is_some());
            }
        }
    }
    for text in ["", "-1", "01", "+1", "1.5", "x", &"9".repeat(39)] {
        assert!(text.parse::<Penalty>().is_err(), "{text}");
    }
}

#[test]
fn figures_out_of_range_are_refused() {
    let secs = Duration::from_secs;
    let most = PenaltyRule::LONGEST;
    let good = PenaltyRule::new(secs(1), 10, most, PenaltyRule::LONGEST_MEMORY).unwrap();
    assert!(good.longest_horizon_secs() > 0);
    let ns = Duration::from_nanos(1);
    let bad = [
        (secs(1) - ns, 2, most, secs(1)),
        (secs(2), 2, secs(1), secs(1)),
        (secs(1), 2, most + ns, secs(1)),
        (secs(1), 0, most, secs(1)),
        (secs(1), 11, most, secs(1)),
        (secs(1), 2, most, PenaltyRule::LONGEST_MEMORY + ns),
    ];
    for (first, factor, most, forget) in bad {
        assert!(PenaltyRule::new(first, factor, most, forget).is_err(), "{first:?} {factor} {most:?} {forget:?}");
    }
}

#[test]
fn whoever_decides_alone_goes_by_the_same_rule() {
    let (mut store, rule) = (Store::default(), usual().extending(true));
    let charges = penalised(rule, 1);
    let (mut tat, mut last) = (None, None);
    let figures = terms().figures;
    let pauses = [0, 30 * SECOND, 59_500 * MS, 2 * MINUTE, 0, HOUR, 0, 300 * MS, 5 * HOUR, 30 * HOUR];
    let (mut elapsed, mut levels) = (0, BTreeSet::new());
    for (step, pause) in pauses.into_iter().cycle().take(200).enumerate() {
        elapsed += pause;
        let now = at(elapsed);
        let (next, verdict) = rule.judge(last.as_ref(), figures.take(tat, now, 1), now);
        last = next;
        if let Verdict::Allowed { tat: after } = verdict {
            tat = Some(after);
        }
        let decision = store.ask(&charges, now).decision;
        assert_eq!(decision.is_allowed(), matches!(verdict, Verdict::Allowed { .. }), "step {step}");
        if let Verdict::Denied { retry_after } = verdict {
            assert_eq!(decision.retry_after(), Some(retry_after), "step {step}");
        }
        assert_eq!(last, store.item.as_ref().unwrap().penalties.values().next().copied());
        levels.extend(last.map(|lock| lock.level));
    }
    assert!(levels.len() > 2, "{levels:?}");
}

#[test]
fn a_lock_without_a_bucket_denies_all_the_same() {
    let limit = LimitName::new("l").unwrap();
    let lock = Penalty { until: at(MINUTE), length_ms: 60_000, level: 0 };
    let item = Item { penalties: [(limit.clone(), lock)].into(), ..Item::default() };
    let mut store = Store::default();
    store.item = Some(item);
    assert_eq!(wait(&store.ask(&penalised(usual(), 1), at(0)).decision), MINUTE);
    // Filling its bucket does not lift it.
    let full = Bucket::starting(terms(), Ticks(0), BusyPeriod { since: at(0), id: 9 });
    let write = Write::new(vec![LimitWrite::exact(limit, None, full)], at(0), 10_000, None);
    store.item = write.apply(store.item.as_ref());
    assert_eq!(wait(&store.ask(&penalised(usual(), 1), at(0)).decision), MINUTE);
}

#[test]
fn a_key_is_to_be_kept_out_with_each_new_lock_that_has_so_many_before_it_and_with_no_other() {
    let after = usual().at_the_edge_after(2).unwrap();
    let kept_out = |told: &Told| {
        told.notices.iter().find_map(|notice| match notice {
            Notice::KeptOut { limit, until } if limit.as_str() == "l" => Some(*until),
            _ => None,
        })
    };
    let (mut store, charges, mut now) = (Store::default(), penalised(after, 1), 0);
    for (locks, minutes) in [1, 2, 4, 8].into_iter().enumerate() {
        store.ask(&charges, at(now));
        let told = store.ask(&charges, at(now));
        let locked = minutes * MINUTE;
        assert_eq!(kept_out(&told), (locks >= 2).then_some(at(now + locked)), "after {locks}");
        assert_eq!(kept_out(&store.ask(&charges, at(now + 1))), None, "it is known");
        now += locked;
    }
    // A lock that is only moved, and one of a limit that only reports.
    let extending = penalised(rule(2, 24 * HOUR).at_the_edge_after(1).unwrap().extending(true), 1);
    let (mut store, mut now) = (Store::default(), 0);
    now += offend(&mut store, &extending, now);
    store.ask(&extending, at(now));
    assert!(kept_out(&store.ask(&extending, at(now))).is_some());
    let moved = store.ask(&extending, at(now + 30 * SECOND));
    assert!(moved.notices.contains(&Notice::Penalised(LimitName::new("l").unwrap())) && kept_out(&moved).is_none());
    let charge = Charge { penalty: Some(after), mode: Mode::Shadow, ..charge("l", &terms(), 1) };
    let (mut store, shadow, mut now) = (Store::default(), on_key(vec![charge]), 0);
    for minutes in [1, 2, 4, 8] {
        store.ask(&shadow, at(now));
        assert_eq!(kept_out(&store.ask(&shadow, at(now))), None);
        now += minutes * MINUTE;
    }
    assert!(stored(&store, "l").level >= 2, "it was locked as often");
}

#[test]
fn only_a_lock_that_can_have_so_many_before_it_keeps_anybody_out() {
    assert_eq!(usual().highest(), 6);
    assert!(usual().at_the_edge_after(6).is_ok() && rule(10, HOUR).at_the_edge_after(2).is_ok());
    for (rule, locks) in [(usual(), 0), (usual(), 7), (rule(10, HOUR), 3), (rule(1, HOUR), 1)] {
        assert!(rule.at_the_edge_after(locks).is_err(), "{locks}");
    }
}
