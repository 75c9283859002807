//! An issuer of tokens as its clients see it: a server with its configuration and its keys, which it rotates.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Who its tokens are for.
pub const AUDIENCE: &str = "app";

/// A running issuer, for as long as the test process runs.
pub struct Issuer {
    url: String,
    keys: Arc<Mutex<Vec<Signer>>>,
    asked: Arc<AtomicU64>,
}

/// One of its keys.
pub struct Signer {
    id: String,
    pair: EcdsaKeyPair,
}

impl Signer {
    pub fn new(id: &str) -> Self {
        let (random, algorithm) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        Self { id: id.to_owned(), pair: EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref(), &random).unwrap() }
    }

    fn public(&self) -> Value {
        let point = self.pair.public_key().as_ref();
        let (x, y) = (URL_SAFE_NO_PAD.encode(&point[1..33]), URL_SAFE_NO_PAD.encode(&point[33..]));
        json!({ "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": self.id, "x": x, "y": y })
    }

    pub fn sign(&self, claims: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", part(&json!({ "alg": "ES256", "kid": self.id })), part(claims));
        let signature = self.pair.sign(&SystemRandom::new(), message.as_bytes()).unwrap();
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

impl Issuer {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let issuer = Self { url, keys: Arc::default(), asked: Arc::default() };
        issuer.rotate(Signer::new("first"));
        let (url, keys, asked) = (issuer.url.clone(), Arc::clone(&issuer.keys), Arc::clone(&issuer.asked));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let head: Vec<String> = lines.map(Result::unwrap).take_while(|line| !line.is_empty()).collect();
                let path = head[0].split_whitespace().nth(1).unwrap();
                let body = if path == "/keys" {
                    asked.fetch_add(1, Ordering::SeqCst);
                    json!({ "keys": keys.lock().unwrap().iter().map(Signer::public).collect::<Vec<_>>() })
                } else {
                    json!({ "issuer": url, "jwks_uri": format!("{url}/keys") })
                }
                .to_string();
                let length = body.len();
                write!(stream, "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}")
                    .unwrap();
            }
        });
        issuer
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// How often it was asked for its keys.
    pub fn asked(&self) -> u64 {
        self.asked.load(Ordering::SeqCst)
    }

    /// From now on it signs with this key, and publishes it alone.
    pub fn rotate(&self, signer: Signer) {
        *self.keys.lock().unwrap() = vec![signer];
    }

    /// A token with these claims beside what every token has; good for an hour from `now`, seconds.
    pub fn token(&self, now: u64, claims: &Value) -> String {
        self.keys.lock().unwrap()[0].sign(&self.claims(now, claims))
    }

    pub fn claims(&self, now: u64, more: &Value) -> Value {
        let mut claims =
            json!({ "iss": self.url, "client_id": AUDIENCE, "token_use": "access", "iat": now, "exp": now + 3600 });
        claims.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        claims
    }
}
