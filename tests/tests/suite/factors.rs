//! Second factors on a table: what each answer costs, and that the table means by a write what the write means.

use crate::harness::{PATIENCE, TABLE, connected, costs, endpoint, key};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::sync::Arc;
use std::time::Duration;
use tollgate::testing::ManualClock;
use tollgate::{Counters, DynamoStore, SystemClock, Timestamp};
use tollgate_core::{Clock, Key};
use tollgate_dynamodb::{Items, Updated};
use tollgate_mfa::factors::{
    Account, Change, Check, CodeHash, Enrolment, Factors, Kind, LocalVault, Pending, Totp, Verification, Write, storage,
};
use tollgate_mfa::{Begun, Caller, Sessions};
use totp_rs::Totp as App;

const SECRETS: &str = "k1=AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";

/// Factors of one process, and of an account that nobody else has.
struct Process {
    factors: Factors<LocalVault>,
    sessions: Sessions,
    clock: ManualClock,
    counters: Arc<Counters>,
    account: Key,
}

impl Process {
    async fn new() -> Self {
        let clock = ManualClock::new(SystemClock.now());
        let connected = connected(&endpoint().await).await;
        let counters = Arc::new(Counters::default());
        let store = DynamoStore::with_trusted_clock(&connected, TABLE, Arc::new(clock.clone()), counters.clone());
        store.warm_up().await.unwrap();
        let items = || Items::new(store.clone()).with_deadline(PATIENCE);
        let vault = LocalVault::new(SECRETS.parse().unwrap());
        let (factors, sessions) = (Factors::new(items(), vault), Sessions::new(items()));
        Self { factors, sessions, clock, counters, account: key().key }
    }

    async fn begun(&self) -> Begun {
        let caller = Caller { subject: self.account.clone(), session: Some("s1".to_owned()) };
        self.sessions.begin(caller).await.unwrap()
    }

