//! Pacers: when each call may go, the deadline, what a refund and other figures leave of a queue, and nginx beside it.

use crate::store::{MS, SECOND, Store, at, bucket, charge, on_key, over_bound, single};
use proptest::prelude::*;
use std::time::Duration;
use tollgate_core::settle::Step as RefundStep;
use tollgate_core::take::Moment;
use tollgate_core::{
    Charge, Charged, Charges, Decision, LimitDecision, OnChange, Outcome, Settlement, Terms, Timestamp, TokenBucket,
};

/// A pacer of `n` a second with a queue of `burst`, of which `delay` go at once.
fn pacer(n: u64, burst: u64, delay: u64) -> TokenBucket {
    bucket(n, SECOND, burst + 1).paced(delay)
}

fn waiting(terms: &Terms, cost: u64, max_wait: Option<Duration>) -> Charges {
    on_key(vec![Charge { max_wait, ..charge("l", terms, cost) }])
}

fn limit(decision: &Decision) -> &LimitDecision {
    &decision.limits[0]
}

/// The wait of each call that is admitted, in milliseconds, and how many are denied.
fn waits(store: &mut Store, figures: TokenBucket, calls: u64, now: Timestamp) -> (Vec<u128>, u64) {
    let (terms, mut waits, mut denied) = (Terms::new(1, figures), Vec::new(), 0);
    for _ in 0..calls {
        let decision = store.ask(&single(&terms, 1), now).decision;
        if decision.is_allowed() { waits.push(decision.starts_after().as_millis()) } else { denied += 1 }
    }
    (waits, denied)
}

#[test]
fn one_call_and_the_burst_are_admitted_at_one_instant_a_period_apart() {
    let queue = |burst, delay| waits(&mut Store::default(), pacer(10, burst, delay), 7, at(0));
    assert_eq!(queue(4, 0), (vec![0, 100, 200, 300, 400], 2));
    assert_eq!(queue(4, 2), (vec![0, 0, 0, 100, 200], 2));
    assert_eq!(queue(4, 4), (vec![0, 0, 0, 0, 0], 2));
    assert_eq!(queue(4, 99), (vec![0, 0, 0, 0, 0], 2), "no more than the burst go at once");
    assert_eq!(queue(0, 0), (vec![0], 6));
}

#[test]
fn only_a_pacer_keeps_a_call_waiting_and_only_one_that_is_admitted() {
    let mut store = Store::default();
    let terms = Terms::new(1, bucket(10, SECOND, 2));
    for _ in 0..2 {
        assert_eq!(store.ask(&waiting(&terms, 1, Some(Duration::ZERO)), at(0)).decision.starts_after(), Duration::ZERO);
    }
    let mut store = Store::default();
    let terms = Terms::new(1, pacer(10, 1, 0));
    waits(&mut store, pacer(10, 1, 0), 2, at(0));
    let denied = store.ask(&single(&terms, 1), at(0)).decision;
    assert_eq!((denied.is_allowed(), denied.starts_after()), (false, Duration::ZERO));
    let observed = store.ask(&single(&terms, 0), at(50 * MS)).decision;
    assert_eq!(observed.starts_after(), Duration::from_millis(150), "when the next would go");
    assert_eq!(limit(&store.ask(&single(&terms, 3), at(0)).decision).outcome, Outcome::NeverFits);
}

#[test]
fn the_deadline_is_part_of_the_writes_condition() {
    let terms = Terms::new(1, pacer(10, 9, 0));
    let wanted = waiting(&terms, 1, Some(Duration::from_millis(200)));
    let mut store = Store::default();
    // Each guesses from an empty item, and so knows nothing of those before.
    let asked: Vec<_> = (0..5).map(|_| store.ask(&wanted, at(0))).collect();
    let told: Vec<_> = asked.iter().map(|told| (told.applied, told.decision.starts_after().as_millis())).collect();
    assert_eq!(told, [(1, 0), (1, 100), (1, 200), (0, 0), (0, 0)]);
    assert!(asked.iter().all(|told| told.writes == 1), "one write each, also of those that are denied");
    assert_eq!(asked[4].decision.retry_after(), Some(Duration::from_millis(100)));
    assert!(store.ask(&single(&terms, 1), at(0)).decision.is_allowed(), "who would wait longer has a place");
}

