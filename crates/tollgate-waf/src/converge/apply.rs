//! Making an ACL what a policy says.

use super::observe::Found;
use super::pace::Paced;
use super::plan::{addresses, changes, check_alone, merged, stale_ip_sets, told_addresses};
use super::{Change, Error, Observed, Operation, Patience, Progress, Result, Waf, Wanted, merge, observe};
use crate::check;
use crate::model::{IpSet, WebAcl};
use crate::shape;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Applied {
    /// What differed before.
    pub changes: Vec<Change>,
    /// How many writes it took.
    pub writes: u64,
}

/// Makes the ACL what the policy says, and nothing if it is. IP sets go first and last, so that no rule ever names one that is not there.
///
/// # Errors
///
/// Those of [`plan`](super::plan()), before anything is written; then [`Error::Contended`] or [`Error::Call`], after which another
/// `apply` goes on from where this one stopped.
pub async fn apply<W: Waf>(waf: &W, wanted: &Wanted, patience: Patience, progress: Progress<'_>) -> Result<Applied> {
    check_alone(wanted)?;
    let waf = Paced::new(waf, patience, progress);
    let mut observed = observe::all(&waf, wanted).await?;
    let changes = changes(wanted, &observed)?;
    for change in &changes {
        waf.tell(&change.to_string());
    }
    for set in &wanted.acl.ip_sets {
        let found = put_ip_set(&waf, wanted, set, observed.ip_sets.remove(&set.name)).await?;
        observed.ip_sets.insert(set.name.clone(), found);
    }
    put_acl(&waf, wanted, &mut observed).await?;
    let arn = observed.acl_arn().unwrap_or_default().to_owned();
    for change in &changes {
        match change {
            Change::PutLogging => put_logging(&waf, wanted, &arn).await?,
            Change::DeleteLogging => {
                waf.settle(Operation::DeleteLogging, &json!({ "ResourceArn": arn }), "logging").await?;
            }
            Change::Associate { arn: resource, .. } => {
                let input = json!({ "WebACLArn": arn, "ResourceArn": resource });
                waf.settle(Operation::Associate, &input, &format!("putting the ACL on {resource}")).await?;
            }
            _ => {}
        }
    }
    for name in stale_ip_sets(wanted, &observed) {
        if let Some(set) = observed.ip_sets.get(name) {
            delete_ip_set(&waf, &wanted.acl, set).await?;
        }
    }
    Ok(Applied { changes, writes: waf.writes() })
}

/// Makes an IP set have its addresses, each time from a new reading if others write meanwhile.
async fn put_ip_set<W: Waf>(waf: &Paced<'_, W>, wanted: &Wanted, set: &IpSet, found: Option<Found>) -> Result<Found> {
    let acl = &wanted.acl;
    let mut found = match found {
        Some(found) => found,
        None => match waf.settle(Operation::CreateIpSet, &shape::ip_set(acl, set), &set.name).await {
            Ok(answer) => return Ok(made(&answer)),
            // Somebody was faster, or the answer to the first try got lost.
            Err(error) if is_conflict(&error) => {
                let found = observe::ours(waf, acl).await?.remove(&set.name);
                found.filter(|found| found.is_ours).ok_or(error)?
            }
            Err(error) => return Err(error),
        },
    };
    if !set.is_kept_by_others {
        put_addresses(waf, acl, &set.name, &addresses(set), &mut found).await?;
    }
    Ok(found)
}

/// Makes an IP set have these addresses, each time from a new reading if others write meanwhile; says whether they were others.
pub(super) async fn put_addresses<W: Waf>(
    waf: &Paced<'_, W>,
    acl: &WebAcl,
    name: &str,
    addresses: &BTreeSet<String>,
    found: &mut Found,
) -> Result<bool> {
    for _ in 0..waf.patience.tries {
        if told_addresses(&found.value) == *addresses {
            return Ok(false);
        }
        let mut input = json!({
            "Name": name,
            "Scope": shape::scope(acl.scope),
            "Id": found.value["Id"],
            "LockToken": found.lock_token,
            "Addresses": addresses,
        });
        if let Some(description) = found.value["Description"].as_str().filter(|text| !text.is_empty()) {
            input["Description"] = description.into();
        }
        match waf.settle(Operation::UpdateIpSet, &input, name).await {
            Ok(_) => return Ok(true),
            Err(error) if is_conflict(&error) => {
                let again = observe::ip_set(waf, acl, name, &found.value["Id"]).await?;
                *found = again.ok_or_else(|| contended(waf, name))?;
            }
            Err(error) => return Err(error),
        }
    }
    Err(contended(waf, name))
}

