//! What the callers of one schedule ask for, one call after the other, and what the network does meanwhile.
//!
//! Invariant: a schedule follows from its seed alone.

use crate::fault::{Cut, Weather};
use crate::limits::{Limit, limit};
use serde_json::{Value, json};
use std::time::Duration;
use tollgate::{ItemKey, Key};
use tollgate_dynamodb::partition_key;

/// Processes that call.
pub const CALLERS: usize = 3;

/// One limit of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    pub limit: &'static Limit,
    pub key: String,
    pub cost: u64,
}

/// A call that is to be made.
#[derive(Debug, Clone)]
pub struct Planned {
    pub wanted: Vec<Wanted>,
    pub after: Duration,
    pub cut: Option<Cut>,
}

/// What happens.
#[derive(Debug, Clone)]
pub struct Schedule {
    pub seed: u64,
    pub weather: Weather,
    /// The calls of each caller, in order.
    pub calls: Vec<Vec<Planned>>,
    /// A user's key, for calls when all is well again.
    pub user: String,
}

/// What a call can be on. Limits of one dimension share an item.
const CALLS: [&[&str]; 20] = [
    &["bucket"],
    &["bucket"],
    &["strict"],
    &["lenient"],
    &["fixed"],
    &["sliding"],
    &["log"],
    &["pacer"],
    &["fast"],
    &["fast-window"],
    &["fast-log"],
    &["bucket", "log"],
    &["bucket", "tenant"],
    &["strict", "tenant"],
    &["log", "tenant-strict"],
    &["lenient", "fixed", "tenant"],
    &["bucket", "tenant", "address"],
    &["strict", "tenant-strict", "address"],
    &["strict", "together"],
    &["bucket", "together", "address"],
];

impl Wanted {
    /// The item that it is on.
    pub fn item(&self) -> String {
        let key = Key::new([(self.limit.dimension, self.key.as_str())]).expect("a key");
        partition_key::of(&ItemKey::shared(key))
    }
}

impl Schedule {
    /// The schedule of `seed`, on keys that begin with `prefix`.
    pub fn new(prefix: &str, seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let weather = Weather::drawn(&mut random, seed);
        // A few kinds of calls, so that the few tokens are fought for.
        let kinds: Vec<_> = (0..random.usize(2..=5)).map(|_| CALLS[random.usize(..CALLS.len())]).collect();
        let calls = (0..CALLERS).map(|_| calls(&mut random, &kinds, &format!("{prefix}-{seed}"))).collect();
        Self { seed, weather, calls, user: key(&format!("{prefix}-{seed}"), "user", 0) }
    }
}

fn key(of: &str, dimension: &str, which: usize) -> String {
    format!("{of}-{dimension}-{which}")
}

fn calls(random: &mut fastrand::Rng, kinds: &[&[&str]], of: &str) -> Vec<Planned> {
    let count = random.usize(5..=9);
    let cut = (random.u64(..4) == 0).then(|| {
        let kind = if random.u64(..4) == 0 { Cut::Silent } else { Cut::Refused };
        let from = random.usize(..count);
        (kind, from..from + random.usize(1..=7))
    });
    let planned = |i: usize| {
        let user = random.usize(..2);
        let wanted = kinds[random.usize(..kinds.len())].iter().map(|name| {
            let limit = limit(name);
            let which = if limit.dimension == "user" { user } else { 0 };
            let cost = if random.u64(..4) == 0 { random.u64(2..=3) } else { 1 };
            Wanted { limit, key: key(of, limit.dimension, which), cost }
        });
        let wanted = wanted.collect();
        let after = Duration::from_millis(random.u64(..8));
        Planned { wanted, after, cut: cut.as_ref().filter(|(_, calls)| calls.contains(&i)).map(|(kind, _)| *kind) }
    };
    (0..count).map(planned).collect()
}

/// The body of the request for a decision.
pub fn body(wanted: &[Wanted]) -> Value {
    let one = |w: &Wanted| json!({ "limit": w.limit.name, "key": { w.limit.dimension: w.key }, "cost": w.cost });
    Value::Array(wanted.iter().map(one).collect())
}
