//! tollgate beside other limiters that keep their state in DynamoDB, in one run against the same embedded DynamoDB over HTTP.
//!
//! Each contestant runs in a process of its own, and so does the table; every one is asked the same, in turn. Only counts are
//! ever asserted. Nothing is installed: of a peer that is not there the program says how to, and leaves it out.

mod bare;
mod child;
mod counts;
mod driver;
mod error;
mod loads;
mod ours;
mod protocol;
mod report;
mod server;
mod settings;

use child::Child;
use clap::{Args, Parser, Subcommand};
use error::{Error, Result};
use loads::Effort;
use report::Report;
use settings::Peers;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tokio::process::Command as Process;

/// Measures tollgate beside its peers, and prints the tables as Markdown.
#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    role: Option<Role>,
    #[command(flatten)]
    compare: CompareArgs,
}

/// What else this program is, for itself.
#[derive(Debug, Subcommand)]
enum Role {
    /// The table.
    #[command(hide = true)]
    Serve,
    /// A contestant in Rust.
    #[command(hide = true)]
    Drive {
        /// Where the table is.
        endpoint: String,
        /// Which row it is.
        setting: String,
    },
}

#[derive(Debug, Args)]
struct CompareArgs {
    /// How long each row does each cell in a round; 0 counts round trips only.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// How many rounds the medians are of.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// How many keys are many.
    #[arg(long, default_value_t = 10_000)]
    keys: usize,
    /// Ends with exit code 1 if tollgate's round trips, or what it admits, are not what they should be.
    #[arg(long)]
    check: bool,
    /// Also writes everything that was measured to this file.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Also puts the tables between the markers of this file.
    #[arg(long)]
    readme: Option<PathBuf>,
    /// Where npm has put rate-limiter-flexible, if not beside its driver.
    #[arg(long)]
    node_modules: Option<PathBuf>,
    /// The Python that has zae-limiter, if not in `.venv` beside its driver.
    #[arg(long)]
    python: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match cli.role {
        Some(Role::Serve) => server::run().await,
        Some(Role::Drive { endpoint, setting }) => driver::run(&endpoint, &setting).await,
        None => compare(cli.compare).await,
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            note(format_args!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Prints a line that is not part of the result.
fn note(line: std::fmt::Arguments<'_>) {
    // A standard error that is closed is nobody's loss.
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

async fn compare(args: CompareArgs) -> Result<()> {
    let effort = Effort { seconds: args.seconds, rounds: args.rounds, keys: args.keys };
    let peers = Peers::find(args.node_modules, args.python).await;
    let rows = peers.contestants();
    let mut serve = Process::new(std::env::current_exe()?);
    serve.arg("serve");
    let mut server = Child::start("the embedded DynamoDB", serve)?;
    let told: server::Told = server.told().await?;
    let load_before = load_average();
    let round_trips = counts::measure(&peers, &rows, &mut server, &told).await?;
    let loads =
        if args.seconds > 0.0 { loads::measure(&peers, &rows, &mut server, &told, effort).await? } else { Vec::new() };
    let report = Report::new(effort, load_before, round_trips, loads);
    let markdown = report.markdown()?;
    std::io::stdout().write_all(markdown.as_bytes())?;
    if let Some(path) = args.json {
        std::fs::write(path, serde_json::to_string_pretty(&report)? + "\n")?;
    }
    if let Some(path) = args.readme {
        put_into(&path, &markdown)?;
    }
    if args.check { counts::check(&report.round_trips) } else { Ok(()) }
}

fn put_into(path: &Path, markdown: &str) -> Result<()> {
    let text = std::fs::read_to_string(path)?;
    let text = report::replace_between_markers(&text, markdown)
        .ok_or_else(|| Error::Check(format!("{} has no markers for the tables", path.display())))?;
    Ok(std::fs::write(path, text)?)
}

/// The load average of the last minute (proc(5), `loadavg`).
fn load_average() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.parse().ok()
}
