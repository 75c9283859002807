//! From a caller's values to the keys that it is charged on: one spelling of each, and personal ones as keyed hashes.
//!
//! Invariant: no personal value is in a key; without secrets there is no key, and an error instead. Every secret gives a
//! key of its own, the active one's first, so that whoever is charged under all of them has the same bucket before and
//! after a new secret came into force.

use crate::error::{Error, Result};
use crate::identity::{Identity, Source};
use crate::limit::Limit;
use crate::policy::Policy;
use crate::pseudonym::KeySecrets;
use std::borrow::Cow;
use std::collections::BTreeSet;
use tollgate_core::{Figures, Key, LimitName};

impl Policy {
    /// The one spelling of a value that a caller gave, as [`Identity::canonical`](crate::Identity::canonical); empty if
    /// nothing of it counts.
    pub(crate) fn one_spelling(&self, dimension: &str, value: &str) -> Result<String> {
        // Before folding, which takes time by length; and a hash would hide the length.
        if value.len() > Key::MAX_BYTES {
            return Err(tollgate_core::Error::KeyTooLong { bytes: value.len() }.into());
        }
        Ok(self.identity().canonical(dimension, value))
    }

    /// The value of a dimension for a caller of whom `lookup` tells what there is, in its one spelling; `None` if there is
    /// none, or nothing of it counts.
    ///
    /// # Errors
    ///
    /// [`Error::NoSecrets`] of a device, or [`Error::Core`] if it is over 2 KB.
    pub fn value(&self, dimension: &str, lookup: impl Fn(&str) -> Option<String>) -> Result<Option<String>> {
        let found = match self.identity().source(dimension) {
            Some(Source::Everyone) => Some(Identity::EVERYONE.to_owned()),
            Some(Source::Device(_)) if self.secrets().is_empty() => {
                return Err(Error::NoSecrets { what: crate::suggest::quoted([dimension]) });
            }
            _ => lookup(dimension),
        };
        let spelling = found.map(|value| self.one_spelling(dimension, &value)).transpose()?;
        Ok(spelling.filter(|value| !value.is_empty()))
    }

    /// The keys of dimensions and values in their one spelling, personal ones as hashes: one for each secret where there is any such,
    /// the active one's first.
    ///
    /// # Errors
    ///
    /// [`Error::NoSecrets`], or [`Error::Core`] if a value is empty or over 2 KB.
    pub fn keys(&self, pairs: &[(&str, String)]) -> Result<Vec<Key>> {
        self.keys_but_for(pairs, |_| false)
    }

    /// The keys that an operator means by `key`: values in any spelling, or, of personal ones, what stands for them in
    /// keys that were shown. The active secret's first.
    ///
    /// # Errors
    ///
    /// [`Error::NoSecrets`], or [`Error::Core`] if nothing of a value counts.
    pub fn keys_of_operator(&self, key: &Key) -> Result<Vec<Key>> {
        // Only here: a client that could give what stands for somebody would choose whose bucket it is charged on.
        let is_shown = |value: &str| self.secrets().is_pseudonym(value);
        let pairs = key.dimensions().map(|(name, value)| {
            let personal = self.is_personal(name) && is_shown(value);
            Ok((name, if personal { value.to_owned() } else { self.one_spelling(name, value)? }))
        });
        self.keys_but_for(&pairs.collect::<Result<Vec<_>>>()?, is_shown)
    }

    fn keys_but_for(&self, pairs: &[(&str, String)], is_shown: impl Fn(&str) -> bool) -> Result<Vec<Key>> {
        let hides = |(name, value): &(&str, String)| self.is_personal(name) && !is_shown(value);
        if !pairs.iter().any(hides) {
            return Ok(vec![Key::new(pairs.iter().map(|(name, value)| (*name, value.as_str())))?]);
        }
        if self.secrets().is_empty() {
            let hidden = pairs.iter().filter(|pair| hides(pair)).map(|(name, _)| *name);
            return Err(Error::NoSecrets { what: crate::suggest::quoted(hidden) });
        }
        let mut columns: Vec<Vec<Cow<'_, str>>> = Vec::with_capacity(pairs.len());
        let secrets = self.secrets().ids().count();
        for pair @ (name, value) in pairs {
            columns.push(if hides(pair) {
                self.secrets().pseudonyms(name, value).map(Cow::Owned).collect()
            } else {
                vec![Cow::Borrowed(value.as_str()); secrets]
            });
        }
        let row = |i: usize| {
            let values = columns.iter().map(|column| column.get(i).map_or("", |value| value));
            Ok(Key::new(pairs.iter().map(|(name, _)| *name).zip(values))?)
        };
        (0..secrets).map(row).collect()
    }

    /// Whether the key has values that are kept as hashes only, so that [`Self::keys_of_operator`] needs secrets.
    #[must_use]
    pub fn hashes_some_of(&self, key: &Key) -> bool {
        key.dimensions().any(|(name, value)| self.is_personal(name) && !self.secrets().is_pseudonym(value))
    }

