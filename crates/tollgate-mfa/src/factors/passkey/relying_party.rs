//! What authenticators say: asked for, parsed, verified. Options and answers have the JSON of WebAuthn Level 3, sections 5.1.8 to 5.1.10
//! (`PublicKeyCredential.parseCreationOptionsFromJSON`, `toJSON`), so that a page needs no code of its own for them.
//!
//! Invariants: of an answer nothing counts but what its signature covers; what comes from a frame of another origin is refused, and what
//! names another account.

use super::challenge::ChallengeId;
use super::{LONGEST_CREDENTIAL, Passkey, PasskeyId, Signed};
use crate::error::{Error, Result};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fmt;
use std::time::Duration;
use tollgate_core::Timestamp;
use tollgate_policy::{PasskeyRules, UserVerification};
use url::Url;
use webauthn_rs_core::WebauthnCore;
use webauthn_rs_core::error::WebauthnError;
use webauthn_rs_core::proto::{
    AttestationFormat, AuthenticationState, AuthenticatorTransport, Credential, ParsedAttestation, PublicKeyCredential,
    PublicKeyCredentialDescriptor, RegisterPublicKeyCredential, RegisteredExtensions, RegistrationState,
    RequestRegistrationExtensions, ResidentKeyRequirement, UserVerificationPolicy,
};

/// Characters of a name that are sent to an authenticator, which may cut it at 64 bytes.
const LONGEST_LABEL: usize = 64;

/// What `navigator.credentials.create` gives a page, by its `toJSON`.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub struct Registration(RegisterPublicKeyCredential);

/// What `navigator.credentials.get` gives a page, by its `toJSON`.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub struct Assertion(PublicKeyCredential);

impl Registration {
    /// What the passkey that it says it is of would be known by.
    #[must_use]
    pub fn id(&self) -> PasskeyId {
        PasskeyId::of(&self.0.raw_id)
    }
}

impl Assertion {
    /// The id of the credential that it says it is of.
    #[must_use]
    pub fn credential(&self) -> &[u8] {
        &self.0.raw_id
    }
}

/// Why what an authenticator says is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// It proves nothing.
    Wrong(String),
    /// The signature is right, and the counter went back: somebody may have a copy.
    Cloned,
}

/// What is asked of an authenticator.
#[derive(Debug, Clone)]
pub struct Request {
    /// The challenge.
    pub id: ChallengeId,
    /// `publicKey`, for a page.
    pub options: Value,
    /// What verifying the answer needs.
    pub state: String,
}

/// Whose passkeys they are, by the policy.
#[derive(Debug)]
pub struct RelyingParty {
    core: WebauthnCore,
    id: String,
    verification: UserVerificationPolicy,
    timeout: Duration,
}

/// What the options say of a registration's account.
#[derive(Debug, Clone, Copy)]
pub struct Owner<'a> {
    /// What authenticators know it by: no name, since they show it to whoever has them.
    pub handle: Handle,
    /// What a browser shows him by.
    pub label: &'a str,
}

/// What authenticators know an account by (`user.id`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handle([u8; 32]);

impl Handle {
    /// That of the account whose item has that partition key.
    #[must_use]
    pub fn of(pk: &str) -> Self {
        Self(Sha256::new().chain_update(b"user handle 1").chain_update(pk).finalize().into())
    }
}

impl RelyingParty {
    /// The one of a policy, called `name`.
    ///
    /// # Errors
    ///
    /// [`Error::Passkeys`] for an origin that no policy has.
    pub fn new(name: &str, rules: &PasskeyRules) -> Result<Self> {
        let origins = rules.origins.iter().map(|origin| Url::parse(origin)).collect::<std::result::Result<_, _>>();
        let origins = origins.map_err(unusable)?;
        // Neither subdomains nor other ports: only the origins that are named.
        let core = WebauthnCore::new_unsafe_experts_only(name, &rules.rp_id, origins, rules.timeout, None, None);
        let verification = match rules.user_verification {
            UserVerification::Required => UserVerificationPolicy::Required,
            UserVerification::Preferred => UserVerificationPolicy::Preferred,
        };
        Ok(Self { core, id: rules.rp_id.clone(), verification, timeout: rules.timeout })
    }

    /// The domain that passkeys are made for.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// For how long a challenge can be answered.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Asks for a new passkey of `owner`, on an authenticator that has none of `known`.
    ///
    /// # Errors
    ///
    /// [`Error::Passkeys`] if the library does not make one.
    pub fn ask_to_register(&self, owner: Owner<'_>, known: &[Passkey]) -> Result<Request> {
        let label: String = owner.label.chars().take(LONGEST_LABEL).collect();
        let builder = self.core.new_challenge_register_builder(&owner.handle.0, &label, &label).map_err(unusable)?;
        let nothing = RequestRegistrationExtensions {
            cred_protect: None,
            uvm: None,
            cred_props: None,
            min_pin_length: None,
            hmac_create_secret: None,
        };
        let builder = builder.user_verification_policy(self.verification).extensions(Some(nothing));
        let (mut asked, state) = self.core.generate_challenge_register(builder).map_err(unusable)?;
        // Told to the browser and not kept in the state: that none is registered twice is a condition of the write.
        let known = known.iter().map(|passkey| PublicKeyCredentialDescriptor {
            type_: "public-key".to_owned(),
            id: passkey.credential.clone(),
            transports: Some(passkey.transports()),
        });
        asked.public_key.exclude_credentials = Some(known.collect());
        if let Some(selection) = &mut asked.public_key.authenticator_selection {
            // What password managers and phones take for a passkey; where there is no room for one it is a key all the same.
            selection.resident_key = Some(ResidentKeyRequirement::Preferred);
        }
        let options = serde_json::to_value(&asked.public_key).map_err(unusable)?;
        request(options, serde_json::to_string(&state))
    }

