//! A write a decision and nothing else, so that the tables tell what the embedded DynamoDB itself takes: a counter that
//! goes up by one, by the AWS SDK for Rust, and by an HTTP client that does not sign.
//!
//! Invariant: both send the same update.

use crate::error::{Error, Result};
use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_dynamodb::error::DisplayErrorContext;
use aws_sdk_dynamodb::operation::create_table::CreateTableError;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType, ReturnValue, ScalarAttributeType,
};
use aws_sdk_dynamodb::{Client, Config};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::json;

const TABLE: &str = "bare";
const PK: &str = "pk";
const UPDATE: &str = "SET n = if_not_exists(n, :zero) + :one";

/// By the SDK.
#[derive(Debug)]
pub(crate) struct Sdk(Client);

impl Sdk {
    pub(crate) const SETTING: &str = "bare-sdk";

    pub(crate) async fn open(endpoint: &str) -> Result<Self> {
        let config = Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .http_client(aws_smithy_http_client::Builder::new().build_http())
            .region(Region::from_static("us-east-1"))
            .credentials_provider(Credentials::for_tests())
            .endpoint_url(endpoint)
            .build();
        let client = Client::from_conf(config);
        create_table(&client).await?;
        Ok(Self(client))
    }

    pub(crate) async fn write(&self, key: &str) -> Result<bool> {
        let number = |n: u8| AttributeValue::N(n.to_string());
        let request = self.0.update_item().table_name(TABLE).key(PK, AttributeValue::S(key.to_owned()));
        let request = request
            .update_expression(UPDATE)
            .expression_attribute_values(":zero", number(0))
            .expression_attribute_values(":one", number(1))
            .return_values(ReturnValue::AllNew);
        request.send().await.map_err(|e| Error::bare(DisplayErrorContext(e)))?;
        Ok(true)
    }
}

async fn create_table(client: &Client) -> Result<()> {
    let attribute = AttributeDefinition::builder().attribute_name(PK).attribute_type(ScalarAttributeType::S).build();
    let key = KeySchemaElement::builder().attribute_name(PK).key_type(KeyType::Hash).build();
    let request = client.create_table().table_name(TABLE).billing_mode(BillingMode::PayPerRequest);
    let request = request.attribute_definitions(attribute.map_err(Error::bare)?).key_schema(key.map_err(Error::bare)?);
    match request.send().await {
        Err(e) if !e.as_service_error().is_some_and(CreateTableError::is_resource_in_use_exception) => {
            Err(Error::bare(DisplayErrorContext(e)))
        }
        _ => Ok(()),
    }
}

/// By HTTP alone.
#[derive(Debug)]
pub(crate) struct Http {
    client: HttpClient<HttpConnector, Full<Bytes>>,
    endpoint: String,
}

impl Http {
    pub(crate) const SETTING: &str = "bare-http";
    /// The emulator wants a signature to be there, and does not check it.
    const AUTHORIZATION: &str = "AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/dynamodb/aws4_request, \
                                 SignedHeaders=host, Signature=0";

    pub(crate) async fn open(endpoint: &str) -> Result<Self> {
        Sdk::open(endpoint).await?;
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        Ok(Self { client: HttpClient::builder(TokioExecutor::new()).build(connector), endpoint: endpoint.to_owned() })
    }

    pub(crate) async fn write(&self, key: &str) -> Result<bool> {
        let body = json!({
            "TableName": TABLE, "Key": { PK: { "S": key } }, "UpdateExpression": UPDATE, "ReturnValues": "ALL_NEW",
            "ExpressionAttributeValues": { ":zero": { "N": "0" }, ":one": { "N": "1" } },
        });
        let request = Request::post(&self.endpoint)
            .header("content-type", "application/x-amz-json-1.0")
            .header("x-amz-target", "DynamoDB_20120810.UpdateItem")
            .header("x-amz-date", "20260101T000000Z")
            .header("authorization", Self::AUTHORIZATION)
            .body(Full::from(body.to_string()))
            .map_err(Error::bare)?;
        let response = self.client.request(request).await.map_err(Error::bare)?;
        let status = response.status();
        let body = response.into_body().collect().await.map_err(Error::bare)?.to_bytes();
        if status.is_success() { Ok(true) } else { Err(Error::bare(String::from_utf8_lossy(&body))) }
    }
}
