//! One-time codes on a table: what is counted, what one code is good for, and what each answer costs.

use crate::harness::{PATIENCE, TABLE, connected, costs, endpoint, key, raw};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::sync::Arc;
use std::time::Duration;
use tollgate::testing::ManualClock;
use tollgate::{Counters, DynamoStore, KeySecrets, Policy, SystemClock, Timestamp};
use tollgate_core::{Clock, Key, Penalty};
use tollgate_dynamodb::{Items, Updated};
use tollgate_otp::write::{Change, Check, Expect, Sending};
use tollgate_otp::{
    ChallengeId, Code, Delivery, Denied, Digest, Error, Issuance, Issued, Item, Otp, Receipt, Recipient, Verification,
    Write, storage,
};

const OLD: &str = "k1=AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";
const NEW: &str = "k2=__79_Pv6-fj39vX08_Lx8O_u7ezr6uno5-bl5OPi4eA";
const POLICY: &str = "version = 1\n[otp]\npurposes = ['login', 'change-phone']\n";

fn policy(secrets: &str) -> Policy {
    Policy::parse(POLICY).unwrap().policy.with_secrets(secrets.parse().unwrap())
}

/// Codes of one process, and of an account that nobody else has.
struct Codes {
    otp: Otp,
    policy: Policy,
    clock: ManualClock,
    counters: Arc<Counters>,
    alice: Recipient,
}

impl Codes {
    async fn new() -> Self {
        let clock = ManualClock::new(SystemClock.now());
        Self::of(clock, key().key).await
    }

    async fn of(clock: ManualClock, account: Key) -> Self {
        let connected = connected(&endpoint().await).await;
        let counters = Arc::new(Counters::default());
        let store = DynamoStore::with_trusted_clock(&connected, TABLE, Arc::new(clock.clone()), counters.clone());
        store.warm_up().await.unwrap();
        let policy = policy(OLD);
        let alice = recipient(&policy, account, "login");
        Self { otp: Otp::new(Items::new(store).with_deadline(PATIENCE)), policy, clock, counters, alice }
    }

    /// Another process, of the same account.
    async fn again(&self) -> Self {
        Self::of(self.clock.clone(), self.alice.account().clone()).await
    }

    async fn issue(&self) -> Issued {
        match self.otp.issue(&self.policy, &self.alice).await.unwrap() {
            Issuance::Issued(issued) => issued,
            other => panic!("{other:?}"),
        }
    }

    async fn denied(&self) -> Denied {
        match self.otp.issue(&self.policy, &self.alice).await.unwrap() {
            Issuance::Denied(denied) => denied,
            other => panic!("{other:?}"),
        }
    }

    async fn types(&self, challenge: ChallengeId, code: &str) -> Verification {
        self.otp.verify(&self.policy, &self.alice, &challenge.to_string(), code).await.unwrap().verification
    }

    fn advance(&self, secs: u64) {
        self.clock.advance(Duration::from_secs(secs));
    }
}

fn recipient(policy: &Policy, account: Key, purpose: &str) -> Recipient {
    Recipient::new(account, policy.otp_for(purpose).unwrap().1.clone(), "+40721234567").unwrap()
}

