//! Signatures like `t=1767225600,v1=5257a8…`: HMAC-SHA256 of the time, a dot and the body, in hexadecimal digits (Stripe, "Verify webhook
//! signatures manually").
//!
//! Invariants: signatures are compared in a time that tells nothing of them; a delivery that is repeated by somebody else is refused once
//! its time has passed, and of one whose signature is wrong no more is told than that.

use crate::secrets::Keys;
use std::time::Duration;
use tollgate::Timestamp;

/// Signatures that are looked at: a sender gives one for each of its secrets.
const MOST: usize = 8;
const TAG_BYTES: usize = 32;

/// Why a request is not believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// There is none.
    #[error("there is no signature")]
    Missing,
    /// It cannot be read.
    #[error("the signature is not like t=SECONDS,v1=DIGITS")]
    Malformed,
    /// No secret makes it.
    #[error("the signature is wrong")]
    Wrong,
    /// It is right, and of another time.
    #[error("the signature's time is too far from the present")]
    Stale,
}

/// A header, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature<'h> {
    /// As it was sent, since it is signed like that.
    time: &'h str,
    seconds: u64,
    tags: Vec<[u8; TAG_BYTES]>,
}

impl<'h> TryFrom<&'h str> for Signature<'h> {
    type Error = Refused;

    /// Fields of other schemes (`v0`) are left alone.
    fn try_from(header: &'h str) -> Result<Self, Refused> {
        let fields = || header.split(',').filter_map(|field| field.trim().split_once('='));
        let mut times = fields().filter(|(name, _)| *name == "t").map(|(_, time)| time);
        let (Some(time), None) = (times.next(), times.next()) else { return Err(Refused::Malformed) };
        if !time.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(Refused::Malformed);
        }
        let seconds = time.parse().map_err(|_| Refused::Malformed)?;
        let tags = fields().filter(|(name, _)| *name == "v1").filter_map(|(_, digits)| tag(digits));
        let tags: Vec<_> = tags.take(MOST).collect();
        if tags.is_empty() { Err(Refused::Malformed) } else { Ok(Self { time, seconds, tags }) }
    }
}

impl Signature<'_> {
    /// Whether one of `keys` has signed `body`, not longer than `tolerance` before or after `now`.
    ///
    /// # Errors
    ///
    /// [`Refused::Wrong`] or [`Refused::Stale`].
    pub fn verify(&self, keys: &Keys, body: &[u8], now: Timestamp, tolerance: Duration) -> Result<(), Refused> {
        if !keys.have_signed(&[self.time.as_bytes(), b".", body], &self.tags) {
            return Err(Refused::Wrong);
        }
        let apart = now.as_secs().abs_diff(self.seconds);
        if apart > tolerance.as_secs() { Err(Refused::Stale) } else { Ok(()) }
    }
}

fn tag(digits: &str) -> Option<[u8; TAG_BYTES]> {
    let digits: &[u8; 2 * TAG_BYTES] = digits.as_bytes().try_into().ok()?;
    let mut tag = [0; TAG_BYTES];
    for (byte, pair) in tag.iter_mut().zip(digits.chunks_exact(2)) {
        let nibble = |digit: u8| char::from(digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
    }
    Some(tag)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const BODY: &[u8] = br#"{"id":"evt_1"}"#;
    const TOLERANCE: Duration = Duration::from_secs(300);
    // printf '1767225600.{"id":"evt_1"}' | openssl dgst -sha256 -hmac whsec_0123456789abcdef
    const TAG: &str = "ffc78581be44d2a6839318f4bc2a763bd44c8b0acf595e90f290be114a84a5f0";

    fn verify(header: &str, body: &[u8], now: u64) -> Result<(), Refused> {
        let keys: Keys = "whsec_0123456789abcdef, whsec_fedcba9876543210".parse().unwrap();
        Signature::try_from(header)?.verify(&keys, body, Timestamp::from_secs(now), TOLERANCE)
    }

    #[test]
    fn a_signature_of_openssl_is_right_for_its_body_and_time_alone() {
        let header = format!("t=1767225600,v1={TAG},v0=00");
        assert_eq!(verify(&header, BODY, 1_767_225_600), Ok(()));
        assert_eq!(verify(&format!("t=1767225600, v1={}, v1={TAG}", "0".repeat(64)), BODY, 1_767_225_600), Ok(()));
        assert_eq!(verify(&header, br#"{"id":"evt_2"}"#, 1_767_225_600), Err(Refused::Wrong));
        assert_eq!(verify(&header.replace("t=1767225600", "t=1767225601"), BODY, 1_767_225_600), Err(Refused::Wrong));
        for now in [1_767_225_300, 1_767_225_900] {
            assert_eq!(verify(&header, BODY, now), Ok(()));
        }
        for now in [1_767_225_299, 1_767_225_901] {
            assert_eq!(verify(&header, BODY, now), Err(Refused::Stale));
        }
    }

    #[test]
    fn a_header_of_another_form_is_malformed() {
        for header in [
            "",
            "t=1767225600",
            &format!("v1={TAG}"),
            &format!("t=1,t=2,v1={TAG}"),
            &format!("t=+1,v1={TAG}"),
            &format!("t=,v1={TAG}"),
            &format!("t=18446744073709551616,v1={TAG}"),
            &format!("t=1,v1={}", &TAG[1..]),
            &format!("t=1,v1={}é", &TAG[2..]),
            &format!("t=1,v1=g{}", &TAG[1..]),
        ] {
            assert_eq!(verify(header, BODY, 1), Err(Refused::Malformed), "{header}");
        }
    }
}
