//! Two policies side by side on one table, as they are while a newer one reaches one process after another.

use crate::harness::{Client, key};
use tollgate::{Charges, Key, LivePolicy, Policy, Wanted};

/// A process: a limiter, and the policy that it has in force.
struct Process {
    client: Client,
    policy: LivePolicy,
    key: Key,
}

fn policy(revision: u64, rate: &str, burst: u64) -> Policy {
    let text = format!(
        "version = 1\nrevision = {revision}\n[identity]\ntest = 'header.x-test'\n\
         [limits.revised]\nkey = ['test']\nrate = '{rate}'\nburst = {burst}\n"
    );
    Policy::parse(&text).unwrap().policy
}

impl Process {
    /// A process under `policy` that is asked about the key and by the clock of `other`.
    async fn beside(other: &Self, policy: Policy) -> Self {
        let client = Client::at(other.client.clock.clone()).await;
        Self { client, policy: policy.into(), key: other.key.clone() }
    }

    async fn first(policy: Policy) -> Self {
        Self { client: Client::new().await, policy: policy.into(), key: key().key }
    }

    fn charges(&self) -> Charges {
        let shown = self.key.to_string();
        let value = shown.strip_prefix("test:").unwrap();
        let wanted = Wanted { limit: "revised", key: &[("test", value)], plan: None, cost: 1 };
        self.policy.current().charges(&[wanted]).unwrap().remove(0)
    }

    /// Whether a call is allowed, what is left, and the round trips that it took.
    async fn call(&self) -> (bool, u64, u64) {
        let (decision, round_trips, _) = self.client.measured(&self.charges()).await;
        (decision.is_allowed(), decision.limits[0].remaining, round_trips)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn debt_is_carried_once_and_the_older_process_follows() {
    let old = Process::first(policy(1, "10/h", 10)).await;
    for left in [9, 8, 7, 6, 5] {
        assert_eq!(old.call().await, (true, left, 1));
    }
    let new = Process::beside(&old, policy(2, "20/h", 20)).await;
    // Half empty stays half empty. A process that knows nothing of the key learns its form from the first answer.
    assert_eq!(new.call().await, (true, 9, 2));
    // The older process learns of the newer figures from one refusal, and goes by them from then on.
    assert_eq!(old.call().await, (true, 8, 2));
    for left in [7, 5, 3] {
        assert_eq!(new.call().await, (true, left, 1), "no second carrying over, and no round trip for it");
        assert_eq!(old.call().await, (true, left - 1, 1));
    }
    assert_eq!((old.call().await, new.call().await), ((true, 1, 1), (true, 0, 1)));
    assert_eq!((old.call().await, new.call().await), ((false, 0, 1), (false, 0, 0)));
    assert_eq!(old.client.counts().revision_conflicts + new.client.counts().revision_conflicts, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn figures_are_rolled_back_under_a_higher_revision_not_under_a_lower_one() {
    let process = Process::first(policy(1, "10/h", 10)).await;
    let other = Process::beside(&process, policy(2, "20/h", 20)).await;
    assert_eq!(other.call().await, (true, 19, 1));
    process.policy.replace(policy(2, "20/h", 20));
    assert_eq!(process.call().await, (true, 18, 1), "busy is what a key is taken to be that nothing is known of");
    // The file of before, as it was: the key keeps the newer figures that it has.
    process.policy.replace(policy(1, "10/h", 10));
    assert_eq!(process.call().await, (true, 17, 1));
    // Its figures under a higher revision: in force, with 3 of 20 gone as 2 of 10 (rounded against the caller).
    process.policy.replace(policy(3, "10/h", 10));
    assert_eq!(process.call().await, (true, 7, 1));
    assert_eq!(other.call().await, (true, 6, 2), "and the process that has not heard of it follows");
    assert_eq!(other.call().await, (true, 5, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_in_the_midst_of_calls_admits_no_more_than_the_larger_bucket() {
    let first = Process::first(policy(1, "10/h", 10)).await;
    let mut processes = vec![];
    for i in 0..8 {
        let revision = if i % 2 == 0 { policy(1, "10/h", 10) } else { policy(2, "16/h", 16) };
        processes.push(Process::beside(&first, revision).await);
    }
    let calls = processes.into_iter().map(|process| {
        tokio::spawn(async move {
            let mut allowed = 0;
            for _ in 0..6 {
                allowed += u64::from(process.call().await.0);
            }
            allowed
        })
    });
    let mut allowed = 0;
    for calls in calls.collect::<Vec<_>>() {
        allowed += calls.await.unwrap();
    }
    // At one instant: whatever was admitted under the smaller bucket came over as at least its share of the larger.
    assert!((10..=16).contains(&allowed), "{allowed} admitted");
}
