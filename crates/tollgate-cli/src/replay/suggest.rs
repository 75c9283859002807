//! Limits that the traffic suggests: as a table, and as a policy to start from.

use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use tollgate_policy::{Algorithm, Dimension, Fold, KeyPart, Policy, Source};
use tollgate_replay::Suggestion;
use tollgate_replay::suggest::Row;

/// What the traffic suggests.
#[derive(Debug, Serialize)]
pub(super) struct Suggested {
    pub(super) limits: BTreeMap<String, Suggestion>,
    /// The row of each limit that the policy has.
    pub(super) percentile: String,
    /// A policy with these limits, that `tollgate policy check` finds nothing wrong with.
    pub(super) policy: String,
}

impl Suggested {
    pub(super) fn new(policy: &Policy, limits: BTreeMap<String, Suggestion>, percentile: &str) -> Self {
        let text = snippet(policy, &limits, percentile);
        Self { limits, percentile: percentile.to_owned(), policy: text }
    }

    pub(super) fn text(&self) -> String {
        let mut page = String::new();
        for (name, suggestion) in &self.limits {
            let (keys, requests) = (suggestion.keys, suggestion.requests);
            let _ = writeln!(
                page,
                "\nsuggested for {name}, from {requests} requests of {keys} client(s), by itself\n  \
                 {:<10} {:>8} {:>9} {:>12} {:>8} {:>16} {:>16}",
                "percentile", "peak/s", "peak/min", "rate", "burst", "clients denied", "requests denied"
            );
            for row in &suggestion.rows {
                let [clients, denied] = shares(row, suggestion);
                let rate = format!("{}/min", row.per_minute);
                let _ = writeln!(
                    page,
                    "  {:<10} {:>8} {:>9} {rate:>12} {:>8} {clients:>16} {denied:>16}",
                    row.percentile, row.peak_per_second, row.peak_per_minute, row.burst
                );
            }
        }
        if self.limits.is_empty() {
            page.push_str("\nno limit was charged, so that there is nothing to suggest\n");
        } else {
            let _ = write!(page, "\n{}", self.policy);
        }
        page
    }
}

/// The shares of clients and requests that a row denies.
pub(super) fn shares(row: &Row, of: &Suggestion) -> [String; 2] {
    [(row.keys_denied, of.keys), (row.requests_denied, of.requests)].map(|(part, whole)| {
        #[allow(clippy::cast_precision_loss, reason = "a share to be shown")]
        let percent = part as f64 * 100.0 / whole.max(1) as f64;
        format!("{percent:.2}%")
    })
}

fn snippet(policy: &Policy, limits: &BTreeMap<String, Suggestion>, percentile: &str) -> String {
    let charged = || policy.limits().iter().filter(|limit| limits.contains_key(limit.name().as_str()));
    let mut names: BTreeSet<&str> = charged().flat_map(|limit| limit.key()).flat_map(KeyPart::alternatives).collect();
    // What a device is bound to has to be there, too.
    let bound = names.iter().filter_map(|name| match policy.identity().source(name) {
        Some(Source::Device(device)) => Some(device.bound_to.as_str()),
        _ => None,
    });
    names.extend(bound.collect::<Vec<_>>());
    let mut page = format!("# What clients of the log ask at {percentile}, each limit by itself.\nversion = 1\n");
    let declared = names.iter().filter_map(|name| Some((name, policy.identity().dimension(name)?)));
    let declared: Vec<_> = declared.filter_map(|(name, dimension)| Some((name, declaration(dimension)?))).collect();
    if !declared.is_empty() {
        page.push_str("\n[identity]\n");
        declared.iter().for_each(|(name, value)| page.push_str(&format!("{name} = {value}\n")));
    }
    for limit in charged() {
        let Some(suggestion) = limits.get(limit.name().as_str()) else { continue };
        let Some(row) = suggestion.rows.iter().find(|row| row.percentile == percentile) else { continue };
        let key: Vec<_> = limit.key().iter().map(|part| format!("{:?}", part.to_string())).collect();
        let [clients, requests] = shares(row, suggestion);
        let _ = write!(
            page,
            "\n[limits.{}]\nkey   = [{}]\nrate  = \"{}/min\"\nburst = {} # would have denied {requests} of requests, of {clients} of clients\n",
            limit.name(),
            key.join(", "),
            row.per_minute,
            row.burst
        );
        if limit.algorithm() != Algorithm::TokenBucket {
            page.push_str("# A token bucket, which the policy's limit is not.\n");
        }
    }
    page
}

/// A dimension as the policy declares it; `None` of those that need not be.
fn declaration(dimension: &Dimension) -> Option<String> {
    let source = match &dimension.source {
        Source::ClientIp(_) | Source::Everyone => return None,
        Source::Body(name) => format!("body = {name:?}"),
        Source::Device(device) => {
            return Some(format!("{{ cookie = {:?}, bound_to = {:?} }}", device.cookie, device.bound_to));
        }
        source => format!("from = {:?}", source.to_string()),
    };
    let fold = match dimension.fold {
        Fold::Lower => ", fold = \"lower\"".to_owned(),
        Fold::Email => ", fold = \"email\"".to_owned(),
        Fold::Mailbox => ", fold = \"mailbox\"".to_owned(),
        Fold::Phone(None) => ", fold = \"phone\"".to_owned(),
        Fold::Phone(Some(region)) => format!(", fold = \"phone\", region = \"{region:?}\""),
        _ => String::new(),
    };
    let personal = if dimension.personal && !dimension.fold.is_personal() { ", personal = true" } else { "" };
    Some(format!("{{ {source}{fold}{personal} }}"))
}
