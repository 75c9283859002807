//! `tollgate inspect KEY`: what the table remembers of a key, what an operator has set, and the figures in force.

use crate::args::KeyArgs;
use crate::error::Result;
use crate::hold::Told;
use crate::key::Subject;
use crate::lock::ToldLock;
use crate::{open, output, secrets};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::num::NonZeroU16;
use tollgate::DynamoStore;
use tollgate_core::take::{Moment, Take};
use tollgate_core::time::millis_rounded_up;
use tollgate_core::{Bucket, Charge, Charges, Held, Item, ItemKey, LimitName, Shard, Terms};
use tollgate_dynamodb::admin::{self, Inspection};
use tollgate_dynamodb::partition_key;
use tollgate_policy::{KeySecrets, rate_text};

/// What the table remembers of a caller.
#[derive(Serialize)]
pub(crate) struct Inspected {
    #[serde(flatten)]
    shared: Remembered,
    /// The items that limits have for themselves.
    own_items: Vec<Remembered>,
    /// Limits with shards, which are among those items, as a whole.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sharded: Vec<Sharded>,
    /// The items of the same caller under secrets that are being retired.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    retiring: Vec<Remembered>,
}

/// A limit with shards.
#[derive(Serialize)]
struct Sharded {
    limit: String,
    shards: NonZeroU16,
    /// What all shards have left together.
    remaining: u64,
    #[serde(skip)]
    most: u64,
}

/// One item.
#[derive(Serialize)]
struct Remembered {
    key: String,
    /// What stands for the key in logs.
    #[serde(skip_serializing_if = "Option::is_none")]
    key_ref: Option<String>,
    pk: String,
    now_ms: u64,
    exists: bool,
    hold: Option<Told>,
    limits: BTreeMap<String, Limit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<u64>,
    raw: BTreeMap<String, String>,
}

/// A limit by the figures in force, told in tokens and times, and its bucket as stored, in ticks.
#[derive(Serialize)]
struct Limit {
    remaining: u64,
    burst: u64,
    #[serde(skip)]
    most: u64,
    rate: String,
    reset_ms: u64,
    /// Of a pacer, how long a call that asks now has to wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    wait_ms: Option<u64>,
    /// What an operator has set that it is decided by.
    #[serde(skip_serializing_if = "Option::is_none")]
    held: Option<&'static str>,
    /// Its last lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    penalty: Option<ToldLock>,
    #[serde(flatten)]
    stored: Option<Stored>,
}

#[derive(Serialize)]
struct Stored {
    revision: u64,
    plan: String,
    /// Whether an override's figures stand in place of the policy's.
    overridden: bool,
    tat: String,
    busy_period: String,
    refunded: String,
}

pub(crate) async fn run(args: &KeyArgs) -> Result<()> {
    let subject = Subject::of(args).await?;
    let store = open::target(&args.on.target).await?;
    let inspected = of(&subject, &store, &secrets::of_environment().await?).await?;
    subject.say_which_items_are_missing();
    subject.say_which_keys_are_missing();
    output::result(args.on.json, &inspected, || text(&inspected))
}

/// All that the table remembers of a caller, under whatever secret.
pub(crate) async fn of(subject: &Subject, store: &DynamoStore, secrets: &KeySecrets) -> Result<Inspected> {
    let shared = subject.shared();
    let (mut own_items, mut retiring) = (Vec::new(), Vec::new());
    for item in subject.items().iter().filter(|item| **item != shared) {
        let items = if item.key == subject.key { &mut own_items } else { &mut retiring };
        let shards = item.own.as_ref().and_then(|limit| subject.shards(limit));
        items.push(view(item, shards, secrets, admin::inspect(store, item).await?)?);
    }
    let sharded = sharded(subject, &own_items);
    let shared = view(&shared, None, secrets, admin::inspect(store, &shared).await?)?;
    Ok(Inspected { shared, own_items, sharded, retiring })
}

/// The limits with shards: of a shard that nothing is remembered of nothing is missing.
fn sharded(subject: &Subject, own_items: &[Remembered]) -> Vec<Sharded> {
    let mut all = Vec::new();
    let limits: BTreeSet<_> = subject.items().into_iter().filter_map(|item| item.own).collect();
    for limit in limits {
        let Some(shards) = subject.shards(&limit) else { continue };
        let items = ItemKey::own(subject.key.clone(), limit.clone());
        let found = |shard: Shard| {
            let pk = partition_key::of(&items.on_shard(shard.index()));
            own_items.iter().find(|item| item.pk == pk).and_then(|item| item.limits.get(limit.as_str()))
        };
        // Nobody knows the plan of a caller that has not called.
        let plan = Shard::all(shards).find_map(|shard| found(shard)?.stored.as_ref().map(|stored| stored.plan.clone()));
        let Some(whole) = subject.figures_on(&limit, &plan.unwrap_or_default()) else { continue };
        let of = |shard: Shard| {
            found(shard).map_or_else(|| [whole.shard(shard).most(); 2], |limit| [limit.remaining, limit.most])
        };
        let [remaining, most] = Shard::all(shards).map(of).fold([0; 2], |[a, b], [c, d]| [a + c, b + d]);
        all.push(Sharded { limit: limit.to_string(), shards, remaining, most });
    }
    all
}

