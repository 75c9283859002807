//! The API by the SDK: it finds the endpoint, signs, and sends again what failed on the way; what is said and answered is JSON as it
//! is (see [`Waf`]).

use crate::converge::{Failure, Operation, Waf};
use aws_sdk_wafv2::Client;
use aws_sdk_wafv2::config::{BehaviorVersion, Region};
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::Intercept;
use aws_smithy_runtime_api::client::interceptors::context::{
    AfterDeserializationInterceptorContextRef, BeforeTransmitInterceptorContextMut,
};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::config_bag::ConfigBag;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use aws_smithy_types::retry::RetryConfig;
use aws_smithy_types::timeout::TimeoutConfig;
use serde_json::Value;
use std::error::Error as StdError;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tollgate_dynamodb::cause::root_cause;
use tollgate_dynamodb::connect::{Connected, Connection, connect};

/// AWS WAF in a Region.
#[derive(Debug, Clone)]
pub struct AwsWaf(Client);

impl AwsWaf {
    /// The API as the connection says: its endpoint, its Region, whose credentials.
    ///
    /// # Errors
    ///
    /// Those of [`connect`]: no Region, an endpoint that is no URL.
    pub async fn connect(connection: &Connection) -> tollgate_dynamodb::Result<Self> {
        let connected = connect(connection).await?;
        Ok(Self(client(connection, &connected)))
    }
}

fn client(connection: &Connection, connected: &Connected) -> Client {
    let tls = Provider::Rustls(CryptoMode::Ring);
    let mut config = aws_sdk_wafv2::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(connected.region().map(Region::new))
        .http_client(aws_smithy_http_client::Builder::new().tls_provider(tls).build_https())
        .retry_config(RetryConfig::standard())
        .timeout_config(TimeoutConfig::builder().operation_timeout(Duration::from_secs(60)).build());
    config.set_credentials_provider(connected.credentials());
    config.set_endpoint_url(connection.endpoint_url.clone());
    Client::from_conf(config.build())
}

impl Waf for AwsWaf {
    async fn call(&self, operation: Operation, input: Value) -> Result<Value, Failure> {
        let verbatim = Verbatim { input: input.to_string().into_bytes(), output: Arc::default() };
        let output = verbatim.output.clone();
        macro_rules! send {
            ($of:ident) => {
                self.0.$of().customize().interceptor(verbatim).send().await.map(drop).map_err(|error| told(&error))
            };
        }
        let sent = match operation {
            Operation::ListWebAcls => send!(list_web_acls),
            Operation::GetWebAcl => send!(get_web_acl),
            Operation::CreateWebAcl => send!(create_web_acl),
            Operation::UpdateWebAcl => send!(update_web_acl),
            Operation::DeleteWebAcl => send!(delete_web_acl),
            Operation::ListIpSets => send!(list_ip_sets),
            Operation::GetIpSet => send!(get_ip_set),
            Operation::CreateIpSet => send!(create_ip_set),
            Operation::UpdateIpSet => send!(update_ip_set),
            Operation::DeleteIpSet => send!(delete_ip_set),
            Operation::ListTags => send!(list_tags_for_resource),
            Operation::GetLogging => send!(get_logging_configuration),
            Operation::PutLogging => send!(put_logging_configuration),
            Operation::DeleteLogging => send!(delete_logging_configuration),
            Operation::GetAclOfResource => send!(get_web_acl_for_resource),
            Operation::ListResources => send!(list_resources_for_web_acl),
            Operation::Associate => send!(associate_web_acl),
            Operation::Disassociate => send!(disassociate_web_acl),
            Operation::GetLimitedKeys => send!(get_rate_based_statement_managed_keys),
            Operation::GetSampledRequests => send!(get_sampled_requests),
        };
        // An answer that the SDK's types do not hold is an answer all the same.
        let answered = output.lock().ok().and_then(|mut output| output.take());
        match (sent, answered) {
            (_, Some(answer)) => Ok(answer),
            (Ok(()), None) => Ok(Value::Null),
            (Err((code, message)), None) => Err(Failure { operation, code, message }),
        }
    }
}

/// Code and text of an error.
fn told<E>(error: &SdkError<E, HttpResponse>) -> (Option<String>, String)
where
    E: ProvideErrorMetadata + StdError + 'static,
{
    let SdkError::ServiceError(context) = error else { return (None, root_cause(error)) };
    let code = context.err().code().map(str::to_owned);
    let status = context.raw().status().as_u16();
    let message = context.err().message().map_or_else(|| format!("status {status}"), str::to_owned);
    (code, message)
}

/// Puts the JSON in place of what the SDK has made of no input, and keeps the answer as it came.
#[derive(Debug)]
struct Verbatim {
    input: Vec<u8>,
    output: Arc<Mutex<Option<Value>>>,
}

impl Intercept for Verbatim {
    fn name(&self) -> &'static str {
        "Verbatim"
    }

    fn modify_before_signing(
        &self,
        context: &mut BeforeTransmitInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let request = context.request_mut();
        request.headers_mut().insert("content-length", self.input.len().to_string());
        *request.body_mut() = SdkBody::from(self.input.clone());
        Ok(())
    }

    fn read_after_deserialization(
        &self,
        context: &AfterDeserializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let response = context.response();
        if let (true, Some(bytes)) = (response.status().is_success(), response.body().bytes())
            && let (Ok(answer), Ok(mut output)) = (serde_json::from_slice(bytes), self.output.lock())
        {
            *output = Some(answer);
        }
        Ok(())
    }
}
