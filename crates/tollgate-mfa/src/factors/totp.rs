//! The secret of an authenticator app, its codes, and how an app is set up (RFC 6238; the Key URI Format of Google Authenticator).
//!
//! SHA-1, six digits and 30 s, since that is what every app can do; HMAC-SHA-1 is not touched by what is wrong with SHA-1 (RFC 4226,
//! appendix B.2). Invariant: a secret is in no debug text, and wiped from memory when it is dropped.

use super::random;
use crate::error::{Error, Result};
use qrcode::render::svg::Color;
use qrcode::{EcLevel, QrCode};
use std::fmt;
use tollgate_core::Timestamp;
use totp_rs::{Builder, Totp};
use zeroize::Zeroizing;

/// Seconds of a step.
pub const STEP: u64 = 30;
/// Steps before and after the present one whose codes are accepted: clocks differ, and people type slowly (RFC 6238 section 5.2).
pub const DRIFT: u64 = 1;
/// Bytes of a secret (RFC 4226 section 4).
pub const BYTES: usize = 20;

/// What an app shares with us: 160 random bits.
#[derive(Clone)]
pub struct Secret(Zeroizing<[u8; BYTES]>);

/// What a person sets an app up by. It is a secret.
#[derive(Clone)]
pub struct Setup {
    /// `otpauth://totp/ISSUER:ACCOUNT?secret=...`.
    pub uri: Zeroizing<String>,
    /// The same as a QR code, an SVG picture.
    pub qr_svg: Zeroizing<String>,
}

impl Secret {
    /// A new one.
    ///
    /// # Errors
    ///
    /// [`Error::NoRandomness`] if the system has none.
    pub fn random() -> Result<Self> {
        let mut bytes = Zeroizing::new([0; BYTES]);
        random(bytes.as_mut())?;
        Ok(Self(bytes))
    }

    /// The secret of these bytes; `None` if there are more or fewer.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(|bytes| Self(Zeroizing::new(bytes)))
    }

    /// The bytes, to be sealed.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.0.as_slice()
    }

    /// The last step around `now` that `code` is of, and that is after `last`. Blanks in the code do not matter; each step is compared
    /// in constant time.
    #[must_use]
    pub fn step(&self, code: &str, now: Timestamp, last: Option<u64>) -> Option<u64> {
        let code: Zeroizing<String> = Zeroizing::new(code.split_whitespace().collect());
        let totp = self.builder().build().ok()?;
        let present = now.as_secs() / STEP;
        let near = present.saturating_sub(DRIFT)..=present + DRIFT;
        // All are compared, whichever is right. Two steps may have one code: were the first of them taken, it would be good for the
        // second, too.
        near.filter(|step| last.is_none_or(|last| *step > last))
            .filter(|step| totp.check(&code, step * STEP).is_some())
            .max()
    }

    /// The code at an instant, for whoever has the secret.
    #[must_use]
    pub fn code(&self, at: Timestamp) -> String {
        self.builder().build().map_or_else(|_| String::new(), |totp: Totp| totp.generate(at.as_secs()).to_string())
    }

    /// What an app is set up by that shows `issuer` and `account`.
    ///
    /// # Errors
    ///
    /// [`Error::Unspeakable`] for a name that no URI or picture can have.
    pub fn setup(&self, issuer: &str, account: &str) -> Result<Setup> {
        let unspeakable = |why: &dyn fmt::Display| Error::Unspeakable(why.to_string());
        // A colon ends the issuer, whether it is escaped or not.
        let account = account.replace(':', " ");
        let totp = self.builder().with_issuer(Some(issuer)).with_account_name(account).build();
        let uri = totp.and_then(|totp| totp.to_url()).map(Zeroizing::new).map_err(|error| unspeakable(&error))?;
        let code =
            QrCode::with_error_correction_level(uri.as_bytes(), EcLevel::M).map_err(|error| unspeakable(&error))?;
        let qr_svg = Zeroizing::new(code.render::<Color<'_>>().min_dimensions(200, 200).build());
        Ok(Setup { uri, qr_svg })
    }

    fn builder(&self) -> Builder {
        // A step each, so that the caller learns which.
        Builder::new().with_skew(0).with_step_duration(STEP).with_secret(*self.0)
    }
}

