//! What differs between what is there and what is to be.

use super::observe::Observed;
use super::pace::Paced;
use super::{Error, Patience, Progress, Result, Waf, Wanted, meaning, merge, observe};
use crate::check;
use crate::model::{IpSet, WebAcl};
use crate::shape::{self, Api};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt;
use tollgate_policy::EdgeScope;

/// One difference. As JSON it is an object whose `change` says which.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "change", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Change {
    /// An IP set is to be made.
    CreateIpSet {
        /// Its name.
        name: String,
    },
    /// An IP set has other addresses.
    UpdateIpSet {
        /// Its name.
        name: String,
        /// What is to be added.
        add: Vec<String>,
        /// What is to be removed.
        remove: Vec<String>,
    },
    /// An IP set is no longer named by a rule of the policy.
    DeleteIpSet {
        /// Its name.
        name: String,
    },
    /// There is no ACL of that name.
    CreateAcl {
        /// Its name.
        name: String,
    },
    /// A rule is to be added.
    AddRule {
        /// Its name.
        name: String,
    },
    /// A rule means something else.
    ChangeRule {
        /// Its name.
        name: String,
        /// What of it differs, like `Action` or `Statement.RateBasedStatement.Limit`.
        what: Vec<String>,
        /// Whether it loses its counts, and limits nobody for up to a minute (Developer Guide, "Rate-based rule caveats").
        resets_counts: bool,
    },
    /// A rule is no longer the policy's.
    RemoveRule {
        /// Its name.
        name: String,
    },
    /// Bodies are others.
    ChangeBodies {
        /// Their keys.
        keys: Vec<String>,
    },
    /// Requests are to be logged otherwise.
    PutLogging,
    /// Requests are to be logged no longer.
    DeleteLogging,
    /// A resource has no ACL, or another.
    Associate {
        /// The resource.
        arn: String,
        /// The ACL that it has.
        instead_of: Option<String>,
    },
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CreateIpSet { name } => write!(f, "+ IP set {name}"),
            Self::UpdateIpSet { name, add, remove } => {
                let signed = |sign, of: &[String]| of.iter().map(|of| format!(" {sign}{of}")).collect::<String>();
                write!(f, "~ IP set {name}:{}{}", signed('+', add), signed('-', remove))
            }
            Self::DeleteIpSet { name } => write!(f, "- IP set {name}"),
            Self::CreateAcl { name } => write!(f, "+ web ACL {name}"),
            Self::AddRule { name } => write!(f, "+ rule {name}"),
            Self::ChangeRule { name, what, resets_counts } => {
                let counts = if *resets_counts { "; it counts anew, and limits nobody for up to a minute" } else { "" };
                write!(f, "~ rule {name}: {}{counts}", what.join(", "))
            }
            Self::RemoveRule { name } => write!(f, "- rule {name}"),
            Self::ChangeBodies { keys } => write!(f, "~ bodies {}", keys.join(", ")),
            Self::PutLogging => f.write_str("~ logging"),
            Self::DeleteLogging => f.write_str("- logging"),
            Self::Associate { arn, instead_of: None } => write!(f, "+ on {arn}"),
            Self::Associate { arn, instead_of: Some(other) } => write!(f, "~ on {arn}, which has {other}"),
        }
    }
}

/// What differs. Nothing is written.
///
/// # Errors
///
/// [`Error::Check`] if WAF would refuse it, [`Error::Foreign`] if something of a name is somebody else's, [`Error::Resource`], or
/// [`Error::Call`].
pub async fn plan<W: Waf>(waf: &W, wanted: &Wanted, patience: Patience, progress: Progress<'_>) -> Result<Vec<Change>> {
    check_alone(wanted)?;
    let waf = Paced::new(waf, patience, progress);
    let observed = observe::all(&waf, wanted).await?;
    changes(wanted, &observed)
}

