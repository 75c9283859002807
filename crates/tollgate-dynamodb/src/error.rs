//! Why the store gave no answer, and above all whether a write may have been applied all the same.
//!
//! Invariant: [`Fate::NotApplied`] is claimed only where DynamoDB or the operating system says so. Everything else is
//! [`Fate::Unknown`] and never sent again, since sending again could charge twice.

use crate::cause::{chain, mentions, never_connected, root_cause};
use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::types::ThrottlingReason;
use aws_sdk_dynamodb::types::error::{ProvisionedThroughputExceededException, ThrottlingException};
use std::error::Error as StdError;
use std::time::Duration;

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Whether a failed write may have changed the item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fate {
    /// It has not.
    NotApplied,
    /// It may have: the request was sent and no answer came that says.
    Unknown,
}

impl Fate {
    fn told(self) -> &'static str {
        match self {
            Self::NotApplied => "nothing was charged",
            Self::Unknown => "the last may have been applied and is not repeated",
        }
    }
}

/// The store gave no answer. "Limited" is never an error, so an error never means it.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The table throttles; nothing was written.
    #[error("DynamoDB throttled the request ({0}); it was not applied")]
    Throttled(String),
    /// One partition of the table takes no more for now: some key is written more often than that. The table itself is fine.
    #[error("a key is asked for more often than its partition of the table takes (KeyRangeThroughputExceeded); {}", .0.told())]
    HotKey(Fate),
    /// The table has failed several times in a row and was not asked.
    #[error("DynamoDB has given no answer several times in a row and is spared for seconds; nothing was written")]
    Suspended,
    /// No answer in time, or a broken one, or a server error: the write may have been applied.
    #[error("no usable answer from DynamoDB ({0}); the write may have been applied and is not repeated")]
    Ambiguous(String),
    /// No answer in time, or a broken one, to a request that writes nothing.
    #[error("no usable answer from {endpoint} ({cause}); is that a DynamoDB endpoint?")]
    NoAnswer {
        /// Where the request was sent.
        endpoint: String,
        /// What went wrong.
        cause: String,
    },
    /// No connection to the endpoint; nothing was written.
    #[error("cannot connect to DynamoDB at {endpoint}: {cause}; is the endpoint right and the server running?")]
    Unreachable {
        /// Where the client tried to connect.
        endpoint: String,
        /// What the operating system said.
        cause: String,
    },
    /// The deadline passed before anything was written.
    #[error("no answer from DynamoDB within {0:?}; nothing was written")]
    Deadline(Duration),
    /// The table does not exist.
    #[error("table {table:?} does not exist at {endpoint}; create it with `tollgate table create --table {table}`")]
    TableMissing {
        /// The table.
        table: String,
        /// Where it was looked for.
        endpoint: String,
    },
    /// The credentials chain found nothing.
    #[error(
        "no AWS credentials found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or run under a role"
    )]
    NoCredentials,
    /// AWS does not accept the credentials.
    #[error("AWS does not accept the credentials: {0}; renew them (an expired token?) and check the machine's clock")]
    BadCredentials(String),
    /// No Region is configured.
    #[error("no AWS Region is configured; set AWS_REGION or pass --region")]
    NoRegion,
    /// The caller may not do this.
    #[error("AWS refused {action}: {message}; grant {action} on the table to this role")]
    AccessDenied {
        /// The IAM action that is needed.
        action: &'static str,
        /// What AWS said.
        message: String,
    },
    /// DynamoDB refused the request as malformed: the table has another key schema, or this is a bug.
    #[error("DynamoDB refused {action}: {message}; check the table with `tollgate table describe`")]
    Refused {
        /// The IAM action.
        action: &'static str,
        /// What DynamoDB said.
        message: String,
    },
    /// The table that was to be created exists.
    #[error("table {0:?} exists already; see what it is like with `tollgate table describe`")]
    TableExists(String),
    /// The table was created, but not all of its settings.
    #[error("table {table:?} was created, but: {cause}; see what is left with `tollgate table describe`")]
    Incomplete {
        /// The table.
        table: String,
        /// What went wrong then.
        cause: Box<Error>,
    },
    /// Something that an operator has set is in force, and what was asked for would lift it unsaid.
    #[error("a ban or override of {key} is in force; lift it first with `tollgate allow {key}`")]
    Held {
        /// The key, as the command line takes it.
        key: String,
    },
    /// A transaction has the item, or, of a global table, another Region is writing it; nothing was written.
    #[error("a transaction or another Region was writing the item; nothing was written")]
    Conflict,
    /// Others changed an item each time between two writes of this decision, until its time or its tries were over.
    #[error("gave up after {writes} writes to a contended key; {}", .fate.told())]
    Contended {
        /// Writes that were sent, transactions counted once.
        writes: u32,
        /// Whether the last of them may have been applied all the same: no answer came in time.
        fate: Fate,
    },
    /// The item does not have the form that this version writes, or the input is bad.
    #[error(transparent)]
    Core(#[from] tollgate_core::Error),
}

impl Error {
    /// Whether a write that failed with this error may have been applied.
    #[must_use]
    pub fn fate(&self) -> Fate {
        match self {
            Self::Ambiguous(_) => Fate::Unknown,
            Self::Contended { fate, .. } | Self::HotKey(fate) => *fate,
            _ => Fate::NotApplied,
        }
    }