/// Without the secret.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Without the secret.
impl fmt::Debug for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Setup(..)")
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    fn of_the_rfc() -> Secret {
        Secret::of(b"12345678901234567890").unwrap()
    }

    #[test]
    fn codes_are_those_of_rfc_6238() {
        // Appendix B, the last six of its eight digits; its last instant is later than a timestamp can be.
        let vectors = [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_111_111_111, "050471"),
            (1_234_567_890, "005924"),
            (2_000_000_000, "279037"),
        ];
        for (secs, code) in vectors {
            assert_eq!(of_the_rfc().code(at(secs)), code);
            assert_eq!(of_the_rfc().step(code, at(secs), None), Some(secs / STEP), "{secs}");
        }
    }

    #[test]
    fn a_code_is_good_for_its_step_and_one_either_way() {
        let (secret, code) = (of_the_rfc(), "005924");
        let step = 1_234_567_890 / STEP;
        let (first, last) = ((step - 1) * STEP, (step + 2) * STEP - 1);
        for secs in [first, step * STEP, last] {
            assert_eq!(secret.step(code, at(secs), None), Some(step), "{secs}");
            assert_eq!(secret.step(code, at(secs), Some(step - 1)), Some(step), "{secs}");
            assert_eq!(secret.step(code, at(secs), Some(step)), None, "{secs}: it was accepted");
        }
        assert_eq!(secret.step(code, at(first - 1), None), None);
        assert_eq!(secret.step(code, at(last + 1), None), None);
    }

    #[test]
    fn blanks_do_not_matter_and_anything_else_does() {
        let (secret, now) = (of_the_rfc(), at(1_234_567_890));
        assert!(secret.step(" 005 924\n", now, None).is_some());
        for wrong in ["", "5924", "+05924", "0059240", "005-924", "٠٠٥٩٢٤", "00592a", &"0".repeat(100_000)] {
            assert_eq!(secret.step(wrong, now, None), None, "{wrong:.10}");
        }
    }

    #[test]
    fn of_two_steps_with_one_code_the_last_counts() {
        // Where two neighbours have one code, it must not be good twice.
        let (secret, found) = (0..u64::MAX)
            .find_map(|n| {
                let mut bytes = [0; BYTES];
                bytes[..8].copy_from_slice(&n.to_be_bytes());
                let secret = Secret::of(&bytes)?;
                let same = (0..200).find(|step| secret.code(at(step * STEP)) == secret.code(at((step + 1) * STEP)))?;
                Some((secret, same))
            })
            .unwrap();
        let code = secret.code(at(found * STEP));
        assert_eq!(secret.step(&code, at(found * STEP), None), Some(found + 1));
    }

    #[test]
    fn names_are_escaped_in_the_uri_and_the_secret_is_base32() {
        let setup = of_the_rfc().setup("Ex & Co", "a:lice@x.org/ü").unwrap();
        assert_eq!(
            setup.uri.as_str(),
            "otpauth://totp/Ex%20%26%20Co:a%20lice%40x.org%2F%C3%BC?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ\
             &issuer=Ex%20%26%20Co"
        );
        assert!(setup.qr_svg.starts_with("<?xml") && setup.qr_svg.contains("<svg") && !setup.qr_svg.contains("GEZD"));
        assert!(of_the_rfc().setup("Example", &"x".repeat(4000)).is_err(), "no picture holds it");
    }

    #[test]
    fn no_secret_is_in_debug_text() {
        let secret = of_the_rfc();
        assert_eq!(format!("{secret:?} {:?}", secret.setup("a", "b").unwrap()), "Secret(..) Setup(..)");
    }
}
