//! `tollgate session revoke KEY`: ends all that a user has proved so far.
//!
//! Invariants: what is revoked is what the layer knows the user by, under every secret that is known, or the command fails; nobody is
//! forgotten while there can be something that a revocation keeps from counting.

use crate::args::{RevokeArgs, SessionArgs, SessionCommand};
use crate::audit;
use crate::error::{CliError, Result};
use crate::hold::utc;
use crate::key;
use crate::output::note;
use crate::secrets::{self, Keys};
use crate::{open, output};
use serde::Serialize;
use std::time::Duration;
use tollgate::DynamoStore;
use tollgate::mfa::{Error, LEEWAY, Sessions, storage};
use tollgate_core::Key;
use tollgate_dynamodb::Items;
use tollgate_dynamodb::partition_key::key_of;
use tollgate_policy::{Policy, StepUp};

/// How long an operator waits for a write.
pub(crate) const DEADLINE: Duration = Duration::from_secs(10);

#[derive(Serialize)]
struct Revoked {
    key: String,
    /// How often all was revoked up to now.
    epoch: u64,
    /// Up to when nothing counts that a token says; milliseconds since the epoch.
    revoked_ms: Option<u64>,
    /// The items that say so, one for each secret.
    pks: Vec<String>,
}

pub(crate) async fn run(args: &SessionArgs) -> Result<()> {
    match &args.command {
        SessionCommand::Revoke(args) => revoke(args).await,
    }
}

async fn revoke(args: &RevokeArgs) -> Result<()> {
    let named: Key = args.key.parse()?;
    let has_tenant = names_tenant(&named)?;
    let mut policy = key::found_policy(&args.on)?.ok_or_else(key::no_policy)?;
    if policy.hashes_some_of(&named) {
        policy = secrets::attach(policy, Keys::Of(&args.on.target)).await?;
    }
    let keys = keys(&policy, &named)?;
    let sessions = sessions(open::target(&args.on.target).await?);
    let (mut first, mut pks) = (None, Vec::new());
    for key in &keys {
        let pk = storage::subject_key(key);
        let subject =
            sessions.revoke(key).await.map_err(|error| failed(error, |error| key::after(&pks, &pk, error)))?;
        first.get_or_insert((key.to_string(), subject));
        pks.push(pk);
        // Not before: nobody is to wait for a log to have somebody's sessions end.
        let said = audit::revoked(sessions.items(), &policy, key, subject.epoch).await;
        said.map_err(|error| failed(error, |source| unsaid(key, source)))?;
    }
    let (key, subject) = first.unwrap_or_default();
    let revoked = Revoked { key, epoch: subject.epoch, revoked_ms: subject.revoked.map(|at| at.as_millis()), pks };
    if !has_tenant {
        note(
            "note: whoever signs in with a tenant is another subject, like `tenant:acme,user:alice`, and not revoked by this",
        );
    }
    output::result(args.on.json, &revoked, || {
        let up_to = revoked.revoked_ms.map(|ms| format!(" up to {}", utc(ms))).unwrap_or_default();
        format!(
            "{}: revoked what was proved{up_to} (epoch {})\n  {}",
            revoked.key,
            revoked.epoch,
            revoked.pks.join("\n  ")
        )
    })
}

/// It is done, and the log does not say so.
fn unsaid(key: &Key, source: tollgate_dynamodb::Error) -> CliError {
    let part = format!("{key} is revoked, and its audit log does not say so; run the command again");
    CliError::Part { part, source }
}

fn sessions(store: DynamoStore) -> Sessions {
    Sessions::new(Items::new(store).with_deadline(DEADLINE))
}

pub(crate) fn failed(error: Error, store: impl FnOnce(tollgate_dynamodb::Error) -> CliError) -> CliError {
    match error {
        Error::Store(error) => store(error),
        other => CliError::Input(other.to_string()),
    }
}

/// That none of these items is a subject's of whom something was revoked that could still count otherwise: what no route takes any more
/// for its age needs no revocation.
pub(crate) async fn may_be_forgotten(store: &DynamoStore, pks: impl Iterator<Item = &str>) -> Result<()> {
    let sessions = sessions(store.clone());
    let subjects = pks.filter_map(|pk| key_of(pk).filter(|key| storage::subject_key(key) == pk));
    for key in subjects {
        let subject = sessions.subject(&key).await.map_err(|error| failed(error, CliError::Store))?;
        let ends = subject.revoked.map(|revoked| revoked + LEEWAY + StepUp::LONGEST_AGE);
        if let Some(ends) = ends.filter(|ends| sessions.items().now() < *ends) {
            let until = utc(ends.as_millis());
            let why = "and without the revocation it would count again";
            return Err(CliError::Input(format!("what {key} had proved was revoked, {why}; forget it after {until}")));
        }
    }
    Ok(())
}

/// Whether the key is a user's of a tenant, or a user's alone: nobody else proves anything.
fn names_tenant(key: &Key) -> Result<bool> {
    let dimensions: Vec<_> = key.dimensions().map(|(name, _)| name).collect();
    match dimensions[..] {
        ["user"] => Ok(false),
        ["tenant", "user"] => Ok(true),
        _ => {
            let named = dimensions.join(",");
            let help = "write user:NAME, or tenant:NAME,user:NAME where tokens name a tenant";
            Err(CliError::Input(format!("a session is a user's, and KEY names {named}; {help}")))
        }
    }
}

/// What the layer knows the user by, under the active secret first.
fn keys(policy: &Policy, named: &Key) -> Result<Vec<Key>> {
    let active = policy.secrets().ids().next();
    if let Some(id) = policy.secrets_of(named).into_iter().find(|id| Some(*id) != active) {
        let why = format!("KEY has a value as a key shows it under secret {id:?}, which is not the active one");
        return Err(CliError::Input(format!("{why}; write the value instead")));
    }
    Ok(policy.keys_of_operator(named)?)
}