/// Makes the ACL have our rules, each time from a new reading if others write meanwhile.
async fn put_acl<W: Waf>(waf: &Paced<'_, W>, wanted: &Wanted, observed: &mut Observed) -> Result<()> {
    let name = &wanted.acl.name;
    for _ in 0..waf.patience.tries {
        let merged = merged(wanted, observed);
        // Others may have taken a priority, or the last rule that an ACL can have.
        let refused = check::acl(&merged);
        if !refused.is_empty() {
            return Err(Error::Check(refused));
        }
        let written = match &observed.acl {
            Some(found) if merge::is_same(&found.value, &merged) => return Ok(()),
            Some(found) => {
                let input = merge::update(found, &merged, shape::scope(wanted.acl.scope));
                waf.settle(Operation::UpdateWebAcl, &input, name).await
            }
            None => waf.settle(Operation::CreateWebAcl, &merged, name).await,
        };
        match written {
            Ok(answer) => {
                if observed.acl.is_none() {
                    observed.acl = Some(made(&answer));
                }
                return Ok(());
            }
            Err(error) if is_conflict(&error) => {
                waf.tell(&format!("{name}: changed by others meanwhile, reading it again"));
                observed.acl = observe::acl(waf, &wanted.acl).await?;
            }
            Err(error) => return Err(error),
        }
    }
    Err(contended(waf, name))
}

/// What was just made, as far as its making tells.
fn made(answer: &Value) -> Found {
    let lock_token = answer["Summary"]["LockToken"].as_str().unwrap_or_default().to_owned();
    Found { value: answer["Summary"].clone(), lock_token, is_ours: true }
}

async fn put_logging<W: Waf>(waf: &Paced<'_, W>, wanted: &Wanted, arn: &str) -> Result<()> {
    let Some(logging) = &wanted.acl.logging else { return Ok(()) };
    let mut config = shape::logging(logging);
    config.insert("ResourceArn".to_owned(), arn.into());
    waf.settle(Operation::PutLogging, &json!({ "LoggingConfiguration": config }), "logging").await?;
    Ok(())
}

/// Deletes an IP set, each time from a new reading if others write meanwhile; one that went away is gone.
pub(super) async fn delete_ip_set<W: Waf>(waf: &Paced<'_, W>, acl: &WebAcl, set: &Found) -> Result<()> {
    let (name, id) = (set.text("Name").to_owned(), &set.value["Id"]);
    let mut lock_token = set.lock_token.clone();
    for _ in 0..waf.patience.tries {
        let input = json!({ "Name": name, "Scope": shape::scope(acl.scope), "Id": id, "LockToken": lock_token });
        match waf.settle(Operation::DeleteIpSet, &input, &name).await {
            Ok(_) => return Ok(()),
            Err(error) if is_conflict(&error) => match observe::ip_set(waf, acl, &name, id).await? {
                Some(again) => lock_token = again.lock_token,
                None => return Ok(()),
            },
            Err(error) => return Err(error),
        }
    }
    Err(contended(waf, &name))
}

/// Whether somebody else has written since the reading that a write was made from.
pub(super) fn is_conflict(error: &Error) -> bool {
    const CONFLICTS: [&str; 3] =
        ["WAFOptimisticLockException", "WAFDuplicateItemException", "WAFNonexistentItemException"];
    matches!(error, Error::Call(failure) if CONFLICTS.iter().any(|code| failure.is(code)))
}

pub(super) fn contended<W: Waf>(waf: &Paced<'_, W>, what: &str) -> Error {
    Error::Contended { what: what.to_owned(), tries: waf.patience.tries }
}
