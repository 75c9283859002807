//! The languages that a caller reads, from `Accept-Language` (RFC 9110 section 12.5.4). Invariant: any header is a list of
//! language tags, an unreadable one an empty list.

use http::{HeaderMap, header};

/// Ranges that are looked at; browsers send a handful.
const MAX_RANGES: usize = 32;

/// Quality of a range that gives none, in thousandths.
const BEST: u16 = 1000;

/// The language tags of `Accept-Language` (RFC 9110 section 12.5.4), the most preferred first, without those that are refused (`q=0`) and
/// without `*`.
#[must_use]
pub fn preferred(headers: &HeaderMap) -> Vec<&str> {
    let lines = headers.get_all(header::ACCEPT_LANGUAGE).iter().filter_map(|line| line.to_str().ok());
    let ranges = lines.flat_map(|line| line.split(',')).take(MAX_RANGES);
    let mut ranges: Vec<(&str, u16)> = ranges.filter_map(range).filter(|(_, quality)| *quality > 0).collect();
    ranges.sort_by_key(|(_, quality)| std::cmp::Reverse(*quality));
    ranges.into_iter().map(|(tag, _)| tag).collect()
}

fn range(text: &str) -> Option<(&str, u16)> {
    let (tag, weight) = text.split_once(';').map_or((text, None), |(tag, weight)| (tag, Some(weight)));
    let tag = tag.trim();
    let subtag = |subtag: &str| (1..=8).contains(&subtag.len()) && subtag.bytes().all(|b| b.is_ascii_alphanumeric());
    let quality = match weight {
        Some(weight) => quality(weight.trim().strip_prefix(['q', 'Q'])?.trim_start().strip_prefix('=')?.trim())?,
        None => BEST,
    };
    tag.split('-').all(subtag).then_some((tag, quality))
}

/// A weight in thousandths (RFC 9110 section 12.4.2): 0 to 1 with at most three decimals.
fn quality(text: &str) -> Option<u16> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let digits = decimals.len() <= 3 && decimals.bytes().all(|b| b.is_ascii_digit());
    let decimals: u16 = format!("{decimals:0<3}").parse().ok().filter(|_| digits)?;
    match whole {
        "0" => Some(decimals),
        "1" if decimals == 0 => Some(BEST),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{header, preferred};
    use http::{HeaderMap, HeaderValue};

    #[test]
    fn languages_go_by_quality_and_what_is_unreadable_is_left_out() {
        let tags = |line: &'static str| {
            let headers = HeaderMap::from_iter([(header::ACCEPT_LANGUAGE, HeaderValue::from_static(line))]);
            preferred(&headers).join(" ")
        };
        assert_eq!(tags("en;q=0.5, ro-RO, vi;q=0.75,*;q=0.1"), "ro-RO vi en");
        assert_eq!(tags("fr;q=0, ro ; q=0.001"), "ro");
        assert_eq!(tags("a, b;q=1.000, c;q=1"), "a b c");
        for unreadable in ["", ";;;", "ro;q=2", "ro;q=-1", "ro;q=0.1234", "ro;q=0.x", "ro;level=1", "r o", "-", "ro-"] {
            assert_eq!(tags(unreadable), "", "{unreadable}");
        }
    }
}
