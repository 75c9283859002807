//! What a command can fail with, and the exit code that tells scripts whose fault it is.
//!
//! 0 fine, 1 bad input or a failed check, 2 drift, 3 AWS or network.

use std::path::PathBuf;
use tollgate_dynamodb::Error as Store;
use tollgate_waf::converge::Error as Waf;

/// A result of a command.
pub type Result<T> = std::result::Result<T, CliError>;

/// Why a command failed. The text is one line that says what, where and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CliError {
    /// The command line or a file has something wrong.
    #[error("{0}")]
    Input(String),
    /// The command ran and what it checked does not hold.
    #[error("{0}")]
    Check(String),
    /// A file cannot be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The policy file has errors; they are the text.
    #[error("{0}")]
    Policy(String),
    /// The table gave no answer.
    #[error(transparent)]
    Store(#[from] tollgate_dynamodb::Error),
    /// The table gave no answer after a part of the work was done.
    #[error("{source}; {part}")]
    Part {
        /// What was done, and what was not.
        part: String,
        /// What went wrong then.
        source: tollgate_dynamodb::Error,
    },
    /// What is there is not what the policy says.
    #[error("{0}")]
    Drift(String),
    /// AWS WAF cannot be brought to what the policy says.
    #[error(transparent)]
    Waf(#[from] tollgate_waf::converge::Error),
    /// A port or a child process cannot be had.
    #[error("{0}")]
    System(String),
    /// The async runtime cannot start.
    #[error("cannot start the runtime: {0}")]
    Runtime(std::io::Error),
}

impl CliError {
    /// The exit code: 1 for bad input and failed checks, 2 for drift, 3 for AWS and the network.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Store(error) | Self::Part { source: error, .. } => match error {
                // A request that DynamoDB refuses is one that was asked wrongly.
                Store::Core(_) | Store::TableExists(_) | Store::Refused { .. } | Store::Held { .. } => 1,
                _ => 3,
            },
            Self::Waf(error) => waf_exit_code(error),
            Self::Drift(_) => 2,
            _ => 1,
        }
    }
}

fn waf_exit_code(error: &Waf) -> u8 {
    match error {
        Waf::Call(failure) => match failure.code.as_deref() {
            // A request that WAF refuses is one that was asked wrongly.
            Some(code) if code.starts_with("WAFInvalid") || code == "WAFLimitsExceededException" => 1,
            _ => 3,
        },
        Waf::Contended { .. } => 3,
        _ => 1,
    }
}

impl From<tollgate_core::Error> for CliError {
    fn from(error: tollgate_core::Error) -> Self {
        Self::Input(error.to_string())
    }
}

impl From<tollgate_policy::Error> for CliError {
    fn from(error: tollgate_policy::Error) -> Self {
        match error {
            tollgate_policy::Error::Invalid { .. } => Self::Policy(error.to_string()),
            other => Self::Input(other.to_string()),
        }
    }
}
