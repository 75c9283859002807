//! A text in a secret of Secrets Manager (`GetSecretValue`, AWS JSON 1.1): the version that is current.

use super::aws::{Client, Kind};
use super::reader::Fetched;
use super::{PolicySource, ReaderOptions, Result};
use serde::Deserialize;
use serde_json::json;

const SECRETS_MANAGER: Kind =
    Kind { host: "secretsmanager", signed_as: "secretsmanager", endpoint_variable: "AWS_ENDPOINT_URL_SECRETS_MANAGER" };

#[derive(Debug)]
pub(super) struct Secret {
    client: Client,
    id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct GetSecretValueResult {
    secret_string: String,
    version_id: String,
}

impl Secret {
    pub(super) async fn open(place: &PolicySource, id: &str, options: &ReaderOptions) -> Result<Self> {
        Ok(Self { client: Client::open(place, SECRETS_MANAGER, options).await?, id: id.to_owned() })
    }

    /// The text. `GetSecretValue` has no condition, so it is sent whole each time; who reads it compares.
    pub(super) async fn fetch(&self) -> Result<Fetched> {
        let body = json!({ "SecretId": self.id });
        let answer = self.client.json("secretsmanager:GetSecretValue", "secretsmanager.GetSecretValue", &body).await?;
        let result: GetSecretValueResult = serde_json::from_slice(&answer.body)
            // Where it is, and not what there is.
            .map_err(|error| self.client.unexpected(format!("no text of a secret, at column {}", error.column())))?;
        let GetSecretValueResult { secret_string, version_id } = result;
        Ok(Fetched { bytes: Some(secret_string.into_bytes()), version: Some(version_id), poll_after: None })
    }
}
