//! The item as DynamoDB attributes, both ways, and what it costs to write.
//!
//! Invariant: what this module writes it reads back unchanged; anything else is an error that names the attribute,
//! never a guess. Attributes that belong to no limit are left alone.

use aws_sdk_dynamodb::primitives::Blob;
pub use aws_sdk_dynamodb::types::AttributeValue;
use std::collections::{BTreeMap, HashMap};
use std::str::FromStr;
use tollgate_core::{Bucket, Entries, Entry, Error, Hold, Item, LimitName, Penalty, Result, Terms, Ticks};

/// The item's horizon, seconds.
pub const HORIZON: &str = "h";
/// What an operator has set for the key.
pub const HOLD: &str = "hold";
/// When DynamoDB may delete the item, epoch seconds (the table's TTL attribute).
pub const EXPIRES_AT: &str = "expires_at";

/// An item as the SDK gives it.
pub type Attributes = HashMap<String, AttributeValue>;

/// The names of a limit's attributes.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    pub(crate) tat: String,
    pub(crate) f: String,
    pub(crate) b: String,
    pub(crate) g: String,
    pub(crate) e: String,
}

impl Names {
    pub(crate) fn of(limit: &LimitName) -> Self {
        let name = |suffix| format!("{limit}.{suffix}");
        Self { tat: name("tat"), f: name("f"), b: name("b"), g: name("g"), e: name("e") }
    }
}

/// A number attribute.
#[must_use]
pub fn number(n: impl ToString) -> AttributeValue {
    AttributeValue::N(n.to_string())
}

/// A text attribute.
#[must_use]
pub fn string(text: impl ToString) -> AttributeValue {
    AttributeValue::S(text.to_string())
}

/// A set of texts, which has one at least.
#[must_use]
pub fn strings<T: ToString>(texts: impl IntoIterator<Item = T>) -> AttributeValue {
    AttributeValue::Ss(texts.into_iter().map(|text| text.to_string()).collect())
}

/// Bytes as an attribute.
#[must_use]
pub fn binary(bytes: &[u8]) -> AttributeValue {
    AttributeValue::B(Blob::new(bytes))
}

/// A set of byte strings; there is no empty one.
#[must_use]
pub fn binaries<'a, const N: usize>(all: impl IntoIterator<Item = &'a [u8; N]>) -> AttributeValue {
    AttributeValue::Bs(all.into_iter().map(|bytes| Blob::new(bytes.as_slice())).collect())
}

/// Entries as a set of numbers; there is no empty one.
pub(crate) fn numbers<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> AttributeValue {
    number_set(entries)
}

/// A set of numbers, which has one at least.
#[must_use]
pub fn number_set<T: ToString>(numbers: impl IntoIterator<Item = T>) -> AttributeValue {
    AttributeValue::Ns(numbers.into_iter().map(|n| n.to_string()).collect())
}

/// The numbers of a set.
///
/// # Errors
///
/// [`Error::Stored`] if there is no such set.
pub fn numbers_of<T: FromStr>(attributes: &Attributes, name: &str) -> Result<Vec<T>> {
    let value = attributes.get(name);
    let parsed = value.and_then(|v| v.as_ns().ok()?.iter().map(|n| n.parse().ok()).collect());
    parsed.ok_or_else(|| stored(name, value))
}

/// The name of the attribute that a limit's penalty is in.
pub(crate) fn penalty_name(limit: &LimitName) -> String {
    format!("{limit}.p")
}

/// Reads an item for a decision on some limits; others that cannot be read are left out, so that one limit's trouble is
/// not that of all that share its item.
///
/// # Errors
///
/// [`Error::Stored`] if an attribute of one of `required` or of the item is malformed.
pub fn to_item(attributes: &Attributes, required: &[&LimitName]) -> Result<Item> {
    let mut item = Item {
        hold: hold(attributes)?,
        horizon: optional(attributes, HORIZON)?,
        expires_at: expires_at(attributes)?,
        ..Item::default()
    };
    for limit in limits(attributes, ".tat") {
        match bucket(attributes, &limit) {
            Ok(bucket) => drop(item.buckets.insert(limit, bucket)),
            Err(error) if required.contains(&&limit) => return Err(error),
            Err(_) => {}
        }
    }
    for limit in limits(attributes, ".p") {
        match penalty(attributes, &limit) {
            Ok(penalty) => drop(item.penalties.insert(limit, penalty)),
            Err(error) if required.contains(&&limit) => return Err(error),
            Err(_) => {}
        }
    }
    Ok(item)
}

fn penalty(attributes: &Attributes, limit: &LimitName) -> Result<Penalty> {
    let name = penalty_name(limit);
    let value = attributes.get(&name);
    value.and_then(|p| p.as_n().ok()?.parse().ok()).ok_or_else(|| stored(&name, value))
}

/// The hold of an item.
///
/// # Errors
///
/// [`Error::Stored`].
pub(crate) fn hold(attributes: &Attributes) -> Result<Option<Hold>> {
    attributes.get(HOLD).map(|_| text(attributes, HOLD)?.parse()).transpose()
}

/// When an item may be deleted, epoch seconds.
///
/// # Errors
///
/// [`Error::Stored`].
pub(crate) fn expires_at(attributes: &Attributes) -> Result<Option<u64>> {
    optional(attributes, EXPIRES_AT)
}

