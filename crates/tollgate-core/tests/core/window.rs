//! Windows against the definition: every admission kept in a list and counted anew.

use crate::store::{SECOND, at, charge, on_key};
use proptest::prelude::*;
use std::time::Duration;
use tollgate_core::take::Moment;
use tollgate_core::{Figures, Outcome, Period, Span, Terms, Ticks, Timestamp, Verdict, Window, Zone};

const MINUTE: u64 = 60 * SECOND;

fn every(most: u64, ns: u64, sliding: bool) -> Window {
    Window::new(most, Span::Every(ns), sliding).unwrap()
}

fn calendar(most: u64, period: Period, zone: &str) -> Window {
    Window::new(most, Span::Calendar(period, Zone::get(zone).unwrap()), false).unwrap()
}

/// Whether each of the calls, of cost 1 unless said, is admitted.
fn admitted(window: Window, calls: impl IntoIterator<Item = Timestamp>) -> u64 {
    let mut state = None;
    let take = |at| match window.take(state, at, 1) {
        Verdict::Allowed { tat } => {
            state = Some(tat);
            true
        }
        _ => false,
    };
    calls.into_iter().map(take).filter(|allowed| *allowed).count() as u64
}

/// 2026-01-01T00:00:00Z, a whole minute.
fn from_midnight(ns: u64) -> Timestamp {
    Timestamp::from_nanos(1_767_225_600 * SECOND + ns)
}

fn spread(n: u64, from: u64, step: u64) -> impl Iterator<Item = Timestamp> {
    (0..n).map(move |i| from_midnight(from + i * step))
}

#[test]
fn at_the_boundary_of_two_windows() {
    let calls = || spread(100, 59 * SECOND, SECOND / 100).chain(spread(100, 60 * SECOND, SECOND / 100));
    assert_eq!(admitted(every(100, MINUTE, false), calls()), 200);
    assert_eq!(admitted(every(100, MINUTE, true), calls()), 101);
    let calls = spread(100, 59 * SECOND + SECOND * 9 / 10, 0).chain(spread(100, 60 * SECOND + SECOND / 10, 0));
    assert_eq!(admitted(every(100, MINUTE, true), calls), 100);
    let calls = spread(100, 59 * SECOND + SECOND * 9 / 10, 0).chain(spread(200, 90 * SECOND, 0));
    assert_eq!(admitted(every(100, MINUTE, true), calls), 150);
}

/// 80 in the last window, 30 in this one, 15 s into a minute: the estimate is 90. upstash#61: what is left counts the window before.
#[test]
fn the_estimate_weighs_the_window_before() {
    let window = every(100, MINUTE, true);
    let calls = spread(80, 0, 0).chain(spread(30, 75 * SECOND, 0));
    let mut state = None;
    for call in calls {
        let Verdict::Allowed { tat } = window.take(state, call, 1) else { panic!("{call:?}") };
        state = Some(tat);
    }
    let now = from_midnight(75 * SECOND);
    assert_eq!((window.remaining(state, now), window.most()), (10, 100));
    assert!(matches!(window.take(state, now, 10), Verdict::Allowed { .. }));
    // The eleventh fits once the window before weighs 59: 15.75 s into the minute.
    let Verdict::Denied { retry_after } = window.take(state, now, 11) else { panic!() };
    assert_eq!(retry_after, Duration::from_millis(750));
}

fn any_span() -> impl Strategy<Value = Span> {
    let zones = prop::sample::select(vec!["UTC", "Europe/Bucharest", "America/Sao_Paulo", "Asia/Kathmandu"]);
    prop_oneof![
        (1..5_u64).prop_map(|secs| Span::Every(secs * SECOND)),
        (SECOND..3 * SECOND).prop_map(Span::Every),
        (prop::sample::select(vec![Period::Day, Period::Month]), zones)
            .prop_map(|(period, zone)| Span::Calendar(period, Zone::get(zone).unwrap())),
    ]
}

