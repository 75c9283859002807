//! `[otp]`: what one-time codes are for, how long they are good, and how often they can be guessed and sent.
//!
//! Invariant: purposes are a closed set. A [`Purpose`] is one that the file names, so that a code for one thing is never good
//! for another that nobody has thought of.

use crate::canonical::Region;
use crate::error::{Error, Result};
use crate::factors::FactorKind;
use crate::message::Messages;
use crate::policy::Policy;
use crate::suggest;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;
use tollgate_core::{LimitName, PenaltyRule};

/// What a code is for, like `login`: a name of the policy.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Purpose(Arc<str>);

impl Purpose {
    pub(crate) fn new(name: &str) -> Self {
        Self(Arc::from(name))
    }

    /// The name: `a-z`, then `a-z 0-9 _ -`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How a code is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Channel {
    /// `sms`: a text message to a number.
    Sms,
    /// `email`: to an address.
    Email,
    /// `event`: by whoever takes the event, to a number or else to an address.
    Event,
}

impl Channel {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Sms, Self::Email, Self::Event];

    /// The word of the policy.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sms => "sms",
            Self::Email => "email",
            Self::Event => "event",
        }
    }
}

impl Channel {
    /// The factor that a code of it is, where there is nowhere to send one to.
    #[must_use]
    pub fn factor(self) -> FactorKind {
        if self == Self::Email { FactorKind::Email } else { FactorKind::Sms }
    }
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What follows from a right code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OtpUse {
    /// Nothing but itself.
    Itself,
    /// Somebody has signed in by it, or got back in.
    SignIn,
    /// It is a second factor.
    Factor,
}

/// The rules of one-time codes. Bounds are those of NIST SP 800-63B, sections 5.1.3.2 and 5.2.2: at least six digits, good
/// for ten minutes at most, and a hundred wrong guesses of an account at most.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OtpRules {
    pub(crate) purposes: Vec<Purpose>,
    pub(crate) channels: Vec<Channel>,
    pub(crate) countries: Vec<String>,
    pub(crate) message: Option<Messages>,
    pub(crate) subject: Option<Messages>,
    pub(crate) domain: Option<String>,
    pub(crate) factors: Vec<Purpose>,
    pub(crate) sign_in: Vec<Purpose>,
    /// Whether every wish to be sent a code needs a solved CAPTCHA.
    pub captcha: bool,
    /// Where a profile's number without a country code belongs; `None`: it is none.
    pub region: Option<Region>,
    /// Digits of a code, [`OtpRules::DIGITS`].
    pub digits: u8,
    /// For how long a code is good, [`OtpRules::SHORTEST_TTL`] to [`OtpRules::LONGEST_TTL`].
    pub ttl: Duration,
    /// How often one code can be tried, [`OtpRules::ATTEMPTS`].
    pub attempts: u32,
    /// How often an account can be tried for one purpose within a window, whatever codes it is sent meanwhile;
    /// [`OtpRules::BUDGET`].
    pub budget: u32,
    /// How long that window is, [`OtpRules::SHORTEST_WINDOW`] to [`OtpRules::LONGEST_WINDOW`]. It begins with the first code that is
    /// sent after the last one is over.
    pub window: Duration,
    /// How long after a code the next one can be sent: longer each time, and shorter again for each
    /// [`forget`](PenaltyRule::forget) since.
    pub cooldown: PenaltyRule,
    /// The class of authentication (`acr`) that a right code is whose purpose is a [factor](OtpUse::Factor); `None`: there is none.
    pub acr: Option<String>,
    /// What messages cost, and what stops those who share in it; `None`: nobody watches.
    pub pumping: Option<PumpingRules>,
}

/// What messages cost, and where that is charged.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PumpingRules {
    pub(crate) prices: BTreeMap<String, u64>,
    pub(crate) spend: Vec<LimitName>,
    pub(crate) reduced: LimitName,
}

impl PumpingRules {
    /// What a message to this country costs, in the unit of the limits that it is charged on; `None` if codes are not sent there.
    #[must_use]
    pub fn price(&self, country: &str) -> Option<u64> {
        self.prices.get(country).copied()
    }

    /// The limits that prices are charged on.
    #[must_use]
    pub fn spend(&self) -> &[LimitName] {
        &self.spend
    }

    /// The limit on which one is charged for a message to suspected numbers, and nothing for others.
    #[must_use]
    pub fn reduced(&self) -> &LimitName {
        &self.reduced
    }

