//! A limit divided among several items of one key, its shards, for keys that many more call than one item takes writes.
//!
//! Of a burst `B` over `n` shards each has `B / n`, and the first `B % n` one more; of the rate exactly the `n`-th part: the period is `n`
//! times as long. A window's count is divided like a burst, over the same stretch of time. So the parts add up to the whole: with
//! `B = ΣBᵢ` and `r = Σrᵢ`, what all shards admit in any interval is at most `Σ(Bᵢ + rᵢ·t) = B + r·t`, whoever chooses among them, and
//! however.
//!
//! What is lost is exactness the other way: a call can be denied by the shards that it asks while others have room. A call never takes
//! from two shards, so one that costs more than a shard's part never fits.
//!
//! Invariant: the parts of figures that [can be divided](Figures::can_be_divided) add up to no more than the whole, in burst, rate and
//! debt.

use crate::figures::Figures;
use crate::hold::{Hold, Override};
use crate::token_bucket::TokenBucket;
use std::num::{NonZeroU16, NonZeroU64};

/// One of the shards of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shard {
    index: u16,
    of: NonZeroU16,
}

impl Shard {
    /// Most shards of a limit. What an operator sets for a key is set on all of them in one transaction, which takes 100 items
    /// (DynamoDB, "Service quotas").
    pub const MOST: u16 = 100;

    /// The shard `index` of `of`, which counts from 0; `None` if there is no such.
    #[must_use]
    pub fn new(index: u16, of: NonZeroU16) -> Option<Self> {
        (index < of.get()).then_some(Self { index, of })
    }

    /// All shards of a limit that has so many.
    pub fn all(of: NonZeroU16) -> impl Iterator<Item = Self> {
        (0..of.get()).map(move |index| Self { index, of })
    }

    /// Which it is, from 0.
    #[must_use]
    pub const fn index(self) -> u16 {
        self.index
    }

    /// Its part of a number that is divided among all; the parts add up to it.
    fn part(self, whole: u64) -> u64 {
        let of = NonZeroU64::from(self.of);
        whole / of + u64::from(u64::from(self.index) < whole % of)
    }
}

impl Figures {
    /// What a shard has of these figures: 1 at once at least. Where the whole [can be divided](Self::can_be_divided) the parts add up to it
    /// without that.
    #[must_use]
    pub fn shard(&self, shard: Shard) -> Self {
        let (most, debt) = (shard.part(self.most()).max(1), shard.part(self.debt()));
        match self {
            Self::TokenBucket(bucket) => bucket.share(most, debt, shard.of.into()).into(),
            Self::Window(window) => window.share(most, debt).into(),
            Self::Log(log) => log.share(most).into(),
        }
    }

    /// Most that the smallest of so many shards admits at once: a call that costs more may never fit.
    #[must_use]
    pub fn least_of_shards(&self, shards: NonZeroU16) -> u64 {
        (self.most() / NonZeroU64::from(shards)).max(1)
    }

    /// Whether so many shards count what the whole does: each has 1 at once, and a rate in the range of rates. Not a pacer, whose
    /// shards would each send at their own instants, nor a log, which is for small numbers.
    #[must_use]
    pub fn can_be_divided(&self, shards: NonZeroU16) -> bool {
        let is_enough = self.most() >= u64::from(shards.get());
        is_enough
            && match self {
                Self::TokenBucket(bucket) => {
                    let first = Shard { index: 0, of: shards };
                    let most = first.part(bucket.burst()).saturating_add(first.part(bucket.debt()));
                    let period = bucket.period().saturating_mul(u64::from(shards.get()));
                    !self.is_paced() && TokenBucket::new(bucket.n(), period, most).is_ok()
                }
                Self::Window(_) => true,
                Self::Log(_) => false,
            }
    }
}

impl Hold {
    /// What the hold means on a shard: every shard has the hold of the whole, with the figures of the whole.
    #[must_use]
    pub fn on_shard(&self, shard: Shard) -> Self {
        let divided = |over: &Override| Override { figures: over.figures.shard(shard), until: over.until };
        let overrides = self.overrides.iter().map(|(limit, over)| (limit.clone(), divided(over)));
        Self { overrides: overrides.collect(), ..self.clone() }
    }
}
