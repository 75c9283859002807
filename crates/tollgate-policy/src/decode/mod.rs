//! From the spanned TOML tree to a policy. Invariant: every mistake is reported where it is, the rest of the file is
//! still read, and a name whose own declaration is wrong still counts as declared, so that one mistake is one finding.

mod check;
mod chosen;
mod device;
mod edge;
mod edge_rules;
mod fields;
mod http;
mod identity;
mod keys;
mod layers;
mod lease;
mod limits;
mod lock;
mod mfa;
mod otp;
mod passkeys;
mod pumping;
mod routes;
mod settling;
mod shards;
mod step_up;
mod tenants;
mod texts;

pub use keys::{KEYS, KeyList};

use crate::policy::{Plans, Policy};
use crate::report::Report;
use crate::suggest;
use fields::{Fields, Node};
use std::num::NonZeroU64;
use toml::de::DeTable;

/// The only `version` of the file format so far.
const VERSION: u64 = 1;

/// Decodes the whole file; `None` if something that the policy cannot do without is wrong.
pub(crate) fn policy(report: &mut Report<'_>, root: &DeTable<'_>) -> Option<Policy> {
    let root = Fields::root(report, root);
    version(report, &root);
    let revision = match root.get("revision") {
        Some(node) => fields::integer(report, node, "revision", 1..=u64::MAX, "1"),
        None => Some(1),
    };
    let instances = instances(report, &root);
    let identity = identity::decode(report, root.get("identity"));
    let plans = plans(report, root.get("plans"));
    let scope = limits::Scope { dimensions: identity.names(), plans: &plans };
    let limits = limits::decode(report, root.get("limits"), &scope);
    let http = http::decode(report, root.get("http"));
    let otp = otp::decode(report, root.get("otp"), &limits);
    let mfa = mfa::decode(report, root.get("mfa"), &identity.identity);
    let scope = routes::Scope { identity: &identity.identity, limits: &limits, declares_cors: declares_cors(&root) };
    let routes = routes::decode(report, root.get("routes"), &scope);
    let exemptions = routes::exemptions(report, root.get("exempt"));
    let behind = layers::Behind { identity: &identity.identity, limits: &limits, routes: &routes };
    let edge = edge::decode(report, root.get("edge"), &exemptions, behind);
    layers::check_kept_out(report, root.get("edge").is_some(), edge.as_ref().and_then(Option::as_ref), behind);
    check::reachable(report, &routes, &exemptions);
    check::advise(report, &limits, &routes, revision.unwrap_or(1));
    layers::warn_of_open(report, behind);
    settling::advise(report, &identity.identity, &limits);
    lease::check(report, &limits);
    shards::check(report, &identity.identity, &limits);
    chosen::advise(report, &identity, &plans, &limits, &routes);

    let limits = limits.into_iter().map(|entry| entry.limit).collect::<Option<Vec<_>>>()?;
    let routes = routes.into_iter().map(|entry| entry.value).collect();
    let exemptions = exemptions.into_iter().map(|entry| entry.value).collect();
    Some(
        Policy::new(revision?, identity.identity, plans, limits, routes, exemptions, http)
            .among(instances?)
            .sending(otp?)
            .behind(edge?)
            .stepping_up(mfa?),
    )
}

fn instances(report: &mut Report<'_>, root: &Fields<'_>) -> Option<NonZeroU64> {
    let Some(node) = root.get("instances") else { return Some(NonZeroU64::MIN) };
    fields::integer(report, node, "instances", 1..=Policy::MOST_INSTANCES, "20").and_then(NonZeroU64::new)
}

/// Whether `[http]` has a `cors`, right or wrong.
fn declares_cors(root: &Fields<'_>) -> bool {
    root.get("http").and_then(|node| node.get_ref().as_table()).is_some_and(|table| table.get("cors").is_some())
}

fn version(report: &mut Report<'_>, root: &Fields<'_>) {
    let help = "write `version = 1`";
    let Some(node) = root.required(report, "version", help) else { return };
    if let Some(version) = fields::integer(report, node, "version", 0..=u64::MAX, "1")
        && version != VERSION
    {
        report.error(&node.span(), format!("policy version {version} is not supported by this version"), help);
    }
}

/// Decodes `[plans]`. The default is the first plan unless another is given.
fn plans(report: &mut Report<'_>, node: Option<Node<'_>>) -> Plans {
    let mut plans = Plans::default();
    let Some(fields) = node.and_then(|node| Fields::open(report, node, "[plans]", &keys::PLANS)) else { return plans };
    let example = "[\"free\", \"pro\"]";
    if let Some(node) = fields.required(report, "names", &format!("write `names = {example}`")) {
        for node in fields::list(report, node, "names", example).into_iter().flat_map(|list| list.iter()) {
            let Some(name) = fields::text(report, node, "a plan", "\"free\"") else { continue };
            if fields::name(report, &node.span(), "plan", name) && plans.names().any(|earlier| earlier == name) {
                report.error(&node.span(), format!("plan `{name}` is given twice"), "write each plan once");
                continue;
            }
            plans.names.push(name.to_owned());
        }
        if plans.names.is_empty() {
            report.absent(
                &node.span(),
                "names",
                "`names` has no plan",
                format!("write `names = {example}`, or remove [plans]"),
            );
        }
    }
    plans.default = plans.names.first().cloned();
    if let Some(node) = fields.get("default")
        && let Some(name) = fields::text(report, node, "default", "\"free\"")
    {
        if !plans.names.is_empty() && !plans.names().any(|known| known == name) {
            let help = suggest::help(name, "plan", plans.names());
            report.absent(&node.span(), name, format!("the default plan `{name}` is not one of the names"), help);
        }
        plans.default = Some(name.to_owned());
    }
    plans
}
