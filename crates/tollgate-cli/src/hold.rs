//! `tollgate override|ban|allow KEY`: what an operator sets for a key, and what is in force then.
//!
//! Invariant: what is set for a caller is set on all of its items at one place, under whatever secret, at once.

use crate::args::{BanArgs, KeyArgs, LimitArgs, OverrideArgs};
use crate::error::{CliError, Result};
use crate::key::{self, Subject};
use crate::lock::{self, ToldLock};
use crate::output::note;
use crate::{open, output};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;
use tollgate::{DynamoStore, Store};
use tollgate_core::{Hold, ItemKey, LimitName, Override, Timestamp};
use tollgate_dynamodb::admin::{self, Order};
use tollgate_dynamodb::partition_key;
use tollgate_policy::{duration, rate_text};

/// Nothing that is set lasts longer: 10 years of 365 days.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 86_400);

/// A hold, told in the policy's notation and in milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Told {
    banned_until_ms: Option<u64>,
    overrides: BTreeMap<String, ToldOverride>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct ToldOverride {
    rate: String,
    /// Of a token bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    burst: Option<u64>,
    until_ms: u64,
}

impl Told {
    /// What is in force of `hold` at `now`.
    pub(crate) fn of(hold: Option<&Hold>, now: Timestamp) -> Option<Self> {
        let hold = hold?.in_force(now)?;
        let told = |Override { figures, until }: &Override| ToldOverride {
            rate: rate_text(figures),
            burst: figures.token_bucket().map(|_| figures.burst()),
            until_ms: until.as_millis(),
        };
        let overrides = hold.overrides.iter().map(|(limit, figures)| (limit.to_string(), told(figures))).collect();
        Some(Self { banned_until_ms: hold.banned_until.map(Timestamp::as_millis), overrides })
    }

    /// One line for people.
    pub(crate) fn text(told: Option<&Self>) -> String {
        let Some(Self { banned_until_ms, overrides }) = told else { return "nothing is set".to_owned() };
        let ban = banned_until_ms.map(|ms| format!("banned until {}", utc(ms)));
        let figures = |(limit, ToldOverride { rate, burst, until_ms }): (&String, &ToldOverride)| {
            let burst = burst.map(|burst| format!(" burst {burst}")).unwrap_or_default();
            format!("{limit} {rate}{burst} until {}", utc(*until_ms))
        };
        ban.into_iter().chain(overrides.iter().map(figures)).collect::<Vec<_>>().join("; ")
    }
}

/// An instant as people read it.
pub(crate) fn utc(ms: u64) -> String {
    // Every instant lies before the year 2554 and jiff's end in 9999, so the fallback is never shown.
    let at = i64::try_from(ms / 1000).ok().and_then(|secs| jiff::Timestamp::from_second(secs).ok());
    at.map_or_else(|| format!("{ms} ms"), |at| at.to_string())
}

#[derive(Serialize)]
struct Outcome {
    key: String,
    items: Vec<Item>,
    /// Whether the order changed what is in force.
    changed: bool,
    /// Whether a limit of the policy at hand is counted by the key.
    counted: bool,
}

#[derive(Serialize)]
struct Item {
    pk: String,
    hold: Option<Told>,
}

pub(crate) async fn set_override(args: &OverrideArgs) -> Result<()> {
    let subject = Subject::of(&args.key).await?;
    subject.may_be_set()?;
    if subject.is_one_of_several() {
        let key = &subject.key;
        let why = format!("{key} is the caller under one secret of several, and figures count only under all of them");
        return Err(CliError::Input(format!("{why}; give the value instead of its hash")));
    }
    let (limit, place) = subject.limit(&args.limit)?;
    let figures = subject.algorithm(&limit).figures(&args.rate, args.burst)?.core();
    if let Some(own) = subject.figures(&limit).filter(|own| !own.shares_state_with(&figures)) {
        let rate = rate_text(&own);
        let why = format!("limit {limit} counts {rate}, and an override has to count over the same period");
        return Err(CliError::Input(format!("{why}: two periods cannot share one count")));
    }
    if let Some(shards) = subject.shards(&limit).filter(|shards| !figures.can_be_divided(*shards)) {
        let why = format!("limit {limit} has {shards} shards, and these figures leave some of them without a call");
        return Err(CliError::Input(format!(
            "{why}; give a burst of {shards} at least and a faster rate, or ban the key"
        )));
    }
    let lasting = lasting(&args.duration)?;
    let store = open::target(&args.key.on.target).await?;
    let until = store.moment().now + lasting;
    let order = Order::Override(limit, Override { figures, until });
    carry_out(&args.key, &subject, vec![place], &store, &order).await
}

