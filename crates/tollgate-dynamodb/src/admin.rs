//! What an operator does to the item of a key: look at it, give its tokens back, set or lift a hold, forget it.
//!
//! Invariants: everything but forgetting is a conditional write on the item exactly as seen, so it never undoes what it did
//! not see, and it never deletes the item: that would forgive whatever else the item remembers. Forgetting deletes, and
//! never an item with a hold in force: erasing a person must not lift a ban. What is set for a caller that has several
//! items is set on all of them at once.

use crate::attributes::{self, Attributes};
use crate::error::{Error, Fate, Result};
use crate::expression::Expressions;
use crate::partition_key;
use crate::patience::Backoff;
use crate::store::{Deleted, DynamoStore, Sought, Store, Transacted, Written};
use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::future::join_all;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::time::Duration;
use tokio::time::sleep;
use tollgate_core::{
    Bucket, BusyPeriod, Hold, Item, ItemKey, Key, LimitName, LimitWrite, Override, Penalty, PenaltyWrite, Timestamp,
    Write,
};

/// Writes of a change that others overtake before it is given up.
const MOST_WRITES: u32 = 8;

/// An item as the table has it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Inspection {
    /// When it was read, by the table's clock.
    pub now: Timestamp,
    /// The item, or `None` if there is none. One that is past its `expires_at` and not deleted yet reads as none.
    pub item: Option<Item>,
    /// The raw attributes as text, whatever they are, sorted by name.
    pub raw: Option<BTreeMap<String, String>>,
}

/// Reads an item. Limits whose attributes cannot be read are only in `raw`.
///
/// # Errors
///
/// The table cannot be read, or the item has another form.
pub async fn inspect(store: &DynamoStore, item: &ItemKey) -> Result<Inspection> {
    let raw = store.attributes(item).await?;
    let now = store.moment().now;
    let item =
        raw.as_ref().map(|found| attributes::to_item(found, &[])).transpose()?.filter(|item| !item.is_expired(now));
    Ok(Inspection { now, item, raw: raw.as_ref().map(attributes::plain) })
}

/// Fills an item's buckets, or the one of `only`, and forgets their locks. Returns the limits that were not full, or remembered one.
///
/// # Errors
///
/// The table cannot be read or written, or the key is so contended that eight writes in a row were overtaken.
pub async fn reset<S: Store>(store: &S, item: &ItemKey, only: Option<&LimitName>) -> Result<Vec<LimitName>> {
    let mut found = patiently(|| store.read(item, &[])).await?.unwrap_or_default();
    for _ in 0..MOST_WRITES {
        let now = store.moment().now;
        let is_meant = |limit: &LimitName| only.is_none_or(|o| o == limit);
        let owing = found.buckets.iter().filter(|(limit, bucket)| is_meant(limit) && !bucket.is_full(now));
        let fills: Vec<_> = owing.map(|(limit, bucket)| fill(limit, bucket, now)).collect();
        let locked = found.penalties.iter().filter(|(limit, _)| is_meant(limit));
        let unlocks: Vec<_> = locked.map(|(l, seen)| PenaltyWrite::exact(l.clone(), Some(*seen), None)).collect();
        let write = Write::new(fills, now, found.horizon.unwrap_or(0), found.hold.as_ref()).with_penalties(unlocks);
        let limits: BTreeSet<_> = write.names().cloned().collect();
        let limits: Vec<_> = limits.into_iter().collect();
        if limits.is_empty() {
            return Ok(limits);
        }
        match patiently(|| store.write(item, &write)).await? {
            Written::Applied(_) => return Ok(limits),
            Written::Refused(newer) => found = newer.unwrap_or_default(),
        }
    }
    Err(Error::Contended { writes: MOST_WRITES, fate: Fate::NotApplied })
}

/// A change of what an operator has set for a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// Every call is denied until then.
    Ban(Timestamp),
    /// A limit has other figures until then.
    Override(LimitName, Override),
    /// What was set for one limit, or all that was set, ban included, ends now.
    Allow(Option<LimitName>),
    /// What is set stays, on every item of the caller, and so do the locks of its limits.
    Keep,
}

impl Order {
    /// What is in force after it, beside what `held` says.
    fn after(&self, held: Option<Hold>) -> Hold {
        let mut hold = Hold { id: fastrand::u64(..), ..held.unwrap_or_default() };
        match self {
            Self::Ban(until) => hold.banned_until = Some(*until),
            Self::Override(limit, figures) => drop(hold.overrides.insert(limit.clone(), *figures)),
            Self::Allow(Some(limit)) => drop(hold.overrides.remove(limit)),
            Self::Allow(None) => (hold.banned_until, hold.overrides) = (None, BTreeMap::new()),
            Self::Keep => {}
        }
        hold
    }