pub(super) fn changes(wanted: &Wanted, observed: &Observed) -> Result<Vec<Change>> {
    check_among(wanted, observed)?;
    let mut changes: Vec<Change> = wanted.acl.ip_sets.iter().filter_map(|set| of_ip_set(set, observed)).collect();
    changes.extend(of_acl(wanted, observed));
    changes.extend(of_logging(wanted, observed));
    changes.extend(wanted.resources.iter().filter_map(|arn| of_resource(arn, observed)));
    changes.extend(stale_ip_sets(wanted, observed).map(|name| Change::DeleteIpSet { name: name.to_owned() }));
    Ok(changes)
}

/// Whatever is wrong with what is to be, before anybody is asked.
pub(super) fn check_alone(wanted: &Wanted) -> Result<()> {
    let is_cloudfront = wanted.acl.scope == EdgeScope::CloudFront;
    for arn in &wanted.resources {
        if let Some(why) = check::resource(arn, is_cloudfront) {
            return Err(Error::Resource { arn: arn.clone(), why });
        }
    }
    let refused = check::rendered(&wanted.acl);
    if refused.is_empty() { Ok(()) } else { Err(Error::Check(refused)) }
}

/// Whatever is wrong with it among what is there, before anything is written.
fn check_among(wanted: &Wanted, observed: &Observed) -> Result<()> {
    for set in &wanted.acl.ip_sets {
        let found = observed.ip_sets.get(&set.name);
        if found.is_some_and(|found| !found.is_ours) {
            return Err(foreign(&wanted.acl, &set.name));
        }
    }
    let refused = check::acl(&merged(wanted, observed));
    if refused.is_empty() { Ok(()) } else { Err(Error::Check(refused)) }
}

/// An IP set of a name of ours that has not our tags.
pub(super) fn foreign(acl: &WebAcl, name: &str) -> Error {
    let (of_prefix, of_acl, prefix, web_acl) = (shape::TAG, shape::ACL_TAG, &acl.prefix, &acl.name);
    Error::Foreign(format!(
        "there is an IP set {name} without the tags {of_prefix}={prefix} and {of_acl}={web_acl}, so it is somebody else's or another \
         ACL's; give [edge] another `prefix`, or tag it if it is yours"
    ))
}

/// The ACL as it is to be.
pub(super) fn merged(wanted: &Wanted, observed: &Observed) -> Value {
    let arn_of = |name: &str| observed.ip_set_arn(name);
    match &observed.acl {
        Some(found) => merge::with_ours(&found.value, &wanted.acl, arn_of),
        None => shape::new_acl(&wanted.acl, &Api(arn_of)).into(),
    }
}

/// Names of our IP sets that no rule of the policy names.
pub(super) fn stale_ip_sets<'a>(wanted: &'a Wanted, observed: &'a Observed) -> impl Iterator<Item = &'a str> {
    let is_wanted = |name: &str| wanted.acl.ip_sets.iter().any(|set| set.name == name);
    let ours = observed.ip_sets.iter().filter(|(_, set)| set.is_ours);
    ours.map(|(name, _)| name.as_str()).filter(move |name| !is_wanted(name))
}

fn of_ip_set(set: &IpSet, observed: &Observed) -> Option<Change> {
    let name = set.name.clone();
    let Some(found) = observed.ip_sets.get(&name) else { return Some(Change::CreateIpSet { name }) };
    if set.is_kept_by_others {
        return None;
    }
    let (wanted, there) = (addresses(set), told_addresses(&found.value));
    let of = |a: &BTreeSet<String>, b: &BTreeSet<String>| a.difference(b).cloned().collect::<Vec<_>>();
    let (add, remove) = (of(&wanted, &there), of(&there, &wanted));
    (!add.is_empty() || !remove.is_empty()).then_some(Change::UpdateIpSet { name, add, remove })
}

pub(super) fn addresses(set: &IpSet) -> BTreeSet<String> {
    set.blocks.iter().map(ToString::to_string).collect()
}

/// The API tells IPv6 addresses in the long form.
pub(super) fn told_addresses(set: &Value) -> BTreeSet<String> {
    let one = |address: &Value| {
        let text = address.as_str().unwrap_or_default();
        let (network, prefix) = text.split_once('/')?;
        Some(format!("{}/{prefix}", network.parse::<std::net::IpAddr>().ok()?))
    };
    let list = set["Addresses"].as_array().into_iter().flatten();
    list.map(|address| one(address).unwrap_or_else(|| address.as_str().unwrap_or_default().to_owned())).collect()
}

