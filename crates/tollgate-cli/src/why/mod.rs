//! `tollgate explain --response` and `--log`: why an answer was given, or calls were denied.
//!
//! # Layout
//!
//! | module | what it is |
//! | --- | --- |
//! | `message` | an HTTP answer as it was pasted |
//! | `quotas` | what it says of quotas and waits |
//! | `layer` | who gave it; `others`: what somebody else's limiters say |
//! | `answer` | what is told of it; `advice`: what to change |
//! | `lines` | a log as it was pasted; `denials`: what is told of it |
//! | `terms` | what a policy says of a limit |
//! | `report` | the six steps, and what is told as a whole |
//! | `printable` | others' text, as it may be shown |
//!
//! Invariants: any bytes have a reading or one line that says what to give instead; nothing is asked of anybody, and nothing that
//! was pasted goes anywhere but into the answer.

mod advice;
mod answer;
mod denials;
mod layer;
mod lines;
mod message;
mod others;
mod printable;
mod quotas;
mod report;
mod terms;

use crate::args::{ExplainArgs, PolicyFile};
use crate::error::{CliError, Result};
use crate::{open, output};
use clap::Parser;
use lines::Line;
use message::Message;
pub use report::Report;
use std::io::Read;
use std::path::Path;
use tollgate_policy::Policy;

/// Bytes of what is pasted; an answer has some thousand, a denial some hundred.
pub const MOST_BYTES: u64 = 16 * 1024 * 1024;

/// What is known beside what was pasted.
#[derive(Debug, Clone, Copy, Default)]
pub struct Known<'a> {
    /// The policy that is thought to be in force.
    pub policy: Option<&'a Policy>,
    /// The plan of whoever was answered.
    pub plan: Option<&'a str>,
    /// Method and path of what was asked.
    pub route: Option<(&'a str, &'a str)>,
}

/// Whether the command line asks this, and not what a request would be charged.
pub(crate) fn is_asked(args: &ExplainArgs) -> bool {
    args.response.is_some() || args.log.is_some()
}

pub(crate) async fn run(args: &ExplainArgs) -> Result<()> {
    let policy = policy(&args.policy)?;
    if let Some(policy) = &policy {
        policy.plans().resolve(args.plan.as_deref())?;
    }
    let route = match (args.method.as_deref(), args.path.as_deref()) {
        (Some(method), Some(path)) => Some((method, path.split('?').next().unwrap_or(path))),
        (None, None) => None,
        _ => return Err(CliError::Input("--method and --path name a route together; give both or neither".to_owned())),
    };
    if let (Some(policy), Some((method, path))) = (&policy, route)
        && policy.route(method, path).is_none()
        && policy.exemption(method, path).is_none()
    {
        return Err(CliError::Input(format!(
            "the policy has no route for {method} {path}; `tollgate explain` tells what matches"
        )));
    }
    let known = Known { policy: policy.as_ref(), plan: args.plan.as_deref(), route };
    let report = match (&args.response, &args.log) {
        (Some(file), _) => of_response(&read(file)?, known),
        (None, Some(file)) => of_log(&read(file)?, known),
        (None, None) => return Ok(()),
    };
    let report = report.map_err(CliError::Input)?;
    output::result(args.json, &report, || report.text())
}

/// Why an answer was given.
///
/// # Errors
///
/// What is wrong with what was pasted, and what to give instead.
pub fn of_response(bytes: &[u8], known: Known<'_>) -> std::result::Result<Report, String> {
    let text = String::from_utf8_lossy(bytes);
    let message = Message::read(&text);
    if message.is_empty() {
        return Err("there is no answer in it; paste what `curl -i` prints".to_owned());
    }
    let is_line = message.status.is_none() && message.json().is_some_and(lines::is_of_ours);
    if is_line || (message.status.is_none() && lines::read(&text).iter().any(|line| !matches!(line, Line::Other))) {
        return Err("this is a line of a log, and not an answer; give it to --log".to_owned());
    }
    Ok(answer::report(&message, known))
}

/// Why calls were denied.
///
/// # Errors
///
/// What is wrong with what was pasted, and what to give instead.
pub fn of_log(bytes: &[u8], known: Known<'_>) -> std::result::Result<Report, String> {
    let text = String::from_utf8_lossy(bytes);
    let lines = lines::read(&text);
    let has_ours = lines.iter().any(|line| !matches!(line, Line::Other));
    if !has_ours {
        let message = Message::read(&text);
        let is_answer = message.status.is_some() || message.names().next().is_some() || message.json().is_some();
        return Err(if is_answer {
            "this is an answer, and not a line of a log; give it to --response".to_owned()
        } else {
            "there is no line of tollgate's log in it: objects of JSON with `target` and `message`, one a line"
                .to_owned()
        });
    }
    denials::report(&lines, known)
}

/// The policy: the one that is named, or the default if it is there.
fn policy(given: &PolicyFile) -> Result<Option<Policy>> {
    #[derive(Parser)]
    struct Unless {
        #[command(flatten)]
        file: PolicyFile,
    }
    let by_default = Unless::try_parse_from(["tollgate"]).is_ok_and(|unless| unless.file.policy == given.policy);
    if by_default && !given.policy.exists() && std::env::var_os("TOLLGATE_POLICY").is_none() {
        return Ok(None);
    }
    open::policy(&given.policy).map(Some)
}

/// All of a file or of standard input, up to [`MOST_BYTES`].
fn read(path: &Path) -> Result<Vec<u8>> {
    let failed = |source| CliError::Read { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    let taken = if path.as_os_str() == "-" {
        std::io::stdin().lock().take(MOST_BYTES + 1).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).map_err(failed)?.take(MOST_BYTES + 1).read_to_end(&mut bytes)
    };
    let taken = taken.map_err(failed)?;
    if taken as u64 > MOST_BYTES {
        let most = MOST_BYTES / 1024 / 1024;
        return Err(CliError::Input(format!("{} is over {most} MiB; give the part that matters", path.display())));
    }
    Ok(bytes)
}
