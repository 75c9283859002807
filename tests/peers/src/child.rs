//! A child process that answers lines with lines.
//!
//! Invariant: it ends with this process: its standard input does, and it is killed when dropped.

use crate::error::{Error, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child as Process, ChildStdin, ChildStdout, Command};

/// One that runs.
#[derive(Debug)]
pub(crate) struct Child {
    name: String,
    process: Process,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Child {
    /// Starts `command`; `name` is for messages.
    pub(crate) fn start(name: &str, mut command: Command) -> Result<Self> {
        // The emulator takes any credentials; without some, SDKs look for them in places that take time.
        command.env("AWS_ACCESS_KEY_ID", "local").env("AWS_SECRET_ACCESS_KEY", "local").env("AWS_REGION", "us-east-1");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().map_err(|e| failed(name, format!("cannot be started: {e}")))?;
        let (stdin, stdout) = (process.stdin.take(), process.stdout.take());
        let (Some(stdin), Some(stdout)) = (stdin, stdout) else { return Err(failed(name, "has no pipes")) };
        Ok(Self { name: name.to_owned(), process, stdin, lines: BufReader::new(stdout).lines() })
    }

    /// Sends a line and reads the next.
    pub(crate) async fn ask<T: DeserializeOwned>(&mut self, question: &impl Serialize) -> Result<T> {
        let line = format!("{}\n", serde_json::to_string(question)?);
        self.stdin.write_all(line.as_bytes()).await.map_err(|e| failed(&self.name, format!("takes no orders: {e}")))?;
        self.told().await
    }

    /// The next line.
    pub(crate) async fn told<T: DeserializeOwned>(&mut self) -> Result<T> {
        let line = self.lines.next_line().await?.ok_or_else(|| failed(&self.name, "has ended"))?;
        serde_json::from_str(&line).map_err(|e| failed(&self.name, format!("answered {line:?}: {e}")))
    }

    /// What processor time it has used, in microseconds, user and system (proc(5), `stat`); `None` where the system does
    /// not tell.
    pub(crate) fn cpu_us(&self) -> Option<u64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id()?)).ok()?;
        // The second field is the name in parentheses, and may have anything in it.
        let fields: Vec<_> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok());
        // Fields 14 and 15, of which the first after the name is 3; a tick is 1/100 s on Linux (`USER_HZ`).
        Some((ticks(11)? + ticks(12)?) * 10_000)
    }
}

fn failed(name: &str, problem: impl Into<String>) -> Error {
    Error::Contestant { contestant: name.to_owned(), problem: problem.into() }
}
