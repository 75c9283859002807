//! Records, revocations and grants on a real table.

use crate::harness::{TABLE, connected, endpoint, key};
use std::sync::Arc;
use std::time::Duration;
use tollgate::mfa::{
    Action, Authentication, Caller, Revoke, Session, SessionWrite, Sessions, Shortcoming, Subject, Verified, storage,
};
use tollgate::testing::ManualClock;
use tollgate::tollgate_policy::StepUp;
use tollgate::{Clock, Counters, DynamoStore, SystemClock};
use tollgate_dynamodb::{Items, Updated};

struct World {
    sessions: Sessions,
    clock: ManualClock,
    counters: Arc<Counters>,
    caller: Caller,
}

impl World {
    async fn new() -> Self {
        let clock = ManualClock::new(SystemClock.now());
        let (connected, counters) = (connected(&endpoint().await).await, Arc::new(Counters::default()));
        let store = DynamoStore::with_trusted_clock(&connected, TABLE, Arc::new(clock.clone()), counters.clone());
        store.warm_up().await.unwrap();
        let sessions = Sessions::new(Items::new(store).with_deadline(crate::harness::PATIENCE));
        Self { sessions, clock, counters, caller: Caller { subject: key().key, session: Some("s1".to_owned()) } }
    }

    fn token(&self, seconds_ago: u64) -> Option<Authentication> {
        let at = tollgate::Timestamp::from_secs(self.clock.now().as_secs() - seconds_ago);
        Some(Authentication { at, acr: Some("mfa".to_owned()), amr: Vec::new() })
    }

    async fn judge(&self, token: Option<Authentication>) -> Result<(), Shortcoming> {
        self.sessions.judge(&self.caller, token, &required()).await.unwrap()
    }

    async fn verify(&self) {
        let begun = self.sessions.begin(self.caller.clone()).await.unwrap();
        assert!(self.sessions.record(&begun, "mfa", &["otp"]).await.unwrap());
    }

    async fn costs<T>(&self, what: impl Future<Output = T>) -> (T, u64, u64) {
        let before = self.counters.counts();
        let done = what.await;
        let after = self.counters.counts();
        (done, after.round_trips - before.round_trips, after.write_units - before.write_units)
    }
}

