//! Taking a policy's rules away: out of an ACL of others only the rules, and an ACL of ours as a whole if nobody else has rules in it.

use super::apply::{contended, delete_ip_set, is_conflict};
use super::observe::Found;
use super::pace::Paced;
use super::{Error, Operation, Patience, Progress, Result, Waf, Wanted, merge, observe};
use crate::shape;
use serde_json::json;
use tollgate_policy::EdgeScope;

/// What an ACL of a Region can be on (API Reference, `ListResourcesForWebACL`).
const REGIONAL_KINDS: &[&str] = &[
    "APPLICATION_LOAD_BALANCER",
    "API_GATEWAY",
    "APPSYNC",
    "COGNITO_USER_POOL",
    "APP_RUNNER_SERVICE",
    "VERIFIED_ACCESS_INSTANCE",
];

/// The same of one for CloudFront; distributions name it themselves, and are not listed.
const GLOBAL_KINDS: &[&str] = &["AMPLIFY"];

/// Takes away what the policy has there; what was done, a line each.
///
/// # Errors
///
/// [`Error::Contended`] or [`Error::Call`], after which another `destroy` goes on from where this one stopped.
pub async fn destroy<W: Waf>(
    waf: &W,
    wanted: &Wanted,
    patience: Patience,
    progress: Progress<'_>,
) -> Result<Vec<String>> {
    let waf = Paced::new(waf, patience, progress);
    let observed = observe::all(&waf, wanted).await?;
    let mut done = Vec::new();
    let mut acl = observed.acl;
    let mut tries = 0;
    while let Some(found) = acl.take() {
        tries += 1;
        if tries > waf.patience.tries {
            return Err(contended(&waf, &wanted.acl.name));
        }
        let took = if is_all_ours(&found, &wanted.acl.prefix) {
            delete_acl(&waf, wanted, &found).await
        } else {
            remove_rules(&waf, wanted, &found).await
        };
        match took {
            Ok(lines) => done.extend(lines),
            Err(error) if is_conflict(&error) => acl = observe::acl(&waf, &wanted.acl).await?,
            Err(error) => return Err(error),
        }
    }
    for (name, set) in observed.ip_sets.iter().filter(|(_, set)| set.is_ours) {
        delete_ip_set(&waf, &wanted.acl, set).await?;
        done.push(format!("- IP set {name}"));
    }
    for line in &done {
        waf.tell(line);
    }
    Ok(done)
}

fn is_all_ours(found: &Found, prefix: &str) -> bool {
    found.is_ours && merge::rules(&found.value).iter().all(|rule| merge::is_ours(rule, prefix))
}

/// Takes our rules out of an ACL that others have rules in, or have made.
async fn remove_rules<W: Waf>(waf: &Paced<'_, W>, wanted: &Wanted, found: &Found) -> Result<Vec<String>> {
    let merged = merge::without_ours(&found.value, &wanted.acl.prefix);
    if merge::is_same(&found.value, &merged) {
        return Ok(Vec::new());
    }
    let input = merge::update(found, &merged, shape::scope(wanted.acl.scope));
    waf.settle(Operation::UpdateWebAcl, &input, &wanted.acl.name).await?;
    let ours = merge::rules(&found.value).iter().filter(|rule| merge::is_ours(rule, &wanted.acl.prefix));
    Ok(ours.map(|rule| format!("- rule {}", rule["Name"].as_str().unwrap_or_default())).collect())
}

/// Deletes an ACL of ours: off its resources, without its logging.
async fn delete_acl<W: Waf>(waf: &Paced<'_, W>, wanted: &Wanted, found: &Found) -> Result<Vec<String>> {
    let (arn, scope) = (found.text("ARN"), shape::scope(wanted.acl.scope));
    let mut done = Vec::new();
    for resource in resources(waf, wanted, arn).await? {
        let what = format!("taking the ACL off {resource}");
        waf.settle(Operation::Disassociate, &json!({ "ResourceArn": resource }), &what).await?;
        done.push(format!("- on {resource}"));
    }
    match waf.settle(Operation::DeleteLogging, &json!({ "ResourceArn": arn }), "logging").await {
        Ok(_) => done.push("- logging".to_owned()),
        Err(Error::Call(failure)) if failure.is("WAFNonexistentItemException") => {}
        Err(error) => return Err(error),
    }
    let input = json!({
        "Name": wanted.acl.name, "Scope": scope, "Id": found.value["Id"], "LockToken": found.lock_token,
    });
    waf.settle(Operation::DeleteWebAcl, &input, &wanted.acl.name).await?;
    done.push(format!("- web ACL {}", wanted.acl.name));
    Ok(done)
}

/// What the ACL is on: whatever the API lists, and those that are named and have it.
async fn resources<W: Waf>(waf: &Paced<'_, W>, wanted: &Wanted, arn: &str) -> Result<Vec<String>> {
    let mut all: Vec<String> = Vec::new();
    let kinds = if wanted.acl.scope == EdgeScope::CloudFront { GLOBAL_KINDS } else { REGIONAL_KINDS };
    for kind in kinds {
        match waf.call(Operation::ListResources, json!({ "WebACLArn": arn, "ResourceType": kind })).await {
            Ok(answer) => {
                let list = answer["ResourceArns"].as_array().into_iter().flatten();
                all.extend(list.filter_map(|arn| arn.as_str().map(str::to_owned)));
            }
            // A kind that this Region does not have.
            Err(failure) if failure.is("WAFInvalidParameterException") => {}
            // An emulator without the operation: then those that are named have to do.
            Err(failure) if failure.code.is_none() || failure.is("UnknownOperationException") => {
                waf.tell(&format!("{failure}; name resources that the ACL is on with --associate"));
                break;
            }
            Err(failure) => return Err(failure.into()),
        }
    }
    for resource in wanted.resources.iter().filter(|resource| !all.contains(resource)).cloned().collect::<Vec<_>>() {
        let answer = waf.call(Operation::GetAclOfResource, json!({ "ResourceArn": resource })).await?;
        if answer["WebACL"]["ARN"] == arn {
            all.push(resource);
        }
    }
    Ok(all)
}