#[test]
fn figures_are_read_back_from_what_is_stored() {
    let paced = Terms::new(3, pacer(10, 4, 2)).on_plan("a~1/b");
    assert_eq!(paced.to_string(), "3/1/100000000/5~2/a~1/b");
    for terms in [paced.clone(), Terms::new(1, pacer(1, 0, 0)), paced.overridden_by(pacer(7, 9, 0))] {
        assert_eq!(terms.to_string().parse::<Terms>().unwrap(), terms);
    }
    for other in ["1/1/100000000/5~/", "1/1/100000000/5~5/", "1/1/100000000/5~02/", "1/1/100000000/5~-1/"] {
        assert!(other.parse::<Terms>().is_err(), "{other}");
    }
}

/// Gives back the charge that left the item as it was at its time, and returns the ticks.
fn give_back(store: &mut Store, cost: u64, (after, made): (&tollgate_core::Item, Timestamp), now: Timestamp) -> i128 {
    let name = tollgate_core::LimitName::new("l").unwrap();
    let charged = Charged::new(name, cost, &after.buckets["l"], made);
    let found = store.item.clone().unwrap();
    let (_, RefundStep::Write(write)) = Settlement::giving_back(vec![charged], &found, now) else { return 0 };
    store.item = write.apply(Some(&found));
    found.buckets["l"].tat.0 - store.bucket("l").tat.0
}

#[test]
fn only_the_last_slot_of_a_queue_is_given_back() {
    let (figures, period) = (pacer(10, 9, 0), 100 * i128::from(MS));
    let mut store = Store::default();
    let mut left = Vec::new();
    for _ in 0..3 {
        waits(&mut store, figures, 1, at(0));
        left.push(store.item.clone().unwrap());
    }
    let mut back = |nth: usize, now| give_back(&mut store, 1, (&left[nth], at(0)), now);
    assert_eq!(back(1, at(0)), 0, "one waits behind it");
    assert_eq!(back(2, at(0)), period);
    assert_eq!(back(1, at(0)), period, "whoever was behind has gone");
    assert_eq!(back(1, at(0)), 0);
    assert_eq!(back(0, at(40 * MS)), period - 40 * i128::from(MS), "what is left of it");
    assert_eq!(waits(&mut store, figures, 1, at(40 * MS)).0, [0]);
}

#[test]
fn a_slot_that_was_given_back_is_the_next_callers() {
    let figures = pacer(10, 9, 0);
    let mut store = Store::default();
    waits(&mut store, figures, 2, at(0));
    let second = store.item.clone().unwrap();
    give_back(&mut store, 1, (&second, at(0)), at(10 * MS));
    assert_eq!(waits(&mut store, figures, 2, at(20 * MS)).0, [80, 180]);
    assert_eq!(give_back(&mut store, 1, (&second, at(0)), at(20 * MS)), 0, "it is another's by now");
}

/// A newer revision that changes the algorithm carries the debt as its limit says.
#[test]
fn debt_goes_with_a_newer_revision_from_bucket_to_pacer_and_back() {
    let (plain, paced) = (bucket(10, SECOND, 10), pacer(10, 9, 0));
    for (old, new) in [(plain, paced), (paced, plain), (paced, pacer(20, 9, 3)), (pacer(10, 9, 3), paced)] {
        let mut store = Store::default();
        assert!(store.allows(&Terms::new(1, old), 6, at(0)));
        let (newer, half) = (Terms::new(2, new), at(100 * MS));
        let left = limit(&store.ask(&single(&newer, 0), half).decision).remaining;
        assert_eq!(left, 5, "{old:?} to {new:?}");
        assert_eq!(store.ask(&single(&newer, 5), half).decision.outcome(), Outcome::Allowed);
        assert_eq!(store.ask(&single(&newer, 1), half).decision.outcome(), Outcome::Denied);
    }
    let mut store = Store::default();
    assert!(store.allows(&Terms::new(1, paced), 6, at(0)));
    let reset = on_key(vec![Charge { on_change: OnChange::Reset, ..charge("l", &Terms::new(2, paced), 10) }]);
    assert!(store.ask(&reset, at(0)).decision.is_allowed());
}

