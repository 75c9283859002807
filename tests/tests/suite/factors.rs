//! Second factors on a table: what each answer costs, and that the table means by a write what the write means.

use crate::authenticator::Device;
use crate::harness::{PATIENCE, TABLE, connected, costs, endpoint, key};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::sync::Arc;
use std::time::Duration;
use tollgate::testing::ManualClock;
use tollgate::{Counters, DynamoStore, Policy, SystemClock, Timestamp};
use tollgate_core::{Clock, Key};
use tollgate_dynamodb::{Items, Updated};
use tollgate_mfa::audit::{Actor, Author};
use tollgate_mfa::factors::passkey::{self, Ceremony, Challenge, ChallengeId, PasskeyWrite, Signed, Use};
use tollgate_mfa::factors::{
    Account, Announce, Announcement, Asked, Asserted, Change, Changing, Check, CodeHash, CodeKind, Enrolment, Factors,
    Generated, Kind, LocalVault, MOST_PASSKEYS, Passkey, PasskeyId, Pending, RecoveryRequest, Registered, RelyingParty,
    Removal, Totp, Verification, Write, storage,
};
use tollgate_mfa::{Action, Begun, Caller, Sessions};
use tollgate_policy::MfaRules;
use totp_rs::Totp as App;

const SECRETS: &str = "k1=AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";

/// Nobody is told, which costs nothing here: `Announce` is who asks; a revocation is one read and one unit more.
pub(crate) struct Quiet;

impl Announce for Quiet {
    async fn announce(&self, _: &Announcement) -> tollgate_mfa::Result<()> {
        Ok(())
    }
}

pub(crate) fn changing<'a>(owner: &'a Key, author: &'a Author) -> Changing<'a, Quiet> {
    Changing { owner, cooldown: MfaRules::SHORTEST_COOLDOWN, author, announce: &Quiet }
}

pub(crate) fn author() -> Author {
    Author { actor: Actor::User, session: Some("s1".to_owned()), retention: MfaRules::RETENTION }
}

/// Factors of one process, and of an account that nobody else has.
pub(crate) struct Process {
    pub(crate) factors: Factors<LocalVault>,
    sessions: Sessions,
    pub(crate) clock: ManualClock,
    pub(crate) counters: Arc<Counters>,
    account: Key,
}

impl Process {
    pub(crate) async fn new() -> Self {
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
        self.factors.confirm(&found, begun, code, changing(&self.account, &author())).await
    }

    async fn verifies(&self, kind: CodeKind, code: &str) -> tollgate_mfa::Result<Verification> {
        let found = self.factors.find(&self.account).await?;
        self.factors.verify(found, kind, code, &author()).await
    }

