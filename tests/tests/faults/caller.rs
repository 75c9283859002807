//! Who calls: the limiter function's executable in a sandbox, or a limiter in this process, for limiters that are wrong on purpose.
//!
//! Invariant: a caller makes one call at a time, and tells what the limiter counted meanwhile.

use crate::limits;
use crate::naive::{Mistake, Naive};
use serde_json::Value;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tollgate::decisions;
use tollgate::{Connection, Counters, DynamoStore, Limiter, Policy, SystemClock};
use tollgate_cli::runtime_api::{Outcome, Sandbox};
use tollgate_dynamodb::meter::Counts;

pub const TABLE: &str = "tollgate-faults";

/// What a decision may take. Enough for a machine that is busy with the other callers, and little enough to wait for.
pub const DEADLINE: Duration = Duration::from_millis(150);

/// The answer about one limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub allowed: bool,
    pub source: String,
    /// Whether it is what the call is refused for.
    pub in_the_way: bool,
}

/// What a caller is told: an answer for each limit, or that there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    Answers(Vec<Answer>),
    Unavailable,
}

/// What the limiter counted of a call, under the names of its metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counted {
    pub round_trips: u64,
    pub throttled: u64,
    pub store_failures: u64,
    pub hot_keys: u64,
    pub contended: u64,
    pub suspended: u64,
    pub refunded: u64,
    pub refunds_lost: u64,
    pub from_memory: u64,
    pub local: u64,
    pub local_denied: u64,
    pub unavailable: u64,
    pub degraded: u64,
    pub breaker_opened: u64,
    pub breaker_closed: u64,
}

/// Somebody who asks for decisions.
pub trait Caller: Send {
    /// Asks for a decision, and waits for what becomes of that.
    fn ask(&mut self, body: &Value) -> impl Future<Output = (Told, Counted)> + Send;
}

/// The limiter function.
pub struct Function {
    sandbox: Sandbox,
    printed: std::fs::File,
    _root: tempfile::TempDir,
}

impl Function {
    /// Starts `program`, which finds the table at `url`.
    pub async fn start(program: &Path, url: &str) -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("tollgate.toml"), limits::policy()).unwrap();
        let output = std::fs::File::create(root.path().join("output")).unwrap();
        let printed = std::fs::File::open(root.path().join("output")).unwrap();
        let deadline = DEADLINE.as_millis().to_string();
        let variables = [
            ("TOLLGATE_TABLE", TABLE),
            ("TOLLGATE_ENDPOINT_URL", url),
            ("TOLLGATE_DEADLINE_MS", &deadline),
            ("TOLLGATE_POLICY_REFRESH_S", "86400"),
            ("RUST_LOG", "off"),
        ];
        let mut sandbox = Sandbox::start_into(output, program, &variables, root.path()).await.unwrap();
        assert_eq!(sandbox.init().await.unwrap(), tollgate_cli::runtime_api::Init::Ready, "{}", program.display());
        let mut function = Self { sandbox, printed, _root: root };
        // What init counted is of no call.
        function.counted();
        function
    }

    /// What was printed since it was last looked at. Metrics are there when the answer is.
    fn counted(&mut self) -> Counted {
        let mut text = String::new();
        self.printed.read_to_string(&mut text).unwrap();
        let lines: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let sum = |name: &str| lines.iter().filter_map(|line| line[name].as_u64()).sum();
        Counted {
            round_trips: sum("RoundTrips"),
            throttled: sum("Throttled"),
            store_failures: sum("StoreFailure"),
            hot_keys: sum("HotKey"),
            contended: sum("Contended"),
            suspended: sum("Suspended"),
            refunded: sum("Refunded"),
            refunds_lost: sum("RefundLost"),
            from_memory: sum("DeniedFromMemory"),
            local: sum("DecidedLocally"),
            local_denied: sum("DeniedLocally"),
            unavailable: sum("Unavailable"),
            degraded: sum("LimiterDegraded"),
            breaker_opened: sum("BreakerOpened"),
            breaker_closed: sum("BreakerClosed"),
        }
    }
}

impl Caller for Function {
    async fn ask(&mut self, body: &Value) -> (Told, Counted) {
        let told = match self.sandbox.invoke(body.to_string()).await.unwrap() {
            Outcome::Response(answer) => answers(&serde_json::from_slice(&answer).unwrap()),
            Outcome::Error(report) if report.error_type == "LimiterUnavailable" => Told::Unavailable,
            other => panic!("{body}: {other:?}"),
        };
        (told, self.counted())
    }
}

/// A limiter in this process.
pub struct Here {
    limiter: Limiter<Naive>,
    policy: Policy,
    counters: Arc<Counters>,
    before: Counts,
}

impl Here {
    /// A limiter that finds the table at `url` and makes `mistake`.
    pub async fn start(url: &str, mistake: Mistake) -> Self {
        let connected = tollgate::connect(&Connection::from_environment().endpoint_url(url)).await.unwrap();
        let counters = Arc::new(Counters::default());
        let store = DynamoStore::new(&connected, TABLE, Arc::new(SystemClock), counters.clone());
        store.warm_up().await.unwrap();
        let limiter = Limiter::new(Naive::new(store, counters.clone(), mistake)).with_deadline(DEADLINE);
        let before = counters.counts();
        Self { limiter, policy: Policy::parse(&limits::policy()).unwrap().policy, counters, before }
    }
}

impl Caller for Here {
    async fn ask(&mut self, body: &Value) -> (Told, Counted) {
        let reply = decisions::decide(&self.policy, &self.limiter, body.to_string().as_bytes()).await;
        let told = match reply.status {
            200 => answers(&reply.body),
            503 => Told::Unavailable,
            _ => panic!("{body}: {reply:?}"),
        };
        let before = std::mem::replace(&mut self.before, self.counters.counts());
        let now = &self.before;
        let counted = Counted {
            round_trips: now.round_trips - before.round_trips,
            throttled: now.throttled - before.throttled,
            store_failures: now.store_failures - before.store_failures,
            hot_keys: now.hot_keys - before.hot_keys,
            contended: now.contended - before.contended,
            suspended: now.suspended - before.suspended,
            refunded: now.refunded - before.refunded,
            refunds_lost: now.refunds_lost - before.refunds_lost,
            from_memory: now.from_memory - before.from_memory,
            local: now.local - before.local,
            local_denied: now.local_denied - before.local_denied,
            unavailable: now.unavailable - before.unavailable,
            degraded: now.degraded - before.degraded,
            breaker_opened: now.breaker_opened - before.breaker_opened,
            breaker_closed: now.breaker_closed - before.breaker_closed,
        };
        (told, counted)
    }
}

fn answers(told: &Value) -> Told {
    let one = |answer: &Value| Answer {
        allowed: answer["allowed"].as_bool().unwrap(),
        source: answer["source"].as_str().unwrap().to_owned(),
        in_the_way: answer["retry_after_ms"].as_u64() != Some(0),
    };
    Told::Answers(told.as_array().unwrap().iter().map(one).collect())
}
