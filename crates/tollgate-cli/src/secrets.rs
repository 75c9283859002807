//! What personal values are hashed under when a command makes keys.
//!
//! Invariant: without secrets of one's own, keys are made for tables of this machine only; whoever gets the development
//! secret is told so.

use crate::error::{CliError, Result};
use crate::output::note;
use tollgate::source::{ReaderOptions, SecretsSource};
use tollgate_policy::{KeySecrets, Policy};

/// Which tables a command works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tables {
    /// None, or one on this machine.
    Here,
    /// Any other.
    Elsewhere,
}

/// The policy with the secrets of the environment, if it needs any; those of development if there are none and the table
/// is here.
pub(crate) async fn attach(policy: Policy, tables: Tables) -> Result<Policy> {
    if !policy.requires_secrets() {
        return Ok(policy);
    }
    let source = SecretsSource::from_lookup(|name| std::env::var(name).ok());
    let input = |error: &dyn std::error::Error| CliError::Input(error.to_string());
    let secrets = source.map_err(|error| input(&error))?.read(&ReaderOptions::default()).await;
    let mut secrets = secrets.map_err(|error| input(&error))?;
    if secrets.is_empty() && tables == Tables::Here {
        note("note: personal values are hashed under the development secret, since TOLLGATE_KEY_SECRETS is not set");
        secrets = KeySecrets::development();
    }
    let policy = policy.with_secrets(secrets);
    policy.check_secrets().map_err(|error| input(&error))?;
    Ok(policy)
}
