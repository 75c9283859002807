//! Who takes part, and with which settings: a row of the tables each.
//!
//! Invariant: tollgate's rows differ in how the limiter is built, or in the policy, and in nothing else.

use crate::bare::{Http, Sdk};
use crate::child::Child;
use crate::error::Result;
use crate::note;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::process::Command;
use tollgate::{DynamoStore, Limiter};

/// A way to set tollgate up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting {
    /// The name on the command line of the driver.
    pub(crate) id: &'static str,
    /// What the tables say.
    pub(crate) title: &'static str,
    /// The limits, both of them by `user`.
    pub(crate) policy: &'static str,
    /// How the limiter is built from the default one.
    pub(crate) build: fn(Limiter<DynamoStore>) -> Limiter<DynamoStore>,
    /// Most round trips of a decision: new key, known key, denial, the next denial.
    pub(crate) most: [f64; 4],
    /// Most round trips that 40 callers of one process may take for a new key of 10.
    pub(crate) most_for_forty: f64,
}

const POLICY: &str = r#"
version = 1

[limits.scarce]
key  = ["user"]
rate = "10/h"

[limits.plenty]
key  = ["user"]
rate = "1000000000/h"
"#;

/// The same, taken ahead.
const LEASED: &str = r#"
version = 1

[limits.scarce]
key   = ["user"]
rate  = "10/h"
lease = 5

[limits.plenty]
key   = ["user"]
rate  = "1000000000/h"
lease = 1000000
"#;

/// As it comes.
const DEFAULT: Setting = Setting {
    id: "default",
    title: "tollgate, as it comes",
    policy: POLICY,
    build: |limiter| limiter,
    most: [1.0, 1.0, 1.0, 0.0],
    most_for_forty: 5.0,
};

/// Most round trips for 40 callers that share nothing: two each, since one whose clock was read a moment before that of the first one
/// to be served looks again.
pub(crate) const MOST_APART: f64 = 80.0;

/// The settings of tollgate that are measured: a line each, of what differs from the default.
pub(crate) const SETTINGS: &[Setting] = &[
    DEFAULT,
    Setting {
        id: "apart",
        title: "tollgate, `coalescing(false)`",
        build: |l| l.coalescing(false),
        most_for_forty: MOST_APART,
        ..DEFAULT
    },
    Setting { id: "leases", title: "tollgate, `lease` on the limits", policy: LEASED, most_for_forty: 5.0, ..DEFAULT },
];

/// The program that decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Program {
    /// This one, by the crate `tollgate`.
    Tollgate,
    /// On node.
    RateLimiterFlexible,
    /// On Python.
    ZaeLimiter,
    /// This one, by a write a decision and nothing else: no limiter, but what the table takes.
    Bare,
}

impl Program {
    /// Whether tollgate is compared with it.
    pub(crate) fn is_peer(self) -> bool {
        matches!(self, Self::RateLimiterFlexible | Self::ZaeLimiter)
    }
}

/// A row.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Contestant {
    pub(crate) program: Program,
    /// What the driver is told.
    pub(crate) setting: &'static str,
    pub(crate) title: String,
    /// Whether its round trips are counted.
    #[serde(skip)]
    pub(crate) is_counted: bool,
    /// Whether its times are measured; a setting that only denials see is not.
    #[serde(skip)]
    pub(crate) is_timed: bool,
}

/// The peers that are installed.
#[derive(Debug, Clone)]
pub(crate) struct Peers {
    /// Where npm has put the packages of `rate-limiter-flexible/package.json`, and which version of it.
    node: Option<(PathBuf, String)>,
    /// A Python with the packages of `zae-limiter/requirements.txt`, and which version of it.
    python: Option<(PathBuf, String)>,
}

/// What to do about a peer that is not there.
const HOW_TO_INSTALL: [&str; 2] = [
    "npm ci --prefix tests/peers/rate-limiter-flexible",
    "uv venv tests/peers/zae-limiter/.venv && \\\n      uv pip install --python tests/peers/zae-limiter/.venv -r tests/peers/zae-limiter/requirements.txt",
];

