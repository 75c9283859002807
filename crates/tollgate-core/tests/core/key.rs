//! Keys: different dimensions never compose to the same text, and text goes both ways.

use proptest::prelude::*;
use tollgate_core::{Error, Key};

fn key(dimensions: &[(&str, &str)]) -> Key {
    Key::new(dimensions.iter().copied()).unwrap()
}

/// better-auth#7300.
#[test]
fn a_colon_in_a_value_does_not_move_the_border() {
    let (left, right) = (key(&[("a:b", "c")]), key(&[("a", "b:c")]));
    assert_ne!(left, right);
    assert_eq!((left.to_string().as_str(), right.to_string().as_str()), ("a%3Ab:c", "a:b%3Ac"));
}

#[test]
fn a_comma_in_a_value_does_not_make_a_dimension() {
    assert_ne!(key(&[("a", "b,c:d")]).to_string(), key(&[("a", "b"), ("c", "d")]).to_string());
}

#[test]
fn dimensions_are_sorted() {
    assert_eq!(key(&[("user", "alice"), ("tenant", "acme")]).to_string(), "tenant:acme,user:alice");
    assert_eq!(key(&[("user", "alice"), ("tenant", "acme")]), key(&[("tenant", "acme"), ("user", "alice")]));
}

/// zae-limiter refuses these.
#[test]
fn mail_addresses_unicode_and_long_values_are_keys() {
    for value in ["bob+x@example.com", "Ünïcödé", "電話", "100%", "%3A", " ", &"x".repeat(300)] {
        let made = key(&[("user", value)]);
        assert_eq!(made.to_string().parse::<Key>().unwrap(), made);
        assert_eq!(made.dimensions().collect::<Vec<_>>(), [("user", value)]);
    }
}

/// zae-limiter: empty and huge values.
#[test]
fn nothing_repeated_and_too_long_are_refused() {
    let none: [(&str, &str); 0] = [];
    assert_eq!(Key::new(none), Err(Error::EmptyKey(String::new())));
    assert_eq!(Key::new([("user", "")]), Err(Error::EmptyKey("user".into())));
    assert_eq!(Key::new([("", "alice")]), Err(Error::EmptyKey(String::new())));
    assert_eq!(Key::new([("u", "a"), ("u", "b")]), Err(Error::DuplicateDimension("u".into())));
    assert!(Key::new([("u", "x".repeat(Key::MAX_BYTES - 1))]).is_ok());
    assert_eq!(Key::new([("u", "x".repeat(Key::MAX_BYTES))]), Err(Error::KeyTooLong { bytes: 2049 }));
    assert_eq!(Key::new([("user", "x".repeat(3000))]), Err(Error::KeyTooLong { bytes: 3004 }));
}

#[test]
fn text_that_is_no_key_is_refused() {
    for text in [
        "", "alice", "user:", ":alice", "user:a:b", "user:a,", ",user:a", "user:%", "user:%2", "user:%41", "u:a,u:b",
        "user:%é",
    ] {
        assert!(text.parse::<Key>().is_err(), "{text:?}");
    }
}

proptest! {
    #[test]
    fn composition_is_injective_and_text_goes_both_ways(
        a in prop::collection::btree_map("[a:,%é]{1,3}", "[a:,%2C3é]{1,4}", 1..4),
        b in prop::collection::btree_map("[a:,%é]{1,3}", "[a:,%2C3é]{1,4}", 1..4),
    ) {
        let (left, right) = (Key::new(a.clone()).unwrap(), Key::new(b.clone()).unwrap());
        prop_assert_eq!(left.to_string() == right.to_string(), a == b);
        prop_assert_eq!(left.to_string().parse::<Key>().unwrap(), left);
    }

    #[test]
    fn any_unicode_goes_both_ways(name in ".{1,20}", value in ".{1,40}") {
        let made = Key::new([(name, value)]).unwrap();
        prop_assert_eq!(made.to_string().parse::<Key>().unwrap(), made);
    }
}