    fn code(&self, app: &App) -> String {
        app.generate(self.clock.now().as_secs()).to_string()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_code_costs_one_write_unit_a_right_one_two_a_logged_one_six_and_a_locked_factor_none() {
    let process = Process::new().await;
    let (owner, begun) = (process.account.clone(), process.begun().await);
    let (app, round_trips, units) = costs(&process.counters, process.sets_up(&begun)).await;
    assert_eq!((round_trips, units), (2, 1), "a read and a write");
    let (said, round_trips, units) = costs(&process.counters, process.confirms(&begun, "x")).await;
    assert!(matches!(said.unwrap(), Verification::WrongCode { left: 99, .. }));
    assert_eq!((round_trips, units), (2, 1));
    let code = process.code(&app);
    let (said, round_trips, units) = costs(&process.counters, process.confirms(&begun, &code)).await;
    assert_eq!(
        (said.unwrap(), round_trips, units),
        (Verification::Verified, 6, 7),
        "what cancels it, and a transaction with its entry"
    );
    let by = author();
    let generating = process.factors.generate(changing(&owner, &by));
    let (codes, round_trips, units) = costs(&process.counters, generating).await;
    assert_eq!((round_trips, units), (5, 6), "the item with everything in it is still below 1 KB");
    let Generated::Codes(codes) = codes.unwrap() else { panic!("no codes") };
    let recovery = codes[0].shown().to_string();
    process.clock.advance(Duration::from_secs(30));
    for (kind, right) in [(CodeKind::Totp, process.code(&app)), (CodeKind::Recovery, recovery)] {
        let (said, round_trips, units) = costs(&process.counters, process.verifies(kind, "x")).await;
        assert!(matches!(said.unwrap(), Verification::WrongCode { .. }));
        assert_eq!((round_trips, units), (2, 1), "{kind:?}: wrong");
        let (said, round_trips, units) = costs(&process.counters, process.verifies(kind, &right)).await;
        let expected =
            if kind == CodeKind::Recovery { (Verification::Verified, 5, 6) } else { (Verification::Verified, 3, 2) };
        assert_eq!((said.unwrap(), round_trips, units), expected, "{kind:?}: right");
        for _ in 0..5 {
            process.verifies(kind, "x").await.unwrap();
        }
        let (said, round_trips, units) = costs(&process.counters, process.verifies(kind, &right)).await;
        assert!(matches!(said.unwrap(), Verification::Locked { .. }));
        assert_eq!((round_trips, units), (1, 0), "{kind:?}: locked");
    }
    let (said, round_trips, units) =
        costs(&process.counters, process.factors.remove(Kind::Totp, changing(&owner, &by))).await;
    assert_eq!((said.unwrap(), round_trips, units), (Removal::Removed, 5, 6));
}

const PASSKEYS: &str = "version = 1\n[mfa]\nissuer = 'x'\n\
    [mfa.passkeys]\nrp_id = 'localhost'\norigins = ['http://localhost:8787']\n";
const PAGE: &str = "http://localhost:8787";

/// What is asked of an authenticator.
fn request(asked: Asked) -> passkey::relying_party::Request {
    match asked {
        Asked::Request(request) => request,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_passkey_costs_seven_write_units_when_it_is_registered_and_two_when_it_proves_something() {
    let process = Process::new().await;
    let policy = Policy::parse(PASSKEYS).unwrap().policy;
    let party = RelyingParty::new("x", policy.mfa().unwrap().passkeys.as_ref().unwrap()).unwrap();
    let (owner, begun, factors, by) = (&process.account, process.begun().await, &process.factors, author());
    let app = process.sets_up(&begun).await;
    process.confirms(&begun, &process.code(&app)).await.unwrap();
    factors.generate(changing(owner, &by)).await.unwrap();
    let mut devices = Vec::new();
    for n in 0..MOST_PASSKEYS as u64 {
        // One that cannot be cancelled any more goes with the next.
        process.clock.advance(Duration::from_secs(90_000));
        let mut device = Device::counting();
        let found = factors.find(owner).await.unwrap();
        let asking = factors.ask_to_register(owner, &found, &begun, &party, "alice");
        let (asked, round_trips, units) = costs(&process.counters, asking).await;
        assert_eq!((round_trips, units), (1 + n, 1), "each passkey is read, to be excluded");
        let asked = request(asked.unwrap());
        let made = serde_json::from_value(device.creates(PAGE, &asked.options)).unwrap();
        let registering = factors.register(changing(owner, &by), &begun, &party, &asked.id, &made, "laptop");
        let (said, round_trips, units) = costs(&process.counters, registering).await;
        assert!(matches!(said.unwrap(), Registered::Added { .. }));
        assert_eq!(
            (round_trips, units),
            (8, 8),
            "the challenge, the passkey, what cancels it, and with its entry the account, which is below 1 KB still"
        );
        devices.push(device);
    }
    let asking = factors.ask_to_assert(owner, &begun, &party, None);
    let (asked, round_trips, units) = costs(&process.counters, asking).await;
    assert_eq!((round_trips, units), (2 + MOST_PASSKEYS as u64, 1));
    let asked = request(asked.unwrap());
    let signed = serde_json::from_value(devices[3].gets(PAGE, &asked.options)).unwrap();
    let asserting = || factors.assert(&begun, &party, &asked.id, &signed, None, &by);
    let (said, round_trips, units) = costs(&process.counters, asserting()).await;
    assert!(matches!(said.unwrap(), Asserted::Verified(_)));
    assert_eq!((round_trips, units), (5, 2), "the challenge and the passkey, however many there are");
    let (said, round_trips, units) = costs(&process.counters, asserting()).await;
    assert!(matches!(said.unwrap(), Asserted::NoChallenge));
    assert_eq!((round_trips, units), (1, 0), "there is none");
    process.clock.advance(Duration::from_secs(30));
    let code = process.code(&app);
    let (said, round_trips, units) = costs(&process.counters, process.verifies(CodeKind::Totp, &code)).await;
    assert_eq!((said.unwrap(), round_trips, units), (Verification::Verified, 3, 2), "a code costs what it did");
    let found = factors.find(owner).await.unwrap();
    let first = *found.account().passkeys.first().unwrap();
    let (said, round_trips, units) =
        costs(&process.counters, factors.remove_passkey(first, changing(owner, &by))).await;
    assert_eq!((said.unwrap(), round_trips, units), (Removal::Removed, 6, 7));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_of_a_passkey_by_who_died_proves_nothing() {
    let process = Process::new().await;
    let policy = Policy::parse(PASSKEYS).unwrap().policy;
    let party = RelyingParty::new("x", policy.mfa().unwrap().passkeys.as_ref().unwrap()).unwrap();
    let (owner, begun, factors) = (&process.account, process.begun().await, &process.factors);
    let mut device = Device::new();
    let found = factors.find(owner).await.unwrap();
    let asked = request(factors.ask_to_register(owner, &found, &begun, &party, "alice").await.unwrap());
    let made = serde_json::from_value(device.creates(PAGE, &asked.options)).unwrap();
    factors.register(changing(owner, &author()), &begun, &party, &asked.id, &made, "").await.unwrap();
    let asked = request(factors.ask_to_assert(owner, &begun, &party, None).await.unwrap());
    let signed = serde_json::from_value(device.gets(PAGE, &asked.options)).unwrap();
    // The account's item names it no more, and its own is still there.
    let id = *factors.find(owner).await.unwrap().account().passkeys.first().unwrap();
    let write = Write::new([Check::HasPasskey(id)], Change::RemovePasskey(id));
    let pk = storage::partition_key(owner);
    assert!(matches!(factors.items().begin().update(&pk, &storage::render(&write)).await, Ok(Updated::Applied(_))));
    let said = factors.assert(&begun, &party, &asked.id, &signed, None, &author()).await.unwrap();
    assert!(matches!(said, Asserted::Refused), "{said:?}");
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

fn code_kind() -> impl Strategy<Value = CodeKind> {
    prop::sample::select(CodeKind::ALL.to_vec())
}

/// More than an account can have, so that there is no room at times.
fn passkey() -> impl Strategy<Value = PasskeyId> {
    (0_u8..12).prop_map(|n| PasskeyId([n; 16]))
}

fn code() -> impl Strategy<Value = CodeHash> {
    (0_u8..3).prop_map(|n| CodeHash([n; 32]))
}

/// One of two requests for recovery, approved or not.
fn asked() -> impl Strategy<Value = RecoveryRequest> {
    let texts = ['A', 'B'].map(|id| {
        let plain = format!("{}.1767225600.1767312001.1767916801.{}", id.to_string().repeat(10) + "A", "s".repeat(43));
        [format!("{plain}.{}", "A".repeat(22)), plain]
    });
    prop::sample::select(texts.concat()).prop_map(|text| text.parse().unwrap())
}

fn check() -> impl Strategy<Value = Check> {
    prop_oneof![
        Just(Check::NoApp),
        Just(Check::NoFactor),
        Just(Check::AnyCodes),
        prop::option::of(at()).prop_map(Check::CodesOf),
        sealed().prop_map(Check::PendingIs),
        at().prop_map(Check::PendingAt),
        sealed().prop_map(Check::AppIs),
        (0_u64..4).prop_map(Check::StepBefore),
        code().prop_map(Check::HasCode),
        (code_kind(), at()).prop_map(|(kind, now)| Check::Turn(kind, now)),
        kind().prop_map(Check::Has),
        passkey().prop_map(Check::HasPasskey),
        passkey().prop_map(Check::LacksPasskey),
        Just(Check::RoomForPasskey),
        prop::option::of(asked()).prop_map(Check::RequestIs),
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
        6 => (code_kind(), at()).prop_map(|(kind, now)| Change::Count(kind, now)),
        2 => totp.prop_map(Change::Confirm),
        2 => (0_u64..4, sealed()).prop_map(|(step, sealed)| Change::Pass { step, sealed }),
        3 => code().prop_map(Change::Use),
        2 => (prop::collection::btree_set(code(), 1..4), at()).prop_map(|(codes, at)| Change::Generate(codes, at)),
        6 => passkey().prop_map(Change::AddPasskey),
        1 => passkey().prop_map(Change::RemovePasskey),
        1 => kind().prop_map(Change::Remove),
        3 => prop::option::of(asked()).prop_map(Change::Request),
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
        let writes = prop::collection::vec(write, 1..32).new_tree(&mut runner).unwrap().current();
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

fn signed() -> impl Strategy<Value = Signed> {
    (0_u32..4, any::<bool>(), any::<bool>()).prop_map(|(count, can_be_backed_up, is_backed_up)| Signed {
        count,
        can_be_backed_up,
        is_backed_up,
    })
}

fn passkey_write() -> impl Strategy<Value = PasskeyWrite> {
    let texts = prop::collection::vec(prop::sample::select(vec!["usb".to_owned(), "hybrid".to_owned()]), 0..3);
    let made = (texts, prop::option::of(at()), signed(), any::<bool>());
    let made = made.prop_map(|(transports, used, state, is_verified)| Passkey {
        credential: vec![0, 255],
        key: "{}".to_owned(),
        is_verified,
        transports,
        name: String::new(),
        since: Timestamp::from_secs(1_767_225_600),
        used,
        state,
    });
    prop_oneof![
        1 => made.prop_map(PasskeyWrite::Add),
        3 => (signed(), at()).prop_map(|(state, at)| PasskeyWrite::Pass(state, at)),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn the_table_answers_every_write_of_a_passkey_as_the_write_itself_does() {
    let process = Process::new().await;
    let items = process.factors.items();
    let (mut applied, mut refused) = (0, 0);
    let mut runner = TestRunner::default();
    for _ in 0..40 {
        let pk = passkey::storage::passkey_key(&key().key, PasskeyId::of(b"id"));
        let mut here: Option<Passkey> = None;
        for write in prop::collection::vec(passkey_write(), 1..16).new_tree(&mut runner).unwrap().current() {
            let there = items.begin().update(&pk, &passkey::storage::render(&write)).await.unwrap();
            let read = |found| passkey::storage::to_passkey(found).unwrap();
            match (write.apply(here.as_ref()), there) {
                (Some(next), Updated::Applied(found)) => {
                    assert_eq!(read(&found), next, "{write:?}");
                    (here, applied) = (Some(next), applied + 1);
                }
                (None, Updated::Refused(found)) => {
                    assert_eq!(found.as_ref().map(read), here, "{write:?}");
                    refused += 1;
                }
                (next, there) => panic!("{next:?}, {there:?}: {write:?}"),
            }
        }
    }
    assert!(applied > 40 && refused > 40, "both happen: {applied} applied, {refused} refused");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_table_gives_a_challenge_to_whom_it_was_made_for_and_to_nobody_twice() {
    let process = Process::new().await;
    let call = process.factors.items().begin();
    let ceremonies = [Ceremony::Register { is_first: true }, Ceremony::Register { is_first: false }, Ceremony::Assert];
    let actions =
        [None, Some(Action::new("GET", "/", Vec::new(), &[])), Some(Action::new("PUT", "/", Vec::new(), &[]))];
    let (mut given, mut kept) = (0, 0);
    let now = Timestamp::from_secs(1_767_225_600);
    let id: ChallengeId = "A".repeat(43).parse().unwrap();
    // One of the five differs at a time, or none.
    for (n, made) in (0..6_usize).flat_map(|n| ceremonies.map(|ceremony| (n, ceremony))) {
        let challenge = Challenge {
            ceremony: made,
            session: (n != 5).then(|| "s1".to_owned()),
            epoch: 7,
            action: actions[usize::from(n == 4)],
            at: now,
            until: now + Duration::from_nanos(2),
            state: "{}".to_owned(),
        };
        for (ceremony, of) in ceremonies.iter().flat_map(|ceremony| (0..6).map(move |of| (*ceremony, of))) {
            let pk = passkey::storage::challenge_key(&key().key, &id);
            assert!(matches!(call.update(&pk, &passkey::storage::put(&challenge)).await, Ok(Updated::Applied(_))));
            let found = call.read(&pk).await.unwrap().unwrap();
            assert_eq!(passkey::storage::to_challenge(&found).unwrap(), challenge);
            let using = Use {
                ceremony,
                session: [Some("s1"), Some("s2"), None][usize::from(of == 1) + 2 * usize::from(of == 5)],
                epoch: 7 + u64::from(of == 2),
                action: actions[usize::from(of == 4) + 2 * usize::from(of == 3)],
                now: now + Duration::from_nanos(1 + u64::from(of == 0) * (n as u64 % 2)),
            };
            let taken = call.delete(&pk, &passkey::storage::using(&using)).await.unwrap();
            assert_eq!(taken, using.fits(&challenge), "{using:?} of {challenge:?}");
            let again = call.delete(&pk, &passkey::storage::using(&using)).await.unwrap();
            assert!(!again, "{using:?} of {challenge:?}");
            (given, kept) = (given + usize::from(taken), kept + usize::from(!taken));
        }
    }
    assert!(given > 5 && kept > 50, "both happen: {given} given, {kept} kept");
}
