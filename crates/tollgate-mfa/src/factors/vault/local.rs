//! A vault in the process: AES-256-GCM under a key that is made of the policy's [`KeySecrets`], for development and tests.
//!
//! Each account and kind has a key of its own: HMAC-SHA-256 of these under the secret; nonces are random. Invariant: without the secrets
//! nothing is sealed or opened.

use super::{Vault, VaultContext, VaultError, read, written};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use std::fmt;
use std::future::{Future, ready};
use tollgate_policy::KeySecrets;
use zeroize::{Zeroize, Zeroizing};

/// What keys are made for; nobody else signs under that name.
const SIGNED: &[u8] = b"factor vault 1";

/// A vault under [`KeySecrets`]. Whoever can read these can open all; where factors are worth something, have another.
#[derive(Clone)]
pub struct LocalVault(KeySecrets);

impl LocalVault {
    /// A vault under these secrets.
    #[must_use]
    pub fn new(secrets: KeySecrets) -> Self {
        Self(secrets)
    }

    fn sealed(&self, context: &VaultContext, secret: &[u8]) -> Result<String, VaultError> {
        let signed = self.0.sign(&[SIGNED, context.account.as_bytes(), context.kind.as_bytes()]);
        let (id, key) = signed.ok_or_else(|| VaultError::sealing("there are no key secrets"))?;
        let mut sealed = vec![0; NONCE_LEN];
        crate::factors::random(&mut sealed).map_err(VaultError::sealing)?;
        let nonce = Nonce::try_assume_unique_for_key(&sealed).map_err(VaultError::sealing)?;
        let mut text = Zeroizing::new(secret.to_vec());
        let tag = cipher(key)?.seal_in_place_separate_tag(nonce, Aad::from(id.as_bytes()), text.as_mut_slice());
        let tag = tag.map_err(VaultError::sealing)?;
        sealed.extend_from_slice(&text);
        sealed.extend_from_slice(tag.as_ref());
        Ok(written(id, &sealed))
    }

    fn opened(&self, context: &VaultContext, sealed: &str) -> Result<Zeroizing<Vec<u8>>, VaultError> {
        let (id, mut sealed) = read(sealed)?;
        let key = self.0.sign_under(id, &[SIGNED, context.account.as_bytes(), context.kind.as_bytes()]);
        let key = key.ok_or_else(|| VaultError::opening("its key is not here"))?;
        let (nonce, text) =
            sealed.split_at_mut_checked(NONCE_LEN).ok_or_else(|| VaultError::opening("it is too short"))?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(VaultError::opening)?;
        let opened = cipher(key)?.open_in_place(nonce, Aad::from(id.as_bytes()), text);
        let opened = opened.map(|opened| Zeroizing::new(opened.to_vec()));
        sealed.zeroize();
        opened.map_err(|_| VaultError::opening("it was not sealed under that key for that account"))
    }
}

fn cipher(mut key: [u8; 32]) -> Result<LessSafeKey, VaultError> {
    let cipher = UnboundKey::new(&AES_256_GCM, &key).map(LessSafeKey::new);
    key.zeroize();
    cipher.map_err(VaultError::sealing)
}

impl Vault for LocalVault {
    fn seal(&self, context: &VaultContext, secret: &[u8]) -> impl Future<Output = Result<String, VaultError>> + Send {
        ready(self.sealed(context, secret))
    }

    fn open(
        &self,
        context: &VaultContext,
        sealed: &str,
    ) -> impl Future<Output = Result<Zeroizing<Vec<u8>>, VaultError>> + Send {
        ready(self.opened(context, sealed))
    }

    fn is_current(&self, sealed: &str) -> bool {
        read(sealed).is_ok_and(|(id, _)| self.0.ids().next() == Some(id))
    }
}

/// Without the secrets.
impl fmt::Debug for LocalVault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LocalVault").field(&self.0).finish()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::factors::Kind;

    const OLD: &str = "k1=AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";
    const NEW: &str = "k2=__79_Pv6-fj39vX08_Lx8O_u7ezr6uno5-bl5OPi4eA";

    fn vault(secrets: &str) -> LocalVault {
        LocalVault::new(secrets.parse().unwrap())
    }

    fn context(pk: &str) -> VaultContext {
        VaultContext::new(pk, Kind::Totp)
    }

    #[test]
    fn what_was_sealed_is_opened_for_the_same_account_and_kind_only() {
        let vault = vault(OLD);
        let sealed = vault.sealed(&context("a"), b"secret").unwrap();
        assert_eq!(vault.opened(&context("a"), &sealed).unwrap().as_slice(), b"secret");
        assert!(vault.opened(&context("b"), &sealed).is_err());
        assert!(vault.opened(&VaultContext::new("a", Kind::Recovery), &sealed).is_err());
        assert_ne!(sealed, vault.sealed(&context("a"), b"secret").unwrap(), "no two seals are alike");
    }

    #[test]
    fn what_was_changed_is_not_opened() {
        let vault = vault(OLD);
        let sealed = vault.sealed(&context("a"), b"secret").unwrap();
        for at in 0..sealed.len() {
            let mut changed = sealed.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            // The last character of base64 has bits to spare, which must be zero.
            assert!(vault.opened(&context("a"), &changed).is_err(), "{at}: {changed}");
        }
        for wrong in ["", "k1", "k1.", "k1.AAAA", &sealed[..sealed.len() - 4]] {
            assert!(vault.opened(&context("a"), wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_new_key_takes_over_while_the_old_one_opens_what_it_has_sealed() {
        let (old, both, new) = (vault(OLD), vault(&format!("{NEW},{OLD}")), vault(NEW));
        let sealed = old.sealed(&context("a"), b"secret").unwrap();
        assert_eq!(both.opened(&context("a"), &sealed).unwrap().as_slice(), b"secret");
        assert!(old.is_current(&sealed) && !both.is_current(&sealed));
        let again = both.sealed(&context("a"), b"secret").unwrap();
        assert!(again.starts_with("k2.") && both.is_current(&again));
        assert!(new.opened(&context("a"), &sealed).is_err() && new.opened(&context("a"), &again).is_ok());
    }

    #[test]
    fn without_secrets_nothing_is_sealed_and_none_is_in_debug_text() {
        assert!(LocalVault::new(KeySecrets::default()).sealed(&context("a"), b"secret").is_err());
        assert_eq!(format!("{:?}", vault(OLD)), r#"LocalVault(KeySecrets(["k1"]))"#);
    }
}