/// The limits that an item has an attribute of with that ending.
fn limits(attributes: &Attributes, ending: &str) -> impl Iterator<Item = LimitName> {
    attributes.keys().filter_map(move |name| LimitName::new(name.strip_suffix(ending)?).ok())
}

fn bucket(attributes: &Attributes, limit: &LimitName) -> Result<Bucket> {
    let names = Names::of(limit);
    Ok(Bucket {
        tat: Ticks(required(attributes, &names.tat)?),
        terms: text(attributes, &names.f)?.parse::<Terms>()?,
        busy_period: text(attributes, &names.b)?.parse()?,
        gross: Ticks(required(attributes, &names.g)?),
        entries: entries(attributes, &names.e)?,
    })
}

fn entries(attributes: &Attributes, name: &str) -> Result<Entries> {
    let Some(value) = attributes.get(name) else { return Ok(Entries::default()) };
    let parsed = value.as_ns().ok().and_then(|ns| ns.iter().map(|n| n.parse::<Entry>().ok()).collect());
    parsed.ok_or_else(|| stored(name, value))
}

/// The attributes as text, sorted by name, for people to read.
#[must_use]
pub fn plain(attributes: &Attributes) -> BTreeMap<String, String> {
    let plain = |value: &AttributeValue| match value {
        AttributeValue::N(text) | AttributeValue::S(text) => text.clone(),
        AttributeValue::Ns(numbers) => {
            let mut numbers = numbers.clone();
            numbers.sort();
            numbers.join(" ")
        }
        other => format!("{other:?}"),
    };
    attributes.iter().map(|(name, value)| (name.clone(), plain(value))).collect()
}

fn stored(name: &str, found: impl std::fmt::Debug) -> Error {
    Error::Stored { attribute: name.to_owned(), found: format!("{found:?}") }
}

/// A text attribute's value.
///
/// # Errors
///
/// [`Error::Stored`] if there is none.
pub fn text<'a>(attributes: &'a Attributes, name: &str) -> Result<&'a str> {
    let value = attributes.get(name);
    value.and_then(|v| v.as_s().ok()).map(String::as_str).ok_or_else(|| stored(name, value))
}

/// A number attribute's value.
///
/// # Errors
///
/// [`Error::Stored`] if there is none of that type.
pub fn required<T: FromStr>(attributes: &Attributes, name: &str) -> Result<T> {
    optional(attributes, name)?.ok_or_else(|| stored(name, "nothing"))
}

/// A number attribute's value, if the item has it.
///
/// # Errors
///
/// [`Error::Stored`] if it is not of that type.
pub fn optional<T: FromStr>(attributes: &Attributes, name: &str) -> Result<Option<T>> {
    let Some(value) = attributes.get(name) else { return Ok(None) };
    let parsed = value.as_n().ok().and_then(|n| n.parse().ok());
    parsed.map(Some).ok_or_else(|| stored(name, value))
}

/// The byte strings of a set, each of that length; none if the item has no such attribute.
///
/// # Errors
///
/// [`Error::Stored`] if it is of another type or they have another length.
pub fn byte_strings<const N: usize>(attributes: &Attributes, name: &str) -> Result<Vec<[u8; N]>> {
    let Some(value) = attributes.get(name) else { return Ok(Vec::new()) };
    let parsed = value.as_bs().ok().and_then(|all| all.iter().map(|bytes| bytes.as_ref().try_into().ok()).collect());
    parsed.ok_or_else(|| stored(name, "no set of byte strings of that length"))
}

/// The texts of a set; none if the item has no such attribute.
///
/// # Errors
///
/// [`Error::Stored`] if it is of another type.
pub fn texts(attributes: &Attributes, name: &str) -> Result<Vec<String>> {
    let Some(value) = attributes.get(name) else { return Ok(Vec::new()) };
    value.as_ss().cloned().map_err(|value| stored(name, value))
}

/// Write units that DynamoDB bills for a write that found this item and failed its condition: its size in KB, rounded
/// up, at least 1. The reply does not say (Developer Guide, "Consuming write capacity": the larger of the item before
/// and after; a failed conditional write is billed all the same).
#[must_use]
pub fn write_units(attributes: Option<&Attributes>) -> u64 {
    let bytes: usize = attributes.into_iter().flatten().map(|(name, value)| name.len() + size(value)).sum();
    u64::try_from(bytes.div_ceil(1024)).unwrap_or(u64::MAX).max(1)
}

/// Bytes of a value (Developer Guide, "DynamoDB item sizes and formats"): strings as UTF-8, numbers about a byte per
/// two significant digits and one more.
fn size(value: &AttributeValue) -> usize {
    match value {
        AttributeValue::S(s) => s.len(),
        AttributeValue::N(n) => number_size(n),
        // A set has 3 bytes of its own, and 1 for each element.
        AttributeValue::Ns(numbers) => 3 + numbers.iter().map(|n| number_size(n) + 1).sum::<usize>(),
        AttributeValue::Ss(texts) => 3 + texts.iter().map(|text| text.len() + 1).sum::<usize>(),
        AttributeValue::B(bytes) => bytes.as_ref().len(),
        AttributeValue::Bs(all) => 3 + all.iter().map(|bytes| bytes.as_ref().len() + 1).sum::<usize>(),
        // This version writes no other types; whatever else is there weighs about what it prints.
        other => format!("{other:?}").len(),
    }
}

fn number_size(n: &str) -> usize {
    n.len().div_ceil(2) + 1
}
