//! `tollgate inspect|reset KEY`.

use crate::args::{KeyArgs, ResetArgs};
use crate::error::{CliError, Result};
use crate::secrets::Tables;
use crate::{open, output, secrets};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::time::Duration;
use tollgate::{Policy, Store};
use tollgate_core::time::millis_rounded_up;
use tollgate_core::{Bucket, ItemKey, Key, LimitName, Timestamp};
use tollgate_dynamodb::admin::{self, Inspection};
use tollgate_dynamodb::attributes;

#[derive(Serialize)]
struct Inspected {
    key: String,
    pk: String,
    now_ms: u64,
    exists: bool,
    limits: BTreeMap<String, Limit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<u64>,
    raw: BTreeMap<String, String>,
    /// The same caller under secrets that are being retired.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    retiring: Vec<Inspected>,
}

/// A bucket, told in tokens and times as well as in ticks.
#[derive(Serialize)]
struct Limit {
    remaining: u64,
    burst: u64,
    rate: String,
    reset_ms: u64,
    revision: u64,
    plan: String,
    tat: String,
    busy_period: String,
    refunded: String,
}

pub(crate) async fn inspect(args: KeyArgs) -> Result<()> {
    let meant = Meant::by(&args).await?;
    let store = open::target(&args.on.target).await?;
    let mut inspected = view(&meant.key, admin::inspect(&store, &ItemKey::shared(meant.key.clone())).await?);
    for key in &meant.retiring {
        inspected.retiring.push(view(key, admin::inspect(&store, &ItemKey::shared(key.clone())).await?));
    }
    output::result(args.on.json, &inspected, || {
        std::iter::once(&inspected).chain(&inspected.retiring).map(text).collect::<String>()
    })
}

pub(crate) async fn reset(args: ResetArgs) -> Result<()> {
    let meant = Meant::by(&args.key).await?;
    let only = args.limit.as_deref().map(LimitName::new).transpose()?;
    let is_declared = meant.declares(only.as_ref())?;
    let store = open::target(&args.key.on.target).await?;
    let key = &meant.key;
    if let (Some(only), false) = (&only, is_declared) {
        let known = store.read(&ItemKey::shared(key.clone()), &[]).await?.unwrap_or_default().buckets;
        if !known.contains_key(only) {
            let known: Vec<_> = known.keys().map(LimitName::as_str).collect();
            let known = if known.is_empty() { "nothing".to_owned() } else { known.join(", ") };
            return Err(CliError::Input(format!("{key} has no state of limit {only}; the table remembers: {known}")));
        }
    }
    let mut limits = BTreeSet::new();
    for key in std::iter::once(key).chain(&meant.retiring) {
        limits.extend(admin::reset(&store, &ItemKey::shared(key.clone()), only.as_ref()).await?);
    }
    let names: Vec<_> = limits.iter().map(LimitName::as_str).collect();
    let value = serde_json::json!({ "key": key.to_string(), "reset": names });
    output::result(args.key.on.json, &value, || match names.as_slice() {
        [] => format!("{key}: nothing to reset, every bucket is full"),
        names => format!("{key}: filled {}", names.join(", ")),
    })
}

/// What a KEY on the command line means.
struct Meant {
    policy: Option<Policy>,
    key: Key,
    /// The same caller under secrets that are being retired.
    retiring: Vec<Key>,
}

impl Meant {
    /// With a policy, values are in any spelling, and personal ones as people write them or as a key shows them; without,
    /// the key is the one that is written.
    async fn by(args: &KeyArgs) -> Result<Self> {
        let key: Key = args.key.parse()?;
        let Some(path) = &args.on.policy else { return Ok(Self { policy: None, key, retiring: Vec::new() }) };
        let tables = if open::is_here(&args.on.target) { Tables::Here } else { Tables::Elsewhere };
        let policy = secrets::attach(open::policy(path)?, tables).await?;
        let mut keys = policy.keys_of_operator(&key).map_err(|e| CliError::Input(e.to_string()))?.into_iter();
        let key = keys.next().unwrap_or(key);
        Ok(Self { policy: Some(policy), key, retiring: keys.collect() })
    }

    /// Whether the policy, if one is given, declares the limit; it is an error if it declares others only.
    fn declares(&self, limit: Option<&LimitName>) -> Result<bool> {
        let (Some(policy), Some(limit)) = (&self.policy, limit) else { return Ok(false) };
        policy.limit(limit.as_str()).map_err(|e| CliError::Input(e.to_string()))?;
        Ok(true)
    }
}

fn view(key: &Key, inspection: Inspection) -> Inspected {
    let now = inspection.now;
    let item = inspection.item.as_ref();
    let buckets = item.into_iter().flat_map(|item| &item.buckets);
    Inspected {
        key: key.to_string(),
        pk: tollgate_dynamodb::partition_key::of(&ItemKey::shared(key.clone())),
        now_ms: now.as_millis(),
        exists: item.is_some(),
        limits: buckets.map(|(limit, bucket)| (limit.to_string(), told(bucket, now))).collect(),
        expires_at: item.and_then(|item| item.expires_at),
        raw: item.and(inspection.raw.as_ref()).map(attributes::plain).unwrap_or_default(),
        retiring: Vec::new(),
    }
}

fn told(bucket: &Bucket, now: Timestamp) -> Limit {
    let figures = &bucket.terms.bucket;
    Limit {
        remaining: figures.remaining(Some(bucket.tat), now),
        burst: figures.burst(),
        rate: format!("{} per {:?}", figures.n(), Duration::from_nanos(figures.period())),
        reset_ms: millis_rounded_up(figures.reset_after(Some(bucket.tat), now)),
        revision: bucket.terms.revision,
        plan: bucket.terms.plan.to_string(),
        tat: bucket.tat.to_string(),
        busy_period: bucket.busy_period.to_string(),
        refunded: bucket.refunded().to_string(),
    }
}

fn text(inspected: &Inspected) -> String {
    let mut text = format!("{}  ({})  told to within a second\n", inspected.key, inspected.pk);
    if !inspected.exists {
        text.push_str("  nothing remembered: every bucket is full\n");
    }
    for (name, limit) in &inspected.limits {
        let Limit { remaining, burst, rate, reset_ms, revision, plan, .. } = limit;
        let plan = if plan.is_empty() { String::new() } else { format!(", plan {plan}") };
        let _ = writeln!(
            text,
            "  {name:<24} {remaining} of {burst} left, {rate}, full in {reset_ms} ms (revision {revision}{plan})"
        );
    }
    for (name, value) in &inspected.raw {
        let _ = writeln!(text, "    {name:<28} {value}");
    }
    text
}
