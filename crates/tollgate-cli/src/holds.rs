//! `tollgate holds`: the bans and overrides of the whole table, and the locks in force of the policy's limits; or the bans and
//! overrides that go with a secret that is being retired.

use crate::args::HoldsArgs;
use crate::error::Result;
use crate::hold::Told;
use crate::lock::{self, ToldLock};
use crate::retiring::{self, Retiring};
use crate::{key, open, output};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use tollgate::{DynamoStore, Store};
use tollgate_dynamodb::admin::{self, Locked, Standing};
use tollgate_policy::Policy;

#[derive(Serialize)]
struct Holds {
    holds: Vec<Line>,
    /// Keys that limits of the policy have locked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    locked: Vec<LockedLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retiring: Option<Retiring>,
}

#[derive(Serialize)]
struct LockedLine {
    pk: String,
    locks: BTreeMap<String, ToldLock>,
}

#[derive(Serialize)]
struct Line {
    pk: String,
    /// The secrets that personal values of the key are under.
    under: Vec<String>,
    hold: Told,
}

pub(crate) async fn run(args: &HoldsArgs) -> Result<()> {
    // What is set can be listed without knowing who is who.
    let policy = match args.under {
        Some(_) => key::policy_with_secrets(&args.on).await?,
        None => key::policy(&args.on)?,
    };
    let successor = args.under.as_deref().map(|id| retiring::successor(&policy, id)).transpose()?;
    let store = open::target(&args.on.target).await?;
    let mut holds = admin::holds(&store).await?;
    let mut retiring = None;
    if let (Some(id), Some(active)) = (&args.under, successor) {
        let horizon_secs = retiring::horizon_secs(&policy, &store, &holds, id).await?;
        holds = retiring::alone(&policy, holds, id, &active);
        retiring = Some(Retiring::new(id.clone(), active, &holds, horizon_secs));
    }
    let now = store.moment().now;
    let line = |Standing { pk, item, hold, .. }: Standing| {
        let under = item.iter().flat_map(|item| policy.secrets_of(&item.key)).map(str::to_owned).collect();
        Told::of(Some(&hold), now).map(|hold| Line { pk, under, hold })
    };
    let locked = if args.under.is_none() { locked(&policy, &store).await? } else { Vec::new() };
    let found = Holds { holds: holds.into_iter().filter_map(line).collect(), locked, retiring };
    output::result(args.on.json, &found, || text(&found))?;
    found.retiring.as_ref().map_or(Ok(()), |retiring| retiring.check(found.holds.len()))
}

/// The locks in force.
async fn locked(policy: &Policy, store: &DynamoStore) -> Result<Vec<LockedLine>> {
    let (all, now) = (admin::locks(store, lock::limits(policy)).await?, store.moment().now);
    let line = |Locked { pk, locks, .. }: Locked| {
        let mut locks = ToldLock::by_limit(&locks, now);
        locks.retain(|_, lock| lock.is_in_force());
        (!locks.is_empty()).then_some(LockedLine { pk, locks })
    };
    Ok(all.into_iter().filter_map(line).collect())
}

fn text(found: &Holds) -> String {
    let mut text = String::new();
    for Line { pk, under, hold } in &found.holds {
        let under = if under.is_empty() { String::new() } else { format!("; under {}", under.join(", ")) };
        let _ = writeln!(text, "{pk:<32} {}{under}", Told::text(Some(hold)));
    }
    for LockedLine { pk, locks } in &found.locked {
        let _ = writeln!(text, "{pk:<32} {}", lock::text(locks));
    }
    match &found.retiring {
        Some(retiring) => text += &retiring.text(),
        None if text.is_empty() => text.push_str("nothing is set"),
        None => {}
    }
    text
}
