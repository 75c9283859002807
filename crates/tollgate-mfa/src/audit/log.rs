//! Appends to a log, and reads it.
//!
//! Whoever appends writes the number after the head's; if another was faster, the refusal has that entry, and with it all that it takes to
//! write the next number. The head is written after the entry, so that whoever dies between them, or is refused there, leaves a head that
//! is behind: the next one goes on from what it finds. Invariant: what was appended is in the chain once the call returns; what the table
//! does not answer is an error, and a change that was to be written with its entry is not there without it.

use super::chain::{self, Break, Link, Stored};
use super::entry::{Entry, Recorded};
use super::storage;
use crate::error::Result;
use std::collections::BTreeMap;
use std::time::Duration;
use tollgate_core::Key;
use tollgate_dynamodb::attributes::Attributes;
use tollgate_dynamodb::expression::Expressions;
use tollgate_dynamodb::items::Call;
use tollgate_dynamodb::{Error, Items, Together, Updated};

/// What became of a write that was to be in the log.
#[derive(Debug, Clone, PartialEq)]
pub enum Logged {
    /// Its condition held: it is written, and in the log.
    Applied,
    /// Its condition did not hold: neither is; this is what was found of the item.
    Refused(Option<Attributes>),
}

/// A log as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Read {
    /// What is in it and has not expired, the first first.
    pub entries: Vec<Recorded>,
    /// What was done to it, the latest first.
    pub breaks: Vec<Break>,
    /// What tells of its last entry.
    pub last: Link,
}

/// The logs of accounts and tenants among these items.
#[derive(Debug, Clone, Copy)]
pub struct AuditLog<'i> {
    items: &'i Items,
    retention: Duration,
}

impl<'i> AuditLog<'i> {
    /// Writes after which an entry is given up, since others append all the time. One is what it takes alone.
    pub const MOST_WRITES: u32 = 64;
    /// Entries that are read at once.
    const AT_ONCE: u64 = 100;

    /// Logs whose new entries are kept for `retention`.
    #[must_use]
    pub fn new(items: &'i Items, retention: Duration) -> Self {
        Self { items, retention }
    }

    /// Appends an entry to the log of an account or tenant, and returns its number. One read and two writes.
    ///
    /// # Errors
    ///
    /// The table gives no answer; it may have been appended.
    pub async fn append(&self, account: &Key, entry: &Entry) -> Result<u64> {
        let call = &self.items.begin();
        let mut before = self.head(call, account).await?;
        for _ in 0..Self::MOST_WRITES {
            let next = self.next(account, entry, &before)?;
            match call.update(&next.pk, &next.rendered).await? {
                Updated::Applied(_) => {
                    self.move_head(call, account, &next.link).await;
                    return Ok(next.link.seq);
                }
                Updated::Refused(Some(found)) => before = link(account, next.link.seq, &found)?,
                // It was erased meanwhile.
                Updated::Refused(None) => before = self.head(call, account).await?,
            }
        }
        Err(call.contended().into())
    }

    /// Writes the item of `pk` if the condition holds, and appends the entry, or neither: one transaction, of twice the units. One
    /// read, the transaction, and a write.
    ///
    /// # Errors
    ///
    /// The table gives no answer; both may be written, or neither.
    pub async fn append_with(
        &self,
        call: &Call<'_>,
        account: &Key,
        entry: &Entry,
        pk: &str,
        change: &Expressions,
    ) -> Result<Logged> {
        let mut before = self.head(call, account).await?;
        for _ in 0..Self::MOST_WRITES {
            let Next { pk: entry_pk, rendered, link: last } = self.next(account, entry, &before)?;
            let both = [(pk.to_owned(), change.clone()), (entry_pk, rendered)];
            let refused = match call.update_together(&both).await? {
                Together::Applied => {
                    self.move_head(call, account, &last).await;
                    return Ok(Logged::Applied);
                }
                Together::Refused(refused) => refused,
            };
            let mut refused = refused.into_iter();
            if let Some(found) = refused.next().flatten() {
                return Ok(Logged::Refused(found));
            }
            before = match refused.next().flatten() {
                Some(Some(found)) => link(account, last.seq, &found)?,
                _ => self.head(call, account).await?,
            };
        }
        Err(call.contended().into())
    }

