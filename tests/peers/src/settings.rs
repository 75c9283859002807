//! Who takes part, and with which settings: a row of the tables each.
//!
//! Invariant: tollgate's rows differ in how the limiter is built, or in the policy, and in nothing else.

use crate::bare::{Http, Sdk};
use crate::child::Child;
use crate::error::{Error, Result};
use serde::Serialize;
use std::path::{Path, PathBuf};
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
    /// Most round trips that 40 callers of one process may take for a new key of 10.
    pub(crate) most_for_forty: u64,
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

/// The settings of tollgate that are measured.
pub(crate) const SETTINGS: &[Setting] = &[
    Setting {
        id: "default",
        title: "tollgate, as it comes",
        policy: POLICY,
        build: |limiter| limiter,
        most_for_forty: 40,
    },
    Setting {
        id: "coalescing",
        title: "tollgate, `coalescing(true)`",
        policy: POLICY,
        build: |limiter| limiter.coalescing(true),
        most_for_forty: 5,
    },
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

/// What the peers run on.
#[derive(Debug, Clone)]
pub(crate) struct Peers {
    /// Where npm has put the packages of `rate-limiter-flexible/package.json`.
    pub(crate) node_modules: Option<PathBuf>,
    /// A Python with the packages of `zae-limiter/requirements.txt`.
    pub(crate) python: Option<PathBuf>,
}

impl Peers {
    /// The rows, without those of a peer that is not there.
    pub(crate) fn contestants(&self) -> Result<Vec<Contestant>> {
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
        if self.node_modules.is_some() {
            let name = format!("rate-limiter-flexible {}", npm_version("rate-limiter-flexible")?);
            let blocking = format!("{name}, `inMemoryBlockOnConsumed`");
            rows.push(row(Program::RateLimiterFlexible, "in-memory-block", blocking, (true, true)));
            rows.push(row(Program::RateLimiterFlexible, "default", name, (true, false)));
        }
        if self.python.is_some() {
            let name = format!("zae-limiter {}", pypi_version("zae-limiter")?);
            rows.push(row(Program::ZaeLimiter, "default", name, (true, true)));
        }
        let bare = |setting, title: &str| row(Program::Bare, setting, title.to_owned(), (false, true));
        rows.push(bare(Sdk::SETTING, "no limiter: an `UpdateItem` by the AWS SDK for Rust"));
        rows.push(bare(Http::SETTING, "no limiter: an `UpdateItem` by hyper, not signed"));
        Ok(rows)
    }

    /// Starts the driver of a row.
    pub(crate) fn start(&self, contestant: &Contestant, endpoint: &str) -> Result<Child> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut command = match (contestant.program, &self.node_modules, &self.python) {
            (Program::RateLimiterFlexible, Some(modules), _) => {
                let mut node = Command::new("node");
                node.arg(here.join("rate-limiter-flexible/driver.cjs"))
                    .env("NODE_PATH", modules)
                    .env("NODE_NO_WARNINGS", "1");
                node
            }
            (Program::ZaeLimiter, _, Some(python)) => {
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

/// The version that npm is told to install, exactly.
fn npm_version(package: &str) -> Result<String> {
    let manifest: serde_json::Value = serde_json::from_str(include_str!("../rate-limiter-flexible/package.json"))?;
    let version = manifest["dependencies"][package].as_str().map(str::to_owned);
    version.ok_or_else(|| Error::Check(format!("package.json has no {package}")))
}

/// The version that pip is told to install, exactly.
fn pypi_version(package: &str) -> Result<String> {
    let pins = include_str!("../zae-limiter/requirements.txt").lines().filter_map(|line| line.split_once("=="));
    let version = pins.filter(|(name, _)| *name == package).map(|(_, version)| version.trim().to_owned()).next();
    version.ok_or_else(|| Error::Check(format!("requirements.txt has no {package}")))
}