    /// The secrets that the personal values of a stored key are hashed under, known here or not; empty if it has none.
    #[must_use]
    pub fn secrets_of<'a>(&self, key: &'a Key) -> BTreeSet<&'a str> {
        key.dimensions().filter(|(name, _)| self.is_personal(name)).filter_map(|(_, v)| KeySecrets::id_of(v)).collect()
    }

    /// The first dimension of the key that has a personal value in plain, which no table is to have.
    #[must_use]
    pub fn plain_personal<'a>(&self, key: &'a Key) -> Option<&'a str> {
        let is_plain = |(name, value): &(&str, &str)| self.is_personal(name) && KeySecrets::id_of(value).is_none();
        key.dimensions().find(is_plain).map(|(name, _)| name)
    }

    /// What the text of every key contains that has a personal value under the secret `id`: one of these.
    #[must_use]
    pub fn marks_of_secret(&self, id: &str) -> Vec<String> {
        let mark = |name: &str| Key::new([(name, format!("{id}."))]).ok().map(|key| key.to_string());
        self.counted_by(|name| self.is_personal(name)).into_iter().filter_map(mark).collect()
    }

    /// For how long what is charged under an override of `limit` is remembered at most, in seconds: by its own figures, and
    /// then, as what is owed moves out of it unclamped, by the slowest of the policy's.
    #[must_use]
    pub fn override_horizon_secs(&self, limit: &LimitName, figures: &Figures) -> u64 {
        let limit = self.limit(limit.as_str()).ok();
        let set = limit.map_or(*figures, |limit| limit.kept(*figures));
        let after = limit.map_or(0, |limit| limit.horizon_of_secs(set.most()));
        set.horizon_secs().saturating_add(after)
    }

    /// For how long a limit that is counted by personal values remembers at most, in seconds, by the policy's figures. What
    /// a secret must be kept for once another one is charged beside it, unless the table remembers something longer:
    /// under an override ([`Self::override_horizon_secs`]) or an earlier policy.
    #[must_use]
    pub fn personal_horizon_secs(&self) -> u64 {
        let is_personal =
            |limit: &&Limit| limit.key.iter().any(|part| part.alternatives().any(|d| self.is_personal(d)));
        self.limits().iter().filter(is_personal).map(Limit::memory_secs).max().unwrap_or(0)
    }

    /// Whether the dimension's values are kept as keyed hashes only.
    fn is_personal(&self, dimension: &str) -> bool {
        self.identity().dimension(dimension).is_some_and(|dimension| dimension.personal)
    }

    /// Whether the dimension has no value without a secret.
    fn is_secret(&self, dimension: &str) -> bool {
        self.is_personal(dimension) || matches!(self.identity().source(dimension), Some(Source::Device(_)))
    }

    /// Those dimensions that a limit is counted by, in order of first appearance.
    fn counted_by(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<&str> {
        let used = self.limits().iter().flat_map(|limit| &limit.key).flat_map(|part| part.alternatives());
        let mut wanted = Vec::new();
        for name in used.filter(|name| is_wanted(name)) {
            if !wanted.contains(&name) {
                wanted.push(name);
            }
        }
        wanted
    }

    /// What is kept as a hash under [`KeySecrets`] only, or signed by them: personal values and devices that limits are counted by,
    /// and one-time codes.
    fn wanting_secrets(&self) -> Vec<&str> {
        let mut wanting = self.counted_by(|name| self.is_secret(name));
        wanting.extend(self.otp.is_some().then_some("otp"));
        wanting
    }

    /// Whether the policy cannot do without [`KeySecrets`]: a limit is counted by personal values or devices, or there are
    /// one-time codes.
    #[must_use]
    pub fn requires_secrets(&self) -> bool {
        !self.wanting_secrets().is_empty()
    }

    /// Whether the policy can make keys and codes; to be asked before anything is served.
    ///
    /// # Errors
    ///
    /// [`Error::NoSecrets`] if it [requires](Self::requires_secrets) secrets and there is none.
    pub fn check_secrets(&self) -> Result<()> {
        let wanting = if self.secrets().is_empty() { self.wanting_secrets() } else { Vec::new() };
        if wanting.is_empty() { Ok(()) } else { Err(Error::NoSecrets { what: crate::suggest::quoted(wanting) }) }
    }

    /// With the secrets that personal values are hashed under, and tokens signed by.
    #[must_use]
    pub fn with_secrets(mut self, secrets: KeySecrets) -> Self {
        self.secrets = secrets;
        self
    }

    /// The secrets that personal values are hashed under, and tokens signed by.
    #[must_use]
    pub fn secrets(&self) -> &KeySecrets {
        &self.secrets
    }

    /// With the secrets of `other`, unless it has its own: the text of a policy has none, so one that replaces another
    /// goes on with them.
    #[must_use]
    pub fn or_secrets_of(self, other: &Self) -> Self {
        if self.secrets.is_empty() { self.with_secrets(other.secrets.clone()) } else { self }
    }
}
