//! Decisions on several items: all or nothing, what a denial gives back, transactions, and a store that fails in part.

use crate::harness::{Client, SECOND, bucket, charge, key, remaining};
use crate::through::through;
use std::time::Duration;
use tollgate::testing::{ManualClock, MemoryStore};
use tollgate::{Limiter, Outcome, Source, Store};
use tollgate_core::{Charge, Charges, Item, ItemKey, LimitName, Mode, StoreFailure, Terms, Write};
use tollgate_dynamodb::{Error, Result, Transacted, Written};

const HOUR: u64 = 3600 * SECOND;

/// `n` an hour of the limit `name`, on `item`.
fn hourly(item: &ItemKey, name: &str, n: u64) -> Charges {
    Charges::new(item.clone(), vec![charge(name, Terms::new(1, bucket(n, HOUR, n)), 1)]).unwrap()
}

fn user_and_tenant() -> [Charges; 2] {
    [hourly(&key(), "user", 10), hourly(&key(), "tenant", 3)]
}

async fn left(client: &Client, charges: &Charges) -> u64 {
    let observe = charges.charges().iter().map(|c| Charge { cost: 0, ..c.clone() }).collect();
    client.take(&Charges::new(charges.item().clone(), observe).unwrap()).await.limits[0].remaining
}