fn required() -> StepUp {
    let mut required = StepUp::within(Duration::from_secs(300));
    required.acr = vec!["mfa".to_owned()];
    required
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_is_two_reads_and_the_first_of_a_sign_in_one_write_more() {
    let world = World::new().await;
    assert_eq!(world.costs(world.judge(world.token(0))).await, (Ok(()), 3, 1));
    assert_eq!(world.costs(world.judge(world.token(0))).await, (Ok(()), 2, 0));
    let ((), round_trips, write_units) = world.costs(world.verify()).await;
    assert_eq!((round_trips, write_units), (2, 1));
    assert_eq!(world.costs(world.judge(None)).await, (Ok(()), 2, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revocation_ends_records_grants_and_tokens_at_once() {
    let world = World::new().await;
    world.verify().await;
    assert_eq!(world.judge(None).await, Ok(()));
    let action = Action::new("DELETE", "/a", Vec::new(), &[]);
    let begun = world.sessions.begin(world.caller.clone()).await.unwrap();
    let grant = world.sessions.grant(&begun, action, "mfa", &["otp"]).await.unwrap();
    // A verification that is under way when all is revoked proves nothing any more.
    let (left, round_trips, write_units) =
        world.costs(async { world.sessions.revoke(&world.caller.subject).await.unwrap() }).await;
    assert_eq!((left.epoch, left.revoked), (1, Some(world.clock.now())));
    assert_eq!((round_trips, write_units), (1, 1));
    assert_eq!(world.judge(None).await, Err(Shortcoming::Revoked));
    assert_eq!(world.judge(world.token(0)).await, Err(Shortcoming::Revoked));
    let granted = world.sessions.judge_grant(&world.caller, action, Some(grant), &required()).await.unwrap();
    assert_eq!(granted.map(|_| ()), Err(Shortcoming::Revoked));
    assert!(world.sessions.record(&begun, "mfa", &["otp"]).await.unwrap());
    assert_eq!(world.judge(None).await, Err(Shortcoming::Revoked));
    // What is proved afterwards counts; a token does once its sign-in is certainly later.
    world.verify().await;
    assert_eq!(world.judge(None).await, Ok(()));
    world.clock.advance(Duration::from_secs(7));
    let other = Caller { session: Some("s2".to_owned()), ..world.caller.clone() };
    assert_eq!(world.sessions.judge(&other, world.token(0), &required()).await.unwrap(), Ok(()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_goes_back_undoes_no_revocation_and_every_one_counts() {
    let world = World::new().await;
    world.sessions.revoke(&world.caller.subject).await.unwrap();
    let revoked = world.clock.now();
    world.clock.set(revoked.offset_by(-60_000_000_000));
    world.verify().await;
    assert_eq!(world.judge(None).await, Ok(()));
    world.sessions.revoke(&world.caller.subject).await.unwrap();
    assert_eq!(world.judge(None).await, Err(Shortcoming::Revoked));
    assert_eq!(world.judge(world.token(0)).await, Err(Shortcoming::Revoked));
    let many = (0..20).map(|_| world.sessions.revoke(&world.caller.subject));
    let done = futures_util::future::join_all(many).await;
    assert!(done.iter().all(Result::is_ok));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_thirty_at_once_one_uses_a_grant_up() {
    let world = World::new().await;
    let action = Action::new("POST", "/pay", Vec::new(), &[("iban", "RO1".to_owned())]);
    let begun = world.sessions.begin(world.caller.clone()).await.unwrap();
    let grant = world.sessions.grant(&begun, action, "mfa", &["otp"]).await.unwrap();
    let required = required();
    let judge = |action| world.sessions.judge_grant(&world.caller, action, Some(grant), &required);
    let other = Action::new("POST", "/pay", Vec::new(), &[("iban", "RO2".to_owned())]);
    assert_eq!(judge(other).await.unwrap().map(|_| ()), Err(Shortcoming::Missing));
    let usable = judge(action).await.unwrap().unwrap();
    let all = futures_util::future::join_all((0..30).map(|_| world.sessions.consume(&usable))).await;
    assert_eq!(all.into_iter().filter(|used| *used.as_ref().unwrap()).count(), 1);
    assert_eq!(judge(action).await.unwrap().map(|_| ()), Err(Shortcoming::Missing));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_auth_time_of_a_sign_in_stays_whoever_comes_at_once() {
    let world = World::new().await;
    let both = (0..10).map(|i| world.judge(world.token(i * 20)));
    assert!(futures_util::future::join_all(both).await.iter().all(Result::is_ok));
    world.clock.advance(Duration::from_secs(301 - 180));
    // The earliest of them is the sign-in.
    assert_eq!(world.judge(world.token(0)).await, Err(Shortcoming::TooOld));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_auth_time_that_moves_after_a_refusal_counts_as_the_one_that_was_refused() {
    let refusals = [(400, "mfa", Err(Shortcoming::TooOld)), (100, "pwd", Err(Shortcoming::Insufficient))];
    for (seconds_ago, acr, refusal) in refusals {
        let world = World::new().await;
        let first = world.token(seconds_ago).map(|token| Authentication { acr: Some(acr.to_owned()), ..token });
        assert_eq!(world.costs(world.judge(first)).await, (refusal, 3, 1));
        world.clock.advance(Duration::from_secs(300));
        assert_eq!(world.costs(world.judge(world.token(0))).await, (Err(Shortcoming::TooOld), 2, 0));
    }
    let world = World::new().await;
    let token = world.token(0);
    world.sessions.revoke(&world.caller.subject).await.unwrap();
    assert_eq!(world.judge(token).await, Err(Shortcoming::Revoked));
    world.clock.advance(Duration::from_secs(60));
    assert_eq!(world.judge(world.token(0)).await, Err(Shortcoming::Revoked));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_write_leaves_on_the_table_is_what_its_meaning_says() {
    let world = World::new().await;
    let (items, subject) = (world.sessions.items(), &world.caller.subject);
    let (session_pk, subject_pk) = (storage::session_key(subject, "random"), storage::subject_key(subject));
    let (mut session, mut revoked): (Option<Session>, Option<Subject>) = (None, None);
    let mut random = fastrand::Rng::with_seed(8);
    for step in 0..200 {
        let at = tollgate::Timestamp::from_secs(1_767_225_600 + random.u64(0..10));
        let acr = random.bool().then(|| format!("class-{}", random.u8(0..3)));
        let amr = (0..random.usize(0..3)).map(|method| format!("m{method}")).collect();
        let verified = Verified { authentication: Authentication { at, acr, amr }, epoch: random.u64(0..3) };
        let write = match random.u8(0..8) {
            0 | 1 => SessionWrite::SignIn(at),
            2 => SessionWrite::Code(["sms", "email"][random.usize(0..2)].to_owned()),
            _ => SessionWrite::Verify(verified),
        };
        let expected = write.apply(session.as_ref());
        let met = items.begin().update(&session_pk, &storage::session(&write, 4_000_000_000)).await.unwrap();
        let applied = match &met {
            Updated::Applied(found) => Some(storage::to_session(found).unwrap()),
            Updated::Refused(_) => None,
        };
        assert_eq!(applied, expected, "{step}: {write:?} on {session:?}");
        session = expected.or(session);

        let seen = revoked.and_then(|subject: Subject| subject.revoked).filter(|_| random.bool()).unwrap_or(at);
        let write = if random.bool() { Revoke::Now(at) } else { Revoke::Beside(seen) };
        let expected = write.apply(revoked);
        let met = items.begin().update(&subject_pk, &storage::revoke(write)).await.unwrap();
        let applied = match &met {
            Updated::Applied(found) => Some(storage::to_subject(Some(found)).unwrap()),
            Updated::Refused(_) => None,
        };
        assert_eq!(applied, expected, "{step}: {write:?} on {revoked:?}");
        revoked = expected.or(revoked);
    }
    let session = session.unwrap();
    assert!(session.signed_in.is_some() && session.codes.len() == 2 && revoked.unwrap().epoch > 10);
}
