//! A schedule as a whole: no limit admitted more than its bound in any interval, and the table has taken exactly what was applied.

use super::Seen;
use crate::caller::Told;
use crate::lane::{Call, Record, is_slow};
use crate::limits::Limit;
use crate::schedule::Wanted;
use std::collections::BTreeSet;

pub fn check(record: &Record) -> Vec<String> {
    let wanted = record.calls.iter().flatten().flat_map(|call| &call.planned.wanted);
    let limits: BTreeSet<_> = wanted.map(|wanted| (wanted.limit.name, &*wanted.key)).collect();
    limits.into_iter().flat_map(|(name, key)| of_limit(record, crate::limits::limit(name), key)).collect()
}

fn of_limit(record: &Record, limit: &Limit, key: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let of = format!("{} of {key}", limit.name);
    let all: Vec<_> = record.calls.iter().flatten().collect();
    let admitted = admissions(&all, limit, key, "table");
    if let Some((cost, most)) = beyond(&admitted, |from, to| limit.bound(from, to)) {
        wrong.push(format!("{of}: {cost} admitted by the table within a time that has room for {most}"));
    }
    for (caller, calls) in record.calls.iter().enumerate() {
        let alone = admissions(&calls.iter().collect::<Vec<_>>(), limit, key, "local");
        let dearest = alone.iter().map(|admission| admission.cost).max().unwrap_or(0);
        if let Some((cost, most)) = beyond(&alone, |from, to| limit.bound_alone(dearest, from, to)) {
            wrong.push(format!("{of}: {cost} admitted by caller {caller} alone, whose share has room for {most}"));
        }
    }
    if is_slow(limit.name) {
        let told: u64 = admitted.iter().map(|admission| admission.cost).sum();
        let (applied, taken) = (applied(record, limit, key), record.taken.get(&(limit.name, key.to_owned())));
        if taken != Some(&applied) || told > applied || applied > limit.most {
            wrong.push(format!("{of}: {told} admitted, {applied} applied, and {taken:?} taken by the table's account"));
        }
    }
    wrong
}

/// A cost that was admitted within a time.
struct Admission {
    sent: u64,
    received: u64,
    cost: u64,
}

/// What was admitted by `source`.
fn admissions(calls: &[&Call], limit: &Limit, key: &str, source: &str) -> Vec<Admission> {
    let of_call = |call: &&Call| {
        let Told::Answers(answers) = &call.told else { return None };
        let is_of = |w: &Wanted| w.limit.name == limit.name && w.key == key;
        let told = call.planned.wanted.iter().zip(answers).filter(|(w, a)| is_of(w) && a.allowed && a.source == source);
        let cost = told.map(|(w, _)| w.cost).sum();
        Some(Admission { sent: call.sent, received: call.received, cost })
    };
    calls.iter().filter_map(of_call).filter(|admission| admission.cost > 0).collect()
}

/// What was admitted in some interval beyond the bound of it, and that bound.
fn beyond(admitted: &[Admission], bound: impl Fn(u64, u64) -> u64) -> Option<(u64, u64)> {
    let mut ends: Vec<_> = admitted.iter().collect();
    ends.sort_by_key(|admission| admission.received);
    for from in admitted.iter().map(|admission| admission.sent) {
        let mut cost = 0;
        for admission in ends.iter().filter(|admission| admission.sent >= from) {
            cost += admission.cost;
            let most = bound(from, admission.received);
            if cost > most {
                return Some((cost, most));
            }
        }
    }
    None
}

/// What the table was charged, less what it was given back, by the ledger.
fn applied(record: &Record, limit: &Limit, key: &str) -> u64 {
    let mut total = 0;
    for (caller, calls) in record.calls.iter().enumerate() {
        for seen in (0..calls.len()).map(|number| Seen::of(record, caller, number)) {
            for part in &seen.items {
                let (charged, given_back) = part.applied();
                let wanted = part.wanted.iter().filter(|(_, w)| w.limit.name == limit.name && w.key == key);
                let cost: u64 = wanted.map(|(_, w)| w.cost).sum();
                total += cost * charged.saturating_sub(given_back) as u64;
            }
        }
    }
    total
}
