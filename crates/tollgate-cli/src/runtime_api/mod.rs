//! A Lambda Runtime API on this machine, for functions to run against as they are: the real executables, as child
//! processes.
//!
//! Invariant: one sandbox has one process and one API of its own, and gets one event at a time, as in Lambda. An answer
//! is what the process sent, unread; a process that ends without one is an outcome, never a wait without end.
//!
//! The protocol is that of [Lambda runtime API](https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html),
//! version 2018-06-01.

mod server;

pub use server::Reported;

use crate::error::{CliError, Result};
use server::Server;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Instant;
use tokio::process::{Child, Command};

/// What became of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The function answered; its JSON, or whatever it sent.
    Response(Vec<u8>),
    /// The function reported an error, and lives.
    Error(Reported),
    /// The process ended before it answered.
    Exited(ExitStatus),
}

/// A function's process and the API that it talks to. The process is killed when this is dropped.
#[derive(Debug)]
pub struct Sandbox {
    server: Server,
    child: Child,
    spawned: Instant,
}

impl Sandbox {
    /// Starts `program` with `variables` and those that Lambda sets; `task_root` is where the function's files are.
    ///
    /// It gets none of the variables of this process, so that what a developer's machine has configured plays no part.
    /// What it prints goes to standard error.
    ///
    /// # Errors
    ///
    /// [`CliError::System`] if there is no port, or the program cannot be started.
    pub async fn start(program: &Path, variables: &[(&str, &str)], task_root: &Path) -> Result<Self> {
        Self::start_into(std::io::stderr(), program, variables, task_root).await
    }

    /// The same, with what it prints going to `output`, which Lambda would send to CloudWatch Logs.
    ///
    /// # Errors
    ///
    /// As [`Self::start`].
    pub async fn start_into(
        output: impl Into<Stdio>,
        program: &Path,
        variables: &[(&str, &str)],
        task_root: &Path,
    ) -> Result<Self> {
        let failed = |e| CliError::System(format!("cannot start {}: {e}", program.display()));
        let server = Server::start().await?;
        // Absolute, since the process starts in another folder than this one.
        let mut command = Command::new(std::path::absolute(program).map_err(failed)?);
        command
            .env_clear()
            .envs(variables.iter().copied())
            .env("AWS_REGION", "us-east-1")
            .env("AWS_LAMBDA_RUNTIME_API", server.address())
            .env("AWS_LAMBDA_FUNCTION_NAME", "function")
            .env("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST")
            .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128")
            .env("LAMBDA_TASK_ROOT", task_root)
            .current_dir(task_root)
            .stdin(Stdio::null())
            .stdout(output)
            .kill_on_drop(true);
        let spawned = Instant::now();
        let child = command.spawn().map_err(failed)?;
        Ok(Self { server, child, spawned })
    }

    /// Hands an event to the function and waits for what becomes of it.
    ///
    /// # Errors
    ///
    /// [`CliError::System`] if the process cannot be waited for.
    pub async fn invoke(&mut self, event: impl Into<Vec<u8>>) -> Result<Outcome> {
        let answer = self.server.submit(event.into());
        tokio::select! {
            biased;
            answer = answer => answer,
            status = self.child.wait() => exited(status),
        }
    }

    /// Waits until the function reports that its init failed, or asks for its first event, or ends.
    ///
    /// # Errors
    ///
    /// [`CliError::System`] if the process cannot be waited for.
    pub async fn init(&mut self) -> Result<Init> {
        tokio::select! {
            biased;
            init = self.server.init() => Ok(init),
            status = self.child.wait() => exited(status).map(|_| Init::Exited),
        }
    }

    /// When the process was started.
    #[must_use]
    pub fn spawned(&self) -> Instant {
        self.spawned
    }

    /// When the function first asked for an event, which ends its init.
    #[must_use]
    pub fn ready(&self) -> Option<Instant> {
        self.server.ready()
    }

    /// The most memory that the process has had resident, in bytes; where the system tells.
    #[must_use]
    pub fn peak_memory(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()?)).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
    }

    /// Takes the sandbox away: SIGKILL on Unix, so that nothing of the function runs any more.
    ///
    /// # Errors
    ///
    /// [`CliError::System`] if it cannot be killed.
    pub async fn kill(&mut self) -> Result<()> {
        self.child.kill().await.map_err(|e| waiting_failed(&e))
    }

    /// Waits for the process to end by itself.
    ///
    /// # Errors
    ///
    /// [`CliError::System`] if it cannot be waited for.
    pub async fn ended(&mut self) -> Result<ExitStatus> {
        self.child.wait().await.map_err(|e| waiting_failed(&e))
    }
}

/// How an init went.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Init {
    /// The function asked for its first event.
    Ready,
    /// The function reported why it cannot start.
    Failed(Reported),
    /// The process ended and said nothing.
    Exited,
}

fn exited(status: std::io::Result<ExitStatus>) -> Result<Outcome> {
    status.map(Outcome::Exited).map_err(|e| waiting_failed(&e))
}

fn waiting_failed(error: &std::io::Error) -> CliError {
    CliError::System(format!("the function's process cannot be waited for: {error}"))
}
