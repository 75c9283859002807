//! Cohorts and the ladder as items of the table.
//!
//! ```text
//! sent       (attribute_not_exists(#m) OR size(#m) < :most)             ADD #s :n, #m :number, #e :next  SET #x = :x
//! sent only  attribute_exists(#s)                                       ADD #s :n                          SET #x = :x
//! verified   attribute_exists(#s) AND (attribute_not_exists(#v) OR #v < #s)     ADD #v :n
//! refused    (attribute_not_exists(#r) OR #r < :most)                   ADD #r :n                          SET #x = :x
//! ladder     attribute_not_exists(#w) OR #w = :seen                     SET #w = :writes, #l = :ladder
//! ```
//!
//! A cohort's item has four numbers and two sets for each block, under the block: `s:+4072123`. Invariant: the expressions say what
//! [`Change::apply`] does; counts are added up by the table, so that no writer has to have seen another's.

use super::cohort::{Change, CohortKey, Tally};
use super::ladder::Ladder;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tollgate_core::{Error, Result};
use tollgate_dynamodb::attributes::{self, Attributes, EXPIRES_AT, number, number_set, string};
use tollgate_dynamodb::expression::Expressions;
use tollgate_dynamodb::partition_key;

const SENT: char = 's';
const VERIFIED: char = 'v';
const REFUSED: char = 'r';
const NUMBERS: char = 'm';
const NEXT: char = 'e';
const WRITES: &str = "writes";
const LADDER: &str = "ladder";

/// How long a cohort is kept once its window is over: longer than the longest code is good and a judgement looks back.
const KEPT: Duration = Duration::from_secs(2 * 3600);

/// The partition key of a cohort's item.
#[must_use]
pub fn partition_key(key: &CohortKey) -> String {
    let CohortKey { country, window, shard } = key;
    partition_key::pumping(&format!("{country}/{}/{shard}", window.0))
}

/// The partition key of the ladder.
#[must_use]
pub fn ladder_key() -> String {
    partition_key::pumping(LADDER)
}

/// Renders a change of the counts of `block`.
#[must_use]
pub fn render(key: &CohortKey, block: &str, change: Change) -> Expressions {
    let mut out = Expressions::default();
    let mut name = |kind: char| out.name(&format!("#{kind}"), &format!("{kind}:{block}"));
    let (condition, add) = match change {
        Change::Sent(_) => {
            let (s, m, e) = (name(SENT), name(NUMBERS), name(NEXT));
            (format!("(attribute_not_exists({m}) OR size({m}) < :most)"), format!("{s} :n, {m} :number, {e} :next"))
        }
        Change::SentOnly => {
            let s = name(SENT);
            (format!("attribute_exists({s})"), format!("{s} :n"))
        }
        Change::Verified(_) => {
            let (s, v) = (name(SENT), name(VERIFIED));
            (format!("attribute_exists({s}) AND (attribute_not_exists({v}) OR {v} < {s})"), format!("{v} :n"))
        }
        Change::Refused => {
            let r = name(REFUSED);
            (format!("(attribute_not_exists({r}) OR {r} < :most)"), format!("{r} :n"))
        }
    };
    out.value(":n", number(if let Change::Verified(n) = change { n } else { 1 }));
    match change {
        Change::Sent(marks) => {
            out.value(":most", number(Tally::MOST_MARKS));
            out.value(":number", number_set([marks.number]));
            out.value(":next", number_set([marks.next]));
        }
        Change::Refused => drop(out.value(":most", number(Tally::MOST_REFUSED))),
        Change::SentOnly | Change::Verified(_) => {}
    }
    let expires_at = number((key.window.end() + KEPT).as_secs());
    let (x, at) = (out.name("#x", EXPIRES_AT), out.value(":x", expires_at));
    Expressions { condition, update: format!("ADD {add} SET {x} = {at}"), ..out }
}

/// Reads a cohort's item, by block.
///
/// # Errors
///
/// [`Error::Stored`] if an attribute is not what [`render`] has written.
pub fn to_tallies(found: &Attributes) -> Result<BTreeMap<String, Tally>> {
    let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
    for name in found.keys() {
        let Some((kind, block)) = name.split_once(':') else { continue };
        let tally = tallies.entry(block.to_owned()).or_default();
        let count = || attributes::required(found, name);
        let marks = || Ok::<BTreeSet<u32>, Error>(attributes::numbers_of(found, name)?.into_iter().collect());
        match kind.chars().next() {
            Some(SENT) => tally.sent = count()?,
            Some(VERIFIED) => tally.verified = count()?,
            Some(REFUSED) => tally.refused = count()?,
            Some(NUMBERS) => tally.numbers = marks()?,
            Some(NEXT) => tally.next = marks()?,
            _ => {}
        }
    }
    Ok(tallies)
}

/// A ladder as it is stored, and how often it was written before.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stored {
    /// The ladder.
    pub ladder: Ladder,
    /// Its writes so far.
    pub writes: u64,
}

/// Renders the write of the ladder `next` in place of the one that was `seen` after so many writes.
#[must_use]
pub fn render_ladder(next: &Ladder, seen: u64) -> Expressions {
    let mut out = Expressions::default();
    let (w, l) = (out.name("#w", WRITES), out.name("#l", LADDER));
    let (seen, writes) = (out.value(":seen", number(seen)), out.value(":writes", number(seen + 1)));
    let ladder = out.value(":ladder", string(next));
    let condition = format!("(attribute_not_exists({w}) OR {w} = {seen})");
    Expressions { condition, update: format!("SET {w} = {writes}, {l} = {ladder}"), ..out }
}

/// Reads the ladder; without an item, one on which nobody stands.
///
/// # Errors
///
/// [`Error::Stored`] if it is not what [`render_ladder`] has written.
pub fn to_ladder(found: Option<&Attributes>) -> Result<Stored> {
    let Some(found) = found else { return Ok(Stored::default()) };
    Ok(Stored { ladder: attributes::text(found, LADDER)?.parse()?, writes: attributes::required(found, WRITES)? })
}