    /// The locks that all of the items have after it: where something is kept, of each limit the one that ends last.
    fn locks(&self, found: &[Item]) -> BTreeMap<LimitName, Penalty> {
        let mut locks = BTreeMap::new();
        for (limit, lock) in found.iter().filter(|_| *self == Self::Keep).flat_map(|item| &item.penalties) {
            let last = locks.entry(limit.clone()).or_insert(*lock);
            *last = (*last).max(*lock);
        }
        locks
    }
}

/// What was in force for a caller before an order, and what is now.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ordered {
    /// What was in force on any of its items.
    pub before: Option<Hold>,
    /// What is in force on all of them.
    pub after: Option<Hold>,
    /// The last lock of each limit that has one, if they were carried: [`Order::Keep`].
    pub locks: BTreeMap<LimitName, Penalty>,
}

/// Carries out `order` on the items that one caller has in the same place: one, and one more for each secret that is being
/// retired. All get the same hold, `id` included, in one write or one transaction: what was in force on one of them is kept
/// and reaches the others. It is in force with the next decision, in every process; one that has just denied the key sees
/// within a second that it is lifted.
///
/// # Errors
///
/// The table cannot be read or written, the key is so contended that eight writes in a row were overtaken, or
/// [`tollgate_core::Error::TooManyOverrides`].
pub async fn order<S: Store>(store: &S, items: &[ItemKey], order: &Order) -> Result<Ordered> {
    let read = join_all(items.iter().map(|item| patiently(|| store.read(item, &[])))).await;
    let read = read.into_iter().collect::<Result<Vec<_>>>()?;
    let mut found: Vec<Item> = read.into_iter().map(Option::unwrap_or_default).collect();
    for _ in 0..MOST_WRITES {
        let now = store.moment().now;
        let before = held_by_any(&found, now);
        let after = order.after(before.clone()).in_force(now);
        let overrides = after.iter().flat_map(|hold| hold.overrides.values());
        if overrides.clone().count() > Hold::MOST_OVERRIDES {
            return Err(tollgate_core::Error::TooManyOverrides(overrides.count()).into());
        }
        if let Order::Override(limit, over) = order {
            let stored = found.iter().filter_map(|item| item.buckets.get(limit));
            let keeps_period = |bucket: &Bucket| bucket.terms.policy().figures.shares_state_with(&over.figures);
            if !stored.clone().all(keeps_period) {
                return Err(tollgate_core::Error::OverridePeriod(limit.to_string()).into());
            }
        }
        // The figures' debt must be remembered like any other.
        let needed = overrides.map(|figures| figures.figures.horizon_secs()).max().unwrap_or(0);
        let locks = order.locks(&found);
        let is_done = match &after {
            None => found.iter().all(|item| item.hold.is_none()),
            Some(_) => *order == Order::Keep && found.iter().all(|item| item.hold == before),
        };
        if is_done && found.iter().all(|item| lacking(item, &locks).is_empty()) {
            return Ok(Ordered { before, after, locks });
        }
        // A lock is remembered for as long as where it was.
        let carried = found.iter().filter(|_| !locks.is_empty()).filter_map(|item| item.horizon).max().unwrap_or(0);
        let needed = needed.max(carried);
        // All of them, those without a hold as well: they were not read at one instant, and may have got one since.
        let write = |item: &Item| {
            Write::set_hold(now, item.horizon.unwrap_or(0).max(needed), item.hold.as_ref(), after.clone())
                .with_penalties(lacking(item, &locks))
        };
        let writes: Vec<_> = found.iter().map(write).collect();
        if write_all(store, items, &writes, &mut found).await? {
            return Ok(Ordered { before, after, locks });
        }
    }
    Err(Error::Contended { writes: MOST_WRITES, fate: Fate::NotApplied })
}

/// What gives an item those of the locks that it lacks.
fn lacking(item: &Item, locks: &BTreeMap<LimitName, Penalty>) -> Vec<PenaltyWrite> {
    let lacking = locks.iter().filter(|(limit, lock)| item.penalties.get(*limit) != Some(*lock));
    let write = |(limit, lock): (&LimitName, &Penalty)| {
        PenaltyWrite::exact(limit.clone(), item.penalties.get(limit).copied(), Some(*lock))
    };
    lacking.map(write).collect()
}

/// What is in force on any of a caller's items: the ban that ends last, and of a limit the figures of the first item that has
/// some.
fn held_by_any(found: &[Item], now: Timestamp) -> Option<Hold> {
    let holds = found.iter().filter_map(|item| item.hold.as_ref()?.in_force(now));
    holds.reduce(|mut all, other| {
        all.banned_until = all.banned_until.max(other.banned_until);
        for (limit, figures) in other.overrides {
            all.overrides.entry(limit).or_insert(figures);
        }
        all
    })
}

