//! Whether a secret that personal values are hashed under can go, and when.
//!
//! Invariants: a hold counts as carried only if the active secret has one with the same `id` that sets as much: hashes tell
//! nobody that two keys are one caller, but what was set for both at once has one `id`. Whatever the table may still owe
//! under the secret alone is reckoned in, by whichever figures it came to be: the policy's, an override's, an earlier policy's.

use crate::error::{CliError, Result};
use crate::hold::utc;
use serde::Serialize;
use std::fmt::Write;
use tollgate::DynamoStore;
use tollgate_core::ItemKey;
use tollgate_dynamodb::admin::{self, Standing};
use tollgate_dynamodb::partition_key;
use tollgate_policy::{KeySecrets, Policy};

/// What becomes of the table when a secret goes.
#[derive(Serialize)]
pub(crate) struct Retiring {
    id: String,
    active: String,
    /// Whether nothing in force goes with it.
    safe: bool,
    /// When the last that would go has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    until_ms: Option<u64>,
    /// For how long the table may remember what was charged before the active secret was charged, too.
    horizon_secs: u64,
}

impl Retiring {
    /// Of the secret `id`, which takes `holds` along.
    pub(crate) fn new(id: String, active: String, holds: &[Standing], horizon_secs: u64) -> Self {
        let until_ms = holds.iter().map(|standing| standing.hold.until().as_millis()).max();
        Self { id, active, safe: holds.is_empty(), until_ms, horizon_secs }
    }

    /// Two lines for people at most.
    pub(crate) fn text(&self) -> String {
        let Self { id, active, safe, horizon_secs, .. } = self;
        let mut text = String::new();
        if *safe {
            let _ = writeln!(text, "whatever is in force under {id} is in force under {active}, too");
        }
        let _ = write!(
            text,
            "limits and overrides remember what was charged under {id} alone for {horizon_secs} s: keep it for as long after all \
             functions have {active}"
        );
        text
    }

    /// That nothing in force goes with the secret.
    pub(crate) fn check(&self, goes: usize) -> Result<()> {
        let Retiring { id, active, safe, until_ms, .. } = self;
        if *safe {
            return Ok(());
        }
        let until = until_ms.map(utc).unwrap_or_default();
        Err(CliError::Check(format!(
            "{goes} in force not known to be under {active}, too (a digest, 1/sha/…, does not tell): carry each with `tollgate \
             carry KEY`, or keep {id} until {until}"
        )))
    }
}

/// The active secret, if `id` is one that is being retired.
pub(crate) fn successor(policy: &Policy, id: &str) -> Result<String> {
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
pub(crate) fn alone(policy: &Policy, holds: Vec<Standing>, id: &str, active: &str) -> Vec<Standing> {
    let is_under =
        |standing: &Standing, id: &str| standing.item.as_ref().is_some_and(|item| is_under(policy, item, id));
    let own = |standing: &Standing| standing.item.as_ref().map(|item| (item.own.clone(), item.shard()));
    let is_carried = |old: &Standing| {
        let same = |new: &&Standing| is_under(new, active) && new.hold.id == old.hold.id && own(new) == own(old);
        holds.iter().find(same).is_some_and(|new| {
            let figures = |limit| new.hold.overrides.get(limit);
            new.hold.banned_until >= old.hold.banned_until
                && old.hold.overrides.iter().all(|(limit, set)| figures(limit) == Some(set))
        })
    };
    let digests_go = may_be_digests(policy);
    let goes = |old: &&Standing| (old.item.is_none() && digests_go) || (is_under(old, id) && !is_carried(old));
    holds.iter().filter(goes).cloned().collect()
}

/// Whether a key with a personal value can be so long that the table has it as a digest, which does not tell: beside other
/// values, or under long names.
fn may_be_digests(policy: &Policy) -> bool {
    let is_personal = |name: &&str| policy.identity().dimension(name).is_some_and(|dimension| dimension.personal);
    policy.limits().iter().any(|limit| {
        // `1/own/LIMIT.SHARD/NAME:ID.HASH`, with three bytes for each of the name that is escaped.
        let shard = limit.shards().map_or(0, |_| 3);
        let beside = limit.name().as_str().len() + shard + KeySecrets::MAX_ID_BYTES + 31;
        let is_long = |name: &str| limit.key().len() > 1 || 3 * name.len() + beside > partition_key::LONGEST_PLAIN;
        limit.key().iter().flat_map(|part| part.alternatives()).filter(is_personal).any(is_long)
    })
}

/// Whether an item is under the secret `id`.
fn is_under(policy: &Policy, item: &ItemKey, id: &str) -> bool {
    policy.secrets_of(&item.key).contains(id)
}

/// For how long the table may remember what is charged under `id` alone, in seconds. `holds` are all that are in force.
pub(crate) async fn horizon_secs(policy: &Policy, store: &DynamoStore, holds: &[Standing], id: &str) -> Result<u64> {
    let digests_count = may_be_digests(policy);
    let counts = |item: Option<&ItemKey>| item.map_or(digests_count, |item| is_under(policy, item, id));
    let unheld = admin::memory_secs(store, policy.marks_of_secret(id), counts).await?;
    let mut longest = policy.personal_horizon_secs().max(unheld);
    for standing in holds {
        let Some(item) = standing.item.as_ref().filter(|item| is_under(policy, item, id)) else { continue };
        let remembered = admin::inspect(store, item).await?.item.and_then(|item| item.horizon).unwrap_or(0);
        let overrides = standing.hold.overrides.iter();
        let set = overrides.map(|(limit, set)| policy.override_horizon_secs(limit, &set.figures)).max().unwrap_or(0);
        longest = longest.max(remembered).max(set);
    }
    Ok(longest)
}
