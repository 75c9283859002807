//! A policy in a parameter of Systems Manager (`GetParameter`, AWS JSON 1.1). Invariant: the value is asked for
//! decrypted, so String and `SecureString` read alike.

use super::aws::{Client, Kind};
use super::reader::Fetched;
use super::{PolicySource, ReaderOptions, Result};
use serde::Deserialize;
use serde_json::json;

const SSM: Kind = Kind { host: "ssm", signed_as: "ssm", endpoint_variable: "AWS_ENDPOINT_URL_SSM" };

#[derive(Debug)]
pub(super) struct Parameter {
    client: Client,
    name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct GetParameterResult {
    parameter: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Value {
    value: String,
    version: i64,
}

impl Parameter {
    pub(super) async fn open(place: &PolicySource, name: &str, options: &ReaderOptions) -> Result<Self> {
        Ok(Self { client: Client::open(place, SSM, options).await?, name: name.to_owned() })
    }

    /// The value. `GetParameter` has no condition, so it is sent whole each time; who reads it compares.
    pub(super) async fn fetch(&self) -> Result<Fetched> {
        let body = json!({ "Name": self.name, "WithDecryption": true });
        let answer = self.client.json("ssm:GetParameter", "AmazonSSM.GetParameter", &body).await?;
        let result: GetParameterResult = serde_json::from_slice(&answer.body)
            .map_err(|error| self.client.unexpected(format!("not what GetParameter answers: {error}")))?;
        let Value { value, version } = result.parameter;
        Ok(Fetched { bytes: Some(value.into_bytes()), version: Some(version.to_string()), poll_after: None })
    }
}
