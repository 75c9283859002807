//! A limit: who is counted, by which figures, and what a denied caller is told. Invariant: all figures are within the
//! bounds of [`TokenBucket`], and each dimension occurs once in a key, so that a set of dimensions resolves one way only.

use crate::algorithm::Algorithm;
use crate::message::Messages;
use std::collections::BTreeMap;
use std::fmt;
use std::num::{NonZeroU16, NonZeroU64};
use std::sync::Arc;
use std::time::Duration;
#[cfg(doc)]
use tollgate_core::TokenBucket;
use tollgate_core::{Actual, ItemKey, Key, LimitName, Mode, OnChange, PenaltyRule, Shard, StoreFailure, Terms};

/// One entry of a limit's key: the dimensions that can give its value, the first that has one wins.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyPart(Vec<String>);

impl KeyPart {
    pub(crate) fn new(alternatives: Vec<String>) -> Self {
        Self(alternatives)
    }

    /// The dimensions, first choice first.
    pub fn alternatives(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    pub(crate) fn has(&self, dimension: &str) -> bool {
        self.0.iter().any(|alternative| alternative == dimension)
    }
}

impl fmt::Display for KeyPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" ?? "))
    }
}

/// A rate, and a burst if the algorithm has one, as declared and as arithmetic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figures {
    pub(crate) rate: String,
    pub(crate) n: u64,
    pub(crate) period: Duration,
    pub(crate) core: tollgate_core::Figures,
}

impl Figures {
    /// The rate as the policy writes it, like `50/h`.
    #[must_use]
    pub fn rate(&self) -> &str {
        &self.rate
    }

    /// Tokens a period, as declared (the bucket's are reduced): 1 to [`TokenBucket::MAX_TOKENS`].
    #[must_use]
    pub fn n(&self) -> u64 {
        self.n
    }

    /// The period as declared, 1 ms to 200 years; a month is 30 days.
    #[must_use]
    pub fn period(&self) -> Duration {
        self.period
    }

    /// The figures as arithmetic.
    #[must_use]
    pub fn core(&self) -> tollgate_core::Figures {
        self.core
    }

    /// Whether one key can take more than `per_second` calls of `cost` tokens each second, in the long run.
    pub(crate) fn exceeds(&self, per_second: u64, cost: u64) -> bool {
        let calls = u128::from(self.n) * 1_000_000_000;
        calls > u128::from(per_second) * self.period.as_nanos() * u128::from(cost.max(1))
    }
}

/// What becomes of what a log has when a call succeeds, where only failures count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnSuccess {
    /// All failures before it are forgotten.
    Clear,
    /// They stay; the call itself does not count.
    Keep,
}

/// What a call is counted as once it is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counting {
    /// What a success does, if only failures count.
    pub(crate) successes: Option<OnSuccess>,
    /// Whether a call that the server failed does not count.
    pub(crate) refunds_failures: bool,
    /// Whether the policy says what a success does.
    pub(crate) is_chosen: bool,
}

/// One `[limits.NAME]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    pub(crate) name: LimitName,
    pub(crate) key: Vec<KeyPart>,
    pub(crate) algorithm: Algorithm,
    pub(crate) base: Figures,
    pub(crate) by_plan: BTreeMap<Arc<str>, Figures>,
    pub(crate) max_wait: Option<Duration>,
    pub(crate) on_change: OnChange,
    pub(crate) counting: Counting,
    pub(crate) messages: Option<Messages>,
    pub(crate) upgrade_url: Option<String>,
    pub(crate) on_store_failure: Option<StoreFailure>,
    pub(crate) hidden: bool,
    pub(crate) mode: Mode,
    pub(crate) own_item: bool,
    pub(crate) shards: Option<NonZeroU16>,
    pub(crate) lease: Option<NonZeroU64>,
    pub(crate) atomic: bool,
    pub(crate) first: bool,
    pub(crate) coalesce: bool,
    pub(crate) deny_cache: bool,
    pub(crate) penalty: Option<PenaltyRule>,
    pub(crate) retry_jitter: Duration,
}

impl Limit {
    /// The limit's name.
    #[must_use]
    pub fn name(&self) -> &LimitName {
        &self.name
    }

    /// Who is counted: 1 to 4 entries, in file order.
    #[must_use]
    pub fn key(&self) -> &[KeyPart] {
        &self.key
    }

