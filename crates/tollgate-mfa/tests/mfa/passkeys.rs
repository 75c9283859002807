//! Passkeys in any order of events: a challenge is looked at once, a counter never goes back, and nothing is registered by who had less
//! to prove.

use proptest::prelude::*;
use std::collections::BTreeSet;
use std::time::Duration;
use tollgate_core::Timestamp;
use tollgate_mfa::factors::passkey::{Ceremony, Challenge, MOST_PASSKEYS, PasskeyWrite, Signed, Use};
use tollgate_mfa::factors::{Account, Change, Check, CodeHash, Kind, Passkey, PasskeyId, Pending, Totp, Write};

const START: Timestamp = Timestamp::from_secs(1_767_225_600);
const LIFE: Duration = Duration::from_secs(300);

fn challenge() -> Challenge {
    let session = Some("s1".to_owned());
    let until = START + LIFE;
    Challenge { ceremony: Ceremony::Assert, session, epoch: 3, action: None, at: START, until, state: String::new() }
}

/// Who answers it: he himself, or in another session, ceremony or epoch, or too late.
fn answer() -> impl Strategy<Value = Use<'static>> {
    let his = Use { ceremony: Ceremony::Assert, session: Some("s1"), epoch: 3, action: None, now: START };
    prop_oneof![
        4 => (0_u64..300).prop_map(move |secs| Use { now: START + Duration::from_secs(secs), ..his }),
        1 => Just(Use { session: Some("s2"), ..his }),
        1 => Just(Use { session: None, ..his }),
        1 => Just(Use { epoch: 4, ..his }),
        1 => any::<bool>().prop_map(move |is_first| Use { ceremony: Ceremony::Register { is_first }, ..his }),
        1 => Just(Use { now: START + LIFE, ..his }),
    ]
}

/// How many of those who answer are let look, in an order in which each takes two steps: he reads, and takes it away.
fn looked_at(answers: &[Use<'_>], order: &[usize], takes_it_away: bool) -> usize {
    let (made, mut there, mut looked) = (challenge(), true, 0);
    let mut has_read = vec![false; answers.len()];
    for who in order.iter().map(|n| n % answers.len()) {
        if !has_read[who] {
            has_read[who] = there && answers[who].fits(&made);
        } else if there || !takes_it_away {
            (there, looked) = (there && !takes_it_away, looked + 1);
            has_read[who] = false;
        }
    }
    looked
}

proptest! {
    #[test]
    fn of_any_number_who_answer_a_challenge_one_is_looked_at(
        answers in prop::collection::vec(answer(), 1..8),
        order in prop::collection::vec(0_usize..8, 0..40),
    ) {
        let looked = looked_at(&answers, &order, true);
        prop_assert!(looked <= 1);
        prop_assert!(looked == 0 || answers.iter().any(|answer| answer.fits(&challenge())));
    }

    #[test]
    fn a_counter_never_goes_back_and_counts_each_signature_once(
        counts in prop::collection::vec(prop_oneof![Just(0_u32), 0_u32..6], 1..20)
    ) {
        let made = Passkey {
            credential: vec![1], key: String::new(), is_verified: true, transports: Vec::new(), name: String::new(),
            since: START, used: None, state: Signed { count: counts[0], can_be_backed_up: false, is_backed_up: false },
        };
        let mut passkey = PasskeyWrite::Add(made).apply(None).unwrap();
        for count in &counts[1..] {
            let said = Signed { count: *count, can_be_backed_up: true, is_backed_up: true };
            let before = passkey.state.count;
            match PasskeyWrite::Pass(said, START).apply(Some(&passkey)) {
                Some(next) => {
                    prop_assert!(*count > before || (*count, before) == (0, 0));
                    prop_assert_eq!((next.state, next.used), (said, Some(START)));
                    passkey = next;
                }
                None => prop_assert!(*count <= before && before > 0),
            }
        }
        prop_assert!(PasskeyWrite::Add(passkey.clone()).apply(Some(&passkey)).is_none());
    }
}

#[test]
fn who_looks_before_he_takes_the_challenge_away_is_found() {
    let his = Use { ceremony: Ceremony::Assert, session: Some("s1"), epoch: 3, action: None, now: START };
    assert_eq!(looked_at(&[his, his], &[0, 1, 0, 1], true), 1);
    assert_eq!(looked_at(&[his, his], &[0, 1, 0, 1], false), 2);
}

/// What can happen to an account.
#[derive(Debug, Clone)]
enum Event {
    /// A registration begins.
    Begins,
    /// One of those begun is completed with that passkey.
    Completes(usize, u8),
    /// An app is being set up.
    SetsUp,
    /// It is confirmed, if it still is.
    Confirms,
    /// Recovery codes are made.
    Generates,
    /// A recovery code is used.
    Uses,
    /// A passkey is removed.
    Removes(u8),
    /// A kind of factor is.
    RemovesAll(Kind),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        4 => Just(Event::Begins),
        8 => (0_usize..6, 0_u8..14).prop_map(|(which, id)| Event::Completes(which, id)),
        2 => Just(Event::SetsUp),
        2 => Just(Event::Confirms),
        1 => Just(Event::Generates),
        1 => Just(Event::Uses),
        2 => (0_u8..14).prop_map(Event::Removes),
        1 => prop::sample::select(Kind::ALL.to_vec()).prop_map(Event::RemovesAll),
    ]
}

