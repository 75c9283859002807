//! The SDK client: one TLS stack, no retries, no wait without an end, and no connection that has been idle for long.
//!
//! Invariant: the SDK sends a request once. Whether to send again is the limiter's decision, since only it knows the
//! deadline and what a second write would charge.

use crate::error::{Error, Result};
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use aws_smithy_runtime_api::client::stalled_stream_protection::StalledStreamProtectionConfig;
use aws_smithy_types::retry::RetryConfig;
use aws_smithy_types::timeout::TimeoutConfig;
use std::time::Duration;

/// What a request to another service than the table may take.
pub const LONGEST: Duration = Duration::from_secs(5);

/// Where the table is.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Connection {
    /// Another endpoint than the Region's, for instance DynamoDB Local or a VPC endpoint.
    pub endpoint_url: Option<String>,
    /// The Region, if it is not to come from the environment or the profile.
    pub region: Option<String>,
    /// How long a connection may have been idle to be used again, in place of [`Connection::IDLE_AT_MOST`].
    pub idle_at_most: Option<Duration>,
}

impl Connection {
    /// How long a connection may have been idle to be used again: 20 s. A function is frozen between its invocations, and what is
    /// between it and the table forgets a connection meanwhile (a NAT gateway or an endpoint after 350 s, servers before that). A
    /// request on one that is gone has no answer, may have been applied, and is not sent again; a new connection costs a handshake.
    pub const IDLE_AT_MOST: Duration = Duration::from_secs(20);

    /// A connection as the environment and the profile say.
    #[must_use]
    pub fn from_environment() -> Self {
        Self::default()
    }

    /// Sets the endpoint.
    #[must_use]
    pub fn endpoint_url(mut self, url: impl Into<String>) -> Self {
        self.endpoint_url = Some(url.into());
        self
    }

    /// Sets the Region.
    #[must_use]
    pub fn region(mut self, region: impl Into<String>) -> Self {
        self.region = Some(region.into());
        self
    }

    /// Sets how long a connection may have been idle to be used again.
    #[must_use]
    pub fn idle_at_most(mut self, longest: Duration) -> Self {
        self.idle_at_most = Some(longest);
        self
    }

    /// Whether the endpoint is on this machine: an emulator, which takes any credentials.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        self.endpoint_url.as_deref().is_some_and(is_loopback)
    }
}

/// A resolved connection: stores, tables and tools are made from it.
#[derive(Debug, Clone)]
pub struct Connected {
    pub(crate) sdk: SdkConfig,
    pub(crate) endpoint: String,
}

impl Connected {
    /// The endpoint, for people to read.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The Region, for others that ask AWS on behalf of this process.
    #[must_use]
    pub fn region(&self) -> Option<String> {
        self.sdk.region().map(ToString::to_string)
    }

    /// Where the credentials of this process come from.
    #[doc(hidden)]
    #[must_use]
    pub fn credentials(&self) -> Option<SharedCredentialsProvider> {
        self.sdk.credentials_provider()
    }
}

/// Resolves endpoint, Region and credentials provider. Sends nothing to the table.
///
/// # Errors
///
/// [`Error::NoRegion`] if no Region is configured, [`Error::Refused`] for an endpoint that is not an http(s) URL.
pub async fn connect(connection: &Connection) -> Result<Connected> {
    let loopback = connection.is_loopback();
    let mut loader = aws_config::defaults(BehaviorVersion::latest())
        .http_client(http_client(connection)?)
        .retry_config(RetryConfig::disabled())
        .timeout_config(timeouts())
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled());
    if let Some(region) = &connection.region {
        loader = loader.region(Region::new(region.clone()));
    } else if loopback {
        // An emulator has no Region; it only wants one in the signature.
        loader = loader.region(Region::new("us-east-1"));
    }
    if let Some(url) = &connection.endpoint_url {
        loader = loader.endpoint_url(url);
    }
    if loopback {
        loader = loader.credentials_provider(Credentials::from_keys("local", "local", None));
    }
    let sdk = loader.load().await;
    let region = sdk.region().ok_or(Error::NoRegion)?;
    let endpoint = connection.endpoint_url.clone();
    let endpoint = endpoint.unwrap_or_else(|| format!("https://dynamodb.{region}.amazonaws.com"));
    Ok(Connected { sdk, endpoint })
}

/// For requests without a deadline of their own; a decision has a shorter one.
fn timeouts() -> TimeoutConfig {
    TimeoutConfig::builder().connect_timeout(Duration::from_secs(3)).operation_timeout(Duration::from_secs(10)).build()
}

fn http_client(connection: &Connection) -> Result<SharedHttpClient> {
    let idle_at_most = connection.idle_at_most.unwrap_or(Connection::IDLE_AT_MOST);
    let builder = aws_smithy_http_client::Builder::new().pool_idle_timeout(idle_at_most);
    match connection.endpoint_url.as_deref() {
        // Plain HTTP needs no trust store, which takes longer to read than an emulator to answer.
        Some(url) if url.starts_with("http://") => Ok(builder.build_http()),
        Some(url) if !url.starts_with("https://") => Err(Error::Refused {
            action: "connect",
            message: format!("endpoint {url:?} must start with http:// or https://"),
        }),
        _ => Ok(builder.tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https()),
    }
}

/// Endpoints, Region and credentials as the environment says, for clients of other services of AWS. Sends nothing. What a request may take,
/// connection included, is [`LONGEST`]; the SDK repeats nothing unless a client says otherwise.
#[doc(hidden)]
pub async fn services() -> SdkConfig {
    let client = aws_smithy_http_client::Builder::new().pool_idle_timeout(Connection::IDLE_AT_MOST);
    let client = client.tls_provider(Provider::Rustls(CryptoMode::Ring)).build_https();
    let timeouts = TimeoutConfig::builder().connect_timeout(Duration::from_secs(2)).operation_timeout(LONGEST).build();
    let loader = aws_config::defaults(BehaviorVersion::latest()).http_client(client).timeout_config(timeouts);
    let loader = loader.stalled_stream_protection(StalledStreamProtectionConfig::disabled());
    loader.retry_config(RetryConfig::disabled()).load().await
}

fn is_loopback(url: &str) -> bool {
    let host = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = host.split(['/', '?']).next().unwrap_or_default();
    let host = match host.strip_prefix('[') {
        Some(v6) => v6.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::is_loopback;

    #[test]
    fn only_this_machine_is_loopback() {
        for url in ["http://127.0.0.1:8000", "http://localhost", "https://[::1]:9/x", "http://127.9.9.9/"] {
            assert!(is_loopback(url), "{url}");
        }
        for url in ["http://10.0.0.1:8000", "https://dynamodb.eu-west-1.amazonaws.com", "http://localhost.example"] {
            assert!(!is_loopback(url), "{url}");
        }
    }
}
