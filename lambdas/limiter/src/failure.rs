//! What a direct caller is told instead of a decision: a function error, whose `errorType` says whose fault it is.
//!
//! Invariant: a payload with `allowed` in it is a decision. A caller that does not look at the function error finds no
//! `allowed`, so it cannot take a failure for a permission.

use lambda_runtime::Diagnostic;
use tollgate::decisions::Reply;

/// No decision. Step Functions and the like match on the variant's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The event asks for nothing that can be decided; asking again is of no use.
    #[error("{0}")]
    BadRequest(String),
    /// The table gave no answer and the limit is `closed`; nothing says that the caller is limited.
    #[error("{0}")]
    LimiterUnavailable(String),
}

impl From<Reply> for Failure {
    fn from(reply: Reply) -> Self {
        let message = reply.body["message"].as_str().unwrap_or("no reason was given").to_owned();
        if reply.status == 400 { Self::BadRequest(message) } else { Self::LimiterUnavailable(message) }
    }
}

impl From<Failure> for Diagnostic {
    fn from(failure: Failure) -> Self {
        let error_type = match failure {
            Failure::BadRequest(_) => "BadRequest",
            Failure::LimiterUnavailable(_) => "LimiterUnavailable",
        };
        Self { error_type: error_type.to_owned(), error_message: failure.to_string() }
    }
}
