//! How many capacity units (WCU) rules take, as the Developer Guide counts them ("Using match rule statements", "Rate-based rule
//! statement"): an estimate, since only WAF knows.

use crate::model::{Catches, Field, Rule, Statement, Transform};
use std::collections::BTreeSet;

/// Units of an ACL that its price has in it (Developer Guide, "Web ACL capacity units").
pub const INCLUDED: u64 = 1_500;

/// Most units of an ACL (the same page).
pub const MOST: u64 = 5_000;

const RATE_BASED: u64 = 2;
const STRING_MATCH: u64 = 2;
const REGEX_MATCH: u64 = 3;
/// With the first address of a header; any of them would be 4 more.
const IP_SET: u64 = 1;
const TRANSFORM: u64 = 10;

/// The units of rules.
#[must_use]
pub fn of(rules: &[Rule]) -> u64 {
    rules.iter().map(of_rule).sum()
}

fn of_rule(rule: &Rule) -> u64 {
    let mut seen = BTreeSet::new();
    match &rule.catches {
        Catches::Over(rate) => {
            RATE_BASED + rate.scope_down.as_ref().map_or(0, |statement| of_statement(statement, &mut seen))
        }
        Catches::Where(statement) => of_statement(statement, &mut seen),
    }
}

/// Fields with what was done to them so far: a transformation of the same is done once in a rule.
type Done = BTreeSet<(u8, Vec<u8>)>;

fn of_statement(statement: &Statement, done: &mut Done) -> u64 {
    match statement {
        Statement::Bytes { field, transforms, .. } => STRING_MATCH + of_transforms(*field, transforms, done),
        Statement::Regex { field, transforms, .. } => REGEX_MATCH + of_transforms(*field, transforms, done),
        Statement::In { .. } => IP_SET,
        Statement::All(of) | Statement::Any(of) => of.iter().map(|of| of_statement(of, done)).sum(),
        Statement::Not(of) => of_statement(of, done),
    }
}

fn of_transforms(field: Field, transforms: &[Transform], done: &mut Done) -> u64 {
    let kinds: Vec<u8> = transforms.iter().map(|transform| *transform as u8).collect();
    (1..=kinds.len()).filter(|n| done.insert((field as u8, kinds[..*n].to_vec()))).map(|_| TRANSFORM).sum()
}