/// The same revision with other figures: a stale plan beside a fresh one, or an operator.
#[test]
fn other_figures_of_one_revision_queue_behind_whoever_was_told() {
    let (slow, fast) = (pacer(1, 9, 0), pacer(100, 99, 0));
    let slow = Terms::new(1, slow).on_plan("slow");
    let fast = Terms::new(1, fast).on_plan("fast");
    let mut store = Store::default();
    let starts = |store: &mut Store, terms: &Terms| store.ask(&single(terms, 1), at(0)).decision.starts_after();
    assert_eq!([(); 3].map(|()| starts(&mut store, &slow).as_secs()), [0, 1, 2]);
    assert!(!store.ask(&single(&fast, 1), at(0)).decision.is_allowed(), "its queue is a second long");
    let mut starts = |terms: &Terms| store.ask(&single(terms, 1), at(2100 * MS)).decision.starts_after().as_millis();
    assert_eq!([starts(&fast), starts(&slow)], [900, 910]);
    for terms in [&fast, &slow].repeat(20) {
        let denied = store.ask(&waiting(terms, 1, Some(Duration::ZERO)), at(2100 * MS));
        assert!(!denied.decision.is_allowed() && store.bucket("l").terms == *terms, "it has moved");
    }
    let told = store.ask(&single(&slow, 1), at(2100 * MS)).decision.starts_after();
    assert_eq!(told, Duration::from_millis(1910), "and is no longer for having moved");
}

/// `limit_req` of nginx, as its documentation and its source define it: the excess in 1/1000 of a request, in whole
/// milliseconds; `None` is a rejection, else the delay in milliseconds.
struct Nginx {
    /// In 1/1000 of a request a second.
    rate: i64,
    burst: i64,
    /// `None` is `nodelay`.
    delay: Option<i64>,
    last: Option<(i64, i64)>,
}

impl Nginx {
    fn new(requests: i64, scale: i64, burst: i64, delay: Option<i64>) -> Self {
        Self { rate: requests * 1000 / scale, burst: burst * 1000, delay: delay.map(|n| n * 1000), last: None }
    }

    fn ask(&mut self, now_ms: i64) -> Option<i64> {
        let decayed = |(last, excess): (i64, i64)| (excess - self.rate * (now_ms - last) / 1000 + 1000).max(0);
        let excess = self.last.map_or(0, decayed);
        if excess > self.burst {
            return None;
        }
        self.last = Some((now_ms, excess));
        Some(self.delay.map_or(0, |delay| (excess - delay).max(0) * 1000 / self.rate))
    }
}

/// What nginx does with a configuration, beside a pacer or a bucket of ours, for the same arrivals.
fn same_as_nginx(mut nginx: Nginx, ours: TokenBucket, gaps: &[i64]) {
    let (mut store, terms, mut now_ms) = (Store::default(), Terms::new(1, ours), 0);
    for gap in gaps {
        now_ms += gap;
        let decision = store.ask(&single(&terms, 1), at(now_ms as u64 * MS)).decision;
        let wait = decision.is_allowed().then(|| decision.starts_after().as_millis() as i64);
        assert_eq!(wait, nginx.ask(now_ms), "at {now_ms} ms of {gaps:?}");
    }
}

