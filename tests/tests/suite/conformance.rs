//! The table and the store in memory are one: any sequence of the protocol's writes leaves the same items and answers.

use crate::harness::{Client, bucket, key};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use tollgate::Store;
use tollgate::testing::{ManualClock, MemoryStore};
use tollgate_core::{Bucket, BusyPeriod, Clock, Key, LimitName, LimitWrite, Terms, Ticks, Timestamp, Write};
use tollgate_dynamodb::Written;

/// Far ahead, so that no table deletes what the test wrote.
const NOW: u64 = 4_000_000_000;

/// One write: which form on which limit, at which second, with whose terms.
#[derive(Debug, Clone)]
enum Op {
    Busy {
        limit: u8,
        at: u64,
        cost: u64,
        terms: u8,
    },
    Idle {
        limit: u8,
        at: u64,
        cost: u64,
        terms: u8,
    },
    /// A change of what is there, or of something that is not.
    Change {
        limit: u8,
        truth: bool,
        tat: u64,
        terms: u8,
    },
    Both {
        at: u64,
        cost: u64,
        terms: u8,
    },
}

fn op() -> impl Strategy<Value = Op> {
    let (limit, at, terms) = (0..2_u8, 0..8_u64, 0..3_u8);
    prop_oneof![
        (limit.clone(), at.clone(), 1..4_u64, terms.clone()).prop_map(|(limit, at, cost, terms)| Op::Busy {
            limit,
            at,
            cost,
            terms
        }),
        (limit.clone(), at.clone(), 1..4_u64, terms.clone()).prop_map(|(limit, at, cost, terms)| Op::Idle {
            limit,
            at,
            cost,
            terms
        }),
        (limit, any::<bool>(), 0..9_u64, terms.clone()).prop_map(|(limit, truth, tat, terms)| Op::Change {
            limit,
            truth,
            tat,
            terms
        }),
        (at, 1..4_u64, terms).prop_map(|(at, cost, terms)| Op::Both { at, cost, terms }),
    ]
}

fn limit(n: u8) -> LimitName {
    LimitName::new(["orders", "units"][usize::from(n)]).unwrap()
}

fn terms(n: u8) -> Terms {
    let buckets = [bucket(1, 1_000_000_000, 3), bucket(3, 7_000_000_000, 4), bucket(1, 1_000_000_000, 3)];
    Terms::new(u64::from(n.min(1)) + 1, buckets[usize::from(n)]).on_plan(["", "", "pro"][usize::from(n)])
}

fn write(op: &Op, item: Option<&tollgate_core::Item>, id: u64) -> Write {
    let at = |secs| Timestamp::from_secs(NOW + secs);
    match *op {
        Op::Busy { limit: l, at: s, cost, terms: t } => {
            Write::new(vec![LimitWrite::new_or_busy(limit(l), terms(t), cost, at(s), id)], at(s), 9 + u64::from(t))
        }
        Op::Idle { limit: l, at: s, cost, terms: t } => {
            Write::new(vec![LimitWrite::new_or_idle(limit(l), terms(t), cost, at(s), id)], at(s), 9 + u64::from(t))
        }
        Op::Change { limit: l, truth, tat, terms: t } => {
            let found = item.and_then(|i| i.buckets.get(&limit(l))).cloned().filter(|_| truth);
            let guess = || Bucket::starting(terms(0), Ticks(1), BusyPeriod { since: at(0), id: 1 });
            let tat = terms(t).bucket.at(at(tat));
            let next = Bucket::starting(terms(t), tat, BusyPeriod { since: at(0), id });
            Write::new(vec![LimitWrite::change(limit(l), &found.unwrap_or_else(guess), next)], at(0), 12)
        }
        Op::Both { at: s, cost, terms: t } => {
            let busy = LimitWrite::new_or_busy(limit(0), terms(t), cost, at(s), id);
            let idle = LimitWrite::new_or_idle(limit(1), terms(t), cost, at(s), id);
            Write::new(vec![busy, idle], at(s), 12)
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_table_answers_every_write_as_the_store_in_memory_does() {
    let client = Client::new().await;
    let table = client.limiter.store();
    let memory = MemoryStore::new(ManualClock::new(Timestamp::from_secs(NOW)));
    let (mut applied, mut refused) = (0, 0);
    let mut runner = TestRunner::default();
    for _ in 0..40 {
        let key = key();
        let ops = prop::collection::vec(op(), 1..12).new_tree(&mut runner).unwrap().current();
        for (id, op) in ops.iter().enumerate() {
            let write = write(op, memory.item(&key).as_ref(), id as u64);
            let (here, there) = (memory.write(&key, &write).await.unwrap(), table.write(&key, &write).await.unwrap());
            assert_eq!(here, there, "{op:?} of {ops:?}");
            match here {
                Written::Applied(_) => applied += 1,
                Written::Refused(_) => refused += 1,
            }
            assert_eq!(memory.item(&key), table.read(&key, &[]).await.unwrap());
        }
    }
    assert!(applied > 40 && refused > 40, "both happen: {applied} applied, {refused} refused");
}

#[tokio::test(flavor = "multi_thread")]
async fn extremes_survive_the_way_through_the_table() {
    let client = Client::new().await;
    let store = client.limiter.store();
    let year = 365 * 86_400 * 1_000_000_000;
    let most = tollgate_core::TokenBucket::MAX_TOKENS;
    let cases = [
        bucket(most, 1, most),
        bucket(1, 200 * year, 50),
        bucket(most - 1, year, most),
        bucket(5_000_000_000, 1_000_000_000, 10),
    ];
    for bucket in cases {
        let key: Key = key();
        let now = client.clock.now();
        let write = LimitWrite::new_or_busy(limit(0), Terms::new(u64::MAX, bucket), bucket.burst(), now, u64::MAX);
        let write = Write::new(vec![write], now, bucket.horizon_secs());
        let Written::Applied(item) = store.write(&key, &write).await.unwrap() else { panic!("new key") };
        assert_eq!(Some(item), write.apply(None));
    }
}
