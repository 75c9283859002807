//! What a command on a key works on: the keys that it means, and which items the policy keeps of them.
//!
//! Invariant: a key that is read by the policy is one that a limit is counted by, so that nobody takes a slip for a success;
//! one that is not (`--literal-key`) is taken to the letter, and nothing is set on it that a policy does not know the
//! dimensions of. A limit that is named is one that the key can be counted by.

use crate::args::{KeyArgs, Operated};
use crate::error::{CliError, Result};
use crate::output::note;
use crate::secrets::Keys;
use crate::{open, secrets};
use std::num::NonZeroU16;
use std::path::Path;
use tollgate_core::{Figures, ItemKey, Key, LimitName};
use tollgate_policy::{Algorithm, Limit, Network, Policy};

/// Where the policy is looked for if none is named.
const USUAL_POLICY: &str = "infra/tollgate.toml";

/// A caller, and what is known of its limits.
pub(crate) struct Subject {
    pub(crate) key: Key,
    /// The same caller under secrets that are being retired.
    retiring: Vec<Key>,
    /// The policy at hand, whether it counts by the key or not.
    policy: Option<Policy>,
}

impl Subject {
    /// What the command line names.
    pub(crate) async fn of(args: &KeyArgs) -> Result<Self> {
        let key: Key = args.key.parse()?;
        if args.literal_key {
            return Ok(Self { key, retiring: Vec::new(), policy: found_policy(&args.on)? });
        }
        let mut policy = policy(&args.on)?;
        if policy.hashes_some_of(&key) {
            policy = secrets::attach(policy, Keys::Of(&args.on.target)).await?;
        }
        Self::under(policy, key)
    }

    /// A key with values in any spelling, and personal ones as people write them or as a key shows them.
    pub(crate) fn under(policy: Policy, key: Key) -> Result<Self> {
        let slip = |error| format!("{error}; --literal-key takes a key that the policy does not count by");
        policy.counts_by(&key).map_err(|error| CliError::Input(slip(error)))?;
        if let Some(id) = policy.secrets_of(&key).iter().find(|id| !policy.secrets().ids().any(|known| known == **id)) {
            let why =
                format!("{key} is as a key shows it under secret {id:?}, which TOLLGATE_KEY_SECRETS does not have");
            return Err(CliError::Input(format!("{why}; add the secret, or say --literal-key")));
        }
        check_address(&policy, key.dimensions())?;
        let mut keys = policy.keys_of_operator(&key)?.into_iter();
        let key = keys.next().unwrap_or(key);
        Ok(Self { key, retiring: keys.collect(), policy: Some(policy) })
    }

    /// The policy, if it counts by the key, so that names can be checked against it.
    fn counting(&self) -> Option<&Policy> {
        self.policy.as_ref().filter(|policy| policy.counts_by(&self.key).is_ok())
    }

    /// Whether a policy counts by the key.
    pub(crate) fn is_counted(&self) -> bool {
        self.counting().is_some()
    }

    /// That setting something on the key puts no personal value into the table in plain: a policy declares all its dimensions,
    /// and those that are personal have what stands for a value.
    pub(crate) fn may_be_set(&self) -> Result<()> {
        let policy = self.policy.as_ref().ok_or_else(no_policy)?;
        if let Some(name) = policy.plain_personal(&self.key) {
            let why = format!("`{name}` is personal, and the table has its values as keyed hashes only");
            return Err(CliError::Input(format!("{why}; leave --literal-key out, or write it as a key shows it")));
        }
        let is_told = |name: &str| policy.identity().dimension(name).is_some() || self.is_counted();
        self.key.dimensions().find(|(name, _)| !is_told(name)).map_or(Ok(()), |(name, _)| {
            let why =
                format!("the policy does not declare `{name}`, so it does not tell whether its values are personal");
            Err(CliError::Input(format!("{why}; name the policy that counts by it")))
        })
    }

    /// Whether the caller is known under one secret of several only, since its key was given as it was shown.
    pub(crate) fn is_one_of_several(&self) -> bool {
        let names_one =
            |policy: &Policy| policy.secrets().ids().count() > 1 && !policy.secrets_of(&self.key).is_empty();
        self.retiring.is_empty() && self.policy.as_ref().is_some_and(names_one)
    }

