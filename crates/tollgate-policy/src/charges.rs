//! From names and values to what the core decides on. Invariant: all that ends up on one item goes into one
//! [`Charges`], whose horizon covers every limit of the policy that can share the item, charged now or not.

use crate::error::{Error, Result};
use crate::identity::Identity;
use crate::limit::{KeyPart, Limit};
use crate::policy::Policy;
use crate::pseudonym::KeySecrets;
use crate::route::{Route, RouteCharge};
use crate::suggest;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;
use tollgate_core::{Charge, Charges, ItemKey, Key, LimitName};

/// A cost on a limit, with the dimensions of its key given by the caller.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The limit's name.
    pub limit: &'a str,
    /// Dimensions and values, in any order. Of alternatives (`user ?? client_ip`) several may be given; the one that
    /// the limit names first counts.
    pub key: &'a [(&'a str, &'a str)],
    /// The caller's plan; `None` is the policy's default.
    pub plan: Option<&'a str>,
    /// Tokens to take; 0 observes.
    pub cost: u64,
}

/// Most items that a decision on these limits can be on, whatever a request says and however many secrets there are.
pub(crate) fn most_items<'a>(identity: &Identity, limits: impl IntoIterator<Item = &'a Limit>) -> usize {
    // Limits with the same entries have the same keys; of others, one caller's can all differ.
    let mut places = BTreeSet::new();
    for limit in limits {
        let mut entries: Vec<_> = limit.key.iter().collect();
        entries.sort();
        places.insert((limit.has_own_item().then(|| limit.name.clone()), entries));
    }
    places.iter().map(|(_, entries)| secrets(identity, entries.iter().copied())).sum()
}

/// Most items that a limit keeps of one caller where it is not divided: one for each secret that personal values can be under.
pub(crate) fn items_of_a_caller(identity: &Identity, limit: &Limit) -> usize {
    secrets(identity, &limit.key)
}

fn secrets<'a>(identity: &Identity, entries: impl IntoIterator<Item = &'a KeyPart>) -> usize {
    let is_personal = |dimension: &str| identity.dimension(dimension).is_some_and(|declared| declared.personal);
    let hides = entries.into_iter().any(|part| part.alternatives().any(is_personal));
    if hides { KeySecrets::MAX_SECRETS } else { 1 }
}

/// Most of these limits that can be in one item.
pub(crate) fn most_sharing<'a>(limits: impl IntoIterator<Item = &'a Limit>) -> usize {
    let mut sharing: BTreeMap<Vec<&str>, usize> = BTreeMap::new();
    for dimensions in limits.into_iter().filter(|limit| !limit.has_own_item()).flat_map(Limit::resolutions) {
        *sharing.entry(dimensions).or_default() += 1;
    }
    sharing.into_values().max().unwrap_or(0)
}

/// What becomes of a charge whose key lacks a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum IfMissing {
    /// It is left out, for looking at what a policy says.
    LeaveOut,
    /// It goes on one bucket that all such calls share, for serving: a caller must not escape a limit by withholding, or
    /// blowing up, what it is counted by. The key has each entry of the limit's key behind a `?` (which no declared
    /// dimension can start with), with [`IfMissing::VALUE`]: `?user:missing`. A key over 2 KB counts as missing, too.
    Share,
}

impl IfMissing {
    /// The value of each dimension of a shared key.
    pub const VALUE: &str = "missing";

    /// What the dimensions of a shared key start with.
    pub const MARK: char = '?';
}

/// How the key of one charge came about.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResolvedKey {
    /// Every entry of the key has a value.
    Found {
        /// The dimension that gave the value of each entry, in the order of the limit's key.
        dimensions: Vec<String>,
        /// The key.
        key: Key,
        /// The same under the secrets that are being retired, if it holds personal values; charged as well.
        retiring: Vec<Key>,
    },
    /// No alternative of this entry of the limit's key has a value, or the key is too long to be kept.
    Missing(KeyPart),
}

/// One charge of a route, resolved for one request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResolvedCharge {
    /// Which limit.
    pub limit: LimitName,
    /// Tokens to take.
    pub cost: u64,
    /// Who is charged.
    pub key: ResolvedKey,
}

/// The charges of a route, resolved for one request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resolution {
    /// Each charge, in the order given.
    pub resolved: Vec<ResolvedCharge>,
    /// Those that count, grouped by item in order of first appearance: all, or those whose key was found.
    pub charges: Vec<Charges>,
}

