//! What the tests of functions share: a table, a folder with a policy, sandboxes, and answers taken apart.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use tollgate::{Connection, Counters, DynamoStore, SystemClock};
use tollgate_cli::embedded::Embedded;
use tollgate_cli::runtime_api::{Outcome, Sandbox};
use tollgate_dynamodb::table::{CreateOptions, create, exists};

pub const TABLE: &str = "tollgate-lambda-test";
/// Nobody should fail for the slowness of a shared machine.
pub const PATIENCE_MS: &str = "60000";

/// Secrets for policies that count by personal values or devices.
pub const SECRETS: (&str, &str) = ("TOLLGATE_KEY_SECRETS", "k1=AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8");

/// The file that a function's output goes to.
const OUTPUT: &str = "output";

pub const LIMITER: &str = env!("CARGO_BIN_EXE_limiter-under-test");
pub const AUTHORIZER: &str = env!("CARGO_BIN_EXE_authorizer-under-test");
pub const MFA: &str = env!("CARGO_BIN_EXE_mfa-under-test");
pub const OTP: &str = env!("CARGO_BIN_EXE_otp-under-test");
pub const COURIER: &str = env!("CARGO_BIN_EXE_courier-under-test");
pub const SENTINEL: &str = env!("CARGO_BIN_EXE_sentinel-under-test");
pub const SAMPLE_API: &str = env!("CARGO_BIN_EXE_sample-api-under-test");
pub const WEBHOOK: &str = env!("CARGO_BIN_EXE_webhook-under-test");

/// The endpoint with the table: one for the whole test process.
pub async fn endpoint() -> String {
    static EMBEDDED: OnceLock<Embedded> = OnceLock::new();
    static STARTING: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    let _one_at_a_time = STARTING.lock().await;
    let url = match (std::env::var("TOLLGATE_TEST_ENDPOINT"), EMBEDDED.get()) {
        (Ok(url), _) => url,
        (Err(_), Some(embedded)) => embedded.endpoint().to_owned(),
        (Err(_), None) => {
            let embedded = Embedded::start(None).await.expect("an embedded DynamoDB");
            EMBEDDED.get_or_init(|| embedded).endpoint().to_owned()
        }
    };
    let connected = tollgate::connect(&Connection::from_environment().endpoint_url(&url)).await.expect("a connection");
    if !exists(&connected, TABLE).await.expect("the endpoint answers") {
        create(&connected, TABLE, CreateOptions::default()).await.expect("a table");
    }
    url
}

/// The same table, for whoever works on it beside the functions.
pub async fn store() -> DynamoStore {
    let connection = Connection::from_environment().endpoint_url(endpoint().await);
    let connected = tollgate::connect(&connection).await.unwrap();
    let store = DynamoStore::new(&connected, TABLE, Arc::new(SystemClock), Arc::new(Counters::default()));
    store.warm_up().await.unwrap();
    store
}

/// A name that no other test, and no earlier run, has used.
pub fn unique(name: &str) -> String {
    format!("{name}-{:016x}", rand())
}

fn rand() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::hash::RandomState::new().build_hasher().finish()
}

/// A folder as Lambda would unpack it.
pub struct TaskRoot(tempfile::TempDir);

impl TaskRoot {
    pub fn empty() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn with_policy(text: &str) -> Self {
        let root = Self::empty();
        std::fs::write(root.path().join("tollgate.toml"), text).unwrap();
        root
    }

