//! The limiter function as Lambda starts it: cold starts beside a hello world's, memory and size.
//!
//! The two executables are started in turn, so that what else the machine does falls on both. Invariant: a start counts
//! only if the function answered as it should.

use crate::embedded::Embedded;
use crate::error::{CliError, Result};
use crate::runtime_api::{Outcome, Sandbox};
use flate2::Compression;
use flate2::write::DeflateEncoder;
use serde::Serialize;
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tollgate::Connection;
use tollgate_dynamodb::table::{CreateOptions, create};

const STARTS: usize = 21;
const TABLE: &str = "tollgate";
const POLICY: &str = "version = 1\n[limits.orders]\nkey = ['user']\nrate = '50/h'\n";
/// What a zip file has beside the compressed bytes of its one entry, `bootstrap` (APPNOTE.TXT 4.3: 30 + 46 + 22 bytes,
/// and the name twice).
const ZIP_FRAME: u64 = 30 + 46 + 22 + 2 * 9;

/// How to get what is measured here.
const HOW: &str = "not measured: run `cargo build --release -p limiter` and then `cargo build --release -p limiter \
                   --example hello`, or name their folder with --lambda-dir";

/// What was measured, or why not.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Section {
    /// One line an executable.
    Measured(Vec<Line>),
    /// What to do first.
    Missing(&'static str),
}

/// One executable.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Line {
    /// Which.
    pub name: &'static str,
    /// Milliseconds from the start of the process to its request for an event, the median: init.
    pub init_ms: f64,
    /// Milliseconds from the start of the process to the first answer, the median.
    pub cold_start_ms: f64,
    /// Milliseconds of the second invocation, the median.
    pub warm_ms: f64,
    /// The most memory that a process has had resident, in bytes, the median; where the system tells.
    pub peak_memory: Option<u64>,
    /// Size of the executable in bytes.
    pub binary: u64,
    /// Size in bytes of a zip file with only the executable, compressed.
    pub zip: u64,
}

/// An executable to start, and what to ask it.
struct Program {
    name: &'static str,
    path: PathBuf,
    event: Value,
    is_right: fn(&Value) -> bool,
    starts: Vec<Start>,
}

#[derive(Debug, Clone, Copy)]
struct Start {
    init: Duration,
    cold: Duration,
    warm: Duration,
    peak_memory: Option<u64>,
}

/// Measures the executables in `dir`, or beside this one.
pub(super) async fn measure(dir: Option<&Path>) -> Result<Section> {
    let Some(mut programs) = programs(dir) else { return Ok(Section::Missing(HOW)) };
    let embedded = Embedded::start(None).await?;
    let connection = Connection::from_environment().endpoint_url(embedded.endpoint());
    create(&tollgate::connect(&connection).await?, TABLE, CreateOptions::default()).await?;
    let root = Root::with_policy()?;
    for _ in 0..STARTS {
        for program in &mut programs {
            let start = start(program, embedded.endpoint(), root.path()).await?;
            program.starts.push(start);
        }
    }
    Ok(Section::Measured(programs.iter().map(line).collect::<Result<_>>()?))
}

fn programs(dir: Option<&Path>) -> Option<[Program; 2]> {
    let beside = std::env::current_exe().ok()?.parent()?.to_owned();
    let find = |name: &str| {
        let dir = dir.unwrap_or(&beside);
        [dir.join(name), dir.join("examples").join(name)].into_iter().find(|path| path.is_file())
    };
    let program =
        |name, file, event, is_right| Some(Program { name, path: find(file)?, event, is_right, starts: Vec::new() });
    let order = json!({ "limit": "orders", "key": { "user": "bench" } });
    Some([
        program("limiter", "limiter", order, |answer| answer["source"] == "table")?,
        program("hello world (lambda_http)", "hello", hello_event(), |answer| answer["statusCode"] == 200)?,
    ])
}

/// As small a payload of an HTTP API as `lambda_http` reads.
fn hello_event() -> Value {
    let http = json!({ "method": "GET", "path": "/", "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1" });
    json!({
        "version": "2.0", "routeKey": "$default", "rawPath": "/", "rawQueryString": "", "headers": { "host": "x" },
        "requestContext": { "stage": "$default", "timeEpoch": 0, "http": http }, "isBase64Encoded": false,
    })
}

async fn start(program: &Program, endpoint: &str, root: &Path) -> Result<Start> {
    // Lambda's own deadline would do, but a slow machine should not turn a cold start into a store failure.
    let variables = [
        ("TOLLGATE_TABLE", TABLE),
        ("TOLLGATE_ENDPOINT_URL", endpoint),
        ("TOLLGATE_DEADLINE_MS", "60000"),
        ("RUST_LOG", "warn"),
        // Or they would be all over the report on a terminal.
        ("TOLLGATE_METRICS", "off"),
    ];
    let mut sandbox = Sandbox::start(&program.path, &variables, root).await?;
    ask(program, &mut sandbox).await?;
    let cold = sandbox.spawned().elapsed();
    let init = sandbox.ready().map_or(cold, |ready| ready.duration_since(sandbox.spawned()));
    let before = std::time::Instant::now();
    ask(program, &mut sandbox).await?;
    Ok(Start { init, cold, warm: before.elapsed(), peak_memory: sandbox.peak_memory() })
}

async fn ask(program: &Program, sandbox: &mut Sandbox) -> Result<()> {
    let outcome = sandbox.invoke(program.event.to_string()).await?;
    let answer = match &outcome {
        Outcome::Response(body) => serde_json::from_slice(body).unwrap_or_default(),
        _ => Value::Null,
    };
    if (program.is_right)(&answer) {
        return Ok(());
    }
    Err(CliError::System(format!("{} did not answer as it should: {outcome:?}", program.path.display())))
}

fn line(program: &Program) -> Result<Line> {
    let ms = |of: fn(&Start) -> Duration| median(program.starts.iter().map(of)).as_secs_f64() * 1e3;
    let read = |source| CliError::Read { path: program.path.clone(), source };
    let binary = std::fs::read(&program.path).map_err(read)?;
    Ok(Line {
        name: program.name,
        init_ms: ms(|start| start.init),
        cold_start_ms: ms(|start| start.cold),
        warm_ms: ms(|start| start.warm),
        peak_memory: program.starts.iter().map(|start| start.peak_memory).collect::<Option<Vec<_>>>().map(median),
        binary: binary.len() as u64,
        zip: deflated(&binary).map_err(read)? + ZIP_FRAME,
    })
}

fn deflated(bytes: &[u8]) -> std::io::Result<u64> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?.len() as u64)
}

fn median<T: Ord + Default>(values: impl IntoIterator<Item = T>) -> T {
    let mut values: Vec<_> = values.into_iter().collect();
    values.sort_unstable();
    let middle = values.len() / 2;
    values.into_iter().nth(middle).unwrap_or_default()
}

/// A folder with the policy, removed when dropped.
struct Root(PathBuf);

impl Root {
    fn with_policy() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("tollgate-bench-{:016x}", fastrand::u64(..)));
        let failed = |e| CliError::System(format!("cannot write to {}: {e}", path.display()));
        std::fs::create_dir(&path).map_err(failed)?;
        std::fs::write(path.join("tollgate.toml"), POLICY).map_err(failed)?;
        Ok(Self(path))
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        // A folder that stays behind in the temporary folder does no harm.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