impl Resolution {
    /// Decided as `route` wants: what it says about a failing store goes before what its limits say.
    #[must_use]
    pub fn on(mut self, route: &Route) -> Self {
        let as_wanted = |charges: Charges| {
            let rule = route.on_store_failure().unwrap_or(charges.on_store_failure());
            let atomic = route.is_atomic() || charges.is_atomic();
            charges.with_store_failure(rule).atomically(atomic)
        };
        self.charges = self.charges.into_iter().map(as_wanted).collect();
        self
    }

    /// The charges whose key is missing an entry, with that entry.
    pub fn missing(&self) -> impl Iterator<Item = (&LimitName, &KeyPart)> {
        self.resolved.iter().filter_map(|charge| match &charge.key {
            ResolvedKey::Missing(part) => Some((&charge.limit, part)),
            ResolvedKey::Found { .. } => None,
        })
    }
}

impl Policy {
    /// The charges of one decision, grouped by item in order of first appearance.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownLimit`], [`Error::UnknownPlan`], [`Error::MissingDimension`], [`Error::SurplusDimension`],
    /// [`Error::EmptyDimension`], [`Error::NoSecrets`], or [`Error::Core`] for a dimension given twice, a key over 2 KB, a
    /// cost out of range, a limit charged twice on one key, too many of them or too many items, or no charge at all.
    pub fn charges(&self, wanted: &[Wanted<'_>]) -> Result<Vec<Charges>> {
        Ok(self.charges_and_keys(wanted)?.0)
    }

    /// As [`Self::charges`], and the keys that each of `wanted` is counted by: one, and one more for each secret that is
    /// being retired, if it holds personal values.
    ///
    /// # Errors
    ///
    /// As [`Self::charges`].
    pub fn charges_and_keys(&self, wanted: &[Wanted<'_>]) -> Result<(Vec<Charges>, Vec<Vec<Key>>)> {
        let mut grouped = Grouped::default();
        let mut all = Vec::with_capacity(wanted.len());
        for wanted in wanted {
            let limit = self.limit(wanted.limit)?;
            let plan = self.plans().resolve(wanted.plan)?;
            let keys = given_keys(self, limit, wanted.key)?;
            for key in &keys {
                grouped.add(limit, key.clone(), self.charge(limit, plan, wanted.cost))?;
            }
            all.push(keys);
        }
        if grouped.0.is_empty() {
            return Err(tollgate_core::Error::NoCharges.into());
        }
        Ok((grouped.finish(self)?, all))
    }

    /// Resolves the charges of a route, or any others, for one request: `lookup` gives the value of a dimension, or
    /// `None` (an empty value counts as none). A missing dimension is not an error: see [`ResolvedKey::Missing`].
    ///
    /// # Errors
    ///
    /// As [`Self::charges`], without those about missing, surplus and empty dimensions, and with [`IfMissing::Share`]
    /// without those about the key.
    pub fn resolve(
        &self,
        charges: &[RouteCharge],
        lookup: impl Fn(&str) -> Option<String>,
        plan: Option<&str>,
        if_missing: IfMissing,
    ) -> Result<Resolution> {
        let plan = self.plans().resolve(plan)?;
        let mut grouped = Grouped::default();
        let mut resolved = Vec::with_capacity(charges.len());
        for RouteCharge { limit, cost, settle_within } in charges {
            let limit = self.limit(limit.as_str())?;
            let key = match (looked_up_key(self, limit, &lookup), if_missing) {
                (Err(Error::Core(tollgate_core::Error::KeyTooLong { .. })), IfMissing::Share) => too_long(limit)?,
                (key, _) => key?,
            };
            let charge = || Charge { settled_within: *settle_within, ..self.charge(limit, plan, *cost) };
            match (&key, if_missing) {
                (ResolvedKey::Found { key, retiring, .. }, _) => {
                    for key in std::iter::once(key).chain(retiring) {
                        grouped.add(limit, key.clone(), charge())?;
                    }
                }
                (_, IfMissing::LeaveOut) => {}
                (_, IfMissing::Share) => grouped.add(limit, shared_key(limit)?, charge())?,
            }
            resolved.push(ResolvedCharge { limit: limit.name.clone(), cost: *cost, key });
        }
        Ok(Resolution { resolved, charges: grouped.finish(self)? })
    }

    /// The items that the policy's limits can keep of `key`: the shared one, and those that limits have for themselves, all shards of one
    /// after the other.
    #[must_use]
    pub fn items(&self, key: &Key) -> Vec<ItemKey> {
        let own = self.limits_on(key).filter(|limit| limit.has_own_item());
        let own = own.flat_map(|limit| limit.items(key.clone()));
        std::iter::once(ItemKey::shared(key.clone())).chain(own).collect()
    }

    /// The limit `name`, which must be one that `key` can be counted by.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownLimit`] or [`Error::OtherKey`].
    pub fn limit_on(&self, name: &str, key: &Key) -> Result<&Limit> {
        let limit = self.limit(name)?;
        if can_be(limit, key) {
            return Ok(limit);
        }
        let names: Vec<_> = self.limits_on(key).map(|limit| limit.name.as_str()).collect();
        let help = match (suggest::nearest(name, names.iter().copied()), names.as_slice()) {
            (Some(name), _) => format!("did you mean `{name}`?"),
            (None, []) => "no limit of the policy has such a key".to_owned(),
            (None, names) => format!("limits of such a key: {}", suggest::quoted(names.iter().copied())),
        };
        Err(Error::OtherKey { limit: name.to_owned(), dimensions: dimensions(key), wants: limit.wants(), help })
    }

    /// That some limit of the policy can be counted by `key`.
    ///
    /// # Errors
    ///
    /// [`Error::NobodysKey`].
    pub fn counts_by(&self, key: &Key) -> Result<()> {
        if self.limits_on(key).next().is_some() {
            return Ok(());
        }
        let mut wants: Vec<_> = self.limits().iter().map(|limit| format!("`{}`", limit.wants())).collect();
        wants.sort();
        wants.dedup();
        Err(Error::NobodysKey { dimensions: dimensions(key), wants: wants.join(", ") })
    }

    /// The limits that `key` can be counted by.
    fn limits_on<'a>(&'a self, key: &'a Key) -> impl Iterator<Item = &'a Limit> {
        self.limits().iter().filter(|limit| can_be(limit, key))
    }

    /// The limits that keep their state in `item`.
    fn limits_in<'a>(&'a self, item: &'a ItemKey) -> impl Iterator<Item = &'a Limit> {
        self.limits().iter().filter(move |limit| match &item.own {
            Some(name) => limit.name == *name,
            None => !limit.has_own_item() && can_be(limit, &item.key),
        })
    }

    fn charge(&self, limit: &Limit, plan: Option<&str>, cost: u64) -> Charge {
        let terms = limit.terms(plan, self.revision());
        let (on_change, max_wait, mode, penalty) = (limit.on_change, limit.max_wait, limit.mode, limit.penalty);
        let lease = limit.lease.map_or(0, NonZeroU64::get);
        let (coalesce, deny_cache) = (limit.coalesce, limit.deny_cache);
        let plain = Charge::new(limit.name.clone(), terms, cost);
        Charge { on_change, max_wait, mode, penalty, lease, coalesce, deny_cache, ..plain }
    }
}

/// Whether the limit's key can resolve to `key`.
fn can_be(limit: &Limit, key: &Key) -> bool {
    let dimensions: Vec<&str> = key.dimensions().map(|(name, _)| name).collect();
    if dimensions.iter().any(|name| name.starts_with(IfMissing::MARK)) {
        shared_key(limit).is_ok_and(|shared| shared == *key)
    } else {
        limit.can_resolve_to(dimensions.iter().copied())
    }
}

/// The names of a key's dimensions, for texts: values can be personal.
fn dimensions(key: &Key) -> String {
    let names: Vec<_> = key.dimensions().map(|(name, _)| format!("`{name}`")).collect();
    names.join(" and ")
}

/// Charges by item, in order of first appearance.
#[derive(Default)]
struct Grouped<'a>(Vec<(ItemKey, Vec<(&'a Limit, Charge)>)>);