    /// All keys of the caller, the one that counts first.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        std::iter::once(&self.key).chain(&self.retiring)
    }

    /// The items of all its keys, the shared one of the first key first.
    pub(crate) fn items(&self) -> Vec<ItemKey> {
        self.keys().flat_map(|key| self.items_of(key)).collect()
    }

    /// The items of all its keys by place: the shared ones first, then those of each limit that has its own, shards together.
    pub(crate) fn places(&self) -> Vec<Vec<ItemKey>> {
        let mut places: Vec<Vec<ItemKey>> = Vec::new();
        for item in self.items() {
            match places.iter_mut().find(|place| place.iter().any(|other| other.own == item.own)) {
                Some(place) => place.push(item),
                None => places.push(vec![item]),
            }
        }
        places
    }

    /// The items of one of its keys, the shared one first.
    fn items_of(&self, key: &Key) -> Vec<ItemKey> {
        self.counting().map_or_else(|| vec![ItemKey::shared(key.clone())], |policy| policy.items(key))
    }

    /// The item that all limits share which have none of their own.
    pub(crate) fn shared(&self) -> ItemKey {
        ItemKey::shared(self.key.clone())
    }

    /// The limit of that name, with the items that keep it.
    pub(crate) fn limit(&self, name: &str) -> Result<(LimitName, Vec<ItemKey>)> {
        let Some(policy) = self.counting() else { return Ok((LimitName::new(name)?, vec![self.shared()])) };
        let limit = policy.limit_on(name, &self.key)?;
        Ok((limit.name().clone(), self.keys().flat_map(|key| limit.items(key.clone())).collect()))
    }

    /// How a limit counts, as far as a policy at hand says.
    pub(crate) fn algorithm(&self, limit: &LimitName) -> Algorithm {
        self.known(limit).map(Limit::algorithm).unwrap_or_default()
    }

    /// The figures of a limit, as far as a policy at hand says.
    pub(crate) fn figures(&self, limit: &LimitName) -> Option<Figures> {
        self.known(limit).map(|limit| limit.figures(None).core())
    }

    /// How many shards a limit has, as far as a policy at hand says.
    pub(crate) fn shards(&self, limit: &LimitName) -> Option<NonZeroU16> {
        self.known(limit).and_then(Limit::shards)
    }

    /// The figures of a limit on a plan, as far as a policy at hand says.
    pub(crate) fn figures_on(&self, limit: &LimitName, plan: &str) -> Option<Figures> {
        self.known(limit).map(|limit| limit.figures(Some(plan)).core())
    }

    fn known(&self, limit: &LimitName) -> Option<&Limit> {
        self.counting().and_then(|policy| policy.limit(limit.as_str()).ok())
    }

    /// The limit that is named, if one is, and the places that are to be worked on.
    pub(crate) fn scope(&self, limit: Option<&str>) -> Result<(Option<LimitName>, Vec<Vec<ItemKey>>)> {
        let Some(limit) = limit else { return Ok((None, self.places())) };
        let (limit, place) = self.limit(limit)?;
        Ok((Some(limit), vec![place]))
    }

    /// Says on standard error which items were not worked on, for want of a policy.
    pub(crate) fn say_which_items_are_missing(&self) {
        if !self.is_counted() {
            let key = &self.key;
            note(format!("note: no policy at hand counts by {key}: limits with an item of their own are left out"));
        }
    }

    /// Says on standard error that the caller has more keys than the one that was named.
    pub(crate) fn say_which_keys_are_missing(&self) {
        if self.is_one_of_several() {
            let key = &self.key;
            note(format!(
                "note: {key} is the caller under one secret of several; to reach all, give the value instead of its hash"
            ));
        }
    }
}

/// That the client's address among the `values` of dimensions is one, or a network that a key shows: no call is counted by
/// anything else.
pub(crate) fn check_address<'a>(policy: &Policy, values: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<()> {
    let prefix = policy.identity().client_ip().ipv6_prefix;
    let is_wrong = |(name, value): &(&str, &str)| *name == "client_ip" && Network::read(value, prefix).is_none();
    values.into_iter().find(is_wrong).map_or(Ok(()), |(_, value)| {
        let help =
            format!("write one like 192.0.2.1, or a network of IPv6 as a key shows it, like 2001:db8::/{prefix}");
        Err(CliError::Input(format!("{value:?} is not the IP address of a client; {help}")))
    })
}

/// The policy that a command on keys needs.
pub(crate) fn policy(on: &Operated) -> Result<Policy> {
    found_policy(on)?.ok_or_else(|| {
        CliError::Input(format!(
            "no --policy is given and {USUAL_POLICY} is not here, and only a policy tells which values are personal and \
             how they are spelled; name it, or say --literal-key if the table has KEY as it is written"
        ))
    })
}

/// There is none, and nothing is to be written without.
pub(crate) fn no_policy() -> CliError {
    let why = "only a policy tells which values are personal, which the table has as keyed hashes only";
    CliError::Input(format!("no --policy is given and {USUAL_POLICY} is not here, and {why}; name it"))
}

/// The policy that is named, or the usual one if it is there.
pub(crate) fn found_policy(on: &Operated) -> Result<Option<Policy>> {
    let usual = Path::new(USUAL_POLICY);
    let path = on.policy.as_deref().or_else(|| usual.exists().then_some(usual));
    path.map(open::policy).transpose()
}

/// The same, with the secrets that the keys of the table are under.
pub(crate) async fn policy_with_secrets(on: &Operated) -> Result<Policy> {
    secrets::attach(policy(on)?, Keys::Of(&on.target)).await
}

/// `failed` happened on the item `at`, after `done`: whoever works on several items must know which.
pub(crate) fn after(done: &[String], at: &str, failed: tollgate_dynamodb::Error) -> CliError {
    if done.is_empty() {
        return CliError::Store(failed);
    }
    let part = format!("done before: {}; not done: {at} and what follows; run the command again", done.join(", "));
    CliError::Part { part, source: failed }
}
