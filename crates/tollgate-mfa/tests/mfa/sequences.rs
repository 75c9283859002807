//! Sequences: a sensitive action is reached only with a fresh, sufficient authentication, by the reckoning of somebody who has seen it
//! all.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;
use tollgate_core::Timestamp;
use tollgate_mfa::{Authentication, Evidence, LEEWAY, Revoke, Session, SessionWrite, Subject, Verified, auth_time};
use tollgate_policy::StepUp;

const START: u64 = 1_767_225_600;
const MAX_AGE: u64 = 300;

/// What can happen.
#[derive(Debug, Clone)]
enum Step {
    /// A sign-in: a new session, whose tokens say when it was.
    SignIn { acr: bool },
    /// A token of a session is made anew; whoever makes it may move `auth_time` to now, though nobody has proved anything.
    Refresh { session: usize, moves: bool },
    /// A verification of a factor begins in a session.
    Begin { session: usize },
    /// It succeeds.
    Verify { session: usize },
    /// All is revoked.
    Revoke,
    /// The server's clock goes on.
    Wait { seconds: u64 },
    /// It is set back.
    Back { seconds: u64 },
    /// The sensitive action, with the token that the session has now and how it is spelt.
    Ask { session: usize, spelling: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let session = 0_usize..3;
    prop_oneof![
        2 => any::<bool>().prop_map(|acr| Step::SignIn { acr }),
        2 => (session.clone(), any::<bool>()).prop_map(|(session, moves)| Step::Refresh { session, moves }),
        2 => session.clone().prop_map(|session| Step::Begin { session }),
        2 => session.clone().prop_map(|session| Step::Verify { session }),
        1 => Just(Step::Revoke),
        3 => (0_u64..400).prop_map(|seconds| Step::Wait { seconds }),
        1 => (0_u64..400).prop_map(|seconds| Step::Back { seconds }),
        6 => (session, 0_usize..6).prop_map(|(session, spelling)| Step::Ask { session, spelling }),
    ]
}

/// A session, as its tokens tell it and as it really is.
#[derive(Debug, Clone, Default)]
struct Known {
    /// `auth_time` of its present token, and whether that has `acr`.
    claims: u64,
    has_acr: bool,
    /// When its owner really signed in, and whether all was revoked since.
    signed_in: u64,
    is_revoked: bool,
    /// Whether the gate has seen the real `auth_time`; before that nobody can tell that it was moved.
    is_seen: bool,
    is_moved: bool,
    /// The verification under way: its epoch and instant.
    begun: Option<(u64, Timestamp)>,
    /// When it really last verified a factor.
    verified: Option<(u64, bool)>,
}

#[derive(Debug, Default)]
struct World {
    now: u64,
    subject: Option<Subject>,
    table: BTreeMap<usize, Session>,
    sessions: Vec<Known>,
}

impl World {
    fn now(&self) -> Timestamp {
        Timestamp::from_secs(self.now)
    }

    fn write(&mut self, session: usize, write: &SessionWrite) {
        if let Some(after) = write.apply(self.table.get(&session)) {
            self.table.insert(session, after);
        }
    }

    fn revoke(&mut self) {
        let write = Revoke::next(self.now(), self.subject);
        self.subject = Some(write.apply(self.subject).expect("the write that fits"));
        let now = self.now;
        for known in &mut self.sessions {
            // Tokens are dated by the issuer's clock: a revocation by one that is further behind that than it may be leaves them.
            known.is_revoked |= known.signed_in <= now + LEEWAY.as_secs();
            known.verified = known.verified.map(|(at, _)| (at, true));
        }
    }

