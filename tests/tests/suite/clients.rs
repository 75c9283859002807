//! The limiter for callers in other languages: what it is asked and answers (`lambdas/limiter/clients/exchanges.json`), over HTTP and by
//! direct invocation, and the clients for Python and TypeScript against it.
//!
//! Invariant: the exchanges are the limiter's own words. The clients' tests hold their codecs to the same file, so that a name which
//! changes on one side fails on all.
//!
//! Python's client is run by `python3`, or by what `TOLLGATE_CLIENTS_PYTHON` names (one with boto3 invokes through that); TypeScript's
//! where `TOLLGATE_CLIENTS_TYPESCRIPT` names a folder that it was built in, since there is no compiler here.

use crate::dev::Dev;
use crate::harness::{TABLE, endpoint, repository};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::routing::post;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tollgate::{Outcome, Source};
use tollgate_cli::runtime_api::{Outcome as Answered, Sandbox};

const LIMITER: &str = env!("CARGO_BIN_EXE_limiter-under-test");
const CLIENTS: &str = "lambdas/limiter/clients";

fn file() -> Value {
    let text = std::fs::read_to_string(repository(CLIENTS).join("exchanges.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn policy() -> PathBuf {
    repository(CLIENTS).join("exchanges.toml")
}

/// What an exchange says the answer is, over HTTP: its status and body.
fn expected_over_http(exchange: &Value) -> (u16, Value) {
    match exchange.get("error") {
        None => (200, exchange["answer"].clone()),
        Some(error) => {
            let status = error["status"].as_u64().and_then(|status| u16::try_from(status).ok()).unwrap();
            (status, json!({ "error": error["kind"], "message": error["message"] }))
        }
    }
}

/// With a clock that stands still, so that each figure is the file's.
#[test]
fn the_exchanges_are_what_the_limiter_says_over_http() {
    let dev = Dev::start(&["--clock", "manual", "--policy", policy().to_str().unwrap()]);
    for exchange in file()["exchanges"].as_array().unwrap() {
        let store = if exchange["table"] == "gone" { "error" } else { "ok" };
        assert_eq!(dev.ask("POST", "/dev/faults", &json!({ "store": store }).to_string()).0, 200);
        assert_eq!(dev.decide(&exchange["request"]), expected_over_http(exchange), "{}", exchange["name"]);
    }
}

/// By the function's own executable, whose clock runs: waits are compared by whether there are any.
#[tokio::test(flavor = "multi_thread")]
async fn the_exchanges_are_what_the_limiter_says_to_who_invokes_it() {
    let mut limiter = limiter(&endpoint().await).await;
    let mut without_a_table = limiter_at_nothing().await;
    let suffix = unique();
    for exchange in file()["exchanges"].as_array().unwrap() {
        let asked = if exchange["table"] == "gone" { &mut without_a_table } else { &mut limiter };
        let request = of_ones_own(&exchange["request"], &suffix);
        let expected = match exchange.get("error") {
            None => Ok(without_times(&exchange["answer"])),
            Some(error) => Err((error["function_error"].clone(), error["message"].clone())),
        };
        let answer = match asked.invoke(request.to_string()).await.unwrap() {
            Answered::Response(answer) => Ok(without_times(&serde_json::from_slice(&answer).unwrap())),
            Answered::Error(report) => Err((report.error_type.into(), report.error_message.into())),
            other => panic!("{other:?}"),
        };
        assert_eq!(answer, expected, "{}", exchange["name"]);
    }
}

#[test]
fn the_words_of_the_exchanges_are_the_limiters() {
    let (file, words) = (file(), |words: &[&str]| json!(words));
    let sources = [Source::Table, Source::Cache, Source::Lease, Source::Local, Source::Open, Source::Closed];
    assert_eq!(file["sources"], words(&sources.map(Source::as_str)));
    let outcomes = [Outcome::Allowed, Outcome::Denied, Outcome::NeverFits];
    assert_eq!(file["outcomes"], words(&outcomes.map(|outcome| outcome.as_str())));
}

/// The function, on the policy of the exchanges.
async fn limiter(endpoint: &str) -> Sandbox {
    let policy = std::path::absolute(policy()).unwrap();
    let variables = [
        ("TOLLGATE_TABLE", TABLE),
        ("TOLLGATE_ENDPOINT_URL", endpoint),
        ("TOLLGATE_POLICY", policy.to_str().unwrap()),
        ("TOLLGATE_DEADLINE_MS", "60000"),
        ("TOLLGATE_METRICS", "off"),
        ("RUST_LOG", "off"),
    ];
    Sandbox::start(Path::new(LIMITER), &variables, &repository(".")).await.unwrap()
}

/// The same where nobody listens at the table's address.
async fn limiter_at_nothing() -> Sandbox {
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    limiter(&format!("http://{gone}")).await
}

/// What no other test and no earlier run has used.
fn unique() -> String {
    format!("{:016x}", fastrand::u64(..))
}

/// The request for keys that nobody else has.
fn of_ones_own(request: &Value, suffix: &str) -> Value {
    match request {
        Value::Array(all) => all.iter().map(|one| of_ones_own(one, suffix)).collect(),
        one => {
            let mut one = one.clone();
            for value in one["key"].as_object_mut().unwrap().values_mut() {
                *value = format!("{}-{suffix}", value.as_str().unwrap()).into();
            }
            one
        }
    }
}

/// An answer in which a time is only whether it is 0, above, or none.
fn without_times(answer: &Value) -> Value {
    let plain = |(name, value): (&String, &Value)| {
        let is_time = name.ends_with("_ms");
        let value = value.as_u64().filter(|_| is_time).map_or_else(|| value.clone(), |ms| ms.min(1).into());
        (name.clone(), value)
    };
    match answer {
        Value::Array(all) => all.iter().map(without_times).collect(),
        one => Value::Object(one.as_object().unwrap().iter().map(plain).collect::<Map<_, _>>()),
    }
}

/// What of Lambda's API a client of it uses: `POST /2015-03-31/functions/limiter/invocations`. It stops when dropped.
struct Lambda {
    url: String,
    task: tokio::task::JoinHandle<()>,
}

impl Lambda {
    async fn start(sandbox: Sandbox) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().route("/2015-03-31/functions/limiter/invocations", post(invoke));
        let router = router.with_state(Arc::new(Mutex::new(sandbox)));
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, task }
    }
}

