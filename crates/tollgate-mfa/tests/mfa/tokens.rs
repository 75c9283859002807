//! Tokens of an issuer that rotates its keys, forged ones, and floods.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tollgate_core::Timestamp;
use tollgate_mfa::token::{Ages, Fetch, FetchError, Issuer, Rejected, Verifier};

const URL: &str = "https://issuer.example";
const NOW: u64 = 1_767_225_600;

/// An issuer's server, as far as anybody asks it.
#[derive(Debug, Clone, Default)]
struct Server(Arc<State>);

#[derive(Debug, Default)]
struct State {
    keys: Mutex<Vec<Value>>,
    asked: AtomicU64,
    is_gone: AtomicBool,
}

impl Fetch for Server {
    async fn fetch(&self, url: &str) -> Result<Vec<u8>, FetchError> {
        self.0.asked.fetch_add(1, Ordering::SeqCst);
        // As a network does: others come meanwhile.
        tokio::task::yield_now().await;
        if self.0.is_gone.load(Ordering::SeqCst) {
            return Err(FetchError { url: url.to_owned(), cause: "gone".to_owned() });
        }
        let keys = || self.0.keys.lock().unwrap().clone();
        Ok(match url.strip_prefix(URL).unwrap() {
            "/.well-known/openid-configuration" => json!({ "issuer": URL, "jwks_uri": format!("{URL}/keys") }),
            "/keys" => json!({ "keys": keys() }),
            other => panic!("{other}"),
        }
        .to_string()
        .into_bytes())
    }
}

/// The modulus of RFC 7515 appendix A.2, and the token that is signed there.
const MODULUS: &str = "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-\
    pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-\
    UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-\
    DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ";
const SIGNED: &str = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.\
    cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-\
    0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--\
    f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-\
    eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw";

/// One of an issuer's keys.
struct Signer {
    id: &'static str,
    pair: EcdsaKeyPair,
}

impl Signer {
    fn new(id: &'static str) -> Self {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &random).unwrap();
        Self { id, pair }
    }

    fn public(&self) -> Value {
        let point = self.pair.public_key().as_ref();
        let part = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        json!({ "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": self.id, "x": part(&point[1..33]), "y": part(&point[33..]) })
    }

    fn sign_under(&self, header: &Value, claims: &Value) -> String {
        let message = message(header, claims);
        let signature = self.pair.sign(&SystemRandom::new(), message.as_bytes()).unwrap();
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    fn sign(&self, claims: &Value) -> String {
        self.sign_under(&json!({ "alg": "ES256", "typ": "JWT", "kid": self.id }), claims)
    }
}

fn message(header: &Value, claims: &Value) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}", part(header), part(claims))
}

fn claims() -> Value {
    json!({ "iss": URL, "sub": "alice", "client_id": "app", "token_use": "access", "exp": NOW + 3600, "auth_time": NOW })
}

fn with(name: &str, value: Value) -> Value {
    let mut claims = claims();
    claims[name] = value;
    claims
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_secs(seconds)
}

