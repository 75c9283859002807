//! `tollgate holds`: the bans and overrides of the whole table, and whether a secret that is being retired can go.
//!
//! Invariant: a hold counts as carried only if the active secret has one with the same `id` that sets as much: hashes tell
//! nobody that two keys are one caller, but what was set for both at once has one `id`.

use crate::args::HoldsArgs;
use crate::error::{CliError, Result};
use crate::hold::{Told, utc};
use crate::{key, open, output};
use serde::Serialize;
use std::fmt::Write;
use tollgate::Store;
use tollgate_dynamodb::admin::{self, Standing};
use tollgate_policy::Policy;

#[derive(Serialize)]
struct Holds {
    holds: Vec<Line>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retiring: Option<Retiring>,
}

#[derive(Serialize)]
struct Line {
    pk: String,
    /// The secrets that personal values of the key are under.
    under: Vec<String>,
    hold: Told,
}

/// What becomes of the table when a secret goes.
#[derive(Serialize)]
struct Retiring {
    id: String,
    active: String,
    /// Whether nothing in force goes with it.
    safe: bool,
    /// When the last that would go has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    until_ms: Option<u64>,
    /// For how long limits remember what was charged before the active secret was charged, too.
    horizon_secs: u64,
}

pub(crate) async fn run(args: &HoldsArgs) -> Result<()> {
    let policy = key::policy_with_secrets(&args.on).await?;
    let active = args.under.as_deref().map(|id| successor(&policy, id)).transpose()?;
    let store = open::target(&args.on.target).await?;
    let mut holds = admin::holds(&store).await?;
    let mut retiring = None;
    if let (Some(id), Some(active)) = (&args.under, active) {
        holds = alone(&policy, holds, id, &active);
        let until_ms = holds.iter().map(|standing| standing.hold.until().as_millis()).max();
        let safe = holds.is_empty();
        retiring =
            Some(Retiring { id: id.clone(), active, safe, until_ms, horizon_secs: policy.personal_horizon_secs() });
    }
    let now = store.moment().now;
    let line = |Standing { pk, item, hold, .. }: Standing| {
        let under = item.iter().flat_map(|item| policy.secrets_of(&item.key)).map(str::to_owned).collect();
        Told::of(Some(&hold), now).map(|hold| Line { pk, under, hold })
    };
    let found = Holds { holds: holds.into_iter().filter_map(line).collect(), retiring };
    output::result(args.on.json, &found, || text(&found))?;
    found.retiring.as_ref().map_or(Ok(()), |retiring| check(retiring, found.holds.len()))
}

/// The active secret, if `id` is one that is being retired.
fn successor(policy: &Policy, id: &str) -> Result<String> {
    let ids: Vec<_> = policy.secrets().ids().collect();
    match ids.split_first() {
        Some((active, retiring)) if retiring.contains(&id) => Ok((*active).to_owned()),
        Some((active, _)) if *active == id => Err(CliError::Input(format!(
            "{id:?} is the active secret: put its successor in front of it in TOLLGATE_KEY_SECRETS"
        ))),
        _ => Err(CliError::Input(format!(
            "TOLLGATE_KEY_SECRETS has no {id:?} (it has: {}); give the text that the functions have during the rotation",
            if ids.is_empty() { "nothing that this policy needs".to_owned() } else { ids.join(", ") }
        ))),
    }
}

/// The holds that are under `id` and not under `active`, and those that do not tell what they are under.
fn alone(policy: &Policy, holds: Vec<Standing>, id: &str, active: &str) -> Vec<Standing> {
    let is_under = |standing: &Standing, id: &str| {
        standing.item.as_ref().is_some_and(|item| policy.secrets_of(&item.key).contains(id))
    };
    let own = |standing: &Standing| standing.item.as_ref().map(|item| item.own.clone());
    let is_carried = |old: &Standing| {
        let same = |new: &&Standing| is_under(new, active) && new.hold.id == old.hold.id && own(new) == own(old);
        holds.iter().find(same).is_some_and(|new| {
            let figures = |limit| new.hold.overrides.get(limit);
            new.hold.banned_until >= old.hold.banned_until
                && old.hold.overrides.iter().all(|(limit, set)| figures(limit) == Some(set))
        })
    };
    let goes = |old: &&Standing| old.item.is_none() || (is_under(old, id) && !is_carried(old));
    holds.iter().filter(goes).cloned().collect()
}

fn text(found: &Holds) -> String {
    let mut text = String::new();
    for Line { pk, under, hold } in &found.holds {
        let under = if under.is_empty() { String::new() } else { format!("; under {}", under.join(", ")) };
        let _ = writeln!(text, "{pk:<32} {}{under}", Told::text(Some(hold)));
    }
    let Some(Retiring { id, active, safe, horizon_secs, .. }) = &found.retiring else {
        return if text.is_empty() { "nothing is set".to_owned() } else { text };
    };
    if *safe {
        let _ = writeln!(text, "whatever is in force under {id} is in force under {active}, too");
    }
    let _ = write!(
        text,
        "limits remember what was charged under {id} alone for {horizon_secs} s: keep it for as long after all functions \
         have {active}"
    );
    text
}

fn check(retiring: &Retiring, goes: usize) -> Result<()> {
    let Retiring { id, active, safe, until_ms, .. } = retiring;
    if *safe {
        return Ok(());
    }
    let until = until_ms.map(utc).unwrap_or_default();
    Err(CliError::Check(format!(
        "{goes} in force not known to be under {active}, too (a digest, 1/sha/…, does not tell): carry each with `tollgate \
         carry KEY`, or keep {id} until {until}"
    )))
}
