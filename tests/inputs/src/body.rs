//! Fields of JSON and forms: a field has a value only if whoever reads the body finds the same one.
//!
//! Lines: choices (the media type, whether its line is doubled), then the body. The field is `user_name`, the boundary of
//! multipart `b`.

use crate::app::{counted_by, counting};
use crate::input::Input;
use lambda_http::Body;
use lambda_http::http::{Request, header};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use std::fmt;
use std::sync::LazyLock;
use tollgate::LivePolicy;

const FIELD: &str = "user_name";
const TYPES: [&str; 8] = [
    "",
    "application/json",
    "application/x-www-form-urlencoded",
    "application/json; charset=utf-8",
    MULTIPART,
    "text/plain",
    "application/xml",
    "application/json, multipart/form-data; boundary=b",
];
const MULTIPART: &str = "multipart/form-data; boundary=b";
/// Longest value that a key can carry.
const LONGEST: usize = 2048 - FIELD.len();

static POLICY: LazyLock<LivePolicy> = LazyLock::new(|| counting("account = { body = \"user_name\" }", "account"));

/// Checks that a request is counted by what any handler would serve it as.
///
/// # Panics
///
/// If that does not hold.
pub fn check(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let media = TYPES[input.choice(TYPES.len())];
    let is_doubled = input.choice(2) == 1;
    let body = input.rest();
    let mut request = Request::post("/counted");
    if !media.is_empty() {
        request = request.header(header::CONTENT_TYPE, media);
    }
    if is_doubled {
        request = request.header(header::CONTENT_TYPE, MULTIPART);
    }
    let parts = request.body(()).expect("a request").into_parts().0;
    let counted = counted_by(&POLICY, parts, Body::Binary(body.to_vec()));
    let mut readings = readings(body);
    if media.contains("multipart") || is_doubled {
        // Whose handler reads parts reads nothing else.
        readings = vec![("multipart", multipart(body).unwrap_or_else(|| "nothing".to_owned()))];
    }
    // Nobody knows what handlers read of it.
    let is_foreign = is_doubled || ["application/xml", TYPES[7], MULTIPART].contains(&media);
    if let Some(counted) = counted {
        for (reader, served) in &readings {
            assert_eq!(served, &counted, "{reader} reads {:?}", String::from_utf8_lossy(body));
        }
        assert!(!readings.is_empty(), "nobody else finds {counted:?} in {:?}", String::from_utf8_lossy(body));
    } else if let Some(value) = plain(body).filter(|_| !is_foreign) {
        panic!("{value:?} was not found in {:?}", String::from_utf8_lossy(body));
    }
}

/// What handlers of all kinds find, each under its name.
fn readings(body: &[u8]) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let mut add = |reader, value: Option<String>| found.extend(value.map(|value| (reader, value)));
    let text = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    if let Ok(fields) = serde_json::from_slice::<Fields>(text) {
        add("the first of JSON", fields.named(exact).next());
        add("the last of JSON", fields.named(exact).last());
        add("the first of JSON in any case", fields.named(any_case).next());
        add("the last of JSON in any case", fields.named(any_case).last());
        add("the last of JSON up to a zero", fields.named(before_zero).last());
    }
    // Go's decoder and Jackson stop after the first document.
    let first = serde_json::Deserializer::from_slice(text).into_iter::<Fields>().next();
    if let Some(Ok(fields)) = first {
        add("a stream of JSON", fields.named(exact).last());
    }
    // Python's json.loads and Jackson tell UTF-16 by its zeros.
    for (reader, unit) in [("UTF-16LE", u16::from_le_bytes as fn([u8; 2]) -> u16), ("UTF-16BE", u16::from_be_bytes)] {
        let units: Vec<u16> = text.chunks_exact(2).map(|pair| unit([pair[0], pair[1]])).collect();
        if let Ok(fields) = serde_json::from_str::<Fields>(&String::from_utf16_lossy(&units)) {
            add(reader, fields.named(exact).last());
        }
    }
    // Handlers of batches take an array's objects one by one.
    if let Some(Ok(batch)) = serde_json::Deserializer::from_slice(text).into_iter::<Vec<Fields>>().next() {
        add("the first of an array", batch.first().and_then(|fields| fields.named(exact).last()));
    }
    let form =
        Fields(form_urlencoded::parse(body).map(|(name, value)| (name.into(), value.into_owned().into())).collect());
    add("the first of a form", form.named(exact).next());
    add("the last of a form", form.named(exact).last());
    add("the last of a form in any case", form.named(any_case).last());
    add("PHP's last of a form", form.named(php).last());
    add("qs's last of a form", form.named(rack).last());
    // Rack's up to version 2: either separator, with blanks behind it.
    let pairs: Vec<_> = body
        .split(|byte| b"&;".contains(byte))
        .flat_map(|pair| form_urlencoded::parse(pair.trim_ascii_start()).next())
        .map(|(name, value)| (name.into(), value.into_owned().into()))
        .collect();
    add("Rack's last of a form", Fields(pairs).named(rack).last());
    found
}

