//! The code that a person types: digits, drawn so that each is as likely as any other.
//!
//! Invariant: a code has exactly as many ASCII digits as the policy says, leading zeros included, and is in no debug text; it is wiped
//! from memory when it is dropped.

use crate::error::{Error, Result};
use std::fmt;
use zeroize::Zeroizing;

/// A one-time code.
#[derive(Clone)]
pub struct Code(Zeroizing<String>);

impl Code {
    /// A random code of so many digits, 1 to 19.
    ///
    /// # Errors
    ///
    /// [`Error::NoRandomness`] if the system has none.
    pub fn random(digits: u8) -> Result<Self> {
        Self::draw(digits, crate::random)
    }

    /// The code that random bytes make. Bytes are drawn again where the last incomplete run of codes would make some more
    /// likely than others.
    pub(crate) fn draw(digits: u8, mut fill: impl FnMut(&mut [u8]) -> Result<()>) -> Result<Self> {
        let codes = 10_u64.pow(u32::from(digits));
        let whole = u64::MAX - u64::MAX % codes;
        loop {
            let mut bytes = Zeroizing::new([0; 8]);
            fill(bytes.as_mut())?;
            let drawn = u64::from_le_bytes(*bytes);
            if drawn < whole {
                return Ok(Self(Zeroizing::new(format!("{:0width$}", drawn % codes, width = usize::from(digits)))));
            }
        }
    }

    /// The code that somebody has typed, of exactly so many ASCII digits. What has another form has never been a code, so it is bad
    /// input and no guess: it is not compared, and costs no attempt.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`].
    pub fn parse(text: &str, digits: u8) -> Result<Self> {
        let is_code = text.len() == usize::from(digits) && text.bytes().all(|b| b.is_ascii_digit());
        if is_code { Ok(Self(Zeroizing::new(text.to_owned()))) } else { Err(Error::Malformed { digits }) }
    }

    /// Anything as a code, as no caller can have one.
    #[cfg(test)]
    pub(crate) fn of_any(text: &str) -> Self {
        Self(Zeroizing::new(text.to_owned()))
    }

    /// The digits, for the message.
    #[must_use]
    pub fn digits(&self) -> &str {
        &self.0
    }
}

/// Without the digits.
impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Code")
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn seeded(seed: u64) -> impl FnMut(&mut [u8]) -> Result<()> {
        let mut source = fastrand::Rng::with_seed(seed);
        move |bytes| {
            source.fill(bytes);
            Ok(())
        }
    }

    /// Pearson's statistic of counts that should be equal.
    fn chi_square(counts: &[u32]) -> f64 {
        let expected = f64::from(counts.iter().sum::<u32>()) / f64::from(u32::try_from(counts.len()).unwrap());
        counts.iter().map(|n| (f64::from(*n) - expected).powi(2) / expected).sum()
    }

    #[test]
    fn every_digit_of_every_place_is_as_likely_as_any_other() {
        for digits in 6..=10_u8 {
            let mut fill = seeded(u64::from(digits));
            let mut counts = vec![[0_u32; 10]; usize::from(digits)];
            for _ in 0..100_000 {
                let code = Code::draw(digits, &mut fill).unwrap();
                assert_eq!(code.digits().len(), usize::from(digits));
                for (place, digit) in code.digits().bytes().enumerate() {
                    counts[place][usize::from(digit - b'0')] += 1;
                }
            }
            for (place, counts) in counts.iter().enumerate() {
                // 9 degrees of freedom: 27.9 is exceeded once in a thousand times.
                assert!(chi_square(counts) < 27.9, "{digits} digits, place {place}: {counts:?}");
            }
        }
    }

    #[test]
    fn every_thousandth_of_the_codes_is_as_likely_as_any_other() {
        let (mut fill, mut counts) = (seeded(7), [0_u32; 1000]);
        for _ in 0..500_000 {
            let code = Code::draw(6, &mut fill).unwrap();
            counts[code.digits()[..3].parse::<usize>().unwrap()] += 1;
        }
        // 999 degrees of freedom: 1143.9 is exceeded once in a thousand times.
        assert!(chi_square(&counts) < 1143.9, "{}", chi_square(&counts));
    }

    #[test]
    fn what_would_make_some_codes_likelier_is_drawn_again() {
        let codes = 10_u64.pow(6);
        let whole = u64::MAX - u64::MAX % codes;
        let mut drawn = vec![whole - 1, whole, u64::MAX];
        let code = Code::draw(6, |bytes| {
            bytes.copy_from_slice(&drawn.pop().unwrap().to_le_bytes());
            Ok(())
        });
        assert_eq!(code.unwrap().digits(), "999999", "the last of the last whole run, after two that are none");
    }

    #[test]
    fn leading_zeros_stay() {
        let code = Code::draw(6, |bytes| {
            bytes.copy_from_slice(&12_345_u64.to_le_bytes());
            Ok(())
        });
        assert_eq!(code.unwrap().digits(), "012345");
    }

    #[test]
    fn without_randomness_there_is_no_code() {
        let code = Code::draw(6, |_| Err(Error::NoRandomness("none".to_owned())));
        assert!(matches!(code, Err(Error::NoRandomness(_))));
    }

    #[test]
    fn what_the_system_draws_differs() {
        let codes: std::collections::BTreeSet<_> =
            (0..100).map(|_| Code::random(10).unwrap().digits().to_owned()).collect();
        assert_eq!(codes.len(), 100, "two of a hundred are alike once in two million times");
    }

    #[test]
    fn a_code_is_not_in_its_debug_text() {
        assert_eq!(format!("{:?}", Code::parse("012345", 6).unwrap()), "Code");
    }
}
