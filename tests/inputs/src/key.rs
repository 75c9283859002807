//! Keys, stored attributes, and values that are folded.
//!
//! Lines: choices (none so far), then two keys or values, then stored text.

use crate::input::Input;
use std::fmt::Display;
use std::str::FromStr;
use std::sync::LazyLock;
use tollgate::tollgate_core::{BusyPeriod, Hold, LimitName, Penalty, Terms};
use tollgate::tollgate_dynamodb::partition_key;
use tollgate::{ItemKey, Key, KeySecrets, Policy, Wanted};

/// Longest partition key of DynamoDB, in bytes.
const LONGEST_PK: usize = 2048;
/// How much longer a value gets by folding, at most: one character of NFKC becomes eighteen, and each of those three by its
/// capital. A domain gets an `xn--` for each of its labels.
const GROWTH: usize = 64;

/// One dimension for each way of folding.
const FOLDS: [&str; 5] = ["lower", "email", "mailbox", "phone", "national"];

static POLICY: LazyLock<Policy> = LazyLock::new(|| {
    let text = r#"
        version = 1
        [identity]
        lower    = { from = "claims.a", fold = "lower" }
        email    = { from = "claims.b", fold = "email" }
        mailbox  = { from = "claims.c", fold = "mailbox" }
        phone    = { from = "claims.d", fold = "phone" }
        national = { from = "claims.e", fold = "phone", region = "IN" }
        [limits.email]
        key  = ["email"]
        rate = "5/h"
    "#;
    Policy::parse(text).expect(text).policy.with_secrets(KeySecrets::development())
});

/// Checks that text goes both ways, that different keys are different items, and that folding is to one spelling.
///
/// # Panics
///
/// If one of these does not hold.
pub fn check(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let _ = input.choice(1);
    let (one, other, stored) = (input.text(), input.text(), input.text());
    both_ways(&one);
    for dimension in FOLDS {
        one_spelling(dimension, &one);
    }
    composed(&one, &other);
    pseudonym(&one, &other);
    same_text::<Terms>(&stored);
    same_text::<BusyPeriod>(&stored);
    same_text::<Hold>(&stored);
    same_text::<Penalty>(&stored);
}

/// A key that was typed.
fn both_ways(text: &str) {
    let Ok(key) = text.parse::<Key>() else { return };
    let shown = key.to_string();
    assert_eq!(shown.parse::<Key>().as_ref(), Ok(&key), "{text:?}");
    items(&key, &key);
}

/// Two keys of the same dimensions with these values, or with these names.
fn composed(one: &str, other: &str) {
    let keys = |make: &dyn Fn(&str) -> Vec<(String, String)>| (Key::new(make(one)), Key::new(make(other)));
    let value = |text: &str| vec![("user".to_owned(), text.to_owned())];
    let name = |text: &str| vec![(text.to_owned(), "alice".to_owned())];
    let split = |text: &str| text.split('\t').filter_map(|pair| pair.split_once('=')).map(owned).collect();
    for pair in [keys(&value), keys(&name), keys(&split)] {
        if let (Ok(one), Ok(other)) = pair {
            assert_eq!(one.to_string() == other.to_string(), one == other);
            assert_eq!(one.to_string().parse::<Key>().as_ref(), Ok(&one));
            items(&one, &other);
        }
    }
}

fn owned((name, value): (&str, &str)) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

/// Items of different keys, limits or shards are different, and each is one that DynamoDB takes.
fn items(one: &Key, other: &Key) {
    let limit = LimitName::new("a").expect("a name");
    let all = [one, other].map(|key| {
        let own = ItemKey::own(key.clone(), limit.clone());
        [ItemKey::shared(key.clone()), own.on_shard(0), own.on_shard(99), own]
    });
    for one in all.as_flattened() {
        let pk = partition_key::of(one);
        assert!(!pk.is_empty() && pk.len() <= LONGEST_PK, "{one:?}");
        for other in all.as_flattened() {
            assert_eq!(pk == partition_key::of(other), one == other, "{one:?} {other:?}");
        }
    }
}

/// Folding twice is folding once, and neither case nor what nobody sees makes another value.
fn one_spelling(dimension: &str, value: &str) {
    if value.len() > Key::MAX_BYTES {
        // It is refused before it is folded.
        assert!(keys(value).is_none());
        return;
    }
    let fold = |value: &str| POLICY.identity().canonical(dimension, value);
    let folded = fold(value);
    assert_eq!(fold(&folded), folded, "{dimension} of {value:?}");
    assert!(folded.len() <= GROWTH * value.len(), "{dimension} of {value:?} has {} bytes", folded.len());
    for spelling in [format!(" {value}\t"), format!("\u{feff}{value}\u{200b}"), value.to_uppercase()] {
        assert_eq!(fold(&spelling), folded, "{dimension} of {spelling:?} and {value:?}");
    }
}

/// The keys of a limit by `email`, if the value makes one.
fn keys(value: &str) -> Option<Vec<Key>> {
    let wanted = Wanted { limit: "email", key: &[("email", value)], plan: None, cost: 1 };
    POLICY.charges_and_keys(&[wanted]).ok()?.1.pop()
}

/// What stands for a value tells nothing of it, and is another one for another value.
fn pseudonym(one: &str, other: &str) {
    let (Some(keys_of_one), Some(keys_of_other)) = (keys(one), keys(other)) else { return };
    let fold = |value: &str| POLICY.identity().canonical("email", value);
    assert_eq!(keys_of_one == keys_of_other, fold(one) == fold(other), "{one:?} {other:?}");
    for key in &keys_of_one {
        let shown = key.to_string();
        let hash = shown.strip_prefix("email:dev.").expect("a hash under the development secret");
        assert_eq!(hash.len(), 22, "{shown}");
        assert_eq!(POLICY.keys_of_operator(key).ok().as_ref(), Some(&keys_of_one));
    }
}

/// What is read back is what was written, to the byte: conditions compare it as text.
fn same_text<T: FromStr + Display>(text: &str) {
    if let Ok(read) = text.parse::<T>() {
        assert_eq!(read.to_string(), text);
    }
}