fn view(key: &ItemKey, shards: Option<NonZeroU16>, secrets: &KeySecrets, inspection: Inspection) -> Result<Remembered> {
    let Inspection { now, item: found, raw, .. } = inspection;
    let exists = found.is_some();
    let found = found.unwrap_or_default();
    let whole = found.hold.clone();
    let shard = key.shard().zip(shards).and_then(|(index, of)| Shard::new(index, of));
    let hold = match (found.hold, shard) {
        (Some(hold), Some(shard)) => Some(hold.on_shard(shard)),
        (hold, _) => hold,
    };
    let item = Item { hold, ..found };
    let hold = item.hold.as_ref().and_then(|hold| hold.in_force(now));
    let names: BTreeSet<_> = item.buckets.keys().chain(hold.iter().flat_map(|hold| hold.overrides.keys())).collect();
    let moment = Moment { now, clock_agrees: true };
    let limits = names.into_iter().map(|name| Ok((name.to_string(), told(key, &item, name, moment)?)));
    Ok(Remembered {
        key: key.key.to_string(),
        key_ref: secrets.reference(&key.key),
        pk: partition_key::of(key),
        now_ms: now.as_millis(),
        exists,
        hold: Told::of(whole.as_ref(), now),
        limits: limits.collect::<Result<_>>()?,
        expires_at: item.expires_at,
        raw: raw.filter(|_| exists).unwrap_or_default(),
    })
}

/// What a decision would say of the limit now. The terms of its callers are not known here, so those that its bucket is
/// kept under stand for them; an override goes before either.
fn told(key: &ItemKey, item: &Item, name: &LimitName, moment: Moment) -> Result<Limit> {
    let stored = item.buckets.get(name);
    let set = || item.hold.as_ref().and_then(|hold| hold.overrides.get(name)).map(|o| Terms::new(1, o.figures));
    let terms = stored.map(|bucket| bucket.terms.policy()).or_else(set).ok_or(tollgate_core::Error::NoCharges)?;
    let observe = Charge::new(name.clone(), terms, 0);
    let decided = Take::tell(&Charges::new(key.clone(), vec![observe])?, item, moment);
    let decided = decided.first().ok_or(tollgate_core::Error::NoCharges)?;
    Ok(Limit {
        remaining: decided.remaining,
        burst: decided.terms.figures.burst(),
        most: decided.terms.figures.most(),
        rate: rate_text(&decided.terms.figures),
        reset_ms: millis_rounded_up(decided.reset_after),
        wait_ms: decided.terms.figures.is_paced().then(|| millis_rounded_up(decided.starts_after)),
        held: decided.held.map(Held::as_str),
        penalty: item.penalties.get(name).map(|lock| ToldLock::of(lock, moment.now)),
        stored: stored.map(as_stored),
    })
}

fn as_stored(bucket: &Bucket) -> Stored {
    Stored {
        revision: bucket.terms.revision,
        plan: bucket.terms.plan.to_string(),
        overridden: bucket.terms.is_override(),
        tat: bucket.tat.to_string(),
        busy_period: bucket.busy_period.to_string(),
        refunded: bucket.refunded().to_string(),
    }
}

fn text(inspected: &Inspected) -> String {
    let mut text = String::new();
    for item in std::iter::once(&inspected.shared).chain(&inspected.own_items).chain(&inspected.retiring) {
        let _ = writeln!(text, "{}  ({})  told to within a second", item.key, item.pk);
        if let Some(reference) = &item.key_ref {
            let _ = writeln!(text, "  in logs: {reference}");
        }
        if let Some(hold) = &item.hold {
            let _ = writeln!(text, "  {}", Told::text(Some(hold)));
        }
        if item.limits.is_empty() {
            text.push_str("  nothing remembered: every bucket is full\n");
        }
        for (name, limit) in &item.limits {
            let Limit { remaining, most, rate, reset_ms, wait_ms, held, penalty, stored, .. } = limit;
            let wait = wait_ms.map(|ms| format!(", next in {ms} ms")).unwrap_or_default();
            let held = held.map(|held| format!(", by {held}")).unwrap_or_default();
            let locked = penalty.as_ref().map(|lock| format!(", {}", lock.text())).unwrap_or_default();
            let under = match stored {
                Some(Stored { overridden: true, .. }) => " (kept under an override)".to_owned(),
                Some(Stored { revision, plan, .. }) if plan.is_empty() => format!(" (revision {revision})"),
                Some(Stored { revision, plan, .. }) => format!(" (revision {revision}, plan {plan})"),
                None => String::new(),
            };
            let _ = writeln!(
                text,
                "  {name:<24} {remaining} of {most} left, {rate}{wait}, full in {reset_ms} ms{locked}{held}{under}"
            );
        }
        for (name, value) in &item.raw {
            let _ = writeln!(text, "    {name:<28} {value}");
        }
    }
    for Sharded { limit, shards, remaining, most } in &inspected.sharded {
        let _ = writeln!(text, "{limit:<26} {remaining} of {most} left on {shards} shards together");
    }
    text
}
