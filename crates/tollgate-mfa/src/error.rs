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
    /// The caller cannot be told from the policy's dimensions.
    #[error(transparent)]
    Policy(#[from] tollgate_policy::Error),
    /// The table gave no answer, or has an item that this version did not write.
    #[error(transparent)]
    Store(#[from] tollgate_dynamodb::Error),
}
