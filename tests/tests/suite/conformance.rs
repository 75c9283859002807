//! The table and the store in memory are one: any sequence of the protocol's writes, alone and in transactions, leaves the
//! same items and answers.

use crate::harness::{Client, bucket, key};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use tollgate::Store;
use tollgate::testing::{ManualClock, MemoryStore};
use tollgate_core::{
    Bucket, BusyPeriod, Clock, Demand, Entry, Figures, Hold, Item, LimitName, LimitWrite, Log, Override, Penalty,
    PenaltyWrite, Span, Terms, Ticks, Timestamp, Window, Write,
};
use tollgate_dynamodb::{Transacted, Written};

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
    /// An exact write of what is there, or of something that is not.
    Exact {
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
    /// Gives back of what is there, or of a bucket to which something was charged since.
    GiveBack {
        limit: u8,
        truth: bool,
        by: u64,
    },
    /// Takes an entry out that is there, or one that is not.
    TakeOut {
        limit: u8,
        truth: bool,
    },
    /// Charges more to what is there, and takes an entry out if there is one.
    More {
        limit: u8,
        at: u64,
        cost: u64,
    },
    /// A lock, or none, on the one that is there or on one that is not.
    Lock {
        limit: u8,
        truth: bool,
        next: u8,
    },
    /// An operator's order, on the hold that is there or on one that is not.
    Hold {
        truth: bool,
        next: u8,
    },
}

fn op() -> impl Strategy<Value = Op> {
    let (limit, at, terms) = (0..2_u8, 0..8_u64, 0..6_u8);
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
        (limit, any::<bool>(), 0..9_u64, terms.clone()).prop_map(|(limit, truth, tat, terms)| Op::Exact {
            limit,
            truth,
            tat,
            terms
        }),
        (at, 1..4_u64, terms).prop_map(|(at, cost, terms)| Op::Both { at, cost, terms }),
        (0..2_u8, any::<bool>(), 1..3_u64).prop_map(|(limit, truth, by)| Op::GiveBack { limit, truth, by }),
        (0..2_u8, any::<bool>()).prop_map(|(limit, truth)| Op::TakeOut { limit, truth }),
        (0..2_u8, 0..8_u64, 1..3_u64).prop_map(|(limit, at, cost)| Op::More { limit, at, cost }),
        (0..2_u8, any::<bool>(), 0..4_u8).prop_map(|(limit, truth, next)| Op::Lock { limit, truth, next }),
        (any::<bool>(), 0..4_u8).prop_map(|(truth, next)| Op::Hold { truth, next }),
    ]
}

fn limit(n: u8) -> LimitName {
    LimitName::new(["orders", "units"][usize::from(n)]).unwrap()
}

fn terms(n: u8) -> Terms {
    let window = |sliding| Window::new(4, Span::Every(3_000_000_000), sliding).unwrap().into();
    let (slow, fast) = (bucket(1, 1_000_000_000, 3), bucket(3, 7_000_000_000, 4).with_debt(2).unwrap());
    let log = Log::new(4, 3_000_000_000).unwrap().into();
    let figures: [Figures; 6] = [slow.into(), fast.into(), slow.into(), window(false), window(true), log];
    Terms::new(u64::from(n.min(1)) + 1, figures[usize::from(n)]).on_plan(["", "", "pro", "", "", ""][usize::from(n)])
}

/// No hold, one that ends while the test's seconds go by, a ban, figures for a limit.
fn hold(n: u8) -> Option<Hold> {
    let until = Timestamp::from_secs(NOW + 3);
    let figures = Override { figures: (bucket(2, 1_000_000_000, 5)).into(), until: Timestamp::from_secs(NOW + 100) };
    let hold = Hold { id: n.into(), ..Hold::default() };
    match n {
        0 => None,
        1 => Some(Hold { banned_until: Some(until), ..hold }),
        2 => Some(Hold { banned_until: Some(until), overrides: [(limit(0), figures)].into(), ..hold }),
        _ => Some(Hold { overrides: [(limit(1), figures)].into(), ..hold }),
    }
}

/// No lock, or one that ends while the test's seconds go by.
fn lock(n: u8) -> Option<Penalty> {
    let until = Timestamp::from_secs(NOW + 2 * u64::from(n));
    (n > 0).then_some(Penalty { until, length_ms: 1000, level: n })
}

/// What a charge of a log is remembered by, and every third of other limits.
fn entry(t: u8, cost: u64, secs: u64, id: u64) -> Option<Entry> {
    let at = Timestamp::from_secs(NOW + secs);
    match terms(t).figures.log() {
        Some(_) => Some(Entry::new(at, id, cost)),
        None => id.is_multiple_of(3).then(|| Entry::reservation(at, id)),
    }
}

