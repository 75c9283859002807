//! A top-level field of a body, by every way of reading it that makes sense. Pure.
//!
//! Invariant: a field has a value only if all of them give the same one, so that a sender cannot be counted as one and be
//! served as another.

use super::media::{Readable, readable};
use crate::scalar::{self, scalar};
use form_urlencoded::parse as parse_form;
use http::HeaderMap;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use std::fmt;

const BYTE_ORDER_MARK: char = '\u{feff}';

/// The value of a top-level field; `None` if there is none, or none that is certain.
///
/// A body of no declared type, of JSON or of a form is read as both, since handlers differ in how much they ask for the
/// type. In either, a name that is given again with another value has none, also if some parsers only take the two names
/// for one.
pub(crate) fn field(body: &[u8], headers: &HeaderMap, name: &str) -> Option<String> {
    let readable = readable(headers)?;
    let text = std::str::from_utf8(body).ok()?;
    let unmarked = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let mut found = Sightings::default();
    let may_be_form = readable == Readable::JsonOrForm && is_surely_a_form(text);
    // What a form says of a JSON object can only contradict that.
    let wanted = Wanted::named(name);
    if !(if in_json(unmarked, &wanted, &mut found) { found.exact } else { may_be_form }) {
        return None;
    }
    in_form(text, &wanted, &mut found);
    found.value()
}

/// Whether nobody takes a text for anything but a form.
///
/// It begins with a name, as no JSON does that is broken off, followed by more, commented or behind a guard (`)]}'`), no XML,
/// and no text after a byte order mark. It has no line of two hyphens, by which multipart is told, and no zeros, by
/// which UTF-16 is.
fn is_surely_a_form(text: &str) -> bool {
    let is_blank = |c: char| c.is_whitespace() || c.is_control();
    let begins =
        text.trim_start_matches(is_blank).starts_with(|c: char| c.is_alphanumeric() || "_-.*%+&=~$@!".contains(c));
    let is_delimiter = |line: &str| line.trim_start_matches(is_blank).starts_with("--");
    begins && !text.contains('\0') && !text.split(['\r', '\n']).any(is_delimiter)
}

/// Values that a field was seen with.
#[derive(Default)]
struct Sightings {
    exact: bool,
    /// The inner `None` is a value that is no text, number or boolean, or not the same to all.
    values: Vec<Option<String>>,
}

impl Sightings {
    fn add(&mut self, wanted: &Wanted<'_>, name: &str, value: Option<String>) {
        if !wanted.may_be(name) {
            return;
        }
        self.exact |= name == wanted.name;
        // Two are as uncertain as any number of them.
        if self.values.len() < 2 && !self.values.contains(&value) {
            self.values.push(value);
        }
    }

    fn value(self) -> Option<String> {
        match <[Option<String>; 1]>::try_from(self.values) {
            Ok([value]) if self.exact => value,
            _ => None,
        }
    }
}

/// The field that is looked for.
struct Wanted<'a> {
    name: &'a str,
    /// What parsers make of its name.
    loosely: Vec<String>,
}

impl<'a> Wanted<'a> {
    fn named(name: &'a str) -> Self {
        Self { name, loosely: loosely(name).collect() }
    }

    /// Whether any parser takes `name` for the field.
    fn may_be(&self, name: &str) -> bool {
        name == self.name || loosely(name).any(|name| self.loosely.contains(&name))
    }
}

/// What the least exact parsers make of a name, each in its way: without regard to case, by Unicode's folding; up to a zero,
/// trimmed or not, with `_` for what cannot be in the name of a variable, and of brackets
///
/// - what is before one (PHP's arrays, qs);
/// - with `_` for each (PHP, where one is not closed);
/// - what is between or behind them (Rack up to 2, qs).
fn loosely(name: &str) -> impl Iterator<Item = String> {
    const BRACKETS: [char; 2] = ['[', ']'];
    let name = before_zero(name).trim_start();
    let second = name.chars().next().map_or(0, char::len_utf8);
    let array = name.get(second..).and_then(|rest| rest.find('[')).and_then(|at| name.get(..second + at));
    let bare = name.trim_start_matches(BRACKETS).split(BRACKETS).next();
    let ways = [Some(name), array, bare].into_iter().flatten();
    ways.flat_map(|name| [name, name.trim_end()])
        .map(|name| name.replace([' ', '.', '['], "_").to_uppercase().to_lowercase())
}

/// A name as it is read where a zero ends a text.
fn before_zero(name: &str) -> &str {
    name.split('\0').next().unwrap_or_default()
}

/// Reads `text` as a form, by all separators that are in use: `;` was one for long (HTML 4.01 appendix B.2.2).
fn in_form(text: &str, wanted: &Wanted<'_>, found: &mut Sightings) {
    let mut read = |pairs: &str| {
        for (known, value) in parse_form(pairs.as_bytes()) {
            found.add(wanted, &known, Some(value.into_owned()));
        }
    };
    read(text);
    if text.contains(';') {
        text.split(['&', ';']).for_each(read);
    }
}

/// Reads `text` as one JSON object; whether it is one.
fn in_json(text: &str, wanted: &Wanted<'_>, found: &mut Sightings) -> bool {
    struct Fields<'a> {
        wanted: &'a str,
        seen: Vec<(String, Option<String>)>,
    }

    impl<'de> Visitor<'de> for &mut Fields<'_> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
            while let Some(name) = map.next_key::<String>()? {
                // Folding makes no name as much shorter.
                if before_zero(&name).len() > 4 * self.wanted.len() {
                    map.next_value::<IgnoredAny>()?;
                } else {
                    let value = map.next_value::<Value>()?;
                    self.seen.push((name, scalar(&value).filter(|_| scalar::is_one_to_all(&value))));
                }
            }
            Ok(())
        }
    }

    impl<'de> DeserializeSeed<'de> for &mut Fields<'_> {
        type Value = ();

        fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
            deserializer.deserialize_map(self)
        }
    }

    let mut fields = Fields { wanted: wanted.name, seen: Vec::new() };
    let mut json = serde_json::Deserializer::from_str(text);
    let is_json = (&mut fields).deserialize(&mut json).and_then(|()| json.end()).is_ok();
    if is_json {
        for (known, value) in fields.seen {
            found.add(wanted, &known, value);
        }
    }
    is_json
}