impl<'a> Grouped<'a> {
    fn add(&mut self, limit: &'a Limit, key: Key, charge: Charge) -> Result<()> {
        let item = limit.item(key);
        if let Some((_, charges)) = self.0.iter_mut().find(|(known, _)| *known == item) {
            charges.push((limit, charge));
        } else if self.0.len() < Charges::MOST_ITEMS {
            self.0.push((item, vec![(limit, charge)]));
        } else {
            return Err(tollgate_core::Error::TooManyItems.into());
        }
        Ok(())
    }

    fn finish(self, policy: &Policy) -> Result<Vec<Charges>> {
        let build = |(item, charged): (ItemKey, Vec<(&Limit, Charge)>)| {
            let horizon = policy.limits_in(&item).map(Limit::horizon_secs).max().unwrap_or(0);
            let rule = charged.iter().map(|(limit, _)| limit.on_store_failure.unwrap_or_default()).max();
            let atomic = charged.iter().any(|(limit, _)| limit.atomic);
            let first = charged.iter().any(|(limit, _)| limit.first);
            // A limit that is divided is alone in its items.
            let shards = charged.first().and_then(|(limit, _)| limit.shards);
            let charges = Charges::new(item, charged.into_iter().map(|(_, charge)| charge).collect())?;
            let charges = charges
                .sharded(shards)
                .with_horizon(horizon)
                .atomically(atomic)
                .asked_first(first)
                .among(policy.instances());
            Ok(charges.with_store_failure(rule.unwrap_or_default()))
        };
        self.0.into_iter().map(build).collect()
    }
}

