//! The tables of `scale.md`, worked out anew: each row from its first cells, the prices, and what the limiter does.
#![allow(clippy::unwrap_used, clippy::panic)]

use crate::testing::{ManualClock, MemoryStore};
use crate::{Charges, Limiter, Policy, Timestamp, Wanted};
use std::time::Duration;
use tollgate_core::take::Moment;
use tollgate_core::{Item, Step, Take};

const PAGE: &str = include_str!("../../guide/scale.md");

/// Dollars, as the page says.
const MILLION_UNITS: f64 = 0.625;
const UNIT_HOUR: f64 = 0.00065;
const HOURS: f64 = 730.0;

/// The cells of the table that begins so, without its head.
fn rows(head: &str) -> Vec<Vec<&'static str>> {
    let table = PAGE.lines().skip_while(|line| !line.starts_with(head)).take_while(|line| line.starts_with('|'));
    let rows: Vec<_> = table.skip(2).map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect();
    assert!(!rows.is_empty(), "{head}");
    rows
}

fn number(cell: &str) -> u64 {
    cell.replace(',', "").parse().unwrap_or_else(|_| panic!("{cell:?} is no number"))
}

/// `1234567` as `1,234,567`.
fn told(n: u64) -> String {
    let digits = n.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(|group| str::from_utf8(group).unwrap()).collect();
    groups.join(",")
}

fn dollars(amount: f64) -> String {
    if amount < 10.0 { format!("{amount:.2}") } else { told(amount.round() as u64) }
}

#[test]
fn what_many_keys_cost_follows_from_units_and_prices() {
    let prices =
        format!("{MILLION_UNITS} for a million write request units on demand, {UNIT_HOUR} for a write capacity unit");
    assert!(PAGE.contains(&prices) && PAGE.contains(&format!("{HOURS} hours a month")));
    for row in rows("| decisions/s | units each") {
        let units = number(row[0]) * number(row[1]);
        let on_demand = units as f64 * 3600.0 * HOURS * MILLION_UNITS / 1e6;
        let provisioned = (units * 10).div_ceil(7) as f64 * UNIT_HOUR * HOURS;
        let beyond = match units {
            0..=4_000 => "",
            4_001..=40_000 => "warm throughput",
            _ => "warm throughput, quota",
        };
        let expected = [told(units), told(units.div_ceil(1000)), dollars(on_demand), dollars(provisioned)];
        assert_eq!(row[2..6], expected, "{row:?}");
        assert_eq!(row[6], beyond, "{row:?}");
    }
}

#[test]
fn what_one_key_and_lambda_take_follows_from_the_calls() {
    for row in rows("| calls/s | of one key") {
        let calls = number(row[0]);
        let shards = (2 * calls).div_ceil(1000);
        let shards = if shards > 100 { "too many".to_owned() } else { told(shards) };
        // Half of burst × calls / rate, of a limit of twice the calls; and 3 writes a second each.
        let processes = (2 * calls / 2 / 2).isqrt().min(1000 / 3);
        let from_nothing = if calls <= 10_000 { "at once".to_owned() } else { format!("{} s", told(calls / 1000)) };
        assert_eq!(row[1..], [shards, told(processes), told((calls * 5).div_ceil(1000)), from_nothing], "{row:?}");
    }
}

/// The writes of a call on one key, by processes that are called at random, from the third to the sixth second.
async fn writes_of_a_call(processes: u64, rate: u64, calls: u64, with: &str) -> f64 {
    let text = format!("version = 1\n[limits.hot]\nkey = ['tenant']\nrate = '{rate}/s'\nburst = {rate}\n{with}\n");
    let policy = Policy::parse(&text).unwrap().policy;
    let charges = policy.charges(&[Wanted { limit: "hot", key: &[("tenant", "t")], plan: None, cost: 1 }]).unwrap();
    let clock = ManualClock::new(Timestamp::from_secs(1_767_225_600));
    let store = MemoryStore::new(clock.clone());
    // Nobody should fail for the slowness of a shared machine.
    let limiter = || Limiter::new(store.clone()).with_deadline(Duration::from_secs(60));
    let limiters: Vec<_> = (0..processes).map(|_| limiter()).collect();
    let mut random = fastrand::Rng::with_seed(1);
    let (mut passed, mut before) = (Duration::ZERO, None);
    while passed < Duration::from_secs(6) {
        if passed > Duration::from_secs(2) {
            before.get_or_insert_with(|| store.counters().counts());
        }
        random.choice(&limiters).unwrap().take(&charges).await.unwrap();
        let gap = Duration::from_secs_f64(-(1.0 - random.f64()).ln() / calls as f64);
        clock.advance(gap);
        passed += gap;
    }
    let (before, after) = (before.unwrap(), store.counters().counts());
    (after.write_units - before.write_units) as f64 / (after.decisions - before.decisions) as f64
}

#[tokio::test]
async fn writes_of_a_hot_key_are_as_the_page_counts_them() {
    for row in rows("| processes | limit") {
        let (processes, rate, calls) = (number(row[0]), number(row[1]), number(row[2]));
        let writes = writes_of_a_call(processes, rate, calls, row[3].trim_matches('`')).await;
        let expected: f64 = row[4].parse().unwrap();
        assert!((writes - expected).abs() < 0.1 * expected, "{row:?}: {writes:.4}");
    }
}

/// One call on a Region's copy of an item.
fn is_admitted(copy: &mut Option<Item>, charges: &Charges, moment: Moment, id: u64) -> bool {
    let (mut take, mut step) = Take::start(charges.clone(), copy.as_ref(), moment, id);
    loop {
        step = match step {
            Step::Write(write) => match write.apply(copy.as_ref()) {
                Some(next) => take.applied(copy.insert(next), moment),
                None => take.refused(copy.as_ref(), moment),
            },
            Step::Read => take.read(copy.as_ref(), moment),
            Step::Done(decision) => return decision.is_allowed(),
            Step::Lock { .. } => panic!("no limit locks"),
        };
    }
}

/// Each Region writes its own copy and the later write wins: the first Region takes all that it finds, then the second takes one, and the
/// second's copy replaces the first's.
#[test]
fn two_regions_that_overwrite_each_other_admit_what_the_page_says() {
    let policy = Policy::parse("version = 1\n[limits.orders]\nkey = ['user']\nrate = '50/h'\n").unwrap().policy;
    let charges = policy.charges(&[Wanted { limit: "orders", key: &[("user", "u")], plan: None, cost: 1 }]).unwrap();
    let moment = Moment { now: Timestamp::from_secs(1_767_225_600), clock_agrees: true };
    let (mut first, mut second) = (None, None);
    let (mut admitted, mut replications) = (0, 0);
    loop {
        while is_admitted(&mut first, &charges[0], moment, admitted) {
            admitted += 1;
        }
        if !is_admitted(&mut second, &charges[0], moment, admitted) {
            break;
        }
        (admitted, replications) = (admitted + 1, replications + 1);
        first.clone_from(&second);
    }
    assert!(
        PAGE.contains(&format!("{} calls in {replications} replications", told(admitted))),
        "{admitted}, {replications}"
    );
}
