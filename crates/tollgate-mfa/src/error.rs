//! Why there is no answer. That somebody has to prove again who he is, is one: see [`Shortcoming`](crate::Shortcoming).

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Nobody knows whether the caller may go on; so nobody does.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system gave no random numbers.
    #[error("the system gives no random numbers: {0}")]
    NoRandomness(String),
    /// A secret cannot be sealed or opened.
    #[cfg(feature = "factors")]
    #[error(transparent)]
    Vault(#[from] crate::factors::VaultError),
    /// A picture of an `otpauth` URI, or the URI, cannot be made.
    #[cfg(feature = "factors")]
    #[error("no authenticator app can be set up by that name: {0}")]
    Unspeakable(String),
    /// A passkey cannot be asked for, or one that is stored cannot be read.
    #[cfg(feature = "factors")]
    #[error("passkeys cannot be used: {0}")]
    Passkeys(String),
    /// A change of factors cannot be told to whom it concerns, and is not made.
    #[cfg(feature = "factors")]
    #[error("nobody can be told of a change of factors: {0}")]
    Unannounced(String),
    /// The caller cannot be told from the policy's dimensions.
    #[error(transparent)]
    Policy(#[from] tollgate_policy::Error),
    /// The table gave no answer, or has an item that this version did not write.
    #[error(transparent)]
    Store(#[from] tollgate_dynamodb::Error),
}
