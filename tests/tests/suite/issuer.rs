//! An issuer of tokens as its clients see it: a server with its configuration and its keys, which it rotates.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::rsa::{KeyPair as RsaKeyPair, KeyPairComponents, PublicKeyComponents};
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, RSA_PKCS1_SHA256};
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
    pair: Pair,
}

enum Pair {
    Curve(EcdsaKeyPair),
    Rsa(RsaKeyPair),
}

/// The pair of RFC 7515 appendix A.2, which everybody has: `n`, `e`, `d`, `p`, `q`, `dp`, `dq`, `qi`.
const PUBLISHED: [&str; 8] = [
    "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-\
      pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-\
      UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-\
      DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ",
    "AQAB",
    "Eq5xpGnNCivDflJsRQBXHx1hdR1k6Ulwe2JZD50LpXyWPEAeP88vLNO97IjlA7_GQ5sLKMgvfTeXZx9SE-7YwVol2NXOoAJe46sui395IW_GO-\
      pWJ1O0BkTGoVEn2bKVRUCgu-GjBVaYLU6f3l9kJfFNS3E0QbVdxzubSu3Mkqzjkn439X0M_V51gfpRLI9JYanrC4D4qAdGcopV_0ZHHzQlBjudU2\
      QvXt4ehNYTCBr6XCLQUShb1juUO1ZdiYoFaFQT5Tw8bGUl_x_jTj3ccPDVZFD9pIuhLhBOneufuBiB4cS98l2SR_RQyGWSeWjnczT0QU91p1DhOV\
      RuOopznQ",
    "4BzEEOtIpmVdVEZNCqS7baC4crd0pqnRH_5IB3jw3bcxGn6QLvnEtfdUdiYrqBdss1l58BQ3KhooKeQTa9AB0Hw_Py5PJdTJNPY8cQn7ouZ2KKDc\
      mnPGBY5t7yLc1QlQ5xHdwW1VhvKn-nXqhJTBgIPgtldC-KDV5z-y2XDwGUc",
    "uQPEfgmVtjL0Uyyx88GZFF1fOunH3-7cepKmtH4pxhtCoHqpWmT8YAmZxaewHgHAjLYsp1ZSe7zFYHj7C6ul7TjeLQeZD_YwD66t62wDmpe_HlB-\
      TnBA-njbglfIsRLtXlnDzQkv5dTltRJ11BKBBypeeF6689rjcJIDEz9RWdc",
    "BwKfV3Akq5_MFZDFZCnW-wzl-CCo83WoZvnLQwCTeDv8uzluRSnm71I3QCLdhrqE2e9YkxvuxdBfpT_PI7Yz-\
      FOKnu1R6HsJeDCjn12Sk3vmAktV2zb34MCdy7cpdTh_YVr7tss2u6vneTwrA86rZtu5Mbr1C1XsmvkxHQAdYo0",
    "h_96-mK1R_7glhsum81dZxjTnYynPbZpHziZjeeHcXYsXaaMwkOlODsWa7I9xXDoRwbKgB719rrmI2oKr6N3Do9U0ajaHF-\
      NKJnwgjMd2w9cjz3_-kyNlxAr2v4IKhGNpmM5iIgOS1VZnOZ68m6_pbLBSp3nssTdlqvd0tIiTHU",
    "IYd7DHOhrWvxkwPQsRM2tOgrjbcrfvtQJipd-DlcxyVuuM9sQLdgjVk2oy26F0EmpScGLq2MowX7fhd_QJQ3ydy5cY7YIBi87w93IKLEdfnbJtoO\
      PLUW0ITrJReOgo1cq9SbsxYawBgfp_gh6A5603k2-ZQwVK0JKSHuLFkuQ3U",
];

impl Signer {
    pub fn new(id: &str) -> Self {
        let (random, algorithm) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref(), &random).unwrap();
        Self { id: id.to_owned(), pair: Pair::Curve(pair) }
    }

    /// One that signs with RS256.
    #[allow(non_snake_case, reason = "ring's names")]
    pub fn rsa(id: &str) -> Self {
        let [n, e, d, p, q, dP, dQ, qInv] = PUBLISHED.map(|part| URL_SAFE_NO_PAD.decode(part).unwrap());
        let components = KeyPairComponents { public_key: PublicKeyComponents { n, e }, d, p, q, dP, dQ, qInv };
        let pair = RsaKeyPair::from_components(&components).unwrap();
        Self { id: id.to_owned(), pair: Pair::Rsa(pair) }
    }

    fn algorithm(&self) -> &'static str {
        match self.pair {
            Pair::Curve(_) => "ES256",
            Pair::Rsa(_) => "RS256",
        }
    }

    fn public(&self) -> Value {
        let mut key = match &self.pair {
            Pair::Curve(pair) => {
                let point = pair.public_key().as_ref();
                let (x, y) = (URL_SAFE_NO_PAD.encode(&point[1..33]), URL_SAFE_NO_PAD.encode(&point[33..]));
                json!({ "kty": "EC", "crv": "P-256", "x": x, "y": y })
            }
            Pair::Rsa(_) => json!({ "kty": "RSA", "n": PUBLISHED[0], "e": PUBLISHED[1] }),
        };
        let of_all = json!({ "use": "sig", "alg": self.algorithm(), "kid": self.id });
        key.as_object_mut().unwrap().extend(of_all.as_object().unwrap().clone());
        key
    }

    pub fn sign(&self, claims: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", part(&json!({ "alg": self.algorithm(), "kid": self.id })), part(claims));
        let random = SystemRandom::new();
        let signature = match &self.pair {
            Pair::Curve(pair) => pair.sign(&random, message.as_bytes()).unwrap().as_ref().to_vec(),
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message.as_bytes(), &mut signature).unwrap();
                signature
            }
        };
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
