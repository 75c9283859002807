//! `auth_time`: when somebody has last proved who he is, as a token says it (OpenID Connect Core section 2).
//!
//! Invariant: what is not certainly a whole number of seconds since the epoch is no time at all, and no time is never fresh.

use serde_json::Value;
use tollgate_core::Timestamp;

/// From here on a number of seconds is a number of milliseconds that somebody has mistaken: the year 5138, and 1973.
const MILLISECONDS: u64 = 100_000_000_000;

/// Reads the claim: a number, or one in digits, as an HTTP API's authorizer and the context of a Lambda authorizer have it; its fraction
/// is dropped. `None` for everything else, milliseconds among it.
#[must_use]
pub fn read(claim: &Value) -> Option<Timestamp> {
    let seconds = match claim {
        Value::Number(number) => number.as_u64().or_else(|| whole(number.as_f64()?)),
        Value::String(text) => match text.split_once('.') {
            Some((whole, fraction)) => digits(fraction).and_then(|_| digits(whole)),
            None => digits(text),
        },
        _ => None,
    };
    seconds.filter(|seconds| (1..MILLISECONDS).contains(seconds)).map(Timestamp::from_secs)
}

/// RFC 7519 section 2: a NumericDate may have a fraction.
fn whole(number: f64) -> Option<u64> {
    // In that range every whole number is exact.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    (1.0..MILLISECONDS as f64).contains(&number).then_some(number as u64)
}

fn digits(text: &str) -> Option<u64> {
    // `parse` takes a sign.
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::read;
    use serde_json::json;
    use tollgate_core::Timestamp;

    #[test]
    fn seconds_are_read_as_numbers_and_as_digits() {
        let at = Some(Timestamp::from_secs(1_767_225_599));
        for claim in [json!(1_767_225_599), json!(1_767_225_599.9), json!("01767225599")] {
            assert_eq!(read(&claim), at, "{claim}");
            // As gateways write it.
            let text = claim.as_str().map_or_else(|| claim.to_string(), str::to_owned);
            assert_eq!(read(&json!(text)), at, "{text:?}");
        }
    }

    #[test]
    fn milliseconds_and_whatever_is_no_number_of_seconds_are_no_time() {
        // [jellyfin-plugin-sso#972]: a time in milliseconds is beyond what dates can hold.
        let wrong = [
            json!(1_767_225_599_000_u64),
            json!("1767225599000"),
            json!(u64::MAX),
            json!(1e300),
            json!(0),
            json!(-1_767_225_599),
            json!("-1767225599"),
            json!("+1767225599"),
            json!("1.767225599E9"),
            json!("1767225599 "),
            json!("1767225599."),
            json!(".9"),
            json!("1767225599.9.9"),
            json!("1767225599.+9"),
            json!("2026-01-01T00:00:00Z"),
            json!(""),
            json!("٣"),
            json!("99999999999999999999999"),
            json!(true),
            json!(null),
            json!([1_767_225_599]),
            json!({ "s": 1_767_225_599 }),
        ];
        for claim in wrong {
            assert_eq!(read(&claim), None, "{claim}");
        }
    }
}