proptest! {
    /// Rates a second come out whole in thousandths of a request a millisecond, so nginx decides exactly; it tells waits in
    /// whole milliseconds, rounded down.
    #[test]
    fn nginx_with_the_same_rate_burst_and_delay_does_the_same(
        rate in 1_u64..60,
        burst in 0_u64..8,
        share in 0_u64..=8,
        gaps in prop::collection::vec(prop_oneof![Just(0_i64), 0..40_i64, 0..700_i64], 1..80),
    ) {
        let (r, b, delay) = (rate as i64, burst as i64, share.min(burst));
        // rate=r, burst=b: all that is queued waits.
        same_as_nginx(Nginx::new(r, 1, b, Some(0)), pacer(rate, burst, 0), &gaps);
        // delay=d: the first d of them go at once.
        same_as_nginx(Nginx::new(r, 1, b, Some(delay as i64)), pacer(rate, burst, delay), &gaps);
        // nodelay: all of them do, as from a token bucket of one more.
        same_as_nginx(Nginx::new(r, 1, b, None), pacer(rate, burst, burst), &gaps);
        same_as_nginx(Nginx::new(r, 1, b, None), bucket(rate, SECOND, burst + 1), &gaps);
        // Without burst: what comes too early is refused.
        same_as_nginx(Nginx::new(r, 1, 0, Some(0)), pacer(rate, 0, 0), &gaps);
    }

    /// Whoever asks, for whatever cost and with whatever patience: it is admitted iff its slot is in reach, goes when told,
    /// and a denial names the very nanosecond.
    #[test]
    fn a_call_is_admitted_exactly_if_its_start_is_near_enough(
        figures in (1_u64..8, 1_u64..400, 0_u64..6, 0_u64..6),
        calls in prop::collection::vec((0_u64..300, 1_u64..4, prop::option::of(0_u64..500)), 1..40),
    ) {
        let (n, period, burst, delay) = figures;
        let (period, delay) = (period * MS, delay.min(burst));
        let terms = Terms::new(1, bucket(n, period, burst + 1).paced(delay));
        let (mut store, mut now, mut sent) = (Store::default(), 0, Vec::new());
        // The end of the queue, in nanoseconds times n.
        let mut free = 0;
        for (gap, cost, patience) in calls {
            now += gap * MS;
            let x = free.max(now * n);
            let start = x.saturating_sub(delay * period).max(now * n);
            let in_queue = x + cost * period <= now * n + (burst + 1) * period;
            let in_time = patience.is_none_or(|ms| start <= (now + ms * MS) * n);
            let wanted = waiting(&terms, cost, patience.map(Duration::from_millis));
            let told = store.ask(&wanted, at(now));
            prop_assert_eq!(told.decision.is_allowed(), in_queue && in_time);
            if told.decision.is_allowed() {
                free = x + cost * period;
                let wait = u64::try_from(told.decision.starts_after().as_nanos()).unwrap();
                prop_assert_eq!(wait, start.div_ceil(n) - now);
                sent.push((at(now + wait), cost));
            } else if let Some(retry) = told.decision.retry_after() {
                let retry = u64::try_from(retry.as_nanos()).unwrap();
                let asks = |ns: u64| {
                    let mut store = store.clone();
                    store.ask(&wanted, at(now + ns)).decision.is_allowed()
                };
                prop_assert!(asks(retry) && !asks(retry - 1), "{retry} ns");
            } else {
                prop_assert!(cost > burst + 1);
            }
        }
        // The dearest call, those that may be early, and rate times interval; instants are told in whole nanoseconds.
        let dearest = sent.iter().map(|(_, cost)| *cost).max().unwrap_or(1);
        sent.sort_unstable();
        let sent: Vec<_> = sent.iter().enumerate().map(|(i, (at, cost))| (*at + Duration::from_nanos(i as u64), *cost)).collect();
        prop_assert_eq!(over_bound(&[bucket(n, period, dearest + delay)], &sent), 0);
    }
}

/// Where nginx's rounding shows: 7 a minute are 0.116 a second to it, 6.96 a minute.
#[test]
fn nginx_loses_what_its_thousandths_do_not_hold() {
    let mut nginx = Nginx::new(7, 60, 0, Some(0));
    let (mut store, terms) = (Store::default(), Terms::new(1, bucket(7, 60 * SECOND, 1).paced(0)));
    let (mut theirs, mut ours) = (0, 0);
    // Each asks again as soon as it may, for a day.
    for ms in (0..86_400_000_i64).step_by(5) {
        theirs += i64::from(nginx.ask(ms).is_some());
    }
    let mut now = 0;
    while now < 86_400 * SECOND {
        let decision = store
            .ask_knowing(store.item.clone().as_ref(), &single(&terms, 1), Moment { now: at(now), clock_agrees: true })
            .decision;
        ours += u64::from(decision.is_allowed());
        now += decision.retry_after().map_or(0, |wait| u64::try_from(wait.as_nanos()).unwrap());
    }
    assert_eq!(ours, 7 * 60 * 24);
    assert!((9_900..10_080).contains(&theirs), "{theirs}");
}
