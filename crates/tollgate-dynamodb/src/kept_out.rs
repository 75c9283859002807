//! Addresses that are to be kept out in front: handed over by whoever has locked one once too often, taken up by whoever keeps the
//! list there.
//!
//! They are texts like `1767225600 192.0.2.7`, the second in which the lock has ended before the address, in sets in [`LISTS`] items.
//! Which of them is left to chance, so that no item sees all writes of an attack. Invariant: no list has more than [`MOST_LISTED`], so
//! that a write of one stays small whatever happens, and nothing is kept out for ever.

use crate::attributes::{self, AttributeValue, Attributes};
use crate::expression::Expressions;
use crate::items::Items;
use crate::partition_key;
use crate::{Error, Result};
use std::collections::BTreeMap;
use tollgate_core::{PenaltyRule, Timestamp};

/// How many items the addresses are in.
pub const LISTS: usize = 8;

/// How many of them an item has at most: about 10 KB.
pub const MOST_LISTED: usize = 250;

/// The attribute.
const ADDRESSES: &str = "addresses";

/// How long a list is kept that nobody adds to: as long as the longest lock, and a day.
const KEPT_SECS: u64 = PenaltyRule::LONGEST.as_secs() + 86_400;

/// An address that is to be kept out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeptOut {
    /// The address, or the block that counts as one, as the policy's `client_ip` has it.
    pub address: String,
    /// Until when.
    pub until: Timestamp,
    list: usize,
}

fn pk(list: usize) -> String {
    partition_key::edge(&format!("kept-out.{list}"))
}

fn text(address: &str, until_secs: u64) -> String {
    format!("{until_secs} {address}")
}

/// Which item an address goes to, and the write that has it there; a list that is full refuses it.
pub(crate) fn adding(address: &str, until: Timestamp, now: Timestamp) -> (String, Expressions) {
    let mut out = Expressions::default();
    let (all, x) = (out.name("#all", ADDRESSES), out.name("#x", attributes::EXPIRES_AT));
    let until_secs = until.as_secs() + 1;
    let one = out.value(":one", AttributeValue::Ss(vec![text(address, until_secs)]));
    let most = out.value(":most", attributes::number(MOST_LISTED));
    let forgotten = out.value(":x", attributes::number(now.as_secs() + KEPT_SECS));
    let condition = format!("attribute_not_exists({all}) OR size({all}) < {most}");
    let update = format!("SET {x} = {forgotten} ADD {all} {one}");
    (pk(fastrand::usize(..LISTS)), Expressions { condition, update, ..out })
}

/// All that are listed, those whose time is over among them.
///
/// # Errors
///
/// Whatever keeps the table from answering, or [`tollgate_core::Error::Stored`] for what this version does not write.
pub async fn listed(items: &Items) -> Result<Vec<KeptOut>> {
    let found = items.begin().read_all((0..LISTS).map(pk)).await?;
    let mut all = Vec::new();
    for list in 0..LISTS {
        let Some(item) = found.get(&pk(list)) else { continue };
        for text in texts(item)? {
            all.push(read(text, list).ok_or_else(|| stored(text))?);
        }
    }
    Ok(all)
}

/// Takes these off their lists: one write a list that has any.
///
/// # Errors
///
/// Whatever keeps the table from answering; some may be off.
pub async fn remove(items: &Items, gone: &[KeptOut]) -> Result<()> {
    let mut by_list: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for KeptOut { address, until, list } in gone {
        by_list.entry(*list).or_default().push(text(address, until.as_secs()));
    }
    let call = items.begin();
    for (list, texts) in by_list {
        let mut out = Expressions::default();
        let (all, gone) = (out.name("#all", ADDRESSES), out.value(":gone", AttributeValue::Ss(texts)));
        let (condition, update) = (format!("attribute_exists({all})"), format!("DELETE {all} {gone}"));
        call.update(&pk(list), &Expressions { condition, update, ..out }).await?;
    }
    Ok(())
}

fn texts(item: &Attributes) -> Result<&[String]> {
    match item.get(ADDRESSES) {
        None => Ok(&[]),
        Some(AttributeValue::Ss(texts)) => Ok(texts),
        Some(other) => Err(stored(&format!("{other:?}"))),
    }
}

fn read(text: &str, list: usize) -> Option<KeptOut> {
    let (secs, address) = text.split_once(' ')?;
    Some(KeptOut { address: address.to_owned(), until: Timestamp::from_secs(secs.parse().ok()?), list })
}

fn stored(found: &str) -> Error {
    tollgate_core::Error::Stored { attribute: ADDRESSES.to_owned(), found: found.to_owned() }.into()
}
