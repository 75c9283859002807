//! Who takes a message along.
//!
//! Invariant: whoever waits for an answer waits for a message to be taken, never for it to be delivered; and as long if there is
//! nobody to deliver it to.

use crate::code::Code;
use crate::destination::Destination;
use std::fmt::Write;
use std::future::Future;
use std::time::Duration;
use tollgate_policy::Purpose;
use zeroize::Zeroizing;

/// A message with a code.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Message {
    /// Where it goes; `None` for an account that codes cannot be sent to. Such a message is taken like any other, and dropped where
    /// nobody waits any longer.
    pub to: Option<Destination>,
    /// The code.
    pub code: Code,
    /// What it is for.
    pub purpose: Purpose,
    /// For how long it is good.
    pub expires_in: Duration,
}

impl Message {
    /// A message.
    #[must_use]
    pub fn new(to: Option<Destination>, code: Code, purpose: Purpose, expires_in: Duration) -> Self {
        Self { to, code, purpose, expires_in }
    }

    /// Its text, code included.
    #[must_use]
    pub fn body(&self) -> Zeroizing<String> {
        let (code, minutes) = (self.code.digits(), self.expires_in.as_secs().div_ceil(60));
        let mut body = Zeroizing::new(String::with_capacity(128));
        // Writing to a String cannot fail.
        let _ = write!(
            body,
            "{code} is your code for {}. It is good for {minutes} min. Never tell it to anybody.",
            self.purpose
        );
        body
    }
}

/// The message was not taken, or nobody knows. Nothing contains a code or a number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the message was not taken: {0}")]
pub struct CourierError(pub String);

/// Takes messages along.
pub trait Courier: Send + Sync {
    /// Takes a message to be delivered soon, once.
    fn take(&self, message: Message) -> impl Future<Output = Result<(), CourierError>> + Send;
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use tollgate_policy::Policy;

    #[test]
    fn a_message_says_what_its_code_is_for_and_how_long_it_is_good() {
        let policy = Policy::parse("version = 1\n[otp]\npurposes = ['change-phone']\n").unwrap().policy;
        let purpose = policy.otp_for("change-phone").unwrap().1.clone();
        let message = Message::new(None, Code::parse("012345", 6).unwrap(), purpose, Duration::from_secs(300));
        let text = "012345 is your code for change-phone. It is good for 5 min. Never tell it to anybody.";
        assert_eq!(message.body().as_str(), text);
        assert!(!format!("{message:?}").contains("012345"));
    }
}
