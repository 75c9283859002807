//! From a policy to the rules of a web ACL. Pure.
//!
//! Invariant: a limit counts every spelling of its paths that an origin could take for them, and an exemption leaves out its own
//! spelling and no other.

mod exempt;
mod paths;

use crate::model::{Action, Body, Catches, IpSet, Logging, Rate, Rule, Statement, WebAcl};
use std::collections::BTreeMap;
use std::time::Duration;
use tollgate_policy::{BodyKind, Cidr, Edge, EdgeRule, KeepsOut, Policy, Stage};

/// The name of the body of who has none, to which the policy's prefix is added.
pub const OUR_BODY: &str = "rate-limited";
/// That body, in JSON.
pub const OUR_CONTENT: &str = r#"{"error":"rate_limited","message":"Too many requests from your address. Wait a little, then go on more slowly."}"#;

/// Versions of addresses, and what the name of a set of them ends with.
const VERSIONS: [(bool, &str); 2] = [(false, "ipv4"), (true, "ipv6")];

/// The rules of a policy's `[edge]`; `None` if it has none.
#[must_use]
pub fn web_acl(policy: &Policy) -> Option<WebAcl> {
    let edge = policy.edge()?;
    let bases = || std::iter::once("").chain(edge.base_paths.iter().map(String::as_str));
    let exempt =
        policy.exemptions().iter().flat_map(|of| bases().filter_map(|base| exempt::requests(base, of.pattern())));
    let exempt = Statement::any(exempt.collect());
    let mut rules: Vec<Rule> = edge.rules.iter().map(|rule| one(edge, rule, exempt.as_ref())).collect();
    rules.extend(edge.keeps_out.as_ref().map(|of| keeping_out(edge, of, exempt.as_ref())));
    rules.sort_by_key(|rule| rule.priority);
    let named = |name: &str| edge.rules.iter().any(|rule| rule.egress.iter().any(|set| set == name));
    let ip_sets =
        edge.egress.iter().filter(|set| named(&set.name)).flat_map(|set| ip_sets(edge, &set.name, &set.blocks));
    let kept_out = edge.keeps_out.iter().flat_map(|_| kept_out(edge));
    Some(WebAcl {
        scope: edge.scope,
        name: edge.web_acl.clone(),
        prefix: edge.prefix.clone(),
        bodies: bodies(edge, &rules),
        ip_sets: ip_sets.chain(kept_out).collect(),
        logging: edge
            .logging
            .as_ref()
            .map(|logging| Logging { destination: logging.destination.clone(), keeps_all: logging.keeps_all }),
        rules,
    })
}

fn one(edge: &Edge, rule: &EdgeRule, exempt: Option<&Statement>) -> Rule {
    let mut conditions: Vec<Statement> = paths::under_any(&with_bases(edge, &rule.paths)).into_iter().collect();
    let egress = rule.egress.iter().filter_map(|name| edge.egress.iter().find(|set| set.name == *name));
    let egress = egress.flat_map(|set| ip_sets(edge, &set.name, &set.blocks)).map(|set| is_in(edge, set));
    let left_out = exempt.cloned().into_iter().chain(egress);
    conditions.extend(left_out.map(|statement| Statement::Not(Box::new(statement))));
    Rule {
        name: format!("{}{}", edge.prefix, rule.name),
        priority: rule.priority,
        catches: Catches::Over(Rate {
            limit: rule.limit,
            window_secs: rule.window.as_secs(),
            forwarded: edge.forwarded.clone(),
            scope_down: Statement::all(conditions),
        }),
        action: action(edge, rule.stage, rule.body.as_deref(), rule.retry_after),
    }
}

/// The rule that keeps out who is listed, but for what is exempt.
fn keeping_out(edge: &Edge, of: &KeepsOut, exempt: Option<&Statement>) -> Rule {
    let listed = Statement::Any(kept_out(edge).into_iter().map(|set| is_in(edge, set)).collect());
    let condition = match exempt {
        Some(exempt) => Statement::All(vec![listed, Statement::Not(Box::new(exempt.clone()))]),
        None => listed,
    };
    Rule {
        name: format!("{}{}", edge.prefix, Edge::KEPT_OUT),
        priority: of.priority,
        catches: Catches::Where(condition),
        action: action(edge, of.stage, of.body.as_deref(), of.retry_after),
    }
}

/// The IP sets of those who are kept out.
fn kept_out(edge: &Edge) -> [IpSet; 2] {
    VERSIONS.map(|(is_v6, version)| IpSet {
        name: set_name(edge, Edge::KEPT_OUT, version),
        is_v6,
        blocks: Vec::new(),
        is_kept_by_others: true,
    })
}

fn is_in(edge: &Edge, set: IpSet) -> Statement {
    Statement::In { ip_set: set.name, header: edge.forwarded.as_ref().map(|forwarded| forwarded.header.clone()) }
}

fn set_name(edge: &Edge, name: &str, version: &str) -> String {
    format!("{}{name}-{version}", edge.prefix)
}

/// Each path as it is, and behind each base path.
fn with_bases(edge: &Edge, paths: &[String]) -> Vec<String> {
    let behind = |base: &String| paths.iter().map(|path| base.to_ascii_lowercase() + path).collect::<Vec<_>>();
    paths.iter().cloned().chain(edge.base_paths.iter().flat_map(behind)).collect()
}

fn action(edge: &Edge, stage: Stage, body: Option<&str>, retry_after: Duration) -> Action {
    match stage {
        Stage::Block => {
            // A limit has no moment at which it ends: WAF looks back at the window again and again.
            let ours = [
                ("retry-after".to_owned(), retry_after.as_secs().max(1).to_string()),
                ("cache-control".to_owned(), "no-store".to_owned()),
            ];
            let theirs = edge.headers.iter().map(|(name, value)| (name.clone(), value.clone()));
            let body = format!("{}{}", edge.prefix, body.unwrap_or(OUR_BODY));
            Action::Block { body, headers: ours.into_iter().chain(theirs).collect() }
        }
        Stage::Captcha => Action::Captcha,
        Stage::Challenge => Action::Challenge,
        _ => Action::Count,
    }
}

/// The bodies that rules answer with.
fn bodies(edge: &Edge, rules: &[Rule]) -> BTreeMap<String, Body> {
    let ours = (OUR_BODY, Body { kind: BodyKind::Json, content: OUR_CONTENT.to_owned() });
    let theirs =
        edge.bodies.iter().map(|(name, body)| (name.as_str(), Body { kind: body.kind, content: body.content.clone() }));
    // One of theirs that is named like ours takes its place.
    let all: BTreeMap<String, Body> =
        std::iter::once(ours).chain(theirs).map(|(name, body)| (format!("{}{name}", edge.prefix), body)).collect();
    let is_used =
        |key: &str| rules.iter().any(|rule| matches!(&rule.action, Action::Block { body, .. } if body == key));
    all.into_iter().filter(|(key, _)| is_used(key)).collect()
}

/// An egress set as WAF has it: one for each version of addresses.
fn ip_sets(edge: &Edge, name: &str, blocks: &[Cidr]) -> impl Iterator<Item = IpSet> {
    VERSIONS.into_iter().filter_map(move |(is_v6, version)| {
        let blocks: Vec<Cidr> = blocks.iter().copied().filter(|block| block.addr().is_ipv6() == is_v6).collect();
        let name = set_name(edge, name, version);
        (!blocks.is_empty()).then_some(IpSet { name, is_v6, blocks, is_kept_by_others: false })
    })
}
