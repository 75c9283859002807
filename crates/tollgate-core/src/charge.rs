//! What a call wants: a cost on each of the limits that share one item, decided together or not at all.

use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::figures::Figures;
use crate::key::{ItemKey, Key};
use crate::pacer::Demand;
use crate::penalty::PenaltyRule;
use crate::shard::Shard;
use crate::terms::{OnChange, Terms};
use crate::time::Timestamp;
use crate::token_bucket::TokenBucket;
use std::borrow::Borrow;
use std::fmt;
use std::num::{NonZeroU16, NonZeroU64};
use std::sync::Arc;
use std::time::Duration;

/// The name of a limit: 1 to 64 of `a-z A-Z 0-9 - _`. It is part of attribute names, so it is the same in the policy,
/// the table, JSON and metrics.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LimitName(Arc<str>);

impl LimitName {
    /// Checks and wraps a name.
    ///
    /// # Errors
    ///
    /// [`Error::LimitName`] if it is empty, longer than 64 bytes or has other characters.
    pub fn new(name: &str) -> Result<Self> {
        let ok = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        if (1..=64).contains(&name.len()) && name.bytes().all(ok) {
            Ok(Self(Arc::from(name)))
        } else {
            Err(Error::LimitName(name.to_owned()))
        }
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for LimitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Borrow<str> for LimitName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// Whether a limit denies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    /// It does.
    #[default]
    Enforce,
    /// It decides and is charged like any other, but only reports: it never denies, and no failure of its own matters.
    Shadow,
}

/// What becomes of a call when the store cannot answer. Ordered: the stricter is the greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[non_exhaustive]
pub enum StoreFailure {
    /// It passes.
    Open,
    /// It is decided by this process alone, by its share of the limits ([`Local`](crate::Local)). What holds where the policy says
    /// nothing.
    #[default]
    Local,
    /// It is refused, as "the limiter failed" and never as "limited".
    Closed,
}

impl StoreFailure {
    /// The name used in the policy and JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Local => "local",
            Self::Closed => "closed",
        }
    }
}

/// A cost on one limit.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Charge {
    /// Which limit.
    pub limit: LimitName,
    /// The terms that the caller knows.
    pub terms: Terms,
    /// What to do with debt left by an older revision.
    pub on_change: OnChange,
    /// Tokens to take; 0 observes and writes nothing.
    pub cost: u64,
    /// The longest that the call would wait for its start, if the limit paces; it is denied at once if that is later.
    /// `None`: as long as the queue.
    pub max_wait: Option<Duration>,
    /// Whether the limit denies.
    pub mode: Mode,
    /// How long the charge can be settled for, by whoever knows the true cost later; `None`: it is final, but for giving it back
    /// at once.
    pub settled_within: Option<Duration>,
    /// How long the limit locks a key that it has denied; `None`: not at all.
    pub penalty: Option<PenaltyRule>,
    /// Most tokens that a process takes ahead of the calls that it expects ([`lease`](crate::lease)); 0: none.
    pub lease: u64,
    /// Whether calls of one process that are alike and come at once may take one write together ([`Charges::can_be_grouped`]). Of a
    /// leased limit they must: without it none is taken ahead.
    pub coalesce: bool,
    /// Whether a process may deny by what it saw of the limit a moment ago ([`Take::recall`](crate::Take::recall)).
    pub deny_cache: bool,
}

impl Charge {
    /// `cost` tokens of a limit that denies, for a caller who would wait as long as there is a queue.
    #[must_use]
    pub fn new(limit: LimitName, terms: Terms, cost: u64) -> Self {
        let (on_change, max_wait, mode) = (OnChange::default(), None, Mode::default());
        let (settled_within, penalty, lease, coalesce, deny_cache) = (None, None, 0, true, true);
        Self { limit, terms, on_change, cost, max_wait, mode, settled_within, penalty, lease, coalesce, deny_cache }
    }