    /// Whether the store is to be counted as gone, so that a limit's policy for that case applies. Contention, and requests
    /// and items that cannot be right, are none of that: they must not become a way past the limit. A hot key is that key's affair.
    #[must_use]
    pub fn is_outage(&self) -> bool {
        match self {
            Self::Throttled(_)
            | Self::Ambiguous(_)
            | Self::NoAnswer { .. }
            | Self::Unreachable { .. }
            | Self::Deadline(_)
            | Self::TableMissing { .. }
            | Self::NoCredentials
            | Self::BadCredentials(_)
            | Self::NoRegion
            | Self::Suspended
            | Self::AccessDenied { .. } => true,
            Self::HotKey(_)
            | Self::TableExists(_)
            | Self::Incomplete { .. }
            | Self::Refused { .. }
            | Self::Held { .. }
            | Self::Conflict
            | Self::Contended { .. }
            | Self::Core(_) => false,
        }
    }

    /// Whether the store failed, of the table or of one key: a limit's policy for that case applies.
    pub(crate) fn is_store_failure(&self) -> bool {
        self.is_outage() || matches!(self, Self::HotKey(_))
    }

    /// Whether the same write may be sent again: only where the answer says that it was not applied and that waiting
    /// helps.
    #[must_use]
    pub fn may_be_retried(&self) -> bool {
        matches!(self, Self::Throttled(_) | Self::HotKey(Fate::NotApplied) | Self::Conflict)
    }
}

/// The operation, table and endpoint that an SDK error is about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) action: &'static str,
    pub(crate) table: &'a str,
    pub(crate) endpoint: &'a str,
}

/// Sorts an SDK error by what it says about the write.
pub(crate) fn classify<E, R>(error: &SdkError<E, R>, context: Context<'_>) -> Error
where
    E: ProvideErrorMetadata + StdError + 'static,
    R: std::fmt::Debug + 'static,
{
    let message = error.message().map_or_else(|| root_cause(error), str::to_owned);
    match error {
        SdkError::ServiceError(_) if is_hot_key(error) => Error::HotKey(Fate::NotApplied),
        SdkError::ServiceError(_) => by_code(error.code().unwrap_or("unknown"), message, context),
        _ if mentions::<CredentialsError>(error) => {
            tracing::debug!(cause = root_cause(error), "no provider has credentials");
            Error::NoCredentials
        }
        SdkError::ConstructionFailure(_) => before_sending(root_cause(error), context),
        SdkError::DispatchFailure(failure) => {
            let cause = failure.as_connector_error().map_or_else(|| root_cause(error), |e| root_cause(e));
            if never_connected(error) {
                Error::Unreachable { endpoint: context.endpoint.to_owned(), cause }
            } else if failure.is_user() {
                before_sending(cause, context)
            } else {
                unanswered(cause, context)
            }
        }
        // Timeouts, unreadable responses, and whatever the SDK adds.
        _ => unanswered(root_cause(error), context),
    }
}

/// Whether one partition alone throttles (API Reference, "ThrottlingReason": resource, operation and kind of limit in one word). Of
/// several reasons another one is the table's.
fn is_hot_key(error: &(dyn StdError + 'static)) -> bool {
    let reasons = chain(error).find_map(|e| {
        let throttled = e.downcast_ref::<ThrottlingException>().map(ThrottlingException::throttling_reasons);
        let exceeded = || {
            let error = e.downcast_ref::<ProvisionedThroughputExceededException>();
            error.map(ProvisionedThroughputExceededException::throttling_reasons)
        };
        throttled.or_else(exceeded)
    });
    let is_hot = |reason: &ThrottlingReason| reason.reason().is_some_and(|r| r.ends_with("KeyRangeThroughputExceeded"));
    reasons.is_some_and(|reasons| !reasons.is_empty() && reasons.iter().all(is_hot))
}

/// Only a write can have been applied.
fn unanswered(cause: String, context: Context<'_>) -> Error {
    match context.action {
        "dynamodb:UpdateItem" | "dynamodb:DeleteItem" => Error::Ambiguous(cause),
        _ => Error::NoAnswer { endpoint: context.endpoint.to_owned(), cause },
    }
}

fn before_sending(message: String, context: Context<'_>) -> Error {
    Error::Refused { action: context.action, message }
}

/// The reason of a write that another transaction was in the way of.
pub(crate) const CONFLICT: &str = "TransactionConflict";

/// Why a transaction was cancelled, if not for a condition: nothing was written either way.
pub(crate) fn by_cancellation(code: &str, context: Context<'_>) -> Error {
    match code {
        CONFLICT => Error::Conflict,
        "ProvisionedThroughputExceeded" | "ThrottlingError" => Error::Throttled(code.to_owned()),
        _ => Error::Refused { action: context.action, message: format!("the transaction was cancelled: {code}") },
    }
}

/// DynamoDB's error codes, by what they say (Developer Guide, "Error handling").
fn by_code(code: &str, message: String, context: Context<'_>) -> Error {
    let action = context.action;
    match code {
        "ProvisionedThroughputExceededException"
        | "ThrottlingException"
        | "RequestLimitExceeded"
        | "LimitExceededException" => Error::Throttled(code.to_owned()),
        // The second is of global tables with strong consistency: "The request was rejected because one or more items in the
        // request are being modified by a request in another Region" (API Reference).
        "TransactionConflictException" | "ReplicatedWriteConflictException" => Error::Conflict,
        "ResourceNotFoundException" => {
            Error::TableMissing { table: context.table.to_owned(), endpoint: context.endpoint.to_owned() }
        }
        "AccessDeniedException" => Error::AccessDenied { action, message },
        "UnrecognizedClientException"
        | "MissingAuthenticationTokenException"
        | "IncompleteSignatureException"
        | "InvalidSignatureException"
        | "ExpiredTokenException" => Error::BadCredentials(message),
        "ValidationException" | "SerializationException" | "UnknownOperationException" | "ResourceInUseException" => {
            Error::Refused { action, message }
        }
        // InternalServerError, ServiceUnavailable, and codes that this version does not know.
        _ => unanswered(format!("{code}: {message}"), context),
    }
}
