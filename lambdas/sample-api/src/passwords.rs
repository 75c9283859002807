//! Who has which password.
//!
//! Invariant: an account that there is and one that there is not get the same answer after the same work.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fmt;
use tollgate::source::{Error, PolicySource, Reader, ReaderOptions};

/// The variable that names an SSM parameter (`SecureString`) with the password of the sample's accounts.
pub const PARAMETER: &str = "SAMPLE_API_PASSWORD_PARAMETER";

/// Tells whose password is right.
pub trait Passwords: fmt::Debug + Send + Sync {
    /// Whether `password` is that of `username`. Takes as long if there is no such account, and wherever the two differ.
    fn is_right(&self, username: &str, password: &str) -> bool;
}

/// One password, which all accounts of a sample have; or none, and nobody gets in.
#[derive(Clone)]
pub struct OneForAll {
    tag: Vec<u8>,
    exists: bool,
}

impl OneForAll {
    /// The password of development servers, which everybody knows.
    pub const DEVELOPMENT: &str = "correct horse";

    /// With this password, if there is one and it is not empty.
    #[must_use]
    pub fn new(password: Option<&str>) -> Self {
        let password = password.filter(|password| !password.is_empty());
        let tag = hash(password.unwrap_or_default()).map(|mac| mac.finalize().into_bytes().to_vec());
        Self { tag: tag.unwrap_or_default(), exists: password.is_some() }
    }

    /// With the password in the parameter that [`PARAMETER`] names; without the variable, nobody gets in.
    ///
    /// # Errors
    ///
    /// The parameter cannot be read.
    pub async fn from_environment() -> Result<Self, Error> {
        let Some(name) = std::env::var(PARAMETER).ok().filter(|name| !name.is_empty()) else {
            return Ok(Self::new(None));
        };
        let loaded = Reader::open(PolicySource::Ssm { name }, &ReaderOptions::default()).await?.load().await?;
        Ok(Self::new(loaded.text.as_deref().map(str::trim)))
    }
}

/// Both are hashed before they are compared, so that neither's length or beginning shows in the time that it takes.
fn hash(password: &str) -> Option<Hmac<Sha256>> {
    Some(Hmac::new_from_slice(b"sample-api password").ok()?.chain_update(password))
}

impl Passwords for OneForAll {
    fn is_right(&self, _username: &str, password: &str) -> bool {
        hash(password).is_some_and(|mac| mac.verify_slice(&self.tag).is_ok()) & self.exists
    }
}

/// Without the hash of the password.
impl fmt::Debug for OneForAll {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OneForAll").field("exists", &self.exists).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_right_if_it_is_the_same_and_without_one_none_is() {
        let all = OneForAll::new(Some("correct horse"));
        assert!(all.is_right("a@x.org", "correct horse") && all.is_right("b@x.org", "correct horse"));
        for wrong in ["", "correct horse ", "Correct horse", "battery staple"] {
            assert!(!all.is_right("a@x.org", wrong), "{wrong:?}");
        }
        for nobody in [OneForAll::new(None), OneForAll::new(Some(""))] {
            assert!(!nobody.is_right("a@x.org", "") && !nobody.is_right("a@x.org", "correct horse"), "{nobody:?}");
        }
        assert_eq!(format!("{all:?}"), "OneForAll { exists: true, .. }");
    }
}
