//! Changes of factors: whatever a thief does, and whatever is cancelled in whatever order, nothing that he has added proves everything within the
//! cooldown of his change; who has a factor that was there before goes on.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;
use tollgate_core::Timestamp;
use tollgate_mfa::factors::changes::{cancelled, emptied, recorded, until};
use tollgate_mfa::factors::{
    Account, Altered, CancelToken, Change, Changed, Check, CodeHash, Factor, Kind, MOST_CHANGES, PasskeyId, Recovery,
    Standing, Taken, Totp, Write,
};

const START: u64 = 1_767_225_600;
const COOLDOWN: Duration = Duration::from_secs(24 * 3600);

fn passkey(n: u8) -> PasskeyId {
    PasskeyId([n; 16])
}

/// What can happen. What is added is new each time.
#[derive(Debug, Clone)]
enum Step {
    EnrolApp { thief: bool },
    Generate { thief: bool },
    AddPasskey { thief: bool },
    Remove(Factor),
    RemovePasskey(prop::sample::Index),
    RemovePasskeys,
    Recover,
    Cancel(prop::sample::Index),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let factor =
        prop_oneof![Just(Factor::Totp), Just(Factor::Recovery), (0_u8..8).prop_map(|n| Factor::Passkey(passkey(n))),];
    prop_oneof![
        3 => any::<bool>().prop_map(|thief| Step::EnrolApp { thief }),
        3 => any::<bool>().prop_map(|thief| Step::Generate { thief }),
        4 => any::<bool>().prop_map(|thief| Step::AddPasskey { thief }),
        3 => factor.prop_map(Step::Remove),
        2 => any::<prop::sample::Index>().prop_map(Step::RemovePasskey),
        1 => Just(Step::RemovePasskeys),
        1 => Just(Step::Recover),
        5 => any::<prop::sample::Index>().prop_map(Step::Cancel),
        3 => (1_u64..20).prop_map(Step::Wait),
    ]
}

/// An account, and what everybody was told of its changes.
struct World {
    now: Timestamp,
    account: Account,
    told: Vec<(Changed, Taken)>,
    /// When the thief has added a factor, by its secret; what it was a first factor is none of these.
    added: BTreeMap<String, Timestamp>,
    next: u8,
}

/// Whose a factor is, and which.
fn secret(account: &Account, factor: Factor) -> Option<String> {
    match factor {
        Factor::Totp => account.totp.as_ref().map(|app| app.sealed.clone()),
        Factor::Recovery => account.recovery.as_ref().map(|codes| format!("{:?}", codes.codes)),
        Factor::Passkey(id) => account.passkeys.contains(&id).then(|| id.to_string()),
    }
}

impl World {
    fn new(account: Account) -> Self {
        let now = Timestamp::from_secs(START);
        Self { now, account, told: Vec::new(), added: BTreeMap::new(), next: 0 }
    }

    fn changes(&mut self, altered: Altered, write: Write) -> bool {
        let change = Changed { id: CancelToken::random().unwrap().change(), altered, until: until(self.now, COOLDOWN) };
        let taken = Taken::by(altered, &self.account, self.now);
        let Ok(write) = recorded(write, &self.account, change, self.now) else {
            let open = self.account.changes.iter().filter(|open| open.until > self.now).count();
            assert!(open >= MOST_CHANGES);
            return false;
        };
        let Some(next) = write.apply(Some(&self.account)) else { return false };
        self.account = next;
        self.told.push((change, taken));
        true
    }

    fn adds(&mut self, factor: Factor, write: Write, is_thief: bool) {
        let altered = self.account.adds(factor, self.now);
        if self.changes(altered, write) && is_thief && matches!(altered, Altered::Added(_)) {
            let secret = secret(&self.account, factor).unwrap();
            self.added.insert(secret, self.now);
        }
    }