    async fn sets_up(&self, begun: &Begun) -> App {
        let found = self.factors.find(&self.account).await.unwrap();
        match self.factors.enrol(&found, begun, "issuer", "alice").await.unwrap() {
            Enrolment::Begun(setup) => App::from_url(setup.uri.as_str()).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    async fn confirms(&self, begun: &Begun, code: &str) -> tollgate_mfa::Result<Verification> {
        let found = self.factors.find(&self.account).await?;
        self.factors.confirm(&found, begun, code).await
    }

    async fn verifies(&self, kind: Kind, code: &str) -> tollgate_mfa::Result<Verification> {
        let found = self.factors.find(&self.account).await?;
        self.factors.verify(found, kind, code).await
    }

    fn code(&self, app: &App) -> String {
        app.generate(self.clock.now().as_secs()).to_string()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_code_costs_one_write_unit_the_right_one_two_and_a_locked_factor_none() {
    let process = Process::new().await;
    let (owner, begun) = (process.account.clone(), process.begun().await);
    let (app, round_trips, units) = costs(&process.counters, process.sets_up(&begun)).await;
    assert_eq!((round_trips, units), (2, 1), "a read and a write");
    let (said, round_trips, units) = costs(&process.counters, process.confirms(&begun, "x")).await;
    assert!(matches!(said.unwrap(), Verification::WrongCode { left: 99, .. }));
    assert_eq!((round_trips, units), (2, 1));
    let code = process.code(&app);
    let (said, round_trips, units) = costs(&process.counters, process.confirms(&begun, &code)).await;
    assert_eq!((said.unwrap(), round_trips, units), (Verification::Verified, 3, 2));
    let (codes, round_trips, units) = costs(&process.counters, process.factors.generate(&owner)).await;
    assert_eq!((round_trips, units), (2, 1), "the item with everything in it is still below 1 KB");
    let recovery = codes.unwrap().unwrap()[0].shown().to_string();
    process.clock.advance(Duration::from_secs(30));
    for (kind, right) in [(Kind::Totp, process.code(&app)), (Kind::Recovery, recovery)] {
        let (said, round_trips, units) = costs(&process.counters, process.verifies(kind, "x")).await;
        assert!(matches!(said.unwrap(), Verification::WrongCode { .. }));
        assert_eq!((round_trips, units), (2, 1), "{kind}: wrong");
        let (said, round_trips, units) = costs(&process.counters, process.verifies(kind, &right)).await;
        assert_eq!((said.unwrap(), round_trips, units), (Verification::Verified, 3, 2), "{kind}: right");
        for _ in 0..5 {
            process.verifies(kind, "x").await.unwrap();
        }
        let (said, round_trips, units) = costs(&process.counters, process.verifies(kind, &right)).await;
        assert!(matches!(said.unwrap(), Verification::Locked { .. }));
        assert_eq!((round_trips, units), (1, 0), "{kind}: locked");
    }
    let (said, round_trips, units) = costs(&process.counters, process.factors.remove(&owner, Kind::Totp)).await;
    assert_eq!((said.unwrap(), round_trips, units), (true, 1, 1));
}

fn sealed() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["k1.A", "k1.B"]).prop_map(str::to_owned)
}

fn at() -> impl Strategy<Value = Timestamp> {
    (0_u64..6).prop_map(|n| Timestamp::from_secs(1_767_225_600 + n * 1000))
}

fn kind() -> impl Strategy<Value = Kind> {
    prop::sample::select(Kind::ALL.to_vec())
}

fn code() -> impl Strategy<Value = CodeHash> {
    (0_u8..3).prop_map(|n| CodeHash([n; 32]))
}

fn check() -> impl Strategy<Value = Check> {
    prop_oneof![
        Just(Check::NoApp),
        Just(Check::NoCodes),
        Just(Check::AnyCodes),
        prop::option::of(at()).prop_map(Check::CodesOf),
        sealed().prop_map(Check::PendingIs),
        at().prop_map(Check::PendingAt),
        sealed().prop_map(Check::AppIs),
        (0_u64..4).prop_map(Check::StepBefore),
        code().prop_map(Check::HasCode),
        (kind(), at()).prop_map(|(kind, now)| Check::Turn(kind, now)),
        kind().prop_map(Check::Has),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    let session = prop::option::of(Just("s1".to_owned()));
    let pending = (sealed(), at(), 0_u64..2, session).prop_map(|(sealed, until, epoch, session)| Pending {
        sealed,
        until,
        epoch,
        session,
    });
    let totp = (sealed(), at(), 0_u64..4).prop_map(|(sealed, since, step)| Totp { sealed, since, step });
    prop_oneof![
        2 => pending.prop_map(Change::Enrol),
        6 => (kind(), at()).prop_map(|(kind, now)| Change::Count(kind, now)),
        2 => totp.prop_map(Change::Confirm),
        2 => (0_u64..4, sealed()).prop_map(|(step, sealed)| Change::Pass { step, sealed }),
        3 => code().prop_map(Change::Use),
        2 => (prop::collection::btree_set(code(), 1..4), at()).prop_map(|(codes, at)| Change::Generate(codes, at)),
        1 => kind().prop_map(Change::Remove),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn the_table_answers_every_write_of_factors_as_the_write_itself_does() {
    let process = Process::new().await;
    let items = process.factors.items();
    let (mut applied, mut refused) = (0, 0);
    let mut runner = TestRunner::default();
    for _ in 0..80 {
        let pk = storage::partition_key(&key().key);
        let mut here: Option<Account> = None;
        let write = (prop::collection::vec(check(), 1..3), change());
        let writes = prop::collection::vec(write, 1..24).new_tree(&mut runner).unwrap().current();
        for (checks, change) in &writes {
            let write = Write::new(checks.clone(), change.clone());
            let known = here.clone().unwrap_or_default();
            // What the protocol never writes: an app's step without an app, the same check twice.
            let is_odd = match &write.change {
                Change::Pass { .. } => known.totp.is_none(),
                Change::Use(_) => known.codes_left() == 0,
                _ => false,
            };
            let kinds: Vec<_> = checks.iter().map(std::mem::discriminant).collect();
            if is_odd || (kinds.len() == 2 && kinds[0] == kinds[1]) {
                continue;
            }
            let there = items.begin().update(&pk, &storage::render(&write)).await.unwrap();
            match (write.apply(here.as_ref()), there) {
                (Some(next), Updated::Applied(found)) => {
                    assert_eq!(storage::to_account(Some(&found)).unwrap(), next, "{write:?} of {writes:?}");
                    (here, applied) = (Some(next), applied + 1);
                }
                (None, Updated::Refused(found)) => {
                    let found = storage::to_account(found.as_ref()).unwrap();
                    assert_eq!(found, here.clone().unwrap_or_default(), "{write:?} of {writes:?}");
                    refused += 1;
                }
                (next, there) => panic!("{next:?}, {there:?}: {write:?} of {writes:?}"),
            }
        }
    }
    assert!(applied > 80 && refused > 80, "both happen: {applied} applied, {refused} refused");
}
