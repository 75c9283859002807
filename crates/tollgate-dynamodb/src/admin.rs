//! What an operator does to one key: look at it, and give its tokens back.
//!
//! Invariant: a reset rewrites buckets under the same condition as any other change (exactly as seen), so it never
//! undoes a charge that it did not see, and it never deletes the item.

use crate::attributes::{self, Attributes};
use crate::error::{Error, Result};
use crate::store::{DynamoStore, Store, Written};
use tollgate_core::{Bucket, BusyPeriod, Item, Key, LimitName, LimitWrite, Timestamp, TokenBucket, Write};

/// A key as the table has it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Inspection {
    /// When it was read, by the table's clock.
    pub now: Timestamp,
    /// The item, or `None` if there is none. One that is past its `expires_at` and not deleted yet reads as none.
    pub item: Option<Item>,
    /// The raw attributes, whatever they are.
    pub raw: Option<Attributes>,
}

/// Reads a key. Limits whose attributes cannot be read are only in `raw`.
///
/// # Errors
///
/// The table cannot be read, or the item has another form.
pub async fn inspect(store: &DynamoStore, key: &Key) -> Result<Inspection> {
    let raw = store.attributes(key).await?;
    let now = store.moment().now;
    let item =
        raw.as_ref().map(|found| attributes::to_item(found, &[])).transpose()?.filter(|item| !item.is_expired(now));
    Ok(Inspection { now, item, raw })
}

/// Fills a key's buckets, or the one of `only`. Returns the limits that were not full.
///
/// # Errors
///
/// The table cannot be read or written, or the key is so contended that eight writes in a row were overtaken.
pub async fn reset<S: Store>(store: &S, key: &Key, only: Option<&LimitName>) -> Result<Vec<LimitName>> {
    const MOST_WRITES: u32 = 8;
    let mut found = store.read(key, &[]).await?;
    for _ in 0..MOST_WRITES {
        let now = store.moment().now;
        let item = found.take().unwrap_or_default();
        let is_meant = |limit: &LimitName| only.is_none_or(|o| o == limit);
        let owing = item.buckets.iter().filter(|(limit, bucket)| is_meant(limit) && !bucket.is_idle(now));
        let writes: Vec<_> = owing.map(|(limit, bucket)| fill(limit, bucket, now)).collect();
        if writes.is_empty() {
            return Ok(Vec::new());
        }
        let limits = writes.iter().map(|w| w.limit.clone()).collect();
        match store.write(key, &Write::new(writes, now, item.horizon.unwrap_or(0))).await? {
            Written::Applied(_) => return Ok(limits),
            Written::Refused(newer) => found = newer,
        }
    }
    Err(Error::Contended(MOST_WRITES))
}

fn fill(limit: &LimitName, seen: &Bucket, now: Timestamp) -> LimitWrite {
    // Full for every clock that agrees with the table's, not only for this one.
    let bucket = &seen.terms.bucket;
    let full = bucket.at(now) - bucket.span(TokenBucket::CLOCK_TOLERANCE_NS);
    LimitWrite::change(
        limit.clone(),
        seen,
        Bucket::starting(seen.terms.clone(), full, BusyPeriod { since: now, id: fastrand::u64(..) }),
    )
}