/// When a window begins and ends, told by nothing but the arithmetic of `Every`; the calendar's are from `reset_after`.
fn bounds(window: &Window, now: Timestamp) -> (u64, u64) {
    match window.span() {
        Span::Every(ns) => (now.as_nanos() / ns * ns, now.as_nanos() / ns * ns + ns),
        _ => {
            let fixed = Window::new(window.most(), window.span(), false).unwrap();
            let Verdict::Allowed { tat } = fixed.take(None, now, 1) else { panic!() };
            let end = now.as_nanos() + u64::try_from(fixed.reset_after(Some(tat), now).as_nanos()).unwrap();
            let start = u64::try_from(tat.0 / 1_000_000_000_000_000_000).unwrap();
            (start, end)
        }
    }
}

proptest! {
    /// The counter against a list of all that was admitted; and what a denied caller is told is true to the nanosecond.
    #[test]
    fn every_decision_is_that_of_the_definition(
        span in any_span(),
        (most, sliding) in (1..12_u64, any::<bool>()),
        calls in prop::collection::vec((0..1_000_u64, 1..6_u64), 1..60),
    ) {
        let window = Window::new(most, span, sliding).unwrap();
        let step = if matches!(span, Span::Every(_)) { SECOND / 200 } else { 3600 * SECOND };
        let (mut state, mut admitted, mut now) = (None, Vec::<(u64, u64)>::new(), from_midnight(0));
        for (wait, cost) in calls {
            now = now + Duration::from_nanos(wait * step % (40 * 86_400 * SECOND));
            let (start, end) = bounds(&window, now);
            let before = bounds(&window, Timestamp::from_nanos(start - 1)).0;
            let counted = |from, to| admitted.iter().filter(|(at, _)| (from..to).contains(at)).map(|(_, c)| c).sum::<u64>();
            let (length, elapsed) = (u128::from(end - start), u128::from(now.as_nanos() - start));
            let weighed = if sliding { u128::from(counted(before, start)) * (length - elapsed) } else { 0 };
            let fits = weighed + u128::from(counted(start, end) + cost) * length <= u128::from(most) * length;
            match window.take(state, now, cost) {
                Verdict::NeverFits => prop_assert!(cost > most),
                Verdict::Allowed { tat } => {
                    prop_assert!(fits);
                    prop_assert!(cost <= window.remaining(state, now));
                    state = Some(tat);
                    admitted.push((now.as_nanos(), cost));
                }
                Verdict::Denied { retry_after } => {
                    prop_assert!(!fits && cost > window.remaining(state, now));
                    let then = now + retry_after;
                    let admits = |at| matches!(window.take(state, at, cost), Verdict::Allowed { .. });
                    prop_assert!(admits(then), "{retry_after:?} later it fits");
                    prop_assert!(!admits(then.offset_by(-1)), "1 ns earlier it does not");
                }
            }
            let (left, next) = (window.remaining(state, now), window.next_after(state, now));
            prop_assert_eq!(next.is_zero(), left == most);
            if left < most {
                prop_assert!(window.remaining(state, now + next) > left);
                prop_assert!(window.remaining(state, (now + next).offset_by(-1)) <= left);
            }
            let reset = window.reset_after(state, now);
            prop_assert_eq!(window.remaining(state, now + reset), most);
            prop_assert!(u64::try_from(reset.as_nanos()).unwrap() <= window.horizon_secs() * SECOND);
            // Within any stretch as long as a window, less than twice what a window has.
            if let (Some((last, _)), Span::Every(ns)) = (admitted.last(), span) {
                let since = last.saturating_sub(ns - 1);
                let sum = admitted.iter().filter(|(at, _)| *at >= since).map(|(_, c)| c).sum::<u64>();
                prop_assert!(sum <= 2 * most && (!sliding || sum < 2 * most || most == 1 && sum <= 2), "{sum}");
            }
        }
    }

    /// A clock that is behind counts in the window that it finds.
    #[test]
    fn a_window_gets_no_more_than_it_has_from_clocks_that_differ(
        (most, calls) in (1..9_u64, prop::collection::vec((0..6_000_u64, -2_000..2_000_i64), 1..60)),
    ) {
        let window = every(most, 3 * SECOND, false);
        let (mut state, mut by_window, mut now) = (None, std::collections::BTreeMap::<i128, u64>::new(), from_midnight(0));
        for (wait, skew) in calls {
            now = now + Duration::from_millis(wait / 8);
            if let Verdict::Allowed { tat: Ticks(tat) } = window.take(state, now.offset_by(skew * 1_000_000), 1) {
                prop_assert!(Some(Ticks(tat)) > state, "a window is never gone back to");
                state = Some(Ticks(tat));
                *by_window.entry(tat / 1_000_000_000_000_000_000).or_default() += 1;
            }
        }
        prop_assert!(by_window.values().all(|n| *n <= most), "{by_window:?}");
    }

    #[test]
    fn figures_are_read_as_they_are_written(span in any_span(), most in 1..=Window::MAX_COUNT, sliding in any::<bool>()) {
        let figures: Figures = Window::new(most, span, sliding).unwrap().into();
        let terms = Terms::new(7, figures).on_plan("p/r!o");
        prop_assert_eq!(terms.to_string().parse::<Terms>(), Ok(terms.clone()));
        let over = terms.overridden_by(every(5, SECOND, true));
        prop_assert_eq!(over.to_string().parse::<Terms>(), Ok(over));
    }
}

