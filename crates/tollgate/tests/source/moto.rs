//! SSM, Secrets Manager and S3 on moto, an emulator that others wrote (`TOLLGATE_MOTO_ENDPOINT`; CI starts one).

use crate::harness::{at, policy};
use aws_smithy_http_client::{Connector, tls};
use aws_smithy_runtime_api::client::http::HttpConnector;
use aws_smithy_runtime_api::http::Request;
use aws_smithy_types::body::SdkBody;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tollgate::source::{Error, PolicySource, Reader, RefreshOptions, Refreshed, Refresher, SecretsSource};
use tollgate::testing::ManualClock;
use tollgate::{Clock, Counters, SystemClock, Timestamp};

fn moto() -> Option<String> {
    let endpoint = std::env::var("TOLLGATE_MOTO_ENDPOINT").ok();
    if endpoint.is_none() {
        println!("skipped: TOLLGATE_MOTO_ENDPOINT names no moto server (pip install 'moto[server]'; moto_server)");
    }
    endpoint
}

/// A name that no other run has.
fn unique(name: &str) -> String {
    format!("{name}-{}-{}", std::process::id(), SystemClock.now().as_millis())
}

/// Asks moto for what is not under test, with an authorization that names the service and is not checked.
async fn ask(service: &str, method: &str, url: String, target: &str, body: String) {
    let mut request = Request::new(SdkBody::from(body));
    request.set_method(method).unwrap();
    request.set_uri(url.as_str()).unwrap();
    let scope = format!("AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/{service}/aws4_request, SignedHeaders=, ");
    let headers = [("authorization", scope + "Signature=x"), ("content-type", "application/x-amz-json-1.1".into())];
    for (name, value) in headers.into_iter().chain([("x-amz-target", target.to_owned())]) {
        request.headers_mut().insert(name, value);
    }
    let ring = tls::Provider::Rustls(tls::rustls_provider::CryptoMode::Ring);
    let response = Connector::builder().tls_provider(ring).build().call(request).await.unwrap();
    assert!(response.status().is_success(), "{response:?}");
}

async fn put_parameter(moto: &str, name: &str, kind: &str, value: &str) {
    let body = json!({ "Name": name, "Value": value, "Type": kind, "Overwrite": true }).to_string();
    ask("ssm", "POST", format!("{moto}/"), "AmazonSSM.PutParameter", body).await;
}

async fn put_object(moto: &str, bucket: &str, key: &str, body: &str) {
    ask("s3", "PUT", format!("{moto}/{bucket}/{key}"), "", body.to_owned()).await;
}

async fn open(moto: &str, source: &str) -> Reader {
    Reader::open(source.parse::<PolicySource>().unwrap(), &at(moto)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parameter_is_read_whether_it_is_secure_or_not() {
    let Some(moto) = moto() else { return };
    for kind in ["String", "SecureString"] {
        let name = unique(&format!("/tollgate/{kind}"));
        let mut reader = open(&moto, &format!("ssm:{name}")).await;
        let error = reader.load().await.unwrap_err();
        assert!(matches!(&error, Error::Refused { code, .. } if code == "ParameterNotFound"), "{error}");
        for version in ["1", "2"] {
            let text = policy(version.parse().unwrap(), "5/s");
            put_parameter(&moto, &name, kind, &text).await;
            let loaded = reader.load().await.unwrap();
            assert_eq!((loaded.text, loaded.version.as_deref()), (Some(text), Some(version)), "{kind}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_is_sent_when_it_has_changed() {
    let Some(moto) = moto() else { return };
    let bucket = unique("bucket").to_lowercase();
    ask("s3", "PUT", format!("{moto}/{bucket}"), "", String::new()).await;
    let mut reader = open(&moto, &format!("s3://{bucket}/a b/é+.toml")).await;
    let error = reader.load().await.unwrap_err();
    assert!(matches!(&error, Error::Refused { code, status: 404, .. } if code == "NoSuchKey"), "{error}");
    for revision in 1..=2 {
        put_object(&moto, &bucket, "a%20b/%C3%A9%2B.toml", &policy(revision, "5/s")).await;
        assert_eq!(reader.load().await.unwrap().text, Some(policy(revision, "5/s")));
        assert_eq!(reader.load().await.unwrap().text, None, "not modified");
    }
    let mut nowhere = open(&moto, &format!("s3://{bucket}-nowhere/key")).await;
    let error = nowhere.load().await.unwrap_err();
    assert!(matches!(&error, Error::Refused { code, .. } if code == "NoSuchBucket"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parameter_that_changes_is_in_force_without_a_deployment() {
    let Some(moto) = moto() else { return };
    let name = unique("/tollgate/live");
    put_parameter(&moto, &name, "String", &policy(1, "5/s")).await;
    let (clock, counters) = (ManualClock::new(Timestamp::from_secs(1)), Arc::new(Counters::default()));
    let options = RefreshOptions::default().reader(at(&moto)).clock(Arc::new(clock.clone()));
    let source = PolicySource::Ssm { name: name.clone() };
    let refresher = Refresher::start(source, counters.clone(), options).await.unwrap();
    let mut outcomes = Vec::new();
    for text in [policy(2, "9/s"), "rate = ".to_owned(), policy(3, "9/s")] {
        put_parameter(&moto, &name, "String", &text).await;
        clock.advance(Duration::from_secs(60));
        outcomes.push((refresher.refresh_if_due().await, refresher.live().current().revision()));
    }
    assert_eq!(outcomes, [(Refreshed::Replaced, 2), (Refreshed::Rejected, 2), (Refreshed::Replaced, 3)]);
    assert_eq!((counters.counts().policies_loaded, counters.counts().policies_rejected), (3, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_of_secrets_manager_is_read_as_it_is_now() {
    let Some(moto) = moto() else { return };
    let name = unique("tollgate/keys");
    let source = SecretsSource::Secret(name.clone());
    let missing = source.read(&at(&moto)).await.unwrap_err().to_string();
    assert!(missing.contains("secretsmanager:GetSecretValue") && missing.contains("is it there?"), "{missing}");
    let keys = ["k1=AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8", "k2=__79_Pv6-fj39vX08_Lx8O_u7ezr6uno5-bl5OPi4eA"];
    for (target, id, keys) in [("CreateSecret", "Name", keys[0]), ("PutSecretValue", "SecretId", keys[1])] {
        let body =
            json!({ id: name, "SecretString": keys, "ClientRequestToken": "0".repeat(31) + &keys[1..2] }).to_string();
        ask("secretsmanager", "POST", format!("{moto}/"), &format!("secretsmanager.{target}"), body).await;
        let read = source.read(&at(&moto)).await.unwrap();
        assert!(keys.starts_with(read.ids().next().unwrap()), "{read:?}");
    }
}