impl Drop for Lambda {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A function error has status 200, a header, and the report as its payload.
async fn invoke(State(sandbox): State<Arc<Mutex<Sandbox>>>, event: Bytes) -> (StatusCode, HeaderMap, Vec<u8>) {
    match sandbox.lock().await.invoke(event.to_vec()).await.unwrap() {
        Answered::Response(answer) => (StatusCode::OK, HeaderMap::new(), answer),
        Answered::Error(report) => {
            let report = json!({ "errorType": report.error_type, "errorMessage": report.error_message });
            let failed = ("x-amz-function-error", HeaderValue::from_static("Unhandled"));
            let headers = [failed].map(|(name, value)| (name.parse().unwrap(), value)).into_iter().collect();
            (StatusCode::OK, headers, report.to_string().into_bytes())
        }
        other => panic!("{other:?}"),
    }
}

/// Runs a client's tests against a development server and a function behind Lambda's API.
async fn runs_against_the_limiter(mut tests: Command) -> String {
    let dev = Dev::start(&["--policy", policy().to_str().unwrap()]);
    let lambda = Lambda::start(limiter(&endpoint().await).await).await;
    tests.env("TOLLGATE_URL", format!("http://{}", dev.addr()));
    tests.env("TOLLGATE_LAMBDA_URL", &lambda.url).env("TOLLGATE_USER", unique());
    let output = tokio::task::spawn_blocking(move || tests.output().unwrap()).await.unwrap();
    let said = [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned()).concat();
    assert!(output.status.success(), "{said}");
    said
}

#[tokio::test(flavor = "multi_thread")]
async fn pythons_client_speaks_with_the_limiter() {
    let python = std::env::var("TOLLGATE_CLIENTS_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let is_new = "import sys; sys.exit(sys.version_info < (3, 10))";
    if !Command::new(&python).args(["-c", is_new]).status().is_ok_and(|status| status.success()) {
        println!("no Python 3.10 at {python}: its client is not tested");
        return;
    }
    let mut tests = Command::new(&python);
    tests.args(["-m", "unittest", "discover", "-v", "-s", "tests"]).current_dir(repository(CLIENTS).join("python"));
    tests.env("PYTHONPATH", "src").env("PYTHONDONTWRITEBYTECODE", "1");
    let said = runs_against_the_limiter(tests).await;
    for name in ["test_over_http", "test_by_direct_invocation"] {
        let ran = said.lines().any(|line| line.starts_with(name) && line.ends_with("ok"));
        assert!(ran, "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn typescripts_client_speaks_with_the_limiter() {
    let Ok(built) = std::env::var("TOLLGATE_CLIENTS_TYPESCRIPT") else {
        println!("TOLLGATE_CLIENTS_TYPESCRIPT is not set: TypeScript's client is not tested");
        return;
    };
    let mut tests = Command::new("node");
    tests.args(["--test", "dist/test/live.test.js"]).current_dir(built);
    let said = runs_against_the_limiter(tests).await;
    assert!(said.contains("# pass 3") && said.contains("# skipped 0"), "{said}");
}

/// A client without a dependency can be taken along by copying it; one with any has to be kept up.
#[test]
fn the_clients_depend_on_nothing() {
    let read = |path: &str| std::fs::read_to_string(repository(CLIENTS).join(path)).unwrap();
    let package: Value = serde_json::from_str(&read("typescript/package.json")).unwrap();
    assert_eq!((package.get("dependencies"), package.get("peerDependencies")), (None, None));
    let project: toml::Table = read("python/pyproject.toml").parse().unwrap();
    assert_eq!(project["project"]["dependencies"].as_array().map(Vec::len), Some(0));
    let of_its_own = |line: &str| ["./", "../"].iter().any(|start| line.contains(&format!("from \"{start}")));
    let mut imported = BTreeSet::new();
    for entry in std::fs::read_dir(repository(CLIENTS).join("typescript/src")).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let lines = text.lines().filter(|line| line.contains(" from \"") && !of_its_own(line));
        imported.extend(lines.map(str::to_owned));
    }
    assert_eq!(imported, BTreeSet::new());
}

/// The clients' own pages are held to the same files by their tests.
#[test]
fn the_documentation_shows_what_is_run() {
    let readme = std::fs::read_to_string(repository("README.md")).unwrap();
    for (language, path) in [("python", "python/tests/snippet.py"), ("ts", "typescript/test/snippet.ts")] {
        let snippet = std::fs::read_to_string(repository(CLIENTS).join(path)).unwrap();
        assert!(readme.contains(&format!("```{language}\n{snippet}```")), "{path}");
    }
}