/// Writes to each of the items, all or none. Says whether it did; if not, `found` has what others have made of them.
async fn write_all<S: Store>(store: &S, items: &[ItemKey], writes: &[Write], found: &mut [Item]) -> Result<bool> {
    let newer = match (items, writes) {
        ([item], [write]) => match patiently(|| store.write(item, write)).await? {
            Written::Applied(_) => return Ok(true),
            Written::Refused(newer) => vec![Some(newer)],
        },
        _ => {
            let several: Vec<_> = items.iter().zip(writes).collect();
            match patiently(|| store.transact(&several)).await? {
                Transacted::Applied => return Ok(true),
                Transacted::Refused(newer) => newer,
            }
        }
    };
    for (found, newer) in found.iter_mut().zip(newer) {
        if let Some(newer) = newer {
            *found = newer.unwrap_or_default();
        }
    }
    Ok(false)
}

/// A hold that is in force.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Standing {
    /// The partition key of its item.
    pub pk: String,
    /// Its item; `None` if the key is a digest, which does not tell.
    pub item: Option<ItemKey>,
    /// What of it is in force.
    pub hold: Hold,
}

/// All holds in force, by `pk`. Reads the whole table.
///
/// # Errors
///
/// The table or an item's hold cannot be read.
pub async fn holds(store: &DynamoStore) -> Result<Vec<Standing>> {
    let mut holds = Vec::new();
    scan(store, Sought::Held, |found| {
        let pk = attributes::text(found, partition_key::ATTRIBUTE)?;
        if let Some(hold) = attributes::hold(found)?.and_then(|hold| hold.in_force(store.moment().now)) {
            holds.push(Standing { pk: pk.to_owned(), item: partition_key::parse(pk), hold });
        }
        Ok(())
    })
    .await?;
    holds.sort_by(|a, b| a.pk.cmp(&b.pk));
    Ok(holds)
}

/// What an item remembers of limits that lock.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Locked {
    /// The partition key of the item.
    pub pk: String,
    /// The last lock of each limit, in force or over.
    pub locks: BTreeMap<LimitName, Penalty>,
}

/// All that is remembered of the locks of `limits`, by `pk`. Reads the whole table, unless there are no such limits.
///
/// # Errors
///
/// The table or an item's lock cannot be read.
pub async fn locks(store: &DynamoStore, limits: Vec<LimitName>) -> Result<Vec<Locked>> {
    let mut all = Vec::new();
    if limits.is_empty() {
        return Ok(all);
    }
    scan(store, Sought::Locked(limits), |found| {
        let pk = attributes::text(found, partition_key::ATTRIBUTE)?;
        all.push(Locked { pk: pk.to_owned(), locks: attributes::to_item(found, &[])?.penalties });
        Ok(())
    })
    .await?;
    all.sort_by(|a, b| a.pk.cmp(&b.pk));
    Ok(all)
}

/// For how long from now the table remembers items without a hold in force, in seconds: the longest of those whose `pk` contains
/// one of `marks`, and that `counts` takes in. It is asked about digests, too, as `None`. Reads the whole table.
///
/// # Errors
///
/// The table or an item's hold cannot be read.
pub async fn memory_secs(
    store: &DynamoStore,
    marks: Vec<String>,
    counts: impl Fn(Option<&ItemKey>) -> bool,
) -> Result<u64> {
    let mut longest = 0;
    scan(store, Sought::Keys(marks.into_iter().map(|mark| vec![mark]).collect()), |found| {
        let item = partition_key::parse(attributes::text(found, partition_key::ATTRIBUTE)?);
        let now = store.moment().now;
        // An item is kept until its hold has ended, which says nothing of what is owed.
        let is_held = attributes::hold(found)?.is_some_and(|hold| hold.in_force(now).is_some());
        if !is_held && counts(item.as_ref()) {
            // `expires_at` is a second past the horizon of the last write.
            let until = attributes::expires_at(found)?.unwrap_or(0);
            longest = longest.max(until.saturating_sub(now.as_secs() + 1));
        }
        Ok(())
    })
    .await?;
    Ok(longest)
}

/// Hands each item that is sought to `visit`.
async fn scan(store: &DynamoStore, sought: Sought, mut visit: impl FnMut(&Attributes) -> Result<()>) -> Result<()> {
    let mut start = None;
    loop {
        let (page, next) = patiently(|| store.scan(&sought, start.clone())).await?;
        page.iter().try_for_each(&mut visit)?;
        start = next;
        if start.is_none() {
            return Ok(());
        }
    }
}

/// An item that is to be forgotten.
#[derive(Debug, Clone, PartialEq)]
pub struct Forgettable {
    pk: String,
    key: Key,
    /// The attribute `hold`, whatever it is: what lies in it must have ended.
    hold: Option<AttributeValue>,
}