fn of_acl(wanted: &Wanted, observed: &Observed) -> Vec<Change> {
    let merged = merged(wanted, observed);
    let prefix = &wanted.acl.prefix;
    let ours = |acl: &'_ Value| -> Vec<Value> {
        merge::rules(acl).iter().filter(|rule| merge::is_ours(rule, prefix)).cloned().collect()
    };
    let name = |rule: &Value| rule["Name"].as_str().unwrap_or_default().to_owned();
    let (to_be, there) = (ours(&merged), observed.acl.as_ref().map(|acl| ours(&acl.value)).unwrap_or_default());
    let mut changes = Vec::new();
    if observed.acl.is_none() {
        changes.push(Change::CreateAcl { name: wanted.acl.name.clone() });
    }
    for rule in &to_be {
        match there.iter().find(|other| other["Name"] == rule["Name"]) {
            None => changes.push(Change::AddRule { name: name(rule) }),
            Some(other) if !meaning::same(rule, other) => {
                let mut what = Vec::new();
                differences(&meaning::of(other), &meaning::of(rule), "", &mut what);
                let resets_counts = !meaning::same(&rule["Statement"], &other["Statement"]);
                changes.push(Change::ChangeRule { name: name(rule), what, resets_counts });
            }
            Some(_) => {}
        }
    }
    let gone = there.iter().filter(|rule| !to_be.iter().any(|other| other["Name"] == rule["Name"]));
    changes.extend(gone.map(|rule| Change::RemoveRule { name: name(rule) }));
    if let Some(found) = &observed.acl {
        let keys = changed_bodies(&found.value["CustomResponseBodies"], &merged["CustomResponseBodies"]);
        if !keys.is_empty() {
            changes.push(Change::ChangeBodies { keys });
        }
    }
    changes
}

fn changed_bodies(there: &Value, to_be: &Value) -> Vec<String> {
    let keys = |of: &Value| of.as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect::<BTreeSet<_>>();
    keys(there).union(&keys(to_be)).filter(|key| !meaning::same(&there[*key], &to_be[*key])).cloned().collect()
}

/// The places where two values differ, as far down as both are objects.
fn differences(a: &Value, b: &Value, at: &str, found: &mut Vec<String>) {
    match (a, b) {
        (Value::Object(x), Value::Object(y)) => {
            for key in x.keys().chain(y.keys()).collect::<BTreeSet<_>>() {
                let place = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
                differences(&a[key], &b[key], &place, found);
            }
        }
        _ if a == b => {}
        (Value::Number(a), Value::Number(b)) => found.push(format!("{at} {a} -> {b}")),
        _ => found.push(at.to_owned()),
    }
}

fn of_logging(wanted: &Wanted, observed: &Observed) -> Option<Change> {
    match (&wanted.acl.logging, &observed.logging) {
        (None, None) => None,
        // Only what we have made is taken away; on an ACL of others logging is theirs.
        (None, Some(_)) => observed.acl.as_ref().filter(|acl| acl.is_ours).map(|_| Change::DeleteLogging),
        (Some(_), None) => Some(Change::PutLogging),
        (Some(logging), Some(there)) => {
            let to_be = Value::from(shape::logging(logging));
            let keys = ["LogDestinationConfigs", "RedactedFields", "LoggingFilter"];
            let same =
                keys.iter().all(|key| meaning::same(&json!({ *key: to_be[*key] }), &json!({ *key: there[*key] })));
            (!same).then_some(Change::PutLogging)
        }
    }
}

fn of_resource(arn: &str, observed: &Observed) -> Option<Change> {
    let has = observed.resources.get(arn).cloned().flatten();
    let is_there = has.is_some() && has.as_deref() == observed.acl_arn();
    (!is_there).then(|| Change::Associate { arn: arn.to_owned(), instead_of: has })
}
