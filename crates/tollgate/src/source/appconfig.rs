//! A policy in a configuration profile of AppConfig (`StartConfigurationSession`, `GetLatestConfiguration`; AppConfig
//! Data API 2021-11-11).
//!
//! Invariant: a session's token is used once. It is taken before a request and put back from the answer; after a
//! failure a new session starts, which is sent the whole policy.

use super::aws::{Call, Client, Kind};
use super::reader::Fetched;
use super::{PolicySource, ReaderOptions, Result};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::json;
use std::time::Duration;

const APPCONFIG: Kind =
    Kind { host: "appconfigdata", signed_as: "appconfig", endpoint_variable: "AWS_ENDPOINT_URL_APPCONFIGDATA" };

/// The least that a session may ask to be left alone between two polls, in seconds.
const POLL_S: u32 = 15;

#[derive(Debug)]
pub(super) struct Session {
    client: Client,
    application: String,
    environment: String,
    profile: String,
    token: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Started {
    initial_configuration_token: String,
}

impl Session {
    pub(super) async fn open(place: &PolicySource, path: [&String; 3], options: &ReaderOptions) -> Result<Self> {
        let client = Client::open(place, APPCONFIG, options).await?;
        let [application, environment, profile] = path.map(String::clone);
        Ok(Self { client, application, environment, profile, token: None })
    }

    /// Has the policy sent whole the next time.
    pub(super) fn forget(&mut self) {
        self.token = None;
    }

    pub(super) async fn fetch(&mut self) -> Result<Fetched> {
        let token = match self.token.take() {
            Some(token) => token,
            None => self.start().await?,
        };
        let token = utf8_percent_encode(&token, NON_ALPHANUMERIC);
        let call = Call {
            action: "appconfig:GetLatestConfiguration",
            method: "GET",
            url: format!("{}/configuration?configuration_token={token}", self.client.endpoint()),
            headers: Vec::new(),
            body: Vec::new(),
        };
        let answer = self.client.call(call).await?;
        let header = |name| answer.headers.get(name).map(str::to_owned);
        self.token = header("next-poll-configuration-token");
        let poll_after = header("next-poll-interval-in-seconds").and_then(|s| s.parse().ok()).map(Duration::from_secs);
        // An empty body says that the session has sent this version already.
        let bytes = (!answer.body.is_empty()).then_some(answer.body);
        Ok(Fetched { bytes, version: header("version-label"), poll_after })
    }

    async fn start(&self) -> Result<String> {
        let body = json!({
            "ApplicationIdentifier": self.application,
            "EnvironmentIdentifier": self.environment,
            "ConfigurationProfileIdentifier": self.profile,
            "RequiredMinimumPollIntervalInSeconds": POLL_S,
        });
        let call = Call {
            action: "appconfig:StartConfigurationSession",
            method: "POST",
            url: format!("{}/configurationsessions", self.client.endpoint()),
            headers: vec![("content-type", "application/json")],
            body: body.to_string().into_bytes(),
        };
        let answer = self.client.call(call).await?;
        let started: Started = serde_json::from_slice(&answer.body)
            .map_err(|error| self.client.unexpected(format!("not what StartConfigurationSession answers: {error}")))?;
        Ok(started.initial_configuration_token)
    }
}
