//! The tables of `costs.md`, from units that are counted here and the prices of `infra/prices.toml`.

use super::read;
use crate::harness::{Client, SECOND, key, one};
use crate::leases;
use crate::prices::{Prices, units};
use std::fmt::Write;

const HOURS: f64 = 730.0;

/// Cents are rounded half up, thousands set apart.
fn dollars(amount: f64) -> String {
    let cents = (amount * 100.0 + 1e-6).round() as u64;
    let whole = (cents / 100).to_string();
    let groups: Vec<_> = whole.as_bytes().rchunks(3).rev().map(|digits| str::from_utf8(digits).unwrap()).collect();
    format!("{}.{:02}", groups.join(","), cents % 100)
}

/// Write units of an allowed call on three keys.
async fn three_keys() -> f64 {
    let client = Client::new().await;
    let charges = [(); 3].map(|()| one(&key(), 100, SECOND, 100));
    client.measured_all(&charges).await.2 as f64
}

/// Write units of a call on a leased key, at a hundred a second, from the third second on.
async fn leased() -> f64 {
    let client = Client::new().await;
    let charges = leases::leased(&leases::key(), (1_000, SECOND, 1_000), 500);
    let (mut units, mut calls) = (0, 0);
    for call in 0..700 {
        client.advance_ms(10);
        let (decision, _, written) = client.measured(&charges).await;
        assert!(decision.is_allowed());
        if call >= 200 {
            (units, calls) = (units + written, calls + 1);
        }
    }
    f64::from(u32::try_from(units).unwrap()) / f64::from(calls)
}

#[tokio::test(flavor = "multi_thread")]
async fn worked_examples_of_costs_follow_from_units_and_prices() {
    let (prices, [allowed, denied, known]) = (Prices::read(), units().await);
    let (three, leased) = (three_keys().await, leased().await);
    let calls_a_write = (1.0 / leased).round();
    assert!((calls_a_write - 50.0).abs() < 1.0, "{calls_a_write} calls a write");
    let write = prices.per_million("write_units");
    let mut by_size = String::new();
    for millions in [1_u32, 100, 1_000] {
        let of = |units: f64, more: f64| dollars(f64::from(millions) * (units * write + more));
        let a_second = f64::from(millions) * 1e6 / HOURS / 3600.0;
        let a_second = if a_second < 10.0 { format!("{a_second:.1}") } else { format!("{a_second:.0}") };
        let count = dollars(f64::from(millions) * 1e6);
        let count = count.trim_end_matches(".00");
        let (function, api) = (prices.functions(), prices.per_million("http_requests"));
        let one = allowed as f64;
        let cells = [of(one, 0.0), of(one, function), of(one, function + api), of(three, 0.0), of(1.0 / 50.0, 0.0)];
        writeln!(by_size, "| {count} | {a_second} | {} |", cells.join(" | ")).unwrap();
    }
    let mut flood = String::new();
    for millions in [100_u32, 1_000] {
        let of = |price: f64| dollars(f64::from(millions) * price);
        let count = dollars(f64::from(millions) * 1e6);
        let waf = prices.per_million("waf_requests");
        let cells = [of(denied as f64 * write), of(known as f64 * write), of(waf)].join(" | ");
        writeln!(flood, "| {} | {cells} |", count.trim_end_matches(".00")).unwrap();
    }
    let page = read("crates/tollgate/guide/costs.md");
    assert!(page.contains(&by_size) && page.contains(&flood), "the page has not:\n{by_size}\n{flood}");
}
