//! Many sandboxes on one key, and one that is taken away in the middle of a decision.

use crate::harness::{Function, LIMITER, TABLE, TaskRoot, endpoint, unique};
use crate::proxy::keeping_refunds;
use serde_json::{Value, json};

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

const TWO_KEYS: &str = "version = 1
[limits.user]
key = ['user']
rate = '5/year'
[limits.tenant]
key = ['tenant']
rate = '2/year'
";

/// What becomes of a refund whose sender is gone.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Refund {
    IsLost,
    ArrivesInTime,
    ArrivesAfterAnotherCharge,
}

/// A sandbox that is killed (SIGKILL) after it has charged the user and before the tenant's denial has given that back.
/// What it took stays taken, and no more; a refund that is still under way counts only if nobody was charged since.
#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_killed_between_its_charge_and_the_refund_costs_its_own_token_and_admits_nothing() {
    for fate in [Refund::IsLost, Refund::ArrivesInTime, Refund::ArrivesAfterAnotherCharge] {
        let (alice, acme) = (unique("alice"), unique("acme"));
        let user = |cost: u64| json!({ "limit": "user", "key": { "user": alice }, "cost": cost });
        let both = json!([user(1), { "limit": "tenant", "key": { "tenant": acme } }]);
        let mut sound = Function::start(LIMITER, TaskRoot::with_policy(TWO_KEYS)).await;
        for _ in 0..2 {
            assert_eq!(sound.invoke(&both).await.unwrap()[0]["allowed"], true);
        }
        let (way, mut kept) = keeping_refunds(&endpoint().await).await;
        let variables = [("TOLLGATE_TABLE", TABLE), ("TOLLGATE_ENDPOINT_URL", way.as_str())];
        let mut killed = Function::with(LIMITER, TaskRoot::with_policy(TWO_KEYS), &variables).await;
        let refund = tokio::select! {
            answer = killed.invoke(&both) => panic!("answered before it gave back: {answer:?}"),
            refund = kept.recv() => refund.unwrap(),
        };
        killed.sandbox().kill().await.unwrap();
        let left = |answer: &Value| answer["remaining"].as_u64().unwrap();
        assert_eq!(left(&sound.invoke(&user(0)).await.unwrap()), 2, "two were admitted, one died");
        let mut expected = [2, 1];
        match fate {
            Refund::IsLost => {}
            Refund::ArrivesInTime => {
                assert_eq!(refund.deliver().await, 200);
                expected = [3, 2];
            }
            Refund::ArrivesAfterAnotherCharge => {
                assert_eq!(left(&sound.invoke(&user(1)).await.unwrap()), 1);
                assert_eq!(refund.deliver().await, 400, "refused: something was charged since");
                expected = [1, 0];
            }
        }
        let told = [left(&sound.invoke(&user(0)).await.unwrap()), left(&sound.invoke(&user(1)).await.unwrap())];
        assert_eq!(told, expected, "{fate:?}");
    }
}
