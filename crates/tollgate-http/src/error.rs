//! Why a request could not be decided. For logs: what a caller sees of it is 503, without any of these texts.

/// A result of this crate.
pub(crate) type Result<T> = std::result::Result<T, Error>;

/// A request could not be decided. A denial is never an error.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The store gave no answer.
    #[error(transparent)]
    Store(#[from] tollgate_dynamodb::Error),
    /// The charges of the route do not make a decision.
    #[error(transparent)]
    Policy(#[from] tollgate_policy::Error),
}
