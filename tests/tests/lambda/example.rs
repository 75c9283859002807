//! The `lambda_http` example, of the file that people copy, as Lambda runs it.

use crate::events::{SENDERS, Sender};
use crate::harness::{Function, TaskRoot, unique};
use crate::sample_api::by;
use serde_json::json;

const EXAMPLE: &str = env!("CARGO_BIN_EXE_lambda-http-example-under-test");

#[tokio::test(flavor = "multi_thread")]
async fn the_example_counts_by_the_policy_behind_every_gateway() {
    let mut example = Function::start(EXAMPLE, TaskRoot::with_sample_policy()).await;
    for sender in SENDERS {
        let caller = json!({ "sub": unique("alice"), "plan": "free" });
        let order = by(sender, "POST", "/api/orders", &caller);
        for left in (0..50).rev() {
            let answer = example.invoke(&order).await.unwrap();
            let expected = (&json!(201), &json!(format!("{left} orders left\n")));
            assert_eq!((&answer["statusCode"], &answer["body"]), expected, "{sender:?}");
        }
        let denied = example.respond(&order).await;
        assert_eq!((denied.status, &denied.body["limit"]), (429, &"orders".into()), "{sender:?}");
        assert!(denied.header("retry-after").is_some(), "{denied:?}");
    }
    let health = example.invoke(&by(Sender::HttpApi, "GET", "/healthz", &json!({}))).await.unwrap();
    assert_eq!(health["statusCode"], 201, "it answers everything alike; what is exempt is not counted");
}
