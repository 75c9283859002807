//! `[mfa.tenants]`: kinds of factors that are allowed and required, and who may change that for a tenant.

use super::fields::{self, Fields, Node};
use super::keys;
use super::lock::RangedDuration;
use crate::factors::{Admin, FactorKind, FactorRules, TenantRules};
use crate::report::Report;
use std::collections::BTreeSet;
use std::time::Duration;

/// What is the case where the policy does not say.
const GRACE: Duration = Duration::from_secs(7 * 86_400);

const GRACES: RangedDuration = RangedDuration {
    what: "grace",
    least: TenantRules::SHORTEST_GRACE,
    most: TenantRules::LONGEST_GRACE,
    example: "\"7day\"",
};

const ADMIN_EXAMPLE: &str = "{ claim = \"role\", value = \"admin\" }";

pub(super) fn decode(report: &mut Report<'_>, node: Option<Node<'_>>) -> Option<TenantRules> {
    let Some(node) = node else {
        return Some(TenantRules { rules: FactorRules::default(), grace: GRACE, admin: None });
    };
    let fields = Fields::open(report, node, "[mfa.tenants]", &keys::TENANTS)?;
    let usual = FactorRules::default();
    let allowed = fields.get("allowed").map(|node| kinds(report, node, "allowed"));
    let required = fields.get("required").map(|node| kinds(report, node, "required"));
    let minimum = fields.get("minimum").map(|node| fields::integer(report, node, "minimum", 0..=2, "1"));
    let grace = fields.get("grace").map(|node| GRACES.read(report, node));
    let admin = fields.get("admin").map(|node| admin(report, node));
    let rules = FactorRules {
        allowed: allowed.unwrap_or(Some(usual.allowed))?,
        required: required.unwrap_or(Some(usual.required))?,
        minimum: u32::try_from(minimum.unwrap_or(Some(0))?).ok()?,
    };
    if let Err(unfit) = rules.check() {
        let at = fields.get(unfit.field).map_or_else(|| fields.span(), |node| node.span());
        report.error(&at, unfit.to_string(), "ask for what people can do");
    }
    Some(TenantRules { rules, grace: grace.unwrap_or(Some(GRACE))?, admin: admin.map_or(Some(None), |a| a.map(Some))? })
}

fn kinds(report: &mut Report<'_>, node: Node<'_>, key: &str) -> Option<BTreeSet<FactorKind>> {
    let words = FactorKind::ALL.map(|kind| (kind.as_str(), kind));
    fields::words(report, node, key, "kind", &words).map(|kinds| kinds.into_iter().collect())
}

fn admin(report: &mut Report<'_>, node: Node<'_>) -> Option<Admin> {
    let fields = Fields::open(report, node, "admin", &keys::ADMIN)?;
    let mut part = |key: &str| {
        let node = fields.required(report, key, &format!("write `admin = {ADMIN_EXAMPLE}`"))?;
        let text = fields::text(report, node, key, ADMIN_EXAMPLE)?;
        // A list of values is written with these between by some gateways.
        if text.is_empty() || text.contains([' ', ',', '[', ']']) {
            let message = format!("{key} {text:?} cannot be told from several");
            report.error(
                &node.span(),
                message,
                format!("without blanks, commas and brackets: `admin = {ADMIN_EXAMPLE}`"),
            );
            return None;
        }
        Some(text.to_owned())
    };
    let (claim, value) = (part("claim"), part("value"));
    Some(Admin { claim: claim?, value: value? })
}
