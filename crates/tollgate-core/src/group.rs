//! Calls of one process that are alike and come at once: one charge for all of them, told to each as if it had come in its turn.
//!
//! A charge of `n` times the cost is `n` slots one behind the other, and each call has its own, to give back, too. Invariants: what is
//! charged for a group is what its calls would have been charged one by one at the same instant; a call is only in a group where
//! nothing but the cost makes a difference.

use crate::charge::{Charge, Charges, Mode};
use crate::decision::{Decision, Source};
use crate::item::{Bucket, Item};
use crate::settle::Charged;
use crate::take::{Moment, Take, View, views};
use crate::token_bucket::Ticks;

impl Charges {
    /// Whether calls with these charges can be charged together. Not where a limit does not want it ([`Charge::coalesce`]), nor where one
    /// of them is told when to go, or leaves an entry, or where a denial locks: there each call is one by itself; nor where a limit
    /// only reports, which some of them would pass without.
    #[must_use]
    pub fn can_be_grouped(&self) -> bool {
        let is_plain = |charge: &Charge| {
            let figures = &charge.terms.figures;
            let is_one = figures.is_paced() || figures.log().is_some() || charge.settled_within.is_some();
            charge.coalesce && !is_one && charge.penalty.is_none() && charge.mode == Mode::Enforce
        };
        self.charges().iter().all(is_plain) && self.charges().iter().any(|charge| charge.cost > 0)
    }

    /// The charges of `n` such calls together; `None` if their cost is out of range.
    #[must_use]
    pub fn times(&self, n: u64) -> Option<Self> {
        self.costing(|charge| charge.cost.checked_mul(n))
    }
}

impl Take {
    /// How many calls with these charges fit an item that was seen, one behind the other.
    #[must_use]
    pub fn room(charges: &Charges, item: Option<&Item>, moment: Moment) -> u64 {
        let views = views(charges, item, moment, moment.clock_agrees);
        views.iter().map(|view| view.room(moment.now)).min().unwrap_or(0)
    }

    /// What each of `n` calls is told that this has charged for together, and left `item`, the first of them first: its decision, and
    /// its own charge. Of each limit `ahead` tokens more were charged, for calls that are still to come.
    #[must_use]
    pub fn shares(&self, each: &Charges, n: u64, ahead: u64, item: &Item) -> Vec<(Decision, Vec<Charged>)> {
        let told = |later: u64| {
            let item = as_before(each, later, ahead, item);
            let views = views(each, Some(&item), Moment { now: self.now(), clock_agrees: false }, self.agrees());
            let charged = views.iter().filter(|view| view.charge.cost > 0);
            let charged = charged.filter_map(|view| Some(view.charged(view.found?, self.now(), 0))).collect();
            let decide = |view: &View<'_>| view.decide(None, self.now(), Source::Table);
            (Decision::new(views.iter().map(decide).collect()), charged)
        };
        (0..n).rev().map(told).collect()
    }
}

/// The item as it was before the last so many calls of a group, and what was charged ahead.
fn as_before(each: &Charges, later: u64, ahead: u64, item: &Item) -> Item {
    let mut item = item.clone();
    for charge in each.charges() {
        if let Some(bucket) = item.buckets.get_mut(&charge.limit) {
            let figures = &bucket.terms.figures;
            let inc = Ticks(figures.inc(charge.cost).0.saturating_mul(i128::from(later))) + figures.inc(ahead);
            *bucket = Bucket { tat: bucket.tat - inc, gross: bucket.gross - inc, ..bucket.clone() };
        }
    }
    item
}