/// The first part of that name, as RFC 7578 has it: a preamble, then parts between lines of the boundary.
fn multipart(body: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(body);
    let parts = text.split("--b").skip(1);
    parts.filter_map(|part| part.strip_prefix("\r\n")?.split_once("\r\n\r\n")).find_map(|(head, value)| {
        let value = value.strip_suffix("\r\n").unwrap_or(value);
        head.contains("name=\"user_name\"").then(|| value.to_owned())
    })
}

/// PHP makes a variable's name of a field's (`php_register_variable_ex`): without blanks in front, up to a zero or the bracket
/// of an array; one that is not closed is an underscore, as are blanks and dots.
fn php(name: &str) -> bool {
    let name = name.trim_start_matches(' ').split('\0').next().unwrap_or_default();
    let array = name.split_once('[').filter(|(_, index)| index.contains(']'));
    let name = array.map_or(name, |(name, _)| name);
    name.replace([' ', '.', '['], "_") == FIELD
}

/// Rack's up to version 2 (`normalize_params`): the name is what follows all brackets, up to the next. qs (`parseKeys`) takes
/// what is in the first pair for it, too.
fn rack(name: &str) -> bool {
    name.trim_start_matches(['[', ']']).split(['[', ']']).next() == Some(FIELD)
}

/// The value in a body that everybody reads in the same way: an object with the field once, as text.
fn plain(body: &[u8]) -> Option<String> {
    let Fields(fields) = serde_json::from_slice(body).ok()?;
    let mut named = fields.iter().filter(|(name, _)| resembles(name));
    let (Some((name, Value::String(value))), None) = (named.next(), named.next()) else { return None };
    let is_form = form_urlencoded::parse(body).any(|(name, _)| resembles(&name));
    (name == FIELD && !is_form && !value.is_empty() && value.len() <= LONGEST).then(|| value.clone())
}

/// Whether a name could be the field's to anybody: the same letters, whatever is between and around them.
fn resembles(name: &str) -> bool {
    let letters = |name: &str| name.to_uppercase().to_lowercase().replace(|c: char| !c.is_alphanumeric(), "");
    letters(name).contains(&letters(FIELD))
}

fn exact(name: &str) -> bool {
    name == FIELD
}

fn before_zero(name: &str) -> bool {
    name.split('\0').next() == Some(FIELD)
}

fn any_case(name: &str) -> bool {
    name.eq_ignore_ascii_case(FIELD)
}

/// An object's fields, duplicates included.
#[derive(Debug)]
struct Fields(Vec<(String, Value)>);

impl Fields {
    /// The values of the fields that are meant, as handlers print them.
    fn named(&self, meant: fn(&str) -> bool) -> impl Iterator<Item = String> {
        let text = |value: &Value| match value {
            Value::String(text) => text.clone(),
            // JavaScript's numbers.
            Value::Number(number) => number.as_f64().map_or_else(|| number.to_string(), |n| (n + 0.0).to_string()),
            other => other.to_string(),
        };
        self.0.iter().filter(move |(name, _)| meant(name)).map(move |(_, value)| text(value))
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Object)
    }
}