    /// Reads the log of an account or tenant, and checks it. A read for the head, one for the number after the last, and one for
    /// every hundred entries.
    ///
    /// # Errors
    ///
    /// The table gives no answer, or an item is nothing that an entry is.
    pub async fn read(&self, account: &Key) -> Result<Read> {
        let head = self.head(&self.items.begin(), account).await?;
        let mut entries = BTreeMap::new();
        let mut last = head;
        while let Some(stored) = self.entry(account, last.seq + 1).await? {
            last = stored.link;
            entries.insert(last.seq, stored);
        }
        let now = self.items.now().as_secs();
        let mut top = head.seq;
        while top > 0 {
            let bottom = top.saturating_sub(Self::AT_ONCE - 1).max(1);
            let some = self.entries(account, bottom..=top, now).await?;
            let is_all = some.get(&bottom).is_none_or(|stored| stored.link.expires_at <= now);
            entries.extend(some);
            if is_all {
                break;
            }
            top = bottom - 1;
        }
        let breaks = chain::check(&head, &entries, now);
        let is_kept = |stored: &Stored| stored.link.expires_at > now;
        let entries = entries.into_values().filter(is_kept).map(|stored| stored.recorded).collect();
        Ok(Read { entries, breaks, last })
    }

    /// Those of a hundred entries that are there. What a read that may be behind does not find is looked for by one that is not.
    async fn entries(
        &self,
        account: &Key,
        range: std::ops::RangeInclusive<u64>,
        now: u64,
    ) -> Result<BTreeMap<u64, Stored>> {
        let pks = range.clone().map(|seq| storage::entry_key(account, seq));
        let found = self.items.begin().read_all(pks).await?;
        let mut entries = BTreeMap::new();
        for seq in range.rev() {
            let pk = storage::entry_key(account, seq);
            let stored = match found.get(&pk) {
                Some(found) => Some(storage::to_stored(account, seq, found).map_err(Error::from)?),
                None => self.entry(account, seq).await?,
            };
            let Some(stored) = stored else { continue };
            // Whatever is before it has expired as well.
            let is_last = stored.before.expires_at <= now;
            entries.insert(seq, stored);
            if is_last {
                break;
            }
        }
        Ok(entries)
    }

    async fn entry(&self, account: &Key, seq: u64) -> Result<Option<Stored>> {
        let pk = storage::entry_key(account, seq);
        let found = self.items.begin().read(&pk).await?;
        Ok(found.map(|found| storage::to_stored(account, seq, &found)).transpose().map_err(Error::from)?)
    }

    async fn head(&self, call: &Call<'_>, account: &Key) -> Result<Link> {
        let found = call.read(&storage::head_key(account)).await?;
        let head = found.map(|found| storage::to_head(&found)).transpose().map_err(Error::from)?;
        Ok(head.unwrap_or_default())
    }

    fn next(&self, account: &Key, entry: &Entry, before: &Link) -> Result<Next> {
        let seq = before.seq + 1;
        let attributes = storage::attributes_of(entry, before, self.items.now(), self.retention);
        // Not from the reply: a transaction has none.
        let link = link(account, seq, &attributes)?;
        Ok(Next { pk: storage::entry_key(account, seq), rendered: storage::put(&attributes), link })
    }

    /// The entry is in the chain, whatever becomes of this: the next one goes on from what it finds.
    async fn move_head(&self, call: &Call<'_>, account: &Key, last: &Link) {
        if let Err(error) = call.update(&storage::head_key(account), &storage::head(last)).await {
            tracing::warn!(%error, "the head of an audit log is behind until the next entry");
        }
    }
}

/// An entry that is to be written.
struct Next {
    pk: String,
    rendered: Expressions,
    /// What it will be told by.
    link: Link,
}

fn link(account: &Key, seq: u64, found: &Attributes) -> Result<Link> {
    Ok(storage::link(account, seq, found).map_err(Error::from)?)
}
