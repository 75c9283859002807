//! A signed request to an AWS service and its answer, within bounds.
//!
//! The signature is `aws-sigv4`'s and the connection the SDK's. The SDKs of the three services would do the same with
//! a million lines of generated code. Invariant: an answer is read up to [`MAX_BYTES`] and no further, and a request
//! carries credentials only to the endpoint that was configured.

use super::{Error, MAX_BYTES, PolicySource, ReaderOptions, Result};
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};
use aws_sigv4::http_request::{
    PayloadChecksumKind, PercentEncodingMode, SignableBody, SignableRequest, SigningSettings, UriPathNormalizationMode,
    sign,
};
use aws_sigv4::sign::v4;
use aws_smithy_http_client::Connector;
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::http::{HttpConnector, SharedHttpConnector};
use aws_smithy_runtime_api::client::identity::Identity;
use aws_smithy_runtime_api::http::{Headers, Request};
use aws_smithy_types::body::SdkBody;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use std::error::Error as StdError;
use std::time::SystemTime;
use tollgate_dynamodb::cause::root_cause;
use tollgate_dynamodb::{Connection, connect};

/// A service that has policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind {
    /// The first label of its host name.
    pub(super) host: &'static str,
    /// Its name in signatures.
    pub(super) signed_as: &'static str,
    /// The variable that names another endpoint for it.
    pub(super) endpoint_variable: &'static str,
}

/// A service in a Region, and the right to ask it.
#[derive(Debug)]
pub(super) struct Client {
    place: String,
    kind: Kind,
    region: String,
    endpoint: String,
    /// The endpoint is the service's own, not one that somebody configured.
    is_regional: bool,
    credentials: SharedCredentialsProvider,
    connector: SharedHttpConnector,
}

/// What is asked.
#[derive(Debug)]
pub(super) struct Call<'a> {
    /// The IAM action, for error messages.
    pub(super) action: &'static str,
    pub(super) method: &'static str,
    /// Scheme, host, path and query, percent-encoded.
    pub(super) url: String,
    pub(super) headers: Vec<(&'static str, &'a str)>,
    pub(super) body: Vec<u8>,
}

/// What was answered: 2xx or 304.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: Headers,
    pub(super) body: Vec<u8>,
}

impl Client {
    pub(super) async fn open(place: &PolicySource, kind: Kind, options: &ReaderOptions) -> Result<Self> {
        let place = place.to_string();
        let setup = |cause: String| Error::Setup { place: place.clone(), cause };
        let configured = options.endpoint_url.clone().or_else(|| endpoint_from(kind, |name| std::env::var(name).ok()));
        let mut connection = Connection::from_environment();
        connection.endpoint_url.clone_from(&configured);
        // The table's connection knows the rules: Region and credentials of the environment, or an emulator's.
        let connected = connect(&connection).await.map_err(|error| setup(error.to_string()))?;
        let region = connected.region().ok_or_else(|| setup("no AWS Region; set AWS_REGION".to_owned()))?;
        let credentials =
            connected.credentials().ok_or_else(|| setup("no AWS credentials provider is configured".to_owned()))?;
        let regional = format!("https://{}.{region}.{}", kind.host, dns_suffix(&region));
        let is_regional = configured.is_none();
        let endpoint = configured.unwrap_or(regional).trim_end_matches('/').to_owned();
        let connector = Connector::builder().tls_provider(Provider::Rustls(CryptoMode::Ring)).build();
        let connector = SharedHttpConnector::new(connector);
        Ok(Self { place, kind, region, endpoint, is_regional, credentials, connector })
    }

    /// Scheme and host, without a slash at the end.
    pub(super) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The service's own endpoint with `label` before its host name, if nobody configured another one.
    pub(super) fn regional_host_under(&self, label: &str) -> Option<String> {
        let host = self.endpoint.strip_prefix("https://").filter(|_| self.is_regional)?;
        Some(format!("https://{label}.{host}"))
    }

    /// An error of this policy for an answer that is not what the service documents.
    pub(super) fn unexpected(&self, what: impl Into<String>) -> Error {
        Error::NoAnswer { place: self.place.clone(), cause: what.into() }
    }

    /// Signs, sends and reads a call of the protocol AWS JSON 1.1, where `target` is the service's own name of the operation.
    pub(super) async fn json(&self, action: &'static str, target: &str, body: &serde_json::Value) -> Result<Answer> {
        let headers = vec![("content-type", "application/x-amz-json-1.1"), ("x-amz-target", target)];
        let (url, body) = (format!("{}/", self.endpoint), body.to_string().into_bytes());
        self.call(Call { action, method: "POST", url, headers, body }).await
    }

