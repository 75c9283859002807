//! The limiter by direct invocation: the decision itself, or a function error that says whose fault it is.

use crate::harness::{Function, LIMITER, TaskRoot, unique};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn the_event_is_the_request_and_the_answer_the_decision() {
    let mut limiter = Function::start(LIMITER, TaskRoot::with_sample_policy()).await;
    let user = unique("alice");
    let order = json!({ "limit": "orders", "key": { "user": user }, "plan": "free", "cost": 1 });
    let expected = json!({ "allowed": true, "limit": "orders", "remaining": 49, "retry_after_ms": 0, "reset_ms": 72_000, "source": "table" });
    assert_eq!(limiter.invoke(&order).await, Ok(expected));
    let both = json!([order, { "limit": "units", "key": { "user": user }, "cost": 5 }]);
    let answers = limiter.invoke(&both).await.unwrap();
    assert_eq!((&answers[0]["remaining"], &answers[1]["remaining"]), (&48.into(), &95.into()), "{answers}");
    let never = json!({ "limit": "orders", "key": { "user": user }, "cost": 51 });
    let answer = limiter.invoke(&never).await.unwrap();
    assert_eq!((&answer["allowed"], &answer["never_fits"]), (&false.into(), &true.into()), "a denial is an answer");
}

/// zae-limiter: a limit that there is none of is an error.
#[tokio::test(flavor = "multi_thread")]
async fn bad_input_is_a_bad_request_and_the_next_one_is_decided() {
    let mut limiter = Function::start(LIMITER, TaskRoot::with_sample_policy()).await;
    let key = json!({ "user": "alice" });
    let mut deep = json!(1);
    for _ in 0..200 {
        deep = json!([deep]);
    }
    let cases = [
        (Value::Null, "write {"),
        (json!(7), "write {"),
        (json!("orders"), "write {"),
        (json!({}), "missing field"),
        (json!([]), "empty"),
        (json!({ "Records": [{ "eventSource": "aws:sqs" }] }), "unknown field"),
        (json!({ "limit": "nothing", "key": key }), "unknown limit"),
        (json!({ "limit": "orders", "key": key, "cost": -5 }), "whole number from 0"),
        (json!({ "limit": "orders", "key": { "user": "k".repeat(70_000) } }), "at most 65536"),
        (deep, "wrong type"),
    ];
    for (event, says) in cases {
        let (kind, message) = limiter.invoke(&event).await.unwrap_err();
        assert!(kind == "BadRequest" && message.contains(says), "{says}: {kind} {message}");
    }
    let order = json!({ "limit": "orders", "key": { "user": unique("alice") } });
    assert_eq!(limiter.invoke(&order).await.unwrap()["remaining"], 49);
}
