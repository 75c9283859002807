//! Commands that documents show, run by the shell against a `tollgate dev` of their own, with what they print beside what is shown.
//!
//! Invariant: the server runs the policy that the section shows before the command, and its clock stands still unless a command moves it.
//!
//! In `console` a line with `$` is a command and the lines after it are all that it prints. In `sh` what a command prints is compared
//! where a comment shows it: lines that begin with `# {`, `# [` or `# HTTP`, or a status behind the command (`# 201, then 429`).

use super::compare::{Learned, is_shown};
use crate::dev::Dev;
use crate::harness::repository;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Where documents say that it listens.
const ADDR: &str = "127.0.0.1:8787";
/// Between what two commands print.
const END: &str = "\u{1}";

/// A command, and what is shown of it.
struct Step {
    command: String,
    shown: Option<String>,
    status: Option<String>,
}

/// A section's directory and, once a command is run, its server.
pub struct Shell {
    dir: tempfile::TempDir,
    dev: Option<Dev>,
    learned: Learned,
}

impl Shell {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("bin")).unwrap();
        link(Path::new(env!("CARGO_BIN_EXE_tollgate-under-test")), &dir.path().join("bin/tollgate"));
        link(&repository("infra"), &dir.path().join("infra"));
        Self { dir, dev: None, learned: Learned::new() }
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Runs a block and says what is not as it is shown. `policy` is what the server runs, if there is none yet.
    pub fn run(&mut self, text: &str, language: &str, policy: &str) -> Result<(), String> {
        let served = self.file("served.toml");
        if self.dev.is_none() {
            std::fs::write(&served, policy).unwrap();
            self.dev = Some(Dev::start(&["--clock", "manual", "--policy", served.to_str().unwrap()]));
        }
        let addr = self.dev.as_ref().unwrap().addr().to_owned();
        let mut bash = Bash(self.bash());
        let mut wrong = String::new();
        for step in if language == "console" { console(text) } else { sh(text) } {
            let mut command = step.command.replace(ADDR, &addr);
            for (shown, printed) in &self.learned {
                command = command.replace(shown, printed);
            }
            let (printed, code) = bash.does(&command);
            let printed = printed.replace(&addr, ADDR).replace('\r', "");
            // What is shown to fail does.
            let fails = step.shown.as_deref().is_some_and(|shown| {
                shown.lines().any(|line| line.starts_with("error: ") || line.contains(": error: "))
            });
            if (code == "0") == fails {
                wrong += &format!("`{}` ends with {code}: {printed}\n", step.command);
            }
            if let Some(shown) = step.shown.filter(|shown| !is_shown(shown, &printed, &mut self.learned)) {
                wrong += &format!("`{}` prints\n{printed}\nand not\n{shown}\n", step.command);
            }
            let first = printed.lines().next().unwrap_or_default();
            if let Some(status) = step.status.filter(|status| !first.contains(&format!(" {status} "))) {
                wrong += &format!("`{}` is answered with {first:?} and not {status}\n", step.command);
            }
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }

    /// A shell on this server's table, which knows nothing else of the machine's user.
    fn bash(&self) -> Child {
        let stats = self.dev.as_ref().unwrap().stats();
        let path = format!("{}:{}", self.file("bin").to_str().unwrap(), std::env::var("PATH").unwrap());
        let mut bash = Command::new("bash");
        for variable in
            ["TOLLGATE_KEY_SECRETS", "TOLLGATE_KEY_SECRETS_PARAMETER", "RUST_LOG", "AWS_PROFILE", "BASH_ENV"]
        {
            bash.env_remove(variable);
        }
        bash.args(["--noprofile", "--norc"])
            .current_dir(self.dir.path())
            .env("PATH", path)
            .env("HOME", self.dir.path())
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .env("TOLLGATE_POLICY", self.file("served.toml"))
            .env("TOLLGATE_ENDPOINT_URL", stats["dynamodb_endpoint"].as_str().unwrap())
            .env("TOLLGATE_TABLE", stats["table"].as_str().unwrap());
        bash.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
    }
}

/// A shell that is told one command after the other.
struct Bash(Child);