    fn does(&mut self, step: &Step) {
        self.next = self.next.wrapping_add(1);
        let (n, now) = (self.next, self.now);
        match step {
            Step::EnrolApp { thief } => {
                let app =
                    Totp { sealed: format!("k1.{}{n}", if *thief { "thief" } else { "owner" }), since: now, step: 0 };
                self.adds(Factor::Totp, Write::new([Check::NoApp], Change::Confirm(app)), *thief);
            }
            Step::Generate { thief } => {
                let codes = [CodeHash([n; 32])].into();
                self.adds(Factor::Recovery, Write::new([], Change::Generate(codes, now)), *thief);
            }
            Step::AddPasskey { thief } => {
                let id = PasskeyId([n, u8::from(*thief), 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
                let write = Write::new([Check::LacksPasskey(id), Check::RoomForPasskey], Change::AddPasskey(id));
                self.adds(Factor::Passkey(id), write, *thief);
            }
            Step::RemovePasskey(which) => {
                let all: Vec<_> = self.account.passkeys.iter().copied().collect();
                if !all.is_empty() {
                    self.does(&Step::Remove(Factor::Passkey(*which.get(&all))));
                }
            }
            Step::Remove(factor) => {
                let write = match factor {
                    Factor::Passkey(id) => Write::new([Check::HasPasskey(*id)], Change::RemovePasskey(*id)),
                    factor => Write::new([Check::Has(factor.kind())], Change::Remove(factor.kind())),
                };
                self.changes(Altered::Removed(*factor), write);
            }
            Step::RemovePasskeys => {
                let write = Write::new([Check::Has(Kind::Passkey)], Change::Remove(Kind::Passkey));
                self.changes(Altered::RemovedPasskeys, write);
            }
            Step::Recover => {
                self.changes(Altered::Recovered, emptied());
            }
            Step::Cancel(which) if !self.told.is_empty() => {
                let (change, taken) = which.get(&self.told);
                if let Some(open) = self.account.change(change.id, now) {
                    let write = cancelled(&self.account, &open, taken, now);
                    self.account = write.apply(Some(&self.account)).expect("nobody was in between");
                    assert!(self.account.change(change.id, now).is_none(), "a link is good once");
                }
            }
            Step::Cancel(_) => {}
            Step::Wait(hours) => self.now = now + Duration::from_secs(hours * 3600),
        }
    }
}

fn owners() -> Account {
    let app = Totp { sealed: "k1.owner".to_owned(), since: Timestamp::from_secs(START), step: 0 };
    Account { totp: Some(app), passkeys: [passkey(0)].into(), ..Account::default() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    #[test]
    fn within_the_cooldown_of_a_thiefs_change_nothing_that_he_has_added_proves_everything(
        steps in prop::collection::vec(step(), 1..40)
    ) {
        let mut world = World::new(owners());
        for step in &steps {
            world.does(step);
            for factor in world.account.factors() {
                let added = secret(&world.account, factor).and_then(|secret| world.added.get(&secret));
                let is_cooling = added.is_some_and(|at| *at + COOLDOWN > world.now);
                let standing = world.account.standing(factor, world.now);
                prop_assert!(!is_cooling || standing != Standing::Full, "{factor:?}: {step:?} of {steps:?}");
            }
        }
    }

    #[test]
    fn a_factor_that_nobody_touched_proves_what_it_did_and_what_is_cooling_beside_it_nothing(
        steps in prop::collection::vec(step(), 1..40)
    ) {
        let mut world = World::new(owners());
        for step in steps {
            let is_of_it = match step {
                Step::Remove(factor) => factor == Factor::Totp,
                Step::Recover => true,
                _ => false,
            };
            if is_of_it {
                continue;
            }
            world.does(&step);
            prop_assert_eq!(world.account.standing(Factor::Totp, world.now), Standing::Full);
            for factor in world.account.factors() {
                let standing = world.account.standing(factor, world.now);
                prop_assert!(!matches!(standing, Standing::Enrols(_)), "it could remove the owner's own");
            }
        }
    }

    #[test]
    fn what_was_removed_is_back_once_that_is_cancelled_whatever_was_done_since(
        steps in prop::collection::vec(step(), 0..12), removed in 0_usize..4
    ) {
        let mut world = World::new(owners());
        let step = [Step::Remove(Factor::Totp), Step::Remove(Factor::Passkey(passkey(0))), Step::RemovePasskeys, Step::Recover];
        world.does(&step[removed]);
        let (change, taken) = world.told[0].clone();
        for step in steps.iter().filter(|step| !matches!(step, Step::Wait(_) | Step::Cancel(_))) {
            world.does(step);
        }
        let open = world.account.change(change.id, world.now).expect("nobody has cancelled it");
        let before = owners();
        world.account = cancelled(&world.account, &open, &taken, world.now).apply(Some(&world.account)).unwrap();
        for factor in before.factors().filter(|factor| match removed {
            0 => *factor == Factor::Totp,
            1 | 2 => factor.kind() == Kind::Passkey,
            _ => true,
        }) {
            prop_assert_eq!(secret(&world.account, factor), secret(&before, factor));
            prop_assert_eq!(world.account.standing(factor, world.now), Standing::Full);
        }
    }
}

#[test]
fn whoever_has_removed_the_only_factor_enrols_no_first_one_until_its_cooldown_is_over() {
    let only = Account { passkeys: Default::default(), ..owners() };
    let mut world = World::new(only);
    world.does(&Step::Remove(Factor::Totp));
    world.does(&Step::EnrolApp { thief: true });
    assert!(matches!(world.account.standing(Factor::Totp, world.now), Standing::Enrols(_)), "there is no other");
    assert!(world.account.weakened_until(world.now).is_some(), "nor is a code that is sent a whole factor");
    world.does(&Step::Wait(25));
    assert_eq!(world.account.standing(Factor::Totp, world.now), Standing::Full);
    // Nothing was there, and nothing was changed.
    let mut world = World::new(Account::default());
    world.does(&Step::EnrolApp { thief: false });
    assert_eq!(world.account.standing(Factor::Totp, world.now), Standing::Full);
    assert!(matches!(world.told[0].0.altered, Altered::First(_)), "and it can be cancelled all the same");
}

#[test]
fn codes_of_a_thief_do_not_come_back_when_those_that_followed_them_are_cancelled() {
    let codes = Recovery { since: Timestamp::from_secs(START), codes: [CodeHash([200; 32])].into() };
    let mut world = World::new(Account { recovery: Some(codes), ..owners() });
    world.does(&Step::Generate { thief: true });
    world.does(&Step::Generate { thief: true });
    for n in [1, 0] {
        let (change, taken) = world.told[n].clone();
        let open = world.account.change(change.id, world.now).unwrap();
        world.account = cancelled(&world.account, &open, &taken, world.now).apply(Some(&world.account)).unwrap();
    }
    assert_eq!(world.account.recovery.unwrap().codes, [CodeHash([200; 32])].into());
}

#[test]
fn what_is_written_of_a_change_is_read_back_and_nothing_else() {
    let factors = [Factor::Totp, Factor::Recovery, Factor::Passkey(passkey(7))];
    let of_one = factors.into_iter().flat_map(|factor| {
        [Altered::First(factor), Altered::Added(factor), Altered::Removed(factor), Altered::Cancelled(factor)]
    });
    for altered in of_one.chain([Altered::RemovedPasskeys, Altered::Requested, Altered::Recovered]) {
        let change =
            Changed { id: CancelToken::random().unwrap().change(), altered, until: Timestamp::from_secs(START) };
        assert_eq!(change.to_string().parse(), Ok(change));
        assert!(change.to_string().len() <= 48, "a dozen of them beside everything else: {change}");
    }
    for wrong in ["", ".", "AAAAAAAAAAA.1.", "AAAAAAAAAAA.1.é", "AAAAAAAAAAA.x.+t", "AAAA.1.+t", "AAAAAAAAAAA.1.+x"] {
        assert!(wrong.parse::<Changed>().is_err(), "{wrong}");
    }
    let token = CancelToken::random().unwrap();
    assert_eq!(CancelToken::parse(token.as_str()).as_ref(), Some(&token));
    assert!(CancelToken::parse("x").is_none() && !format!("{token:?}").contains(token.as_str()));
}