fn given_keys(policy: &Policy, limit: &Limit, given: &[(&str, &str)]) -> Result<Vec<Key>> {
    let (name, wants) = (|| limit.name.to_string(), || limit.wants());
    for (i, &(dimension, value)) in given.iter().enumerate() {
        let shown = || dimension.to_owned();
        if !limit.key.iter().any(|part| part.has(dimension)) {
            return Err(Error::SurplusDimension { limit: name(), dimension: shown(), wants: wants() });
        }
        if value.is_empty() {
            return Err(Error::EmptyDimension { limit: name(), dimension: shown(), wants: wants() });
        }
        if given.iter().take(i).any(|(earlier, _)| *earlier == dimension) {
            return Err(tollgate_core::Error::DuplicateDimension(shown()).into());
        }
    }
    let value = |dimension: &str| given.iter().find(|(name, _)| *name == dimension).copied();
    let mut key = Vec::with_capacity(limit.key.len());
    for part in &limit.key {
        let found = part.alternatives().find_map(value);
        let (dimension, value) =
            found.ok_or_else(|| Error::MissingDimension { limit: name(), wanted: part.to_string(), wants: wants() })?;
        let spelling = policy.one_spelling(dimension, value)?;
        if spelling.is_empty() {
            return Err(Error::EmptyDimension { limit: name(), dimension: dimension.to_owned(), wants: wants() });
        }
        key.push((dimension, spelling));
    }
    policy.keys(&key)
}

fn looked_up_key(policy: &Policy, limit: &Limit, lookup: &impl Fn(&str) -> Option<String>) -> Result<ResolvedKey> {
    let value = |dimension| -> Result<Option<(&str, String)>> {
        Ok(policy.value(dimension, lookup)?.map(|value| (dimension, value)))
    };
    let mut pairs = Vec::with_capacity(limit.key.len());
    for part in &limit.key {
        match part.alternatives().find_map(|dimension| value(dimension).transpose()) {
            Some(pair) => pairs.push(pair?),
            None => return Ok(ResolvedKey::Missing(part.clone())),
        }
    }
    let dimensions = pairs.iter().map(|(dimension, _)| (*dimension).to_owned()).collect();
    let mut keys = policy.keys(&pairs)?.into_iter();
    let key = keys.next().ok_or_else(|| tollgate_core::Error::EmptyKey(String::new()))?;
    Ok(ResolvedKey::Found { dimensions, key, retiring: keys.collect() })
}

/// The key that calls without a value for the limit's key share. It names every entry, so that the same entries in any
/// order are one key.
fn shared_key(limit: &Limit) -> Result<Key> {
    let name = |part: &KeyPart| format!("{}{part}", IfMissing::MARK);
    Ok(Key::new(limit.key.iter().map(|part| (name(part), IfMissing::VALUE)))?)
}

fn too_long(limit: &Limit) -> Result<ResolvedKey> {
    let first = limit.key.first().ok_or_else(|| tollgate_core::Error::EmptyKey(String::new()))?;
    Ok(ResolvedKey::Missing(first.clone()))
}