/// envoy ratelimit#430, langfuse PR#14280.
#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_that_denies_gives_the_user_the_token_back() {
    for atomic in [false, true] {
        let client = Client::new().await.forgetting();
        let both = user_and_tenant().map(|charges| charges.atomically(atomic));
        let mut allowed = 0;
        for i in 0..6 {
            let decision = client.take_all(&both).await;
            allowed += u64::from(decision.is_allowed());
            if i >= 3 {
                let told: Vec<_> = decision.limits.iter().map(|l| (l.outcome, l.remaining)).collect();
                assert_eq!(told, [(Outcome::Allowed, 7), (Outcome::Denied, 0)], "call {i}, atomic: {atomic}");
                assert_eq!(decision.retry_after(), Some(Duration::from_secs(1200)));
            }
        }
        assert_eq!((allowed, left(&client, &both[0]).await), (3, 7));
        let refunds = if atomic { 0 } else { 3 };
        assert_eq!((client.counts().refunded, client.counts().refunds_lost), (refunds, 0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_decisions_on_several_keys_cost() {
    let three =
        |last: u64| [hourly(&key(), "user", 100), hourly(&key(), "tenant", 100), hourly(&key(), "global", last)];
    let client = Client::new().await;
    let charges = three(3);
    for call in 0..3 {
        let (decision, round_trips, write_units) = client.measured_all(&charges).await;
        assert_eq!((decision.is_allowed(), round_trips, write_units), (true, 3, 3), "call {call}");
    }
    let (decision, round_trips, write_units) = client.measured_all(&charges).await;
    assert_eq!((decision.is_allowed(), round_trips, write_units), (false, 0, 0), "the denial is known");
    assert_eq!(decision.limits.iter().map(|l| l.source).collect::<Vec<_>>(), [Source::Cache; 3]);
    // A process that knows nothing of it writes all three, and gives two back.
    let stranger = Client::at(client.clock.clone()).await;
    let (decision, round_trips, write_units) = stranger.measured_all(&charges).await;
    assert_eq!((decision.is_allowed(), round_trips, write_units), (false, 5, 5));
    let (_, round_trips, write_units) = stranger.measured_all(&charges).await;
    assert_eq!((round_trips, write_units), (0, 0));
    assert_eq!(left(&client, &charges[0]).await, 97);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_known_denial_says_nothing_of_keys_that_were_not_asked() {
    let client = Client::new().await;
    let [user, tenant] = user_and_tenant();
    for _ in 0..3 {
        assert!(client.take(&tenant).await.is_allowed());
    }
    let (decision, round_trips, _) = client.measured_all(&[user.clone(), tenant]).await;
    assert_eq!((decision.is_allowed(), round_trips), (false, 0));
    assert_eq!(decision.limits.iter().map(|l| l.limit.as_str()).collect::<Vec<_>>(), ["tenant"]);
    let unasked: Vec<_> = decision.unasked.iter().map(|u| (u.key.clone(), u.source)).collect();
    assert_eq!(unasked, [(user.key().clone(), Source::Cache)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_takes_two_units_an_item_and_one_round_trip() {
    let client = Client::new().await;
    let both = user_and_tenant().map(|charges| charges.atomically(true));
    for call in 0..3 {
        let (decision, round_trips, write_units) = client.measured_all(&both).await;
        assert_eq!((decision.is_allowed(), round_trips, write_units), (true, 1, 4), "call {call}");
    }
    // A stranger takes both items for new, is refused, and knows the denial from the items that come with the refusal.
    let stranger = Client::at(client.clock.clone()).await;
    let (decision, round_trips, write_units) = stranger.measured_all(&both).await;
    assert_eq!((decision.is_allowed(), round_trips, write_units), (false, 1, 4));
    client.advance_ms(1_200_000);
    let (decision, round_trips, _) = client.measured_all(&both).await;
    assert_eq!((decision.is_allowed(), round_trips), (true, 1), "one token has come back");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn transactions_of_many_callers_are_exact() {
    let first = Client::new().await;
    let both = user_and_tenant().map(|charges| charges.atomically(true));
    let mut callers = Vec::new();
    for _ in 0..8 {
        let client = Client::at(first.clock.clone()).await;
        let both = both.clone();
        callers.push(tokio::spawn(async move {
            let mut allowed = 0;
            for _ in 0..2 {
                // Contention ends a call without a charge; whoever asks again gets an answer in the end.
                loop {
                    match client.limiter.take(&both).await {
                        Ok(decision) => break allowed += u64::from(decision.is_allowed()),
                        Err(tollgate_dynamodb::Error::Contended { .. }) => {}
                        Err(other) => panic!("{other}"),
                    }
                }
            }
            allowed
        }));
    }
    let mut allowed = 0;
    for caller in callers {
        allowed += caller.await.unwrap();
    }
    assert_eq!((allowed, left(&first, &both[0]).await, left(&first, &both[1]).await), (3, 7, 0));
}

/// Whatever the interleaving: what is admitted fits every key, and what was not admitted is given back.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn forty_callers_at_once_get_what_the_tightest_key_has_and_the_others_have_the_rest() {
    let first = Client::new().await;
    let both = [hourly(&key(), "user", 100), hourly(&key(), "tenant", 10)];
    let mut callers = Vec::new();
    for _ in 0..40 {
        let client = Client::at(first.clock.clone()).await;
        let both = both.clone();
        callers.push(tokio::spawn(async move {
            let allowed = client.take_all(&both).await.is_allowed();
            (u64::from(allowed), client.counts().refunds_lost)
        }));
    }
    let (mut allowed, mut lost) = (0, 0);
    for caller in callers {
        let (one, two) = caller.await.unwrap();
        (allowed, lost) = (allowed + one, lost + two);
    }
    assert_eq!(allowed, 10);
    // A refund that others overtake too often stays with the bucket, and is counted.
    assert_eq!(left(&first, &both[0]).await, 90 - lost);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_that_only_reports_never_denies_and_is_told() {
    let client = Client::new().await;
    let item = key();
    let enforced = charge("user", Terms::new(1, bucket(10, HOUR, 10)), 1);
    let shadow = Charge { mode: Mode::Shadow, ..charge("trial", Terms::new(1, bucket(2, HOUR, 2)), 1) };
    let charges = Charges::new(item.clone(), vec![enforced, shadow]).unwrap();
    for call in 0..10 {
        let (decision, round_trips, _) = client.measured(&charges).await;
        assert!(decision.is_allowed(), "call {call}");
        let trial = &decision.limits[1];
        let expected = if call < 2 { (Outcome::Allowed, 1 - call) } else { (Outcome::Denied, 0) };
        assert_eq!((trial.outcome, trial.remaining), expected, "call {call}");
        assert_eq!(round_trips, 1, "call {call}: it is left out where it is known to have no room");
    }
    let denied = client.take(&charges).await;
    assert_eq!((denied.outcome(), denied.retry_after()), (Outcome::Denied, Some(Duration::from_secs(360))));
    assert_eq!(client.counts().shadow_denied, 9);
    // A process that knows nothing tries it in the write first, and repeats the write without it.
    client.advance_ms(360_000);
    let stranger = Client::at(client.clock.clone()).await;
    let (decision, round_trips, _) = stranger.measured(&charges).await;
    assert_eq!((decision.is_allowed(), round_trips, stranger.counts().mispredicted), (true, 2, 1));
    let trial = LimitName::new("trial").unwrap();
    let stored = client.limiter.store().read(&item, &[]).await.unwrap().unwrap();
    assert_eq!(stored.buckets[&trial].terms.figures.remaining(Some(stored.buckets[&trial].tat), client.clock_now()), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_that_only_report_on_a_key_of_their_own_never_matter() {
    let client = Client::new().await;
    let user = hourly(&key(), "user", 5);
    let shadow = Charge { mode: Mode::Shadow, ..charge("trial", Terms::new(1, bucket(1, HOUR, 1)), 1) };
    let both = [user, Charges::new(key(), vec![shadow]).unwrap()];
    let allowed = [client.take_all(&both).await, client.take_all(&both).await].map(|d| d.is_allowed());
    assert_eq!(allowed, [true, true]);
    assert_eq!((client.counts().shadow_denied, client.counts().refunded), (1, 0));
}

/// A store in memory that gives no answer about one item.
struct Failing {
    memory: MemoryStore,
    about: ItemKey,
    error: fn() -> Error,
}

impl Failing {
    fn check(&self, item: &ItemKey) -> Result<()> {
        if *item == self.about { Err((self.error)()) } else { Ok(()) }
    }
}

impl Store for Failing {
    through!(memory: moment, meter);

    async fn read(&self, item: &ItemKey, limits: &[&LimitName]) -> Result<Option<Item>> {
        self.check(item)?;
        self.memory.read(item, limits).await
    }

    async fn write(&self, item: &ItemKey, write: &Write) -> Result<Written> {
        self.check(item)?;
        self.memory.write(item, write).await
    }

    async fn transact(&self, writes: &[(&ItemKey, &Write)]) -> Result<Transacted> {
        writes.iter().try_for_each(|(item, _)| self.check(item))?;
        self.memory.transact(writes).await
    }
}

fn failing(about: &Charges, error: fn() -> Error) -> (Limiter<Failing>, MemoryStore) {
    let memory = MemoryStore::new(ManualClock::new(tollgate::Timestamp::from_secs(1_767_225_600)));
    let store = Failing { memory: memory.clone(), about: about.item().clone(), error };
    (Limiter::new(store), memory)
}

const GONE: fn() -> Error = || Error::Throttled("ThrottlingException".to_owned());

#[tokio::test]
async fn a_store_that_fails_for_one_key_does_what_that_keys_policy_says() {
    for atomic in [false, true] {
        let [user, tenant] = user_and_tenant().map(|c| c.atomically(atomic).with_store_failure(StoreFailure::Open));
        let (limiter, memory) = failing(&tenant, GONE);
        let decision = limiter.take(&[user.clone(), tenant.clone()]).await.unwrap();
        assert!(decision.is_allowed());
        let open: Vec<_> = decision.unasked.iter().map(|u| (u.charge.limit.as_str(), u.source)).collect();
        if atomic {
            assert_eq!(open, [("user", Source::Open), ("tenant", Source::Open)], "all or nothing, so nothing");
        } else {
            assert_eq!((open, decision.limits[0].remaining), (vec![("tenant", Source::Open)], 9));
        }
        let before = remaining(&memory, &user);

        let tenant = tenant.with_store_failure(StoreFailure::Closed);
        let error = limiter.take(&[user.clone(), tenant]).await.unwrap_err();
        assert!(error.is_outage());
        assert_eq!(remaining(&memory, &user), before, "what the user was charged is given back");
    }
}

/// rate-limiter-flexible#337: exhaustion and outage are told apart.
#[tokio::test]
async fn a_denial_goes_before_a_failure_of_the_store() {
    let [user, tenant] = user_and_tenant();
    let tenant = tenant.with_store_failure(StoreFailure::Closed);
    let (limiter, _) = failing(&tenant, GONE);
    let limiter = limiter.denying_from_memory_for(Duration::ZERO);
    for _ in 0..10 {
        assert!(limiter.take(std::slice::from_ref(&user)).await.unwrap().is_allowed());
    }
    let decision = limiter.take(&[user, tenant]).await.unwrap();
    assert_eq!((decision.outcome(), decision.retry_after()), (Outcome::Denied, Some(Duration::from_secs(360))));
}

#[tokio::test]
async fn what_is_no_outage_never_lets_a_call_pass_but_where_limits_only_report() {
    let contended: fn() -> Error = || Error::Contended { writes: 16, fate: tollgate_dynamodb::Fate::NotApplied };
    let [user, tenant] = user_and_tenant().map(|charges| charges.with_store_failure(StoreFailure::Open));
    let (limiter, memory) = failing(&tenant, contended);
    assert!(limiter.take(&[user.clone(), tenant.clone()]).await.is_err(), "open is for outages");
    assert_eq!(remaining(&memory, &user), 10);
    let shadow = tenant.charges().iter().map(|c| Charge { mode: Mode::Shadow, ..c.clone() }).collect();
    let shadow = Charges::new(tenant.item().clone(), shadow).unwrap().with_store_failure(StoreFailure::Closed);
    assert!(limiter.take(&[user, shadow]).await.unwrap().is_allowed());
}

/// A cost above the burst does not fit, store or not.
#[tokio::test]
async fn a_cost_that_never_fits_is_no_admission_where_the_store_is_gone() {
    let [_, tenant] = user_and_tenant();
    let (limiter, _) = failing(&tenant, GONE);
    for rule in [StoreFailure::Open, StoreFailure::Local] {
        let dear = tenant.charges().iter().map(|c| Charge { cost: 4, ..c.clone() }).collect();
        let dear = Charges::new(tenant.item().clone(), dear).unwrap().with_store_failure(rule);
        assert_eq!(limiter.take(&[dear]).await.unwrap().outcome(), Outcome::NeverFits);
    }
}

#[tokio::test]
async fn a_cost_that_never_fits_gives_the_other_keys_back_what_they_were_charged() {
    for rule in [StoreFailure::Open, StoreFailure::Local] {
        let [user, tenant] = user_and_tenant();
        let dear = tenant.charges().iter().map(|c| Charge { cost: 4, ..c.clone() }).collect();
        let dear = Charges::new(tenant.item().clone(), dear).unwrap().with_store_failure(rule);
        let (limiter, memory) = failing(&tenant, GONE);
        let decision = limiter.take(&[user.clone(), dear]).await.unwrap();
        assert_eq!((decision.outcome(), remaining(&memory, &user)), (Outcome::NeverFits, 10));
        assert_eq!(memory.counters().counts().refunded, 1);
    }
}

#[tokio::test]
async fn an_item_that_only_reports_is_no_part_of_a_transaction() {
    let [user, tenant] =
        user_and_tenant().map(|charges| charges.atomically(true).with_store_failure(StoreFailure::Closed));
    let shadow =
        hourly(&key(), "trial", 1).charges().iter().map(|c| Charge { mode: Mode::Shadow, ..c.clone() }).collect();
    let shadow = Charges::new(key(), shadow).unwrap().with_store_failure(StoreFailure::Closed);
    let (limiter, memory) = failing(&shadow, GONE);
    let decision = limiter.take(&[user.clone(), shadow.clone(), tenant.clone()]).await.unwrap();
    let told: Vec<_> = decision.limits.iter().map(|l| (l.limit.as_str(), l.remaining)).collect();
    assert_eq!((told, decision.unasked.len()), (vec![("user", 9), ("tenant", 2)], 1));
    // Where another denies, it is given back like the rest.
    let limiter = Limiter::new(memory.clone());
    for _ in 0..2 {
        assert!(limiter.take(std::slice::from_ref(&tenant)).await.unwrap().is_allowed());
    }
    let stranger = Limiter::new(memory.clone());
    assert!(!stranger.take(&[user.clone(), shadow.clone(), tenant]).await.unwrap().is_allowed());
    assert_eq!((remaining(&memory, &user), remaining(&memory, &shadow)), (9, 1));
}

/// The answer must not say that an item let the call pass whose rule is to refuse it.
#[tokio::test]
async fn a_closed_item_without_answer_is_told_as_closed_where_another_denies() {
    let [user, tenant] = user_and_tenant();
    let (limiter, _) = failing(&tenant, GONE);
    let limiter = limiter.denying_from_memory_for(Duration::ZERO);
    let dear = user.charges().iter().map(|c| Charge { cost: 11, ..c.clone() }).collect();
    let dear = Charges::new(user.item().clone(), dear).unwrap();
    let decision = limiter.take(&[dear, tenant.with_store_failure(StoreFailure::Closed)]).await.unwrap();
    assert_eq!((decision.outcome(), decision.unasked[0].source), (Outcome::NeverFits, Source::Closed));
}
