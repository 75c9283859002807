//! `tollgate replay LOG`.

mod edge;

use crate::args::ReplayArgs;
use crate::error::{CliError, Result};
use crate::secrets::Keys;
use crate::{open, output, secrets};
use edge::{Ahead, RuleReport};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::fs::File;
use std::io::{BufRead, BufReader};
use tollgate_replay::{Entry, Options, Report, replay_beside, text};

pub(crate) async fn run(args: &ReplayArgs) -> Result<()> {
    let policy = secrets::attach(open::policy(&args.policy.policy)?, Keys::OfOnesOwn).await?;
    let mut options = Options::default();
    options.top_denied = args.top;
    let (log, bytes) = log(args)?;
    let bar = progress(bytes);
    let mut ahead = Ahead::of(&policy);
    let beside = |entry: &Entry<'_>| ahead.iter_mut().for_each(|ahead| ahead.see(entry));
    let report = replay_beside(log, &policy, &options, |read| bar.set_position(read), beside)
        .map_err(|e| CliError::Input(format!("{}: {e}", args.log.display())))?;
    bar.finish_and_clear();
    let edge = ahead.map_or_else(Vec::new, |ahead| ahead.report(args.top));
    let replayed = Replayed { report, edge };
    output::result(args.json, &replayed, || {
        let ahead: String = replayed.edge.iter().map(RuleReport::text).collect();
        text::render(&replayed.report) + &ahead
    })
}

/// What the limits would have done, and the rules in front.
#[derive(Serialize)]
struct Replayed {
    #[serde(flatten)]
    report: Report,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    edge: Vec<RuleReport>,
}

/// The log, and its size if it has one.
fn log(args: &ReplayArgs) -> Result<(Box<dyn BufRead>, Option<u64>)> {
    if args.log.as_os_str() == "-" {
        return Ok((Box::new(BufReader::new(std::io::stdin())), None));
    }
    let failed = |source| CliError::Read { path: args.log.clone(), source };
    let file = File::open(&args.log).map_err(failed)?;
    let bytes = file.metadata().map_err(failed)?.len();
    Ok((Box::new(BufReader::with_capacity(1 << 16, file)), Some(bytes)))
}

/// A bar on standard error, if that is a terminal; nothing elsewhere.
fn progress(bytes: Option<u64>) -> ProgressBar {
    let (bar, template) = match bytes {
        Some(bytes) => (ProgressBar::new(bytes), "{bar:40} {bytes} of {total_bytes}, {eta} left"),
        None => (ProgressBar::new_spinner(), "{spinner} {bytes} read"),
    };
    ProgressStyle::with_template(template).map_or(bar.clone(), |style| bar.with_style(style))
}