impl Forgettable {
    /// Requires that the hold is still what was seen.
    fn unchanged(&self) -> Expressions {
        let mut out = Expressions::default();
        let hold = out.name("#hold", attributes::HOLD);
        out.condition = match &self.hold {
            None => format!("attribute_not_exists({hold})"),
            Some(seen) => format!("{hold} = {}", out.value(":hold", seen.clone())),
        };
        out
    }

    /// Its partition key.
    #[must_use]
    pub fn pk(&self) -> &str {
        &self.pk
    }

    fn of(pk: &str, key: &Key, found: &Attributes, now: Timestamp) -> Result<Self> {
        if attributes::hold(found)?.is_some_and(|hold| hold.in_force(now).is_some()) {
            return Err(Error::Held { key: key.to_string() });
        }
        Ok(Self { pk: pk.to_owned(), key: key.clone(), hold: found.get(attributes::HOLD).cloned() })
    }
}

/// What the table remembers of somebody.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Remembered {
    /// The items, by `pk`.
    pub items: Vec<Forgettable>,
    /// Items whose key is a digest, which does not tell whether it is theirs.
    pub digests: u64,
    /// When the last of those has expired, epoch seconds.
    pub digests_expire_at: Option<u64>,
}

/// Finds what is to be forgotten of somebody: the items `exact`, and of every key that has all dimensions of one of `keys`.
/// Reads the whole table, once.
///
/// # Errors
///
/// The table or an item's hold cannot be read, or [`Error::Held`].
pub async fn remembered(store: &DynamoStore, keys: &[Key], exact: &[ItemKey]) -> Result<Remembered> {
    let mut all = Remembered::default();
    for item in exact {
        if let Some(found) = store.attributes(item).await? {
            all.items.push(Forgettable::of(&partition_key::of(item), &item.key, &found, store.moment().now)?);
        }
    }
    let exact: BTreeSet<_> = all.items.iter().map(|item| item.pk.clone()).collect();
    let wanted: Vec<BTreeSet<_>> = keys.iter().map(|key| key.dimensions().collect()).collect();
    let part = |(name, value): &(&str, &str)| Key::new([(*name, *value)]).map(|one| one.to_string());
    let parts = wanted.iter().map(|dimensions| dimensions.iter().map(part).collect());
    let parts = parts.collect::<tollgate_core::Result<Vec<Vec<_>>>>()?;
    scan(store, Sought::Keys(parts), |found| {
        let pk = attributes::text(found, partition_key::ATTRIBUTE)?;
        if exact.contains(pk) {
            return Ok(());
        }
        // A `pk` that contains a dimension as text need not have it.
        let has_all = |key: &Key| {
            let dimensions = key.dimensions().collect();
            wanted.iter().any(|wanted| wanted.is_subset(&dimensions))
        };
        if let Some(key) = partition_key::key_of(pk).filter(has_all) {
            all.items.push(Forgettable::of(pk, &key, found, store.moment().now)?);
        } else if pk.starts_with(partition_key::DIGEST) {
            all.digests += 1;
            // A stranger's item that cannot be read is no reason to remember somebody.
            all.digests_expire_at = all.digests_expire_at.max(attributes::expires_at(found).unwrap_or_default());
        }
        Ok(())
    })
    .await?;
    all.items.sort_by(|a, b| a.pk.cmp(&b.pk));
    Ok(all)
}

/// Deletes an item, and says whether it was still there. What is owed on it is forgiven.
///
/// # Errors
///
/// The table cannot be written, [`Error::Held`] if a hold has been set since, or the hold changed eight times in a row.
pub async fn forget(store: &DynamoStore, item: Forgettable) -> Result<bool> {
    let mut item = item;
    for _ in 0..MOST_WRITES {
        match patiently(|| store.delete(&item.pk, item.unchanged())).await? {
            Deleted::Gone { existed } => return Ok(existed),
            Deleted::Refused(found) => item = Forgettable::of(&item.pk, &item.key, &found, store.moment().now)?,
        }
    }
    Err(Error::Contended { writes: MOST_WRITES, fate: Fate::NotApplied })
}

/// Asks again what the table has said that it has not done: a scan reads the whole table, and must not end for a page that
/// was throttled.
async fn patiently<T, F: Future<Output = Result<T>>>(request: impl Fn() -> F) -> Result<T> {
    let mut backoff = Backoff::new(Duration::from_millis(100));
    for _ in 1..MOST_WRITES {
        match request().await {
            Err(error) if error.may_be_retried() => sleep(backoff.next()).await,
            answer => return answer,
        }
    }
    request().await
}

fn fill(limit: &LimitName, seen: &Bucket, now: Timestamp) -> LimitWrite {
    let full = seen.terms.figures.full(now);
    let next = Bucket::starting(seen.terms.clone(), full, BusyPeriod { since: now, id: fastrand::u64(..) });
    LimitWrite::exact(limit.clone(), Some(seen), next)
}