    /// How it counts.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The figures of a plan: its own if it has some in this limit, else those for everybody (also for `None`).
    #[must_use]
    pub fn figures(&self, plan: Option<&str>) -> &Figures {
        plan.and_then(|plan| self.by_plan.get(plan)).unwrap_or(&self.base)
    }

    /// Plans that have figures of their own, sorted by name.
    pub fn plans(&self) -> impl Iterator<Item = (&str, &Figures)> {
        self.by_plan.iter().map(|(plan, figures)| (&**plan, figures))
    }

    /// The figures as terms of a policy `revision`. The plan is part of the terms only if it has figures of its own in
    /// this limit: plans that make no difference must not split, or carry over, any state.
    #[must_use]
    pub fn terms(&self, plan: Option<&str>, revision: u64) -> Terms {
        let terms = match plan.and_then(|plan| self.by_plan.get_key_value(plan)) {
            Some((plan, figures)) => Terms::new(revision, figures.core).on_plan(Arc::clone(plan)),
            None => Terms::new(revision, self.base.core),
        };
        if self.lease.is_some() { terms.leased() } else { terms }
    }

    /// The longest that a call of a pacer may have to wait; it is denied if its start is later. `None`: as long as the queue.
    #[must_use]
    pub fn max_wait(&self) -> Option<Duration> {
        self.max_wait
    }

    /// What a newer revision does with debt that an older one left.
    #[must_use]
    pub fn on_change(&self) -> OnChange {
        self.on_change
    }

    /// Whether only calls that fail count, and what a success does to those before it.
    #[must_use]
    pub fn counts_failures(&self) -> Option<OnSuccess> {
        self.counting.successes
    }

    /// Whether a call that the server failed (5xx) is not counted.
    #[must_use]
    pub fn refunds_failures(&self) -> bool {
        self.counting.refunds_failures
    }

    /// Whether what a call counts as can depend on its answer.
    #[must_use]
    pub fn counts_by_answer(&self) -> bool {
        self.counting.successes.is_some() || self.counting.refunds_failures
    }

    /// What a call that was answered with this HTTP status counts as; `None`: as what it was charged. Below 400 is a success;
    /// what the server failed (500 and above) is none, and of a guess nobody knows whether it was tried.
    #[must_use]
    pub fn answered(&self, status: u16) -> Option<Actual> {
        match self.counting.successes {
            _ if status >= 500 => self.counting.refunds_failures.then_some(Actual::Cost(0)),
            Some(OnSuccess::Clear) if status < 400 => Some(Actual::Clear),
            Some(OnSuccess::Keep) if status < 400 => Some(Actual::Cost(0)),
            _ => None,
        }
    }

    /// What a denied caller is told, if the policy says.
    #[must_use]
    pub fn messages(&self) -> Option<&Messages> {
        self.messages.as_ref()
    }

    /// Where a denied caller can get more: a path or an `http(s)` URL.
    #[must_use]
    pub fn upgrade_url(&self) -> Option<&str> {
        self.upgrade_url.as_deref()
    }

    /// What this limit wants when the store cannot answer; a route's own choice goes before it.
    #[must_use]
    pub fn on_store_failure(&self) -> Option<StoreFailure> {
        self.on_store_failure
    }

    /// Whether answers keep quiet about the limit (`headers = "hidden"`): neither headers nor body name it or its
    /// figures.
    #[must_use]
    pub fn is_hidden(&self) -> bool {
        self.hidden
    }

    /// Whether the limit denies, or only decides and reports.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Whether a decision that charges this limit beside others on other keys is one transaction.
    #[must_use]
    pub fn is_atomic(&self) -> bool {
        self.atomic
    }

    /// How long it locks a key that it has denied, if it does.
    #[must_use]
    pub fn penalty(&self) -> Option<PenaltyRule> {
        self.penalty
    }

    /// By how much more than the true wait a denied caller is told at most.
    #[must_use]
    pub fn retry_jitter(&self) -> Duration {
        self.retry_jitter
    }

    /// Whether its item is asked before the others of a decision, which are charged only if it allows.
    #[must_use]
    pub fn is_first(&self) -> bool {
        self.first
    }

    /// Whether calls of one process that are alike and come at once may take one write together, if the other limits of their item
    /// let them as well.
    #[must_use]
    pub fn coalesces(&self) -> bool {
        self.coalesce
    }