fn utc(text: &str) -> Timestamp {
    let at: jiff::Timestamp = text.parse().unwrap();
    Timestamp::from_nanos(u64::try_from(at.as_nanosecond()).unwrap())
}

/// How long a call at `at` that finds the quota spent is told to wait, in seconds.
fn wait_at(window: Window, at: &str) -> u64 {
    let Verdict::Allowed { tat } = window.take(None, utc(at), window.most()) else { panic!() };
    let Verdict::Denied { retry_after } = window.take(Some(tat), utc(at), 1) else { panic!() };
    retry_after.as_secs()
}

#[test]
fn days_and_months_are_those_of_the_zone() {
    let day = calendar(5, Period::Day, "Europe/Bucharest");
    let hour = 3600;
    // Summer time begins on 2026-03-29 and ends on 2026-10-25: a day of 23 hours and one of 25.
    assert_eq!(wait_at(day, "2026-03-28T22:00:00Z"), 23 * hour);
    assert_eq!(wait_at(day, "2026-10-24T21:00:00Z"), 25 * hour);
    assert_eq!(wait_at(day, "2026-07-01T20:59:59Z"), 1);
    assert_eq!(wait_at(day, "2026-07-01T21:00:00Z"), 24 * hour);
    let month = calendar(5, Period::Month, "Europe/Bucharest");
    assert_eq!(wait_at(month, "2026-02-28T21:00:00Z"), hour);
    assert_eq!(wait_at(month, "2026-02-28T22:00:00Z"), 31 * 24 * hour - hour, "March loses an hour");
    let utc = calendar(5, Period::Month, "UTC");
    assert_eq!(wait_at(utc, "2028-02-01T00:00:00Z"), 29 * 24 * hour);
    // Sao Paulo's clocks skipped midnight on 2018-11-04, so that day began at 01:00.
    let day = calendar(5, Period::Day, "America/Sao_Paulo");
    assert_eq!(wait_at(day, "2018-11-04T02:59:59Z"), 1);
    assert_eq!(wait_at(day, "2018-11-04T03:00:00Z"), 23 * hour);
}

/// express-rate-limit#546, rate-limiter-flexible#71: windows of 30 and 365 days neither end early nor overflow.
#[test]
fn long_windows_end_when_they_end() {
    for days in [30, 365, 36_500] {
        let length = days * 86_400 * SECOND;
        let window = every(2, length, false);
        let start = Timestamp::from_nanos(1_767_225_600 * SECOND / length * length + length);
        assert_eq!(wait_at_instant(window, start), days * 86_400);
        assert_eq!(wait_at_instant(window, start.offset_by(i64::try_from(length - SECOND).unwrap())), 1);
    }
}

fn wait_at_instant(window: Window, at: Timestamp) -> u64 {
    let Verdict::Allowed { tat } = window.take(None, at, window.most()) else { panic!() };
    let Verdict::Denied { retry_after } = window.take(Some(tat), at, 1) else { panic!() };
    retry_after.as_secs()
}

