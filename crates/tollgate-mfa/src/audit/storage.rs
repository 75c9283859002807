//! Entries as items of the table, and what each is known by.
//!
//! ```text
//! entry   attribute_not_exists(#seq)
//!         SET #seq = :seq, #at = :at, #event = …, #actor = …, #factor = …, #session = …, #detail.NAME = …,
//!             #before = :digest, #before_until = …, #x = :x
//! head    attribute_not_exists(#seq) OR #seq < :seq
//!         SET #seq = :seq, #digest = :digest, #until = :until
//! ```
//!
//! The head is never deleted by the table: a log would begin anew, and nobody could tell. Invariants: no write of this module changes an
//! entry that is there; the hash of an entry is over all of its attributes, whichever version wrote them, so that one that knows fewer can
//! still append after it.

use super::chain::{Link, Stored};
use super::entry::{Entry, Recorded};
use crate::grant::hashed;
use sha2::{Digest, Sha256};
use std::time::Duration;
use tollgate_core::{Error, Key, Result, Timestamp};
use tollgate_dynamodb::attributes::{self, AttributeValue, Attributes, EXPIRES_AT, binary, number, string};
use tollgate_dynamodb::expression::Expressions;
use tollgate_dynamodb::partition_key;

const SEQ: &str = "seq";
const AT: &str = "at";
const EVENT: &str = "event";
const ACTOR: &str = "actor";
const FACTOR: &str = "factor";
const SESSION: &str = "session";
const BEFORE: &str = "before";
const BEFORE_UNTIL: &str = "before_until";
const DIGEST: &str = "digest";
const UNTIL: &str = "until";
/// What the names of details begin with.
const DETAIL: &str = "detail.";

/// What is hashed beside an entry; nothing else is under that name.
const ENTRY: &[u8] = b"audit entry 1";

/// The partition key of the head of a log.
#[must_use]
pub fn head_key(account: &Key) -> String {
    partition_key::audit("head", account)
}

/// The partition key of an entry.
#[must_use]
pub fn entry_key(account: &Key, seq: u64) -> String {
    partition_key::audit(&seq.to_string(), account)
}

/// An entry as attributes, after `before`.
#[must_use]
pub fn attributes_of(entry: &Entry, before: &Link, now: Timestamp, retention: Duration) -> Attributes {
    // Never before the one before it, whatever the policy was then.
    let expires_at = (now + retention).as_secs().max(before.expires_at);
    let mut all = Attributes::from([
        (SEQ.to_owned(), number(before.seq + 1)),
        (AT.to_owned(), number(now.as_millis())),
        (EVENT.to_owned(), string(entry.event)),
        (ACTOR.to_owned(), string(&entry.actor)),
        (BEFORE.to_owned(), binary(&before.digest)),
        (BEFORE_UNTIL.to_owned(), number(before.expires_at)),
        (EXPIRES_AT.to_owned(), number(expires_at)),
    ]);
    all.extend(entry.factor.map(|factor| (FACTOR.to_owned(), string(factor))));
    all.extend(entry.session.as_ref().map(|name| (SESSION.to_owned(), string(hashed(name.as_bytes())))));
    all.extend(entry.details.iter().map(|(name, value)| (format!("{DETAIL}{name}"), string(value))));
    all
}

/// Renders the write of an entry.
#[must_use]
pub fn put(entry: &Attributes) -> Expressions {
    let mut out = Expressions::default();
    let condition = format!("attribute_not_exists({})", out.name("#seq", SEQ));
    let mut set = Vec::with_capacity(entry.len());
    for (i, (attribute, value)) in entry.iter().enumerate() {
        let name = if attribute == SEQ { "#seq".to_owned() } else { out.name(&format!("#a{i}"), attribute) };
        set.push(format!("{name} = {}", out.value(&format!(":a{i}"), value.clone())));
    }
    Expressions { condition, update: format!("SET {}", set.join(", ")), ..out }
}

