//! Creating a table, and being told what is wrong with one.

use crate::harness::{PATIENCE, SECOND, TABLE, connected, json, key, one, raw, run, run_at_root, stderr, stdout};
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::net::TcpListener;
use tollgate::{Counters, DynamoStore, Limiter, SystemClock};
use tollgate_cli::embedded::Embedded;
use tollgate_dynamodb::table::{CreateOptions, create};

#[tokio::test(flavor = "multi_thread")]
async fn a_created_table_is_as_it_should_be() {
    let embedded = Embedded::start(None).await.unwrap();
    let at = ["--endpoint-url", embedded.endpoint(), "--table", "limits"];
    tokio::task::block_in_place(|| {
        let created = run(&[&["table", "create", "--deletion-protection"][..], &at].concat());
        assert!(created.status.success() && stdout(&created).contains("limits is ready"), "{}", stderr(&created));
        let described = run(&[&["table", "describe", "--json"][..], &at].concat());
        assert!(described.status.success(), "{}", stderr(&described));
        let findings = json(&described);
        let is = |what: &str| findings.as_array().unwrap().iter().find(|f| f["what"] == what).unwrap()["is"].clone();
        assert_eq!((is("partition key"), is("billing")), ("pk (HASH)".into(), "on demand".into()));
        assert_eq!((is("TTL"), is("deletion protection")), ("on expires_at".into(), "on".into()));
        let again = run(&[&["table", "create"][..], &at].concat());
        assert!(again.status.code() == Some(1) && stderr(&again).contains("exists already"), "{}", stderr(&again));
        let recovery = ["--endpoint-url", embedded.endpoint(), "--table", "with-pitr"];
        let unsupported = run(&[&["table", "create", "--point-in-time-recovery"][..], &recovery].concat());
        assert!(unsupported.status.code() == Some(3) && stderr(&unsupported).contains("was created, but"));
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn each_thing_that_is_wrong_comes_with_how_to_mend_it() {
    use aws_sdk_dynamodb::types::{
        AttributeDefinition, KeySchemaElement, KeyType, ProvisionedThroughput, ScalarAttributeType,
    };
    let embedded = Embedded::start(None).await.unwrap();
    let throughput = ProvisionedThroughput::builder().read_capacity_units(1).write_capacity_units(1).build().unwrap();
    let attribute = AttributeDefinition::builder().attribute_name("id").attribute_type(ScalarAttributeType::N);
    let request = raw(embedded.endpoint()).create_table().table_name("foreign");
    let request = request.attribute_definitions(attribute.build().unwrap()).provisioned_throughput(throughput);
    let key = KeySchemaElement::builder().attribute_name("id").key_type(KeyType::Hash).build().unwrap();
    request.key_schema(key).send().await.unwrap();
    let at = ["--endpoint-url", embedded.endpoint(), "--table", "foreign"];
    tokio::task::block_in_place(|| {
        let described = run(&[&["table", "describe"][..], &at].concat());
        assert_eq!(described.status.code(), Some(1));
        let text = stdout(&described);
        for says in [
            "FAIL  partition key",
            "id (HASH)",
            "PAY_PER_REQUEST",
            "update-time-to-live",
            "deletion-protection-enabled",
        ] {
            assert!(text.contains(says), "{says}: {text}");
        }
        assert!(stderr(&described).contains("cannot be used as it is: partition key"));
        let inspected = run_at_root(&[&["inspect", "user:alice"][..], &at].concat());
        assert!(
            inspected.status.code() == Some(1) && stderr(&inspected).contains("tollgate table describe"),
            "{}",
            stderr(&inspected)
        );
    });
}

/// The table at `upstream`, by a role that may not do what is `denied`; and how often it has tried.
async fn by_a_role_without(denied: &'static [&'static str], upstream: &str) -> (String, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (upstream, tried) = (upstream.trim_end_matches('/').to_owned(), Arc::new(AtomicU64::new(0)));
    let client = Client::builder(TokioExecutor::new()).build_http::<Body>();
    let counted = tried.clone();
    let answer = move |mut request: Request| async move {
        let operation = request.headers()["x-amz-target"].to_str().unwrap().rsplit('.').next().unwrap();
        if denied.contains(&operation) {
            counted.fetch_add(1, Ordering::SeqCst);
            return (StatusCode::BAD_REQUEST, r#"{"__type":"x#AccessDeniedException","message":"no"}"#).into_response();
        }
        *request.uri_mut() = format!("{upstream}{}", request.uri().path()).parse().unwrap();
        client.request(request).await.map_or_else(|_| StatusCode::BAD_GATEWAY.into_response(), Response::into_response)
    };
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await });
    (url, tried)
}

/// rate-limiter-flexible PR#278.
#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_look_at_the_table_decides_without_and_is_told_what_to_grant() {
    let embedded = Embedded::start(None).await.unwrap();
    create(&connected(embedded.endpoint()).await, TABLE, CreateOptions::default()).await.unwrap();
    let all = &["DescribeTable", "DescribeTimeToLive", "DescribeContinuousBackups", "UpdateTimeToLive"];
    let (blind, tried) = by_a_role_without(all, embedded.endpoint()).await;
    let store = DynamoStore::new(&connected(&blind).await, TABLE, Arc::new(SystemClock), Arc::<Counters>::default());
    store.warm_up().await.unwrap();
    let limiter = Limiter::new(store).with_deadline(PATIENCE);
    assert!(limiter.take(&[one(&key(), 1, SECOND, 1)]).await.unwrap().is_allowed());
    assert_eq!(tried.load(Ordering::SeqCst), 0, "no function asks for it when it starts");

    let (half_blind, _) = by_a_role_without(&all[1..], embedded.endpoint()).await;
    tokio::task::block_in_place(|| {
        let described = run(&["table", "describe", "--endpoint-url", &blind, "--table", TABLE]);
        let told = stderr(&described);
        assert_eq!((described.status.code(), told.lines().count()), (Some(3), 1), "{told}");
        assert!(told.contains("grant dynamodb:DescribeTable on the table to this role"), "{told}");
        let described = run(&["table", "describe", "--endpoint-url", &half_blind, "--table", TABLE]);
        let told = stdout(&described);
        assert!(described.status.success() && told.contains("grant dynamodb:DescribeTimeToLive to see it"), "{told}");
        let created = run(&["table", "create", "--endpoint-url", &half_blind, "--table", "without-ttl"]);
        let told = stderr(&created);
        assert_eq!((created.status.code(), told.lines().count()), (Some(3), 1), "{told}");
        assert!(told.contains("was created, but") && told.contains("grant dynamodb:UpdateTimeToLive"), "{told}");
    });
}