#[test]
fn a_window_takes_one_write_a_decision_and_two_after_the_one_before() {
    for sliding in [false, true] {
        let terms = Terms::new(1, every(3, 10 * SECOND, sliding));
        let mut store = crate::store::Store::default();
        let call = on_key(vec![charge("l", &terms, 1)]);
        let ask = |store: &mut crate::store::Store, secs: u64| {
            let seen = store.item.clone();
            let told = store.ask_knowing(seen.as_ref(), &call, Moment { now: at(secs * SECOND), clock_agrees: true });
            (told.decision.outcome(), told.decision.limits[0].remaining, told.writes)
        };
        assert_eq!(ask(&mut store, 0), (Outcome::Allowed, 2, 1));
        assert_eq!(ask(&mut store, 1), (Outcome::Allowed, 1, 1));
        assert_eq!(ask(&mut store, 2), (Outcome::Allowed, 0, 1));
        assert_eq!(ask(&mut store, 3).0, Outcome::Denied);
        let next = ask(&mut store, 15);
        assert_eq!((next.0, next.2), (Outcome::Allowed, 1), "what was seen tells the form, sliding: {sliding}");
        assert_eq!(next.1, if sliding { 0 } else { 2 }, "half of three is one and a half");
        let long_after = ask(&mut store, 500);
        assert_eq!(long_after, (Outcome::Allowed, 2, 1));
    }
}

/// What each of a day's calls that alternate between two figures of one revision gets.
fn alternating(a: Figures, b: Figures, days: u64) -> u64 {
    let mut store = crate::store::Store::default();
    let mut admitted = 0;
    for hour in 0..24 * days {
        for figures in [b, a] {
            let terms = Terms::new(1, figures).on_plan(if figures == a { "a" } else { "b" });
            for minute in 0..if figures == a { 20 } else { 40 } {
                let past = if figures == a { 40 } else { 0 };
                let now = at((hour * 3600 + (past + minute) * 60) * SECOND);
                let seen = store.item.clone();
                let call = on_key(vec![charge("l", &terms, 5)]);
                let told = store.ask_knowing(seen.as_ref(), &call, Moment { now, clock_agrees: true });
                admitted += if told.decision.is_allowed() { 5 } else { 0 };
            }
        }
    }
    admitted
}

/// Plans of a policy cannot differ so; two policies that somebody forgot to raise the revision between can.
#[test]
fn callers_of_different_windows_get_no_more_than_the_windows_of_both() {
    let hour = 3600 * SECOND;
    let day = 24 * hour;
    for sliding in [false, true] {
        let (short, long) = (every(10, hour, sliding), every(100, day, sliding));
        let admitted = alternating(short.into(), long.into(), 4);
        let both = 4 * (24 * 10 + 100);
        assert!(admitted <= both, "{admitted} of {both}, sliding: {sliding}");
        let bucket = tollgate_core::TokenBucket::new(10, hour, 10).unwrap();
        let admitted = alternating(bucket.into(), long.into(), 4);
        assert!(admitted <= both + 10, "{admitted} beside a bucket, sliding: {sliding}");
    }
}

/// A window that is over lets the other figures have their turn, however busy the key is.
#[test]
fn callers_of_another_window_have_their_turn_when_the_one_that_was_found_is_over() {
    for sliding in [false, true] {
        let (short, long) = (every(10, 60 * SECOND, sliding), every(10, 90 * SECOND, sliding));
        let mut store = crate::store::Store::default();
        let mut spans = Vec::new();
        for second in 0..400 {
            let (figures, plan) = if second % 7 < 3 { (short, "a") } else { (long, "b") };
            let call = on_key(vec![charge("l", &Terms::new(1, figures).on_plan(plan), 1)]);
            let seen = store.item.clone();
            let moment = Moment { now: at(second * SECOND), clock_agrees: true };
            spans.push(store.ask_knowing(seen.as_ref(), &call, moment).decision.limits[0].terms.plan.to_string());
        }
        assert!(spans.iter().any(|plan| plan == "a") && spans.iter().any(|plan| plan == "b"), "sliding: {sliding}");
    }
}
