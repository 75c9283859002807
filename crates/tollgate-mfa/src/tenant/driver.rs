//! Reads and writes a tenant's rules.
//!
//! Invariant: nothing is remembered between two answers, so that what was put is in force with the next one, in every process; whatever
//! the table does not answer is an error, never the file's rules alone.

use super::document::Tenant;
use super::judge::Held;
use super::storage;
use crate::audit::{AuditLog, Author, Event, Logged};
use crate::error::Result;
use crate::factors;
use tollgate_core::Key;
use tollgate_dynamodb::{Error, Items};
use tollgate_policy::{FactorRules, TenantRules};

/// The tenant of an account like `tenant:acme,user:alice`; `None` if it has none.
#[must_use]
pub fn tenant_of(account: &Key) -> Option<Key> {
    let tenant = account.dimensions().find(|(name, _)| *name == "tenant");
    tenant.and_then(|tenant| Key::new([tenant]).ok())
}

/// A tenant's rules. One read.
///
/// # Errors
///
/// The table gives no answer.
pub async fn find(items: &Items, tenant: &Key, file: &FactorRules) -> Result<Tenant> {
    let found = items.begin().read(&storage::partition_key(tenant)).await?;
    let tenant = found.map(|found| storage::to_tenant(&found)).transpose().map_err(Error::from)?;
    Ok(tenant.unwrap_or_else(|| Tenant::of_file(file)))
}

/// Puts `next` in the place of version `seen`, and says whether that was there. One logged write.
///
/// # Errors
///
/// The table gives no answer; it may have been put.
pub async fn put(items: &Items, tenant: &Key, seen: u64, next: &Tenant, by: &Author) -> Result<bool> {
    let entry = by.did(Event::TenantPolicyChanged).with("version_before", seen).with("version_after", next.version);
    let (log, call) = (AuditLog::new(items, by.retention), items.begin());
    let (pk, change) = (storage::partition_key(tenant), storage::put(next, seen));
    let put = log.append_with(&call, tenant, &entry, &pk, &change).await?;
    Ok(matches!(put, Logged::Applied))
}

/// The rules that are in force for an account: those of its tenant, and the file's. One read, none for an account without tenant.
///
/// # Errors
///
/// The table gives no answer.
pub async fn of_account(items: &Items, account: &Key, file: &TenantRules) -> Result<FactorRules> {
    match tenant_of(account) {
        Some(tenant) => Ok(find(items, &tenant, &file.rules).await?.in_force(&file.rules, items.now())),
        None => Ok(file.rules.clone()),
    }
}

/// What an account has. One read.
///
/// # Errors
///
/// The table gives no answer.
pub async fn held(items: &Items, account: &Key) -> Result<Held> {
    let found = items.begin().read(&factors::storage::partition_key(account)).await?;
    Ok(Held::of(&factors::storage::to_account(found.as_ref()).map_err(Error::from)?, items.now()))
}
