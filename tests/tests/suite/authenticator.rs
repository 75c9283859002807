//! A browser and an authenticator in software (1Password's), which ask and answer in the JSON of WebAuthn.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::FutureExt;
use passkey::authenticator::{Authenticator, MemoryStore, UiHint, UserCheck, UserValidationMethod};
use passkey::client::{Client, DefaultClientData};
use passkey::crypto::rust_crypto::RustCryptoBackend;
use passkey::types::Passkey;
use passkey::types::ctap2::{Aaguid, Ctap2Error, get_assertion};
use passkey::types::webauthn::{CredentialCreationOptions, CredentialRequestOptions, PublicKeyCredentialDescriptor};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use url::Url;

/// Whoever holds the authenticator: he touches it, and is known to it if it can know him.
struct Holder {
    is_known: bool,
}

#[async_trait::async_trait]
impl UserValidationMethod for Holder {
    type PasskeyItem = Passkey;

    async fn check_user<'a>(
        &self,
        _hint: UiHint<'a, Passkey>,
        presence: bool,
        verification: bool,
    ) -> Result<UserCheck, Ctap2Error> {
        Ok(UserCheck { presence, verification: verification && self.is_known })
    }

    fn is_presence_enabled(&self) -> bool {
        true
    }

    fn is_verification_enabled(&self) -> Option<bool> {
        self.is_known.then_some(true)
    }
}

/// A device with its keys.
#[derive(Clone)]
pub struct Device {
    keys: MemoryStore,
    counts: bool,
    knows_its_holder: bool,
}

impl Device {
    /// One that synchronises: its counter is always zero.
    pub fn new() -> Self {
        Self { keys: MemoryStore::new(), counts: false, knows_its_holder: true }
    }

    /// One that counts its signatures.
    pub fn counting() -> Self {
        Self { counts: true, ..Self::new() }
    }

    /// One that anybody can touch.
    pub fn anybodys() -> Self {
        Self { knows_its_holder: false, ..Self::new() }
    }

    fn authenticator(&self) -> Authenticator<MemoryStore, Holder, RustCryptoBackend> {
        let holder = Holder { is_known: self.knows_its_holder };
        let mut made = Authenticator::new(Aaguid::new_empty(), self.keys.clone(), holder, RustCryptoBackend);
        made.set_make_credentials_with_signature_counter(self.counts);
        made
    }

    /// `navigator.credentials.create` on a page of that origin, and `toJSON`.
    pub fn creates(&mut self, origin: &str, options: &Value) -> Value {
        let mut browser = Client::new(self.authenticator()).allows_insecure_localhost(true);
        let asked: CredentialCreationOptions = serde_json::from_value(json!({ "publicKey": options })).unwrap();
        let made = at_once(browser.register(&origin.parse::<Url>().unwrap(), asked, DefaultClientData)).unwrap();
        self.keys = browser.authenticator().store().clone();
        in_webauthns_form(serde_json::to_value(&made).unwrap())
    }

    /// `navigator.credentials.get` likewise.
    pub fn gets(&mut self, origin: &str, options: &Value) -> Value {
        let mut browser = Client::new(self.authenticator()).allows_insecure_localhost(true);
        let asked: CredentialRequestOptions = serde_json::from_value(json!({ "publicKey": options })).unwrap();
        let signed = at_once(browser.authenticate(&origin.parse::<Url>().unwrap(), asked, DefaultClientData)).unwrap();
        self.keys = browser.authenticator().store().clone();
        in_webauthns_form(serde_json::to_value(&signed).unwrap())
    }

    /// The same device's keys on another one.
    pub fn take_keys_of(&mut self, other: &Self) {
        self.keys = other.keys.clone();
    }

    /// What the account's passkeys on it are known by.
    pub fn ids(&self) -> Vec<String> {
        self.keys.keys().map(|id| encoded(&digest(&SHA256, id).as_ref()[..16])).collect()
    }

    /// A registration whose credential has the id and key of the one that it has, as if it were made anew.
    pub fn creates_again(&mut self, origin: &str, options: &Value) -> Value {
        let known = self.keys.keys().next().unwrap().clone();
        let mut options = options.clone();
        options["excludeCredentials"] = json!([]);
        let mut made = Self { keys: MemoryStore::new(), ..self.clone() }.creates(origin, &options);
        let mut attested = decoded(&made["response"]["attestationObject"]);
        let fresh = decoded(&made["rawId"]);
        // Without attestation nothing signs the id.
        assert_eq!(fresh.len(), known.len());
        let at = attested.windows(fresh.len()).position(|bytes| bytes == fresh).unwrap();
        attested[at..at + known.len()].copy_from_slice(&known);
        made["response"]["attestationObject"] = encoded(&attested).into();
        made["id"] = encoded(&known).into();
        made["rawId"] = encoded(&known).into();
        made
    }

    /// A signature by a passkey that the options do not allow.
    pub fn signs_with_all(&mut self, origin: &str, options: &Value) -> Value {
        let mut options = options.clone();
        options["allowCredentials"] =
            self.keys.keys().map(|id| json!({ "type": "public-key", "id": encoded(id) })).collect();
        self.gets(origin, &options)
    }

    /// What a browser would never do: the device signs whatever `client` data, for whatever domain.
    pub fn signs(&mut self, rp_id: &str, client: &Value, options: &Value) -> Value {
        let mut authenticator = self.authenticator();
        let client = client.to_string();
        let allowed: Vec<PublicKeyCredentialDescriptor> =
            serde_json::from_value(options["allowCredentials"].clone()).unwrap();
        let request = get_assertion::Request {
            rp_id: rp_id.to_owned(),
            client_data_hash: digest(&SHA256, client.as_bytes()).as_ref().into(),
            allow_list: Some(allowed),
            extensions: None,
            options: get_assertion::Options { up: true, uv: true },
            pin_auth: None,
            pin_protocol: None,
        };
        let signed = at_once(authenticator.get_assertion(request)).unwrap();
        self.keys = authenticator.store().clone();
        let id = encoded(&signed.credential.unwrap().id);
        json!({
            "id": id, "rawId": id, "type": "public-key", "clientExtensionResults": {},
            "response": {
                "clientDataJSON": encoded(client.as_bytes()),
                "authenticatorData": encoded(&signed.auth_data.to_vec()),
                "signature": encoded(&signed.signature),
            },
        })
    }

    /// What a browser says of an assertion.
    pub fn client_data(origin: &str, options: &Value) -> Value {
        json!({ "type": "webauthn.get", "challenge": options["challenge"], "origin": origin, "crossOrigin": false })
    }
}

/// Bytes in base64url, as `toJSON` has them: in the library's JSON they are lists of numbers.
fn in_webauthns_form(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields.into_iter().map(|(name, value)| (name, in_webauthns_form(value))).collect(),
        Value::Array(list) => match list.iter().map(|n| n.as_u64()?.try_into().ok()).collect::<Option<Vec<u8>>>() {
            Some(bytes) if !bytes.is_empty() => encoded(&bytes).into(),
            _ => list.into(),
        },
        other => other,
    }
}

pub fn encoded(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

pub fn decoded(text: &Value) -> Vec<u8> {
    URL_SAFE_NO_PAD.decode(text.as_str().unwrap()).unwrap()
}

/// Nothing in it ever waits.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().expect("an authenticator in memory")
}