impl Peers {
    /// Looks for both, where the arguments say or else where [`HOW_TO_INSTALL`] puts them. Nothing is installed.
    pub(crate) async fn find(node_modules: Option<PathBuf>, python: Option<PathBuf>) -> Self {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let node_modules = node_modules.unwrap_or_else(|| here.join("rate-limiter-flexible/node_modules"));
        let python = python.unwrap_or_else(|| here.join("zae-limiter/.venv/bin/python"));
        let versions =
            (npm_version(&node_modules, "rate-limiter-flexible"), pypi_version(&python, "zae-limiter").await);
        let peers = Self {
            node: versions.0.map(|version| (node_modules, version)),
            python: versions.1.map(|version| (python, version)),
        };
        let found = [("rate-limiter-flexible", peers.node.is_some()), ("zae-limiter", peers.python.is_some())];
        for ((name, _), how) in found.iter().zip(HOW_TO_INSTALL).filter(|((_, is_there), _)| !is_there) {
            note(format_args!("{name} is left out, since it is not installed. To install it:\n    {how}"));
        }
        peers
    }

    /// The rows, without those of a peer that is not there.
    pub(crate) fn contestants(&self) -> Vec<Contestant> {
        let row = |program, setting, title, (is_counted, is_timed)| Contestant {
            program,
            setting,
            title,
            is_counted,
            is_timed,
        };
        let mut rows: Vec<_> = SETTINGS
            .iter()
            .map(|setting| row(Program::Tollgate, setting.id, setting.title.to_owned(), (true, true)))
            .collect();
        if let Some((_, version)) = &self.node {
            let name = format!("rate-limiter-flexible {version}");
            let blocking = format!("{name}, `inMemoryBlockOnConsumed`");
            rows.push(row(Program::RateLimiterFlexible, "in-memory-block", blocking, (true, true)));
            rows.push(row(Program::RateLimiterFlexible, "default", name, (true, false)));
        }
        if let Some((_, version)) = &self.python {
            rows.push(row(Program::ZaeLimiter, "default", format!("zae-limiter {version}"), (true, true)));
        }
        let bare = |setting, title: &str| row(Program::Bare, setting, title.to_owned(), (false, true));
        rows.push(bare(Sdk::SETTING, "no limiter: an `UpdateItem` by the AWS SDK for Rust"));
        rows.push(bare(Http::SETTING, "no limiter: an `UpdateItem` by hyper, not signed"));
        rows
    }

    /// Starts the driver of a row.
    pub(crate) fn start(&self, contestant: &Contestant, endpoint: &str) -> Result<Child> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut command = match (contestant.program, &self.node, &self.python) {
            (Program::RateLimiterFlexible, Some((modules, _)), _) => {
                let mut node = Command::new("node");
                node.arg(here.join("rate-limiter-flexible/driver.cjs"))
                    .env("NODE_PATH", modules)
                    .env("NODE_NO_WARNINGS", "1");
                node
            }
            (Program::ZaeLimiter, _, Some((python, _))) => {
                let mut python = Command::new(python);
                python.arg(here.join("zae-limiter/driver.py"));
                python
            }
            _ => {
                let mut own = Command::new(std::env::current_exe()?);
                own.arg("drive");
                own
            }
        };
        command.args([endpoint, contestant.setting]);
        Child::start(&contestant.title, command)
    }
}

/// The version of a package that npm has put there; `None` if it has not.
fn npm_version(node_modules: &Path, package: &str) -> Option<String> {
    let manifest = std::fs::read_to_string(node_modules.join(package).join("package.json")).ok()?;
    let manifest: serde_json::Value = serde_json::from_str(&manifest).ok()?;
    manifest["version"].as_str().map(str::to_owned)
}

/// The version of a package that this Python has; `None` if there is no such Python, or no such package.
async fn pypi_version(python: &Path, package: &str) -> Option<String> {
    let ask = format!("import importlib.metadata as m; print(m.version('{package}'), end='')");
    let told = Command::new(python).args(["-c", &ask]).stdin(Stdio::null()).output().await.ok()?;
    told.status.success().then(|| String::from_utf8_lossy(&told.stdout).into_owned())
}