fn write(op: &Op, item: Option<&Item>, id: u64) -> Write {
    let at = |secs| Timestamp::from_secs(NOW + secs);
    let held = item.and_then(|i| i.hold.as_ref());
    let found = |l: u8| item.and_then(|i| i.buckets.get(&limit(l)));
    let guess = || Bucket::starting(terms(0), Ticks(1), BusyPeriod { since: at(0), id: 1 });
    match *op {
        Op::Busy { limit: l, at: s, cost, terms: t } => {
            let seen = found(l).map(|bucket| bucket.tat);
            let limits = LimitWrite::new_or_busy(limit(l), terms(t), seen, cost, at(s), id);
            let limits = limits.map(|write| write.entering(entry(t, cost, s, id))).into_iter().collect();
            // Every third caller knows nothing of a hold, and every second one's limit locks.
            let unlocked = id.is_multiple_of(2).then(|| PenaltyWrite::unlocked(limit(l), at(s)));
            Write::new(limits, at(s), 9 + u64::from(t), held.filter(|_| !id.is_multiple_of(3)))
                .with_penalties(unlocked.into_iter().collect())
        }
        Op::Idle { limit: l, at: s, cost, terms: t } => {
            let write = LimitWrite::new_or_idle(limit(l), terms(t), cost, at(s), id);
            let limits = vec![write.entering(entry(t, cost, s, id))];
            Write::new(limits, at(s), 9 + u64::from(t), held)
        }
        Op::Exact { limit: l, truth, tat, terms: t } => {
            let mut next = Bucket::starting(terms(t), terms(t).figures.full(at(tat)), BusyPeriod { since: at(0), id });
            let kept = found(l).map(|found| found.entries.clone()).unwrap_or_default();
            next.entries = if id.is_multiple_of(2) { kept } else { entry(t, 1, tat, id).into_iter().collect() };
            let wrong = Some(guess()).filter(|_| tat.is_multiple_of(2));
            let seen = if truth { found(l).cloned() } else { wrong };
            Write::new(vec![LimitWrite::exact(limit(l), seen.as_ref(), next)], at(0), 12, held)
        }
        Op::Both { at: s, cost, terms: t } => {
            let seen = found(0).map(|bucket| bucket.tat);
            let busy = LimitWrite::new_or_busy(limit(0), terms(t), seen, cost, at(s), id);
            let idle = LimitWrite::new_or_idle(limit(1), terms(t), cost, at(s), id);
            Write::new(busy.into_iter().chain([idle]).collect(), at(s), 12, held)
        }
        Op::GiveBack { limit: l, truth, by } => {
            let mut seen = found(l).cloned().unwrap_or_else(guess);
            seen.gross = seen.gross + Ticks(i128::from(!truth));
            Write::giving_back(vec![LimitWrite::give_back(
                limit(l),
                &seen,
                Ticks(i128::from(by) * seen.terms.figures.token_bucket().map_or(1, |bucket| bucket.inc(1).0)),
            )])
        }
        Op::TakeOut { limit: l, truth } => {
            let one = found(l).and_then(|found| found.entries.iter().next().copied()).filter(|_| truth);
            let none = Entry::new(at(9), 9, 1);
            Write::giving_back(vec![LimitWrite::take_out(limit(l), one.unwrap_or(none))])
        }
        Op::More { limit: l, at: s, cost } => {
            let seen = found(l).cloned().unwrap_or_else(guess);
            let more = LimitWrite::more(limit(l), &seen, Demand::into_debt(cost), at(s));
            let settled = more.map(|write| write.settling(seen.entries.iter().next().copied()));
            Write::under(settled.into_iter().collect(), at(s), 14, held)
        }
        Op::Lock { limit: l, truth, next } => {
            let seen = item.and_then(|i| i.penalties.get(&limit(l))).copied();
            let seen = if truth { seen } else { lock(next.wrapping_add(1) % 4) };
            let locks = vec![PenaltyWrite::exact(limit(l), seen, lock(next))];
            Write::new(Vec::new(), at(0), 12, held).with_penalties(locks)
        }
        Op::Hold { truth, next } => {
            let wrong = hold(next.wrapping_add(1) % 4);
            Write::set_hold(at(0), 12, if truth { held } else { wrong.as_ref() }, hold(next))
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
    for _ in 0..60 {
        let key = key();
        let ops = prop::collection::vec(op(), 1..14).new_tree(&mut runner).unwrap().current();
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
    assert!(applied > 60 && refused > 60, "both happen: {applied} applied, {refused} refused");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_table_answers_every_transaction_as_the_store_in_memory_does() {
    let client = Client::new().await;
    let table = client.limiter.store();
    let memory = MemoryStore::new(ManualClock::new(Timestamp::from_secs(NOW)));
    let (mut applied, mut refused) = (0, 0);
    let mut runner = TestRunner::default();
    for _ in 0..40 {
        let keys = [key(), key(), key()];
        for id in 0..8 {
            let ops = [op(), op(), op()].new_tree(&mut runner).unwrap().current();
            let writes: Vec<_> =
                keys.iter().zip(&ops).map(|(key, op)| write(op, memory.item(key).as_ref(), id)).collect();
            let both: Vec<_> = keys.iter().zip(&writes).collect();
            let (here, there) = (memory.transact(&both).await.unwrap(), table.transact(&both).await.unwrap());
            assert_eq!(here, there, "{ops:?}");
            match here {
                Transacted::Applied => applied += 1,
                Transacted::Refused(_) => refused += 1,
            }
            for key in &keys {
                assert_eq!(memory.item(key), table.read(key, &[]).await.unwrap());
            }
        }
    }
    assert!(applied > 10 && refused > 40, "both happen: {applied} applied, {refused} refused");
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
        let key = key();
        let now = client.clock.now();
        let write =
            LimitWrite::new_or_busy(limit(0), Terms::new(u64::MAX, bucket), None, bucket.burst(), now, u64::MAX);
        let longest = Entry::new(Timestamp::from_nanos(u64::MAX), u64::MAX, Entry::MOST_COST);
        let write = write.map(|write| write.entering(Some(longest)));
        let locked = Penalty { until: Timestamp::from_nanos(u64::MAX), length_ms: 10_u64.pow(16) - 1, level: 99 };
        let lock = PenaltyWrite::exact(limit(0), None, Some(locked));
        let write = Write::new(vec![write.unwrap()], now, bucket.horizon_secs(), None).with_penalties(vec![lock]);
        let Written::Applied(item) = store.write(&key, &write).await.unwrap() else { panic!("new key") };
        assert_eq!(Some(item), write.apply(None));
    }
}
