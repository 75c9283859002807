//! Recovery: whatever owner, thief and admins do at once and in whatever order, nothing is recovered without two admins who may approve it, nor
//! before its wait is over, nor after its end, nor twice.

use proptest::prelude::*;
use std::collections::BTreeSet;
use std::time::Duration;
use tollgate_core::{Key, Timestamp};
use tollgate_mfa::factors::request::{APPROVALS, COMPLETED_WITHIN, approved, closed, completed, requested};
use tollgate_mfa::factors::{
    Account, Approval, CancelToken, ChangeId, Completion, NotRequested, RecoveryRequest, RequestSecret, Totp, Write,
};

const START: u64 = 1_767_225_600;
const WAIT: Duration = Duration::from_secs(24 * 3600);

/// Of five admins the first owns the account, and the last is of another tenant.
fn admin(n: usize) -> Key {
    let (tenant, user) = [("acme", "alice"), ("acme", "bob"), ("acme", "carol"), ("acme", "dave"), ("other", "bob")][n];
    Key::new([("tenant", tenant), ("user", user)]).unwrap()
}

/// What can happen; whoever does it may have seen the account as it was before other steps.
#[derive(Debug, Clone)]
enum Step {
    Request,
    Approve {
        admin: usize,
        request: prop::sample::Index,
    },
    /// By an admin, by the link, or by a factor.
    End {
        request: prop::sample::Index,
    },
    /// By the owner, or by a thief, who knows no secret but his own.
    Complete {
        request: prop::sample::Index,
    },
    Enrol,
    Wait(u64),
}

fn step() -> impl Strategy<Value = (Step, u8)> {
    let request = any::<prop::sample::Index>;
    let step = prop_oneof![
        3 => Just(Step::Request),
        8 => (0_usize..5, request()).prop_map(|(admin, request)| Step::Approve { admin, request }),
        1 => request().prop_map(|request| Step::End { request }),
        5 => request().prop_map(|request| Step::Complete { request }),
        2 => Just(Step::Enrol),
        4 => prop_oneof![1_u64..30, Just(200)].prop_map(Step::Wait),
    ];
    (step, prop_oneof![4 => Just(0_u8), 1 => 1_u8..4])
}

/// What everybody knows of a request, beside what the table says.
struct Known {
    id: ChangeId,
    secret: RequestSecret,
    at: Timestamp,
    approvals: BTreeSet<usize>,
    is_over: bool,
}

struct World {
    now: Timestamp,
    /// The account after each write, the last one last.
    states: Vec<Account>,
    known: Vec<Known>,
    recovered: usize,
}

impl World {
    fn new() -> Self {
        Self { now: Timestamp::from_secs(START), states: vec![with_app()], known: Vec::new(), recovered: 0 }
    }

    fn present(&self) -> &Account {
        self.states.last().unwrap()
    }

    /// Whether the table takes a write of whoever has seen an earlier account.
    fn writes(&mut self, write: &Write) -> bool {
        let next = write.apply(Some(self.present()));
        self.states.extend(next.clone());
        next.is_some()
    }

    fn does(&mut self, step: &Step, behind: u8) {
        let now = self.now;
        let seen = self.states[self.states.len().saturating_sub(1 + usize::from(behind))].clone();
        let nth = |request: &prop::sample::Index, all: &[Known]| (!all.is_empty()).then(|| request.index(all.len()));
        match step {
            Step::Request => {
                let (token, secret) = (CancelToken::random().unwrap(), RequestSecret::random().unwrap());
                let request = RecoveryRequest::new(&token, &secret, now, WAIT);
                let id = request.id;
                match requested(&seen, request, now) {
                    Ok(write) => {
                        let open = self.present().open_request(now).is_some();
                        if self.writes(&write) {
                            assert!(!open, "one at a time");
                            self.known.push(Known { id, secret, at: now, approvals: BTreeSet::new(), is_over: false });
                        }
                    }
                    Err(NotRequested::Open(open)) => assert!(open.until > now),
                    Err(_) => assert!(!seen.has_factor()),
                }
            }
            Step::Approve { admin: n, request } => {
                let Some(i) = nth(request, &self.known) else { return };
                match approved(&seen, self.known[i].id, &admin(0), &admin(*n), now) {
                    Ok((write, _)) => {
                        if self.writes(&write) {
                            self.known[i].approvals.insert(*n);
                            assert!((1..=3).contains(n), "neither the owner nor a stranger");
                            assert!(self.known[i].approvals.len() <= APPROVALS);
                        }
                    }
                    Err(Approval::NotHis) => assert!([0, 4].contains(n)),
                    Err(_) => {}
                }
            }
            Step::End { request } => {
                let Some(i) = nth(request, &self.known) else { return };
                if let Some(write) = closed(&seen, self.known[i].id, now)
                    && self.writes(&write)
                {
                    self.known[i].is_over = true;
                }
            }
            Step::Complete { request } => {
                let Some(i) = nth(request, &self.known) else { return };
                if let Ok(write) = completed(&seen, &self.known[i].secret, now)
                    && self.writes(&write)
                {
                    let known = &mut self.known[i];
                    assert!(!known.is_over, "cancelled, refused, or completed before");
                    assert_eq!(known.approvals.len(), APPROVALS, "two, and each is another one");
                    assert!(known.approvals.iter().all(|n| (1..=3).contains(n)));
                    assert!(
                        now >= known.at + WAIT && now <= known.at + WAIT + COMPLETED_WITHIN + Duration::from_secs(1)
                    );
                    known.is_over = true;
                    self.recovered += 1;
                    assert!(!self.present().has_factor() && self.present().request.is_none());
                }
            }
            Step::Enrol => {
                let app = with_app().totp;
                let next = Account { totp: app, ..self.present().clone() };
                self.states.push(next);
            }
            Step::Wait(hours) => {
                self.now = now + Duration::from_secs(hours * 3600);
                self.states = vec![self.present().clone()];
            }
        }
    }
}

