//! Policies that documents show: whole ones as they are, others as changes of the sample policy.
//!
//! Invariant: a fragment replaces or adds what it says, by name or by `match`, and nothing else.

use crate::harness::repository;
use toml::{Table, Value};

/// The sample policy.
pub fn sample() -> Table {
    std::fs::read_to_string(repository("infra/tollgate.toml")).unwrap().parse().unwrap()
}

/// The policy with what a block says.
pub fn with(mut policy: Table, block: &str) -> Result<Table, String> {
    let block: Table = block.parse().map_err(|e: toml::de::Error| e.to_string())?;
    if block.contains_key("version") {
        return Ok(block);
    }
    for (name, value) in block {
        let name_of = |item: &Value| item.get("match").or_else(|| item.get("name")).cloned();
        match (policy.get_mut(&name), value) {
            (Some(Value::Array(of)), Value::Array(new)) => replace(of, new, name_of),
            (Some(Value::Table(of)), Value::Table(new)) => {
                for (key, value) in new {
                    match (of.get_mut(&key), value) {
                        (Some(Value::Array(of)), Value::Array(new)) if of.iter().all(Value::is_table) => {
                            replace(of, new, name_of);
                        }
                        (_, value) => drop(of.insert(key, value)),
                    }
                }
            }
            (_, value) => drop(policy.insert(name, value)),
        }
    }
    Ok(policy)
}

fn replace(of: &mut Vec<Value>, new: Vec<Value>, name: impl Fn(&Value) -> Option<Value>) {
    of.retain(|item| !new.iter().any(|new| name(new) == name(item)));
    of.extend(new);
}

/// As text, all of it inline.
pub fn text(policy: &Table) -> String {
    policy.iter().map(|(name, value)| format!("{} = {}\n", quoted(name), inline(value))).collect()
}

fn inline(value: &Value) -> String {
    let list = |items: Vec<String>| items.join(", ");
    match value {
        Value::String(text) => quoted(text),
        Value::Array(items) => format!("[{}]", list(items.iter().map(inline).collect())),
        Value::Table(table) => {
            let pairs = table.iter().map(|(name, value)| format!("{} = {}", quoted(name), inline(value)));
            format!("{{ {} }}", list(pairs.collect()))
        }
        Value::Integer(n) => n.to_string(),
        Value::Float(n) => n.to_string(),
        Value::Boolean(b) => b.to_string(),
        Value::Datetime(at) => at.to_string(),
    }
}

/// Strings of JSON are strings of TOML.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

/// What is wrong with it, as the command tells it.
pub fn checked(policy: &Table) -> Result<(), String> {
    let text = text(policy);
    tollgate::Policy::parse(&text).map(drop).map_err(|findings| findings.render("policy"))
}

#[test]
fn the_sample_policy_is_one_after_it_was_written_anew_and_a_fragment_is_refused_for_its_mistake() {
    checked(&sample()).unwrap();
    let named = |policy: &Table| policy["routes"].as_array().unwrap().len();
    let more = with(
        sample(),
        "[limits.orders]\nkey = ['user']\nrate = '7/h'\n[[routes]]\nmatch = 'GET /x'\ncharge = ['orders']",
    )
    .unwrap();
    assert_eq!((named(&more), &more["limits"]["orders"]["rate"]), (named(&sample()) + 1, &"7/h".into()));
    checked(&more).unwrap();
    let wrong = with(sample(), "[limits.orders]\nkey = ['usr']\nrate = '7/h'").unwrap();
    assert!(checked(&wrong).unwrap_err().contains("`usr` is not declared"));
    assert!(with(sample(), "[limits").is_err());
}
