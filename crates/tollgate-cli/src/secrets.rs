//! What personal values are hashed under when a command makes keys.
//!
//! Invariant: without secrets of one's own, keys are made for no table, or for one whose keys are under the development
//! secret by its own account ([`sign`]): an address of this machine can be a tunnel to any table, where a key under
//! another secret is nobody's. Whoever gets the development secret is told so.

use crate::args::Target;
use crate::error::{CliError, Result};
use crate::open;
use crate::output::note;
use tollgate::source::{ReaderOptions, SecretsSource};
use tollgate_dynamodb::Error as StoreError;
use tollgate_dynamodb::connect::Connected;
use tollgate_dynamodb::table::{CreateOptions, create, exists};
use tollgate_policy::{KeySecrets, Policy};

/// The table beside `table` if that is a development server's which hashes under the development secret. It is empty; that it
/// is there is the sign.
fn sign_of(table: &str) -> String {
    format!("{table}-development-secret")
}

/// Which keys a command makes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Keys<'a> {
    /// Keys that no table has, or one that is the command's own, since it has just created it.
    OfOnesOwn,
    /// Keys of a table that somebody else serves.
    Of(&'a Target),
}

/// The policy with the secrets of the environment, if it needs any; that of development if there are none and it is the one
/// that the keys are under.
pub(crate) async fn attach(policy: Policy, keys: Keys<'_>) -> Result<Policy> {
    if !policy.requires_secrets() {
        return Ok(policy);
    }
    let mut secrets = of_environment().await?;
    if secrets.is_empty() && are_under_development(keys).await? {
        note("note: personal values are hashed under the development secret, since TOLLGATE_KEY_SECRETS is not set");
        secrets = KeySecrets::development();
    }
    if secrets.is_empty() {
        // Any other secret than theirs would make keys that are nobody's.
        let why = "the policy counts by personal values or devices, under the secrets of the table's functions";
        return Err(CliError::Input(format!(
            "{why}; set TOLLGATE_KEY_SECRETS to the text that they have, or TOLLGATE_KEY_SECRETS_PARAMETER to the name of \
             the parameter that has it"
        )));
    }
    Ok(policy.with_secrets(secrets))
}

/// The secrets that the environment names; empty if it names none.
pub(crate) async fn of_environment() -> Result<KeySecrets> {
    let source = SecretsSource::from_lookup(|name| std::env::var(name).ok());
    let input = |error: &dyn std::error::Error| CliError::Input(error.to_string());
    let secrets = source.map_err(|error| input(&error))?.read(&ReaderOptions::default()).await;
    secrets.map_err(|error| input(&error))
}

async fn are_under_development(keys: Keys<'_>) -> Result<bool> {
    match keys {
        Keys::OfOnesOwn => Ok(true),
        Keys::Of(target) if !open::is_here(target) => Ok(false),
        Keys::Of(target) => match exists(&open::connection(target).await?, &sign_of(&target.table)).await {
            // Whoever may not ask is not at a development server.
            Err(StoreError::AccessDenied { .. } | StoreError::BadCredentials(_)) => Ok(false),
            answer => Ok(answer?),
        },
    }
}

/// Makes the sign beside a table of one's own, if `policy` hashes under the development secret.
pub(crate) async fn sign(policy: &Policy, connected: &Connected, table: &str) -> Result<()> {
    let sign = sign_of(table);
    if *policy.secrets() == KeySecrets::development() && !exists(connected, &sign).await? {
        create(connected, &sign, CreateOptions::default()).await?;
    }
    Ok(())
}
