//! The `tollgate` command: races, replays, checks, a local server and the operator's tools.
//!
//! Invariant: a command prints its result on standard output and nothing else there; an error is one line on standard
//! error that says what, where and what to do, and the exit code says whose it is (see [`error`]).

pub mod args;
pub mod attack;
mod audit;
pub mod bench;
mod carry;
pub mod dev;
pub mod embedded;
pub mod error;
mod explain;
mod forget;
mod hold;
mod holds;
mod inspect;
mod kept_out;
mod key;
mod lock;
mod open;
mod output;
mod page;
mod policy;
pub mod race;
mod replay;
mod reset;
mod retiring;
pub mod runtime_api;
mod secrets;
mod session;
mod table;
mod waf;
pub mod why;

use args::{Cli, Command};
use clap::Parser;
use error::{CliError, Result};
use std::process::ExitCode;

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are not errors; everything else is bad input, which is 1 here and 2 in clap.
            let code = u8::from(error.use_stderr());
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    init_tracing();
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(&error);
            ExitCode::from(error.exit_code())
        }
    }
}

fn run(cli: Cli) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(CliError::Runtime)?;
    runtime.block_on(async {
        // Boxed where they ask the table, since the SDK's futures are large.
        match cli.command {
            Command::Dev(args) => dev::run(args).await,
            Command::Race(args) => race::run(args).await,
            Command::RaceWorker(args) => race::worker::run(args).await,
            Command::Bench(args) => bench::run(args).await,
            Command::Replay(args) => Box::pin(replay::run(&args)).await,
            Command::Attack(args) => Box::pin(attack::run(args)).await,
            Command::Policy(args) => policy::run(&args),
            Command::Explain(args) if why::is_asked(&args) => why::run(&args).await,
            Command::Explain(args) => explain::run(&args).await,
            Command::Table(args) => table::run(args).await,
            Command::Inspect(args) => Box::pin(inspect::run(&args)).await,
            Command::Reset(args) => Box::pin(reset::run(&args)).await,
            Command::Override(args) => Box::pin(hold::set_override(&args)).await,
            Command::Ban(args) => Box::pin(hold::ban(&args)).await,
            Command::Allow(args) => Box::pin(hold::allow(&args)).await,
            Command::Holds(args) => Box::pin(holds::run(&args)).await,
            Command::Carry(args) => Box::pin(carry::run(&args)).await,
            Command::Forget(args) => Box::pin(forget::run(&args)).await,
            Command::Session(args) => Box::pin(session::run(&args)).await,
            Command::Audit(args) => Box::pin(audit::run(&args)).await,
            Command::Waf(args) => waf::run(&args).await,
        }
    })
}

/// Logs go to standard error, warnings and worse unless RUST_LOG says otherwise.
fn init_tracing() {
    use tracing_subscriber::EnvFilter;
    // The embedded DynamoDB warns of each failed condition, and those are the denials that are being asked for; the SDK
    // warns of each place that has no credentials or Region, and the command's own error says that in a line; a clock that
    // is not the table's is to be expected of an operator's machine.
    let default = || EnvFilter::new("warn,dynoxide=error,aws_config=error,tollgate_dynamodb::wire=error");
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| default());
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
}