    /// The same, of a limit that processes lease, `most` tokens at once.
    #[must_use]
    pub fn leased(self, most: u64) -> Self {
        Self { terms: self.terms.leased(), lease: most, ..self }
    }

    /// What is wanted of the limit.
    #[must_use]
    pub fn demand(&self) -> Demand {
        Demand { max_wait: self.max_wait, ..self.cost.into() }
    }

    /// Seconds that the charge must be remembered for: by its figures, and until it is settled, which may arrive late.
    fn horizon_secs(&self) -> u64 {
        let settled = self.settled_within.map_or(0, |within| within.as_secs() + 1 + TokenBucket::LATEST_ARRIVAL_SECS);
        self.terms.figures.horizon_secs().max(settled)
    }

    /// What the charge is remembered by, made at `now` under `figures`: a log enters it, and a reservation says until when it is
    /// one. `id` is random.
    #[must_use]
    pub fn entry(&self, figures: &Figures, now: Timestamp, id: u64) -> Option<Entry> {
        match figures.log() {
            Some(_) => Some(Entry::new(now, id, self.cost)),
            None => self.settled_within.map(|within| Entry::reservation(now + within, id)),
        }
    }
}

/// The charges of one decision on one item: they take one write.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Charges {
    item: ItemKey,
    horizon: u64,
    on_store_failure: StoreFailure,
    instances: NonZeroU64,
    atomic: bool,
    first: bool,
    shards: Option<NonZeroU16>,
    charges: Vec<Charge>,
}

impl Charges {
    /// Most limits of one item in a decision: an update expression may have 4 KB (DynamoDB, "Service quotas").
    pub const MOST_LIMITS: usize = 16;

    /// Most items in a decision. A transaction takes 100 (DynamoDB, "Service quotas"), and beyond that would fail for ever;
    /// apart, each item is a write at the same time and, if another denies, a refund, so that one request must not be
    /// thousands. 25 leaves room for six keys with personal values under four secrets each.
    pub const MOST_ITEMS: usize = 25;

    /// Charges on `item`.
    ///
    /// # Errors
    ///
    /// [`Error::NoCharges`], [`Error::TooManyCharges`], [`Error::DuplicateCharge`], or [`Error::Cost`] for a cost above
    /// [`TokenBucket::MAX_TOKENS`].
    pub fn new(item: ItemKey, charges: Vec<Charge>) -> Result<Self> {
        if charges.is_empty() {
            return Err(Error::NoCharges);
        }
        if charges.len() > Self::MOST_LIMITS {
            return Err(Error::TooManyCharges(charges.len()));
        }
        for (i, charge) in charges.iter().enumerate() {
            if charge.cost > TokenBucket::MAX_TOKENS {
                return Err(Error::Cost(charge.cost));
            }
            if charges[..i].iter().any(|earlier| earlier.limit == charge.limit) {
                return Err(Error::DuplicateCharge(charge.limit.to_string()));
            }
        }
        let horizon = charges.iter().map(Charge::horizon_secs).max().unwrap_or(0);
        let (on_store_failure, instances) = (StoreFailure::default(), NonZeroU64::MIN);
        let (atomic, first, shards) = (false, false, None);
        Ok(Self { item, horizon, on_store_failure, instances, atomic, first, shards, charges })
    }

    /// Raises the horizon to that of other limits whose state shares the item, in seconds: a limit that is not charged
    /// now must not expire early because one with a shorter memory was.
    #[must_use]
    pub fn with_horizon(mut self, secs: u64) -> Self {
        self.horizon = self.horizon.max(secs);
        self
    }

    /// Sets what happens if the store cannot answer about this item.
    #[must_use]
    pub fn with_store_failure(mut self, rule: StoreFailure) -> Self {
        self.on_store_failure = rule;
        self
    }

    /// Sets how many processes share the limits where each has to decide by itself.
    #[must_use]
    pub fn among(mut self, instances: NonZeroU64) -> Self {
        self.instances = instances;
        self
    }

