//! Secrets that personal values are hashed under: from a parameter, and through every reload.

use crate::harness::{Service, at, parameter};
use axum::http::StatusCode;
use std::sync::Arc;
use std::time::Duration;
use tollgate::source::{Error, PolicySource, RefreshOptions, Refreshed, Refresher, SecretsSource};
use tollgate::testing::ManualClock;
use tollgate::{Counters, KeySecrets, Timestamp};

const K1: &str = "k1=AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";

fn personal(revision: u64, by: &str) -> String {
    format!(
        "version = 1\nrevision = {revision}\n[identity]\naccount = {{ body = 'u', fold = 'email' }}\n\
         [limits.a]\nkey = ['{by}']\nrate = '5/h'\n"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parameter_is_asked_for_decrypted_and_its_mistakes_tell_nothing_of_it() {
    let service = Service::start().await;
    let source = SecretsSource::Parameter("/tollgate/keys".to_owned());
    service.then(parameter(&format!("{K1}\n"), 1));
    let secrets = source.read(&at(&service.url)).await.unwrap();
    assert_eq!(secrets, K1.parse().unwrap());
    assert_eq!(&service.asked()[0].body[..], br#"{"Name":"/tollgate/keys","WithDecryption":true}"#);
    service.then(parameter("k1=sekret", 1));
    let error = source.read(&at(&service.url)).await.unwrap_err().to_string();
    assert!(error.starts_with("ssm:/tollgate/keys: key secret 1: ") && !error.contains("sekret"), "{error}");
    service.then((StatusCode::BAD_REQUEST, r#"{"__type":"ParameterNotFound","message":"gone"}"#));
    let error = source.read(&at(&service.url)).await.unwrap_err().to_string();
    assert!(
        error.contains("the key secrets cannot be read: AWS refused ssm:GetParameter for ssm:/tollgate/keys"),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_needs_secrets_starts_with_them_only_and_reloads_keep_them() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("tollgate.toml");
    std::fs::write(&path, personal(1, "account")).unwrap();
    let clock = ManualClock::new(Timestamp::from_secs(1));
    let start = async |secrets: KeySecrets| {
        let options = RefreshOptions::default().clock(Arc::new(clock.clone())).secrets(secrets);
        Refresher::start(PolicySource::File(path.clone()), Arc::new(Counters::default()), options).await
    };
    let error = start(KeySecrets::default()).await.unwrap_err();
    assert!(matches!(error, Error::NoSecrets { .. }));
    let text = error.to_string();
    assert!(text.contains("`account`") && text.contains("TOLLGATE_KEY_SECRETS") && text.lines().count() == 1, "{text}");

    let refresher = start(K1.parse().unwrap()).await.unwrap();
    for (revision, by, refreshed) in
        [(1, "account", Refreshed::Unchanged), (2, "user", Refreshed::Replaced), (3, "account", Refreshed::Replaced)]
    {
        std::fs::write(&path, personal(revision, by)).unwrap();
        clock.advance(Duration::from_secs(61));
        assert_eq!(refresher.refresh_if_due().await, refreshed, "revision {revision}");
        assert_eq!(refresher.live().current().secrets(), &K1.parse().unwrap());
    }
    std::fs::write(&path, personal(1, "user")).unwrap();
    let refresher = start(KeySecrets::default()).await.unwrap();
    std::fs::write(&path, personal(2, "account")).unwrap();
    clock.advance(Duration::from_secs(61));
    assert_eq!(
        refresher.refresh_if_due().await,
        Refreshed::Rejected,
        "the one in force can be served, this one cannot"
    );
    assert_eq!(refresher.live().current().revision(), 1);
}
