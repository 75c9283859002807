//! CAPTCHAs of Cloudflare Turnstile.
//!
//! Invariant: a token is good if Turnstile says so, once; no answer is no.

use aws_smithy_http_client::Connector;
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use aws_smithy_runtime_api::client::http::{HttpConnector, SharedHttpConnector};
use aws_smithy_runtime_api::http::Request;
use aws_smithy_types::body::SdkBody;
use http_body_util::{BodyExt, Limited};
use serde::Deserialize;
use serde_json::json;
use std::error::Error;
use std::fmt;
use tollgate_dynamodb::cause::root_cause;
use tollgate_dynamodb::connect::LONGEST;
use tollgate_otp::{Captcha, CaptchaError, Judged, Proof};
use zeroize::Zeroizing;

/// Where tokens are judged ("Validate the token", Cloudflare's documentation).
pub const SITEVERIFY: &str = "https://challenges.cloudflare.com/turnstile/v0/siteverify";

/// The longest token, bytes (same place).
const LONGEST_TOKEN: usize = 2048;

/// Bytes of an answer that are read.
const MOST: usize = 64 * 1024;

/// Says that the token is none, is too old, or was shown before.
const OF_THE_TOKEN: [&str; 3] = ["missing-input-response", "invalid-input-response", "timeout-or-duplicate"];

/// Asks Turnstile.
pub struct Turnstile {
    url: String,
    secret: Zeroizing<String>,
    connector: SharedHttpConnector,
}

#[derive(Deserialize)]
struct Answer {
    success: bool,
    #[serde(default, rename = "error-codes")]
    error_codes: Vec<String>,
}

impl Turnstile {
    /// Asks at `url`, usually [`SITEVERIFY`], with the widget's secret key.
    #[must_use]
    pub fn new(url: impl Into<String>, secret: &str) -> Self {
        let connector = Connector::builder().tls_provider(Provider::Rustls(CryptoMode::Ring)).build();
        let secret = Zeroizing::new(secret.to_owned());
        Self { url: url.into(), secret, connector: SharedHttpConnector::new(connector) }
    }

    async fn ask(&self, token: &str) -> Result<bool, CaptchaError> {
        let failed = |error: &(dyn Error + 'static)| CaptchaError(root_cause(error));
        let body = json!({ "secret": self.secret.as_str(), "response": token }).to_string();
        let mut request = Request::new(SdkBody::from(body));
        request.set_method("POST").and_then(|()| request.set_uri(self.url.as_str())).map_err(|error| failed(&error))?;
        let header = request.headers_mut().try_insert("content-type", "application/json");
        header.map_err(|error| failed(&error))?;
        let response = self.connector.call(request).await.map_err(|error| failed(&error))?;
        let status = response.status().as_u16();
        let body =
            Limited::new(response.into_body(), MOST).collect().await.map_err(|error| failed(&*error))?.to_bytes();
        let answer = serde_json::from_slice(&body);
        let Ok(Answer { success, error_codes }) = answer else {
            return Err(CaptchaError(format!("Turnstile answered {status} without JSON of its own")));
        };
        // What is wrong with the secret or with Turnstile says nothing about whoever asks.
        let ours = error_codes.iter().find(|code| !OF_THE_TOKEN.contains(&code.as_str()));
        match ours {
            Some(code) if !success => Err(CaptchaError(format!("Turnstile answered {status}: {code}"))),
            _ => Ok(success),
        }
    }
}

impl Captcha for Turnstile {
    fn is_solved<'a>(&'a self, proof: Proof<'a>) -> Judged<'a> {
        let token = proof.token.filter(|token| (1..=LONGEST_TOKEN).contains(&token.len()));
        Box::pin(async move {
            let Some(token) = token else { return Ok(false) };
            let answer = tokio::time::timeout(LONGEST, self.ask(token)).await;
            answer.unwrap_or_else(|_| Err(CaptchaError("no answer from Turnstile in time".to_owned())))
        })
    }
}

/// Without the secret.
impl fmt::Debug for Turnstile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turnstile").field("url", &self.url).finish_non_exhaustive()
    }
}
