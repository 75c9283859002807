//! A vault on AWS KMS: whoever reads the table, and all secrets of the policy, can open nothing without the key.
//!
//! The encryption context is the account, as a hash, and the kind of factor; CloudTrail shows it with every use of the key (KMS Developer
//! Guide, "Encryption context"). Invariant: a secret is opened under the key that its text names, among those of the same account and
//! Region as the key of new ones, as far as the function's role may use them.

use aws_config::SdkConfig;
use aws_sdk_kms::Client;
use aws_sdk_kms::primitives::Blob;
use aws_smithy_types::retry::RetryConfig;
use aws_smithy_types::timeout::TimeoutConfig;
use std::time::Duration;
use tollgate_dynamodb::cause::told;
use tollgate_mfa::factors::vault::{read, written};
use tollgate_mfa::factors::{Vault, VaultContext, VaultError};
use zeroize::Zeroizing;

/// What a request may take, once repeated: somebody waits for it.
const LONGEST: Duration = Duration::from_secs(2);

/// What is before the id in a key's ARN.
const OF_KEY: &str = ":key/";

/// Secrets sealed by KMS.
#[derive(Debug)]
pub struct KmsVault {
    client: Client,
    /// The ARN of the key of new secrets, up to its id, and the id.
    prefix: String,
    id: String,
}

/// The text is no ARN of a KMS key. An alias is none: nobody could tell what is sealed under the key that it had before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoKey;

impl KmsVault {
    /// A vault whose new secrets are sealed under the key of this ARN, `arn:aws:kms:REGION:ACCOUNT:key/ID`.
    ///
    /// # Errors
    ///
    /// [`NoKey`].
    pub fn new(config: &SdkConfig, key: &str) -> Result<Self, NoKey> {
        let (prefix, id) = key.split_at(key.find(OF_KEY).ok_or(NoKey)? + OF_KEY.len());
        if !prefix.starts_with("arn:") || !is_id(id) {
            return Err(NoKey);
        }
        // Both are made again without harm.
        let retries = RetryConfig::standard().with_max_attempts(2).with_initial_backoff(Duration::from_millis(50));
        let timeouts =
            TimeoutConfig::builder().operation_timeout(LONGEST).operation_attempt_timeout(LONGEST / 2).build();
        let config = aws_sdk_kms::config::Builder::from(config).retry_config(retries).timeout_config(timeouts).build();
        Ok(Self { client: Client::from_conf(config), prefix: prefix.to_owned(), id: id.to_owned() })
    }

    fn arn(&self, id: &str) -> String {
        format!("{}{id}", self.prefix)
    }
}

/// A UUID, or `mrk-` and 32 digits.
fn is_id(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

/// The names and values of the encryption context.
fn context(context: &VaultContext) -> [(&'static str, &str); 2] {
    [("tollgate:account", &context.account), ("tollgate:factor", context.kind)]
}

impl Vault for KmsVault {
    async fn seal(&self, of: &VaultContext, secret: &[u8]) -> Result<String, VaultError> {
        let mut request = self.client.encrypt().key_id(self.arn(&self.id)).plaintext(Blob::new(secret));
        for (name, value) in context(of) {
            request = request.encryption_context(name, value);
        }
        let sealed = Box::pin(request.send()).await.map_err(|error| VaultError::sealing(told(&error)))?;
        let sealed =
            sealed.ciphertext_blob().ok_or_else(|| VaultError::sealing("KMS has answered without a ciphertext"))?;
        Ok(written(&self.id, sealed.as_ref()))
    }

    async fn open(&self, of: &VaultContext, sealed: &str) -> Result<Zeroizing<Vec<u8>>, VaultError> {
        let (id, sealed) = read(sealed)?;
        if !is_id(id) {
            return Err(VaultError::opening("it names no key of KMS"));
        }
        let mut request = self.client.decrypt().key_id(self.arn(id)).ciphertext_blob(Blob::new(sealed));
        for (name, value) in context(of) {
            request = request.encryption_context(name, value);
        }
        let opened = Box::pin(request.send()).await.map_err(|error| VaultError::opening(told(&error)))?;
        let opened = opened.plaintext.ok_or_else(|| VaultError::opening("KMS has answered without a plaintext"))?;
        Ok(Zeroizing::new(opened.into_inner()))
    }

    fn is_current(&self, sealed: &str) -> bool {
        read(sealed).is_ok_and(|(id, _)| id == self.id)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const KEY: &str = "arn:aws:kms:eu-central-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab";

    fn vault(key: &str) -> Result<KmsVault, NoKey> {
        KmsVault::new(&SdkConfig::builder().behavior_version(aws_config::BehaviorVersion::latest()).build(), key)
    }

    #[test]
    fn a_key_is_named_by_its_arn_and_nothing_else() {
        let kms = vault(KEY).unwrap();
        assert_eq!(kms.arn(&kms.id), KEY);
        assert!(kms.is_current("1234abcd-12ab-34cd-56ef-1234567890ab.AAAA"));
        assert!(!kms.is_current("mrk-1234abcd12ab34cd56ef12345678990ab.AAAA") && !kms.is_current("k1.AAAA"));
        let alias = "arn:aws:kms:eu-central-1:123456789012:alias/factors";
        for wrong in ["", alias, "1234abcd-12ab-34cd-56ef-1234567890ab", "arn:aws:kms:x:1:key/", &format!("{KEY}/x")] {
            assert!(vault(wrong).is_err(), "{wrong}");
        }
    }
}
