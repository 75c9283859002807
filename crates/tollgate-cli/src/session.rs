//! `tollgate session revoke KEY`: ends all that a user has proved so far.
//!
//! Invariant: what is revoked is what the layer knows the user by, under every secret that is known, or the command fails.

use crate::args::{RevokeArgs, SessionArgs, SessionCommand};
use crate::error::{CliError, Result};
use crate::hold::utc;
use crate::key;
use crate::output::note;
use crate::secrets::{self, Keys};
use crate::{open, output};
use serde::Serialize;
use std::time::Duration;
use tollgate::mfa::{Error, Sessions, storage};
use tollgate_core::Key;
use tollgate_dynamodb::Items;
use tollgate_policy::Policy;

/// How long an operator waits for a write.
const DEADLINE: Duration = Duration::from_secs(10);

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
    let sessions = Sessions::new(Items::new(open::target(&args.on.target).await?).with_deadline(DEADLINE));
    let (mut first, mut pks) = (None, Vec::new());
    for key in &keys {
        let pk = storage::subject_key(key);
        let subject = sessions.revoke(key).await.map_err(|error| match error {
            Error::Store(error) => key::after(&pks, &pk, error),
            other => CliError::Input(other.to_string()),
        })?;
        first.get_or_insert((key.to_string(), subject));
        pks.push(pk);
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