pub(crate) async fn ban(args: &BanArgs) -> Result<()> {
    let subject = Subject::of(&args.key).await?;
    subject.may_be_set()?;
    let lasting = lasting(&args.duration)?;
    let store = open::target(&args.key.on.target).await?;
    let until = store.moment().now + lasting;
    carry_out(&args.key, &subject, subject.places(), &store, &Order::Ban(until)).await
}

pub(crate) async fn allow(args: &LimitArgs) -> Result<()> {
    let subject = Subject::of(&args.key).await?;
    let (only, places) = subject.scope(args.limit.as_deref())?;
    let store = open::target(&args.key.on.target).await?;
    carry_out(&args.key, &subject, places.clone(), &store, &Order::Allow(only.clone())).await?;
    say_what_is_locked(&store, &places.concat(), only.as_ref()).await
}

/// Says on standard error which limits have locked the key: an order does not lift that.
async fn say_what_is_locked(store: &DynamoStore, items: &[ItemKey], only: Option<&LimitName>) -> Result<()> {
    for item in items {
        let mut locks = store.read(item, &[]).await?.unwrap_or_default().penalties;
        let now = store.moment().now;
        locks.retain(|limit, lock| only.is_none_or(|only| only == limit) && lock.rest(now).is_some());
        if !locks.is_empty() {
            let locked = lock::text(&ToldLock::by_limit(&locks, now));
            note(format!("note: {}: {locked}; `tollgate reset` lifts that", partition_key::of(item)));
        }
    }
    Ok(())
}

/// Carries out an order at each of the places and tells what is in force then.
async fn carry_out(
    args: &KeyArgs,
    subject: &Subject,
    places: Vec<Vec<ItemKey>>,
    store: &DynamoStore,
    order: &Order,
) -> Result<()> {
    let (mut items, mut done, mut changed) = (Vec::new(), Vec::new(), false);
    for place in places {
        let pks: Vec<_> = place.iter().map(partition_key::of).collect();
        let ordered = admin::order(store, &place, order).await.map_err(|e| key::after(&done, &pks.join(", "), e))?;
        let now = store.moment().now;
        let (before, after) = (Told::of(ordered.before.as_ref(), now), Told::of(ordered.after.as_ref(), now));
        changed |= before != after;
        items.extend(pks.iter().map(|pk| Item { pk: pk.clone(), hold: after.clone() }));
        done.extend(pks);
    }
    subject.say_which_items_are_missing();
    subject.say_which_keys_are_missing();
    let outcome = Outcome { key: subject.key.to_string(), items, changed, counted: subject.is_counted() };
    output::result(args.on.json, &outcome, || text(&outcome, order))
}

fn text(outcome: &Outcome, order: &Order) -> String {
    let mut text = format!("{}\n", outcome.key);
    for Item { pk, hold } in &outcome.items {
        let _ = writeln!(text, "  {pk:<32} {}", Told::text(hold.as_ref()));
    }
    text += match (order, outcome.changed) {
        (Order::Allow(Some(_)), false) => "nothing was set for this limit; nothing has changed",
        (Order::Allow(None), false) => "nothing was set; nothing has changed",
        (Order::Ban(_) | Order::Override(..), _) if !outcome.counted => {
            "no limit of the policy is counted by this key: it denies nobody, and changes nobody's figures"
        }
        (Order::Ban(_), _) => "in force with the next decision, in every process",
        _ => {
            "in force with the next decision, in every process; one that has just denied the key asks again within a second"
        }
    };
    text
}

fn lasting(text: &str) -> Result<Duration> {
    let lasting = duration(text).map_err(|e| CliError::Input(format!("--for: {e}")))?;
    if (Duration::from_secs(1)..=LONGEST).contains(&lasting) {
        return Ok(lasting);
    }
    Err(CliError::Input(format!("--for {text:?} must be from 1s to 10year")))
}
