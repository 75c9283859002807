//! Many sandboxes at once, as Lambda starts them under load.

use crate::harness::{Function, LIMITER, TaskRoot, unique};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn forty_sandboxes_on_a_new_key_of_ten_admit_ten() {
    let policy = "version = 1\n[limits.orders]\nkey = ['user']\nrate = '10/year'\non_store_failure = 'closed'\n";
    let event = json!({ "limit": "orders", "key": { "user": unique("alice") } });
    let mut asking = Vec::new();
    for _ in 0..40 {
        let event = event.clone();
        asking.push(tokio::spawn(async move {
            let mut limiter = Function::start(LIMITER, TaskRoot::with_policy(policy)).await;
            limiter.invoke(&event).await.unwrap()["allowed"].as_bool().unwrap()
        }));
    }
    let mut allowed = 0;
    for answer in asking {
        allowed += u32::from(answer.await.unwrap());
    }
    assert_eq!(allowed, 10);
}
