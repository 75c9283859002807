//! What is behind an error of the SDK.
//!
//! Invariants: that a request was never sent is said only where the operating system says so; no text has anything of the request, so of
//! what a service says only its code is kept.

use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use std::error::Error as StdError;

/// Whether the operating system refused the connection, so that no byte of the request left.
#[must_use]
pub fn never_connected(error: &(dyn StdError + 'static)) -> bool {
    use std::io::ErrorKind::{AddrNotAvailable, ConnectionRefused, HostUnreachable, NetworkUnreachable};
    chain(error).any(|e| {
        e.downcast_ref::<std::io::Error>().is_some_and(|io| {
            matches!(io.kind(), ConnectionRefused | HostUnreachable | NetworkUnreachable | AddrNotAvailable)
        }) || e.to_string().contains("dns error")
    })
}

/// Whether one of the causes is a `T`.
#[must_use]
pub fn mentions<T: StdError + 'static>(error: &(dyn StdError + 'static)) -> bool {
    chain(error).any(<dyn StdError>::is::<T>)
}

pub(crate) fn chain<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |e: &&'a (dyn StdError + 'static)| (*e).source())
}

/// What the first cause says.
#[must_use]
pub fn root_cause(error: &(dyn StdError + 'static)) -> String {
    chain(error).last().map_or_else(String::new, ToString::to_string)
}

/// What is known of a failure, for logs.
#[must_use]
pub fn told<E>(error: &SdkError<E, HttpResponse>) -> String
where
    E: ProvideErrorMetadata + StdError + 'static,
{
    match error {
        SdkError::ServiceError(context) => {
            format!("{} ({})", context.err().code().unwrap_or("no code"), context.raw().status().as_u16())
        }
        SdkError::TimeoutError(_) => "no answer in time".to_owned(),
        _ => root_cause(error),
    }
}
