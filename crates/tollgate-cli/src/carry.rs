//! `tollgate carry KEY`: what is set for a caller under one of several secrets, and what its limits remember of locks, is so under
//! all of them.
//!
//! A hash does not tell whose it is, so only whoever has the value can carry: an operator before the functions get a new
//! secret, for one caller or for a list of all that the service knows.

use crate::args::CarryArgs;
use crate::error::{CliError, Result};
use crate::hold::Told;
use crate::key::{self, Subject};
use crate::lock::{self, ToldLock};
use crate::{open, output};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::io::BufRead;
use tollgate::{DynamoStore, Store};
use tollgate_dynamodb::admin::{self, Order};
use tollgate_dynamodb::partition_key;
use tollgate_policy::Policy;

#[derive(Default, Serialize)]
struct Carried {
    /// Keys that were read.
    keys: u64,
    /// Places where something is in force or remembered, with the items that have it now.
    holds: Vec<Place>,
    /// Lines of standard input that are no key to carry.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    bad_lines: Vec<BadLine>,
}

#[derive(Serialize)]
struct BadLine {
    line: usize,
    problem: String,
}

#[derive(Serialize)]
struct Place {
    pks: Vec<String>,
    hold: Option<Told>,
    /// What is remembered of the limits' locks.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    locks: BTreeMap<String, ToldLock>,
}

pub(crate) async fn run(args: &CarryArgs) -> Result<()> {
    let policy = key::policy_with_secrets(&args.on).await?;
    if policy.secrets().ids().count() < 2 {
        let why = "there is nothing to carry to: TOLLGATE_KEY_SECRETS has one secret at most, or the policy counts by no \
                   personal value; put the new secret in front of the old one";
        return Err(CliError::Input(why.to_owned()));
    }
    let store = open::target(&args.on.target).await?;
    let mut carried = Carried::default();
    if args.key == "-" {
        // One scan tells which of many keys are to be looked at.
        let held = admin::holds(&store).await?.into_iter().map(|standing| standing.pk);
        let locked = admin::locks(&store, lock::limits(&policy)).await?.into_iter().map(|locked| locked.pk);
        let held = held.chain(locked).collect();
        for (i, line) in std::io::stdin().lock().lines().enumerate() {
            let key = line.or_else(no_text)?;
            match subject(&policy, key.trim()) {
                _ if key.trim().is_empty() => {}
                Ok(subject) => carry(&store, &subject, Some(&held), &mut carried).await?,
                // One slip in a list of all callers must not leave the others behind.
                Err(error) => carried.bad_lines.push(BadLine { line: i + 1, problem: error.to_string() }),
            }
        }
    } else {
        carry(&store, &subject(&policy, &args.key)?, None, &mut carried).await?;
    }
    output::result(args.on.json, &carried, || text(&carried))?;
    check(&carried.bad_lines)
}

/// What stands for a line that is not UTF-8: no key is like that.
fn no_text(error: std::io::Error) -> Result<String> {
    match error.kind() {
        std::io::ErrorKind::InvalidData => Ok(char::REPLACEMENT_CHARACTER.to_string()),
        _ => Err(CliError::Read { path: "standard input".into(), source: error }),
    }
}

fn check(bad_lines: &[BadLine]) -> Result<()> {
    if bad_lines.is_empty() {
        return Ok(());
    }
    let lines: Vec<_> = bad_lines.iter().map(|bad| bad.line.to_string()).collect();
    Err(CliError::Check(format!(
        "no key to carry is on line {} of standard input; the others were carried: mend these, and run it again",
        lines.join(", ")
    )))
}

fn subject(policy: &Policy, key: &str) -> Result<Subject> {
    let subject = Subject::under(policy.clone(), key.parse()?)?;
    if subject.keys().count() > 1 {
        return Ok(subject);
    }
    Err(CliError::Input(format!("{key} is one key whatever the secret; give personal values as people write them")))
}

/// Carries what is set at the caller's places; at those only that are `held`, if that is known.
async fn carry(
    store: &DynamoStore,
    subject: &Subject,
    held: Option<&BTreeSet<String>>,
    carried: &mut Carried,
) -> Result<()> {
    carried.keys += 1;
    for place in subject.places() {
        let pks: Vec<_> = place.iter().map(partition_key::of).collect();
        if held.is_some_and(|held| !pks.iter().any(|pk| held.contains(pk))) {
            continue;
        }
        let ordered = admin::order(store, &place, &Order::Keep).await.map_err(|e| {
            let done: Vec<_> = carried.holds.iter().flat_map(|place| place.pks.clone()).collect();
            key::after(&done, &pks.join(", "), e)
        })?;
        let now = store.moment().now;
        let (hold, locks) = (Told::of(ordered.after.as_ref(), now), ToldLock::by_limit(&ordered.locks, now));
        if hold.is_some() || !locks.is_empty() {
            carried.holds.push(Place { pks, hold, locks });
        }
    }
    Ok(())
}

fn text(carried: &Carried) -> String {
    let mut text = String::new();
    for Place { pks, hold, locks } in &carried.holds {
        let set = hold.as_ref().map(|hold| Told::text(Some(hold)));
        let locked = Some(lock::text(locks)).filter(|text| !text.is_empty());
        let all: Vec<_> = set.into_iter().chain(locked).collect();
        let _ = writeln!(text, "{}\n  {}", pks.join("\n"), all.join("; "));
    }
    for BadLine { line, problem } in &carried.bad_lines {
        let _ = writeln!(text, "line {line}: {problem}");
    }
    let (n, holds) = (carried.keys, carried.holds.len());
    let _ = write!(text, "{n} key{} read, {holds} with something in force", if n == 1 { "" } else { "s" });
    text
}
