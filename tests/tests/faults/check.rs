//! What must hold of every schedule: the record of what callers were told against the ledger of what the table did.
//!
//! Invariant: a record is condemned only for what cannot be: where a clock or a loaded machine could have had a part in it, what is
//! asked is what holds either way. The wall clock is read around each call, so an admission lies within it.

mod counts;
mod one;
mod totals;

use crate::lane::{Call, Record};
use crate::proxy::{Did, Kind, Request};
use crate::schedule::Wanted;

/// What is wrong with a record, in words; nothing if it is right.
pub fn check(record: &Record) -> Vec<String> {
    let mut wrong = Vec::new();
    for (caller, calls) in record.calls.iter().enumerate() {
        let mut breaker = counts::Breaker::default();
        for (number, call) in calls.iter().enumerate() {
            let seen = Seen::of(record, caller, number);
            let found = [one::check(record, &seen), counts::check(&seen), breaker.follow(&seen)].concat();
            wrong.extend(found.into_iter().map(|what| format!("{what}\n{}", seen.tell(call))));
        }
    }
    wrong.extend(totals::check(record));
    wrong.into_iter().map(|what| format!("seed {}: {what}", record.seed)).collect()
}

/// A call, and what the ledger has of it.
pub struct Seen<'r> {
    pub call: &'r Call,
    pub requests: Vec<&'r Request>,
    pub items: Vec<Part<'r>>,
}

/// An item of a call.
pub struct Part<'r> {
    pub item: String,
    /// The limits on it, with their places in the call.
    pub wanted: Vec<(usize, &'r Wanted)>,
    /// Requests until it was charged or given up.
    pub takes: Vec<&'r Request>,
    /// Requests that give back.
    pub gives: Vec<&'r Request>,
}

impl<'r> Seen<'r> {
    pub fn of(record: &'r Record, caller: usize, number: usize) -> Self {
        let call = &record.calls[caller][number];
        let requests: Vec<_> = record.requests[caller].iter().filter(|r| r.call == Some(number)).collect();
        let mut items: Vec<Part<'r>> = Vec::new();
        for (place, wanted) in call.planned.wanted.iter().enumerate() {
            let item = wanted.item();
            if let Some(part) = items.iter_mut().find(|part| part.item == item) {
                part.wanted.push((place, wanted));
                continue;
            }
            let all: Vec<_> = requests.iter().copied().filter(|r| r.items.contains(&item)).collect();
            let first = all.iter().position(|r| r.kind == Kind::GiveBack).unwrap_or(all.len());
            let (takes, gives) = all.split_at(first);
            items.push(Part { item, wanted: vec![(place, wanted)], takes: takes.to_vec(), gives: gives.to_vec() });
        }
        Self { call, requests, items }
    }

    /// Whether its time may have been over: then a reply that was sent may have come too late.
    pub fn is_late(&self) -> bool {
        self.call.took >= crate::caller::DEADLINE
    }

    pub fn is_atomic(&self) -> bool {
        self.items.len() > 1 && self.call.planned.wanted.iter().any(|wanted| wanted.limit.atomic)
    }

    fn tell(&self, call: &Call) -> String {
        let wanted = call.planned.wanted.iter().map(|w| format!("{} {} of {}", w.cost, w.limit.name, w.key));
        let wanted = wanted.collect::<Vec<_>>().join(", ");
        let (cut, took) = (call.planned.cut, call.took);
        let mut text =
            format!("  caller {} asked for {wanted} (cut: {cut:?}) and was told {:?}", call.caller, call.told);
        text += &format!(" after {took:?}; counted {:?}", call.counted);
        for Request { kind, items, fault, did, abandoned, .. } in &self.requests {
            text += &format!("\n    {kind:?} {items:?}: {fault:?}, the table: {did:?}, abandoned: {abandoned}");
        }
        text
    }
}

impl Part<'_> {
    /// How often the table applied its charge, and a request that gave back.
    pub fn applied(&self) -> (usize, usize) {
        let is_charge = |r: &&&Request| r.is_write() && r.did == Did::Applied;
        (self.takes.iter().filter(is_charge).count(), self.gives.iter().filter(is_charge).count())
    }

    /// Whether it is certain that the last request for it failed.
    pub fn has_failed(&self) -> bool {
        self.takes.last().is_some_and(|r| r.is_lost() || r.fault.throttles())
    }

    /// The same of giving it back.
    pub fn is_kept(&self) -> bool {
        self.gives.last().is_some_and(|r| r.is_lost() || r.fault.throttles())
    }
}
