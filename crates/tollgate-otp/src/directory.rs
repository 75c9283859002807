//! Who has verified which number and which email address.
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
    /// The email address that he has proved to have.
    pub verified_email: Option<String>,
}

impl Profile {
    /// Of somebody who has proved to have this number.
    #[must_use]
    pub fn with_phone(mut self, number: impl Into<String>) -> Self {
        self.verified_phone = Some(number.into());
        self
    }

    /// Of somebody who has proved to have this email address.
    #[must_use]
    pub fn with_email(mut self, address: impl Into<String>) -> Self {
        self.verified_email = Some(address.into());
        self
    }
}

/// Without the number and the address.
impl fmt::Debug for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (has_phone, has_email) = (self.verified_phone.is_some(), self.verified_email.is_some());
        f.debug_struct("Profile").field("has_phone", &has_phone).field("has_email", &has_email).finish()
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
