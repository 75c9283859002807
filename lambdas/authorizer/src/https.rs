//! The issuer's keys over HTTPS, by the connections that the SDK makes.
//!
//! Invariant: an answer is read up to [`MAX_BYTES`] and waited for up to [`WITHIN`], and no further.

use aws_smithy_http_client::Connector;
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use aws_smithy_runtime_api::client::http::{HttpConnector, SharedHttpConnector};
use aws_smithy_runtime_api::http::Request;
use aws_smithy_types::body::SdkBody;
use http_body_util::{BodyExt, Limited};
use std::time::Duration;
use tollgate_mfa::token::{Fetch, FetchError};

/// The longest answer; a set of keys has a few thousand bytes.
pub const MAX_BYTES: usize = 256 * 1024;
/// How long an answer may take: API Gateway waits for an authorizer for 10 s at most.
pub const WITHIN: Duration = Duration::from_secs(3);

/// A client for `GET`.
#[derive(Debug, Clone)]
pub struct Https(SharedHttpConnector);

impl Default for Https {
    fn default() -> Self {
        let connector = Connector::builder().tls_provider(Provider::Rustls(CryptoMode::Ring)).build();
        Self(SharedHttpConnector::new(connector))
    }
}

impl Https {
    async fn get(&self, url: &str) -> Result<Vec<u8>, String> {
        let mut request = Request::new(SdkBody::empty());
        request.set_uri(url).map_err(|error| error.to_string())?;
        let response = self.0.call(request).await.map_err(|error| error.to_string())?;
        let status = response.status().as_u16();
        if status != 200 {
            return Err(format!("it answered {status}"));
        }
        let body = Limited::new(response.into_body(), MAX_BYTES).collect().await;
        Ok(body.map_err(|error| error.to_string())?.to_bytes().to_vec())
    }
}

impl Fetch for Https {
    async fn fetch(&self, url: &str) -> Result<Vec<u8>, FetchError> {
        let failed = |cause| FetchError { url: url.to_owned(), cause };
        match tokio::time::timeout(WITHIN, self.get(url)).await {
            Ok(answer) => answer.map_err(failed),
            Err(_) => Err(failed(format!("no answer within {WITHIN:?}"))),
        }
    }
}
