//! Signatures by ring, which is in every function already for its TLS: `jsonwebtoken` takes whichever cryptography it is given.
//!
//! Invariant: this side only verifies; it has no private key, and signs nothing.

use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::signature::{self, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind};
use ring::signature as ring;

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(ErrorKind::UnsupportedAlgorithm.into()),
    verifier_factory,
    key_utils: KeyUtils::new_unimplemented(),
};

/// Has `jsonwebtoken` verify by it. A program that has chosen another one keeps that.
pub(super) fn install() {
    if CryptoProvider::try_get_default().is_none() {
        // Somebody else was faster, with this one or his own.
        let _ = PROVIDER.install_default();
    }
}

struct Key {
    algorithm: Algorithm,
    key: DecodingKey,
}

fn verifier_factory(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    if key.family() != algorithm.family() {
        return Err(ErrorKind::InvalidKeyFormat.into());
    }
    Ok(Box::new(Key { algorithm: *algorithm, key: key.clone() }))
}

impl JwtVerifier for Key {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl Verifier<Vec<u8>> for Key {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), signature::Error> {
        let verified = match self.key.kind() {
            DecodingKeyKind::RsaModulusExponent { n, e } => {
                let parameters = rsa(self.algorithm).ok_or_else(signature::Error::new)?;
                ring::RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            DecodingKeyKind::SecretOrDer(bytes) => {
                let algorithm = curve(self.algorithm).ok_or_else(signature::Error::new)?;
                ring::UnparsedPublicKey::new(algorithm, bytes).verify(message, signature)
            }
        };
        verified.map_err(|_| signature::Error::new())
    }
}

fn rsa(algorithm: Algorithm) -> Option<&'static ring::RsaParameters> {
    Some(match algorithm {
        Algorithm::RS256 => &ring::RSA_PKCS1_2048_8192_SHA256,
        Algorithm::RS384 => &ring::RSA_PKCS1_2048_8192_SHA384,
        Algorithm::RS512 => &ring::RSA_PKCS1_2048_8192_SHA512,
        Algorithm::PS256 => &ring::RSA_PSS_2048_8192_SHA256,
        Algorithm::PS384 => &ring::RSA_PSS_2048_8192_SHA384,
        Algorithm::PS512 => &ring::RSA_PSS_2048_8192_SHA512,
        _ => return None,
    })
}

fn curve(algorithm: Algorithm) -> Option<&'static dyn ring::VerificationAlgorithm> {
    Some(match algorithm {
        Algorithm::ES256 => &ring::ECDSA_P256_SHA256_FIXED,
        Algorithm::ES384 => &ring::ECDSA_P384_SHA384_FIXED,
        Algorithm::EdDSA => &ring::ED25519,
        _ => return None,
    })
}
