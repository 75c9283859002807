//! Where a code goes: the number or email address of a verified profile, in one spelling, or why none is sent to it.
//!
//! Invariant: a [`Destination`] is a valid number of a person, in a country that the policy allows, or one email address. Whoever has only one cannot send
//! to a number that costs its caller, or that no plan knows.

use crate::directory::Profile;
use rlibphonenumber::{PHONE_NUMBER_UTIL, PhoneNumberFormat, PhoneNumberType};
use std::fmt;
use std::hint::black_box;
use tollgate_policy::{Channel, FactorKind, Fold, OtpRules};

/// Digits at the end of a number that its [block](Destination::block) does not have.
const IN_BLOCK: usize = 4;

/// What is read where there is no number, for as long as it takes.
const SOMEBODYS: &str = "+40712345678";

/// The country of an email address.
const NO_COUNTRY: &str = "email";

/// A number or address that codes may be sent to.
#[derive(Clone, PartialEq, Eq)]
pub struct Destination {
    channel: Channel,
    address: String,
    spelling: String,
    block: String,
    country: String,
}

/// Why no code is sent to a number or address.
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
    /// It is not one email address of a host in the Internet.
    #[error("it is no email address")]
    Address,
}

impl Destination {
    /// Where codes for somebody with this profile go: by the first of the policy's `channels` that it has a number or address for; `None` if
    /// that is nowhere. Takes as long if it has none.
    #[must_use]
    pub fn of(profile: &Profile, rules: &OtpRules) -> Option<Self> {
        let (phone, email) = (profile.verified_phone.as_deref(), profile.verified_email.as_deref());
        rules.channels().find_map(|channel| {
            let number = || match phone {
                Some(number) => Self::phone(number, channel, rules).map(Some),
                None => {
                    // To read a number takes a time that can be told from none.
                    drop(black_box(Self::phone(SOMEBODYS, channel, rules)));
                    Ok(None)
                }
            };
            let address = || email.map(|address| Self::email(address, channel)).transpose();
            let found = match channel {
                Channel::Email => address(),
                Channel::Event => number().and_then(|found| found.map_or_else(address, |found| Ok(Some(found)))),
                _ => number(),
            };
            found
                .inspect_err(|refusal| tracing::info!(%refusal, "no code is sent to a number or address"))
                .ok()
                .flatten()
        })
    }

    /// Everywhere that somebody with this profile can be told something: his number and his address, each by the channel of the policy that
    /// takes it along; a `notice` asks for both to be known, whatever codes are sent by.
    #[must_use]
    pub fn all(profile: &Profile, rules: &OtpRules) -> Vec<Self> {
        let first = |is_one: fn(&Channel) -> bool, usual: Channel| rules.channels().find(is_one).unwrap_or(usual);
        let number = profile
            .verified_phone
            .as_deref()
            .map(|number| Self::phone(number, first(|channel| *channel != Channel::Email, Channel::Sms), rules));
        let address = profile
            .verified_email
            .as_deref()
            .map(|address| Self::email(address, first(|channel| *channel != Channel::Sms, Channel::Email)));
        let some = number.into_iter().chain(address);
        some.filter_map(|found| found.inspect_err(|refusal| tracing::info!(%refusal, "nobody is told there")).ok())
            .collect()
    }

    /// The number of a verified profile. Blanks and punctuation do not matter, nor `00` for `+`; a national number is of
    /// the policy's `region`.
    ///
    /// # Errors
    ///
    /// Why no code is sent to it.
    pub fn phone(number: &str, channel: Channel, rules: &OtpRules) -> Result<Self, Refusal> {
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
        let address = PHONE_NUMBER_UTIL.format(&parsed, PhoneNumberFormat::E164).into_owned();
        let block = address.get(..address.len().saturating_sub(IN_BLOCK)).unwrap_or_default().to_owned();
        Ok(Self { channel, spelling: address.clone(), address, block, country })
    }

    /// The email address of a verified profile.
    ///
    /// # Errors
    ///
    /// [`Refusal::Address`].
    pub fn email(address: &str, channel: Channel) -> Result<Self, Refusal> {
        let address = address.trim();
        let (local, domain) = address.rsplit_once('@').ok_or(Refusal::Address)?;
        // What would be more than one address, or a header of its own (RFC 5322 section 3.4.1, RFC 5321 section 4.5.3.1).
        let is_plain = |c: char| !c.is_whitespace() && !c.is_control() && !"()<>[]:;@\\,\"".contains(c);
        let fits = (1..=64).contains(&local.len()) && domain.contains('.') && address.len() <= 254;
        if !fits || !local.chars().all(is_plain) || !domain.chars().all(is_plain) {
            return Err(Refusal::Address);
        }
        let spelling = Fold::Mailbox.apply(address);
        let block = spelling.rsplit_once('@').map(|(_, domain)| domain.to_owned()).unwrap_or_default();
        Ok(Self { channel, address: address.to_owned(), spelling, block, country: NO_COUNTRY.to_owned() })
    }

    /// How it is sent there.
    #[must_use]
    pub fn channel(&self) -> Channel {
        self.channel
    }

