//! Why there is no comparison.

/// A result of this program.
pub(crate) type Result<T> = std::result::Result<T, Error>;

/// What can go wrong; the text is one line.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A contestant ended or did not answer an order as the protocol says; it has said why on standard error.
    #[error("{contestant}: {problem}")]
    Contestant {
        /// Whose.
        contestant: String,
        /// What happened.
        problem: String,
    },
    /// What must hold of the counts does not.
    #[error("{0}")]
    Check(String),
    /// A limit or a key is not as the library wants it.
    #[error(transparent)]
    Policy(#[from] tollgate::tollgate_policy::Error),
    /// The table gave no answer.
    #[error(transparent)]
    Store(#[from] tollgate::tollgate_dynamodb::Error),
    /// The embedded DynamoDB cannot be had.
    #[error(transparent)]
    Embedded(#[from] tollgate_cli::error::CliError),
    /// A file, a pipe or a process cannot be had.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// A line is not of the protocol.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// The bare requests, whose libraries' errors are of many types.
    #[error("a bare request: {0}")]
    Bare(String),
}

impl Error {
    pub(crate) fn bare(error: impl std::fmt::Display) -> Self {
        Self::Bare(error.to_string())
    }
}