    /// What a message to `country` costs on each of those limits, if few are sent to its numbers (`is_reduced`) or not. 0 is no
    /// charge; a message that goes nowhere costs 1.
    pub fn costs(&self, country: &str, is_reduced: bool) -> impl Iterator<Item = (&LimitName, u64)> {
        let price = self.price(country).unwrap_or(1);
        self.spend.iter().map(move |limit| (limit, price)).chain([(&self.reduced, u64::from(is_reduced))])
    }
}

impl OtpRules {
    /// Digits that a code can have.
    pub const DIGITS: RangeInclusive<u64> = 6..=10;
    /// The shortest that a code can be good for: a minute, which a message may take to arrive.
    pub const SHORTEST_TTL: Duration = Duration::from_secs(60);
    /// The longest.
    pub const LONGEST_TTL: Duration = Duration::from_secs(600);
    /// How often one code can be tried.
    pub const ATTEMPTS: RangeInclusive<u64> = 1..=10;
    /// How often an account can be tried within its window.
    pub const BUDGET: RangeInclusive<u64> = 1..=100;
    /// The shortest window of an account's budget.
    pub const SHORTEST_WINDOW: Duration = Duration::from_secs(60);
    /// The longest.
    pub const LONGEST_WINDOW: Duration = Duration::from_secs(30 * 86_400);

    /// What codes can be for, in file order.
    pub fn purposes(&self) -> impl Iterator<Item = &Purpose> + Clone {
        self.purposes.iter()
    }

    /// Where codes may be sent to, two letters of ISO 3166-1 each, in file order.
    pub fn countries(&self) -> impl Iterator<Item = &str> + Clone {
        self.countries.iter().map(String::as_str)
    }

    /// How codes are sent: the first of these that somebody has verified a number or address for. At least one.
    pub fn channels(&self) -> impl Iterator<Item = Channel> + Clone {
        self.channels.iter().copied()
    }

    /// The text that a code is sent with; `None`: ours.
    #[must_use]
    pub fn message(&self) -> Option<&Messages> {
        self.message.as_ref()
    }

    /// The subject of an email; `None`: ours.
    #[must_use]
    pub fn subject(&self) -> Option<&Messages> {
        self.subject.as_ref()
    }

    /// The site that a browser or telephone may fill a code of an SMS in on.
    #[must_use]
    pub fn domain(&self) -> Option<&str> {
        self.domain.as_deref()
    }

    /// What follows from a right code for `purpose`.
    #[must_use]
    pub fn use_of(&self, purpose: &Purpose) -> OtpUse {
        if self.factors.contains(purpose) {
            OtpUse::Factor
        } else if self.sign_in.contains(purpose) {
            OtpUse::SignIn
        } else {
            OtpUse::Itself
        }
    }

    /// Whether codes may be sent to numbers of this country, two letters of ISO 3166-1. To none unless the file names it.
    #[must_use]
    pub fn allows(&self, country: &str) -> bool {
        self.countries.iter().any(|allowed| allowed == country)
    }
}

impl Policy {
    /// The rules of one-time codes; `None` if the policy has no `[otp]`.
    #[must_use]
    pub fn otp(&self) -> Option<&OtpRules> {
        self.otp.as_ref()
    }

    /// The rules of one-time codes, and the purpose of that name.
    ///
    /// ```
    /// # use tollgate_policy::Policy;
    /// let text = "version = 1\nlimits = {}\n[otp]\npurposes = ['login', 'change-phone']\n";
    /// let policy = Policy::parse(text).map_err(|findings| findings.render("policy"))?.policy;
    /// let (rules, login) = policy.otp_for("login").map_err(|error| error.to_string())?;
    /// assert_eq!((rules.digits, rules.ttl.as_secs(), rules.attempts, login.as_str()), (6, 300, 5, "login"));
    /// assert!(policy.otp_for("log-in").is_err());
    /// # Ok::<(), String>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NoOtp`] or [`Error::UnknownPurpose`].
    pub fn otp_for(&self, purpose: &str) -> Result<(&OtpRules, &Purpose)> {
        let rules = self.otp.as_ref().ok_or(Error::NoOtp)?;
        let found = rules.purposes().find(|known| known.as_str() == purpose).ok_or_else(|| Error::UnknownPurpose {
            purpose: purpose.to_owned(),
            help: suggest::help(purpose, "purpose", rules.purposes().map(Purpose::as_str)),
        })?;
        Ok((rules, found))
    }
}