    /// The same, of other charges on the same limits.
    pub(crate) fn each(&self, other: impl Fn(&Charge) -> Charge) -> Self {
        Self { charges: self.charges.iter().map(other).collect(), ..self.clone() }
    }

    /// The same, at other costs; `None` if one is out of range.
    pub(crate) fn costing(&self, cost: impl Fn(&Charge) -> Option<u64>) -> Option<Self> {
        let costing = |charge: &Charge| {
            let cost = cost(charge).filter(|cost| *cost <= TokenBucket::MAX_TOKENS)?;
            Some(Charge { cost, ..charge.clone() })
        };
        let charges = self.charges.iter().map(costing).collect::<Option<_>>()?;
        Some(Self { charges, ..self.clone() })
    }

    /// Wants the whole decision in one transaction where it is on several items.
    #[must_use]
    pub fn atomically(mut self, atomic: bool) -> Self {
        self.atomic = atomic;
        self
    }

    /// Wants this item asked before the others of the decision, which are charged only if it allows.
    #[must_use]
    pub fn asked_first(mut self, first: bool) -> Self {
        self.first = first;
        self
    }

    /// Divides the limit among so many shards, each an item; `None` leaves it whole. Only a limit that has its item for itself can be.
    /// The terms stay those of the whole.
    #[must_use]
    pub fn sharded(mut self, shards: Option<NonZeroU16>) -> Self {
        self.shards = shards.filter(|_| self.item.own.is_some());
        self
    }

    /// The same charges on one of the shards, by its number from 0: decided by its part of the figures, and told by the whole's.
    #[must_use]
    pub fn on_shard(&self, index: u16) -> Self {
        Self { item: self.item.on_shard(index), ..self.clone() }
    }

    /// Wants to wait for a start no longer than `longest`, nor than was wanted before.
    #[must_use]
    pub fn waiting_at_most(mut self, longest: Duration) -> Self {
        for charge in &mut self.charges {
            charge.max_wait = Some(charge.max_wait.map_or(longest, |wanted| wanted.min(longest)));
        }
        self
    }

    /// The item that is charged.
    #[must_use]
    pub fn item(&self) -> &ItemKey {
        &self.item
    }

    /// Who is charged.
    #[must_use]
    pub fn key(&self) -> &Key {
        &self.item.key
    }

    /// The costs, one a limit.
    #[must_use]
    pub fn charges(&self) -> &[Charge] {
        &self.charges
    }

    /// The longest memory of all limits known to share the item, in seconds.
    #[must_use]
    pub fn horizon(&self) -> u64 {
        self.horizon
    }

    /// What happens if the store cannot answer about this item.
    #[must_use]
    pub fn on_store_failure(&self) -> StoreFailure {
        self.on_store_failure
    }

    /// How many processes share the limits where each has to decide by itself.
    #[must_use]
    pub fn instances(&self) -> NonZeroU64 {
        self.instances
    }

    /// Whether all limits only report, so that nothing about this item can refuse the call.
    #[must_use]
    pub fn only_report(&self) -> bool {
        self.charges.iter().all(|c| c.mode == Mode::Shadow)
    }

    /// Whether this item is asked before the others.
    #[must_use]
    pub fn is_first(&self) -> bool {
        self.first
    }

    /// How many shards the limit is divided among, if it is.
    #[must_use]
    pub fn shards(&self) -> Option<NonZeroU16> {
        self.shards
    }

    /// The shard that these charges are on; `None` is the whole limit.
    #[must_use]
    pub fn shard(&self) -> Option<Shard> {
        Shard::new(self.item.shard()?, self.shards?)
    }

    /// Whether a transaction takes the item in. One that cannot refuse the call has no part in it, a shard is another one with every
    /// call, and of a leased one there may be no need to ask.
    #[must_use]
    pub fn can_be_transacted(&self) -> bool {
        !self.only_report() && self.shards.is_none() && !self.can_be_leased()
    }

    /// Whether the whole decision is wanted in one transaction.
    #[must_use]
    pub fn is_atomic(&self) -> bool {
        self.atomic
    }
}