fn world(signers: &[&Signer]) -> (Server, Verifier<Server>) {
    use std::str::FromStr;
    let server = Server::default();
    *server.0.keys.lock().unwrap() = signers.iter().map(|signer| signer.public()).collect();
    let mut issuer = Issuer::new(URL, ["app".to_owned()]);
    issuer.algorithms = ["ES256", "RS256", "EdDSA"].map(|name| FromStr::from_str(name).unwrap()).to_vec();
    (server.clone(), Verifier::new(issuer, server))
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

#[test]
fn a_token_of_the_issuer_is_believed_and_its_claims_are_what_it_says() {
    let one = Signer::new("one");
    let (_, verifier) = world(&[&one]);
    block_on(async {
        assert_eq!(verifier.verify(&one.sign(&claims()), at(NOW)).await.unwrap()["sub"], "alice");
        let audience = with("aud", json!(["other", "app"]));
        assert!(verifier.verify(&one.sign(&audience), at(NOW)).await.is_ok());
    });
}

#[test]
fn each_claim_that_is_wrong_is_refused() {
    let one = Signer::new("one");
    let (_, verifier) = world(&[&one]);
    let mut no_audience = claims();
    no_audience.as_object_mut().unwrap().remove("client_id");
    let mut no_expiry = claims();
    no_expiry.as_object_mut().unwrap().remove("exp");
    let wrong = [
        (with("iss", json!("https://issuer.example/")), "another issuer's"),
        (with("iss", json!([URL])), "another issuer's"),
        (with("aud", json!("other")), "no access token"),
        (with("aud", json!([])), "no access token"),
        (with("client_id", json!("other")), "no access token"),
        (with("token_use", json!("id")), "no access token"),
        (no_audience, "no access token"),
        (no_expiry, "expired"),
        (with("exp", json!(NOW - 5)), "expired"),
        (with("exp", json!((NOW + 3600) * 1000)), "expired"),
        (with("exp", json!("soon")), "expired"),
        (with("nbf", json!(NOW + 6)), "not good yet"),
        (with("nbf", json!("now")), "not good yet"),
    ];
    block_on(async {
        for (claims, says) in wrong {
            let error = verifier.verify(&one.sign(&claims), at(NOW)).await.unwrap_err().to_string();
            assert!(error.contains(says), "{claims}: {error}");
        }
        for fine in [with("exp", json!(NOW - 4)), with("nbf", json!(NOW + 5)), with("aud", json!("app"))] {
            assert!(verifier.verify(&one.sign(&fine), at(NOW)).await.is_ok(), "{fine}");
        }
    });
}

#[test]
fn nothing_is_believed_but_a_signature_by_the_named_key_with_a_pinned_algorithm() {
    let (one, two, stranger) = (Signer::new("one"), Signer::new("two"), Signer::new("one"));
    let (_, verifier) = world(&[&one, &two]);
    let header = |alg: &str, kid: Value| json!({ "alg": alg, "kid": kid });
    let good = one.sign(&claims());
    let (message_of, signature) = good.rsplit_once('.').unwrap();
    let other_claims = message(&header("ES256", json!("one")), &with("sub", json!("mallory")));
    // A shared secret that everybody knows: the public key.
    let confused = message(&header("HS256", json!("one")), &claims());
    let forged = [
        stranger.sign(&claims()),
        two.sign_under(&header("ES256", json!("one")), &claims()),
        one.sign_under(&header("RS256", json!("one")), &claims()),
        one.sign_under(&header("EdDSA", json!("one")), &claims()),
        one.sign_under(&header("ES384", json!("one")), &claims()),
        one.sign_under(&header("ES256", Value::Null), &claims()),
        one.sign_under(&json!({ "alg": "ES256", "kid": "one", "crit": ["x"], "x": 1 }), &claims()),
        one.sign_under(&json!({ "alg": "ES256", "kid": "one", "b64": false }), &claims()),
        format!("{other_claims}.{signature}"),
        format!("{confused}.{signature}"),
        format!("{}.", message(&header("none", json!("one")), &claims())),
        format!("{message_of}."),
        format!("{message_of}.{}", URL_SAFE_NO_PAD.encode([0; 64])),
        message_of.to_owned(),
        format!("{good}.x"),
        String::new(),
        "a".repeat(20_000),
        "é.é.é".to_owned(),
    ];
    block_on(async {
        for token in forged {
            let refused = verifier.verify(&token, at(NOW)).await;
            assert!(refused.is_err(), "{token}");
            assert!(!matches!(refused, Err(Rejected::Unavailable(_))), "{token}");
        }
        assert!(verifier.verify(&good, at(NOW)).await.is_ok());
    });
}

#[test]
fn a_token_of_another_kind_is_no_access_token() {
    let one = Signer::new("one");
    let (_, verifier) = world(&[&one]);
    let of = |typ: Value| one.sign_under(&json!({ "alg": "ES256", "kid": "one", "typ": typ }), &claims());
    block_on(async {
        for typ in ["logout+jwt", "secevent+jwt", "dpop+jwt", "JOSE", ""] {
            let refused = verifier.verify(&of(typ.into()), at(NOW)).await;
            assert!(matches!(refused, Err(Rejected::Audience)), "{typ}");
        }
        for typ in [json!("JWT"), json!("jwt"), json!("at+JWT"), json!("application/at+jwt"), Value::Null] {
            assert!(verifier.verify(&of(typ.clone()), at(NOW)).await.is_ok(), "{typ}");
        }
    });
}

#[test]
fn edwards_curves_are_verified_and_shared_secrets_in_the_set_are_no_keys() {
    let random = SystemRandom::new();
    let pair = Ed25519KeyPair::from_pkcs8(Ed25519KeyPair::generate_pkcs8(&random).unwrap().as_ref()).unwrap();
    let (server, verifier) = world(&[]);
    let x = URL_SAFE_NO_PAD.encode(pair.public_key());
    *server.0.keys.lock().unwrap() = vec![
        json!({ "kty": "oct", "kid": "shared", "k": "c2VjcmV0" }),
        json!({ "kty": "OKP", "crv": "Ed25519", "kid": "ed", "x": x, "use": "sig" }),
        json!({ "kty": "OKP", "crv": "Ed25519", "kid": "enc", "x": x, "use": "enc" }),
        json!({ "kty": "unheard-of", "kid": "new" }),
        json!(1),
    ];
    let token = |kid: &str| {
        let message = message(&json!({ "alg": "EdDSA", "kid": kid }), &claims());
        let signature = URL_SAFE_NO_PAD.encode(pair.sign(message.as_bytes()));
        format!("{message}.{signature}")
    };
    block_on(async {
        assert!(verifier.verify(&token("ed"), at(NOW)).await.is_ok());
        for kid in ["enc", "shared", "new"] {
            assert!(matches!(verifier.verify(&token(kid), at(NOW)).await, Err(Rejected::UnknownKey)), "{kid}");
        }
    });
}

#[test]
fn rsa_is_verified_by_modulus_and_exponent_and_a_shorter_or_altered_one_is_no_key() {
    let of = |modulus: &str, token: &str, algorithm: &str| {
        let (server, verifier) = world(&[]);
        *server.0.keys.lock().unwrap() =
            vec![json!({ "kty": "RSA", "use": "sig", "alg": algorithm, "n": modulus, "e": "AQAB" })];
        block_on(verifier.verify(token, at(NOW))).unwrap_err()
    };
    // Its signature is good; it is somebody else's token, of long ago.
    assert!(matches!(of(MODULUS, SIGNED, "RS256"), Rejected::Issuer));
    let (message, signature) = SIGNED.rsplit_once('.').unwrap();
    let mut bytes = URL_SAFE_NO_PAD.decode(signature).unwrap();
    bytes[7] ^= 1;
    let altered = format!("{message}.{}", URL_SAFE_NO_PAD.encode(bytes));
    assert!(matches!(of(MODULUS, &altered, "RS256"), Rejected::Signature));
    // Fewer than 2,048 bits are too few.
    assert!(matches!(of(&MODULUS[4..], SIGNED, "RS256"), Rejected::Signature));
    assert!(matches!(of(MODULUS, SIGNED, "RS512"), Rejected::Algorithm));
}

/// So old that what is asked for next is beyond the age, however slow the machine is.
const AGE: Duration = Duration::from_millis(20);
const NEVER: Duration = Duration::from_secs(3600);

#[test]
fn keys_are_fetched_again_once_they_are_old_and_one_that_was_withdrawn_is_none_any_more() {
    let (one, two) = (Signer::new("one"), Signer::new("two"));
    let (server, verifier) = world(&[&one]);
    let verifier =
        verifier.with_ages(Ages { fresh: AGE, cooldown: Duration::ZERO, kept: NEVER, retry: Duration::ZERO });
    block_on(async {
        assert!(verifier.verify(&one.sign(&claims()), at(NOW)).await.is_ok());
        *server.0.keys.lock().unwrap() = vec![two.public()];
        std::thread::sleep(AGE);
        assert!(matches!(verifier.verify(&one.sign(&claims()), at(NOW)).await, Err(Rejected::UnknownKey)));
        assert!(verifier.verify(&two.sign(&claims()), at(NOW)).await.is_ok());
        // While the issuer is gone they are good for as long as they are kept, and not for longer.
        server.0.is_gone.store(true, Ordering::SeqCst);
        std::thread::sleep(AGE);
        let before = verifier.keys().fetches();
        assert!(verifier.verify(&two.sign(&claims()), at(NOW)).await.is_ok());
        assert_eq!(verifier.keys().fetches(), before + 1);
        let verifier = verifier.with_ages(Ages { fresh: AGE, cooldown: NEVER, kept: AGE, retry: NEVER });
        assert!(matches!(verifier.verify(&two.sign(&claims()), at(NOW)).await, Err(Rejected::Unavailable(_))));
        assert_eq!(verifier.keys().fetches(), before + 1);
    });
}

#[test]
fn an_issuer_that_is_gone_keeps_nobody_waiting_for_whom_there_is_a_key() {
    let one = Signer::new("one");
    let (server, verifier) = world(&[&one]);
    let verifier = verifier.with_ages(Ages { fresh: AGE, cooldown: NEVER, kept: NEVER, retry: Duration::ZERO });
    block_on(async {
        assert!(verifier.verify(&one.sign(&claims()), at(NOW)).await.is_ok());
        server.0.is_gone.store(true, Ordering::SeqCst);
        let verifier = verifier.with_ages(Ages { fresh: AGE, cooldown: AGE, kept: NEVER, retry: Duration::ZERO });
        std::thread::sleep(AGE);
        assert!(verifier.verify(&one.sign(&claims()), at(NOW)).await.is_ok());
        let tried = verifier.keys().fetches();
        let verifier = verifier.with_ages(Ages { fresh: AGE, cooldown: NEVER, kept: NEVER, retry: Duration::ZERO });
        for _ in 0..20 {
            assert!(verifier.verify(&one.sign(&claims()), at(NOW)).await.is_ok());
        }
        assert_eq!((tried, verifier.keys().fetches()), (2, 2));
    });
}

#[test]
fn a_key_that_is_new_at_the_issuer_is_found_after_the_cooldown_by_one_request() {
    let (one, two, stranger) = (Signer::new("one"), Signer::new("two"), Signer::new("nobody"));
    let (server, verifier) = world(&[&one]);
    let waits = |cooldown| Ages { fresh: NEVER, cooldown, ..Ages::default() };
    block_on(async {
        assert!(verifier.verify(&one.sign(&claims()), at(NOW)).await.is_ok());
        *server.0.keys.lock().unwrap() = vec![one.public(), two.public()];
        let verifier = verifier.with_ages(waits(NEVER));
        assert!(matches!(verifier.verify(&two.sign(&claims()), at(NOW)).await, Err(Rejected::UnknownKey)));
        std::thread::sleep(AGE);
        let verifier = verifier.with_ages(waits(AGE));
        assert!(verifier.verify(&two.sign(&claims()), at(NOW)).await.is_ok());
        assert_eq!(verifier.keys().fetches(), 2);
        // Whatever comes now waits for the next cooldown.
        let verifier = verifier.with_ages(waits(NEVER));
        for _ in 0..100 {
            assert!(verifier.verify(&stranger.sign(&claims()), at(NOW)).await.is_err());
        }
        assert_eq!(verifier.keys().fetches(), 2);
    });
}

#[test]
fn a_flood_of_unknown_keys_is_one_request_and_callers_at_once_share_it() {
    let (one, stranger) = (Signer::new("one"), Signer::new("nobody"));
    let (server, verifier) = world(&[&one]);
    block_on(async {
        let (good, unknown) = (one.sign(&claims()), stranger.sign(&claims()));
        let at_once = (0..50).map(|_| verifier.verify(&good, at(NOW)));
        let all = futures_util::future::join_all(at_once).await;
        assert!(all.iter().all(Result::is_ok));
        // Discovery and the keys.
        assert_eq!((server.0.asked.load(Ordering::SeqCst), verifier.keys().fetches()), (2, 1));
        for _ in 0..500 {
            assert!(matches!(verifier.verify(&unknown, at(NOW)).await, Err(Rejected::UnknownKey)));
        }
        assert_eq!(server.0.asked.load(Ordering::SeqCst), 2);
    });
}

#[test]
fn an_issuer_that_is_gone_is_no_reason_to_believe_and_not_asked_by_every_token() {
    let one = Signer::new("one");
    let (server, verifier) = world(&[&one]);
    server.0.is_gone.store(true, Ordering::SeqCst);
    block_on(async {
        for _ in 0..20 {
            let refused = verifier.verify(&one.sign(&claims()), at(NOW)).await;
            assert!(matches!(refused, Err(Rejected::Unavailable(_))));
        }
        assert_eq!(verifier.keys().fetches(), 1);
    });
}
