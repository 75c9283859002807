//! What another policy would have done otherwise: who is newly denied, who is freed, by limit and by client.
//!
//! ```json
//! {"denied": 20, "newly_denied": {"requests": 15, "clients": 2, "top": [{"client": "user:alice", "requests": 14, "of": 90}]},
//!  "freed": {"requests": 3, "clients": 1, "top": []}, "same_allowed": 900, "same_denied": 5, "exempt": 0, "unmatched": 0,
//!  "limits": {"orders": {"before": {"allowed": 915, "denied": 8}, "after": {"allowed": 903, "denied": 20},
//!    "newly_denied": {"requests": 15, "clients": 2, "top": []}, "freed": {"requests": 3, "clients": 1, "top": []}}}}
//! ```
//!
//! Invariant: both policies decide the same requests in the same order, and newly denied + freed + same allowed + same denied
//! are the requests on a route of one of them at least. On no route counts as allowed.

use crate::ledger::{Ledger, Said};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// What another policy would have done, beside the first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Comparison {
    /// Requests that the other policy would have denied.
    pub denied: u64,
    /// Requests that only the other policy denies.
    pub newly_denied: Difference,
    /// Requests that only the first policy denies.
    pub freed: Difference,
    /// Requests that both allow.
    pub same_allowed: u64,
    /// Requests that both deny.
    pub same_denied: u64,
    /// Requests that the other policy never limits.
    pub exempt: u64,
    /// Requests on no route of the other policy.
    pub unmatched: u64,
    /// By limit of either policy.
    pub limits: BTreeMap<String, LimitComparison>,
}

/// What a limit of that name would have done.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct LimitComparison {
    /// In the first policy; `None` if it has no such limit.
    pub before: Option<Counts>,
    /// In the other one.
    pub after: Option<Counts>,
    /// Requests that only the other policy's limit denies.
    pub newly_denied: Difference,
    /// Requests that only the first policy's limit denies.
    pub freed: Difference,
}

/// What a limit did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Counts {
    /// Requests allowed and charged.
    pub allowed: u64,
    /// Requests denied.
    pub denied: u64,
}

/// Requests that are decided otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[non_exhaustive]
pub struct Difference {
    /// How many.
    pub requests: u64,
    /// Of how many clients.
    pub clients: u64,
    /// The clients with the most of them; among equals in the order of their names.
    pub top: Vec<ClientDifference>,
}

/// A client whose requests are decided otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ClientDifference {
    /// The user, else what else tells who it is, else the address: `user:alice`.
    pub client: String,
    /// Requests decided otherwise.
    pub requests: u64,
    /// All requests of it on routes of either policy.
    pub of: u64,
}

/// Counts of a comparison.
#[derive(Default)]
pub(crate) struct Tally {
    names: Vec<String>,
    /// By side, the place in `names` of each of its limits.
    places: [Vec<usize>; 2],
    counts: Vec<[Option<Counts>; 2]>,
    /// By limit and client; the limit behind the last one is the whole: newly denied, freed.
    changed: HashMap<(usize, u32), [u64; 2]>,
    of: HashMap<u32, u64>,
    same_allowed: u64,
    same_denied: u64,
    denied: u64,
    /// What each side said, by limit; kept to be used again.
    said: Vec<[Option<Said>; 2]>,
}

impl Tally {
    pub(crate) fn new(ledgers: [&Ledger; 2]) -> Self {
        let mut tally = Self::default();
        for (side, ledger) in ledgers.iter().enumerate() {
            for name in ledger.names() {
                let known = tally.names.iter().position(|known| known == name.as_str());
                let place = known.unwrap_or_else(|| {
                    tally.names.push(name.to_string());
                    tally.counts.push([None; 2]);
                    tally.names.len() - 1
                });
                tally.places[side].push(place);
                tally.counts[place][side] = Some(Counts::default());
            }
        }
        tally.said = vec![[None; 2]; tally.names.len()];
        tally
    }

    /// Counts a request of `client`, on which each side said that and let it pass or not.
    pub(crate) fn add(&mut self, client: u32, said: [&[(usize, Said)]; 2], passes: [bool; 2]) {
        *self.of.entry(client).or_default() += 1;
        let whole = self.names.len();
        match passes {
            [true, true] => self.same_allowed += 1,
            [false, false] => self.same_denied += 1,
            [before, _] => self.change(whole, client, before),
        }
        self.denied += u64::from(!passes[1]);
        for (side, said) in said.iter().enumerate() {
            for (limit, said) in *said {
                let Some(place) = self.places[side].get(*limit) else { continue };
                self.said[*place][side] = Some(*said);
                if let Some(counts) = &mut self.counts[*place][side] {
                    counts.allowed += u64::from(*said == Said::Allowed);
                    counts.denied += u64::from(*said == Said::Denied);
                }
            }
        }
        for place in 0..whole {
            let [before, after] = std::mem::take(&mut self.said[place]).map(|said| said == Some(Said::Denied));
            if before != after {
                self.change(place, client, after);
            }
        }
    }

    fn change(&mut self, place: usize, client: u32, is_newly_denied: bool) {
        self.changed.entry((place, client)).or_default()[usize::from(!is_newly_denied)] += 1;
    }

    pub(crate) fn finish(self, names: &[Box<str>], top: usize) -> Comparison {
        let mut changed: Vec<[Vec<(u32, u64)>; 2]> = vec![Default::default(); self.names.len() + 1];
        for ((place, client), counts) in &self.changed {
            for (kind, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
                changed[*place][kind].push((*client, *count));
            }
        }
        let difference = |mut clients: Vec<(u32, u64)>| {
            let name = |client: u32| names.get(client as usize).map_or("", |name| name);
            clients.sort_by_key(|(client, count)| (Reverse(*count), name(*client)));
            let requests = clients.iter().map(|(_, count)| count).sum();
            let shown = clients.iter().take(top).map(|(client, count)| ClientDifference {
                client: name(*client).to_owned(),
                requests: *count,
                of: self.of.get(client).copied().unwrap_or(0),
            });
            Difference { requests, clients: clients.len() as u64, top: shown.collect() }
        };
        let mut changed = changed.into_iter();
        let mut limits = BTreeMap::new();
        for (name, [before, after]) in self.names.iter().zip(&self.counts) {
            let [newly_denied, freed] = changed.next().unwrap_or_default().map(difference);
            limits.insert(name.clone(), LimitComparison { before: *before, after: *after, newly_denied, freed });
        }
        let [newly_denied, freed] = changed.next().unwrap_or_default().map(difference);
        let (same_allowed, same_denied, denied) = (self.same_allowed, self.same_denied, self.denied);
        Comparison { denied, newly_denied, freed, same_allowed, same_denied, limits, ..Comparison::default() }
    }
}
