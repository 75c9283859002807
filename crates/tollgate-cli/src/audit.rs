//! `tollgate audit KEY`: shows the audit log of an account or a tenant, and checks it.
//!
//! Invariant: the exit code is 0 only if the whole log was read and is unbroken, whatever of it was to be shown.

use crate::args::AuditArgs;
use crate::error::{CliError, Result};
use crate::hold::utc;
use crate::key;
use crate::open;
use crate::output;
use crate::secrets::{self, Keys};
use crate::session::{DEADLINE, failed};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use tollgate_core::{Key, Timestamp};
use tollgate_dynamodb::Items;
use tollgate_mfa::audit::{Actor, AuditLog, Author, Break, Event, Read, Recorded};
use tollgate_policy::{Policy, duration};

/// The log of one key.
#[derive(Serialize)]
struct Told {
    key: String,
    /// The last entry's number; 0: there is none.
    last: u64,
    /// The last entry's SHA-256 in hex: whoever keeps it elsewhere can tell whether all of the log was written anew.
    digest: Option<String>,
    entries: Vec<Entry>,
    breaks: Vec<String>,
}

#[derive(Serialize)]
struct Entry {
    seq: u64,
    at_ms: u64,
    event: String,
    actor: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    factor: Option<String>,
    /// SHA-256 of the session's name, in base64url.
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    details: BTreeMap<String, String>,
}

pub(crate) async fn run(args: &AuditArgs) -> Result<()> {
    let named: Key = args.key.parse()?;
    has_a_log(&named)?;
    let mut policy = key::found_policy(&args.on)?.ok_or_else(key::no_policy)?;
    if policy.hashes_some_of(&named) {
        policy = secrets::attach(policy, Keys::Of(&args.on.target)).await?;
    }
    let keys = policy.keys_of_operator(&named)?;
    let items = Items::new(open::target(&args.on.target).await?).with_deadline(DEADLINE);
    let since = args.since.as_deref().map(|text| since(text, items.now())).transpose()?.unwrap_or_default();
    let mut logs = Vec::with_capacity(keys.len());
    for key in &keys {
        let read = AuditLog::new(&items, policy.audit_retention()).read(key).await;
        logs.push(told(key, read.map_err(|error| failed(error, CliError::Store))?, since));
    }
    let broken: usize = logs.iter().map(|log| log.breaks.len()).sum();
    output::result(args.on.json, &logs, || logs.iter().map(text).collect::<Vec<_>>().join("\n"))?;
    if broken > 0 {
        let breaks: Vec<_> = logs.iter().flat_map(|log| &log.breaks).cloned().collect();
        return Err(CliError::Check(format!("the audit log of {named} is broken: {}", breaks.join("; "))));
    }
    Ok(())
}

/// That the key is an account's or a tenant's.
fn has_a_log(key: &Key) -> Result<()> {
    let dimensions: Vec<_> = key.dimensions().map(|(name, _)| name).collect();
    match dimensions[..] {
        ["user"] | ["tenant"] | ["tenant", "user"] => Ok(()),
        _ => {
            let named = dimensions.join(",");
            let help = "write user:NAME, tenant:NAME,user:NAME where tokens name a tenant, or tenant:NAME";
            Err(CliError::Input(format!("a log is an account's or a tenant's, and KEY names {named}; {help}")))
        }
    }
}

/// `2026-01-31T00:00:00Z`, `2026-01-31` (UTC), or how long ago: `30day`.
fn since(text: &str, now: Timestamp) -> Result<Timestamp> {
    let instant = text.parse::<jiff::Timestamp>().ok();
    let date = || format!("{text}T00:00:00Z").parse().ok();
    if let Some(at) = instant.or_else(date) {
        return Ok(Timestamp::from_millis(u64::try_from(at.as_millisecond()).unwrap_or(0)));
    }
    let age = duration(text).map_err(|_| {
        let help = "write a time like 2026-01-31T00:00:00Z or 2026-01-31, or an age like 90s, 2h, 30day";
        CliError::Input(format!("--since: {text:?} is neither a time nor an age; {help}"))
    })?;
    let ns = u64::try_from(age.as_nanos()).unwrap_or(u64::MAX);
    Ok(Timestamp::from_nanos(now.as_nanos().saturating_sub(ns)))
}

fn told(key: &Key, read: Read, since: Timestamp) -> Told {
    let entries = read.entries.into_iter().filter(|entry| entry.at >= since).map(entry).collect();
    let digest = (read.last.seq > 0).then(|| hex(&read.last.digest));
    let breaks = read.breaks.iter().map(Break::to_string).collect();
    Told { key: key.to_string(), last: read.last.seq, digest, entries, breaks }
}

fn entry(recorded: Recorded) -> Entry {
    let Recorded { seq, at, event, actor, factor, session, details, .. } = recorded;
    Entry { seq, at_ms: at.as_millis(), event, actor, factor, session, details: details.into_iter().collect() }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut all, byte| {
        // Writing to a String cannot fail.
        let _ = write!(all, "{byte:02x}");
        all
    })
}

fn text(log: &Told) -> String {
    let mut lines = vec![match &log.digest {
        None => format!("{}: nothing is in the log", log.key),
        Some(digest) => format!("{}: {} shown, the last is {} {digest}", log.key, log.entries.len(), log.last),
    }];
    for entry in &log.entries {
        let Entry { seq, at_ms, event, actor, factor, session, details } = entry;
        let mut line =
            format!("  {seq:>5}  {}  {event:<22} {:<9} {actor}", utc(*at_ms), factor.as_deref().unwrap_or("-"));
        details.iter().for_each(|(name, value)| line += &format!(" {name}={value}"));
        session.iter().for_each(|session| line += &format!(" session={session}"));
        lines.push(line);
    }
    lines.extend(log.breaks.iter().map(|why| format!("  broken: {why}")));
    lines.join("\n")
}

/// Says in the log of an account that all it had proved was revoked.
pub(crate) async fn revoked(items: &Items, policy: &Policy, key: &Key, epoch: u64) -> tollgate_mfa::Result<u64> {
    let by = Author { actor: Actor::Operator, session: None, retention: policy.audit_retention() };
    let entry = by.did(Event::SessionsRevoked).with("epoch", epoch);
    AuditLog::new(items, by.retention).append(key, &entry).await
}
