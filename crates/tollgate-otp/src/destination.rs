//! Where a code goes: the number of a verified profile, in one spelling, or why none is sent to it.
//!
//! Invariant: a [`Destination`] is a valid number of a person, in a country that the policy allows. Whoever has only one cannot send
//! to a number that costs its caller, or that no plan knows.

use rlibphonenumber::{PHONE_NUMBER_UTIL, PhoneNumberFormat, PhoneNumberType};
use std::fmt;
use tollgate_policy::{Fold, OtpRules};

/// Digits at the end of a number that its [block](Destination::block) does not have.
const IN_BLOCK: usize = 4;

/// A number that codes may be sent to.
#[derive(Clone, PartialEq, Eq)]
pub struct Destination {
    number: String,
    country: String,
}

/// Why no code is sent to a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// No numbering plan has it, or it has no country code.
    #[error("it is no valid number in international form")]
    Invalid,
    /// Whoever calls it pays more than for a call (premium-rate, shared-cost, personal numbers), or nobody reads messages there.
    #[error("it is not the number of a phone that codes are sent to")]
    Kind,
    /// The policy does not name its country in `countries`.
    #[error("its country is not in the policy's [otp] `countries`")]
    Country,
}

impl Destination {
    /// The number of a verified profile. Blanks and punctuation do not matter, nor `00` for `+`; a national number is of
    /// the policy's `region`.
    ///
    /// # Errors
    ///
    /// Why no code is sent to it.
    pub fn of(number: &str, rules: &OtpRules) -> Result<Self, Refusal> {
        // The spelling that limits count by, so that nobody has two budgets.
        let number = Fold::Phone(rules.region).apply(number);
        let parsed = PHONE_NUMBER_UTIL.parse(&number, None).map_err(|_| Refusal::Invalid)?;
        let country = PHONE_NUMBER_UTIL.get_region_for_number(&parsed).ok_or(Refusal::Invalid)?;
        match PHONE_NUMBER_UTIL.get_number_type(&parsed) {
            PhoneNumberType::Mobile
            | PhoneNumberType::FixedLineOrMobile
            | PhoneNumberType::FixedLine
            | PhoneNumberType::VoIP => {}
            PhoneNumberType::Unknown => return Err(Refusal::Invalid),
            _ => return Err(Refusal::Kind),
        }
        let country = country.to_string();
        if !rules.allows(&country) {
            return Err(Refusal::Country);
        }
        let number = PHONE_NUMBER_UTIL.format(&parsed, PhoneNumberFormat::E164).into_owned();
        Ok(Self { number, country })
    }

    /// The number in E.164, like `+40721234567`.
    #[must_use]
    pub fn number(&self) -> &str {
        &self.number
    }

    /// The ten thousand numbers that it is among, by what they begin with: `+4072123`. Whoever pumps messages has ranges.
    #[must_use]
    pub fn block(&self) -> &str {
        self.number.get(..self.number.len().saturating_sub(IN_BLOCK)).unwrap_or_default()
    }

    /// Its country, two letters of ISO 3166-1.
    #[must_use]
    pub fn country(&self) -> &str {
        &self.country
    }
}

/// Without the number.
impl fmt::Debug for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Destination").field("country", &self.country).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use tollgate_policy::Policy;

    fn of(number: &str, countries: &str) -> Result<Destination, Refusal> {
        by(number, &format!("countries = [{countries}]"))
    }

    fn by(number: &str, rules: &str) -> Result<Destination, Refusal> {
        let text = format!("version = 1\n[otp]\npurposes = ['login']\n{rules}\n");
        Destination::of(number, Policy::parse(&text).unwrap().policy.otp().unwrap())
    }

    #[test]
    fn every_spelling_of_a_number_is_one_destination() {
        // Truxify#1253
        for spelling in ["+919876543210", " +91 98765 43210 ", "00919876543210", "+91-98765-43210", "+９１9876543210"]
        {
            let found = of(spelling, "'IN'").unwrap();
            assert_eq!(
                (found.number(), found.block(), found.country()),
                ("+919876543210", "+91987654", "IN"),
                "{spelling}"
            );
        }
        assert_eq!(of("9876543210", "'IN'"), Err(Refusal::Invalid), "of no country");
        let at_home = |number| by(number, "countries = ['IN']\nregion = 'IN'");
        for spelling in ["9876543210", " 98765 43210 ", "+919876543210", "00919876543210", "09876543210"] {
            assert_eq!(at_home(spelling).unwrap().number(), "+919876543210", "{spelling}");
        }
    }

    #[test]
    fn nobody_is_sent_a_code_where_its_country_is_not_allowed() {
        assert_eq!(of("+40721234567", ""), Err(Refusal::Country));
        assert_eq!(of("+84912345678", "'RO'"), Err(Refusal::Country));
        assert_eq!(of("+40721234567", "'RO'").unwrap().country(), "RO");
        // One country code, several countries.
        assert_eq!(of("+14165550123", "'US'"), Err(Refusal::Country));
        assert_eq!(of("+447400123456", "'GG', 'JE', 'IM'"), Err(Refusal::Country));
    }

    #[test]
    fn numbers_that_cost_their_caller_are_refused() {
        // What crates for numbers differ in: +1 900 is premium-rate, and +882 16 is of no country.
        let anywhere = "'US', 'GB', 'RO', 'FR', 'DE'";
        for number in
            ["+19002345678", "+449098790879", "+40906123456", "+33891123456", "+491801234567", "+447012345678"]
        {
            assert_eq!(of(number, anywhere), Err(Refusal::Kind), "{number}");
        }
        for number in ["+882161234567", "+18001234567"] {
            assert!(of(number, anywhere).is_err(), "{number}");
        }
    }

    #[test]
    fn what_no_plan_knows_is_refused() {
        for number in ["", "+", "+40", "+4072123456", "+407212345678", "+999123456789", "alice", "tel"] {
            assert_eq!(of(number, "'RO'").map(|found| found.number().to_owned()), Err(Refusal::Invalid), "{number}");
        }
    }

    #[test]
    fn a_number_is_not_in_its_debug_text() {
        assert_eq!(format!("{:?}", of("+40721234567", "'RO'").unwrap()), "Destination { country: \"RO\", .. }");
    }
}
