//! Fixed windows, calendar quotas and the sliding counter: at their boundaries, under many callers, in writes, through the
//! server.

use crate::dev::Dev;
use crate::harness::{Client, SECOND, charge, key};
use crate::holds::policy;
use serde_json::{Value, json};
use std::time::Duration;
use tollgate::testing::ManualClock;
use tollgate::{Clock, Outcome, SystemClock, Timestamp};
use tollgate_core::{
    Charges, Entry, Figures, ItemKey, Log, OnChange, Period, Span, State, Terms, TokenBucket, Window, Zone,
};

const MINUTE: u64 = 60 * SECOND;

fn on(item: &ItemKey, figures: impl Into<Figures>, cost: u64) -> Charges {
    Charges::new(item.clone(), vec![charge("limit", Terms::new(1, figures), cost)]).unwrap()
}

fn every(most: u64, ns: u64, sliding: bool) -> Window {
    Window::new(most, Span::Every(ns), sliding).unwrap()
}

/// A clock at the start of a minute that is to come.
fn at_a_minute() -> ManualClock {
    let minutes = SystemClock.now().as_nanos() / MINUTE + 2;
    ManualClock::new(Timestamp::from_nanos(minutes * MINUTE))
}

const POLICY: &str = "
version = 1
[limits.fixed]
key = ['user']
algorithm = 'fixed-window'
rate = '100/min'
[limits.sliding]
key = ['user']
algorithm = 'sliding-window'
rate = '100/min'
[limits.bucket]
key = ['user']
rate = '100/min'
[limits.log]
key = ['user']
algorithm = 'sliding-log'
rate = '20/min'
[limits.month]
key = ['tenant']
algorithm = 'quota'
rate = '3/month'
zone = 'Europe/Bucharest'
";

struct Asked<'a> {
    dev: &'a Dev,
    /// The start of a minute, milliseconds.
    start: u64,
}

impl Asked<'_> {
    /// How many of `n` calls pass that are made at `from` milliseconds into the minute and every `step` after.
    fn admitted(&self, limit: &str, user: &str, (n, from, step): (u64, u64, u64)) -> usize {
        let passes = |i| {
            let now = json!({ "set_ms": self.start + from + i * step });
            assert_eq!(self.dev.ask("POST", "/dev/clock", &now.to_string()).0, 200);
            let (status, body) = self.dev.decide(&json!({ "limit": limit, "key": { "user": user } }));
            assert_eq!(status, 200, "{body}");
            body["allowed"].as_bool().unwrap()
        };
        (0..n).filter(|i| passes(*i)).count()
    }
}

#[test]
fn at_the_boundary_of_two_minutes_through_the_server() {
    let policy = policy(POLICY);
    let dev = Dev::start(&["--clock", "manual", "--policy", policy.path().to_str().unwrap()]);
    let mut start = at_a_minute().now().as_millis();
    // A hundred calls in the last second of a minute, and a hundred in the first of the next.
    for (limit, calls, expected) in [("fixed", 100, 200), ("sliding", 100, 101), ("bucket", 100, 103), ("log", 20, 20)]
    {
        start += 600_000;
        let asked = Asked { dev: &dev, start };
        let before = asked.admitted(limit, "boundary", (calls, 59_000, 1000 / calls));
        let after = asked.admitted(limit, "boundary", (calls, 60_000, 1000 / calls));
        assert_eq!(before as u64, calls, "{limit}");
        assert_eq!(before + after, expected, "{limit}");
    }
    for (calls, expected) in [([(100, 59_900, 0), (100, 60_100, 0)], 100), ([(100, 59_900, 0), (200, 90_000, 0)], 150)]
    {
        start += 600_000;
        let asked = Asked { dev: &dev, start };
        assert_eq!(calls.map(|calls| asked.admitted("sliding", "two", calls)).iter().sum::<usize>(), expected);
    }
}

/// One sign for so many calls in 50 ms: all pass, some, none.
fn picture(figures: Figures, calls: u64) -> String {
    let mut state: Option<State> = None;
    let mut passes = |i: u64| {
        let now = Timestamp::from_nanos(59 * SECOND + i * SECOND / (20 * calls));
        let tollgate_core::Verdict::Allowed { tat } = figures.take(state.as_ref(), now, 1) else { return false };
        let entry = figures.log().map(|_| Entry::new(now, i, 1));
        state = Some(figures.charged(state.as_ref(), now, tat, entry));
        true
    };
    let passed: Vec<bool> = (0..40 * calls).map(&mut passes).collect();
    let signs =
        passed.chunks(usize::try_from(calls).unwrap()).map(|calls| match calls.iter().filter(|p| **p).count() {
            0 => '.',
            some if some < calls.len() => '+',
            _ => '#',
        });
    signs.collect()
}