/// Another code than this one.
fn wrong(code: &Code) -> String {
    let n: u64 = code.digits().parse().unwrap();
    format!("{:06}", (n + 1) % 1_000_000)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_code_costs_one_write_unit_and_the_right_one_two() {
    let codes = Codes::new().await;
    let (issued, round_trips, units) = costs(&codes.counters, codes.issue()).await;
    assert_eq!((round_trips, units), (1, 1), "a first code");
    assert_eq!((issued.expires_in.as_secs(), issued.resend_after.as_secs()), (300, 60));
    let (said, round_trips, units) = costs(&codes.counters, codes.types(issued.challenge, &wrong(&issued.code))).await;
    assert_eq!((said, round_trips, units), (Verification::WrongCode { attempts_left: 4 }, 1, 1));
    let (said, round_trips, units) = costs(&codes.counters, codes.types(issued.challenge, issued.code.digits())).await;
    assert_eq!((said, round_trips, units), (Verification::Verified, 2, 2));
    let (said, round_trips, units) = costs(&codes.counters, codes.types(issued.challenge, issued.code.digits())).await;
    assert_eq!((said, round_trips, units), (Verification::NoActive, 1, 1), "it is used");
    let (_, round_trips, units) = costs(&codes.counters, codes.denied()).await;
    assert_eq!((round_trips, units), (1, 1), "too soon");
    codes.advance(60);
    let (_, round_trips, units) = costs(&codes.counters, codes.issue()).await;
    assert_eq!((round_trips, units), (2, 2), "a second code");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_fifty_right_codes_at_once_one_is_verified() {
    // better-auth#8067
    let codes = Codes::new().await;
    let issued = codes.issue().await;
    let mut callers = Vec::new();
    for _ in 0..50 {
        let (process, code) = (codes.again().await, issued.code.digits().to_owned());
        callers.push(tokio::spawn(async move { process.types(issued.challenge, &code).await }));
    }
    let mut verified = 0;
    for caller in callers {
        match caller.await.unwrap() {
            Verification::Verified => verified += 1,
            Verification::NoActive | Verification::Locked { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(verified, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_fifty_wrong_codes_at_once_five_are_compared_and_then_the_right_one_is_not() {
    // better-auth#8067
    let codes = Codes::new().await;
    let issued = codes.issue().await;
    let mut callers = Vec::new();
    for _ in 0..50 {
        let (process, code) = (codes.again().await, wrong(&issued.code));
        callers.push(tokio::spawn(async move { process.types(issued.challenge, &code).await }));
    }
    let mut left = Vec::new();
    for caller in callers {
        match caller.await.unwrap() {
            Verification::WrongCode { attempts_left } => left.push(attempts_left),
            Verification::Locked { retry_after } => {
                assert_eq!(retry_after.as_secs(), 60, "another code may be sent then")
            }
            other => panic!("{other:?}"),
        }
    }
    left.sort_unstable();
    assert_eq!(left, [0, 1, 2, 3, 4]);
    assert!(matches!(codes.types(issued.challenge, issued.code.digits()).await, Verification::Locked { .. }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_twenty_codes_wished_for_at_once_one_is_sent() {
    let codes = Codes::new().await;
    for round in 0..2 {
        let mut callers = Vec::new();
        for _ in 0..20 {
            let process = codes.again().await;
            callers
                .push(tokio::spawn(async move { process.otp.issue(&process.policy, &process.alice).await.unwrap() }));
        }
        let mut sent = 0;
        for caller in callers {
            sent += u32::from(matches!(caller.await.unwrap(), Issuance::Issued(_)));
        }
        assert_eq!(sent, 1, "{round}");
        codes.advance(60);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_code_takes_the_place_of_the_old_one() {
    // rollupid#1973
    let codes = Codes::new().await;
    let first = codes.issue().await;
    codes.advance(60);
    let second = codes.issue().await;
    assert_eq!(codes.types(first.challenge, first.code.digits()).await, Verification::NoActive);
    assert_eq!(codes.types(second.challenge, second.code.digits()).await, Verification::Verified);
}

#[tokio::test(flavor = "multi_thread")]
async fn new_codes_bring_no_new_budget() {
    // dcms#50
    let codes = Codes::new().await;
    let mut wrongs = 0;
    for _ in 0..2 {
        let issued = codes.issue().await;
        for _ in 0..5 {
            let said = codes.types(issued.challenge, &wrong(&issued.code)).await;
            wrongs += u32::from(matches!(said, Verification::WrongCode { .. }));
        }
        codes.advance(120);
    }
    assert_eq!(wrongs, 10);
    // Ten of an hour that began 4 minutes ago.
    assert_eq!(codes.denied().await, Denied::Locked { retry_after: Duration::from_secs(3600 - 240) });
    codes.advance(3600 - 240);
    let issued = codes.issue().await;
    assert_eq!(codes.types(issued.challenge, issued.code.digits()).await, Verification::Verified);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cooldown_is_twice_as_long_each_time_and_a_step_shorter_for_each_time_without() {
    let codes = Codes::new().await;
    for secs in [60, 120, 240, 480] {
        assert_eq!(codes.issue().await.resend_after.as_secs(), secs);
        codes.advance(secs - 1);
        assert_eq!(codes.denied().await, Denied::TooSoon { retry_after: Duration::from_secs(1) });
        codes.advance(1);
    }
    codes.advance(1200);
    assert_eq!(codes.issue().await.resend_after.as_secs(), 240, "two steps are forgotten");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_code_is_not_counted() {
    // GoogleAuth#37, commons-validator#380, simple-login#2132
    let codes = Codes::new().await;
    let issued = codes.issue().await;
    let digits = issued.code.digits();
    let moved = |zero: u32| {
        let digit = |c: char| char::from_u32(zero + c.to_digit(10).unwrap()).unwrap();
        digits.chars().map(digit).collect::<String>()
    };
    let item = raw(&endpoint().await).get_item().table_name(TABLE);
    let pk = aws_sdk_dynamodb::types::AttributeValue::S(storage::partition_key(&codes.alice));
    let item = item.key("pk", pk).send().await.unwrap().item.unwrap();
    let stored = item["digest"].as_s().unwrap().clone();
    let said = [
        digits[1..].to_owned(),
        format!(" {digits}"),
        format!("{digits} "),
        format!("{digits}\0"),
        format!("+{}", &digits[1..]),
        moved(0x0660),
        moved(0xff10),
        moved(0x1d7ce),
        String::new(),
        stored.split_once('.').unwrap().1.to_owned(),
        stored,
    ];
    for code in said {
        let (answer, round_trips, _) =
            costs(&codes.counters, codes.otp.verify(&codes.policy, &codes.alice, &issued.challenge.to_string(), &code))
                .await;
        assert!(matches!(answer, Err(Error::Malformed { digits: 6 })), "{code}");
        assert_eq!(round_trips, 0, "{code}");
    }
    assert_eq!(
        codes.types(issued.challenge, &wrong(&issued.code)).await,
        Verification::WrongCode { attempts_left: 4 },
        "nothing of it was counted"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn another_users_or_purposes_code_is_none_and_costs_its_owner_no_attempt() {
    // django-rest-passwordreset#194
    let codes = Codes::new().await;
    let issued = codes.issue().await;
    let others = [
        recipient(&codes.policy, key().key, "login"),
        recipient(&codes.policy, codes.alice.account().clone(), "change-phone"),
    ];
    for other in &others {
        // One has been sent a code of his own, too, and names the other's challenge.
        for _ in 0..2 {
            for _ in 0..10 {
                let challenge = issued.challenge.to_string();
                let said = codes.otp.verify(&codes.policy, other, &challenge, issued.code.digits()).await.unwrap();
                assert_eq!(said.verification, Verification::NoActive);
            }
            codes.otp.issue(&codes.policy, other).await.unwrap();
        }
    }
    let unknown = codes.policy.otp_for("log-in").unwrap_err();
    assert!(unknown.to_string().contains("unknown purpose \"log-in\": did you mean `login`?"), "{unknown}");
    for challenge in ["", "x", &"A".repeat(22), &ChallengeId::random().unwrap().to_string()] {
        let said = codes.otp.verify(&codes.policy, &codes.alice, challenge, issued.code.digits()).await.unwrap();
        assert_eq!(said.verification, Verification::NoActive);
    }
    assert_eq!(
        codes.types(issued.challenge, &wrong(&issued.code)).await,
        Verification::WrongCode { attempts_left: 4 },
        "nothing of it was counted"
    );
    assert_eq!(codes.types(issued.challenge, issued.code.digits()).await, Verification::Verified);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_is_good_for_five_minutes_whatever_the_table_has_deleted() {
    let codes = Codes::new().await;
    let (first, second) = (codes.issue().await, Codes::new().await);
    codes.advance(299);
    assert_eq!(codes.types(first.challenge, first.code.digits()).await, Verification::Verified);
    let first = second.issue().await;
    second.advance(300);
    let (said, _, units) = costs(&second.counters, second.types(first.challenge, first.code.digits())).await;
    assert_eq!((said, units), (Verification::NoActive, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn codes_of_a_secret_that_is_being_retired_verify_and_of_one_that_is_gone_do_not() {
    // blot#1856
    let mut codes = Codes::new().await;
    let issued = codes.issue().await;
    codes.policy = policy(NEW);
    assert_eq!(codes.types(issued.challenge, issued.code.digits()).await, Verification::NoActive);
    codes.policy = policy(&format!("{NEW},{OLD}"));
    assert_eq!(codes.types(issued.challenge, issued.code.digits()).await, Verification::Verified);
    codes.advance(60);
    let issued = codes.issue().await;
    codes.policy = policy(NEW);
    assert_eq!(codes.types(issued.challenge, issued.code.digits()).await, Verification::Verified, "of the new one");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_secrets_there_is_no_code() {
    let mut codes = Codes::new().await;
    codes.policy = Policy::parse(POLICY).unwrap().policy.with_secrets(KeySecrets::default());
    let error = codes.otp.issue(&codes.policy, &codes.alice).await.unwrap_err();
    assert!(
        matches!(error, Error::Policy(tollgate_policy::Error::NoSecrets { .. })) && !error.is_bad_input(),
        "{error}"
    );
}

/// Far ahead, so that no table deletes what the test wrote.
const NOW: u64 = 4_000_000_000;

fn sending() -> impl Strategy<Value = Sending> {
    (0..3_u8, 0..8_u64, 0..8_u64, 0..4_u8, any::<bool>()).prop_map(|(n, valid, cooldown, level, is_new)| {
        let secrets: KeySecrets = OLD.parse().unwrap();
        let someone = recipient(&policy(OLD), "user:alice".parse().unwrap(), "login");
        let (challenge, code) = (ChallengeId::new([n; 16]), Code::parse(&format!("{n:06}"), 6).unwrap());
        let digest: Digest = someone.digest(&secrets, challenge, &code).unwrap();
        let at = |secs| Timestamp::from_secs(NOW + secs);
        let cooldown = Penalty { until: at(cooldown), length_ms: 1000, level: level + 1 };
        let window = is_new.then_some(at(valid + 2));
        Sending { challenge, digest, valid_until: at(valid), cooldown, window, expires_at: NOW + 9 }
    })
}

fn delivery() -> impl Strategy<Value = Delivery> {
    prop::sample::select(vec![Delivery::Pending, Delivery::Sending, Delivery::Sent, Delivery::Refused])
}

fn check() -> impl Strategy<Value = Check> {
    let at = || (0..9_u64).prop_map(|secs| Timestamp::from_secs(NOW + secs));
    prop_oneof![
        (0..3_u8).prop_map(|n| Check::ChallengeIs(ChallengeId::new([n; 16]))),
        at().prop_map(Check::ValidAt),
        Just(Check::Unused),
        delivery().prop_map(Check::DeliveryIs),
        (0..4_u32).prop_map(Check::AttemptsBelow),
        (0..4_u32).prop_map(Check::GuessesBelow),
        at().prop_map(Check::WindowOver),
        at().prop_map(Check::CooldownOver),
    ]
}

/// A write whose checks are about different attributes, as those of the protocol are.
fn write() -> impl Strategy<Value = Write> {
    let checks = || {
        prop::collection::vec(check(), 1..4).prop_map(|checks| {
            let mut distinct: Vec<Check> = Vec::new();
            for check in checks {
                if distinct.iter().all(|other| std::mem::discriminant(other) != std::mem::discriminant(&check)) {
                    distinct.push(check);
                }
            }
            distinct
        })
    };
    let new = sending().prop_map(|sending| {
        let window = sending.window.or(Some(sending.valid_until));
        Change::Send(Sending { window, ..sending })
    });
    let at = (0..9_u64).prop_map(|secs| Timestamp::from_secs(NOW + secs));
    // What must be there is compared with something.
    let of_one = || {
        (0..3_u8, checks()).prop_map(|(n, mut checks)| {
            checks.retain(|check| !matches!(check, Check::ChallengeIs(_)));
            Expect::Present([vec![Check::ChallengeIs(ChallengeId::new([n; 16]))], checks].concat())
        })
    };
    prop_oneof![
        (checks(), new).prop_map(|(checks, change)| Write { expect: Expect::AbsentOr(checks), change }),
        (of_one(), sending()).prop_map(|(expect, sending)| Write { expect, change: Change::Send(sending) }),
        of_one().prop_map(|expect| Write { expect, change: Change::Count }),
        (of_one(), at).prop_map(|(expect, at)| Write { expect, change: Change::Use(at) }),
        (of_one(), delivery(), prop::option::of(0..3_u8)).prop_map(|(expect, delivery, receipt)| {
            let receipt = receipt.map(|n| Receipt::new(format!("receipt-{n}")));
            Write { expect, change: Change::Deliver(delivery, receipt) }
        }),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn the_table_answers_every_write_of_codes_as_the_write_itself_does() {
    let codes = Codes::new().await;
    let items = codes.otp.items();
    let (mut applied, mut refused) = (0, 0);
    let mut runner = TestRunner::default();
    for _ in 0..60 {
        let pk = storage::partition_key(&recipient(&codes.policy, key().key, "login"));
        let mut here: Option<Item> = None;
        let writes = prop::collection::vec(write(), 1..14).new_tree(&mut runner).unwrap().current();
        for write in &writes {
            // A guess that counts backwards is none that the protocol makes.
            if matches!(write.change, Change::Use(_)) && here.as_ref().is_some_and(|item| item.guesses == 0) {
                continue;
            }
            let there = items.begin().update(&pk, &storage::render(write)).await.unwrap();
            match (write.apply(here.as_ref()), there) {
                (Some(next), Updated::Applied(found)) => {
                    assert_eq!(storage::to_item(&found).unwrap(), next, "{write:?} of {writes:?}");
                    (here, applied) = (Some(next), applied + 1);
                }
                (None, Updated::Refused(found)) => {
                    assert_eq!(found.map(|found| storage::to_item(&found).unwrap()), here, "{write:?} of {writes:?}");
                    refused += 1;
                }
                (next, there) => panic!("{next:?}, {there:?}: {write:?} of {writes:?}"),
            }
        }
    }
    assert!(applied > 20 && refused > 20, "both happen: {applied} applied, {refused} refused");
}
