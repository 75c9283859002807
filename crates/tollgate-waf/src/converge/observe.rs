//! What is there: the ACL, our IP sets, logging, and what stands behind the resources that are asked for.

use super::pace::Paced;
use super::{Error, Operation, Result, Waf, Wanted};
use crate::model::WebAcl;
use crate::shape;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// An ACL or IP set as it was read.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Found {
    /// As the API has it.
    pub value: Value,
    /// What a write has to carry that is made from this reading.
    pub lock_token: String,
    /// Whether the policy has made it: it has its tags.
    pub is_ours: bool,
}

impl Found {
    pub(super) fn text(&self, key: &str) -> &str {
        self.value[key].as_str().unwrap_or_default()
    }
}

/// What is there.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Observed {
    /// The ACL.
    pub acl: Option<Found>,
    /// IP sets whose names begin with the policy's prefix, by name.
    pub ip_sets: BTreeMap<String, Found>,
    /// How the ACL logs.
    pub logging: Option<Value>,
    /// The ARN of the ACL that each resource has.
    pub resources: BTreeMap<String, Option<String>>,
}

impl Observed {
    /// The ACL's ARN, if there is one.
    pub(super) fn acl_arn(&self) -> Option<&str> {
        self.acl.as_ref().map(|acl| acl.text("ARN"))
    }

    /// The ARN of an IP set; what is not there yet is told by its name.
    pub(super) fn ip_set_arn(&self, name: &str) -> String {
        self.ip_sets.get(name).map_or_else(|| format!("${{{name}.ARN}}"), |set| set.text("ARN").to_owned())
    }
}

/// Reads all of it.
pub(super) async fn all<W: Waf>(waf: &Paced<'_, W>, wanted: &Wanted) -> Result<Observed> {
    let acl = self::acl(waf, &wanted.acl).await?;
    let mut observed = Observed { ip_sets: ours(waf, &wanted.acl).await?, ..Observed::default() };
    if let Some(acl) = &acl {
        observed.logging = logging(waf, acl.text("ARN")).await?;
    }
    for arn in &wanted.resources {
        let answer = waf.call(Operation::GetAclOfResource, json!({ "ResourceArn": arn })).await?;
        observed.resources.insert(arn.clone(), answer["WebACL"]["ARN"].as_str().map(str::to_owned));
    }
    observed.acl = acl;
    Ok(observed)
}

/// The ACL of that name.
pub(super) async fn acl<W: Waf>(waf: &Paced<'_, W>, acl: &WebAcl) -> Result<Option<Found>> {
    let scope = shape::scope(acl.scope);
    let list = waf.pages(Operation::ListWebAcls, json!({ "Scope": scope, "Limit": 100 }), "WebACLs").await?;
    let Some(summary) = list.iter().find(|summary| summary["Name"] == acl.name.as_str()) else { return Ok(None) };
    let input = json!({ "Name": acl.name, "Scope": scope, "Id": summary["Id"] });
    match waf.call(Operation::GetWebAcl, input).await {
        Ok(answer) => found(waf, &answer, "WebACL", acl).await.map(Some),
        // It went away in between.
        Err(failure) if failure.is("WAFNonexistentItemException") => Ok(None),
        Err(failure) => Err(failure.into()),
    }
}

/// The IP sets whose names begin with the policy's prefix, by name.
pub(super) async fn ours<W: Waf>(waf: &Paced<'_, W>, acl: &WebAcl) -> Result<BTreeMap<String, Found>> {
    ip_sets(waf, acl, |name| name.starts_with(&acl.prefix)).await
}

/// The IP sets with such names, by name.
pub(super) async fn ip_sets<W: Waf>(
    waf: &Paced<'_, W>,
    acl: &WebAcl,
    is_sought: impl Fn(&str) -> bool,
) -> Result<BTreeMap<String, Found>> {
    let input = json!({ "Scope": shape::scope(acl.scope), "Limit": 100 });
    let mut sets = BTreeMap::new();
    for summary in waf.pages(Operation::ListIpSets, input, "IPSets").await? {
        let name = summary["Name"].as_str().unwrap_or_default();
        if is_sought(name)
            && let Some(set) = ip_set(waf, acl, name, &summary["Id"]).await?
        {
            sets.insert(name.to_owned(), set);
        }
    }
    Ok(sets)
}

/// An IP set by name and ID; `None` if it went away.
pub(super) async fn ip_set<W: Waf>(waf: &Paced<'_, W>, acl: &WebAcl, name: &str, id: &Value) -> Result<Option<Found>> {
    let input = json!({ "Name": name, "Scope": shape::scope(acl.scope), "Id": id });
    match waf.call(Operation::GetIpSet, input).await {
        Ok(answer) => found(waf, &answer, "IPSet", acl).await.map(Some),
        Err(failure) if failure.is("WAFNonexistentItemException") => Ok(None),
        Err(failure) => Err(failure.into()),
    }
}

async fn found<W: Waf>(waf: &Paced<'_, W>, answer: &Value, key: &str, acl: &WebAcl) -> Result<Found> {
    let value = answer[key].clone();
    let input = json!({ "ResourceARN": value["ARN"], "Limit": 100 });
    let tags = waf.call(Operation::ListTags, input).await?;
    let is_ours = shape::is_tagged(acl, tags["TagInfoForResource"]["TagList"].as_array().map_or(&[], Vec::as_slice));
    let lock_token = answer["LockToken"].as_str().unwrap_or_default().to_owned();
    Ok(Found { value, lock_token, is_ours })
}

async fn logging<W: Waf>(waf: &Paced<'_, W>, arn: &str) -> Result<Option<Value>> {
    match waf.call(Operation::GetLogging, json!({ "ResourceArn": arn })).await {
        Ok(answer) => Ok(Some(answer["LoggingConfiguration"].clone()).filter(|config| !config.is_null())),
        Err(failure) if failure.is("WAFNonexistentItemException") => Ok(None),
        Err(failure) => Err(Error::Call(failure)),
    }
}