    /// The factor that a code is which was sent there: whoever has the telephone, or reads the mailbox.
    #[must_use]
    pub fn factor(&self) -> FactorKind {
        if self.country == NO_COUNTRY { FactorKind::Email } else { FactorKind::Sms }
    }

    /// The number in E.164, like `+40721234567`, or the email address.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The one spelling that it is counted by; of a number that is the address.
    #[must_use]
    pub fn spelling(&self) -> &str {
        &self.spelling
    }

    /// The ten thousand numbers that it is among, by what they begin with: `+4072123`. Whoever pumps messages has ranges. Of an email
    /// address its domain.
    #[must_use]
    pub fn block(&self) -> &str {
        &self.block
    }

    /// Its country, two letters of ISO 3166-1; `email` of an email address.
    #[must_use]
    pub fn country(&self) -> &str {
        &self.country
    }
}

/// Without the number.
impl fmt::Debug for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Destination")
            .field("channel", &self.channel)
            .field("country", &self.country)
            .finish_non_exhaustive()
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
        Destination::phone(number, Channel::Sms, Policy::parse(&text).unwrap().policy.otp().unwrap())
    }

    #[test]
    fn every_spelling_of_a_number_is_one_destination() {
        // Truxify#1253
        for spelling in ["+919876543210", " +91 98765 43210 ", "00919876543210", "+91-98765-43210", "+９１9876543210"]
        {
            let found = of(spelling, "'IN'").unwrap();
            assert_eq!(
                (found.address(), found.block(), found.country()),
                ("+919876543210", "+91987654", "IN"),
                "{spelling}"
            );
        }
        assert_eq!(of("9876543210", "'IN'"), Err(Refusal::Invalid), "of no country");
        let at_home = |number| by(number, "countries = ['IN']\nregion = 'IN'");
        for spelling in ["9876543210", " 98765 43210 ", "+919876543210", "00919876543210", "09876543210"] {
            assert_eq!(at_home(spelling).unwrap().address(), "+919876543210", "{spelling}");
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
        // A comparison of phone crates, which differ in this: +1 900 is premium-rate, and +882 16 is of no country.
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
            assert_eq!(of(number, "'RO'").map(|found| found.address().to_owned()), Err(Refusal::Invalid), "{number}");
        }
    }

    #[test]
    fn a_number_is_not_in_its_debug_text() {
        assert_eq!(
            format!("{:?}", of("+40721234567", "'RO'").unwrap()),
            "Destination { channel: Sms, country: \"RO\", .. }"
        );
    }

    #[test]
    fn a_code_goes_by_the_first_channel_that_the_profile_has_something_for() {
        let profile = |phone: Option<&str>, email: Option<&str>| {
            let (verified_phone, verified_email) = (phone.map(str::to_owned), email.map(str::to_owned));
            Profile { verified_phone, verified_email }
        };
        let of = |channels: &str, profile: &Profile| {
            let text =
                format!("version = 1\n[otp]\npurposes = ['login']\ncountries = ['RO']\nchannels = [{channels}]\n");
            let found = Destination::of(profile, Policy::parse(&text).unwrap().policy.otp().unwrap());
            found.map(|found| (found.channel(), found.address().to_owned()))
        };
        let (phone, email) = (Some("+40721234567"), Some("Alice+x@X.org"));
        let (number, address) = ("+40721234567".to_owned(), "Alice+x@X.org".to_owned());
        let both = profile(phone, email);
        assert_eq!(of("'sms', 'email'", &both), Some((Channel::Sms, number.clone())));
        assert_eq!(of("'email', 'sms'", &both), Some((Channel::Email, address.clone())));
        assert_eq!(of("'event'", &both), Some((Channel::Event, number)));
        assert_eq!(of("'event'", &profile(None, email)), Some((Channel::Event, address.clone())));
        assert_eq!(of("'sms', 'email'", &profile(Some("+33612345678"), email)), Some((Channel::Email, address)));
        assert_eq!(of("'sms'", &profile(None, email)), None);
        assert_eq!(of("'sms', 'email', 'event'", &profile(None, None)), None);
    }

    #[test]
    fn an_email_destination_is_one_address_and_is_counted_by_one_spelling() {
        // Paymenter#1230
        for spelling in ["ADMIN@x.org", " admin@X.org ", "admin+a@x.org"] {
            let found = Destination::email(spelling, Channel::Email).unwrap();
            assert_eq!(
                (found.spelling(), found.block(), found.country()),
                ("admin@x.org", "x.org", "email"),
                "{spelling}"
            );
            assert_eq!(found.address(), spelling.trim());
        }
        for wrong in [
            "",
            "a",
            "@x.org",
            "a@",
            "a@x",
            "a@x.org,b@x.org",
            "a b@x.org",
            "a@x.org\nbcc:b@x.org",
            "A <a@x.org>",
            "a@b@x.org",
        ] {
            assert_eq!(Destination::email(wrong, Channel::Email), Err(Refusal::Address), "{wrong:?}");
        }
    }
}