/// The write that completes a registration.
fn completes(id: PasskeyId, is_first: bool) -> Write {
    let mut checks = vec![Check::LacksPasskey(id), Check::RoomForPasskey];
    checks.extend(is_first.then_some(Check::NoFactor));
    Write::new(checks, Change::AddPasskey(id))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn no_factor_is_added_by_who_began_with_less_to_prove_and_no_account_has_more_passkeys_than_it_may(
        events in prop::collection::vec(event(), 1..80)
    ) {
        let (mut account, mut begun) = (Account::default(), Vec::new());
        let code = CodeHash([1; 32]);
        for event in events {
            let before = account.clone();
            let write = match event {
                Event::Begins => {
                    begun.push(!account.has_factor());
                    continue;
                }
                Event::Completes(which, id) => {
                    let Some(is_first) = begun.get(which) else { continue };
                    completes(PasskeyId([id; 16]), *is_first)
                }
                Event::SetsUp => {
                    let pending = Pending { sealed: "k1.A".to_owned(), until: START + LIFE, epoch: 0, session: None };
                    let checks = [Check::NoApp, Check::NoFactor];
                    Write::new(if account.has_factor() { &checks[..1] } else { &checks[..] }, Change::Enrol(pending))
                }
                Event::Confirms => {
                    let app = Totp { sealed: "k1.A".to_owned(), since: START, step: 0 };
                    let checks = [Check::PendingIs("k1.A".to_owned()), Check::PendingAt(START), Check::NoApp];
                    Write::new(checks, Change::Confirm(app))
                }
                Event::Generates => Write::new([], Change::Generate(BTreeSet::from([code]), START)),
                Event::Uses => Write::new([Check::HasCode(code)], Change::Use(code)),
                Event::Removes(id) => {
                    let id = PasskeyId([id; 16]);
                    Write::new([Check::HasPasskey(id)], Change::RemovePasskey(id))
                }
                Event::RemovesAll(kind) => Write::new([Check::Has(kind)], Change::Remove(kind)),
            };
            let Some(after) = write.apply(Some(&before)) else { continue };
            if let (Event::Completes(which, _), true) = (&event, before.has_factor()) {
                prop_assert!(!begun[*which], "begun by a sign-in alone, completed where there was a factor");
            }
            if after.passkeys != before.passkeys {
                prop_assert_eq!(&after.pending, &None, "what was being set up ends");
                prop_assert!(after.passkeys.len().abs_diff(before.passkeys.len()) == 1 || after.passkeys.is_empty());
            }
            prop_assert!(after.passkeys.len() <= MOST_PASSKEYS);
            account = after;
        }
    }
}