    pub fn with_sample_policy() -> Self {
        let sample = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../infra/tollgate.toml");
        Self::with_policy(&std::fs::read_to_string(sample).unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

/// A function under test, in a sandbox that stays alive or the test fails.
pub struct Function {
    sandbox: Sandbox,
    root: TaskRoot,
}

impl Function {
    /// The function at `program`, on the table of these tests.
    pub async fn start(program: &str, root: TaskRoot) -> Self {
        Self::start_with(program, root, &[]).await
    }

    /// The same with more variables.
    pub async fn start_with(program: &str, root: TaskRoot, variables: &[(&str, &str)]) -> Self {
        let endpoint = endpoint().await;
        let table = [("TOLLGATE_TABLE", TABLE), ("TOLLGATE_ENDPOINT_URL", endpoint.as_str()), SECRETS];
        Self::with(program, root, &[&table, variables].concat()).await
    }

    /// The function at `program`, with these variables, a patient deadline and no logs.
    pub async fn with(program: &str, root: TaskRoot, variables: &[(&str, &str)]) -> Self {
        let variables = [&[("TOLLGATE_DEADLINE_MS", PATIENCE_MS), ("RUST_LOG", "off")], variables].concat();
        let sandbox = Sandbox::start(Path::new(program), &variables, root.path()).await.unwrap();
        Self { sandbox, root }
    }

    /// The function as it is deployed: what it prints is told by [`Self::printed`].
    pub async fn printing(program: &str, root: TaskRoot, variables: &[(&str, &str)]) -> Self {
        let variables = [&[("TOLLGATE_DEADLINE_MS", PATIENCE_MS), SECRETS], variables].concat();
        let output = std::fs::File::create(root.path().join(OUTPUT)).unwrap();
        let sandbox = Sandbox::start_into(output, Path::new(program), &variables, root.path()).await.unwrap();
        Self { sandbox, root }
    }

    /// All that the function has printed until now, without a wait, as Lambda would have it when the answer has arrived and the
    /// process is frozen.
    pub fn printed(&self) -> String {
        std::fs::read_to_string(self.root.path().join(OUTPUT)).unwrap()
    }

    pub fn sandbox(&mut self) -> &mut Sandbox {
        &mut self.sandbox
    }

    /// What the function answers, or the error that it reports.
    pub async fn invoke(&mut self, event: &Value) -> Result<Value, (String, String)> {
        match self.sandbox.invoke(event.to_string()).await.unwrap() {
            Outcome::Response(answer) => Ok(serde_json::from_slice(&answer).unwrap()),
            Outcome::Error(report) => Err((report.error_type, report.error_message)),
            other => panic!("{event}: {other:?}"),
        }
    }

    /// Status, headers and JSON body of the response to an HTTP event.
    pub async fn respond(&mut self, event: &Value) -> Response {
        let answer = self.invoke(event).await.unwrap_or_else(|error| panic!("{event}: {error:?}"));
        Response::new(&answer)
    }
}

/// A response, taken apart.
#[derive(Debug)]
pub struct Response {
    pub status: u64,
    pub body: Value,
    headers: Value,
    cookies: Value,
}

impl Response {
    fn new(answer: &Value) -> Self {
        assert_eq!(answer["isBase64Encoded"], false, "{answer}");
        let body = answer["body"].as_str().unwrap_or_default();
        // A gateway merges the two where both are given.
        let given = |name: &str| answer.get(name).and_then(Value::as_object).filter(|headers| !headers.is_empty());
        let headers = given("multiValueHeaders").or_else(|| given("headers")).cloned().unwrap_or_default();
        Self {
            status: answer["statusCode"].as_u64().unwrap(),
            body: serde_json::from_str(body).unwrap_or(Value::Null),
            headers: headers.into(),
            cookies: answer["cookies"].clone(),
        }
    }

    /// A header by its lower-case name; a list of one counts as its value.
    pub fn header(&self, name: &str) -> Option<&str> {
        match self.headers.get(name)? {
            Value::Array(values) => values.first().and_then(Value::as_str),
            value => value.as_str(),
        }
    }

    /// All cookies that it sets; those of an HTTP API or a function URL are in a field of their own.
    pub fn cookies(&self) -> Vec<&str> {
        let lists = [&self.cookies, &self.headers["set-cookie"]];
        lists
            .into_iter()
            .flat_map(|value| value.as_array().into_iter().flatten().chain(value.is_string().then_some(value)))
            .filter_map(Value::as_str)
            .collect()
    }

    pub fn has_lists(&self) -> bool {
        self.headers.as_object().unwrap().values().all(Value::is_array)
    }
}
