//! Why there is no newer policy, or no secrets. Every message is one line, since it ends in a log.
//!
//! `place` is the policy or parameter as the environment names it. Invariant: [`Error::is_transient`] holds only where asking again at once may help.

use std::time::Duration;
use tollgate_policy::Diagnostics;

/// A result of this module.
pub type Result<T> = std::result::Result<T, Error>;

/// The policy could not be read, or is not one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text names no place.
    #[error("policy source {given:?}: {help}")]
    NoPlace {
        /// What was given.
        given: String,
        /// What to write instead.
        help: &'static str,
    },
    /// The file could not be read.
    #[error("cannot read the policy {place}: {cause}; check the path and its permissions")]
    Read {
        /// Which file.
        place: String,
        /// What the system said.
        cause: std::io::Error,
    },
    /// The endpoint, the Region or the credentials of this process are not what they should be.
    #[error("cannot ask AWS for {place}: {cause}")]
    Setup {
        /// Which policy.
        place: String,
        /// What is wrong, and what to do.
        cause: String,
    },
    /// No answer came, or a broken one.
    #[error("no usable answer for {place}: {cause}")]
    NoAnswer {
        /// Which policy.
        place: String,
        /// What is known of the reason.
        cause: String,
    },
    /// No answer in time.
    #[error("no answer for {place} within {within:?}")]
    Late {
        /// Which policy.
        place: String,
        /// The time that one attempt had.
        within: Duration,
    },
    /// AWS refused the request.
    #[error("AWS refused {action} for {place}: {code} ({status}): {message}; {help}")]
    Refused {
        /// Which policy.
        place: String,
        /// The IAM action.
        action: &'static str,
        /// The HTTP status.
        status: u16,
        /// The service's error code.
        code: String,
        /// What the service said.
        message: String,
        /// What to do.
        help: &'static str,
    },
    /// The policy is larger than [`MAX_BYTES`](super::MAX_BYTES).
    #[error("{place} has more than 1 MiB; is this the right place?")]
    TooLarge {
        /// Which policy.
        place: String,
    },
    /// The policy is not UTF-8 text.
    #[error("{place} is not UTF-8 text from byte {valid_up_to} on; save it as UTF-8")]
    NotText {
        /// Which policy.
        place: String,
        /// Bytes before the first that is not UTF-8.
        valid_up_to: usize,
    },
    /// Limits are counted by personal values, and there are no secrets to hash them under.
    #[error("the policy {place} cannot be used: {cause}")]
    NoSecrets {
        /// Which policy.
        place: String,
        /// Which dimensions, and what to set.
        cause: tollgate_policy::Error,
    },
    /// The policy has mistakes.
    #[error("the policy {place} has mistakes: {}", one_line(diagnostics))]
    Invalid {
        /// Which policy.
        place: String,
        /// All mistakes, and warnings.
        diagnostics: Diagnostics,
    },
}

impl Error {
    /// Whether asking once more at once may help.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::NoAnswer { .. } | Self::Late { .. } => true,
            Self::Refused { status, code, .. } => {
                const PASSING: [&str; 3] = ["Throttling", "SlowDown", "RequestTimeout"];
                *status >= 500 || *status == 429 || PASSING.iter().any(|passing| code.starts_with(passing))
            }
            _ => false,
        }
    }
}

/// All findings as `line:column: error: message (help)`, on one line.
pub(super) fn one_line(diagnostics: &Diagnostics) -> String {
    let shown = diagnostics.iter().map(|d| {
        let text = format!("{}:{}: {}: {} ({})", d.line, d.column, d.severity, d.message, d.help);
        text.replace(['\n', '\r'], " ")
    });
    shown.collect::<Vec<_>>().join("; ")
}