/// Renders the head after its last entry.
#[must_use]
pub fn head(last: &Link) -> Expressions {
    let mut out = Expressions::default();
    let (name, seq) = (out.name("#seq", SEQ), out.value(":seq", number(last.seq)));
    let (digest, of_last) = (out.name("#digest", DIGEST), out.value(":digest", binary(&last.digest)));
    let (until, at) = (out.name("#until", UNTIL), out.value(":until", number(last.expires_at)));
    let condition = format!("attribute_not_exists({name}) OR {name} < {seq}");
    Expressions { condition, update: format!("SET {name} = {seq}, {digest} = {of_last}, {until} = {at}"), ..out }
}

/// Reads a head.
///
/// # Errors
///
/// [`Error::Stored`] for what this version does not write.
pub fn to_head(found: &Attributes) -> Result<Link> {
    Ok(Link {
        seq: attributes::required(found, SEQ)?,
        digest: bytes(found, DIGEST)?,
        expires_at: attributes::required(found, UNTIL)?,
    })
}

/// What the entry of that number is told by.
///
/// # Errors
///
/// [`Error::Stored`] for what this version does not write.
pub fn link(account: &Key, seq: u64, found: &Attributes) -> Result<Link> {
    let digest = digest(&entry_key(account, seq), found)?;
    Ok(Link { seq, digest, expires_at: attributes::required(found, EXPIRES_AT)? })
}

/// Reads the entry of that number.
///
/// # Errors
///
/// [`Error::Stored`] for what this version does not write.
pub fn to_stored(account: &Key, seq: u64, found: &Attributes) -> Result<Stored> {
    let link = link(account, seq, found)?;
    let text = |name: &str| attributes::text(found, name).map(str::to_owned);
    let some = |name: &str| found.contains_key(name).then(|| text(name)).transpose();
    let detail = |name: &String| Some((name.strip_prefix(DETAIL)?.to_owned(), text(name)));
    let details = found.keys().filter_map(detail).map(|(name, value)| Ok::<_, Error>((name, value?)));
    let mut details = details.collect::<Result<Vec<_>>>()?;
    details.sort();
    let before = Link {
        seq: seq.saturating_sub(1),
        digest: bytes(found, BEFORE)?,
        expires_at: attributes::required(found, BEFORE_UNTIL)?,
    };
    let recorded = Recorded {
        seq,
        at: Timestamp::from_millis(attributes::required(found, AT)?),
        event: text(EVENT)?,
        actor: text(ACTOR)?,
        factor: some(FACTOR)?,
        session: some(SESSION)?,
        details,
    };
    Ok(Stored { recorded, link, before })
}

/// The SHA-256 over all attributes by name, each part behind its length.
fn digest(pk: &str, found: &Attributes) -> Result<[u8; 32]> {
    let mut names: Vec<_> = found.keys().filter(|name| *name != partition_key::ATTRIBUTE).collect();
    names.sort();
    let mut hash = Sha256::new();
    let mut part = |part: &[u8]| {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    };
    part(ENTRY);
    part(pk.as_bytes());
    for name in names {
        part(name.as_bytes());
        let (kind, value): (&[u8], &[u8]) = match found.get(name) {
            Some(AttributeValue::S(text)) => (b"S", text.as_bytes()),
            Some(AttributeValue::N(number)) => (b"N", number.as_bytes()),
            Some(AttributeValue::B(blob)) => (b"B", blob.as_ref()),
            other => return Err(stored(name, &format!("{other:?}"))),
        };
        part(kind);
        part(value);
    }
    Ok(hash.finalize().into())
}

fn bytes(found: &Attributes, name: &str) -> Result<[u8; 32]> {
    let blob = found.get(name).and_then(|value| value.as_b().ok());
    let bytes = blob.and_then(|blob| blob.as_ref().try_into().ok());
    bytes.ok_or_else(|| stored(name, "no 32 bytes"))
}

fn stored(attribute: &str, found: &str) -> Error {
    Error::Stored { attribute: attribute.to_owned(), found: found.to_owned() }
}
