//! What a command on a key works on: the key, and which items the policy keeps of it.
//!
//! Invariant: a limit that is named is one that the policy has and that the key can be counted by. Without a policy only the
//! item that limits share is worked on, and standard error says so.

use crate::args::{KeyArgs, Operated};
use crate::error::{CliError, Result};
use crate::open;
use crate::output::note;
use std::path::Path;
use tollgate_core::{ItemKey, Key, LimitName};
use tollgate_policy::Policy;

/// Where the policy is looked for if none is named.
const USUAL_POLICY: &str = "infra/tollgate.toml";

/// A key, and what is known of its limits.
pub(crate) struct Subject {
    pub(crate) key: Key,
    policy: Option<Policy>,
}

impl Subject {
    /// What the command line names.
    pub(crate) fn of(args: &KeyArgs) -> Result<Self> {
        let policy = policy(&args.on)?;
        Ok(Self { key: key(&args.key)?, policy })
    }

    /// Whether there is a policy that names can be checked against.
    pub(crate) fn has_policy(&self) -> bool {
        self.policy.is_some()
    }

    /// That somebody asks for the key.
    pub(crate) fn is_counted(&self) -> Result<()> {
        self.policy.as_ref().map_or(Ok(()), |policy| policy.counts_by(&self.key).map_err(input))
    }

    /// The items of the key, the shared one first.
    pub(crate) fn items(&self) -> Vec<ItemKey> {
        self.policy.as_ref().map_or_else(|| vec![self.shared()], |policy| policy.items(&self.key))
    }

    /// The item that all limits share which have none of their own.
    pub(crate) fn shared(&self) -> ItemKey {
        ItemKey::shared(self.key.clone())
    }

    /// The limit of that name, with the item that keeps it.
    pub(crate) fn limit(&self, name: &str) -> Result<(LimitName, ItemKey)> {
        match &self.policy {
            Some(policy) => {
                let limit = policy.limit_on(name, &self.key).map_err(input)?;
                Ok((limit.name().clone(), limit.item(self.key.clone())))
            }
            None => Ok((LimitName::new(name)?, self.shared())),
        }
    }

    /// The limit that is named, if one is, and the items that are to be worked on.
    pub(crate) fn scope(&self, limit: Option<&str>) -> Result<(Option<LimitName>, Vec<ItemKey>)> {
        let Some(limit) = limit else { return Ok((None, self.items())) };
        let (limit, item) = self.limit(limit)?;
        Ok((Some(limit), vec![item]))
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

/// The key as it is counted by.
fn key(text: &str) -> Result<Key> {
    Ok(text.parse()?)
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