fn with_app() -> Account {
    let app = Totp { sealed: "k1.owner".to_owned(), since: Timestamp::from_secs(START), step: 0 };
    Account { totp: Some(app), ..Account::default() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_recovered_without_two_admins_before_its_wait_is_over_after_its_end_or_twice(
        steps in prop::collection::vec(step(), 1..60)
    ) {
        let mut world = World::new();
        for (step, behind) in &steps {
            world.does(step, *behind);
        }
    }
}

/// A request of alice that two admins have approved.
fn approved_by_two() -> (Account, RecoveryRequest, RequestSecret) {
    let now = Timestamp::from_secs(START);
    let secret = RequestSecret::random().unwrap();
    let request = RecoveryRequest::new(&CancelToken::random().unwrap(), &secret, now, WAIT);
    let mut account = requested(&with_app(), request.clone(), now).unwrap().apply(Some(&with_app())).unwrap();
    for n in [1, 2] {
        account = approved(&account, request.id, &admin(0), &admin(n), now).unwrap().0.apply(Some(&account)).unwrap();
    }
    (account, request, secret)
}

#[test]
fn a_request_with_two_approvals_is_completed_from_the_end_of_its_wait_until_it_lapses_by_its_secret_once() {
    let (account, request, secret) = approved_by_two();
    let at = |now| completed(&account, &secret, now);
    let second = Duration::from_secs(1);
    let before = Timestamp::from_secs(request.ready_at.as_secs() - 1);
    assert_eq!(at(before), Err(Completion::NotYet { approvals: 2, ready_at: request.ready_at }));
    assert!(at(request.ready_at).is_ok() && at(Timestamp::from_secs(request.until.as_secs() - 1)).is_ok());
    assert_eq!(at(request.until), Err(Completion::NoSuchRequest));
    assert_eq!(at(request.until + second), Err(Completion::NoSuchRequest));
    let other = RequestSecret::random().unwrap();
    assert_eq!(
        completed(&account, &other, request.ready_at),
        Err(Completion::NoSuchRequest),
        "a thief has the password only"
    );
    let write = at(request.ready_at).unwrap();
    let empty = write.apply(Some(&account)).unwrap();
    assert!(!empty.has_factor() && write.apply(Some(&empty)).is_none(), "used up by what it does");
}

#[test]
fn writes_that_do_not_ask_what_the_request_is_lose_approvals_and_recover_after_a_cancellation() {
    let now = Timestamp::from_secs(START);
    let (account, request, secret) = approved_by_two();
    let naive = |write: Write| Write { checks: Vec::new(), ..write };
    // One who has looked before the link was followed completes after it.
    let late = completed(&account, &secret, request.ready_at).unwrap();
    let cancelled = closed(&account, request.id, now).unwrap().apply(Some(&account)).unwrap();
    assert!(late.apply(Some(&cancelled)).is_none());
    assert!(naive(late).apply(Some(&cancelled)).is_some_and(|account| !account.has_factor()));
    // Two who have seen none: of three admins, two are to be counted.
    let open = Account { request: Some(request.clone()), ..with_app() };
    let two = [1, 2].map(|n| approved(&open, request.id, &admin(0), &admin(n), now).unwrap().0);
    let first = two[0].apply(Some(&open)).unwrap();
    assert!(two[1].apply(Some(&first)).is_none(), "looks again");
    let lost = naive(two[1].clone()).apply(Some(&first)).unwrap();
    assert_eq!(lost.request.unwrap().approvals.len(), 1);
}

#[test]
fn one_admin_who_approves_twice_counts_once_and_a_third_is_not_needed() {
    let now = Timestamp::from_secs(START);
    let (account, request, _) = approved_by_two();
    let by = |n| approved(&account, request.id, &admin(0), &admin(n), now).unwrap_err();
    assert!(matches!(by(1), Approval::Already(same) if same.approvals.len() == 2));
    assert_eq!((by(3), by(0), by(4)), (Approval::Enough, Approval::NotHis, Approval::NotHis));
    let alone = Key::new([("user", "alice")]).unwrap();
    assert_eq!(approved(&account, request.id, &alone, &admin(1), now).unwrap_err(), Approval::NotHis, "no tenant");
    let another = CancelToken::random().unwrap().change();
    assert_eq!(approved(&account, another, &admin(0), &admin(1), now).unwrap_err(), Approval::NoSuchRequest);
}

#[test]
fn what_is_written_of_a_request_is_read_back_and_nothing_else() {
    let (account, request, secret) = approved_by_two();
    for request in [request, account.request.unwrap()] {
        let text = request.to_string();
        assert_eq!(text.parse(), Ok(request));
        assert!(!text.contains(secret.as_str()) && text.len() <= 140, "{text}");
        for wrong in [text.replacen('.', "", 1), format!("{text}."), format!("{text}.AA"), format!("x{text}")] {
            assert!(wrong.parse::<RecoveryRequest>().is_err(), "{wrong}");
        }
    }
    assert!("".parse::<RecoveryRequest>().is_err());
    assert!(RequestSecret::parse("x").is_none() && !format!("{secret:?}").contains(secret.as_str()));
}
