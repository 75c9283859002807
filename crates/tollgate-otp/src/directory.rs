//! Who has verified which number.
//!
//! Invariant: a code goes where the profile says, never where a request does.

use std::fmt;
use std::future::Future;
use tollgate_core::Key;

/// What is known of an account.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Profile {
    /// The number that the account's owner has proved to have.
    pub verified_phone: Option<String>,
}

impl Profile {
    /// Of somebody who has proved to have this number.
    #[must_use]
    pub fn with_phone(number: impl Into<String>) -> Self {
        Self { verified_phone: Some(number.into()) }
    }
}

/// Without the number.
impl fmt::Debug for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Profile").field("has_phone", &self.verified_phone.is_some()).finish()
    }
}

/// The directory gave no answer. No message contains an account or a number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the directory gave no answer: {0}")]
pub struct DirectoryError(pub String);

/// Where profiles are.
pub trait Directory: Send + Sync {
    /// The profile of an account, like `tenant:acme,user:alice`, whose owner has passed the first factor. `None` if there is none;
    /// takes as long as if there were.
    fn profile(&self, account: &Key) -> impl Future<Output = Result<Option<Profile>, DirectoryError>> + Send;
}