    /// As [`tollgate_mfa::Sessions::judge`], on this table.
    fn ask(&mut self, session: usize, claim: &serde_json::Value, required: &StepUp) -> bool {
        let known = self.sessions[session].clone();
        let acr = known.has_acr.then(|| "mfa".to_owned());
        let token = auth_time::read(claim).map(|at| Authentication { at, acr, amr: Vec::new() });
        let subject = self.subject.unwrap_or_default();
        let mut evidence = Evidence { token, subject, session: self.table.get(&session).cloned() };
        if let Some(at) = evidence.sign_in(self.now()) {
            self.write(session, &SessionWrite::SignIn(at));
            evidence.session = self.table.get(&session).cloned();
        }
        evidence.judge(required, self.now()).is_ok()
    }
}

/// The claim of a token, right and wrong: only the first two are times.
fn spelt(seconds: u64, spelling: usize) -> serde_json::Value {
    match spelling {
        0 => seconds.into(),
        1 => seconds.to_string().into(),
        2 => (seconds * 1000).into(),
        3 => serde_json::Value::Null,
        4 => format!("{seconds} ").into(),
        _ => (seconds + 86_400).into(),
    }
}

fn run(steps: &[Step]) -> Result<(), TestCaseError> {
    let mut required = StepUp::within(Duration::from_secs(MAX_AGE));
    required.acr = vec!["mfa".to_owned()];
    let mut world = World { now: START, ..World::default() };
    for step in steps {
        let now = world.now;
        let nth = |session: &usize| *session % world.sessions.len().max(1);
        match step {
            Step::SignIn { acr } => {
                world.sessions.push(Known { claims: now, has_acr: *acr, signed_in: now, ..Known::default() });
            }
            Step::Wait { seconds } => world.now += seconds,
            Step::Back { seconds } => world.now -= seconds,
            Step::Revoke => world.revoke(),
            _ if world.sessions.is_empty() => {}
            Step::Refresh { session, moves } => {
                let session = nth(session);
                let known = &mut world.sessions[session];
                // Whatever the gate said to it.
                if *moves && known.is_seen {
                    (known.claims, known.is_moved) = (now.max(known.claims), true);
                }
            }
            Step::Begin { session } => {
                let session = nth(session);
                world.sessions[session].begun = Some((world.subject.unwrap_or_default().epoch, world.now()));
            }
            Step::Verify { session } => {
                let session = nth(session);
                let Some((epoch, at)) = world.sessions[session].begun.take() else { continue };
                let authentication = Authentication { at, acr: Some("mfa".to_owned()), amr: Vec::new() };
                world.write(session, &SessionWrite::Verify(Verified { authentication, epoch }));
                let is_revoked = world.subject.unwrap_or_default().epoch != epoch;
                let known = &mut world.sessions[session];
                let is_latest = known.verified.is_none_or(|(last, _)| last <= at.as_secs());
                if is_latest {
                    known.verified = Some((at.as_secs(), is_revoked));
                }
            }
            Step::Ask { session, spelling } => {
                let session = nth(session);
                let claim = spelt(world.sessions[session].claims, *spelling);
                let passed = world.ask(session, &claim, &required);
                let told = world.sessions[session].claims;
                world.sessions[session].is_seen |= *spelling < 2 && told <= now + LEEWAY.as_secs();
                let known = &world.sessions[session];
                let fresh = |at: u64| at + MAX_AGE >= now && at <= now + LEEWAY.as_secs();
                let by_token = known.has_acr && !known.is_revoked && *spelling < 2 && fresh(known.signed_in);
                let by_record = known.verified.is_some_and(|(at, is_revoked)| !is_revoked && fresh(at));
                prop_assert!(!passed || by_token || by_record, "{known:?} at {now}, {:?}", world.table.get(&session));
                // What the rules promise is kept as well, where no clock has made a revocation late.
                let in_doubt = world.subject.and_then(|subject| subject.revoked).is_some();
                let owed = by_record || (by_token && !in_doubt && !known.is_moved);
                prop_assert!(passed || !owed, "{known:?} at {now}");
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    #[test]
    fn no_sequence_reaches_a_sensitive_action_without_a_fresh_sufficient_authentication(
        steps in prop::collection::vec(step(), 1..40)
    ) {
        run(&steps)?;
    }
}