#[test]
fn the_picture_in_the_readme_is_what_is_decided() {
    let readme = std::fs::read_to_string(crate::harness::repository("README.md")).unwrap();
    let of = [
        ("token-bucket", TokenBucket::new(100, MINUTE, 100).unwrap().into(), 5),
        ("sliding-window", every(100, MINUTE, true).into(), 5),
        ("fixed-window", every(100, MINUTE, false).into(), 5),
        ("sliding-log", Log::new(20, MINUTE).unwrap().into(), 1),
    ];
    for (name, figures, calls) in of {
        let line = format!("{name:<16}{}", picture(figures, calls));
        assert!(readme.contains(&line), "{line}");
    }
}

#[test]
fn a_quota_is_told_with_the_end_of_its_month() {
    let policy = policy(POLICY);
    let dev = Dev::start(&["--clock", "manual", "--policy", policy.path().to_str().unwrap()]);
    // 2099-02-28T21:59:00Z is a minute before March in Bucharest.
    let set = |ms: u64| assert_eq!(dev.ask("POST", "/dev/clock", &json!({ "set_ms": ms }).to_string()).0, 200);
    let ask = |cost: u64| dev.decide(&json!({ "limit": "month", "key": { "tenant": "acme" }, "cost": cost })).1;
    set(4_075_999_140_000);
    let told = |left: Value, wait: Value, reset: Value, body: Value| {
        assert_eq!((&body["remaining"], &body["retry_after_ms"], &body["reset_ms"]), (&left, &wait, &reset), "{body}");
    };
    told(1.into(), 0.into(), 60_000.into(), ask(2));
    told(1.into(), 60_000.into(), 60_000.into(), ask(2));
    assert_eq!(ask(4)["never_fits"], true);
    set(4_075_999_200_000);
    told(1.into(), 0.into(), json!((31 * 24 - 1) * 3_600_000_u64), ask(2));
}

