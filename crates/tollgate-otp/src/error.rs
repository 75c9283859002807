//! Why there is no answer. A wrong code, a lock and a cooldown are answers: see [`Verification`](crate::Verification) and
//! [`Issuance`](crate::Issuance).

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// No code was made or verified. No message contains a code, a destination or an account.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// What was given as a code has never been one. It was compared with nothing, and costs no attempt.
    #[error("a code is exactly {digits} digits 0-9")]
    Malformed {
        /// How many.
        digits: u8,
    },
    /// There is nowhere to send a code to.
    #[error("a code needs a destination, and it is empty")]
    NoDestination,
    /// The system gave no random numbers.
    #[error("the system gives no random numbers: {0}")]
    NoRandomness(String),
    /// The policy has no such purpose, no `[otp]`, or no secrets.
    #[error(transparent)]
    Policy(#[from] tollgate_policy::Error),
    /// Nobody knows where the code would go.
    #[error(transparent)]
    Directory(#[from] crate::DirectoryError),
    /// The message with the code was not taken along, or nobody knows.
    #[error(transparent)]
    Courier(#[from] crate::CourierError),
    /// A CAPTCHA is needed and nobody has judged it.
    #[error(transparent)]
    Captcha(#[from] crate::CaptchaError),
    /// What was queued cannot be read: it was sealed under a secret that is gone, or by nobody.
    #[error("a queued message cannot be opened: {0}")]
    Sealed(&'static str),
    /// The message was not sent, and may be later.
    #[error(transparent)]
    Undelivered(#[from] crate::Undelivered),
    /// The table gave no answer, or has an item that this version did not write. Nobody is verified, and no message is to be sent.
    #[error(transparent)]
    Store(#[from] tollgate_dynamodb::Error),
}

impl Error {
    /// Whether the caller has given something that cannot be right (400), in contrast to what the server failed at (503).
    #[must_use]
    pub fn is_bad_input(&self) -> bool {
        matches!(
            self,
            Self::Malformed { .. } | Self::NoDestination | Self::Policy(tollgate_policy::Error::UnknownPurpose { .. })
        )
    }
}