    /// Whether a process may deny by what it saw of the limit up to a second ago.
    #[must_use]
    pub fn denies_from_memory(&self) -> bool {
        self.deny_cache
    }

    /// Whether the limit has an item for itself (`own_item = true`), or several; one that is leased has.
    #[must_use]
    pub fn has_own_item(&self) -> bool {
        self.own_item || self.shards.is_some() || self.lease.is_some()
    }

    /// Most tokens that a process takes ahead of the calls that it expects, if it does.
    #[must_use]
    pub fn lease(&self) -> Option<NonZeroU64> {
        self.lease
    }

    /// How many shards it is divided among, if it is: 2 to [`Shard::MOST`].
    #[must_use]
    pub fn shards(&self) -> Option<NonZeroU16> {
        self.shards
    }

    /// The item that the limit is charged on for `key`; of one that is divided, what its shards are of.
    #[must_use]
    pub fn item(&self, key: Key) -> ItemKey {
        if self.has_own_item() { ItemKey::own(key, self.name.clone()) } else { ItemKey::shared(key) }
    }

    /// The items that keep the limit's state of `key`: one, or all shards.
    #[must_use]
    pub fn items(&self, key: Key) -> Vec<ItemKey> {
        let item = self.item(key);
        match self.shards {
            None => vec![item],
            Some(shards) => Shard::all(shards).map(|shard| item.on_shard(shard.index())).collect(),
        }
    }

    /// Most that a call can cost under these figures of the limit: what fits into the smallest of its shards.
    pub(crate) fn most_of_a_call(&self, figures: &Figures) -> u64 {
        self.shards.map_or(figures.core.most(), |shards| figures.core.least_of_shards(shards))
    }

    /// The figures as each item of the limit keeps them, the largest part of those that are divided.
    pub(crate) fn kept(&self, figures: tollgate_core::Figures) -> tollgate_core::Figures {
        self.shards.and_then(|shards| Shard::all(shards).next()).map_or(figures, |first| figures.shard(first))
    }

    /// The figures for everybody and of every plan.
    pub(crate) fn all_figures(&self) -> impl Iterator<Item = (Option<&str>, &Figures)> {
        std::iter::once((None, &self.base)).chain(self.plans().map(|(plan, figures)| (Some(plan), figures)))
    }

    /// The longest memory of all its figures, in seconds.
    pub(crate) fn horizon_secs(&self) -> u64 {
        self.all_figures().map(|(_, figures)| self.kept(figures.core).horizon_secs()).max().unwrap_or(0)
    }

    /// The same, with that of its locks.
    pub(crate) fn memory_secs(&self) -> u64 {
        self.penalty.map_or(0, |rule| rule.longest_horizon_secs()).max(self.horizon_secs())
    }

    /// For how long its slowest figures remember that `missing` calls are owed, in seconds.
    pub(crate) fn horizon_of_secs(&self, missing: u64) -> u64 {
        let secs = |(_, figures): (_, &Figures)| match self.kept(figures.core) {
            tollgate_core::Figures::TokenBucket(bucket) => bucket.horizon_of(bucket.inc(missing)),
            window => window.horizon_secs(),
        };
        self.all_figures().map(secs).max().unwrap_or(0)
    }

    /// Whether the key can resolve to exactly these dimensions: each entry has one of them, and none is left over.
    /// No dimension occurs in two entries, so counting is enough.
    pub(crate) fn can_resolve_to<'a>(&self, dimensions: impl Iterator<Item = &'a str> + Clone) -> bool {
        dimensions.clone().count() == self.key.len()
            && self.key.iter().all(|part| dimensions.clone().any(|dimension| part.has(dimension)))
    }

    /// Every set of dimensions that the key can resolve to, each sorted.
    pub(crate) fn resolutions(&self) -> Vec<Vec<&str>> {
        let mut sets = vec![Vec::new()];
        for part in &self.key {
            sets = sets
                .iter()
                .flat_map(|set: &Vec<&str>| {
                    part.alternatives().map(|dimension| [set.as_slice(), &[dimension]].concat())
                })
                .collect();
        }
        sets.iter_mut().for_each(|set| set.sort_unstable());
        sets
    }

    /// The key as the policy writes it, for texts: `tenant, user ?? client_ip`.
    pub(crate) fn wants(&self) -> String {
        self.key.iter().map(KeyPart::to_string).collect::<Vec<_>>().join(", ")
    }
}