/// 40 callers that share nothing: exact, and one write each.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn forty_callers_at_once_in_a_new_window_are_ten_in_one_write_each() {
    for sliding in [false, true] {
        let (clock, item) = (at_a_minute(), key());
        let charges = on(&item, every(10, MINUTE, sliding), 1);
        // The second round finds the window before, which has to be learnt by one more write; of those that then start the
        // sliding window with what it counted, one is the first.
        for (round, most_writes) in [(0, 1), (1, if sliding { 3 } else { 2 })] {
            let mut callers = Vec::new();
            for _ in 0..40 {
                let (client, charges) = (Client::at(clock.clone()).await, charges.clone());
                callers.push(tokio::spawn(async move {
                    let (decision, round_trips, _) = client.measured(&charges).await;
                    (u64::from(decision.is_allowed()), round_trips)
                }));
            }
            let mut allowed = 0;
            for caller in callers {
                let (passed, round_trips) = caller.await.unwrap();
                assert!(round_trips <= most_writes, "{round_trips} writes, round {round}, sliding: {sliding}");
                allowed += passed;
            }
            // 45 s into the next window a quarter of the ten before counts: 2.5.
            let expected = if sliding && round == 1 { 7 } else { 10 };
            assert_eq!(allowed, expected, "round {round}, sliding: {sliding}");
            clock.advance(Duration::from_secs(60 + 45));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_by_window_takes_one_write_if_the_process_has_seen_the_key() {
    let month = Window::new(100, Span::Calendar(Period::Month, Zone::UTC), false).unwrap();
    for figures in [every(9, MINUTE, false), every(9, MINUTE, true), month] {
        let client = Client::at(at_a_minute()).await;
        let charges = on(&key(), figures, 1);
        for call in 0..8 {
            client.advance_ms(25_000);
            let (decision, round_trips, write_units) = client.measured(&charges).await;
            assert_eq!((decision.is_allowed(), round_trips, write_units), (true, 1, 1), "call {call}, {figures}");
        }
        let spent = on(charges.item(), figures, figures.most());
        let (decision, round_trips, _) = client.measured(&spent).await;
        assert_eq!((decision.is_allowed(), round_trips), (false, 0), "what was seen denies");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_moves_from_one_algorithm_to_another_with_what_was_used() {
    let client = Client::at(at_a_minute()).await;
    let item = key();
    let under = |revision, figures: Figures, on_change| {
        let charge = tollgate_core::Charge { on_change, ..charge("limit", Terms::new(revision, figures), 1) };
        Charges::new(item.clone(), vec![charge]).unwrap()
    };
    let bucket = TokenBucket::new(10, MINUTE, 10).unwrap().into();
    let revisions = [
        (1, bucket, OnChange::Keep, 9),
        (2, every(10, MINUTE, false).into(), OnChange::Keep, 8),
        (3, every(20, MINUTE, true).into(), OnChange::Proportional, 15),
        (4, bucket, OnChange::Proportional, 6),
        (5, every(5, 2 * MINUTE, false).into(), OnChange::Reset, 4),
    ];
    for (revision, figures, on_change, left) in revisions {
        let decision = client.take(&under(revision, figures, on_change)).await;
        assert_eq!((decision.outcome(), decision.limits[0].remaining), (Outcome::Allowed, left), "revision {revision}");
    }
    // A caller that still has another algorithm follows the newer revision.
    let decision = Client::at(client.clock.clone()).await.take(&under(1, bucket, OnChange::Keep)).await;
    assert_eq!((decision.limits[0].remaining, decision.limits[0].terms.revision), (3, 5));
}

/// A denied tenant gives the user's window its call back; after the window it credits nothing.
#[tokio::test(flavor = "multi_thread")]
async fn what_another_key_denies_is_given_back_to_the_window() {
    for sliding in [false, true] {
        let client = Client::at(at_a_minute()).await.forgetting();
        let (user, tenant) = (on(&key(), every(10, MINUTE, sliding), 1), on(&key(), every(3, MINUTE, sliding), 1));
        let mut last = None;
        for _ in 0..6 {
            last = Some(client.take_all(&[user.clone(), tenant.clone()]).await);
        }
        let told: Vec<_> = last.unwrap().limits.iter().map(|l| (l.outcome, l.remaining)).collect();
        assert_eq!(told, [(Outcome::Allowed, 7), (Outcome::Denied, 0)]);
        assert_eq!(client.counts().refunded, 3);
    }
}

/// A clock that was an hour ahead has counted in a window that is to come: it is pulled back, and what it counted stays.
#[tokio::test(flavor = "multi_thread")]
async fn a_window_left_by_a_clock_that_was_ahead_does_not_lock_the_key() {
    let client = Client::at(at_a_minute()).await;
    let ahead = Client::at(ManualClock::new(client.clock.now() + Duration::from_secs(3600))).await;
    let charges = on(&key(), every(3, MINUTE, false), 1);
    assert!(ahead.take(&charges).await.is_allowed());
    let decision = client.take(&charges).await;
    assert_eq!((decision.is_allowed(), decision.limits[0].remaining), (true, 1));
    assert_eq!(client.counts().pulled_back, 1);
}

/// A tighter window for ten minutes must not give the month back afterwards.
#[test]
fn an_override_of_a_window_keeps_its_period() {
    let policy = policy(POLICY);
    let policy = policy.path().to_str().unwrap();
    let dev = Dev::start(&["--clock", "manual", "--policy", policy]);
    let endpoint = dev.stats()["dynamodb_endpoint"].as_str().unwrap().to_owned();
    let ask = || dev.decide(&json!({ "limit": "fixed", "key": { "user": "over" } })).1;
    assert_eq!(ask()["remaining"], 99);
    let set = |rate: &str| {
        let at = ["--endpoint-url", &endpoint, "--policy", policy];
        let order = ["override", "user:over", "--limit", "fixed", "--rate", rate, "--for", "2h"];
        crate::harness::run(&[&order[..], &at].concat())
    };
    let refused = set("5/h");
    assert_eq!(refused.status.code(), Some(1));
    assert!(crate::harness::stderr(&refused).contains("limit fixed counts 100/min, and an override has to count over"));
    assert!(set("5/min").status.success());
    let told = ask();
    assert_eq!(
        (&told["held"], &told["remaining"]),
        (&json!("override"), &json!(3)),
        "what was used goes along: {told}"
    );
}
