//! What a run is about: who asks for codes, who types which, and how far the search goes.

use super::mutant::Mutant;
use super::referee::Fault;
use std::sync::Arc;
use tollgate_otp::{ChallengeId, Code, Digest, Recipient};
use tollgate_policy::{KeySecrets, OtpRules, Policy};

/// The number of a code in a run, from 1.
pub(crate) type Nth = u8;

/// Most codes of a run.
const CODES: Nth = 6;

/// A code that is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Typed {
    /// The right one of the last message.
    Right,
    /// A wrong one for the last message.
    Wrong,
    /// The right one of the first message.
    First,
}

/// What somebody does, in turn.
#[derive(Debug, Clone)]
pub(crate) enum Script {
    /// Asks for so many codes.
    Sends(u8),
    /// Types these.
    Types(Vec<Typed>),
}

/// Which secrets a process was started with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keyring {
    /// The old one, before the rotation.
    Old,
    /// The new one, and the old one that is being retired.
    Both,
    /// The new one.
    New,
}

/// Somebody, how many seconds the clock of the process that serves him is ahead, and its secrets.
#[derive(Debug, Clone)]
pub(crate) struct Somebody {
    pub(crate) script: Script,
    pub(crate) ahead: i64,
    pub(crate) keyring: Keyring,
}

impl Somebody {
    pub(crate) fn turns(&self) -> usize {
        match &self.script {
            Script::Sends(n) => usize::from(*n),
            Script::Types(codes) => codes.len(),
        }
    }
}

pub(crate) fn sends(codes: u8) -> Somebody {
    Somebody { script: Script::Sends(codes), ahead: 0, keyring: Keyring::Old }
}

pub(crate) fn types(codes: &[Typed]) -> Somebody {
    Somebody { script: Script::Types(codes.to_vec()), ahead: 0, keyring: Keyring::Old }
}

impl Somebody {
    pub(crate) fn ahead(self, secs: i64) -> Self {
        Self { ahead: secs, ..self }
    }

    pub(crate) fn with(self, keyring: Keyring) -> Self {
        Self { keyring, ..self }
    }
}

/// What most runs go by: after a code the next one may be sent while the account's window still is.
pub(crate) const SHORT_COOLDOWN: &str =
    "budget = '3/5min'\ncooldown = { first = '30s', most = '1min', forget = '100s' }\n";
/// The account's window is over before the next code may be sent.
pub(crate) const SHORT_WINDOW: &str = "budget = '3/1min'\ncooldown = { first = '90s', most = '90s', forget = '1s' }\n";

/// The rules, secrets and codes of a run.
#[derive(Debug)]
pub(crate) struct World {
    rules: OtpRules,
    pub(crate) recipient: Recipient,
    codes: Vec<(ChallengeId, Code)>,
    pub(crate) wrong: Code,
    old: KeySecrets,
    both: KeySecrets,
    new: KeySecrets,
}

impl World {
    fn new(figures: &str) -> Self {
        let text =
            format!("version = 1\nlimits = {{}}\n[otp]\npurposes = ['login']\nattempts = 2\nttl = '1min'\n{figures}");
        let policy = Policy::parse(&text).unwrap().policy;
        let (rules, login) = policy.otp_for("login").unwrap();
        let recipient = Recipient::new("user:alice".parse().unwrap(), login.clone(), "+40721234567").unwrap();
        let code = |n: Nth| (ChallengeId::new([n; 16]), Code::parse(&format!("{n:06}"), 6).unwrap());
        let (old, new) = (format!("k1={}", "A".repeat(43)), format!("k2={}E", "B".repeat(42)));
        Self {
            rules: rules.clone(),
            recipient,
            codes: (1..=CODES).map(code).collect(),
            wrong: Code::parse("999999", 6).unwrap(),
            both: format!("{new},{old}").parse().unwrap(),
            old: old.parse().unwrap(),
            new: new.parse().unwrap(),
        }
    }

    pub(crate) fn rules(&self) -> &OtpRules {
        &self.rules
    }

    pub(crate) fn secrets(&self, keyring: Keyring) -> &KeySecrets {
        match keyring {
            Keyring::Old => &self.old,
            Keyring::Both => &self.both,
            Keyring::New => &self.new,
        }
    }

    pub(crate) fn code(&self, n: Nth) -> &(ChallengeId, Code) {
        &self.codes[usize::from(n) - 1]
    }

    /// What a process with these secrets stores of a code.
    pub(crate) fn digest(&self, n: Nth, keyring: Keyring) -> Digest {
        let (challenge, code) = self.code(n);
        self.recipient.digest(self.secrets(keyring), *challenge, code).unwrap()
    }

    /// Which code an item has.
    pub(crate) fn nth(&self, challenge: ChallengeId) -> Nth {
        (1..=CODES).find(|n| self.code(*n).0 == challenge).unwrap()
    }
}

/// Who does what, and the bounds of the search.
#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    pub(crate) world: Arc<World>,
    pub(crate) everybody: Vec<Somebody>,
    /// By how many seconds true time may jump.
    pub(crate) jumps: Vec<u64>,
    /// How many jumps there are.
    pub(crate) advances: u8,
    /// How many requests, replies or callers get lost, deadlines apart.
    pub(crate) losses: u8,
    /// Whether the table deletes the item once it may.
    pub(crate) deletes: bool,
    /// Which guard is missing.
    pub(crate) mutant: Mutant,
    /// The only fault to look for, if not all.
    pub(crate) only: Option<Fault>,
}

impl Scenario {
    /// Whoever has waited longer than this many seconds since he made his write gives up.
    pub(crate) const DEADLINE: u64 = 1;
    /// What is under way for longer than this many seconds never arrives.
    pub(crate) const LATEST: u64 = 360;

    pub(crate) fn new(everybody: Vec<Somebody>, jumps: &[u64], advances: u8) -> Self {
        let (world, jumps, mutant) = (Arc::new(World::new(SHORT_COOLDOWN)), jumps.to_vec(), Mutant::None);
        Self { world, everybody, jumps, advances, losses: 0, deletes: false, mutant, only: None }
    }

    pub(crate) fn by(self, figures: &str) -> Self {
        Self { world: Arc::new(World::new(figures)), ..self }
    }

    pub(crate) fn losing(self, losses: u8) -> Self {
        Self { losses, ..self }
    }

    pub(crate) fn deleting(self) -> Self {
        Self { deletes: true, ..self }
    }

    pub(crate) fn without(&self, guard: Mutant, fault: Fault) -> Self {
        Self { mutant: guard, only: Some(fault), ..self.clone() }
    }

    /// The difference between the fastest and the slowest clock, the table's included, seconds.
    pub(crate) fn spread(&self) -> u64 {
        let offsets = || self.everybody.iter().map(|somebody| somebody.ahead).chain([0]);
        (offsets().max().unwrap() - offsets().min().unwrap()).unsigned_abs()
    }
}
