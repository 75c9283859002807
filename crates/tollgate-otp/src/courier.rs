//! Who takes a message along, and what is in it.
//!
//! Invariant: whoever waits for an answer waits for a message to be taken, never for it to be delivered; and as long if there is
//! nobody to deliver it to.

use crate::challenge::{ChallengeId, Recipient};
use crate::code::Code;
use crate::delivery::Receipt;
use crate::destination::Destination;
use crate::otp::Issued;
use crate::pumping::Credit;
use crate::storage;
use std::fmt;
use std::future::Future;
use tollgate_policy::{Channel, Messages, OtpRules, Placeholder, Purpose};
use zeroize::Zeroizing;

/// A message with a code.
#[derive(Clone)]
#[non_exhaustive]
pub struct Message {
    /// Where it goes; `None` for an account that codes cannot be sent to. Such a message is taken like any other, and dropped where
    /// nobody waits any longer.
    pub to: Option<Destination>,
    /// The code.
    pub code: Code,
    /// What it is for.
    pub purpose: Purpose,
    /// Its text, code included.
    pub text: Zeroizing<String>,
    /// Its subject, where it is sent with one.
    pub subject: String,
    /// Which code it is.
    pub challenge: ChallengeId,
    /// The partition key of the item that says how far it has come.
    pub item: String,
}

impl Message {
    /// The message with what was issued for `recipient`, for somebody who prefers these `languages`, best first.
    #[must_use]
    pub fn new(
        rules: &OtpRules,
        to: Option<Destination>,
        recipient: &Recipient,
        issued: &Issued,
        languages: &[&str],
    ) -> Self {
        let (code, purpose) = (issued.code.clone(), recipient.purpose().clone());
        let minutes = issued.expires_in.as_secs().div_ceil(60);
        let fill = |placeholder| match placeholder {
            Placeholder::Code => code.digits().to_owned(),
            Placeholder::Purpose => purpose.to_string(),
            Placeholder::Minutes => minutes.to_string(),
            _ => String::new(),
        };
        let write = |messages: Option<&Messages>, ours: String| {
            let picked = messages.and_then(|messages| messages.pick(languages));
            picked.map_or(ours, |(_, message)| message.render(fill))
        };
        let ours = format!(
            "{} is your code for {purpose}. It is good for {minutes} min. Never tell it to anybody.",
            code.digits()
        );
        let mut text = Zeroizing::new(write(rules.message(), ours));
        let subject = write(rules.subject(), format!("Your code for {purpose}"));
        if let Some(domain) = rules.domain().filter(|_| to.as_ref().is_some_and(|to| to.channel() == Channel::Sms)) {
            // WICG, "Origin-bound one-time codes delivered via SMS": the last line.
            text.push_str(&format!("\n\n@{domain} #{}", code.digits()));
        }
        Self { to, code, purpose, text, subject, challenge: issued.challenge, item: storage::partition_key(recipient) }
    }
}

/// Without the text and the code.
impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Message").field("to", &self.to).field("purpose", &self.purpose).finish_non_exhaustive()
    }
}

/// A message without a code: something has happened that its reader has to know of.
#[derive(Clone)]
pub struct Notice {
    /// Where it goes.
    pub to: Destination,
    /// Its text. A link in it is a secret.
    pub text: Zeroizing<String>,
    /// Its subject, where it is sent with one.
    pub subject: String,
}

/// Without the text.
impl fmt::Debug for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notice").field("to", &self.to).finish_non_exhaustive()
    }
}

/// Something to be done for a code while nobody waits.
#[derive(Debug, Clone)]
pub enum Errand {
    /// The message is to be delivered, once.
    Deliver(Box<Message>),
    /// The notice is to be delivered; twice is better than never.
    Notify(Box<Notice>),
    /// Its code was verified.
    Verified {
        /// The provider is to be told that the message with this receipt was read.
        receipt: Option<Receipt>,
        /// This is to be counted, together with others.
        credit: Option<Credit>,
    },
}

impl Errand {
    /// What is to be counted.
    #[must_use]
    pub fn credit(&self) -> Option<&Credit> {
        if let Self::Verified { credit, .. } = self { credit.as_ref() } else { None }
    }
}

/// An errand was not taken, or nobody knows. Nothing contains a code or a number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the message was not taken: {0}")]
pub struct CourierError(pub String);

/// Takes errands along.
pub trait Courier: Send + Sync {
    /// Takes an errand to be run soon.
    fn take(&self, errand: Errand) -> impl Future<Output = Result<(), CourierError>> + Send;
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tollgate_policy::Policy;

    fn message(rules: &str, to: Option<&str>, languages: &[&str]) -> Message {
        let text = format!("version = 1\n[otp]\npurposes = ['change-phone']\ncountries = ['RO']\n{rules}\n");
        let policy = Policy::parse(&text).unwrap().policy;
        let (rules, purpose) = policy.otp_for("change-phone").unwrap();
        let recipient = Recipient::new("user:alice".parse().unwrap(), purpose.clone(), "somewhere").unwrap();
        let issued = Issued {
            challenge: ChallengeId::new([1; 16]),
            code: Code::parse("012345", 6).unwrap(),
            made_at: tollgate_core::Timestamp::from_secs(1_767_225_600),
            expires_in: Duration::from_secs(300),
            resend_after: Duration::from_secs(60),
        };
        let to = to.map(|to| match to.contains('@') {
            true => Destination::email(to, Channel::Email).unwrap(),
            false => Destination::phone(to, Channel::Sms, rules).unwrap(),
        });
        Message::new(rules, to, &recipient, &issued, languages)
    }

    #[test]
    fn a_message_says_what_its_code_is_for_and_how_long_it_is_good() {
        let message = message("", None, &[]);
        let text = "012345 is your code for change-phone. It is good for 5 min. Never tell it to anybody.";
        assert_eq!((message.text.as_str(), message.subject.as_str()), (text, "Your code for change-phone"));
        assert!(!format!("{message:?} {:?}", Errand::Deliver(Box::new(message.clone()))).contains("012345"));
    }

    #[test]
    fn a_message_is_in_the_language_that_its_reader_prefers() {
        let rules = "message = { en = '{code} for {minutes} min', ro = 'Codul {code}, {minutes} min' }\nsubject = { ro = 'Codul' }";
        let of = |languages: &[&str]| {
            let message = message(rules, None, languages);
            (message.text.to_string(), message.subject)
        };
        assert_eq!(of(&["fr", "ro-RO"]), ("Codul 012345, 5 min".to_owned(), "Codul".to_owned()));
        assert_eq!(of(&["fr"]).0, "012345 for 5 min");
    }

    #[test]
    fn only_an_sms_has_the_line_that_browsers_fill_in() {
        let rules = "message = 'Code: {code}'\ndomain = 'example.com'";
        let text = |to| message(rules, Some(to), &[]).text.to_string();
        assert_eq!(text("+40721234567"), "Code: 012345\n\n@example.com #012345");
        assert_eq!(text("a@x.org"), "Code: 012345");
        assert_eq!(message("message = 'Code: {code}'", Some("+40721234567"), &[]).text.as_str(), "Code: 012345");
    }
}
