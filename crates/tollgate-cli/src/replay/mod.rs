//! `tollgate replay LOG…`.

mod edge;
mod inputs;
mod page;
mod suggest;
mod text;

use crate::args::ReplayArgs;
use crate::error::{CliError, Result};
use crate::open;
use crate::output;
use crate::secrets::{self, Keys};
use edge::{Ahead, RuleReport};
use indicatif::{ProgressBar, ProgressStyle};
use inputs::Input;
use serde::Serialize;
use std::path::Path;
use suggest::Suggested;
use tollgate_policy::Policy;
use tollgate_replay::{Applied, Entry, Options, Replay, Report};

pub(crate) async fn run(args: &ReplayArgs) -> Result<()> {
    let inputs = inputs::named(&args.logs)?;
    let policy = policy(&args.policy.policy).await?;
    let other = match &args.compare {
        Some(path) => Some(self::policy(path).await?),
        None => None,
    };
    check_identity(args, &[Some(&policy), other.as_ref()])?;
    let (rules, other_rules) = (applied(&policy, args)?, other.as_ref().map(|other| applied(other, args)).transpose()?);
    let mut options = Options::default();
    options.top_denied = args.top;
    options.parts = if args.html.is_some() { page::PARTS } else { 0 };
    let mut replay = Replay::new(&rules, options);
    if let Some(rules) = &other_rules {
        replay = replay.compared_to(rules);
    }
    let mut ahead = [Some(&policy), other.as_ref()].map(|policy| policy.and_then(Ahead::of));
    let bar = progress(&inputs);
    for input in &inputs {
        let beside = |entry: &Entry<'_>| ahead.iter_mut().flatten().for_each(|ahead| ahead.see(entry));
        replay.read(Some(&input.name()), input.open(&bar)?, beside).map_err(input_error)?;
    }
    bar.finish_and_clear();
    let report = replay.report().map_err(input_error)?;
    let [edge, edge_of_other] =
        ahead.map(|ahead| ahead.map_or(Ok(Vec::new()), |ahead| ahead.report(args.top, report.waf.as_ref())));
    let suggest = match &args.suggest {
        Some(percentile) => Some(Suggested::new(&policy, replay.suggest().map_err(input_error)?, percentile)),
        None => None,
    };
    let replayed = Replayed { report, edge: edge?, edge_of_other: edge_of_other?, suggest };
    if let Some(path) = &args.html {
        crate::page::write(path, &page::render(&replayed)?)?;
    }
    output::result(args.json, &replayed, || text::render(&replayed))
}

/// What the limits would have done, and the rules in front.
#[derive(Serialize)]
struct Replayed {
    #[serde(flatten)]
    report: Report,
    /// About what the rules in front would have counted: WAF looks now and then, by estimates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    edge: Vec<RuleReport>,
    /// The same of the other policy.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    edge_of_other: Vec<RuleReport>,
    /// Limits out of the traffic.
    #[serde(skip_serializing_if = "Option::is_none")]
    suggest: Option<Suggested>,
}

/// Loads a policy, with the secrets that it needs.
async fn policy(path: &Path) -> Result<Policy> {
    secrets::attach(open::policy(path)?, Keys::OfOnesOwn).await
}

/// That every dimension that is named is one of a policy.
fn check_identity(args: &ReplayArgs, policies: &[Option<&Policy>]) -> Result<()> {
    for told in &args.identity {
        let named = told.split_once('=').filter(|(dimension, field)| !dimension.is_empty() && !field.is_empty());
        let Some((dimension, _)) = named else {
            let help = "write DIMENSION=FIELD, for instance user=claims.sub";
            return Err(CliError::Input(format!("--identity {told}: {help}")));
        };
        if !policies.iter().flatten().any(|policy| policy.identity().dimension(dimension).is_some()) {
            let help = "name one under [identity], or user, tenant, plan, session, api_key or client_ip";
            return Err(CliError::Input(format!(
                "--identity {told}: the policy has no dimension {dimension:?}; {help}"
            )));
        }
    }
    Ok(())
}

/// The policy, and where the log tells what it asks.
fn applied<'p>(policy: &'p Policy, args: &ReplayArgs) -> Result<Applied<'p>> {
    let mut rules = Applied::new(policy);
    for (dimension, field) in args.identity.iter().filter_map(|told| told.split_once('=')) {
        rules = rules.with_field(dimension, field);
    }
    if let Some(plan) = &args.plan {
        policy.plans().resolve(Some(plan))?;
        rules = rules.with_plan(plan);
    }
    Ok(rules)
}

fn input_error(error: tollgate_replay::Error) -> CliError {
    match error {
        tollgate_replay::Error::Spool(_) => CliError::System(error.to_string()),
        error => CliError::Input(error.to_string()),
    }
}

/// A bar on standard error, if that is a terminal; nothing elsewhere.
fn progress(inputs: &[Input]) -> ProgressBar {
    let bytes: Option<u64> = inputs.iter().map(Input::bytes).sum();
    let (bar, template) = match bytes {
        Some(bytes) => (ProgressBar::new(bytes), "{bar:40} {bytes} of {total_bytes}, {eta} left"),
        None => (ProgressBar::new_spinner(), "{spinner} {bytes} read"),
    };
    ProgressStyle::with_template(template).map_or(bar.clone(), |style| bar.with_style(style))
}
