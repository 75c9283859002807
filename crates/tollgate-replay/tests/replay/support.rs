//! Rules and log lines for tests.

use tollgate_core::{Charge, Charges, ItemKey, Key, LimitName, PenaltyRule, Terms, TokenBucket};
use tollgate_replay::{Matched, Options, Report, Resolved, Rules, replay};

/// A limit counted by one dimension.
#[derive(Debug, Clone)]
pub(crate) struct Limit {
    name: LimitName,
    dimension: &'static str,
    bucket: TokenBucket,
    penalty: Option<PenaltyRule>,
}

impl Limit {
    /// The same, with locks.
    pub(crate) fn locking(self, rule: PenaltyRule) -> Self {
        Self { penalty: Some(rule), ..self }
    }
}

/// `n` per `secs` seconds, at most `burst` at once, for each value of `dimension`.
pub(crate) fn limit(name: &str, dimension: &'static str, n: u64, secs: u64, burst: u64) -> Limit {
    let bucket = TokenBucket::new(n, secs * 1_000_000_000, burst).unwrap();
    Limit { name: LimitName::new(name).unwrap(), dimension, bucket, penalty: None }
}

/// Limits, and routes that charge them by path: (path, [(place of the limit, cost)]).
pub(crate) struct TestRules {
    pub(crate) limits: Vec<Limit>,
    pub(crate) routes: Vec<(&'static str, Vec<(usize, u64)>)>,
}

/// One limit charged on every request.
pub(crate) fn everywhere(limit: Limit) -> TestRules {
    TestRules { limits: vec![limit], routes: vec![("", vec![(0, 1)])] }
}

impl Rules for TestRules {
    fn limits(&self) -> Vec<LimitName> {
        self.limits.iter().map(|limit| limit.name.clone()).collect()
    }

    fn matched(&self, _method: &str, path: &str) -> Matched {
        if path == "/healthz" {
            return Matched::Exempt;
        }
        let route = self.routes.iter().position(|(prefix, _)| path.starts_with(prefix));
        route.map_or(Matched::Unmatched, Matched::Route)
    }

    fn resolve(&self, route: usize, value: &dyn Fn(&str) -> Option<String>) -> Resolved {
        let mut resolved = Resolved::default();
        for (place, cost) in &self.routes[route].1 {
            let Limit { name, dimension, bucket, penalty } = self.limits[*place].clone();
            resolved = match value(dimension) {
                Some(value) => {
                    let key = Key::new([(dimension, value)]).unwrap();
                    let terms = Terms::new(1, bucket);
                    let charge = Charge { penalty, ..Charge::new(name, terms, *cost) };
                    resolved.charged(Charges::new(ItemKey::shared(key), vec![charge]).unwrap())
                }
                None => resolved.missing(name, dimension),
            };
        }
        resolved
    }
}

/// A line of a request at `secs` after 17 May 2015, 10:00 UTC.
pub(crate) fn line(client: &str, user: &str, secs: u64, path: &str) -> String {
    let (hour, minute, second) = (10 + secs / 3600, secs / 60 % 60, secs % 60);
    let time = format!("17/May/2015:{hour:02}:{minute:02}:{second:02} +0000");
    format!("{client} - {user} [{time}] \"GET {path} HTTP/1.1\" 200 12 \"-\" \"curl/8\"\n")
}

pub(crate) fn run(log: &[u8], rules: &TestRules) -> Report {
    replay(log, rules, &Options::default()).unwrap()
}
