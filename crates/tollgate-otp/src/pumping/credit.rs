//! Credits: that codes of messages were verified, summed before they are counted.
//!
//! Invariant: a credit says in which country, block and window a message was sent, and nothing else of it; however credits are summed,
//! and by whoever, as many are counted.

use super::cohort::Window;
use crate::courier::Errand;
use crate::destination::Destination;
use std::collections::BTreeMap;
use tollgate_core::Timestamp;

/// That the code of one message was verified. The oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Credit {
    /// When the message was sent.
    pub window: Window,
    /// Two letters of ISO 3166-1; `email` of an address.
    pub country: String,
    /// The [block](Destination::block) of its number.
    pub block: String,
}

impl Credit {
    /// Of the message to `to` whose code was made at `made_at`.
    #[must_use]
    pub fn of(to: &Destination, made_at: Timestamp) -> Self {
        Self { window: Window::of(made_at), country: to.country().to_owned(), block: to.block().to_owned() }
    }
}

/// Some credits, and how often each is given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Credits(BTreeMap<Credit, u64>);

impl Credits {
    /// What these errands give.
    #[must_use]
    pub fn of<'e>(errands: impl IntoIterator<Item = &'e Errand>) -> Self {
        let mut credits = Self::default();
        errands.into_iter().filter_map(Errand::credit).for_each(|credit| credits.add(credit.clone(), 1));
        credits
    }

    /// Gives a credit so often.
    pub fn add(&mut self, credit: Credit, n: u64) {
        *self.0.entry(credit).or_default() += n;
    }

    /// Each, and how often it is given.
    pub fn iter(&self) -> impl Iterator<Item = (&Credit, u64)> {
        self.0.iter().map(|(credit, n)| (credit, *n))
    }

    /// Forgets all for which `is_kept` says no.
    pub fn retain(&mut self, is_kept: impl Fn(&Credit) -> bool) {
        self.0.retain(|credit, _| is_kept(credit));
    }

    /// Forgets the oldest, until there are no more than `most` different ones.
    pub fn keep(&mut self, most: usize) {
        while self.0.len() > most {
            self.0.pop_first();
        }
    }
}
