//! What an error of the SDK says of a message.
//!
//! Invariants: that nothing was sent is claimed only where the service or the operating system says so; no text has anything of the
//! request, so of what a service says only its code is kept.

use aws_credential_types::provider::error::CredentialsError;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use std::error::Error as StdError;
pub(crate) use tollgate_dynamodb::cause::told;
use tollgate_dynamodb::cause::{mentions, never_connected};
use tollgate_otp::Undelivered;

/// What became of the message whose request failed.
pub(crate) fn undelivered<E>(error: &SdkError<E, HttpResponse>) -> Undelivered
where
    E: ProvideErrorMetadata + StdError + 'static,
{
    let told = told(error);
    match error {
        SdkError::ServiceError(context) => {
            let code = context.err().code().unwrap_or_default();
            match context.raw().status().as_u16() {
                429 => Undelivered::NotNow(told),
                400..=499 if is_throttled(code) => Undelivered::NotNow(told),
                400..=499 => Undelivered::Refused(told),
                _ => Undelivered::Unknown(told),
            }
        }
        SdkError::ConstructionFailure(_) => Undelivered::Refused(told),
        _ if mentions::<CredentialsError>(error) || never_connected(error) => Undelivered::NotNow(told),
        _ => Undelivered::Unknown(told),
    }
}

/// The same of a request that does no harm if it is made again.
pub(crate) fn undone<E>(error: &SdkError<E, HttpResponse>) -> Undelivered
where
    E: ProvideErrorMetadata + StdError + 'static,
{
    match undelivered(error) {
        Undelivered::Unknown(told) => Undelivered::NotNow(told),
        other => other,
    }
}

/// Services that speak JSON throttle with 400 as well (their API references, "Common errors").
fn is_throttled(code: &str) -> bool {
    code.starts_with("Throttling") || code.starts_with("TooManyRequests") || code == "RequestLimitExceeded"
}
