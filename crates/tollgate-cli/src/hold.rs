//! `tollgate override|ban|allow KEY`: what an operator sets for a key, and what is in force then.

use crate::args::{BanArgs, KeyArgs, LimitArgs, OverrideArgs};
use crate::error::{CliError, Result};
use crate::key::{self, Subject};
use crate::{open, output};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;
use tollgate::{DynamoStore, Store};
use tollgate_core::{Hold, ItemKey, Override, Timestamp};
use tollgate_dynamodb::admin::{self, Order};
use tollgate_dynamodb::partition_key;
use tollgate_policy::{Figures, duration, rate_text};

/// Nothing that is set lasts longer: 10 years of 365 days.
const LONGEST: Duration = Duration::from_secs(10 * 365 * 86_400);

/// A hold, told in the policy's notation and in milliseconds.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Told {
    banned_until_ms: Option<u64>,
    overrides: BTreeMap<String, ToldOverride>,
}

#[derive(Debug, PartialEq, Serialize)]
struct ToldOverride {
    rate: String,
    burst: u64,
    until_ms: u64,
}

impl Told {
    /// What is in force of `hold` at `now`.
    pub(crate) fn of(hold: Option<&Hold>, now: Timestamp) -> Option<Self> {
        let hold = hold?.in_force(now)?;
        let told = |Override { bucket, until }: &Override| ToldOverride {
            rate: rate_text(bucket),
            burst: bucket.burst(),
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
            format!("{limit} {rate} burst {burst} until {}", utc(*until_ms))
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
}

#[derive(Serialize)]
struct Item {
    pk: String,
    hold: Option<Told>,
}

pub(crate) async fn set_override(args: &OverrideArgs) -> Result<()> {
    let subject = Subject::of(&args.key).await?;
    let (limit, items) = subject.limit(&args.limit)?;
    let bucket = Figures::parse(&args.rate, args.burst).map_err(key::input)?.bucket();
    let lasting = lasting(&args.duration)?;
    let store = open::target(&args.key.on.target).await?;
    let until = store.moment().now + lasting;
    let order = Order::Override(limit, Override { bucket, until });
    carry_out(&args.key, &subject, items, &store, &order).await
}

pub(crate) async fn ban(args: &BanArgs) -> Result<()> {
    let subject = Subject::of(&args.key).await?;
    // Whoever bans a key that nobody asks for means another.
    subject.is_counted()?;
    let lasting = lasting(&args.duration)?;
    let store = open::target(&args.key.on.target).await?;
    let until = store.moment().now + lasting;
    carry_out(&args.key, &subject, subject.items(), &store, &Order::Ban(until)).await
}

pub(crate) async fn allow(args: &LimitArgs) -> Result<()> {
    let subject = Subject::of(&args.key).await?;
    let (only, items) = subject.scope(args.limit.as_deref())?;
    let store = open::target(&args.key.on.target).await?;
    carry_out(&args.key, &subject, items, &store, &Order::Allow(only)).await
}

/// Carries out an order on each of the items and tells what is in force then.
async fn carry_out(
    args: &KeyArgs,
    subject: &Subject,
    items: Vec<ItemKey>,
    store: &DynamoStore,
    order: &Order,
) -> Result<()> {
    let (mut told, mut done) = (Vec::new(), Vec::new());
    for item in items {
        let pk = partition_key::of(&item);
        let hold = admin::order(store, &item, order).await.map_err(|e| key::after(&done, &pk, e))?;
        told.push(Item { pk: pk.clone(), hold: Told::of(hold.as_ref(), store.moment().now) });
        done.push(pk);
    }
    subject.say_what_is_missing();
    let outcome = Outcome { key: subject.key.to_string(), items: told };
    output::result(args.on.json, &outcome, || text(&outcome, order))
}

fn text(outcome: &Outcome, order: &Order) -> String {
    let mut text = format!("{}\n", outcome.key);
    for Item { pk, hold } in &outcome.items {
        let _ = writeln!(text, "  {pk:<32} {}", Told::text(hold.as_ref()));
    }
    text.push_str("in force with the next decision, in every process");
    if !matches!(order, Order::Ban(_)) {
        text.push_str("; one that has just denied the key asks again within a second");
    }
    text
}

fn lasting(text: &str) -> Result<Duration> {
    let lasting = duration(text).map_err(|e| CliError::Input(format!("--for: {e}")))?;
    if (Duration::from_secs(1)..=LONGEST).contains(&lasting) {
        return Ok(lasting);
    }
    Err(CliError::Input(format!("--for {text:?} must be from 1s to 10year")))
}
