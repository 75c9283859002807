//! Who seals the secrets that have to be read again.
//!
//! A sealed text is `KEY.SEALED`: the name of the key, and the rest in base64url. Another key can take over while the old one is still
//! there: what it has sealed is opened, and sealed anew when it is used. Invariant: what was sealed for one account and kind is not opened
//! for another; whatever cannot be opened is an error.

mod local;

pub use local::LocalVault;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::fmt;
use std::future::Future;
use zeroize::Zeroizing;

/// What a secret is sealed for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct VaultContext {
    /// The account: a hash of its item's partition key, since whoever audits a vault sees it.
    pub account: String,
    /// The kind of factor.
    pub kind: &'static str,
}

impl VaultContext {
    /// That of a secret in the item with that partition key.
    #[must_use]
    pub fn new(pk: &str, kind: super::Kind) -> Self {
        Self { account: crate::grant::hashed(pk.as_bytes()), kind: kind.as_str() }
    }
}

/// A secret cannot be sealed or opened. No message has any of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a factor's secret cannot be {what}: {why}")]
pub struct VaultError {
    what: &'static str,
    why: String,
}

impl VaultError {
    /// It cannot be sealed.
    pub fn sealing(why: impl fmt::Display) -> Self {
        Self { what: "sealed", why: why.to_string() }
    }

    /// It cannot be opened.
    pub fn opening(why: impl fmt::Display) -> Self {
        Self { what: "opened", why: why.to_string() }
    }
}

/// Seals secrets, and opens them.
pub trait Vault: fmt::Debug + Send + Sync {
    /// The secret, sealed for that context under the key of new secrets.
    ///
    /// # Errors
    ///
    /// It cannot be sealed.
    fn seal(&self, context: &VaultContext, secret: &[u8]) -> impl Future<Output = Result<String, VaultError>> + Send;

    /// What was sealed for that context.
    ///
    /// # Errors
    ///
    /// It was sealed for another one, under a key that is gone, or by nobody; or nobody knows.
    fn open(
        &self,
        context: &VaultContext,
        sealed: &str,
    ) -> impl Future<Output = Result<Zeroizing<Vec<u8>>, VaultError>> + Send;

    /// Whether it is sealed under the key of new secrets.
    fn is_current(&self, sealed: &str) -> bool;
}

/// What was sealed under a key, as text.
#[must_use]
pub fn written(key: &str, sealed: &[u8]) -> String {
    format!("{key}.{}", URL_SAFE_NO_PAD.encode(sealed))
}

/// The name of the key, and what was sealed under it.
///
/// # Errors
///
/// The text is none that [`written`] writes.
pub fn read(text: &str) -> Result<(&str, Vec<u8>), VaultError> {
    let (key, sealed) = text.split_once('.').ok_or_else(|| VaultError::opening("it has no name of a key"))?;
    let sealed = URL_SAFE_NO_PAD.decode(sealed).map_err(|_| VaultError::opening("it is not base64url"))?;
    Ok((key, sealed))
}
