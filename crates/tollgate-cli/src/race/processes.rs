//! A race spread over processes of this same program: start them, let them go together, collect what they tell.

use super::worker::READY;
use super::{Answer, Race, Report};
use crate::args::RaceArgs;
use crate::error::{CliError, Result};
use crate::output;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

/// Runs the clients in processes and adds their answers to the report.
pub(super) async fn run(args: &RaceArgs, race: &Race, report: &mut Report) -> Result<()> {
    let mut workers = Vec::new();
    for i in 0..args.processes {
        let share = args.clients / args.processes + u32::from(i < args.clients % args.processes);
        workers.push((share, Worker::start(share, args, race)?));
    }
    for (_, worker) in &mut workers {
        worker.ready().await?;
    }
    for (_, worker) in &mut workers {
        worker.go().await;
    }
    let collected = workers.into_iter().enumerate().map(|(i, (share, worker))| {
        let kill = args.kill && i == 0;
        tokio::spawn(async move { (share, worker.collect(kill).await) })
    });
    for task in collected.collect::<Vec<_>>() {
        let (share, answers) = task.await.map_err(|e| CliError::System(format!("a collector stopped: {e}")))?;
        report.lost += u64::from(share).saturating_sub(answers.len() as u64);
        answers.iter().for_each(|answer| report.count(answer));
    }
    Ok(())
}

/// A child process that runs some of the clients.
struct Worker {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Worker {
    fn start(clients: u32, args: &RaceArgs, race: &Race) -> Result<Self> {
        let target = &race.target;
        let failed = |e: std::io::Error| CliError::System(format!("cannot start a race process: {e}"));
        let mut command = Command::new(std::env::current_exe().map_err(failed)?);
        command.arg("race-worker").args(["--table", &target.table, "--clients", &clients.to_string()]);
        command.args(["--capacity", &args.capacity.to_string(), "--plenty", &args.clients.to_string()]);
        for (_, key) in race.charges.iter().flat_map(|charges| charges.key().dimensions()) {
            command.args(["--key", key]);
        }
        if let Some(at) = race.at {
            command.args(["--at-ns", &at.as_nanos().to_string()]);
        }
        if let Some(url) = &target.endpoint_url {
            command.args(["--endpoint-url", url]);
        }
        if let Some(region) = &target.region {
            command.args(["--region", region]);
        }
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().map_err(failed)?;
        output::note(format!("race process {} runs {clients} clients", child.id().unwrap_or_default()));
        let stdout = child.stdout.take().ok_or_else(|| CliError::System("a race process has no output".to_owned()))?;
        Ok(Self { child, lines: BufReader::new(stdout).lines() })
    }

    async fn ready(&mut self) -> Result<()> {
        match self.lines.next_line().await {
            Ok(Some(line)) if line == READY => Ok(()),
            // It has said why on standard error, which is ours too.
            _ => Err(CliError::System("a race process did not get ready".to_owned())),
        }
    }

    /// Lets it go. A process that is gone by now is found when its answers are counted.
    async fn go(&mut self) {
        if let Some(stdin) = &mut self.child.stdin {
            let _ = stdin.write_all(b"go\n").await;
        }
    }

    /// What its clients tell until it ends; with `kill`, until it is killed upon the first of them.
    async fn collect(mut self, kill: bool) -> Vec<Answer> {
        let mut answers = Vec::new();
        while let Ok(Some(line)) = self.lines.next_line().await {
            answers.extend(serde_json::from_str::<Answer>(&line));
            if kill {
                self.kill().await;
                break;
            }
        }
        let _ = self.child.wait().await;
        answers
    }

    /// SIGKILL on Unix: no destructor runs, as when a Lambda sandbox is taken away.
    async fn kill(&mut self) {
        match self.child.kill().await {
            Ok(()) => output::note("killed the first race process"),
            Err(error) => output::note(format!("the first race process cannot be killed: {error}")),
        }
    }
}
