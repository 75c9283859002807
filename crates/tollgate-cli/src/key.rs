//! What a command on a key works on: the keys that it means, and which items the policy keeps of them.
//!
//! Invariant: a limit that is named is one that the policy has and that the key can be counted by. Without a policy only the
//! item that limits share is worked on, and standard error says so.

use crate::args::{KeyArgs, Operated};
use crate::error::{CliError, Result};
use crate::output::note;
use crate::secrets::Tables;
use crate::{open, secrets};
use std::path::Path;
use tollgate_core::{ItemKey, Key, LimitName};
use tollgate_policy::Policy;

/// Where the policy is looked for if none is named.
const USUAL_POLICY: &str = "infra/tollgate.toml";

/// A caller, and what is known of its limits.
pub(crate) struct Subject {
    pub(crate) key: Key,
    /// The same caller under secrets that are being retired.
    retiring: Vec<Key>,
    policy: Option<Policy>,
}

impl Subject {
    /// What the command line names. With a policy, values are in any spelling, and personal ones as people write them or as
    /// a key shows them; without, the key is the one that is written.
    pub(crate) async fn of(args: &KeyArgs) -> Result<Self> {
        let policy = policy(&args.on)?;
        let key: Key = args.key.parse()?;
        let Some(mut policy) = policy else { return Ok(Self { key, retiring: Vec::new(), policy: None }) };
        if policy.hashes_some_of(&key) {
            let tables = if open::is_here(&args.on.target) { Tables::Here } else { Tables::Elsewhere };
            policy = secrets::attach(policy, tables).await?;
        }
        let mut keys = policy.keys_of_operator(&key).map_err(input)?.into_iter();
        let key = keys.next().unwrap_or(key);
        Ok(Self { key, retiring: keys.collect(), policy: Some(policy) })
    }

    /// Whether there is a policy that names can be checked against.
    pub(crate) fn has_policy(&self) -> bool {
        self.policy.is_some()
    }

    /// That somebody asks for the key.
    pub(crate) fn is_counted(&self) -> Result<()> {
        self.policy.as_ref().map_or(Ok(()), |policy| policy.counts_by(&self.key).map_err(input))
    }

    /// All keys of the caller, the one that counts first.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        std::iter::once(&self.key).chain(&self.retiring)
    }

    /// The items of all its keys, the shared one of the first key first.
    pub(crate) fn items(&self) -> Vec<ItemKey> {
        self.keys().flat_map(|key| self.items_of(key)).collect()
    }

    /// The items of one of its keys, the shared one first.
    fn items_of(&self, key: &Key) -> Vec<ItemKey> {
        self.policy.as_ref().map_or_else(|| vec![ItemKey::shared(key.clone())], |policy| policy.items(key))
    }

    /// The item that all limits share which have none of their own.
    pub(crate) fn shared(&self) -> ItemKey {
        ItemKey::shared(self.key.clone())
    }

    /// The limit of that name, with the items that keep it.
    pub(crate) fn limit(&self, name: &str) -> Result<(LimitName, Vec<ItemKey>)> {
        let Some(policy) = &self.policy else { return Ok((LimitName::new(name)?, vec![self.shared()])) };
        let limit = policy.limit_on(name, &self.key).map_err(input)?;
        Ok((limit.name().clone(), self.keys().map(|key| limit.item(key.clone())).collect()))
    }

    /// The limit that is named, if one is, and the items that are to be worked on.
    pub(crate) fn scope(&self, limit: Option<&str>) -> Result<(Option<LimitName>, Vec<ItemKey>)> {
        let Some(limit) = limit else { return Ok((None, self.items())) };
        let (limit, items) = self.limit(limit)?;
        Ok((Some(limit), items))
    }

    /// Says on standard error what was not worked on, for want of a policy.
    pub(crate) fn say_what_is_missing(&self) {
        if !self.has_policy() {
            note(format!(
                "note: no --policy is given and {USUAL_POLICY} is not here: limits with an item of their own are left out"
            ));
        }
    }
}

fn policy(on: &Operated) -> Result<Option<Policy>> {
    let usual = Path::new(USUAL_POLICY);
    let path = on.policy.as_deref().or_else(|| usual.exists().then_some(usual));
    path.map(open::policy).transpose()
}

/// What was given does not fit the policy.
pub(crate) fn input(error: tollgate_policy::Error) -> CliError {
    CliError::Input(error.to_string())
}

/// `failed` happened on the item `at`, after `done`: whoever works on several items must know which.
pub(crate) fn after(done: &[String], at: &str, failed: tollgate_dynamodb::Error) -> CliError {
    if done.is_empty() {
        return CliError::Store(failed);
    }
    let part = format!("done before: {}; not done: {at} and what follows; run the command again", done.join(", "));
    CliError::Part { part, source: failed }
}