    /// The passkey that was made for the challenge with that `state`; without a name.
    ///
    /// # Errors
    ///
    /// None was made, or not as it was asked for.
    pub fn registered(
        &self,
        answer: &Registration,
        state: &str,
        now: Timestamp,
    ) -> std::result::Result<Passkey, Refusal> {
        let state: RegistrationState = serde_json::from_str(state).map_err(wrong)?;
        let made = self.core.register_credential(&answer.0, &state, None).map_err(wrong)?;
        if made.cred_id.is_empty() || made.cred_id.len() > LONGEST_CREDENTIAL {
            return Err(wrong("the credential's id is too long"));
        }
        let transports = answer.0.response.transports.iter().flatten();
        let known = transports.filter(|transport| **transport != AuthenticatorTransport::Unknown);
        let mut transports: Vec<_> = known.map(ToString::to_string).collect();
        transports.sort();
        transports.dedup();
        Ok(Passkey {
            key: serde_json::to_string(&made.cred).map_err(wrong)?,
            credential: made.cred_id,
            is_verified: made.user_verified,
            transports,
            name: String::new(),
            since: now,
            used: None,
            state: Signed {
                count: made.counter,
                can_be_backed_up: made.backup_eligible,
                is_backed_up: made.backup_state,
            },
        })
    }

    /// Asks for a signature of one of `passkeys`.
    ///
    /// # Errors
    ///
    /// [`Error::Passkeys`] if one of them cannot be read, or the library does not make one.
    pub fn ask_to_assert(&self, passkeys: &[Passkey]) -> Result<Request> {
        let credentials =
            passkeys.iter().map(Passkey::read).collect::<std::result::Result<_, _>>().map_err(unusable)?;
        let builder = self.core.new_challenge_authenticate_builder(credentials, Some(self.verification));
        let builder = builder.map_err(unusable)?.allow_backup_eligible_upgrade(true);
        let (asked, mut state) = self.core.generate_challenge_authenticate(builder).map_err(unusable)?;
        // The passkey that signs is looked up when it has: as it is then, or not at all.
        state.set_allowed_credentials(Vec::new());
        let options = serde_json::to_value(&asked.public_key).map_err(unusable)?;
        request(options, serde_json::to_string(&state))
    }

    /// What `passkey` says of itself by its signature of the challenge with that `state`.
    ///
    /// # Errors
    ///
    /// The signature is none of it, of that challenge, for one of our origins, or of a passkey of another account's.
    pub fn asserted(
        &self,
        answer: &Assertion,
        state: &str,
        passkey: &Passkey,
        owner: Handle,
    ) -> std::result::Result<Signed, Refusal> {
        let handle = answer.0.response.user_handle.as_deref().filter(|handle| !handle.is_empty());
        if handle.is_some_and(|handle| handle != owner.0) {
            return Err(wrong("it is another account's"));
        }
        let client: ClientData = serde_json::from_slice(&answer.0.response.client_data_json).map_err(wrong)?;
        if client.cross_origin {
            return Err(wrong("it was made in a frame of another origin"));
        }
        let state: AuthenticationState = serde_json::from_str(state).map_err(wrong)?;
        let credential = passkey.read().map_err(wrong)?;
        match self.core.authenticate_single_credential(&answer.0, &state, &credential) {
            Ok(said) => Ok(Signed {
                count: said.counter(),
                can_be_backed_up: said.backup_eligible(),
                is_backed_up: said.backup_state(),
            }),
            Err(WebauthnError::CredentialPossibleCompromise) => Err(Refusal::Cloned),
            Err(error) => Err(wrong(error)),
        }
    }
}

/// What the library looks at for registrations only.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClientData {
    #[serde(default)]
    cross_origin: bool,
}

impl Passkey {
    fn transports(&self) -> Vec<AuthenticatorTransport> {
        self.transports.iter().filter_map(|transport| transport.parse().ok()).collect()
    }

    /// As the library has it. That its authenticator has to know its owner follows from its having done so.
    fn read(&self) -> serde_json::Result<Credential> {
        Ok(Credential {
            cred_id: self.credential.clone(),
            cred: serde_json::from_str(&self.key)?,
            counter: self.state.count,
            transports: Some(self.transports()),
            user_verified: self.is_verified,
            backup_eligible: self.state.can_be_backed_up,
            backup_state: self.state.is_backed_up,
            registration_policy: UserVerificationPolicy::Preferred,
            extensions: RegisteredExtensions::none(),
            attestation: ParsedAttestation::default(),
            attestation_format: AttestationFormat::None,
        })
    }
}

fn request(options: Value, state: serde_json::Result<String>) -> Result<Request> {
    let id = options["challenge"].as_str().and_then(|challenge| challenge.parse().ok());
    let id = id.ok_or_else(|| Error::Passkeys("no challenge was made".to_owned()))?;
    Ok(Request { id, options, state: state.map_err(unusable)? })
}

fn unusable(error: impl fmt::Display) -> Error {
    Error::Passkeys(error.to_string())
}

fn wrong(why: impl fmt::Display) -> Refusal {
    Refusal::Wrong(why.to_string())
}
