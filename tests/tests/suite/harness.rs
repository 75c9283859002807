//! What the tests share: a table, stores on it, keys that nobody else has, charges, and the command.

use std::future::Future;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tollgate::testing::{ManualClock, MemoryStore};
use tollgate::{Connection, Counters, Decision, DynamoStore, Limiter, Store, SystemClock, Timestamp};
use tollgate_cli::embedded::Embedded;
use tollgate_core::{Charge, Charges, Clock, ItemKey, Key, LimitName, Terms, TokenBucket};
use tollgate_dynamodb::connect::Connected;
use tollgate_dynamodb::meter::Counts;
use tollgate_dynamodb::table::{CreateOptions, create, exists};

pub const TABLE: &str = "tollgate-test";
pub const SECOND: u64 = 1_000_000_000;
/// Nobody should fail for the slowness of a shared machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The endpoint that store tests use: one for the whole test process.
pub async fn endpoint() -> String {
    static EMBEDDED: OnceLock<Embedded> = OnceLock::new();
    static STARTING: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    let _one_at_a_time = STARTING.lock().await;
    let url = match std::env::var("TOLLGATE_TEST_ENDPOINT") {
        Ok(url) => url,
        Err(_) => match EMBEDDED.get() {
            Some(embedded) => embedded.endpoint().to_owned(),
            None => {
                let embedded = Embedded::start(None).await.expect("an embedded DynamoDB");
                EMBEDDED.get_or_init(|| embedded).endpoint().to_owned()
            }
        },
    };
    let connected = connected(&url).await;
    if !exists(&connected, TABLE).await.expect("the endpoint answers") {
        match create(&connected, TABLE, CreateOptions::default()).await {
            // A server without TTL keeps what has expired; no test waits for it to go.
            Ok(_) | Err(tollgate_dynamodb::Error::Incomplete { .. }) => {}
            Err(error) => panic!("no table: {error}"),
        }
    }
    url
}

pub async fn connected(url: &str) -> Connected {
    tollgate::connect(&Connection::from_environment().endpoint_url(url)).await.expect("a connection")
}

/// The SDK's own client, for what somebody else does to the table.
pub fn raw(url: &str) -> aws_sdk_dynamodb::Client {
    let config = aws_sdk_dynamodb::Config::builder()
        .endpoint_url(url)
        .region(aws_sdk_dynamodb::config::Region::new("us-east-1"))
        .credentials_provider(aws_sdk_dynamodb::config::Credentials::new("a", "b", None, None, "test"))
        .http_client(aws_smithy_http_client::Builder::new().build_http())
        .build();
    aws_sdk_dynamodb::Client::from_conf(config)
}

/// A limiter with a memory and a connection of its own, and a manual clock that starts at the present.
pub struct Client {
    pub limiter: Limiter<DynamoStore>,
    pub clock: ManualClock,
    pub counters: Arc<Counters>,
}

impl Client {
    pub async fn new() -> Self {
        Self::at(ManualClock::new(SystemClock.now())).await
    }

    pub async fn at(clock: ManualClock) -> Self {
        let connected = connected(&endpoint().await).await;
        let counters = Arc::new(Counters::default());
        let store = DynamoStore::with_trusted_clock(&connected, TABLE, Arc::new(clock.clone()), counters.clone());
        store.warm_up().await.expect("a table");
        Self { limiter: Limiter::new(store).with_deadline(PATIENCE), clock, counters }
    }

    /// It asks the store even where it knows of a denial.
    pub fn forgetting(mut self) -> Self {
        self.limiter = self.limiter.denying_from_memory_for(Duration::ZERO);
        self
    }

    pub async fn take(&self, charges: &Charges) -> Decision {
        self.take_all(std::slice::from_ref(charges)).await
    }

    pub async fn take_all(&self, charges: &[Charges]) -> Decision {
        self.limiter.take(charges).await.expect("an answer")
    }

    /// Decides and returns what it cost: round trips and write units.
    pub async fn measured(&self, charges: &Charges) -> (Decision, u64, u64) {
        self.measured_all(std::slice::from_ref(charges)).await
    }

    pub async fn measured_all(&self, charges: &[Charges]) -> (Decision, u64, u64) {
        costs(&self.counters, self.take_all(charges)).await
    }

    pub fn counts(&self) -> Counts {
        self.counters.counts()
    }

    pub fn advance_ms(&self, ms: u64) -> Timestamp {
        self.clock.advance(Duration::from_millis(ms))
    }
}

/// The shared item of a key that nobody else has.
pub fn key() -> ItemKey {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let n = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let now = SystemClock.now().as_nanos();
    ItemKey::shared(Key::new([("test", format!("{}-{now}-{n}", std::process::id()))]).unwrap())
}

pub fn bucket(n: u64, period_ns: u64, burst: u64) -> TokenBucket {
    TokenBucket::new(n, period_ns, burst).unwrap()
}

pub fn charge(limit: &str, terms: Terms, cost: u64) -> Charge {
    Charge::new(LimitName::new(limit).unwrap(), terms, cost)
}

/// A charge of one token on one limit.
pub fn one(key: &ItemKey, n: u64, period_ns: u64, burst: u64) -> Charges {
    costing(key, n, period_ns, burst, 1)
}

pub fn costing(key: &ItemKey, n: u64, period_ns: u64, burst: u64, cost: u64) -> Charges {
    let charge = charge("limit", Terms::new(1, bucket(n, period_ns, burst)), cost);
    Charges::new(key.clone(), vec![charge]).unwrap()
}

/// The command, as built with these tests.
pub fn tollgate() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate-under-test"));
    // What the machine's user has configured is not part of a test.
    for variable in [
        "TOLLGATE_ENDPOINT_URL",
        "TOLLGATE_TABLE",
        "TOLLGATE_POLICY",
        "TOLLGATE_KEY_SECRETS",
        "TOLLGATE_KEY_SECRETS_PARAMETER",
        "TOLLGATE_WAF_ENDPOINT_URL",
        "RUST_LOG",
        "AWS_PROFILE",
    ] {
        command.env_remove(variable);
    }
    command.env("AWS_EC2_METADATA_DISABLED", "true").env("HOME", "/nonexistent");
    for variable in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_DEFAULT_REGION"] {
        command.env_remove(variable);
    }
    command
}

pub fn run(args: &[&str]) -> Output {
    tollgate().args(args).output().expect("the command runs")
}

/// From the root of the repository, where the sample policy is found by itself.
pub fn run_at_root(args: &[&str]) -> Output {
    tollgate().current_dir(repository(".")).args(args).output().expect("the command runs")
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

pub fn json(output: &Output) -> serde_json::Value {
    serde_json::from_str(&stdout(output)).unwrap_or_else(|e| panic!("{e}: {} {}", stdout(output), stderr(output)))
}

/// The answer, and its round trips and write units.
pub async fn costs<T>(counters: &Counters, answer: impl Future<Output = T>) -> (T, u64, u64) {
    let before = counters.counts();
    // Boxed, since the SDK's futures are large.
    let answer = Box::pin(answer).await;
    let after = counters.counts();
    (answer, after.round_trips - before.round_trips, after.write_units - before.write_units)
}

/// A file of the repository.
pub fn repository(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// What the bucket of the only limit of `charges` has left in a store in memory.
pub fn remaining(memory: &MemoryStore, charges: &Charges) -> u64 {
    let item = memory.item(charges.item()).unwrap_or_default();
    let bucket = charges.charges()[0].terms.figures.token_bucket().unwrap();
    bucket.remaining(item.buckets.values().next().map(|b| b.tat), memory.moment().now)
}
