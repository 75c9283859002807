//! One place, read again and again: what it had last time is not fetched, or not handed out, a second time.
//!
//! Invariant: a load ends within its deadline and asks at most twice; what a service must remember between two loads
//! (an entity tag, a session's token) is taken out before it is used, so that a load that is dropped half way starts
//! afresh the next time.

use super::appconfig::Session;
use super::s3::Object;
use super::secretsmanager::Secret;
use super::ssm::Parameter;
use super::{Error, PolicySource, Result, file};
use std::path::PathBuf;
use std::time::Duration;

/// How a place is read.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReaderOptions {
    /// Most time for a load: connection, credentials, answer, and the one retry. Default 2 s.
    pub timeout: Duration,
    /// Another endpoint than the service's. Default: `AWS_ENDPOINT_URL_SSM`, `_SECRETS_MANAGER`, `_S3` or `_APPCONFIGDATA`, then
    /// `AWS_ENDPOINT_URL`, then the Region's.
    pub endpoint_url: Option<String>,
}

impl Default for ReaderOptions {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(2), endpoint_url: None }
    }
}

impl ReaderOptions {
    /// Sets the most time for a load.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the endpoint.
    #[must_use]
    pub fn endpoint_url(mut self, url: impl Into<String>) -> Self {
        self.endpoint_url = Some(url.into());
        self
    }
}

/// What a load found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loaded {
    /// The policy's text; `None` if the service says that it is what it was.
    pub text: Option<String>,
    /// The service's name of this version, for people to read: a parameter's version, an entity tag, a version label.
    pub version: Option<String>,
    /// How long the service wants to be left alone.
    pub poll_after: Option<Duration>,
}

/// What a service answered, before it is known to be text.
#[derive(Debug, Default)]
pub(super) struct Fetched {
    pub(super) bytes: Option<Vec<u8>>,
    pub(super) version: Option<String>,
    pub(super) poll_after: Option<Duration>,
}

/// Reads one place.
#[derive(Debug)]
pub struct Reader {
    place: PolicySource,
    service: Service,
    timeout: Duration,
}

#[derive(Debug)]
enum Service {
    File(PathBuf),
    Ssm(Parameter),
    Secret(Secret),
    S3(Object),
    AppConfig(Session),
}

impl Reader {
    /// Prepares to read `place`: endpoint, Region, credentials provider. Asks for nothing yet.
    ///
    /// # Errors
    ///
    /// [`Error::Setup`] without a Region, or with an endpoint that is no URL.
    pub async fn open(place: PolicySource, options: &ReaderOptions) -> Result<Self> {
        let service = match &place {
            PolicySource::File(path) => Service::File(path.clone()),
            PolicySource::Ssm { name } => Service::Ssm(Parameter::open(&place, name, options).await?),
            PolicySource::Secret { id } => Service::Secret(Secret::open(&place, id, options).await?),
            PolicySource::S3 { bucket, key } => Service::S3(Object::open(&place, bucket, key, options).await?),
            PolicySource::AppConfig { application, environment, profile } => {
                Service::AppConfig(Session::open(&place, [application, environment, profile], options).await?)
            }
        };
        Ok(Self { place, service, timeout: options.timeout })
    }

    /// The place.
    #[must_use]
    pub fn place(&self) -> &PolicySource {
        &self.place
    }

    /// Reads the policy's text, unless the service says that nothing has changed.
    ///
    /// # Errors
    ///
    /// Whatever keeps the policy from being read: see [`Error`]. Text that is no policy is not an error here.
    pub async fn load(&mut self) -> Result<Loaded> {
        let fetched = match self.attempt().await {
            Err(error) if error.is_transient() => {
                tracing::debug!(%error, "asking once more for the policy");
                self.attempt().await
            }
            first => first,
        }?;
        let Fetched { bytes, version, poll_after } = fetched;
        match bytes.map(String::from_utf8).transpose() {
            Ok(text) => Ok(Loaded { text, version, poll_after }),
            Err(error) => {
                // Else the service would say next time that nothing has changed, as if all were well.
                self.forget();
                let valid_up_to = error.utf8_error().valid_up_to();
                Err(Error::NotText { place: self.place.to_string(), valid_up_to })
            }
        }
    }

    fn forget(&mut self) {
        match &mut self.service {
            Service::S3(object) => object.forget(),
            Service::AppConfig(session) => session.forget(),
            Service::File(_) | Service::Ssm(_) | Service::Secret(_) => {}
        }
    }

    /// Asks once. Each of the two attempts has half the time: a connection that died while the environment was frozen
    /// must not take the time of the one that replaces it.
    async fn attempt(&mut self) -> Result<Fetched> {
        let within = self.timeout / 2;
        let service = &mut self.service;
        let asked = tokio::time::timeout(within, async move {
            match service {
                Service::File(path) => {
                    file::read(path).map(|bytes| Fetched { bytes: Some(bytes), ..Fetched::default() })
                }
                Service::Ssm(parameter) => parameter.fetch().await,
                Service::Secret(secret) => secret.fetch().await,
                Service::S3(object) => object.fetch().await,
                Service::AppConfig(session) => session.fetch().await,
            }
        });
        asked.await.unwrap_or_else(|_| Err(Error::Late { place: self.place.to_string(), within }))
    }
}
