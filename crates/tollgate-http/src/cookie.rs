//! Cookies of a request by name (RFC 6265 sections 4.2 and 5.4). Pure.
//!
//! Invariant: whatever the fields hold, a name has its values in the order in which they were sent, at most
//! [`MAX_BYTES`] of the fields are looked at, and nothing is copied.

use http::HeaderMap;
use http::header::COOKIE;

/// Most bytes of all `Cookie` fields that are looked at: what a load balancer lets through at most.
const MAX_BYTES: usize = 64 * 1024;

/// The values of the cookies named `name`, those that are text.
///
/// Besides `;` a comma separates: gateways join lines of a header by it. No value that is looked for has one.
pub(crate) fn values<'a>(headers: &'a HeaderMap, name: &'a str) -> impl Iterator<Item = &'a str> {
    let within = |left: &mut usize, line: &'a [u8]| {
        let read = line.get(..*left).unwrap_or(line);
        *left -= read.len();
        Some(read)
    };
    let lines = headers.get_all(COOKIE).iter().map(http::HeaderValue::as_bytes).scan(MAX_BYTES, within);
    let pairs = lines.flat_map(|line| line.split(|b| matches!(b, b';' | b',')));
    pairs.filter_map(move |pair| {
        let (found, value) = std::str::from_utf8(pair).ok()?.split_once('=')?;
        (found.trim() == name).then(|| unquoted(value.trim()))
    })
}

/// RFC 6265 section 4.1.1 lets a value be in quotes.
fn unquoted(value: &str) -> &str {
    value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use proptest::prelude::*;

    fn of(lines: &[&[u8]]) -> HeaderMap {
        lines.iter().map(|line| (COOKIE, HeaderValue::from_bytes(line).unwrap())).collect()
    }

    fn found(lines: &[&[u8]]) -> Vec<String> {
        values(&of(lines), "d").map(str::to_owned).collect()
    }

    #[test]
    fn a_name_has_all_its_values_in_the_order_of_the_lines_and_in_them() {
        assert_eq!(found(&[b"a=1; d=2; d=3", b"d=4;d=5"]), ["2", "3", "4", "5"]);
        assert_eq!(found(&[b"a=1,d=2, d=3"]), ["2", "3"], "lines that a gateway has joined");
        assert_eq!(found(&[b" d = \"2\" ;\td=3\t"]), ["2", "3"]);
        assert_eq!(found(&[b"d=a=b=; d="]), ["a=b=", ""]);
    }

    #[test]
    fn other_names_and_what_is_no_pair_are_none() {
        for line in ["D=1", "dd=1", "d", "=1", "", ";;;", "a=d=1", "$d=1", "d ;=1", "\"d\"=1"] {
            assert!(found(&[line.as_bytes()]).is_empty(), "{line}");
        }
        assert_eq!(found(&[b"x=\xff\xfe; d=1; d=\xff; d=2"]), ["1", "2"], "bytes that are no text take no other along");
    }

    #[test]
    fn no_more_is_looked_at_than_a_load_balancer_lets_through() {
        let filler = format!("x={}", "y".repeat(MAX_BYTES - 2));
        assert!(found(&[filler.as_bytes(), b"d=1"]).is_empty());
        assert_eq!(found(&[filler.get(..filler.len() - 3).unwrap().as_bytes(), b"d=1", b"d=2"]), ["1"]);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_bytes_are_read(lines in proptest::collection::vec(proptest::collection::vec(32..=255_u8, 0..80), 0..4)) {
            let lines: Vec<Vec<u8>> = lines.into_iter().map(|line| line.into_iter().filter(|b| *b != 127).collect()).collect();
            let mut headers = of(&lines.iter().map(Vec::as_slice).collect::<Vec<_>>());
            let before = values(&headers, "d").count();
            headers.append(COOKIE, HeaderValue::from_static("d=mine"));
            let after: Vec<_> = values(&headers, "d").collect();
            prop_assert_eq!((after.len(), after.last().copied()), (before + 1, Some("mine")));
        }
    }
}