    /// Signs, sends and reads.
    pub(super) async fn call(&self, call: Call<'_>) -> Result<Answer> {
        let action = call.action;
        let request = self.signed(call).await?;
        let response = self.connector.call(request).await.map_err(|error| self.unexpected(root_cause(&error)))?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = match Limited::new(response.into_body(), MAX_BYTES).collect().await {
            Ok(body) => body.to_bytes().to_vec(),
            Err(error) if error.is::<LengthLimitError>() => return Err(Error::TooLarge { place: self.place.clone() }),
            Err(error) => return Err(self.unexpected(root_cause(&*error))),
        };
        let answer = Answer { status, headers, body };
        if matches!(status, 200..=299 | 304) { Ok(answer) } else { Err(self.refused(action, &answer)) }
    }

    async fn signed(&self, call: Call<'_>) -> Result<Request> {
        let setup = |error: &(dyn StdError + 'static)| self.setup(root_cause(error));
        let credentials = self.credentials.provide_credentials().await;
        let identity =
            credentials.map_err(|error| self.setup(format!("no AWS credentials: {}", root_cause(&error))))?;
        let signature = signature(&call, self.kind, &self.region, &identity.into(), SystemTime::now());
        let signature = signature.map_err(|error| setup(&*error))?;

        let mut request = Request::new(SdkBody::from(call.body));
        let built = request.set_method(call.method).and_then(|()| request.set_uri(call.url.as_str()));
        built.map_err(|error| setup(&error))?;
        let given = call.headers.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
        for (name, value) in given.chain(signature) {
            request.headers_mut().try_insert(name, value).map_err(|error| setup(&error))?;
        }
        Ok(request)
    }

    fn setup(&self, cause: String) -> Error {
        Error::Setup { place: self.place.clone(), cause }
    }

    fn refused(&self, action: &'static str, answer: &Answer) -> Error {
        let (code, message) = told(answer);
        let help = match code.as_str() {
            code if code.starts_with("AccessDenied") || answer.status == 403 => "allow this action to the role",
            "ParameterNotFound" | "NoSuchKey" | "NoSuchBucket" | "ResourceNotFoundException" => "is it there?",
            "PermanentRedirect" => "use a bucket in the function's Region",
            _ => "it is tried again",
        };
        let place = self.place.clone();
        Error::Refused { place, action, status: answer.status, code, message, help }
    }
}

/// The headers that sign a call (Signature Version 4).
fn signature(
    call: &Call<'_>,
    kind: Kind,
    region: &str,
    identity: &Identity,
    time: SystemTime,
) -> std::result::Result<Vec<(String, String)>, BoxError> {
    let params = v4::SigningParams::builder()
        .identity(identity)
        .region(region)
        .name(kind.signed_as)
        .time(time)
        .settings(settings(kind))
        .build()?;
    let headers = call.headers.iter().copied();
    let request = SignableRequest::new(call.method, call.url.as_str(), headers, SignableBody::Bytes(&call.body))?;
    let (instructions, _) = sign(request, &params.into())?.into_parts();
    Ok(instructions.headers().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

/// S3 signs paths as they are sent and wants the body's digest in a header; the others do neither (Signature Version 4,
/// "Create a canonical request").
fn settings(kind: Kind) -> SigningSettings {
    let mut settings = SigningSettings::default();
    if kind.signed_as == "s3" {
        settings.percent_encoding_mode = PercentEncodingMode::Single;
        settings.payload_checksum_kind = PayloadChecksumKind::XAmzSha256;
        settings.uri_path_normalization_mode = UriPathNormalizationMode::Disabled;
    }
    settings
}

/// The endpoint that the environment names: the service's own variable goes first (AWS SDKs and Tools Reference Guide,
/// "Service-specific endpoints").
fn endpoint_from(kind: Kind, variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    set(kind.endpoint_variable).or_else(|| set("AWS_ENDPOINT_URL"))
}

fn dns_suffix(region: &str) -> &'static str {
    if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" }
}

/// Error code and message of a refusal: XML of S3, JSON of the others.
fn told(answer: &Answer) -> (String, String) {
    let text = String::from_utf8_lossy(&answer.body);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    let xml = |tag: &str| {
        let (_, rest) = text.split_once(&format!("<{tag}>"))?;
        rest.split_once(&format!("</{tag}>")).map(|(inner, _)| inner.to_owned())
    };
    let field = |name: &str| json.get(name).and_then(|value| value.as_str()).map(str::to_owned);
    let header = answer.headers.get("x-amzn-errortype").map(str::to_owned);
    let code = header.or_else(|| field("__type")).or_else(|| xml("Code")).unwrap_or_else(|| "no code".to_owned());
    // `namespace#Code`, and in headers `Code:url`.
    let code = code.rsplit('#').next().and_then(|code| code.split(':').next()).unwrap_or_default().to_owned();
    let message = field("message").or_else(|| field("Message")).or_else(|| xml("Message")).unwrap_or_default();
    (code, message.replace(['\n', '\r'], " "))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use aws_credential_types::Credentials;
    use std::time::{Duration, UNIX_EPOCH};

    const S3: Kind = Kind { host: "s3", signed_as: "s3", endpoint_variable: "AWS_ENDPOINT_URL_S3" };

    /// Signs at 2013-05-24T00:00:00Z with the keys of AWS's examples; returns the signature.
    fn signed(call: &Call<'_>, signed_as: &'static str, region: &str, token: Option<&str>) -> String {
        let secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
        let keys = Credentials::from_keys("AKIAIOSFODNN7EXAMPLE", secret, token.map(str::to_owned));
        let time = UNIX_EPOCH + Duration::from_secs(1_369_353_600);
        let headers = signature(call, Kind { signed_as, ..S3 }, region, &keys.into(), time).unwrap();
        let (_, value) = headers.iter().find(|(name, _)| name == "authorization").unwrap();
        value.rsplit_once("Signature=").unwrap().1.to_owned()
    }

    fn get<'a>(url: &str, headers: Vec<(&'static str, &'a str)>) -> Call<'a> {
        Call { action: "", method: "GET", url: url.to_owned(), headers, body: Vec::new() }
    }

    #[test]
    fn signs_as_aws_documents() {
        // Amazon S3 API Reference, "Signature Calculations for the Authorization Header", example GET Object.
        let call = get("https://examplebucket.s3.amazonaws.com/test.txt", vec![("range", "bytes=0-9")]);
        let documented = "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41";
        assert_eq!(signed(&call, "s3", "us-east-1", None), documented);
    }

    #[test]
    fn signs_as_botocore_does() {
        // What botocore 1.44.8 computes for the same requests, with keys that S3 must not encode twice or normalise.
        let url = "https://bucket.s3.eu-west-1.amazonaws.com/a%20b/%C3%A9//x.toml";
        let s3 = signed(&get(url, vec![("if-none-match", "\"abc\"")]), "s3", "eu-west-1", None);
        assert_eq!(s3, "92273e1af137a2ef5bf2c0c4d9ac4fb6d6c8ba3aeffee2feb56fe57169055284");
        let ssm = Call {
            action: "",
            method: "POST",
            url: "https://ssm.us-east-1.amazonaws.com/".to_owned(),
            headers: vec![("content-type", "application/x-amz-json-1.1"), ("x-amz-target", "AmazonSSM.GetParameter")],
            body: br#"{"Name":"/tollgate/policy","WithDecryption":true}"#.to_vec(),
        };
        let ssm = signed(&ssm, "ssm", "us-east-1", Some("session"));
        assert_eq!(ssm, "4c5c6b9f84e432cfb8a8544b95d249f5923c093c911377f43e2ea1488abccac4");
        let url = "https://appconfigdata.us-east-1.amazonaws.com/configuration?configuration_token=a%2Bb%2F%3D";
        let appconfig = signed(&get(url, Vec::new()), "appconfig", "us-east-1", None);
        assert_eq!(appconfig, "96b6c1719dea7e2bb55bfc00412941119ddcc2bc5456cee93d48e869b4b66ed4");
    }

    #[test]
    fn the_service_s_own_endpoint_variable_goes_first() {
        let environment = |set: &'static [(&str, &str)]| {
            endpoint_from(S3, move |name| set.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned()))
        };
        assert_eq!(environment(&[]), None);
        assert_eq!(environment(&[("AWS_ENDPOINT_URL", "http://a"), ("AWS_ENDPOINT_URL_S3", "")]).unwrap(), "http://a");
        assert_eq!(
            environment(&[("AWS_ENDPOINT_URL", "http://a"), ("AWS_ENDPOINT_URL_S3", "http://b")]).unwrap(),
            "http://b"
        );
        assert_eq!(environment(&[("AWS_ENDPOINT_URL_SSM", "http://c")]), None);
    }

    #[test]
    fn refusals_are_read_from_json_from_headers_and_from_xml() {
        let answer = |header: Option<&'static str>, body: &str| {
            let mut headers = Headers::new();
            if let Some(value) = header {
                headers.insert("x-amzn-errortype", value);
            }
            let (code, message) = told(&Answer { status: 400, headers, body: body.as_bytes().to_vec() });
            format!("{code}|{message}")
        };
        let json = r#"{"__type":"com.amazonaws.ssm#ParameterNotFound","message":"gone"}"#;
        assert_eq!(answer(None, json), "ParameterNotFound|gone");
        let header = Some("BadRequestException:http://internal.amazon.com/");
        assert_eq!(answer(header, r#"{"Message":"expired\ntoken"}"#), "BadRequestException|expired token");
        assert_eq!(answer(None, "<Error><Code>NoSuchKey</Code><Message>x</Message></Error>"), "NoSuchKey|x");
        assert_eq!(answer(None, "<html>"), "no code|");
    }
}
