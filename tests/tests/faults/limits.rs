//! The limits of the schedules: what the policy says of them, and what any of them may admit.
//!
//! Invariant: one table makes both the policy and the bounds. The bounds are stated here anew, from what README promises of each
//! algorithm, and share no code with the limiter.

use std::fmt::Write;

/// Processes that share each limit while each decides by itself.
pub const INSTANCES: u64 = 3;

/// So long that nothing comes back during a test.
const CENTURY: &str = "100year";
const SECOND_NS: u64 = 1_000_000_000;

/// What happens while the table gives no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    Local,
    Closed,
    Open,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    Bucket,
    Pacer,
    Fixed,
    Sliding,
    Log,
}

/// A limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    pub name: &'static str,
    pub dimension: &'static str,
    pub algorithm: Algorithm,
    /// Tokens of the rate's period, and all that fit at once.
    pub most: u64,
    /// The period in seconds, if tokens come back during a test.
    pub period_s: Option<u64>,
    pub rule: Rule,
    pub atomic: bool,
}

const fn slow(name: &'static str, dimension: &'static str, algorithm: Algorithm, most: u64, rule: Rule) -> Limit {
    Limit { name, dimension, algorithm, most, period_s: None, rule, atomic: false }
}

pub const LIMITS: [Limit; 15] = [
    slow("bucket", "user", Algorithm::Bucket, 8, Rule::Local),
    slow("strict", "user", Algorithm::Bucket, 8, Rule::Closed),
    slow("lenient", "user", Algorithm::Bucket, 8, Rule::Open),
    slow("fixed", "user", Algorithm::Fixed, 7, Rule::Closed),
    slow("sliding", "user", Algorithm::Sliding, 7, Rule::Local),
    slow("log", "user", Algorithm::Log, 7, Rule::Closed),
    slow("pacer", "user", Algorithm::Pacer, 6, Rule::Closed),
    Limit { period_s: Some(1), ..slow("fast", "user", Algorithm::Bucket, 5, Rule::Local) },
    Limit { period_s: Some(1), ..slow("fast-window", "user", Algorithm::Fixed, 4, Rule::Local) },
    Limit { period_s: Some(1), ..slow("fast-log", "user", Algorithm::Log, 4, Rule::Closed) },
    slow("tenant", "tenant", Algorithm::Bucket, 9, Rule::Local),
    slow("tenant-strict", "tenant", Algorithm::Sliding, 9, Rule::Closed),
    slow("address", "api_key", Algorithm::Fixed, 10, Rule::Open),
    slow("probe", "user", Algorithm::Bucket, 1_000, Rule::Closed),
    Limit { atomic: true, ..slow("together", "tenant", Algorithm::Bucket, 6, Rule::Closed) },
];

/// The limit of this name.
pub fn limit(name: &str) -> &'static Limit {
    LIMITS.iter().find(|limit| limit.name == name).expect("a limit of the table")
}

/// The policy file.
pub fn policy() -> String {
    let mut text = format!("version = 1\ninstances = {INSTANCES}\n");
    for Limit { name, dimension, algorithm, most, period_s, rule, atomic } in LIMITS {
        let (algorithm, rate, burst) = match algorithm {
            Algorithm::Bucket => ("token-bucket", most, Some(most)),
            // One goes, and the burst may be ahead of its time.
            Algorithm::Pacer => ("pacer", 1, Some(most - 1)),
            Algorithm::Fixed => ("fixed-window", most, None),
            Algorithm::Sliding => ("sliding-window", most, None),
            Algorithm::Log => ("sliding-log", most, None),
        };
        let period = period_s.map_or(CENTURY.to_owned(), |s| format!("{s}s"));
        let rule = match rule {
            Rule::Local => "local",
            Rule::Closed => "closed",
            Rule::Open => "open",
        };
        let _ = writeln!(text, "[limits.{name}]\nkey = ['{dimension}']\nalgorithm = '{algorithm}'");
        let _ = writeln!(text, "rate = '{rate}/{period}'\non_store_failure = '{rule}'\natomic = {atomic}");
        let _ = burst.map(|burst| writeln!(text, "burst = {burst}"));
    }
    text
}

impl Limit {
    /// The most that may be admitted in calls that were asked and answered within `from..=to`, in nanoseconds of the wall clock.
    pub fn bound(&self, from: u64, to: u64) -> u64 {
        self.bound_of(self.most, 1, from, to)
    }

    /// The most that one process may admit by itself in such calls, the dearest of which costs `dearest`.
    pub fn bound_alone(&self, dearest: u64, from: u64, to: u64) -> u64 {
        self.bound_of((self.most / INSTANCES).max(dearest).max(1), INSTANCES, from, to)
    }

    fn bound_of(&self, most: u64, share: u64, from: u64, to: u64) -> u64 {
        let Some(period) = self.period_s.map(|s| s * SECOND_NS) else { return most };
        match self.algorithm {
            // What was there, and what came back since.
            Algorithm::Bucket | Algorithm::Pacer => most + self.most * (to - from) / (period * share),
            // Each window anew.
            Algorithm::Fixed | Algorithm::Sliding => most * (to / period - from / period + 1),
            Algorithm::Log => most * ((to - from) / period + 1),
        }
    }
}
