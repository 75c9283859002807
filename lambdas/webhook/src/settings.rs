//! The environment variables.
//!
//! | variable | value | default |
//! | --- | --- | --- |
//! | `TOLLGATE_WEBHOOK_SECRET` | where the sender's secrets are, like `secretsmanager:ARN` or `ssm:NAME` | required |
//! | `TOLLGATE_WEBHOOK_QUEUE_URL` | the queue, a FIFO one | required |
//! | `TOLLGATE_WEBHOOK_HEADER` | the header with the signature | `stripe-signature` |
//! | `TOLLGATE_WEBHOOK_TOLERANCE_S` | seconds that a signature's time may be from the present, 1 to 86,400 | 300 |
//!
//! Invariant: a message names the variable and what to give it.

use lambda_http::http::HeaderName;
use std::time::Duration;
use tollgate::lambda::InitError;
use tollgate::source::PolicySource;

pub(crate) const SECRET: &str = "TOLLGATE_WEBHOOK_SECRET";
const QUEUE: &str = "TOLLGATE_WEBHOOK_QUEUE_URL";
const HEADER: &str = "TOLLGATE_WEBHOOK_HEADER";
const TOLERANCE: &str = "TOLLGATE_WEBHOOK_TOLERANCE_S";

/// What they say.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// Where the secrets are.
    pub secret: PolicySource,
    /// The queue's URL.
    pub queue_url: String,
    /// The header with the signature.
    pub header: String,
    /// How far its time may be from the present.
    pub tolerance: Duration,
    /// The function's name, by which its lines are told from others'.
    pub service: String,
}

impl Settings {
    /// Settings of this process.
    ///
    /// # Errors
    ///
    /// [`InitError::Missing`], [`InitError::Invalid`] or [`InitError::Policy`] for the first variable that is wrong.
    pub fn from_environment() -> Result<Self, Box<InitError>> {
        Self::from_lookup(|name| std::env::var(name).ok())
    }

    /// Settings as `lookup` tells them; a variable that is set to nothing counts as not set.
    ///
    /// # Errors
    ///
    /// As [`Settings::from_environment`].
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, Box<InitError>> {
        let value = |name| lookup(name).filter(|value: &String| !value.is_empty());
        let required = |name, give| value(name).ok_or_else(|| Box::new(InitError::Missing { name, give }));
        let invalid = |name, value, give: &str| Box::new(InitError::Invalid { name, value, give: give.to_owned() });
        let secret = required(SECRET, "the place of the sender's secret, like secretsmanager:tollgate/webhook")?;
        let queue_url = required(QUEUE, "the URL of the queue that webhooks go to")?;
        let header = value(HEADER).unwrap_or_else(|| "stripe-signature".to_owned());
        if HeaderName::try_from(&header).is_err() {
            return Err(invalid(HEADER, header, "the name of a header"));
        }
        let tolerance = value(TOLERANCE).unwrap_or_else(|| "300".to_owned());
        let seconds = tolerance.parse().ok().filter(|seconds| (1..=86_400).contains(seconds));
        let seconds = seconds.ok_or_else(|| invalid(TOLERANCE, tolerance, "a whole number from 1 to 86400"))?;
        Ok(Self {
            secret: secret.parse().map_err(InitError::from)?,
            queue_url,
            header,
            tolerance: Duration::from_secs(seconds),
            service: value("AWS_LAMBDA_FUNCTION_NAME").unwrap_or_default(),
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Result<Settings, String> {
        let both = [(SECRET, "secretsmanager:tollgate/webhook"), (QUEUE, "https://sqs/q.fifo")];
        let find = |name: &str| {
            let all = variables.iter().chain(&both);
            all.clone().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned())
        };
        Settings::from_lookup(find).map_err(|error| error.to_string())
    }

    #[test]
    fn place_and_queue_must_be_named_and_the_rest_is_stripes() {
        let settings = of(&[]).unwrap();
        assert_eq!((settings.header.as_str(), settings.tolerance.as_secs()), ("stripe-signature", 300));
        for name in [SECRET, QUEUE] {
            assert!(of(&[(name, "")]).unwrap_err().contains(name));
        }
        for (name, wrong) in [(HEADER, "a b"), (TOLERANCE, "0"), (TOLERANCE, "86401"), (TOLERANCE, "5m")] {
            assert!(of(&[(name, wrong)]).unwrap_err().contains(name), "{wrong}");
        }
    }
}