impl Bash {
    /// What the command prints, and its status.
    fn does(&mut self, command: &str) -> (String, String) {
        let end = format!("printf '{END}%s\\n' $?\n");
        write!(self.0.stdin.as_mut().unwrap(), "{{\n{command}\n}} 2>&1 </dev/null\n{end}").unwrap();
        let mut out = BufReader::with_capacity(1, self.0.stdout.as_mut().unwrap());
        let mut printed = String::new();
        loop {
            let mut line = String::new();
            assert!(out.read_line(&mut line).unwrap() > 0, "the shell has ended at `{command}`: {printed}");
            if let Some((last, code)) = line.split_once(END) {
                return (printed + last, code.trim().to_owned());
            }
            printed += &line;
        }
    }
}

impl Drop for Bash {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(unix)]
fn link(what: &Path, at: &Path) {
    std::os::unix::fs::symlink(what.canonicalize().unwrap(), at).unwrap();
}

/// The commands of a session, and what is shown of each.
fn console(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in text.lines() {
        let goes_on =
            steps.last().is_some_and(|step| step.shown.as_deref() == Some("") && step.command.ends_with('\\'));
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) => {
                steps.push(Step { command: command.to_owned(), shown: Some(String::new()), status: None });
            }
            (None, Some(step)) if goes_on => step.command.extend(["\n", line]),
            (None, Some(step)) => step.shown.as_mut().unwrap().extend([line, "\n"]),
            (None, None) => panic!("a session begins with a command, not {line:?}"),
        }
    }
    steps
}

fn sh(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in text.lines() {
        let shown = line.strip_prefix("# ").filter(|shown| shown.starts_with(['{', '[']) || shown.starts_with("HTTP/"));
        match (shown, steps.last_mut()) {
            (Some(shown), Some(step)) => step.shown.get_or_insert_default().extend([shown, "\n"]),
            (None, Some(step)) if step.command.ends_with('\\') => step.command.extend(["\n", line]),
            _ if line.starts_with('#') || line.trim().is_empty() => {}
            _ => {
                let comment = line.rsplit_once("# ").map_or("", |(_, comment)| comment);
                let status = comment.split(|c: char| !c.is_ascii_digit()).next().filter(|status| status.len() == 3);
                steps.push(Step { command: line.to_owned(), shown: None, status: status.map(str::to_owned) });
            }
        }
    }
    steps
}

/// The commands of a block, whatever it is, without running them.
pub fn commands(text: &str, language: &str) -> Vec<String> {
    let steps = if language == "console" { console(text) } else { sh(text) };
    steps.into_iter().map(|step| step.command).collect()
}

/// Whether this machine has what the commands need.
pub fn is_here() -> bool {
    ["bash", "curl"].iter().all(|program| Command::new(program).arg("--version").output().is_ok())
}

#[test]
fn a_document_that_shows_something_else_is_found_out() {
    if !is_here() {
        println!("skipped: there is no bash or no curl");
        return;
    }
    let policy = std::fs::read_to_string(repository("infra/tollgate.toml")).unwrap();
    let mut shell = Shell::new();
    let asks = "curl -s 127.0.0.1:8787/v1/decisions -d '{\"limit\":\"orders\",\"key\":{\"user\":\"doc\"}}'";
    let left = |n: u32| format!("# {{\"allowed\":true,\"limit\":\"orders\",\"remaining\":{n},...}}\n");
    shell.run(&format!("{asks}\n{}", left(49)), "sh", &policy).unwrap();
    assert!(shell.run(&format!("{asks}\n{}", left(49)), "sh", &policy).unwrap_err().contains("\"remaining\":48"));
    let session = "$ key=doc\n$ tollgate inspect \\\n  user:$key\nuser:doc …\n…48 of 50 left…\n";
    shell.run(session, "console", &policy).unwrap();
    assert!(
        shell.run("$ echo a\nb\n", "console", &policy).is_err() && shell.run("$ false\n", "console", &policy).is_err()
    );
    assert!(shell.run("curl -si 127.0.0.1:8787/healthz  # 200\n", "sh", &policy).is_ok());
    assert!(shell.run("curl -si 127.0.0.1:8787/healthz  # 201\n", "sh", &policy).is_err());
}
