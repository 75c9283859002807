//! A tenant's rules as an item of the table, and the one write of it.
//!
//! ```text
//! put   #version = :seen, or attribute_not_exists(#version)
//!       SET #version = :version, #allowed = …, #required = …, #minimum = …, #from = …, #next_allowed = …, …
//!       (or REMOVE #from, #next_allowed, … where nothing is coming)
//! ```
//!
//! The table never deletes it: a tenant would be without what it asks for. Invariant: what is written is read back as it was; a kind
//! that this version does not know is an error, never left out.

use super::document::{Next, Tenant};
use std::collections::BTreeSet;
use tollgate_core::{Error, Key, Result, Timestamp};
use tollgate_dynamodb::attributes::{self, AttributeValue, Attributes, number, string};
use tollgate_dynamodb::expression::Expressions;
use tollgate_dynamodb::partition_key;
use tollgate_policy::{FactorKind, FactorRules};

const VERSION: &str = "version";
const FROM: &str = "from";
/// The attributes of rules: allowed, required, minimum.
const RULES: [&str; 3] = ["allowed", "required", "minimum"];
const NEXT: [&str; 3] = ["next_allowed", "next_required", "next_minimum"];

/// Kinds are written in one text, with this between.
const BETWEEN: char = ' ';

/// The partition key of a tenant's item.
#[must_use]
pub fn partition_key(tenant: &Key) -> String {
    partition_key::mfa("tenant", tenant)
}

/// Renders the write of `tenant` in the place of version `seen`.
#[must_use]
pub fn put(tenant: &Tenant, seen: u64) -> Expressions {
    let mut out = Expressions::default();
    let version = out.name("#version", VERSION);
    let condition = match seen {
        0 => format!("attribute_not_exists({version})"),
        seen => format!("{version} = {}", out.value(":seen", number(seen))),
    };
    let mut set = vec![(VERSION, number(tenant.version))];
    set.extend(written(RULES, &tenant.rules));
    let rest = match &tenant.next {
        Some(next) => {
            set.push((FROM, number(next.from.as_nanos())));
            set.extend(written(NEXT, &next.rules));
            String::new()
        }
        None => {
            let names = NEXT.into_iter().chain([FROM]).map(|attribute| out.name(&format!("#{attribute}"), attribute));
            format!(" REMOVE {}", names.collect::<Vec<_>>().join(", "))
        }
    };
    let mut assign = |(attribute, value)| {
        format!("{} = {}", out.name(&format!("#{attribute}"), attribute), out.value(&format!(":{attribute}"), value))
    };
    let set: Vec<_> = set.into_iter().map(&mut assign).collect();
    Expressions { condition, update: format!("SET {}{rest}", set.join(", ")), ..out }
}

/// Reads an item.
///
/// # Errors
///
/// [`Error::Stored`] for what this version does not write.
pub fn to_tenant(found: &Attributes) -> Result<Tenant> {
    let from = attributes::optional(found, FROM)?.map(Timestamp::from_nanos);
    let next = from.map(|from| Ok::<_, Error>(Next { from, rules: to_rules(found, NEXT)? })).transpose()?;
    Ok(Tenant { version: attributes::required(found, VERSION)?, rules: to_rules(found, RULES)?, next })
}

fn written(names: [&'static str; 3], rules: &FactorRules) -> [(&'static str, AttributeValue); 3] {
    let kinds = |kinds: &BTreeSet<FactorKind>| {
        string(kinds.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(&BETWEEN.to_string()))
    };
    let [allowed, required, minimum] = names;
    [(allowed, kinds(&rules.allowed)), (required, kinds(&rules.required)), (minimum, number(rules.minimum))]
}

fn to_rules(found: &Attributes, [allowed, required, minimum]: [&str; 3]) -> Result<FactorRules> {
    let kinds = |name: &str| {
        let text = attributes::text(found, name)?;
        let kinds = text.split(BETWEEN).filter(|kind| !kind.is_empty()).map(str::parse);
        let unknown = |_| Error::Stored { attribute: name.to_owned(), found: text.to_owned() };
        kinds.collect::<std::result::Result<BTreeSet<FactorKind>, _>>().map_err(unknown)
    };
    Ok(FactorRules {
        allowed: kinds(allowed)?,
        required: kinds(required)?,
        minimum: attributes::required(found, minimum)?,
    })
}
